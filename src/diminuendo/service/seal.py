"""Encryption of feedback for the trainer: the store, its log and backups reveal nothing of it.

A front end derives one key from the trainer's public key and encrypts each row with it. A ciphertext begins with the
number of the trainer's key and the front end's public key.
"""

from __future__ import annotations

import os
from struct import pack

from nacl.bindings import crypto_box_afternm, crypto_box_beforenm, crypto_box_keypair, crypto_box_NONCEBYTES


class Sealer:
    """Encrypts for one key of the trainer. It drops its own private key, so it cannot decrypt afterwards."""

    def __init__(self, public_key: bytes, number: int) -> None:
        own, secret = crypto_box_keypair()
        self._shared = crypto_box_beforenm(public_key, secret)
        self._head = pack(">I", number) + own

    def seal(self, content: bytes) -> bytes:
        """Number of the key, public key of the front end, nonce, box."""
        nonce = os.urandom(crypto_box_NONCEBYTES)
        return self._head + nonce + crypto_box_afternm(content, nonce, self._shared)
