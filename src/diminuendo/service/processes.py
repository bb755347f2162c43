"""The supervisor of a site on one machine: front ends that share a socket, and trainers. It restarts what dies.

Nothing private passes through here: each process opens store and keys by itself. To stop, front ends finish their
requests, and trainers what they are about to publish; after a grace period they are killed, which loses nothing.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from diminuendo.errors import InvalidInput

GRACE = 10.0
"""Seconds for which processes may finish."""
AGAIN = 1.0
"""Seconds before the first restart; doubled each time, up to `LONGEST`."""
LONGEST, DOUBLINGS = 60.0, 10
"""Seconds before a restart at most, and how often the time is doubled at most: 2 ** deaths would overflow one day."""


@dataclass
class Child:
    """One process of the site."""

    name: str
    command: list[str]
    handed: tuple[int, ...] = ()
    """File descriptors that it inherits."""
    process: subprocess.Popen[bytes] | None = None
    deaths: int = 0
    not_before: float = 0.0
    started: float = field(default=0.0)


class Processes:
    """Starts, restarts and stops them."""

    def __init__(
        self,
        site: Path,
        host: str,
        port: int,
        front_ends: int,
        say: Callable[[str], None],
        trainers: int = 1,
    ) -> None:
        self._say, self._stopping = say, False
        self.socket = listening(host, port) if front_ends else None
        run = [sys.executable, "-m", "diminuendo.service"]
        self.children = [
            Child(f"trainer {number}", [*run, "trainer", str(site), str(number)])
            for number in range(trainers)
        ]
        if self.socket is not None:
            handed = str(self.socket.fileno())
            self.children += [
                Child(f"front end {number}", [*run, "front", str(site), handed, str(number)], (int(handed),))
                for number in range(front_ends)
            ]

    @property
    def port(self) -> int:
        """Where front ends listen; 0 where there are none."""
        return 0 if self.socket is None else int(self.socket.getsockname()[1])

    def run(
        self, until: Callable[[], bool] = lambda: False, before_stop: Callable[[], None] = lambda: None
    ) -> None:
        """Run until a signal comes or `until()` is true; then call `before_stop` while all processes still run."""
        before = {number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            while not self._stopping and not until():
                self.watch()
                time.sleep(0.1)
        finally:
            try:
                before_stop()
            finally:
                self.stop()
            for number, handler in before.items():
                signal.signal(number, handler)

    def watch(self) -> None:
        """Start what does not run. One that cannot be started does not stop the others."""
        for child in self.children:
            if child.process is not None and (code := child.process.poll()) is not None:
                child.process = None
                self._died(child, f"ended ({code})")
            if child.process is None and time.monotonic() >= child.not_before:
                child.started = time.monotonic()
                try:
                    child.process = subprocess.Popen(
                        child.command, pass_fds=child.handed, start_new_session=True
                    )
                except (OSError, subprocess.SubprocessError) as error:  # no memory, or too many processes
                    self._died(child, f"cannot be started ({type(error).__name__})")

    def _died(self, child: Child, how: str) -> None:
        """Schedule its restart, later each time."""
        lasted = time.monotonic() - child.started
        child.deaths = 1 if lasted > LONGEST else child.deaths + 1
        wait = min(LONGEST, AGAIN * 2 ** min(child.deaths - 1, DOUBLINGS))
        child.not_before = time.monotonic() + wait
        with suppress(OSError, ValueError):  # nobody reads it any more
            self._say(f"{child.name} {how}; restarting.")

    def stop(self) -> None:
        """Ask all of them to finish, and wait."""
        running = [child.process for child in self.children if child.process is not None]
        for process in running:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        until = time.monotonic() + GRACE
        for process in running:
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self.socket is not None:
            self.socket.close()

    def _stop(self, *_: object) -> None:
        self._stopping = True


def listening(host: str, port: int) -> socket.socket:
    """The socket that front ends share."""
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    result = socket.socket(kind, socket.SOCK_STREAM)
    result.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        result.bind((host, port))
        result.listen(1024)
    except OSError as error:
        result.close()
        raise InvalidInput(f"Cannot listen on {host}:{port}: {error.strerror}.") from error
    return result


def end_with_parent() -> Callable[[], bool]:
    """A question whether the parent process is gone; then this one ends too."""
    parent = os.getppid()
    return lambda: os.getppid() != parent
