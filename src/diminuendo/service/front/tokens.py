"""Tokens: what was shown, encrypted with a key of the front ends, to come back with the answer.

Where contexts are private or users exclude items the slate in a token is private, so tokens are encrypted
and not only
signed. A token is as long as the slots of its placement ask for, whatever is in it, and has one spelling.

Format     number of the key 1, nonce 24, box: MAC 16, placement 4, round 8, version 4, counts 1, type 4, slots 4 each;
           then nothing up to a multiple of 3, so that base64 for URLs leaves no bit open.
Rotation   give the new key beside the old one and sign with it; leave the old one out when the last answers to what it
           encrypted are too late to count.
"""

from __future__ import annotations

import os
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from struct import Struct

from nacl.bindings import crypto_secretbox, crypto_secretbox_open
from nacl.exceptions import CryptoError

from diminuendo.errors import InvalidInput, InvalidToken
from diminuendo.service.records import Shown

NO_ROUND = -1
"""The round of a fallback slate."""
KEY_BYTES, NONCE_BYTES, BOX_BYTES, SPEC_BYTES = 32, 24, 16, 21
MOST_SLOTS = 10_000
SPELLING = re.compile(r"(?:[A-Za-z0-9_-]{4})+")
PURPOSE = b"diminuendo shown"


class Tokens:
    """Seals what was shown with one of its keys, and opens what any of them encrypted."""

    def __init__(self, keys: Mapping[int, bytes], sign_with: int | None = None) -> None:
        """`keys`: of 32 bytes each, by numbers from 0 to 255. `sign_with`: which one, if there are several."""
        if not keys or any(not 0 <= number <= 255 or len(key) != KEY_BYTES for number, key in keys.items()):
            raise InvalidInput(
                "Tokens need keys of 32 bytes, by numbers from 0 to 255: {1: secrets.token_bytes(32)}."
            )
        if sign_with is None and len(keys) > 1:
            raise InvalidInput(
                f"There are {len(keys)} keys: say which one signs, sign_with=.., by its number."
            )
        self._keys = {
            number: blake2b(key, digest_size=32, person=PURPOSE).digest() for number, key in keys.items()
        }
        number = next(iter(keys)) if sign_with is None else sign_with
        if number not in keys:
            raise InvalidInput(f"sign_with must be one of {', '.join(map(str, keys))}; got {number!r}.")
        self._head, self._key = bytes([number]), self._keys[number]

    def __repr__(self) -> str:
        return f"<Tokens: keys {', '.join(map(str, self._keys))}>"

    def seal(self, shown: Shown) -> str:
        """The token of what was shown."""
        said = layout(len(shown.slate)).pack(
            shown.placement, shown.round, shown.version, shown.counts, shown.type, *shown.slate
        )
        nonce = os.urandom(NONCE_BYTES)
        return urlsafe_b64encode(self._head + nonce + crypto_secretbox(said, nonce, self._key)).decode()

    def open(self, token: str) -> Shown:
        """What was shown; refused unless one of these keys encrypted all of it. The error says nothing of the token."""
        if SPELLING.fullmatch(token):
            given = urlsafe_b64decode(token)
            key = self._keys.get(given[0])
            if key is not None and len(given) >= 1 + NONCE_BYTES + BOX_BYTES + SPEC_BYTES:
                try:
                    said = crypto_secretbox_open(given[1 + NONCE_BYTES :], given[1 : 1 + NONCE_BYTES], key)
                except CryptoError:
                    pass
                else:
                    spec = layout((len(said) - SPEC_BYTES) // 4).unpack(said)
                    placement, number, version, counts, type_, *slate = spec
                    return Shown(placement, number, version, counts, tuple(slate), type_)
        raise InvalidToken("None of the keys that are here encrypted this token.") from None


@cache
def layout(slots: int) -> Struct:
    """How a row of that many slots lies in a token."""
    if slots > MOST_SLOTS:
        raise InvalidInput(f"A token holds at most {MOST_SLOTS:,} slots; got {slots:,}.")
    size = 1 + NONCE_BYTES + BOX_BYTES + SPEC_BYTES + 4 * slots
    return Struct(f">IqI?I{slots}i{-size % 3}x")
