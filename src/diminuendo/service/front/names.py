"""Names of users become 16 bytes, by a hash with a key that is not in the store: a copy of it tells no names."""

from __future__ import annotations

from hashlib import blake2b
from unicodedata import normalize

from diminuendo.errors import InvalidInput

PURPOSE, KEY_PURPOSE = b"diminuendo name", b"diminuendo retry"


class Names:
    """Turns names, and what clients call their requests, into bytes that mean nothing without its key."""

    def __init__(self, key: bytes) -> None:
        if len(key) != 32:
            raise InvalidInput("Names are hashed with a key of 32 bytes, such as secrets.token_bytes(32).")
        self._key = key

    def of(self, user_id: str) -> bytes:
        """The pseudonym of a user, however the letters of the name are composed."""
        return blake2b(
            normalize("NFC", user_id).encode(), key=self._key, digest_size=16, person=PURPOSE
        ).digest()

    def request(self, key: str) -> bytes:
        """What stands for an Idempotency-Key; nothing where there is none."""
        if not key:
            return b""
        return blake2b(key.encode(), key=self._key, digest_size=16, person=KEY_PURPOSE).digest()
