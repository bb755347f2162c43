"""Releases: every published vector is drawn once, and is on disk before it is published.

A release has a name. The first caller draws, stores and publishes; later callers, after a crash or from an older
snapshot, get what was stored. A crash between drawing and storing loses a vector that was not published.
"""

from __future__ import annotations

import hashlib
import io
import re
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np

from diminuendo.errors import InvalidInput, LedgerDamaged, refuse_copies
from diminuendo.privacy.books import durable
from diminuendo.types import Ints

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}(@[A-Za-z0-9][A-Za-z0-9._-]{0,79})*")
"""What a release is called, and behind each @ for whom, where several share a ledger."""


def digest(values: Ints) -> str:
    """A hash of a released vector."""
    result = hashlib.sha256(repr((values.shape, values.dtype.str)).encode())
    result.update(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)
    return result.hexdigest()


def check_name(name: str) -> None:
    """Refuse names that could not be those of files."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InvalidInput(f"Names are up to 80 letters, digits, dots, dashes and underscores; got {name!r}.")


def packed(values: Ints) -> bytes:
    """A released vector as it is kept."""
    out = io.BytesIO()
    np.save(out, np.asarray(values), allow_pickle=False)
    return out.getvalue()


def unpacked(content: bytes, where: object) -> Ints:
    """A vector from what was kept there."""
    try:
        result: Ints = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise LedgerDamaged(f"{where} is not a release that was kept whole: {error}.") from error
    return result


class Releases:
    """Write-once storage of published vectors, by name; in memory or in a folder.

    Parameters
    ----------
    folder : str or Path, optional
        Where files are kept. By default releases are in memory and end with the process.

    Notes
    -----
    Noise that is drawn twice for the same sum would be a second release that was not paid for. So the first call of
    `once` draws and stores, and every later call returns the stored vector. A folder belongs to the process that
    holds the ledger.

    Examples
    --------
    >>> import numpy as np
    >>> from diminuendo.privacy import Releases
    >>> releases = Releases()
    >>> int(releases.once("sum.0", lambda: np.array(3))), int(releases.once("sum.0", lambda: np.array(4)))
    (3, 3)
    >>> releases.names()
    ['sum.0']
    """

    __getstate__ = refuse_copies

    def __init__(self, folder: str | Path | None = None) -> None:
        self._kept: dict[str, Ints] = {}  # without a folder
        self._lock = threading.Lock()
        self._folder = None if folder is None else Path(folder)
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            durable.sweep(self._folder)  # drawn but never published

    def __repr__(self) -> str:
        return f"<Releases in {self._folder or 'memory'}>"

    def check(self, name: str) -> None:
        """Raise InvalidInput if a name could not be that of a file."""
        check_name(name)

    def has(self, name: str) -> bool:
        """Return whether there is a release of this name."""
        return name in self._kept if self._folder is None else self._path(name).exists()

    def names(self) -> list[str]:
        """Return the names of all releases."""
        return (
            sorted(self._kept) if self._folder is None else sorted(f.stem for f in self._folder.glob("*.npy"))
        )

    def once(self, name: str, draw: Callable[[], Ints]) -> Ints:
        """Return the release of this name; call `draw` only if there is none yet.

        Parameters
        ----------
        name : str
            Up to 80 letters, digits, dots, dashes and underscores.
        draw : callable
            Called without arguments for the vector to publish. The vector is on disk before this returns.

        Returns
        -------
        ndarray of int

        Raises
        ------
        InvalidInput
            If the name is not a name.
        LedgerDamaged
            If the stored file cannot be read.
        """
        self.check(name)
        with self._lock:
            if self._folder is not None:
                return self._on_disk(name, draw)
            if name in self._kept:
                return self._kept[name].copy()
            drawn = np.asarray(draw())
            self._kept[name] = drawn.copy()  # the caller may change it
            return drawn

    def _on_disk(self, name: str, draw: Callable[[], Ints]) -> Ints:
        path = self._path(name)
        if path.exists():
            durable.sync_folder(path.parent)  # its writer may have died before this
        else:
            durable.write_once(
                path, packed(draw())
            )  # if another writer was faster, its vector is the release
        try:
            content = path.read_bytes()
        except OSError as error:
            raise LedgerDamaged(f"{path} is not a release that was kept whole: {error}.") from error
        return unpacked(content, path)

    def _path(self, name: str) -> Path:
        return Path(self._folder or "") / f"{name}.npy"
