"""API keys and their roles. Kept as hashes, compared in constant time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from hmac import compare_digest
from typing import Literal

from diminuendo.service.api.problems import Problem

Role = Literal["client", "admin", "auditor"]
ROLES: tuple[Role, ...] = ("client", "admin", "auditor")


class AccessKeys:
    """Which key has which roles.

    Parameters
    ----------
    hashes : mapping of role to sequence of str
        SHA-256 of the keys, in hexadecimal digits.
    """

    def __init__(self, hashes: Mapping[Role, Sequence[str]]) -> None:
        self._hashes = [(bytes.fromhex(each), role) for role in hashes for each in hashes[role]]

    def check(self, authorization: bytes, roles: tuple[Role, ...]) -> None:
        """Refuse unless the given key has one of these roles; no roles: no key is needed."""
        if not roles:
            return
        if not authorization[:7].lower() == b"bearer ":
            raise Problem("key")
        result = self._roles(authorization[7:].strip())
        if not result:
            raise Problem("key")
        if not result & set(roles):
            raise Problem("role")

    def role_of(self, key: str) -> Role | None:
        """The most powerful role of a key on the dashboard; None where nobody has it."""
        result = self._roles(key.encode())
        return next((role for role in ("admin", "auditor", "client") if role in result), None)

    def _roles(self, key: bytes) -> set[Role]:
        given = sha256(key).digest()
        return {role for known, role in self._hashes if compare_digest(known, given)}
