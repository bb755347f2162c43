"""Many users walked along one growing slate: what items would add for each of them, or for all together.

Users come in segments: rows of one table, walked by compiled code, or single Python functions. `ScoreWalk` adds up
over users, in whole ticks, as private greedy does (docs/maths/private-greedy.md): a user's gains are cut to what is
left of the unit of this user and rounded down. So any function whatever adds at most one unit to a score, and at most
one unit along the whole slate.

A user whose code raises, or returns another shape, counts as without feedback; an error would name one user among
all. A Python function may answer otherwise the next time, so what entered a score is kept until an item is picked
by it. Where that is not known any more, because the pick was made before a crash, functions say nothing in the rest of
the slate; users of compiled families say what they said.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from diminuendo._numba import inline, kernel
from diminuendo._sparse import SparseRows
from diminuendo._validate import as_floats
from diminuendo.errors import InvalidInput
from diminuendo.objectives.family import Family, GainBuffer, Table, add, gains, new_gain_buffer, offset, start
from diminuendo.objectives.user import User
from diminuendo.privacy.process_guard import all_or_nothing, call_untrusted
from diminuendo.randomness.ticks import TICKS, to_ticks
from diminuendo.streams.users import Stream, Users
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Objective, Slate


@dataclass(frozen=True)
class Segment:
    """Users in a row: of one table, or one Python function."""

    family: Family | None
    table: Table
    rows: Sequence[int] | Ints = ()
    """Of the table; a range where they lie side by side."""
    function: Callable[[Slate], Floats] | None = None
    """What items would add for this user after a slate."""

    def __repr__(self) -> str:
        return "<Segment>"

    def __len__(self) -> int:
        return len(self.rows) if self.function is None else 1

    def walkers(self) -> Walkers:
        """Its users before the first item, where they are of a table."""
        return walkers_of(self.table, np.array(self.rows, dtype=np.int64))


def segments_of(stream: Stream) -> list[Segment]:
    """All users of a stream: compiled users in one segment, and each function in a segment of its own."""
    if isinstance(stream, Users):
        stream.check()
        return [Segment(stream.family, stream.table, range(len(stream)))]
    return [asking(partial(stream.__getitem__, user)) for user in range(len(stream))]


def asking(look_up: Callable[[], Objective]) -> Segment:
    """A user of foreign code, which may fail on lookup: it is looked up with each query."""
    return Segment(None, None, function=lambda slate: look_up().gains(slate))


def one_user(user: Objective) -> Segment:
    """One user: a row of a table, or a function."""
    if isinstance(user, User):
        user = user.checked()
        return Segment(user.family, user.table, [user.index])
    return asking(lambda: user)


class Walkers(NamedTuple):
    """Some users of one table, and how far each of them has come; for kernels."""

    table: Table
    rows: Ints
    at: Ints
    """Where each user's prefix begins in `state`."""
    state: Floats

    def __repr__(self) -> str:
        return "<Walkers>"


def walkers_of(table: Table, rows: Ints) -> Walkers:
    """Some users of a table, before the first item."""
    at = np.zeros(len(rows) + 1, dtype=np.int64)
    begin(Walkers(table, rows, at, np.empty(0)))
    walkers = Walkers(table, rows, at, np.empty(at[-1]))
    begin(walkers)
    return walkers


def buffer_for(n_items: int, segments: Sequence[Segment]) -> GainBuffer:
    """One for all of them: users may come one by one, each a segment."""
    leaves = (part.family.leaves for part in segments if part.family is not None)
    return new_gain_buffer(n_items, max(leaves, default=1))


class Room(threading.local):
    """What kernels need while they query one user after the other: as long as the list of items, and made once in each
    thread."""

    def __init__(self, n_items: int) -> None:
        self.n_items = n_items
        self._made: dict[int, tuple[GainBuffer, Floats]] = {}

    def __repr__(self) -> str:
        return f"<Room, {self.n_items} items>"

    def taken(self, users: Segment) -> tuple[GainBuffer, Floats]:
        """A buffer that is large enough for users of this family, and a row of noughts, which stay noughts."""
        leaves = 1 if users.family is None else users.family.leaves
        if leaves not in self._made:
            self._made[leaves] = new_gain_buffer(self.n_items, leaves), np.zeros(self.n_items)
        return self._made[leaves]


