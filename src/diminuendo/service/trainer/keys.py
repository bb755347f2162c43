"""Keys of the trainer: only the trainer reads what is encrypted to them. Private keys are kept by private_keys.py.

There is a key for each publication of a placement. Answers are encrypted to the public key, which is in the menu; the
snapshot of that publication is encrypted with the private key. Once nothing that still counts is encrypted to
a key it is
thrown away, and what backups hold of its time is gone as well. A key that is lost makes its answers unreadable: they
count as nothing.

In the trainer's folder lies, of each population, the head that its ledger had when something was published last. A
store that was rolled back to an older state does not contain it, and is refused: it would draw again what users have
seen.
"""

from __future__ import annotations

import fcntl
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
    crypto_secretbox,
    crypto_secretbox_open,
)

from diminuendo.errors import InvalidInput, Superseded
from diminuendo.privacy.books.durable import replaced
from diminuendo.service.trainer.private_keys import FolderKeys, PrivateKeys

HEAD, FRONT = 4, 4 + crypto_box_PUBLICKEYBYTES
"""What is encrypted begins with the number of the key and, of an answer, the public key of the front end; then
a nonce."""
AGREED = 4096
"""Front ends whose agreed keys are remembered."""


class Key(NamedTuple):
    """The public key of a key."""

    number: int
    public: bytes

    def __str__(self) -> str:
        """As menus say it: what service/seal.py seals to."""
        return f"{self.number}:{self.public.hex()}"


class Keys:
    """The keys of placements, and heads of ledgers in a folder that is not in the store."""

    def __init__(self, folder: str | Path, private_keys: PrivateKeys | None = None) -> None:
        """`private_keys`: where private keys lie; in that folder too, where nothing is said."""
        self._folder = Path(folder)
        self._private_keys: PrivateKeys = FolderKeys(self._folder) if private_keys is None else private_keys
        self._agreed: dict[tuple[int, bytes], bytes] = {}

    def __repr__(self) -> str:
        return f"<Keys in {self._folder}>"

    def new(self, placement: int) -> Key:
        """One more key of a placement; durable when this returns, so that it may be published."""
        public, secret = crypto_box_keypair()
        number = secrets.randbelow(2**32)
        self._private_keys.put(placement, number, secret)
        return Key(number, public)

    def of(self, placement: int) -> set[int]:
        """The numbers of a placement's keys."""
        return self._private_keys.numbers(placement)

    def drop(self, placement: int, *numbers: int) -> None:
        """Throw keys away. One that is not there any more is no mistake."""
        if numbers:
            self._private_keys.drop(placement, numbers)
            self._agreed.clear()

    def open(self, placement: int, encrypted: bytes) -> bytes | None:
        """What was encrypted to a key of a placement; None where it cannot be read."""
        try:
            front = bytes(encrypted[:FRONT])
            if (shared := self._agreed.get((placement, front))) is None:
                secret = self._private_keys.get(placement, *unpack(">I", front[:HEAD]))
                shared = crypto_box_beforenm(front[HEAD:], secret)
                if len(self._agreed) >= AGREED:
                    self._agreed.clear()
                self._agreed[placement, front] = shared
            nonce, box = (
                encrypted[FRONT : FRONT + crypto_box_NONCEBYTES],
                encrypted[FRONT + crypto_box_NONCEBYTES :],
            )
            return crypto_box_open_afternm(box, nonce, shared)
        except Exception:  # a key that is lost, or bytes that no front end encrypted
            return None

    def note(self, population: str, head: str, fencing_token: int) -> None:
        """A ledger's head, before what it paid for is published; refused where a later fencing token has noted one."""
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            before, _ = self._read(population)
            if fencing_token < before:
                raise Superseded(
                    f"Fencing token {fencing_token} of population {population!r} is over: {before} has published since."
                )
            replaced(self._head(population), f"{fencing_token} {head}".encode())
        finally:
            os.close(folder)

    def noted(self, population: str) -> str | None:
        """The head that was noted last; None where nothing was published."""
        return self._read(population)[1]

    def _read(self, population: str) -> tuple[int, str | None]:
        path = self._head(population)
        fencing_token, _, head = (path.read_text() if path.exists() else "").rpartition(" ")
        return int(fencing_token or 0), head or None

    def _head(self, population: str) -> Path:
        return self._folder / f"{quote(population, safe='')}.head"

    def encrypt_snapshot(self, placement: int, key: Key, plain: bytes) -> bytes:
        """A snapshot, for the trainer itself, with the private key of that key."""
        nonce = os.urandom(crypto_box_NONCEBYTES)
        return (
            pack(">I", key.number) + nonce + crypto_secretbox(plain, nonce, self._own(placement, key.number))
        )

    def open_snapshot(self, placement: int, encrypted: bytes) -> bytes:
        """The snapshot that was encrypted."""
        (number,), nonce = unpack(">I", encrypted[:HEAD]), encrypted[HEAD : HEAD + crypto_box_NONCEBYTES]
        try:
            return crypto_secretbox_open(
                encrypted[HEAD + crypto_box_NONCEBYTES :], nonce, self._own(placement, number)
            )
        except Exception as error:
            raise InvalidInput(
                f"The snapshot of placement {placement} cannot be opened: its key, number {number}, is not among those "
                f"of {self._folder}, or not as it was. Bring that folder back, or, where keys are in the store, the "
                "master key that was there."
            ) from error

    def _own(self, placement: int, number: int) -> bytes:
        secret = self._private_keys.get(placement, number)
        return hashlib.blake2b(secret, digest_size=32, person=b"snapshot").digest()
