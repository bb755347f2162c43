"""A shell for pages: commands that are not ours alone run in one bash, so that variables and servers last.

`diminuendo` is the one that is tested. What a page leaves running in the background ends with its shell.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import Self

PORT = ":8080"
"""Where servers on pages listen; in tests on a port that is free."""
TIMEOUT = 180.0
"""Seconds for one command; kernels may have to be compiled, and the machine may be busy."""


def missing(text: str) -> str | None:
    """A program that commands ask for and that is not here."""
    return next((name for name in ("bash", "curl") if name in text and shutil.which(name) is None), None)


def free_port() -> str:
    """As `PORT`, but nobody listens there."""
    with socket.socket() as result:
        result.bind(("127.0.0.1", 0))
        return f":{result.getsockname()[1]}"


class Shell:
    """One bash, in the present folder."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="shell")
        command = Path(self._folder.name) / "diminuendo"
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m diminuendo "$@"\n')
        command.chmod(0o755)
        self._errors = Path(self._folder.name) / "errors"
        path = f"{self._folder.name}:{os.environ['PATH']}"
        self._bash = subprocess.Popen(
            ["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, "PATH": path},
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.killpg(self._bash.pid, signal.SIGTERM)
        self._bash.kill()
        self._bash.communicate()
        self._folder.cleanup()

    def run(self, command: str) -> tuple[int, str, str]:
        """Status, what was printed, and what was complained."""
        mark = secrets.token_hex(8)
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        self._bash.stdin.write(f"{{ {command}\n}} 2>{self._errors}; printf '\\n{mark}%d\\n' $?\n")
        self._bash.stdin.flush()
        watch, printed = Timer(TIMEOUT, self._bash.kill), ""
        watch.start()
        try:
            while mark not in printed:
                line = self._bash.stdout.readline()
                assert line, f"The shell ended, or {command} took longer than {TIMEOUT:g} s."
                printed += line
        finally:
            watch.cancel()
        said, _, status = printed.rpartition(f"\n{mark}")
        return int(status), said, self._errors.read_text()
