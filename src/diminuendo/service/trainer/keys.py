"""Keys of the trainer, in a folder that is not in the store: what is sealed to them only the trainer reads.

There is a key for each publication of a placement. Answers are sealed to the public half, which is in the menu; the
snapshot of that publication is sealed with the secret half. Once nothing that still counts is sealed to a key it is
thrown away, and what backups hold of its time is gone as well. A key that is lost makes its answers unreadable: they
count as nothing.

Beside them lies, of each population, the head that its ledger had when something was published last. A store that was
put back to an older state does not contain it, and is refused: it would draw again what people have seen.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path
from struct import pack, unpack
from typing import NamedTuple
from urllib.parse import quote

from nacl.bindings import (
    crypto_box_beforenm,
    crypto_box_keypair,
    crypto_box_NONCEBYTES,
    crypto_box_open_afternm,
    crypto_box_PUBLICKEYBYTES,
    crypto_box_SECRETKEYBYTES,
    crypto_secretbox,
    crypto_secretbox_open,
)

from diminuendo.errors import InvalidInput
from diminuendo.privacy.books.durable import replaced

HEAD, FRONT = 4, 4 + crypto_box_PUBLICKEYBYTES
"""What is sealed begins with the number of the key and, of an answer, the public key of the front end; then a nonce."""
AGREED = 4096
"""Front ends whose agreed keys are remembered."""


class Key(NamedTuple):
    """The public half of a key."""

    number: int
    public: bytes

    def __str__(self) -> str:
        """As menus say it: what service/seal.py seals to."""
        return f"{self.number}:{self.public.hex()}"


class Keys:
    """The keys in a folder, by placement."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._agreed: dict[tuple[int, bytes], bytes] = {}

    def __repr__(self) -> str:
        return f"<Keys in {self._folder}>"

    def new(self, placement: int) -> Key:
        """One more key of a placement; on disk when this returns, so that it may be published."""
        public, secret = crypto_box_keypair()
        number = secrets.randbelow(2**32)
        with open(
            os.open(self._path(placement, number), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb"
        ) as file:
            file.write(secret)
            file.flush()
            os.fsync(file.fileno())
        self._sync()
        return Key(number, public)

    def of(self, placement: int) -> set[int]:
        """The numbers of a placement's keys."""
        return {int(path.stem.partition("-")[2]) for path in self._folder.glob(f"{placement}-*.key")}

    def drop(self, placement: int, number: int) -> None:
        """Throw a key away: written over, then gone. One that is not there any more is no mistake."""
        path = self._path(placement, number)
        try:
            with path.open("r+b") as file:
                file.write(bytes(crypto_box_SECRETKEYBYTES))
                file.flush()
                os.fsync(file.fileno())
            path.unlink()
        except FileNotFoundError:
            return
        self._sync()
        self._agreed.clear()

    def open(self, placement: int, sealed: bytes) -> bytes | None:
        """What was sealed to a key of a placement; None where it cannot be read."""
        try:
            front = bytes(sealed[:FRONT])
            if (shared := self._agreed.get((placement, front))) is None:
                secret = self._secret(placement, *unpack(">I", front[:HEAD]))
                shared = crypto_box_beforenm(front[HEAD:], secret)
                if len(self._agreed) >= AGREED:
                    self._agreed.clear()
                self._agreed[placement, front] = shared
            nonce, box = (
                sealed[FRONT : FRONT + crypto_box_NONCEBYTES],
                sealed[FRONT + crypto_box_NONCEBYTES :],
            )
            return crypto_box_open_afternm(box, nonce, shared)
        except Exception:  # a key that is lost, or whatever somebody put there
            return None

    def note(self, population: str, epoch: int, head: str) -> None:
        """A ledger's head, before what it paid for is published; in the epoch of whoever publishes it.

        Each epoch has a note of its own: who is held up here while another leads takes none of the other's back.
        """
        mine = self._folder / f"{_file_of(population)}@{epoch}.head"
        replaced(mine, head.encode())
        for before, path in self._notes(population).items():
            if before < epoch:
                path.unlink(missing_ok=True)

    def noted(self, population: str) -> str | None:
        """The head that was noted in the last epoch; None where nothing was published."""
        notes = self._notes(population)
        return notes[max(notes)].read_text() if notes else None

    def _notes(self, population: str) -> dict[int, Path]:
        """By epoch where its note is; one without an epoch is of before there were any."""
        name = _file_of(population)
        found = {
            int(path.stem.rpartition("@")[2]): path
            for path in self._folder.glob("*@*.head")
            if path.stem.rpartition("@")[0] == name
        }
        old = self._folder / f"{name}.head"
        return found | ({0: old} if old.exists() else {})

    def seal_snapshot(self, placement: int, key: Key, plain: bytes) -> bytes:
        """A snapshot, for the trainer itself, with the secret half of that key."""
        nonce = os.urandom(crypto_box_NONCEBYTES)
        return (
            pack(">I", key.number) + nonce + crypto_secretbox(plain, nonce, self._own(placement, key.number))
        )

    def open_snapshot(self, placement: int, sealed: bytes) -> bytes:
        """The snapshot that was sealed."""
        (number,), nonce = unpack(">I", sealed[:HEAD]), sealed[HEAD : HEAD + crypto_box_NONCEBYTES]
        try:
            return crypto_secretbox_open(
                sealed[HEAD + crypto_box_NONCEBYTES :], nonce, self._own(placement, number)
            )
        except Exception as error:
            raise InvalidInput(
                f"The snapshot of placement {placement} cannot be opened: its key, number {number}, is not in "
                f"{self._folder}, or not as it was. Restore that folder from a copy."
            ) from error

    def _own(self, placement: int, number: int) -> bytes:
        return hashlib.blake2b(self._secret(placement, number), digest_size=32, person=b"snapshot").digest()

    def _secret(self, placement: int, number: int) -> bytes:
        return self._path(placement, number).read_bytes()

    def _path(self, placement: int, number: int) -> Path:
        return self._folder / f"{placement}-{number}.key"

    def _sync(self) -> None:
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _file_of(population: str) -> str:
    """Its name as that of a file: without slashes, and without an @."""
    return quote(population, safe="")
