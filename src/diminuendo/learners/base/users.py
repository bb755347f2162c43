"""Users who are stored between releases, in immutable blocks of rows.

A block is a range of rows of one table: of the table in which users came, of which nothing is copied, or of a table of
its own, into which users who came one by one were gathered. Blocks are replaced, never changed, so a release queries
the blocks that were there when it began. Python functions are no rows: they stay in the learner's process, and cannot
be written into a snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from diminuendo._sparse import SparseRows, stacked
from diminuendo.errors import refuse_copies
from diminuendo.objectives.family import Family, Table
from diminuendo.objectives.records import from_record, same_family, to_record
from diminuendo.objectives.user import User
from diminuendo.streams.moved import as_in_their_rows
from diminuendo.streams.walks import ScoreWalk, Segment, one_user
from diminuendo.types import Floats, Ints, Objective

GATHER = 256
"""Users who come one by one wait until there are this many: then they become a block."""
BLOCK = 1 << 16
"""The most users of a block."""
NO_ROUND = -1
"""In place of a round that is not known: such a user cannot be erased."""


class Spec(NamedTuple):
    """Public facts of each user of a block, in as few bits as hold them."""

    batches: NDArray[Any]
    types: NDArray[Any]
    """Context ids; 0 without contexts."""
    rounds: NDArray[Any]

    def some(self, where: Any) -> Spec:
        """Those of some users."""
        return Spec(*(column[where] for column in self))


def spec_of(users: int, batch: int, types: Ints | int = 0, rounds: Ints | int = NO_ROUND) -> Spec:
    """Facts of users of one batch."""
    return Spec(*(_narrow(np.broadcast_to(column, users)) for column in (batch, types, rounds)))


def _narrow(numbers: NDArray[Any]) -> NDArray[Any]:
    low, high = int(numbers.min(initial=0)), int(numbers.max(initial=0))
    return numbers.astype(np.promote_types(np.min_scalar_type(low), np.min_scalar_type(high)))


def _joined(parts: Sequence[Spec]) -> Spec:
    return Spec(*(_narrow(np.concatenate(columns)) for columns in zip(*parts, strict=True)))


@dataclass(frozen=True, eq=False, repr=False)
class Block:
    """Users whose rows are `first` to before `end` of a table."""

    family: Family
    table: Table
    n_items: int
    first: int
    end: int
    spec: Spec
    own: bool = False
    """Whether the table holds no other users, so that erased users must leave it."""

    def __len__(self) -> int:
        return self.end - self.first

    def __repr__(self) -> str:
        return "<Block>"

    @property
    def segment(self) -> Segment:
        """The users for walks."""
        return Segment(self.family, self.table, range(self.first, self.end))

    @property
    def rows(self) -> tuple[SparseRows, ...]:
        """Their rows, without copying."""
        return tuple(
            part.between(self.first, self.end) for part in self.family.rows(self.table, self.n_items)
        )

    @cached_property
    def singles(self) -> SparseRows | None:
        """The table's rows, if they say what items are worth by themselves; None: that must be worked out."""
        return as_in_their_rows(self.segment, self.n_items)

    def only(self, stays: NDArray[np.bool_]) -> Block | None:
        """Some of the users: a smaller range of a table of others, else a table of their own."""
        where = np.flatnonzero(stays)
        if len(where) in (0, len(self)):
            return self if len(where) else None
        spec, low, high = self.spec.some(where), int(where[0]), int(where[-1]) + 1
        if not self.own and high - low == len(where):
            return replace(self, first=self.first + low, end=self.first + high, spec=spec)
        return block_of(self.family, self.table, self.n_items, [part.only(where) for part in self.rows], spec)


def block_of(family: Family, like: Table, n_items: int, rows: Sequence[SparseRows], spec: Spec) -> Block:
    """These rows in a table of their own, whose public parameters are those of the table `like`."""
    return Block(family, family.with_rows(like, rows), n_items, 0, len(spec.batches), spec, own=True)


def _merged(blocks: Sequence[Block]) -> Block:
    """Users of one family in one block, as they came."""
    first, rows = blocks[0], [block.rows for block in blocks]
    parts = [stacked(several) for several in zip(*rows, strict=True)]
    spec = _joined([block.spec for block in blocks])
    return block_of(first.family, first.table, first.n_items, parts, spec)


