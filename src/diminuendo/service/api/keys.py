"""Keys and roles: who may serve, operate and audit. Kept as hashes, compared in constant time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from hmac import compare_digest
from typing import Literal

from diminuendo.errors import InvalidInput
from diminuendo.service.api.problems import Problem

Role = Literal["serve", "operate", "audit"]
ROLES: tuple[Role, ...] = ("serve", "operate", "audit")


class Keys:
    """Which key has which roles."""

    def __init__(self, hashes: Mapping[Role, Sequence[str]]) -> None:
        """`hashes`: by role the SHA-256 of its keys, in hexadecimal digits."""
        if strange := set(hashes) - set(ROLES):
            raise InvalidInput(f"Keys are for {', '.join(ROLES)}; got {', '.join(map(str, strange))}.")
        try:
            self._hashes = [(bytes.fromhex(each), role) for role in hashes for each in hashes[role]]
        except ValueError:
            raise InvalidInput(
                "Keys are written down as their SHA-256, in hexadecimal digits; one of them is not."
            ) from None
        if any(len(each) != 32 for each, _ in self._hashes):
            raise InvalidInput("Keys are written down as their SHA-256, 64 digits; one of them is not.")

    def check(self, authorization: bytes, roles: tuple[Role, ...]) -> None:
        """Refuse unless the key that was given has one of these roles; no roles: anybody may."""
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
        """What a key is good for on the dashboard: to operate before all else; None where nobody has it."""
        result = self._roles(key.encode())
        return next((role for role in ("operate", "audit", "serve") if role in result), None)

    def _roles(self, key: bytes) -> set[Role]:
        given = sha256(key).digest()
        return {role for known, role in self._hashes if compare_digest(known, given)}
