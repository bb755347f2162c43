"""Contribution counts of users, in a file: a user who was shown a slate has had that round, whatever happens later.

One line for the learner whose rounds they are, then one for each group of rounds that were counted at once: hashes of
the users, with a check over them and the line before. A line is on disk before its first user is shown a slate.
So a last line without its end is of users who were shown nothing, and is dropped; any other damage is refused. A file
of many lines is written anew when it is opened, in the order of hashes, which says nothing about who came when.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from diminuendo.errors import LedgerDamaged, LedgerInUse
from diminuendo.privacy.books import durable

FORMAT = 1

HASHED = 16
"""Bytes that stand for a user."""

CHECK = 8
"""Bytes of a check."""

MANY = 1000
"""Lines: a file of more is written anew when it is opened."""


class ContributionFile:
    """How many rounds of each user count, by hash; held by the process that holds the ledger beside it."""

    def __init__(self, path: Path, learner: str) -> None:
        self._path, self._lock, self._closed = path, threading.Lock(), False
        self._header = json.dumps({"visits": FORMAT, "learner": learner}).encode() + b"\n"
        self._check, self._size = _check(b"", self._header), 0
        self._file: durable.AppendOnly | None = None
        self.rounds: Counter[bytes] = Counter()
        """So far; on disk."""
        if path.exists():
            durable.sweep(path.parent)
            file = self._file = durable.AppendOnly(path, create=False)
            try:
                if self._read(file.read()) > MANY:
                    self._write_anew()
                else:
                    file.cut(self._size)
            except BaseException:
                self._close_file()
                raise

    def __repr__(self) -> str:
        return f"<ContributionFile {self._path}>"

    def reach(self, rounds: Mapping[bytes, int]) -> None:
        """These users have had at least these rounds: on disk when this returns; unchanged where it fails."""
        with self._lock:
            missing = Counter(rounds) - self.rounds
            if not missing:
                return
            if self._closed:
                raise LedgerInUse(f"{self._path} was closed with its ledger; open the ledger again.")
            line, check = _line(self._check, missing.elements())
            content = line if self._size else self._header + line
            try:
                self._opened().append(content)
                self._size, self._check = self._size + len(content), check
                self.rounds += missing
            except BaseException:
                self._close_file()  # what is there beyond the last whole line is cut off before the next one
                raise

    def close(self) -> None:
        """Let another process have the file."""
        with self._lock:
            self._close_file()
            self._closed = True

    def _opened(self) -> durable.AppendOnly:
        if self._file is None:
            folder = self._path.parent
            if not folder.exists():
                folder.mkdir()
                durable.sync_folder(folder.parent)
            self._file = durable.AppendOnly(self._path, create=not self._size)
            self._file.cut(self._size)
        return self._file

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _read(self, content: bytes) -> int:
        """Take in what the file says; the number of its lines."""
        *lines, rest = content.split(b"\n")
        if not (lines or self._header.startswith(rest)) or (lines and lines[0] + b"\n" != self._header):
            raise LedgerDamaged(f"{self._path}, line 1: these are not the visits of this learner. {RESTORE}")
        for number, text in enumerate(lines[1:], start=2):
            try:
                result = base64.b64decode(text, validate=True)
            except ValueError:
                result = b""
            check, users = result[:CHECK], result[CHECK:]
            if not users or len(users) % HASHED or check != _check(self._check, users):
                raise LedgerDamaged(f"{self._path}, line {number}: its check does not fit. {RESTORE}")
            self._check = check
            self.rounds.update(users[at : at + HASHED] for at in range(0, len(users), HASHED))
        self._size = len(content) - len(rest)
        return len(lines)

    def _write_anew(self) -> None:
        """The same rounds in one line, in the place of the file: all of it or nothing."""
        line, self._check = _line(_check(b"", self._header), self.rounds.elements())
        rewritten = self._path.with_name(f"{self._path.name}.new")
        rewritten.unlink(missing_ok=True)
        durable.write_once(rewritten, self._header + line)
        os.replace(rewritten, self._path)
        durable.sync_folder(self._path.parent)
        self._close_file()
        self._size = len(self._header) + len(line)
        self._file = durable.AppendOnly(self._path, create=False)


RESTORE = "Restore the file from a copy."


def _line(before: bytes, users: Iterable[bytes]) -> tuple[bytes, bytes]:
    """A group of rounds as a line, and its check."""
    whole = b"".join(sorted(users))
    check = _check(before, whole)
    return base64.b64encode(check + whole) + b"\n", check


def _check(before: bytes, content: bytes) -> bytes:
    return hashlib.sha256(before + content).digest()[:CHECK]
