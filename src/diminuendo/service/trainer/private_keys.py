"""Where the private keys of the trainer's keys lie: in a folder of its machine, or in the store, encrypted.

In the store the next leader has them, on any machine. Each is encrypted with a *master key*, a file that the
operator copies to the machines of trainers, and that is in no store. `master.key` is made where there is none; of
several, `master*.key`, the last by name seals and all open: what was encrypted with another is encrypted anew when its
population is led the next time, and then the older file can be deleted.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_decrypt,
    crypto_aead_xchacha20poly1305_ietf_encrypt,
    crypto_aead_xchacha20poly1305_ietf_NPUBBYTES,
)

from diminuendo.errors import InvalidInput
from diminuendo.privacy.books.durable import write_once
from diminuendo.service.store import Store

MASTERS, MASTER, NAME_BYTES, KEY_BYTES = "master*.key", "master.key", 4, 32
"""Master keys in their folder; the first one; what is encrypted begins with that many bytes that name its
master key."""


class PrivateKeys(Protocol):
    """Secret halves of keys, by placement and number."""

    def put(self, placement: int, number: int, secret: bytes) -> None:
        """Keep one more; durable when this returns."""

    def get(self, placement: int, number: int) -> bytes:
        """The one that was kept; whatever error where there is none."""
        ...

    def numbers(self, placement: int) -> set[int]:
        """Those that are kept."""
        ...

    def drop(self, placement: int, numbers: Iterable[int]) -> None:
        """Throw these away; those that are not there are no mistake."""


class FolderKeys:
    """A file each, written over before it is gone."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder

    def put(self, placement: int, number: int, secret: bytes) -> None:
        """Keep one more; on disk when this returns."""
        how = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with open(os.open(self._path(placement, number), how, 0o600), "wb") as file:
            file.write(secret)
            file.flush()
            os.fsync(file.fileno())
        self._sync()

    def get(self, placement: int, number: int) -> bytes:
        """The one that was kept."""
        return self._path(placement, number).read_bytes()

    def numbers(self, placement: int) -> set[int]:
        """Those that are kept."""
        return {int(path.stem.partition("-")[2]) for path in self._folder.glob(f"{placement}-*.key")}

    def drop(self, placement: int, numbers: Iterable[int]) -> None:
        """Throw these away: written over, then gone."""
        for number in numbers:
            path = self._path(placement, number)
            try:
                with path.open("r+b") as file:
                    file.write(bytes(path.stat().st_size))
                    file.flush()
                    os.fsync(file.fileno())
                path.unlink()
            except FileNotFoundError:
                continue
        self._sync()

    def _path(self, placement: int, number: int) -> Path:
        return self._folder / f"{placement}-{number}.key"

    def _sync(self) -> None:
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


class StoreKeys:
    """Rows of the store, each encrypted with a master key, for the trainer of that fencing token."""

    def __init__(self, store: Store, fencing_token: int, masters: dict[bytes, bytes]) -> None:
        """`masters`: master keys by what names them; the last one seals."""
        self._store, self._fencing_token, self._masters = store, fencing_token, masters
        self._seals = next(reversed(masters))

    def put(self, placement: int, number: int, secret: bytes) -> None:
        """Keep one more; in the store when this returns."""
        nonce = os.urandom(crypto_aead_xchacha20poly1305_ietf_NPUBBYTES)
        box = crypto_aead_xchacha20poly1305_ietf_encrypt(
            secret, _about(placement, number), nonce, self._masters[self._seals]
        )
        self._store.add_key(self._fencing_token, placement, number, self._seals + nonce + box)

    def get(self, placement: int, number: int) -> bytes:
        """The one that was kept, opened."""
        encrypted = self._store.keys_of(placement)[number]
        master, box = self._masters[encrypted[:NAME_BYTES]], encrypted[NAME_BYTES:]
        nonce, box = (
            box[:crypto_aead_xchacha20poly1305_ietf_NPUBBYTES],
            box[crypto_aead_xchacha20poly1305_ietf_NPUBBYTES:],
        )
        return crypto_aead_xchacha20poly1305_ietf_decrypt(box, _about(placement, number), nonce, master)

    def numbers(self, placement: int) -> set[int]:
        """Those that are kept."""
        return set(self._store.keys_of(placement))

    def drop(self, placement: int, numbers: Iterable[int]) -> None:
        """Throw these away."""
        self._store.drop_keys(self._fencing_token, placement, numbers)

    def take_over(self, placement: int, folder: FolderKeys) -> None:
        """Seal with the newest master key what was encrypted with another, and move here what still lies in a
        folder."""
        kept = self._store.keys_of(placement)
        for number, encrypted in kept.items():
            name = encrypted[:NAME_BYTES]
            if name not in self._masters:
                raise InvalidInput(
                    f"Keys of placement {placement} are encrypted with the master key {name.hex()}, which is not here: "
                    f"copy {MASTER} from the machine of another trainer."
                )
            if name != self._seals:
                self.put(placement, number, self.get(placement, number))
        for number in folder.numbers(placement):
            if number not in kept:
                self.put(placement, number, folder.get(placement, number))
            folder.drop(placement, [number])


def make_master(folder: Path) -> None:
    """A first master key in that folder, where there is none."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not list(folder.glob(MASTERS)):
        write_once(folder / MASTER, secrets.token_hex(KEY_BYTES).encode())


def read_masters(folder: Path) -> dict[bytes, bytes]:
    """The master keys in that folder, by what names them, in the order of their files."""
    result = dict[bytes, bytes]()
    for path in sorted(folder.glob(MASTERS), key=lambda path: (len(path.stem), path.stem)):
        try:
            key = bytes.fromhex(path.read_text().strip())
        except (OSError, ValueError):
            key = b""
        if len(key) != KEY_BYTES:
            raise InvalidInput(f"{path} is no master key: expected {2 * KEY_BYTES} hexadecimal digits.")
        result[hashlib.blake2b(key, digest_size=NAME_BYTES, person=b"master").digest()] = key
    if not result:
        raise InvalidInput(f"There is no {MASTER} in {folder}: copy it from the machine of another trainer.")
    return result


def _about(placement: int, number: int) -> bytes:
    """What a encrypted half is bound to: moved to another row it opens nothing."""
    return b"%d-%d" % (placement, number)
