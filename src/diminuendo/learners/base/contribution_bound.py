"""Contribution bounding: of each user only the first `max_rounds_per_user` rounds count.

A guarantee covers up to `max_rounds_per_user` rounds of one user. Which rounds are theirs is a public fact, passed to
`choose()`. From round `max_rounds_per_user` + 1 on, slates are shown as ever, and feedback changes nothing, as if it
had arrived before. Who is over the bound follows from identities alone, never from feedback: a round counts when it is
chosen, answered or not.

Guarantee  every draw and every release depends on at most `max_rounds_per_user` rounds of one user
           (docs/maths/accounting.md, Theorem A9).
           If the ledger is a file this holds after a crash too, whichever snapshot the learner is restored from: a
           round that counts is on disk before its slate is shown (privacy/books/contribution_file.py), and is not
           given back.
Assumes    that identities are right: two names are two users. If the ledger is in memory, the count after a crash is
           that of the last snapshot.
Memory     16 bytes of a hash per user, for the lifetime of the learner, in its snapshots and beside its ledger. The
           hash has no key: it saves room and hides nothing from an attacker with a list of names.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.privacy.books.contribution_file import HASHED, ContributionFile
from diminuendo.streams.users import Users
from diminuendo.types import Ints

Identity: TypeAlias = int | str | bytes
"""Identity of a user. 7, "7" and b"7" are one user: names change their type on the way through files."""


class ContributionBound:
    """Counts the rounds of each user. Two users whose hashes agree share one limit, which protects both."""

    def __init__(self, max_rounds_per_user: int, on_disk: ContributionFile | None = None) -> None:
        self.max_rounds_per_user, self._on_disk = (
            _validate.positive_int(max_rounds_per_user, "max_rounds_per_user"),
            on_disk,
        )
        self._rounds: dict[bytes, int] = {} if on_disk is None else dict(on_disk.rounds)

    def __repr__(self) -> str:
        return f"<ContributionBound: {self.max_rounds_per_user} rounds a user>"

    def admits(self, user_id: Identity | None) -> bool:
        """Whether feedback in the next round of this user counts. Changes nothing."""
        if user_id is None:
            if self.max_rounds_per_user > 1:
                self._refuse_nameless()
            return True
        return self._rounds.get(hashed(user_id), 0) < self.max_rounds_per_user

    def reserve(self, user_ids: Iterable[Identity | None]) -> None:
        """Before these users are shown their next rounds, one for each time that they are named: make that durable.

        Changes nothing else. Where it fails, or a round does not come about, a round that was made durable is used up.
        """
        if self._on_disk is not None:
            more = Counter(hashed(user_id) for user_id in user_ids if user_id is not None)
            self._reach({key: self._rounds.get(key, 0) + rounds for key, rounds in more.items()})

    def _reach(self, rounds: dict[bytes, int]) -> None:
        if self._on_disk is not None:
            self._on_disk.reach({key: min(count, self.max_rounds_per_user) for key, count in rounds.items()})

    def count(self, user_id: Identity | None) -> None:
        """Count one more round of this user. Users without a name have one round each."""
        if user_id is not None:
            key = hashed(user_id)
            self._rounds[key] = self._rounds.get(key, 0) + 1

    def count_all(self, user_ids: Sequence[Identity] | NDArray[Any] | None, rounds: int) -> NDArray[np.bool_]:
        """Count that many rounds, one of each of `user_ids` in this order; for each, whether its answer counts."""
        if user_ids is None:
            if self.max_rounds_per_user > 1:
                self._refuse_nameless()
            return np.ones(rounds, dtype=np.bool_)
        keys, who = _numbered(user_ids, rounds)
        before = np.array([self._rounds.get(key, 0) for key in keys], dtype=np.int64)
        each = np.bincount(who, minlength=len(keys))
        earlier = np.empty(rounds, dtype=np.int64)  # how many of these rounds were theirs already
        earlier[np.argsort(who, kind="stable")] = np.arange(rounds) - np.repeat(np.cumsum(each) - each, each)
        after = dict(zip(keys, (before + each).tolist(), strict=True))
        self._reach(after)
        self._rounds.update(after)
        counts: NDArray[np.bool_] = before[who] + earlier < self.max_rounds_per_user
        return counts

    def arrays(self) -> dict[str, NDArray[Any]]:
        """For a snapshot: users in the order of their hashes, which does not reveal when they arrived."""
        if not self._rounds:
            return {}
        keys = sorted(self._rounds)
        users = np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(-1, HASHED)
        return {"users": users, "rounds": np.array([self._rounds[key] for key in keys], dtype=np.int64)}

    def take(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Go on from what `arrays` gave, and from what is on disk."""
        if not arrays:
            return
        keys = (row.tobytes() for row in arrays["users"])
        self._rounds = dict(zip(keys, arrays["rounds"].tolist(), strict=True))
        for key, count in ({} if self._on_disk is None else self._on_disk.rounds).items():
            self._rounds[key] = max(count, self._rounds.get(key, 0))

    def _refuse_nameless(self) -> NoReturn:
        raise InvalidInput(
            f"With max_rounds_per_user={self.max_rounds_per_user} one user may have several rounds, so the learner "
            "must know whose round this is: choose(user_id=...) or replay(users, user_ids=...), with a number or "
            "a text that is always the same for the same user. If no user comes twice, make the learner with "
            "max_rounds_per_user=1."
        )


def hashed(user_id: Identity) -> bytes:
    """What stands for a user. Numbers as their digits; zero bytes at the end do not count, as in NumPy's arrays."""
    if isinstance(user_id, bytes):
        name = bytes(user_id)
    elif isinstance(user_id, str):
        name = user_id.encode(errors="surrogatepass")
    elif isinstance(user_id, (int, np.integer)) and not isinstance(user_id, bool):
        name = str(int(user_id)).encode()
    else:
        raise InvalidInput(
            "A user is named by a whole number, a text or bytes, always the same for one user; "
            f"got {type(user_id).__name__}."
        )
    return hashlib.sha256(name.rstrip(b"\0")).digest()[:HASHED]


def _numbered(user_ids: Sequence[Identity] | NDArray[Any], rounds: int) -> tuple[list[bytes], Ints]:
    """Each user once, hashed, and the user of each round."""
    names: list[Any]
    if isinstance(user_ids, np.ndarray) and user_ids.ndim == 1 and user_ids.dtype.kind in "iuUS":
        result, places = np.unique(user_ids, return_inverse=True)
        names = result.tolist()
    else:
        names = list(user_ids)
        places = np.arange(len(names))
    if len(places) != rounds:
        raise InvalidInput(f"user_ids must name one user per round, {rounds}; got {len(places)}.")
    numbers: dict[bytes, int] = {}
    who = np.array([numbers.setdefault(hashed(name), len(numbers)) for name in names], dtype=np.int64)
    return list(numbers), who[places]


def silenced(users: Users, counts: NDArray[np.bool_]) -> Users:
    """`users`, but those whose answer does not count want nothing, which teaches a learner nothing."""
    if counts.all():
        return users
    parts = []
    for part in users.matrices:
        rows = scipy.sparse.csr_array(part)
        lengths = np.diff(rows.indptr)
        stored = np.repeat(counts, lengths)
        starts = np.concatenate([[0], np.cumsum(np.where(counts, lengths, 0))])
        parts.append(
            scipy.sparse.csr_array((rows.data[stored], rows.indices[stored], starts), shape=rows.shape)
        )
    return users.with_rows(tuple(parts))
