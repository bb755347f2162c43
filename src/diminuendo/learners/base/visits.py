"""The visit limit: of each person only the first `visits` rounds count.

Learners promise something about everything that up to `visits` rounds of one person said. Which rounds are hers is a
public fact, told to `choose()`; from round visits + 1 on she is shown a slate like anybody else, and whatever she
answers changes nothing, as if she had answered before. Who is over the limit follows from identities alone, never from
what was said or whether it was: a round counts when it is chosen, answered or not.

Guarantee  every draw and every release depends on at most `visits` rounds of one person
           (docs/maths/accounting.md, Theorem A9).
           Where the ledger is a file that holds after a crash too, whichever snapshot the learner goes on from: a round
           that counts is on disk before its slate is shown (privacy/books/visit_file.py), and is not given back.
Assumes    that identities are right: who comes under two names is two people. Where the ledger is in memory, after a
           crash the count is that of the last snapshot.
Memory     16 bytes of a hash per person, as long as the learner lives, in its snapshots and beside its ledger. The hash
           has no key: it saves room and hides nothing from somebody with a list of names.
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
from diminuendo.privacy.books.visit_file import HASHED, VisitFile
from diminuendo.streams.people import People
from diminuendo.types import Ints

Identity: TypeAlias = int | str | bytes
"""Who somebody is. 7, "7" and b"7" are one person: names change their type on the way through files."""


class VisitLimit:
    """Counts everybody's rounds. Two people whose hashes agree share one limit, which protects both."""

    def __init__(self, visits: int, on_disk: VisitFile | None = None) -> None:
        self.visits, self._on_disk = _validate.positive_int(visits, "visits"), on_disk
        self._rounds: dict[bytes, int] = {} if on_disk is None else dict(on_disk.rounds)

    def __repr__(self) -> str:
        return f"<VisitLimit: {self.visits} rounds a person>"

    def admits(self, person: Identity | None) -> bool:
        """Whether what this person answers in her next round counts. Changes nothing."""
        if person is None:
            if self.visits > 1:
                self._refuse_nameless()
            return True
        return self._rounds.get(hashed(person), 0) < self.visits

    def reserve(self, persons: Iterable[Identity | None]) -> None:
        """Before these people are shown their next rounds, one for each time that they are named: make that durable.

        Changes nothing else. Where it fails, or a round does not come about, a round that was made durable is hers.
        """
        if self._on_disk is not None:
            more = Counter(hashed(person) for person in persons if person is not None)
            self._reach({key: self._rounds.get(key, 0) + rounds for key, rounds in more.items()})

    def _reach(self, rounds: dict[bytes, int]) -> None:
        if self._on_disk is not None:
            self._on_disk.reach({key: min(count, self.visits) for key, count in rounds.items()})

    def count(self, person: Identity | None) -> None:
        """She has had one more round. Who has no name comes once."""
        if person is not None:
            key = hashed(person)
            self._rounds[key] = self._rounds.get(key, 0) + 1

    def count_all(self, persons: Sequence[Identity] | NDArray[Any] | None, rounds: int) -> NDArray[np.bool_]:
        """Count that many rounds, one of each of `persons` in this order; for each, whether its answer counts."""
        if persons is None:
            if self.visits > 1:
                self._refuse_nameless()
            return np.ones(rounds, dtype=np.bool_)
        keys, who = _numbered(persons, rounds)
        before = np.array([self._rounds.get(key, 0) for key in keys], dtype=np.int64)
        each = np.bincount(who, minlength=len(keys))
        earlier = np.empty(rounds, dtype=np.int64)  # how many of these rounds were hers already
        earlier[np.argsort(who, kind="stable")] = np.arange(rounds) - np.repeat(np.cumsum(each) - each, each)
        after = dict(zip(keys, (before + each).tolist(), strict=True))
        self._reach(after)
        self._rounds.update(after)
        counts: NDArray[np.bool_] = before[who] + earlier < self.visits
        return counts

    def arrays(self) -> dict[str, NDArray[Any]]:
        """For a snapshot: everybody in the order of their hashes, which says nothing about when they came."""
        if not self._rounds:
            return {}
        keys = sorted(self._rounds)
        people = np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(-1, HASHED)
        return {"people": people, "rounds": np.array([self._rounds[key] for key in keys], dtype=np.int64)}

    def take(self, found: dict[str, NDArray[Any]]) -> None:
        """Go on from what `arrays` gave, and from what is on disk."""
        if not found:
            return
        keys = (row.tobytes() for row in found["people"])
        self._rounds = dict(zip(keys, found["rounds"].tolist(), strict=True))
        for key, count in ({} if self._on_disk is None else self._on_disk.rounds).items():
            self._rounds[key] = max(count, self._rounds.get(key, 0))

    def _refuse_nameless(self) -> NoReturn:
        raise InvalidInput(
            f"With visits={self.visits} one person may have several rounds, so the learner must know whose round this "
            "is: choose(person=...) or replay(people, persons=...), with a number or a text that is always the same "
            "for the same person. If nobody comes twice, make the learner with visits=1."
        )


def hashed(person: Identity) -> bytes:
    """What stands for a person. Numbers as their digits; zero bytes at the end do not count, as in NumPy's arrays."""
    if isinstance(person, bytes):
        name = bytes(person)
    elif isinstance(person, str):
        name = person.encode(errors="surrogatepass")
    elif isinstance(person, (int, np.integer)) and not isinstance(person, bool):
        name = str(int(person)).encode()
    else:
        raise InvalidInput(
            "A person is named by a whole number, a text or bytes, always the same for her; "
            f"got {type(person).__name__}."
        )
    return hashlib.sha256(name.rstrip(b"\0")).digest()[:HASHED]


def _numbered(persons: Sequence[Identity] | NDArray[Any], rounds: int) -> tuple[list[bytes], Ints]:
    """Everybody once, hashed, and whose each round is."""
    names: list[Any]
    if isinstance(persons, np.ndarray) and persons.ndim == 1 and persons.dtype.kind in "iuUS":
        result, places = np.unique(persons, return_inverse=True)
        names = result.tolist()
    else:
        names = list(persons)
        places = np.arange(len(names))
    if len(places) != rounds:
        raise InvalidInput(f"persons must name one person per round, {rounds}; got {len(places)}.")
    numbers: dict[bytes, int] = {}
    who = np.array([numbers.setdefault(hashed(name), len(numbers)) for name in names], dtype=np.int64)
    return list(numbers), who[places]


def silenced(people: People, counts: NDArray[np.bool_]) -> People:
    """`people`, but those whose answer does not count want nothing, which teaches a learner nothing."""
    if counts.all():
        return people
    parts = []
    for part in people.matrices:
        rows = scipy.sparse.csr_array(part)
        lengths = np.diff(rows.indptr)
        kept = np.repeat(counts, lengths)
        starts = np.concatenate([[0], np.cumsum(np.where(counts, lengths, 0))])
        parts.append(scipy.sparse.csr_array((rows.data[kept], rows.indices[kept], starts), shape=rows.shape))
    return people.with_rows(tuple(parts))
