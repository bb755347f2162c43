"""Answers sealed to the trainer: whoever reads the store, its log or a backup learns nothing from them.

A front end agrees on a key with the trainer's public key once and seals each answer under it. What is sealed begins
with the number of the trainer's key and the front end's public key.
"""

from __future__ import annotations

import os
from struct import pack

from nacl.bindings import crypto_box_afternm, crypto_box_beforenm, crypto_box_keypair, crypto_box_NONCEBYTES


class Sealer:
    """Seals to one key of the trainer. It forgets its own secret key, so it cannot open what it sealed before."""

    def __init__(self, public_key: bytes, number: int) -> None:
        own, secret = crypto_box_keypair()
        self._shared = crypto_box_beforenm(public_key, secret)
        self._head = pack(">I", number) + own

    def seal(self, said: bytes) -> bytes:
        """Number of the key, public key of the front end, nonce, box."""
        nonce = os.urandom(crypto_box_NONCEBYTES)
        return self._head + nonce + crypto_box_afternm(said, nonce, self._shared)
