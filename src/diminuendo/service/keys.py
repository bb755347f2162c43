"""The folder of keys: what tokens are sealed with, and what makes names of users unreadable. Outside of the store.

    tokens.json    by number the keys that tokens are sealed with, and which one seals; the others still open
    names.key      users's names become hashes with this key; it never changes, or everybody would be somebody new

Made where there is none, readable for the owner alone. Without these keys a copy of the store tells nobody's name, and
its tokens cannot be forged. The trainer's own keys lie in a folder of their own beside them (seal.py).
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from diminuendo.errors import InvalidInput
from diminuendo.privacy.books.durable import replaced, write_once

TOKENS, NAMES, TRAINER = "tokens.json", "names.key", "trainer"
KEY_BYTES = 32


@dataclass(frozen=True)
class FrontKeys:
    """The keys of front ends."""

    tokens: dict[int, bytes]
    """By number; those of former times still open tokens."""
    signing: int
    """The number of the key that new tokens are sealed with."""
    names: bytes


def make_keys(folder: Path) -> None:
    """A folder with keys, where there is none; keys that are there stay."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.chmod(folder, 0o700)
    (folder / TRAINER).mkdir(exist_ok=True, mode=0o700)
    fresh = {"sign_with": 1, "keys": {"1": secrets.token_hex(KEY_BYTES)}}
    write_once(folder / TOKENS, json.dumps(fresh).encode())  # for the owner alone, as all temporary files are
    write_once(folder / NAMES, secrets.token_hex(KEY_BYTES).encode())


def read_keys(folder: Path) -> FrontKeys:
    """The keys of front ends in that folder."""
    try:
        told = json.loads((folder / TOKENS).read_text())
        tokens = {int(number): bytes.fromhex(key) for number, key in told["keys"].items()}
        result = FrontKeys(
            tokens, int(told["sign_with"]), bytes.fromhex((folder / NAMES).read_text().strip())
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InvalidInput(_unread(folder)) from None
    whole = {len(result.names), *map(len, tokens.values())} == {KEY_BYTES}
    if not whole or result.signing not in tokens or not all(0 <= number < 256 for number in tokens):
        raise InvalidInput(_unread(folder))
    return result


def rotate(folder: Path) -> int:
    """A new key for tokens from now on; the number of it. The one before still opens tokens, older ones do not."""
    before = read_keys(folder)
    number = (before.signing + 1) % 256
    keys = {before.signing: before.tokens[before.signing], number: secrets.token_bytes(KEY_BYTES)}
    told = {"sign_with": number, "keys": {str(each): key.hex() for each, key in keys.items()}}
    replaced(folder / TOKENS, json.dumps(told).encode())
    return number


def new_access_key() -> tuple[str, str]:
    """A key for requests, and its hash for the site's file."""
    key = secrets.token_urlsafe(24)
    return key, hashlib.sha256(key.encode()).hexdigest()


def _unread(folder: Path) -> str:
    return (
        f"{folder} does not hold the keys of a service ({TOKENS}, {NAMES}), or they are not whole. Restore the folder "
        "from a copy: with other keys nobody would be recognised, and no answer under way could be read."
    )