TOGETHER = 4096
"""Users whose gains around a slate are looked at together, so that they take little room."""


def gains_around(
    room: Room, segments: Sequence[Segment], starts: Ints, items: NDArray[Any], slate: Sequence[int]
) -> Iterator[tuple[int, Floats]]:
    """What users would gain around a slate: the first of some users, and (1 + slots, entries) of theirs.

    First what each entry would add to the whole slate, then to the slate without the item of each slot. Whom an item
    would not move gains the same without it. Entries as in `starts` and `items`, a slice per user.
    """
    if len(starts) != sum(map(len, segments)) + 1:  # compiled code trusts that they fit each other
        raise InvalidInput(
            f"There are entries of {len(starts) - 1} users, and {sum(map(len, segments))} users."
        )
    shown, first, n_items = np.array(slate, dtype=np.int64), 0, room.n_items
    for part in segments:
        buffer, gained = room.taken(part)
        for low in range(0, len(part), TOGETHER):
            many = min(TOGETHER, len(part) - low)
            here = starts[first : first + many + 1]
            out = np.zeros((1 + len(shown), here[-1] - here[0]))
            if part.function is None:
                walk = walkers_of(part.table, np.array(part.rows[low : low + many], dtype=np.int64))
                before = np.empty(int(np.diff(walk.at).max(initial=0)))
                _around(walk, shown, before, buffer, here, items, gained, out)
            else:
                whole, entries = [item for item in slate if item != EMPTY_SLOT], items[here[0] : here[-1]]
                for place, left_out in enumerate((EMPTY_SLOT, *slate)):
                    others = [item for item in whole if item != left_out]
                    out[place] = said(part.function, others, n_items)[entries]
            yield first, out
            first += many


class ScoreWalk:
    """Users walked along a growing slate: what every item would add for all of them. As they were when it began."""

    def __init__(self, n_items: int, segments: Sequence[Segment]) -> None:
        self.n_items, self.chosen = n_items, list[int]()
        self._buffer = buffer_for(n_items, segments)
        walks = [segment.walkers() for segment in segments if segment.function is None]
        self._tables = [(walk, np.full(len(walk.rows), TICKS, dtype=np.int64)) for walk in walks]
        self._functions = [segment.function for segment in segments if segment.function is not None]
        self._left = np.full(len(self._functions), TICKS, dtype=np.int64)
        self._entered = np.zeros((len(self._functions), n_items), dtype=np.int32)
        self._known = False  # whether `_entered` is what the next pick was made by

    def __repr__(self) -> str:
        return f"<ScoreWalk, {self.n_items} items, {len(self.chosen)} chosen>"

    def scores(self) -> Ints:
        """The sum of what each item adds now, in ticks: secret."""
        total = np.zeros(self.n_items, dtype=np.int64)
        for part in self._tables:
            _score(*part, self._buffer, total)
        for user, function in enumerate(self._functions):
            _enter(said(function, self.chosen, self.n_items), self._left[user], self._entered[user])
        self._known = True
        total += self._entered.sum(axis=0, dtype=np.int64)
        return total

    def join(self, item: int) -> None:
        """The next item of the slate, picked by the last scores; or, without any since the last item, elsewhere."""
        with all_or_nothing([array for walk, left in self._tables for array in (walk.state, left)]):
            for part in self._tables:
                _take(*part, self._buffer, item)
            left = self._left - self._entered[:, item] if self._known else np.zeros_like(self._left)
            self._left, self._known, self.chosen = np.maximum(left, 0), False, [*self.chosen, item]


def said(function: Callable[[Slate], Floats], slate: list[int], n_items: int) -> Floats:
    """One user's gains; zeros if there are none to be had."""
    row = call_untrusted(lambda: as_floats(function(tuple(slate))))
    return row if row is not None and row.shape == (n_items,) else np.zeros(n_items)


def singles(users: Segment, n_items: int) -> SparseRows:
    """What each item is worth by itself to each user of a compiled segment."""
    walk, buffer = users.walkers(), buffer_for(n_items, [users])
    starts = np.zeros(len(users) + 1, dtype=np.int64)
    _singles(walk, buffer, starts, np.empty(0, dtype=np.int64), np.empty(0))
    items, values = np.empty(starts[-1], dtype=np.int64), np.empty(starts[-1])
    _singles(walk, buffer, starts, items, values)
    return SparseRows(starts, items, values, (len(users), n_items))


