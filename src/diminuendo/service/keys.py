"""The folder of keys: those that encrypt tokens and hash user IDs. Outside of the store.

    tokens.json    keys that encrypt tokens, by number, and which one encrypts; the others still decrypt
    names.key      hashes user IDs. Never rotate it: a new one resets the round counts of every user

Created where there is none, readable for the owner alone. Without these keys a copy of the store reveals no user ID,
and its tokens cannot be forged. The trainer's keys are in a subfolder (seal.py).
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
    """By number; earlier ones still decrypt tokens."""
    signing: int
    """The number of the key that encrypts new tokens."""
    names: bytes


def make_keys(folder: Path) -> None:
    """Create a folder with keys where there is none; existing keys stay."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.chmod(folder, 0o700)
    (folder / TRAINER).mkdir(exist_ok=True, mode=0o700)
    content = {"sign_with": 1, "keys": {"1": secrets.token_hex(KEY_BYTES)}}
    write_once(
        folder / TOKENS, json.dumps(content).encode()
    )  # for the owner alone, as all temporary files are
    write_once(folder / NAMES, secrets.token_hex(KEY_BYTES).encode())


def read_keys(folder: Path) -> FrontKeys:
    """The keys of front ends in that folder."""
    try:
        content = json.loads((folder / TOKENS).read_text())
        tokens = {int(number): bytes.fromhex(key) for number, key in content["keys"].items()}
        result = FrontKeys(
            tokens, int(content["sign_with"]), bytes.fromhex((folder / NAMES).read_text().strip())
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InvalidInput(_unread(folder)) from None
    whole = {len(result.names), *map(len, tokens.values())} == {KEY_BYTES}
    if not whole or result.signing not in tokens or not all(0 <= number < 256 for number in tokens):
        raise InvalidInput(_unread(folder))
    return result


def rotate(folder: Path) -> int:
    """Encrypt new tokens with a new key, and return its number. Only the previous one still decrypts."""
    old = read_keys(folder)
    number = (old.signing + 1) % 256
    keys = {old.signing: old.tokens[old.signing], number: secrets.token_bytes(KEY_BYTES)}
    content = {"sign_with": number, "keys": {str(each): key.hex() for each, key in keys.items()}}
    replaced(folder / TOKENS, json.dumps(content).encode())
    return number


def new_access_key() -> tuple[str, str]:
    """An API key, and its hash for the site's file."""
    key = secrets.token_urlsafe(24)
    return key, hashlib.sha256(key.encode()).hexdigest()


def _unread(folder: Path) -> str:
    return (
        f"{folder} does not hold the keys of a service ({TOKENS}, {NAMES}), or they are incomplete. Restore the folder "
        "from a copy: with other keys no user would be recognised, and no open token could be decrypted."
    )
