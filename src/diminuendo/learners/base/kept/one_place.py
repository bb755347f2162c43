"""People who are kept in one place: what items are worth to each of them by itself, and herself, in step.

What is worth to her by itself is clipped at each release and bounds all that is published about her
(sums/chains/people/entries.py); she herself, a row of a table or a function, can be asked what items add after others
(stored_objectives.py). Where her row says both, it is kept once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput, refuse_copies
from diminuendo.learners.base import stored_objectives
from diminuendo.learners.base.stored_objectives import StoredObjectives
from diminuendo.objectives.family import Family, Table
from diminuendo.streams.moved import FunctionWalk, TableWalk, as_in_their_rows
from diminuendo.streams.people import People
from diminuendo.streams.walks import Room, Segment, singles
from diminuendo.sums.batch import csr_rows
from diminuendo.sums.chains.people.answers import Group, Walk
from diminuendo.sums.chains.people.entries import Chunk, Entries
from diminuendo.sums.chains.people.frozen import AskedPeople, FrozenPeople
from diminuendo.sums.chains.people.parted import PartedPeople
from diminuendo.sums.clip import Clip
from diminuendo.types import Floats, Ints, Objective

TOGETHER = 1 << 16
"""People whose values are worked out together, where their rows do not say them."""


class Arrived(NamedTuple):
    """Several people of one table and one batch, who are to be kept."""

    family: Family
    table: Table
    rows: range | Ints
    """Which rows of the table they are."""
    batch: int
    kinds: Ints
    """The type of each of them."""
    missing: NDArray[np.bool_]
    """Items that were not there for them."""
    again: Callable[[], People] | None = None
    """Reads the people of the table once more, where they need not be held."""

    def __repr__(self) -> str:
        return "<Arrived>"


class Kept:
    """Everybody who is kept here, in the order in which they came."""

    __getstate__ = refuse_copies

    def __init__(
        self, n_items: int, clip: Clip, entries: Entries, *, parts: int = 1, threads: int = 1
    ) -> None:
        self._n_items, self._clip, self._parts = n_items, clip, parts
        self.entries, self.people = entries, StoredObjectives(n_items)
        self._seen: Table = None  # the last table that was looked at
        self._threads = threads

    def __repr__(self) -> str:
        return f"<Kept, {self._n_items} items>"

    def __len__(self) -> int:
        """How many: as private as whether somebody answered."""
        return len(self.people)

    def keep(self, person: Objective, items: Ints, worth: Floats, batch: int, kind: int = 0) -> None:
        """One person, and what items are worth to her by themselves, in rising order."""
        self.entries.add(items, worth, batch, kind)
        self.people.add(person, batch)
        self._tidy()

    def keep_rows(self, came: Arrived) -> None:
        """Several people of one table and one batch."""
        family, table, rows, batch, kinds, missing, _ = came
        passing = Segment(family, table, rows)
        plain = None if len(rows) < stored_objectives.FEWEST else self._plain(passing, missing)
        if plain is not None:
            self.entries.add_chunk(plain, batch, kinds)
        else:
            for low in range(0, len(rows), TOGETHER):
                worth = singles(passing.part(low, low + TOGETHER), self._n_items)
                worth.data[missing[worth.indices]] = 0.0
                own = csr_rows(worth, self._n_items)
                self.entries.add_rows(*own, batch, kinds[low : low + TOGETHER])
        self.people.add_rows(family, table, rows, batch)
        self._tidy()

    def _tidy(self) -> None:
        """Right after people were gathered into a table of ours, what it says is kept once."""
        newest = self.people.newest
        if newest is not None and newest.table is not self._seen:
            self._seen = newest.table
            segments = self.people.frozen()
            self._keep_once(segments, np.cumsum([len(segment) for segment in segments], dtype=np.int64))

    def _plain(self, people: Segment, missing: NDArray[np.bool_] | None = None) -> Chunk | None:
        """Where people say of items by themselves what their rows say: these."""
        found = as_in_their_rows(people, self._n_items)
        if found is None or not isinstance(people.rows, range):
            return None
        chunk = Chunk(found.indptr, found.indices, found.data, people.rows.start, people.rows.stop)
        if missing is not None and missing.any() and missing[found.indices[chunk.entries]].any():
            return None
        return chunk if self.entries.takes(chunk) else None

    def mark(self, rounds: Sequence[int] | Ints) -> None:
        """Those who were kept last came in these rounds."""
        self.people.mark(rounds)

    def erase(self, rounds: Ints) -> None:
        """Drop everybody who came in these rounds."""
        stays = self.people.erase(rounds)
        if not stays.all():
            self.entries.keep_only(stays)

    def forget(self, before: int) -> None:
        """Drop everybody of batches before that one."""
        self.entries.put_together()
        self.entries.keep_only(self.entries.batches.array >= before)
        self.people.forget(before)

    def begin(self, weights: Ints, factors: Floats) -> AskedPeople:
        """The people of a release as they are now, with the weights of their batches; `factors`: of items."""
        parts = self.frozen(weights, factors, self._parts)
        return parts[0] if len(parts) == 1 else PartedPeople(parts, self._threads)

    def frozen(self, weights: Ints, factors: Floats, parts: int = 1) -> list[FrozenPeople]:
        """Everybody as they are now, in `parts` of about the same size."""
        segments = self.people.frozen()
        ends = np.cumsum([len(segment) for segment in segments], dtype=np.int64)
        self._keep_once(segments, ends)
        total = int(ends[-1]) if len(ends) else 0
        if total != len(self.entries):  # compiled code trusts that they fit each other
            raise InvalidInput(f"There are entries of {len(self.entries)} people, and {total} people.")
        bounds = [total * number // parts for number in range(parts + 1)]
        chunks = self.entries.cut(sorted({*ends.tolist(), *bounds[1:]}))
        groups: list[list[Group]] = [[] for _ in range(parts)]
        rooms = [Room(self._n_items) for _ in range(parts)]
        first = segment = part = 0
        for chunk, answers in zip(chunks, self.entries.answers(weights, chunks), strict=True):
            while first >= ends[segment]:
                segment += 1
            while first >= bounds[part + 1]:
                part += 1
            begins = int(ends[segment]) - len(segments[segment])
            asked = segments[segment].part(first - begins, first - begins + chunk.people)
            kind = TableWalk if asked.function is None else FunctionWalk
            walk: Walk = kind(rooms[part], asked, answers.starts, answers.items)
            groups[part].append(Group(answers, walk))
            first += chunk.people
        return [FrozenPeople(each, self._clip, factors) for each in groups]

    def _keep_once(self, segments: Sequence[Segment], ends: Ints) -> None:
        """Where people who came alone lie in a table of ours that says what their entries say, these are dropped."""
        chunks, first, found = self.entries.cut(ends.tolist()), 0, list[Chunk]()
        for segment in segments:
            mine, people = [], 0
            while people < len(segment):
                mine.append(chunks[first])
                people += chunks[first].people
                first += 1
            told = mine
            if segment.gathered and not self._is_kept_once(segment, mine):
                plain = self._plain(segment)
                if plain is not None and _same(mine, plain):
                    told = [plain]
            found += told
        self.entries.chunks = _joined(found)

    def _is_kept_once(self, people: Segment, chunks: Sequence[Chunk]) -> bool:
        family = people.family
        return family is not None and all(
            chunk.items is family.rows(people.table, self._n_items)[0].indices for chunk in chunks
        )

    # What a snapshot holds.

    def written(self) -> tuple[list[NDArray[Any]], dict[str, NDArray[Any]]]:
        """Both, of those who can be written down: Python functions cannot."""
        which, rows = self.people.written()
        return self.entries.arrays(which), rows

    def read(self, entries: Sequence[NDArray[Any]], rows: dict[str, NDArray[Any]]) -> None:
        """Keep everybody again; refuse what is not in step."""
        self.entries.fill(entries)
        self.people.read(rows)
        if len(self.people) != len(self.entries):
            raise InvalidInput("The snapshot holds other people than it says; it was altered.")


def _same(chunks: Sequence[Chunk], whole: Chunk) -> bool:
    """Whether chunks say, one after the other, what the whole says."""
    first = 0
    for chunk in chunks:
        if not chunk.same_as(whole.part(first, first + chunk.people)):
            return False
        first += chunk.people
    return first == whole.people


def _joined(chunks: Sequence[Chunk]) -> list[Chunk]:
    """The same, with chunks that lie side by side as one."""
    found: list[Chunk] = []
    for chunk in chunks:
        if found and found[-1].goes_on_in(chunk):
            found[-1] = found[-1]._replace(high=chunk.high)
        else:
            found.append(chunk)
    return found
