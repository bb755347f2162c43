"""What items are worth to people by themselves, one person after the other, each with her batch and her type.

People lie in chunks. A chunk is some rows of three arrays that may belong to others, such as the table in which people
came: then nothing is kept twice. Who comes alone waits until enough of them wait to be a chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import refuse_copies
from diminuendo.sums.chains.people.answers import Answers
from diminuendo.sums.chains.people.narrow import Numbers
from diminuendo.sums.clip import cut_all
from diminuendo.types import Floats, Ints

FEWEST, SHARE = 256, 32
"""Who comes alone waits until at least 256 wait, and at least one for every 32 who are stored."""


class Chunk(NamedTuple):
    """The people from `low` to `high` - 1 of three arrays, which are read-only."""

    starts: Ints
    items: NDArray[Any]
    values: Floats
    low: int
    high: int

    def __repr__(self) -> str:
        return "<Chunk>"

    @property
    def people(self) -> int:
        """How many."""
        return self.high - self.low

    @property
    def own(self) -> Ints:
        """Where the entries of each of them begin, and at last where they end."""
        return self.starts[self.low : self.high + 1]

    @property
    def entries(self) -> slice:
        """Where their entries are."""
        return slice(int(self.starts[self.low]), int(self.starts[self.high]))

    def part(self, first: int, last: int) -> Chunk:
        """Some of them, who lie side by side."""
        return self._replace(low=self.low + first, high=self.low + last)

    def goes_on_in(self, other: Chunk) -> bool:
        """Whether the other one's people come next in the same arrays."""
        same = self.starts is other.starts and self.items is other.items and self.values is other.values
        return same and self.high == other.low

    def only(self, stays: NDArray[np.bool_]) -> Chunk:
        """Some of them, in arrays of their own."""
        lengths = np.diff(self.own)
        entries = np.repeat(stays, lengths)
        return chunk_of(
            np.concatenate([[0], np.cumsum(lengths[stays])]),
            self.items[self.entries][entries],
            self.values[self.entries][entries],
        )

    def same_as(self, other: Chunk) -> bool:
        """Whether both say the same, to the last bit."""
        return bool(
            self.people == other.people
            and (self.own - self.own[0] == other.own - other.own[0]).all()
            and (self.items[self.entries] == other.items[other.entries]).all()
            and (self.values[self.entries] == other.values[other.entries]).all()
        )


def chunk_of(starts: Ints, items: NDArray[Any], values: Floats) -> Chunk:
    """All of these rows, whose arrays nobody else changes."""
    for array in (starts, items, values):
        array.flags.writeable = False
    return Chunk(starts, items, values, 0, len(starts) - 1)


