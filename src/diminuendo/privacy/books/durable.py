"""Files that survive a crash: appended to by one process at a time, or written once and for all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from diminuendo.errors import InvalidInput, LedgerInUse, refuse_copies

try:
    import fcntl
except ImportError:  # no file locks of this kind on the system
    fcntl = None  # type: ignore[assignment]  # a module or nothing; checked before use


class AppendOnly:
    """A file that one process holds and appends to. What `append` was given is on disk when it returns."""

    __getstate__ = refuse_copies

    def __init__(self, path: Path, create: bool) -> None:
        if fcntl is None:
            raise InvalidInput(
                "A ledger in a file needs the file locks of a Unix system; keep it in memory instead."
            )
        self.path, self._owner, self._broken, self._file = path, os.getpid(), False, -1
        created = create and not path.exists()
        try:
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | (os.O_CREAT if create else 0), 0o600)
        except OSError as error:
            raise InvalidInput(f"Cannot open {path}: {error.strerror}.") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.close()
            raise LedgerInUse(
                f"{path} is in use by another process, or was opened here already. Open a ledger once, and hand it to "
                "each learner under a name of its own: make(.., ledger=ledger.named('front-page'))."
            ) from error
        if created:
            sync_folder(path.parent)

    def read(self) -> bytes:
        """Everything in the file."""
        size, parts, done = os.fstat(self._file).st_size, [], 0
        while done < size:  # one call need not give all of a large file
            part = os.pread(self._file, size - done, done)
            if not part:
                raise LedgerInUse(f"{self.path} is being cut while it is read.")
            parts.append(part)
            done += len(part)
        return b"".join(parts)

    def check(self) -> None:
        """Refuse unless this process holds the file that lies under its name, and may append to it."""
        if os.getpid() != self._owner:
            raise LedgerInUse(f"{self.path} belongs to the process that opened it, not to its forked child.")
        if self._broken:
            raise LedgerInUse(f"{self.path} is closed, or could not be written to before; open it again.")
        if not self._in_place():
            raise LedgerInUse(f"{self.path} was replaced or removed meanwhile; open it again.")

    def append(self, line: bytes) -> None:
        """Write at the end and wait until it is on disk."""
        self.check()
        self._broken = True  # until all of it is safe
        while line:
            line = line[os.write(self._file, line) :]
        os.fsync(self._file)
        self._broken = False

    def _in_place(self) -> bool:
        """Whether the file that is held is still the one under its name."""
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(self._file))
        except FileNotFoundError:
            return False

    def cut(self, size: int) -> None:
        """Drop what lies beyond."""
        os.ftruncate(self._file, size)
        os.fsync(self._file)

    def close(self) -> None:
        """Let go of the file. A forked child closes only its own copy."""
        if self._file >= 0:
            os.close(self._file)
        self._file, self._broken = -1, True

    def __del__(self) -> None:
        if getattr(self, "_file", -1) >= 0:
            self.close()


def write_once(path: Path, content: bytes) -> bool:
    """Put the content at `path`, whole and on disk, unless something is there already; says whether it did."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=UNFINISHED, delete=False) as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.link(file.name, path)
        except FileExistsError:
            return False
        finally:
            os.unlink(file.name)
    sync_folder(path.parent)
    return True


def replaced(path: Path, content: bytes) -> None:
    """Put the content at `path`, whole and on disk, in place of what is there.

    An unfinished file has a name that is not taken for one of the folder's files, also if it is left behind.
    """
    created = path.with_name(f"{UNFINISHED}{path.name}")
    created.unlink(missing_ok=True)
    write_once(created, content)
    os.replace(created, path)
    sync_folder(path.parent)


def sweep(folder: Path) -> None:
    """Remove what was left unfinished; to be called by the one process that may write into the folder."""
    for left in folder.glob(f"{UNFINISHED}*"):
        left.unlink(missing_ok=True)


UNFINISHED = ".unfinished-"
"""The names of files that are being written begin with this."""


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
