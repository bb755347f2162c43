"""A real browser, told what to do through a pipe (the DevTools protocol): no driver has to be installed.

It has an empty profile of its own, and is asked to be silent on the network.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
HOW_TO_GET_IT = "no chromium on PATH; on Debian `make browser` installs it"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
STUB = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""The browser reads from 3 and writes to 4."""
TIMEOUT = 60.0
"""Seconds for one answer; the machine may be busy."""


def find() -> str | None:
    """Where the browser is, if there is one."""
    return next((result for name in NAMES if (result := shutil.which(name))), None)


class Browser:
    """One tab."""

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back, self._rest, self._asked = to, back, b"", 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        """What the browser said unasked."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask for something and wait for the answer."""
        self._asked += 1
        message = {"id": self._asked, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._asked:
            self.events.append(answer)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def open(
        self, page: Path | str, width: int, height: int = 844, scheme: Literal["light", "dark"] = "light"
    ) -> None:
        """Show a file, or what is at an address, in a window of that size; returns when it is loaded."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events.clear()
        self.call("Page.navigate", url=page if isinstance(page, str) else page.resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def ask(self, script: str) -> Any:
        """The value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def screenshot(self, target: Path, *, whole: bool = True) -> Path:
        """What can be seen, or the whole page, as a PNG."""
        result = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(base64.b64decode(result["data"]))
        return target

    @property
    def requests(self) -> list[str]:
        """Every address that was asked for since the page was opened."""
        sent = [event for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    @property
    def complaints(self) -> list[str]:
        """Errors and warnings of the page."""
        methods = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        return [json.dumps(event["params"]) for event in self.events if event.get("method") in methods]

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + TIMEOUT
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._back], [], [], max(0.0, until - time.monotonic()))
            assert ready, "the browser does not answer"
            piece = os.read(self._back, 1 << 20)
            assert piece, "the browser has gone"
            self._rest += piece
        message, self._rest = self._rest.split(b"\0", 1)
        result: dict[str, Any] = json.loads(message)
        return result


@contextmanager
def browser(program: str, profile: Path) -> Iterator[Browser]:
    """A browser with an empty profile, closed at the end."""
    theirs_in, to = os.pipe()
    back, theirs_out = os.pipe()
    # High numbers first, so that neither is in the other's way when they become 3 and 4.
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (theirs_in, theirs_out)]
    for fd in (theirs_in, theirs_out):
        os.close(fd)
    stub = [sys.executable, "-S", "-c", STUB, *map(str, high)]
    command = [*stub, program, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
    process = subprocess.Popen(
        command, pass_fds=high, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    for fd in high:
        os.close(fd)
    try:
        yield Browser(to, back)
    finally:
        os.close(to)  # it ends when nobody can tell it anything any more
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(back)