class Entries:
    """People in the order in which they came. Chunks are replaced, never changed: who holds some has them for good."""

    __getstate__ = refuse_copies

    def __init__(self, n_items: int, n_types: int, ceiling: float) -> None:
        self._kind: Any = np.int32 if n_items <= np.iinfo(np.int32).max else np.int64
        self.n_types, self._by_type, self._ceiling = n_types, n_types > 1, ceiling
        self.chunks: list[Chunk] = []
        self.batches, self._types = Numbers(), Numbers()
        self._waiting: list[tuple[int, int, Ints, Floats]] = []

    def __repr__(self) -> str:
        return f"<Entries, {len(self.chunks)} chunks>"

    def __len__(self) -> int:
        """How many are there: as private as whether somebody answered."""
        return len(self.batches) + len(self._waiting)

    @property
    def types(self) -> NDArray[Any]:
        """The type of each person."""
        return self._types.array if self._by_type else np.zeros(len(self.batches), dtype=np.int8)

    def add(self, items: Ints, values: Floats, batch: int, kind: int = 0) -> None:
        """One person."""
        self._waiting.append((batch, kind, items, values))
        self._gather()

    def add_rows(self, starts: Ints, items: Ints, values: Floats, batch: int, kinds: Ints) -> None:
        """Several people of one batch; what is theirs is copied. A few are as those who come alone."""
        people = len(starts) - 1
        if people < FEWEST:
            ends = starts.tolist()
            self._waiting += [
                (batch, kind, items[low:high], values[low:high])
                for kind, low, high in zip(kinds.tolist(), ends, ends[1:], strict=False)
            ]
            self._gather()
            return
        self.put_together()
        low, high = int(starts[0]), int(starts[-1])
        self._append(self._own(starts - low, items[low:high], values[low:high]), batch, kinds)

    def _own(self, starts: Ints, items: Ints, values: Floats) -> Chunk:
        whole = np.array(starts, dtype=np.int64), np.array(items, dtype=self._kind)
        return chunk_of(*whole, cut_all(values, self._ceiling))

    def takes(self, chunk: Chunk) -> bool:
        """Whether these people may stay where they are: their arrays are as ours, and no value must be cut."""
        values = chunk.values[chunk.entries]
        kinds = chunk.starts.dtype == np.int64 and chunk.items.dtype == self._kind
        fixed = not any(array.flags.writeable for array in chunk[:3])
        return bool(
            kinds and fixed and (not len(values) or (values.min() >= 0 and values.max() <= self._ceiling))
        )

    def add_chunk(self, chunk: Chunk, batch: int, kinds: Ints) -> None:
        """Several people of one batch, who lie where they are; each value is from 0 to the ceiling."""
        self.put_together()
        self._append(chunk, batch, kinds)

    def _append(self, chunk: Chunk, batch: int, kinds: Ints) -> None:
        last = self.chunks[-1] if self.chunks else None
        if last is not None and last.goes_on_in(chunk):
            self.chunks = [*self.chunks[:-1], last._replace(high=chunk.high)]
        else:
            self.chunks = [*self.chunks, chunk]
        self.batches.repeat(batch, chunk.people)
        if self._by_type:
            self._types.extend(kinds)

    def _gather(self) -> None:
        if len(self._waiting) >= max(FEWEST, len(self) // SHARE):
            self.put_together()

    def put_together(self) -> None:
        """Let those who wait be a chunk."""
        if self._waiting:
            batches, types, places, values = zip(*self._waiting, strict=True)
            starts = np.concatenate([[0], np.cumsum([len(row) for row in places])])
            chunk = self._own(starts, np.concatenate(places), np.concatenate(values))
            self._waiting, self.chunks = [], [*self.chunks, chunk]
            self.batches.extend(np.array(batches))
            if self._by_type:
                self._types.extend(np.array(types))

    def keep_only(self, stays: NDArray[np.bool_]) -> None:
        """Drop the others. A chunk of whom all stay is left as it is."""
        self.put_together()
        found, first = [], 0
        for chunk in self.chunks:
            here = stays[first : first + chunk.people]
            first += chunk.people
            if here.all():
                found.append(chunk)
            elif here.any():
                found.append(chunk.only(here))
        batches, types = (
            Numbers(self.batches.array[stays]),
            Numbers(self._types.array[stays] if self._by_type else ()),
        )
        self.chunks, self.batches, self._types = found, batches, types

    def cut(self, ends: Sequence[int]) -> list[Chunk]:
        """Everybody, in chunks none of which goes beyond any of these numbers of people; all are in before the last."""
        self.put_together()
        found, left, first = [], list(self.chunks), 0
        for end in ends:
            while first < end:
                chunk = left.pop(0)
                many = min(chunk.people, end - first)
                found.append(chunk.part(0, many))
                first += many
                if many < chunk.people:
                    left.insert(0, chunk.part(many, chunk.people))
        return found

    def answers(self, weights: Ints, chunks: Sequence[Chunk] | None = None) -> list[Answers]:
        """Everybody with the weight of her batch; people of batches that have none are not asked."""
        self.put_together()
        padded = np.zeros(max(len(weights), 1 + int(self.batches.array.max(initial=0))), dtype=np.int32)
        padded[: len(weights)] = weights
        of_each, types = padded[self.batches.array], self.types.astype(np.int32)
        found, first = [], 0
        for chunk in self.chunks if chunks is None else chunks:
            here = slice(first, first + chunk.people)
            found.append(Answers(chunk.own, chunk.items, chunk.values, of_each[here], types[here]))
            first += chunk.people
        return found

    def arrays(self, stays: NDArray[np.bool_] | None = None) -> list[NDArray[Any]]:
        """Batches, types, where entries begin, items and values, of some or all: as snapshots hold them."""
        self.put_together()
        none = np.empty(0, dtype=np.int64)
        chunks = self.chunks
        lengths = np.concatenate([none, *(np.diff(chunk.own) for chunk in chunks)])
        items = np.concatenate([none, *(chunk.items[chunk.entries] for chunk in chunks)])
        values = np.concatenate([none * 0.0, *(chunk.values[chunk.entries] for chunk in chunks)])
        who = np.ones(len(lengths), dtype=np.bool_) if stays is None else stays
        entries = np.repeat(who, lengths)
        starts = np.concatenate([[0], np.cumsum(lengths[who])])
        per_person = self.batches.array[who].astype(np.int64), self.types[who].astype(np.int64)
        return [*per_person, starts, items[entries].astype(np.int64), values[entries]]

    def fill(self, arrays: Sequence[NDArray[Any]]) -> None:
        """These people instead: what `arrays` gave, and whoever read it has checked."""
        batches, types, starts, items, values = arrays
        chunk = chunk_of(starts.astype(np.int64), items.astype(self._kind), values.astype(np.float64))
        self._waiting, self.chunks = [], [chunk] if chunk.people else []
        self.batches, self._types = Numbers(batches), Numbers(types if self._by_type else ())


def entries_together(several: Sequence[Sequence[NDArray[Any]]]) -> list[NDArray[Any]]:
    """What `Entries.arrays` gives of several, as one gives it of all their people, one after the other."""
    batches, types, starts, items, values = zip(*several, strict=True)
    ends = np.concatenate([np.diff(part) for part in starts])
    whole = [np.concatenate(part) for part in (batches, types, items, values)]
    return [*whole[:2], np.concatenate([[0], np.cumsum(ends)]), *whole[2:]]


def cut_entries(whole: Sequence[NDArray[Any]], ends: Sequence[int]) -> list[list[NDArray[Any]]]:
    """The same people in parts, which end before these numbers; whoever comes after the last number is a part, too."""
    batches, types, starts, items, values = whole
    found = []
    for low, high in zip([0, *ends], [*ends, len(starts) - 1], strict=True):
        own = starts[low : high + 1]
        entries = slice(int(own[0]), int(own[-1]))
        found.append([batches[low:high], types[low:high], own - own[0], items[entries], values[entries]])
    return found
