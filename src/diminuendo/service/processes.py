"""Processes of a site on one machine: front ends that share one socket, and trainers; who dies is started again.

Nothing private passes through here: each process opens store and keys by itself. To stop, front ends finish what they
were asked, and trainers what they are about to publish; after a while they are ended, which loses nothing.
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
"""Seconds for which processes may finish what they do."""
AGAIN = 1.0
"""Seconds before one that died is started again, at first; doubled each time, up to `LONGEST`."""
LONGEST, DOUBLINGS = 60.0, 10
"""Seconds before it is started again at most, and how often the time is doubled at most: 2 to the power of how often it
died would be too large for a float some day."""


@dataclass
class Child:
    """One process of the site."""

    name: str
    command: list[str]
    handed: tuple[int, ...] = ()
    """Sockets that it is given."""
    process: subprocess.Popen[bytes] | None = None
    deaths: int = 0
    not_before: float = 0.0
    started: float = field(default=0.0)


class Processes:
    """Starts them, starts them again, and stops them."""

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
        ask = [sys.executable, "-m", "diminuendo.service"]
        self.children = [
            Child(f"trainer {number}", [*ask, "trainer", str(site), str(number)])
            for number in range(trainers)
        ]
        if self.socket is not None:
            handed = str(self.socket.fileno())
            self.children += [
                Child(f"front end {number}", [*ask, "front", str(site), handed, str(number)], (int(handed),))
                for number in range(front_ends)
            ]

    @property
    def port(self) -> int:
        """Where front ends listen; 0 where there are none."""
        return 0 if self.socket is None else int(self.socket.getsockname()[1])

    def run(
        self, until: Callable[[], bool] = lambda: False, before_stop: Callable[[], None] = lambda: None
    ) -> None:
        """Until somebody asks to stop, or `until` says so; then `before_stop`, while all processes still run."""
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
        """Start whoever is not there. One that cannot be started takes no other along."""
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
        """Start it again, later each time; what is said of it stops nobody."""
        lasted = time.monotonic() - child.started
        child.deaths = 1 if lasted > LONGEST else child.deaths + 1
        wait = min(LONGEST, AGAIN * 2 ** min(child.deaths - 1, DOUBLINGS))
        child.not_before = time.monotonic() + wait
        with suppress(OSError, ValueError):  # whoever read it has gone
            self._say(f"{child.name} {how}; it is started again.")

    def stop(self) -> None:
        """Ask all of them to finish, and wait."""
        there = [child.process for child in self.children if child.process is not None]
        for process in there:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        until = time.monotonic() + GRACE
        for process in there:
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
    """A socket that front ends share."""
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
    """Whether the process that started this one is gone; then it ends too."""
    parent = os.getppid()
    return lambda: os.getppid() != parent