class FunctionUser(NamedTuple):
    """A user who is a Python function, with what they said of items by themselves when they answered."""

    segment: Segment
    items: Ints
    values: Floats
    batch: int
    type: int
    round: int

    def __repr__(self) -> str:
        return "<FunctionUser>"


NOTHING = np.zeros(0, dtype=np.int64), np.zeros(0)
"""Singleton values that are not asked for when a user answers."""


class UserStore:
    """Users in the order in which they came, and those who are Python functions besides."""

    __getstate__ = refuse_copies

    def __init__(self, n_items: int, n_types: int = 1) -> None:
        self.n_items, self.n_types = n_items, n_types
        self._blocks: list[Block] = []
        self._waiting: list[Block] = []  # of one family, after those of the blocks
        self._functions: list[FunctionUser] = []

    def __repr__(self) -> str:
        return f"<UserStore, {self.n_items} items>"

    def __len__(self) -> int:
        """The number of users: as private as whether a user responded."""
        return sum(map(len, [*self._blocks, *self._waiting])) + len(self._functions)

    @property
    def blocks(self) -> list[Block]:
        """All users who are rows."""
        self._gather()
        return list(self._blocks)

    @property
    def functions(self) -> list[FunctionUser]:
        """All users who are Python functions."""
        return list(self._functions)

    @property
    def batches(self) -> Ints:
        """The batch of each user."""
        known = [block.spec.batches for block in self.blocks]
        return np.concatenate([*known, [user.batch for user in self._functions]]).astype(np.int64)

    def add(
        self,
        user: Objective,
        batch: int = 0,
        kind: int = 0,
        round: int = NO_ROUND,
        said: tuple[Ints, Floats] = NOTHING,
    ) -> None:
        """Store one user of the context id `kind`; `said`: of a Python function, singleton values by rising items."""
        if type(user) is not User:  # foreign code may say that it is one
            one = one_user(user)
            if one.family is None:
                self._functions.append(FunctionUser(one, *said, batch, kind, round))
                return
            user = User(one.family, self.n_items, one.table, int(one.rows[0]))
        spec = Spec(np.array([batch]), np.array([kind]), np.array([round]))
        self._wait(Block(user.family, user.table, self.n_items, user.index, user.index + 1, spec))

    def add_rows(
        self,
        family: Family,
        table: Table,
        rows: range | Sequence[int] | Ints,
        batch: int = 0,
        types: Ints | int = 0,
        rounds: Ints | int = NO_ROUND,
    ) -> None:
        """Store several users of one table and one batch. A few who are the whole table wait as if they came alone."""
        places = np.asarray(rows, dtype=np.int64)
        if not len(places):
            return
        whole, (first, end) = family.rows(table, self.n_items), (int(places[0]), int(places[-1]) + 1)
        spec = spec_of(len(places), batch, types, rounds)
        if end - first == len(places) == whole[0].shape[0] < GATHER:
            self._wait(Block(family, table, self.n_items, first, end, spec))
            return
        self._gather()
        if end - first == len(places) and (isinstance(rows, range) or (np.diff(places) == 1).all()):
            self._cut(Block(family, table, self.n_items, first, end, spec))
        else:
            some = [part.only(places) for part in whole]
            self._cut(block_of(family, table, self.n_items, some, spec))

    def _cut(self, block: Block) -> None:
        """Append users of one table, in blocks that are not too large."""
        for low in range(0, len(block), BLOCK):
            high = min(low + BLOCK, len(block))
            first, end, spec = block.first + low, block.first + high, block.spec.some(slice(low, high))
            self._append(replace(block, first=first, end=end, spec=spec))

    def _append(self, block: Block) -> None:
        """Append a block; small ones are joined, so that each user is copied a few times at most."""
        blocks = list(self._blocks)
        while blocks and len(blocks[-1]) + len(block) <= BLOCK:
            last = blocks[-1]
            if last.table is block.table and last.end == block.first:
                spec = _joined([last.spec, block.spec])
                block = replace(block, first=last.first, spec=spec)
            elif (
                last.own
                and block.own
                and len(last) <= 2 * len(block)
                and same_family(last.family, block.family)
            ):
                block = _merged([last, block])
            else:
                break
            blocks.pop()
        self._blocks = [*blocks, block]

    def _wait(self, users: Block) -> None:
        if self._waiting and not same_family(self._waiting[0].family, users.family):
            self._gather()
        self._waiting.append(users)
        if len(self._waiting) >= GATHER:
            self._gather()

    def _gather(self) -> None:
        """Merge the users who wait into one block."""
        if self._waiting:
            self._append(_merged(self._waiting))
            self._waiting = []

    def erase(self, rounds: Ints) -> None:
        """Drop the users of these rounds."""
        self._keep(
            lambda block: ~np.isin(block.spec.rounds, rounds),
            lambda user: user.round not in set(rounds.tolist()),
        )

    def forget(self, before: int) -> None:
        """Drop the users of batches before that one."""
        self._keep(lambda block: block.spec.batches >= before, lambda user: user.batch >= before)

    def _keep(self, rows: Any, functions: Any) -> None:
        blocks = [part for block in self.blocks if (part := block.only(rows(block))) is not None]
        self._blocks, self._functions = blocks, [user for user in self._functions if functions(user)]

    def score_walk(self, batch: int) -> ScoreWalk:
        """All users of one batch along a growing slate."""
        some = [block.only(block.spec.batches == batch) for block in self.blocks]
        functions = [user.segment for user in self._functions if user.batch == batch]
        return ScoreWalk(self.n_items, [*(block.segment for block in some if block is not None), *functions])

    # What a snapshot holds: rows as CSR, families as JSON. Python functions are left out.

    def written(self) -> dict[str, NDArray[Any]]:
        """The arrays of all users who are rows."""
        result: list[tuple[dict[str, Any], list[tuple[SparseRows, ...]]]] = []
        for block in self.blocks:
            record = to_record(block.family)
            if not (result and result[-1][0] == record):
                result.append((record, []))
            result[-1][1].append(block.rows)
        arrays = {}
        for number, (_, rows) in enumerate(result):
            for part, several in enumerate(zip(*rows, strict=True)):
                whole = stacked(several)
                for name, dtype in (("indptr", np.int64), ("indices", np.int64), ("data", np.float64)):
                    arrays[f"{number}.{part}.{name}"] = getattr(whole, name).astype(dtype)
        spec = _joined([spec_of(0, 0), *(block.spec for block in self._blocks)])
        arrays["families"] = np.frombuffer(
            json.dumps([record for record, _ in result]).encode(), dtype=np.uint8
        )
        if (spec.rounds != NO_ROUND).any():
            arrays["rounds"] = spec.rounds.astype(np.int64)
        if self.n_types > 1:
            arrays["types"] = spec.types.astype(np.int64)
        return arrays | {"batches": spec.batches.astype(np.int64)}

    def read(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Store the users of a snapshot."""
        self._blocks, self._waiting, self._functions = [], [], []
        batches = arrays["batches"]
        types = arrays["types"] if self.n_types > 1 else np.zeros_like(batches)
        spec = Spec(*map(_narrow, (batches, types, arrays.get("rounds", np.full(len(batches), NO_ROUND)))))
        done = 0
        for family, table, users in self._tables(arrays):
            some = spec.some(slice(done, done + users))
            self._cut(Block(family, table, self.n_items, 0, users, some, own=True))
            done += users

    def _tables(self, arrays: dict[str, NDArray[Any]]) -> Iterator[tuple[Family, Table, int]]:
        for number, record in enumerate(json.loads(arrays["families"].tobytes())):
            family = from_record(record)
            matrices = [
                _matrix(arrays, f"{number}.{part}", width)
                for part, width in enumerate(family.columns(self.n_items))
            ]
            yield (
                family,
                family.table(matrices, self.n_items),
                int(matrices[0].shape[0]),
            )  # checked by the family


def _matrix(arrays: dict[str, NDArray[Any]], name: str, width: int) -> scipy.sparse.csr_array:
    indptr, indices, data = (arrays[f"{name}.{part}"] for part in ("indptr", "indices", "data"))
    return scipy.sparse.csr_array((data, indices, indptr), shape=(len(indptr) - 1, width))