@kernel
def begin(walk: Walkers) -> None:
    """The empty prefix of all users; with an empty `state`, only where each is to begin."""
    table, rows, at, state = walk
    for i in range(len(rows)):
        at[i + 1] = at[i] + offset(table, rows[i] + 1) - offset(table, rows[i])
        if len(state):
            start(table, rows[i], state, at[i])


@kernel
def _singles(walk: Walkers, buffer: GainBuffer, starts: Ints, items: Ints, values: Floats) -> None:
    """The gains of all users, one after the other; with empty `items`, only where each user's begin."""
    table, rows, at, state = walk
    for i in range(len(rows)):
        count = gains(table, rows[i], state, at[i], buffer, 0)
        starts[i + 1] = starts[i] + count
        for j in range(min(count, len(items))):
            items[starts[i] + j] = buffer.items[j]
            values[starts[i] + j] = buffer.gains[j]


@inline
def write_gains(
    table: Table,
    user: int,
    state: Floats,
    at: int,
    buffer: GainBuffer,
    items: Ints,
    low: int,
    high: int,
    gained: Floats,
    out: Floats,
    begin: int,
) -> None:
    """What one user's entries from `low` to `high` - 1 would add, into `out` from `begin` on. `gained` stays 0."""
    count = gains(table, user, state, at, buffer, 0)
    for j in range(count):
        gained[buffer.items[j]] = buffer.gains[j]
    for entry in range(low, high):
        out[entry - begin] = gained[items[entry]]
    for j in range(count):
        gained[buffer.items[j]] = 0.0


@kernel
def _around(
    walk: Walkers,
    slate: Ints,
    before: Floats,
    buffer: GainBuffer,
    starts: Ints,
    items: Ints,
    gained: Floats,
    out: Floats,
) -> None:
    """What entries would add to a slate, and to the slate without each of its items; `out` begins with the first."""
    table, rows, at, state = walk
    begin = starts[0]
    for i in range(len(rows)):
        low, high, size = starts[i], starts[i + 1], at[i + 1] - at[i]
        for part in range(len(slate) + 1):
            left_out = slate[part - 1] if part else EMPTY_SLOT
            start(table, rows[i], state, at[i])
            if part:
                cares = False
                if left_out != EMPTY_SLOT:
                    for j in range(size):
                        before[j] = state[at[i] + j]
                    add(table, rows[i], state, at[i], left_out)
                    for j in range(size):
                        cares |= before[j] != state[at[i] + j]
                        state[at[i] + j] = before[j]
                if not cares:
                    for entry in range(low - begin, high - begin):
                        out[part, entry] = out[0, entry]
                    continue
            for item in slate:
                if item not in (EMPTY_SLOT, left_out):
                    add(table, rows[i], state, at[i], item)
            write_gains(table, rows[i], state, at[i], buffer, items, low, high, gained, out[part], begin)


@inline
def _ticks(gain: float, left: int) -> int:
    """A gain as whole ticks from 0 to what is left of the user; NaN counts as 0."""
    return min(to_ticks(gain), left)


@kernel
def _score(walk: Walkers, left: Ints, buffer: GainBuffer, total: Ints) -> None:
    table, rows, at, state = walk
    for i in range(len(rows)):
        for j in range(gains(table, rows[i], state, at[i], buffer, 0)):
            total[buffer.items[j]] += _ticks(buffer.gains[j], left[i])


@kernel
def _take(walk: Walkers, left: Ints, buffer: GainBuffer, item: int) -> None:
    """All users take an item: what it added to the score is taken off what is left of each."""
    table, rows, at, state = walk
    for i in range(len(rows)):
        count = gains(table, rows[i], state, at[i], buffer, 0)  # the very numbers that entered its score
        for j in range(count):
            if buffer.items[j] == item:
                left[i] -= _ticks(buffer.gains[j], left[i])
        add(table, rows[i], state, at[i], item)


@kernel
def _enter(row: Floats, left: int, entered: NDArray[np.int32]) -> None:
    for item in range(len(row)):
        entered[item] = _ticks(row[item], left)
