"""Tokens: decisions as short signed texts, for feedback that comes back through other hands.

    tokens = Tokens({1: secrets.token_bytes(32)})     # keys by number; store them as you store passwords
    token = tokens.sign(decision)                     # 48 letters, digits, - and _
    learner.observe(tokens.read(token), feedback)     # refused unless one of these keys signed it

A token names a round and the incarnation of the learner, both public, and nothing else. The slate is not in it: under
private contexts or exclusions the slate is the user's alone, and texts that travel are logged. Whoever holds a token
may report feedback for its user, once and before the deadline: send it to them alone, in bodies and not in addresses.

Format     36 bytes in base64 for URLs: version 1, number of the key 1, round 8, life 8, MAC 18. The MAC is keyed
           BLAKE2b over all that comes before it, compared in constant time. 36 is a multiple of 3: a token has one
           spelling.
Rotation   add the new key, and sign with it; drop the old key when the last feedback on what it signed comes too late
           to count.
Assumes    that keys are secret. A MAC hides nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from struct import Struct

from diminuendo import _validate
from diminuendo.errors import InvalidInput, InvalidToken
from diminuendo.types import LARGEST_INCARNATION, Decision, DecisionId, sound

VERSION = 1
SHORTEST_KEY, LONGEST_KEY = 32, 64
MAC_BYTES = 18
SPEC = Struct(">BBQQ")
SPELLING = re.compile(r"[A-Za-z0-9_-]{48}")
PURPOSE = b"diminuendo token"
"""Keeps what is signed here from being taken for what the same key signs elsewhere; BLAKE2b takes 16 bytes."""


class Tokens:
    """Signs decisions as short texts, and reads what one of its keys signed.

    Parameters
    ----------
    keys : mapping of int to bytes
        Keys of 32 to 64 bytes, by numbers from 0 to 255.
    sign_with : int, optional
        Number of the key that signs. Required if there are several keys.

    Attributes
    ----------
    sign_with : int
        Number of the key that signs.

    Raises
    ------
    InvalidInput
        If a key is too short or too long, or it is not clear which one signs.

    Notes
    -----
    A MAC authenticates; it hides nothing. What a token carries, the round and the incarnation of the learner, is
    public.

    Examples
    --------
    >>> from diminuendo import Decision, Tokens
    >>> tokens = Tokens({1: bytes(range(32))})  # in production: secrets.token_bytes(32)
    >>> token = tokens.sign(Decision(round=7, slate=(3, 1), incarnation=5))
    >>> len(token), tokens.read(token)
    (48, DecisionId(round=7, incarnation=5))
    >>> tokens.read(token[:-1] + "A")
    Traceback (most recent call last):
        ...
    diminuendo.errors.InvalidToken: None of the keys that are here signed this token.
    """

    def __init__(self, keys: Mapping[int, bytes], sign_with: int | None = None) -> None:
        if not keys:
            raise InvalidInput("Tokens are signed with a key: Tokens({1: secrets.token_bytes(32)}).")
        for number, key in keys.items():
            _validate.whole(number, 0, 255, "the number of a key")
            if not isinstance(key, bytes) or not SHORTEST_KEY <= len(key) <= LONGEST_KEY:
                raise InvalidInput(
                    f"Key {number} must be from {SHORTEST_KEY} to {LONGEST_KEY} bytes that nobody can guess, such as "
                    "secrets.token_bytes(32)."
                )
        if sign_with is None and len(keys) > 1:
            raise InvalidInput(
                f"There are {len(keys)} keys: say which one signs, sign_with=.., by its number."
            )
        self._keys = {int(number): key for number, key in keys.items()}
        self.sign_with = next(iter(self._keys)) if sign_with is None else sign_with
        _validate.one_of(self.sign_with, self._keys, "sign_with")

    def __repr__(self) -> str:
        return f"<Tokens: keys {', '.join(map(str, self._keys))}; {self.sign_with} signs>"

    def sign(self, decision: Decision | DecisionId) -> str:
        """Return the token of a decision.

        Parameters
        ----------
        decision : Decision or DecisionId
            As `choose` returned it.

        Returns
        -------
        str
            48 letters, digits, `-` and `_`.
        """
        decision_id = decision if isinstance(decision, DecisionId) else sound(decision).id
        for number, what in ((decision_id.round, "round"), (decision_id.incarnation, "incarnation")):
            _validate.whole(number, 0, LARGEST_INCARNATION, f"the {what} of a decision")
        spec = SPEC.pack(VERSION, self.sign_with, decision_id.round, decision_id.incarnation)
        return urlsafe_b64encode(spec + _mac(self._keys[self.sign_with], spec)).decode()

    def read(self, token: str) -> DecisionId:
        """Return the decision id of a token, with which to call `observe`.

        Parameters
        ----------
        token : str
            As `sign` returned it.

        Returns
        -------
        DecisionId

        Raises
        ------
        InvalidToken
            Unless one of the keys signed all of it. The message repeats nothing of the token.
        """
        if not isinstance(token, str) or not SPELLING.fullmatch(token):
            raise InvalidToken(
                "This is no token: tokens are 48 letters, digits, - and _, as sign() wrote them."
            )
        given = urlsafe_b64decode(token)
        spec, mac = given[: SPEC.size], given[SPEC.size :]
        version, signed_with, number, incarnation = SPEC.unpack(spec)
        if version != VERSION:
            raise InvalidToken(f"This is no token of version {VERSION}, which is read here.")
        key = self._keys.get(signed_with)
        if key is None or not hmac.compare_digest(mac, _mac(key, spec)):
            raise InvalidToken("None of the keys that are here signed this token.")
        return DecisionId(number, incarnation)


def _mac(key: bytes, spec: bytes) -> bytes:
    return hashlib.blake2b(spec, key=key, digest_size=MAC_BYTES, person=PURPOSE).digest()
