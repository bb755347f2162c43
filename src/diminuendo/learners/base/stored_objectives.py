"""Stored objectives: people who are kept between releases, each with the batch of her round, to be asked again.

Of a person of a compiled family her row is kept, of a Python function the function. Both are frozen when they come in,
one record per round. Rows of people who come one by one are gathered into a table now and then, so that they take no
more time and room than people of a table. A *walk* (streams/walks.py) asks everybody, in the order in which they came,
what each item would add after a slate that grows. Old batches can be forgotten, and who is not a Python function goes
into snapshots.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from diminuendo._sparse import SparseRows, stacked
from diminuendo.errors import InvalidInput
from diminuendo.objectives.family import Family, Table
from diminuendo.objectives.person import Person
from diminuendo.objectives.records import from_record, same_family, to_record
from diminuendo.streams.walks import ScoreWalk, Segment, one_person
from diminuendo.sums.chains.people.narrow import Numbers
from diminuendo.types import Ints, Objective

FEWEST, SHARE = 256, 32
"""Who comes alone waits until at least 256 wait, and at least one for every 32 who are kept: then they are gathered.

A person is copied a few dozen times, however many come, and those who wait take little room beside the others.
"""

NO_ROUND = -1
"""In place of a round, where it was not said in which one a person came."""


class StoredObjectives:
    """People in the order in which they came, each with her batch."""

    def __init__(self, n_items: int) -> None:
        self.n_items = n_items
        self._batches = Numbers()
        self._rounds = Numbers()  # of the people that came first, NO_ROUND where it was not said
        self._segments: list[Segment] = []
        # All of one family, after those of the segments: rows of a table from one number to before another.
        self._waiting: list[tuple[Family, Table, int, int]] = []
        self._who_wait = 0

    def __repr__(self) -> str:
        return f"<StoredObjectives, {self.n_items} items>"

    def __len__(self) -> int:
        """How many are kept: as private as whether somebody answered."""
        return len(self._batches)

    @property
    def batches(self) -> NDArray[Any]:
        """The batch of each of them."""
        return self._batches.array

    @property
    def newest(self) -> Segment | None:
        """The last table into which people who came alone were gathered, unless others wait to join them."""
        last = self._segments[-1] if self._segments and not self._waiting else None
        return last if last is not None and last.gathered else None

    @property
    def segments(self) -> list[Segment]:
        """Everybody, in the order in which they came."""
        self._gather()
        return self._segments

    def add(self, person: Objective, batch: int = 0) -> None:
        """Keep one more person."""
        if type(person) is Person:  # foreign code may say that it is one
            self._wait(person.family, person.table, person.index, person.index + 1)
        else:
            self.segments.append(one_person(person))
        self._batches.repeat(batch, 1)

    def _wait(self, family: Family, table: Table, first: int, end: int) -> None:
        if self._waiting and not same_family(self._waiting[0][0], family):
            self._gather()
        self._waiting.append((family, table, first, end))
        self._who_wait += end - first
        if self._who_wait >= max(FEWEST, len(self) // SHARE):
            self._gather()

    def add_rows(self, family: Family, table: Table, rows: Sequence[int] | Ints, batch: int = 0) -> None:
        """Keep several people of one table and one batch. A few who are the whole table are as those who come alone."""
        if 0 < len(rows) < FEWEST and len(rows) == family.rows(table, self.n_items)[0].shape[0]:
            self._wait(family, table, 0, len(rows))
        elif len(rows):
            segments = self.segments
            last = segments[-1] if segments else None
            if last is not None and last.table is table and table is not None:
                segments[-1] = replace(last, rows=_after(last.rows, rows))
            else:
                segments.append(Segment(family, table, _after(range(0), rows)))
        else:
            return
        self._batches.repeat(batch, len(rows))

    def mark(self, rounds: Sequence[int] | Ints) -> None:
        """Those who were kept last came in these rounds, by which they can be erased."""
        missing = len(self) - len(rounds) - len(self._rounds)
        if missing > 0:
            self._rounds.repeat(NO_ROUND, missing)
        self._rounds.extend(np.asarray(rounds, dtype=np.int64))

    def _rounds_of_all(self) -> Ints:
        self.mark([])
        return self._rounds.array.astype(np.int64)

    def erase(self, rounds: Ints) -> NDArray[np.bool_]:
        """Drop everybody who came in these rounds; who stays, of those who were there."""
        stays: NDArray[np.bool_] = ~np.isin(self._rounds_of_all(), rounds)
        if not stays.all():
            self._keep(stays)
        return stays

    def forget(self, before: int) -> None:
        """Drop everybody of batches before that one."""
        self._keep(self.batches >= before)

    def _keep(self, stays: NDArray[np.bool_]) -> None:
        """These people alone; rows of the others are gone from tables of ours, not from those that people came in."""
        left = self._segments_of(stays)
        segments = [
            self._gathered(part.family, part.table, [self._rows(part.family, part)])
            if part.gathered and part.family is not None
            else part
            for part in left
        ]
        rounds = self._rounds_of_all()[stays] if len(self._rounds) else ()
        # In one go: they stay in step, whatever fails.
        self._segments, self._batches, self._rounds = segments, Numbers(self.batches[stays]), Numbers(rounds)

    def _gather(self) -> None:
        """Let those who wait join the people of their family who came one by one right before them."""
        if not self._waiting:
            return
        family, last = self._waiting[0][0], self._segments[-1] if self._segments else None
        parts = [
            tuple(rows.between(first, end) for rows in each.rows(table, self.n_items))
            for each, table, first, end in self._waiting
        ]
        if (
            last is not None
            and last.gathered
            and last.family is not None
            and same_family(last.family, family)
        ):
            joined = self._gathered(family, last.table, [self._rows(family, last), *parts])
            segments = [*self._segments[:-1], joined]
        else:
            segments = [*self._segments, self._gathered(family, self._waiting[0][1], parts)]
        # In one go: nobody is there twice, whatever fails.
        self._segments, self._waiting, self._who_wait = segments, [], 0

    def _gathered(self, family: Family, table: Table, parts: list[tuple[SparseRows, ...]]) -> Segment:
        """These people, one after the other, in a table of their own that is like `table`."""
        matrices = [stacked(rows) for rows in zip(*parts, strict=True)]
        rows = range(matrices[0].shape[0])
        return Segment(family, family.with_rows(table, matrices), rows, gathered=True)

    def _rows(self, family: Family, people: Segment) -> tuple[SparseRows, ...]:
        """What people of a compiled family said."""
        found = family.rows(people.table, self.n_items)
        if people.gathered and len(people) == found[0].shape[0]:
            return found
        return tuple(part.only(np.asarray(people.rows)) for part in found)

    def _segments_of(self, some: NDArray[np.bool_]) -> list[Segment]:
        """Those people alone, in the order in which they came."""
        first, found = 0, []
        for segment in self.segments:
            here = some[first : first + len(segment)]
            first += len(segment)
            if segment.function is not None:
                found += [segment] if here[0] else []
            elif here.any():
                rows = segment.rows if here.all() else np.asarray(segment.rows)[here]
                found.append(replace(segment, rows=_after(range(0), rows)))
        return found

    def frozen(self) -> list[Segment]:
        """Everybody who is kept now, whoever comes later."""
        return list(self.segments)  # each of them is replaced, never changed

    def score_walk(self, batch: int) -> ScoreWalk:
        """Everybody of one batch along a growing slate, all together."""
        return ScoreWalk(self.n_items, self._segments_of(self.batches == batch))

    def written(self) -> tuple[NDArray[np.bool_], dict[str, NDArray[Any]]]:
        """Who can be written down, and the arrays that hold them: families as JSON, rows as CSR.

        Python functions cannot be written down, and are left out.
        """
        kept: list[bool] = []
        found: list[
            tuple[dict[str, Any], list[tuple[SparseRows, ...]]]
        ] = []  # of one family, however they came
        for segment in self.segments:
            kept += [segment.family is not None] * len(segment)
            if segment.family is not None:
                record = to_record(segment.family)
                if not (found and found[-1][0] == record):
                    found.append((record, []))
                found[-1][1].append(self._rows(segment.family, segment))
        families, arrays = [record for record, _ in found], {}
        for number, (_, people) in enumerate(found):
            for part, several in enumerate(zip(*people, strict=True)):
                whole = stacked(several)
                for name, dtype in (("indptr", np.int64), ("indices", np.int64), ("data", np.float64)):
                    arrays[f"{number}.{part}.{name}"] = getattr(whole, name).astype(dtype)
        arrays["families"] = np.frombuffer(json.dumps(families).encode(), dtype=np.uint8)
        which = np.array(kept, dtype=np.bool_)
        if len(self._rounds):
            arrays["rounds"] = self._rounds_of_all()[which]
        return which, arrays | {"batches": self.batches[which].astype(np.int64)}

    def read(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Keep everybody who was written down; refuse what could not have been."""
        self._segments, self._waiting, self._batches, self._rounds = [], [], Numbers(), Numbers()
        self._who_wait = 0
        try:
            batches, rounds = arrays.pop("batches"), arrays.pop("rounds", None)
            for number, record in enumerate(json.loads(arrays["families"].tobytes())):
                family = from_record(record)
                matrices = [
                    _matrix(arrays, f"{number}.{part}", width)
                    for part, width in enumerate(family.columns(self.n_items))
                ]
                table = family.table(matrices, self.n_items)  # rows are checked at the family's own door
                self.add_rows(family, table, range(matrices[0].shape[0]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInput(f"The snapshot's people cannot be read: {error}.") from error
        if batches.dtype != np.int64 or batches.shape != (len(self),):
            raise InvalidInput("The snapshot holds other people than it says; it was altered.")
        self._batches = Numbers(batches)
        if rounds is not None:
            if rounds.dtype != np.int64 or rounds.shape != batches.shape or (rounds < NO_ROUND).any():
                raise InvalidInput(
                    "The snapshot holds rounds that could not have been chosen; it was altered."
                )
            self.mark(rounds)


def _after(rows: Sequence[int] | Ints, more: Sequence[int] | Ints) -> Sequence[int] | Ints:
    """These rows of a table and then more of them: a range where all of them lie side by side."""
    if len(more) == 0:
        return rows
    first, last = int(more[0]), int(more[-1])
    beside = isinstance(more, range) or (last - first == len(more) - 1 and bool((np.diff(more) == 1).all()))
    if isinstance(rows, range) and beside and (len(rows) == 0 or rows.stop == first):
        return range(first if len(rows) == 0 else rows.start, last + 1)
    return np.concatenate([np.asarray(rows, dtype=np.int64), np.asarray(more, dtype=np.int64)])


def together(several: Sequence[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """What `written` says of several stores, as one says it of all their people, store after store."""
    families, found, any_rounds = (
        list[Any](),
        dict[str, NDArray[Any]](),
        any("rounds" in one for one in several),
    )
    rounds, batches = [], []
    for one in several:
        first, own = len(families), json.loads(one["families"].tobytes())
        families += own
        for name, array in one.items():
            number, _, rest = name.partition(".")
            if rest:
                found[f"{first + int(number)}.{rest}"] = array
        batches.append(one["batches"])
        rounds.append(one.get("rounds", np.full(len(batches[-1]), NO_ROUND, dtype=np.int64)))
    found["families"] = np.frombuffer(json.dumps(families).encode(), dtype=np.uint8)
    if any_rounds:
        found["rounds"] = np.concatenate(rounds)
    return found | {"batches": np.concatenate(batches)}


def cut_people(arrays: dict[str, NDArray[Any]], ends: Sequence[int]) -> list[dict[str, NDArray[Any]]]:
    """The people of one store, as `written` says them, in parts that end before these numbers, and the rest."""
    per_person = [name for name in ("batches", "rounds") if name in arrays]
    found = []
    for low, high in zip([0, *ends], [*ends, None], strict=True):
        part = {"families": arrays["families"]} | {name: arrays[name][low:high] for name in per_person}
        first = 0  # people of families before
        for number in range(len(json.loads(arrays["families"].tobytes()))):
            many = len(arrays[f"{number}.0.indptr"]) - 1
            begins = min(max(low - first, 0), many)
            last = many if high is None else min(max(high - first, 0), many)
            for name in [name for name in arrays if re.fullmatch(rf"{number}\.\d+\.indptr", name)]:
                starts, matrix = arrays[name][begins : last + 1], name.removesuffix("indptr")
                part[name] = starts - starts[0]
                for each in ("indices", "data"):
                    part[matrix + each] = arrays[matrix + each][int(starts[0]) : int(starts[-1])]
            first += many
        found.append(part)
    return found


def _matrix(arrays: dict[str, NDArray[Any]], name: str, width: int) -> scipy.sparse.csr_array:
    indptr, indices, data = (arrays[f"{name}.{part}"] for part in ("indptr", "indices", "data"))
    return scipy.sparse.csr_array((data, indices, indptr), shape=(len(indptr) - 1, width))
