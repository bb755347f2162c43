"""Users along a growing slate, of whom only those are asked whom an item moves, for releases over many users.

What others would gain is what they would have gained before. As in walks.py users are some of one table, or a Python
function; what an item that joins would make of them is kept apart until it has joined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo._numba import kernel
from diminuendo._sparse import SparseRows
from diminuendo.errors import InvalidInput
from diminuendo.objectives.family import GainBuffer, Table, add, gains, start
from diminuendo.objectives.user import largest_state
from diminuendo.streams.walks import (
    TOGETHER,
    Room,
    Segment,
    Walkers,
    buffer_for,
    gains_around,
    said,
    write_gains,
)
from diminuendo.sums.chains.users.answers import Moved
from diminuendo.types import EMPTY_SLOT, Floats, Ints


class TableWalk:
    """Some users of one table along a growing slate, of whom only those are asked whom an item moves.

    Where columns are items and users lie side by side, they are found by looking for the item among the columns: it
    moves no other user. `starts` and `items`: their entries, a slice per user; they may lie in the midst of others.
    """

    def __init__(self, room: Room, users: Segment, starts: Ints, items: NDArray[Any]) -> None:
        if len(starts) != len(users) + 1:  # compiled code trusts that they fit each other
            raise InvalidInput(f"There are entries of {len(starts) - 1} users, and {len(users)} users.")
        if users.family is None:
            raise InvalidInput("These users are of no table.")
        self._room, self._users, self._starts, self._items = room, users, starts, items
        self._family = users.family
        self._walk: Walkers | None = None

    def __repr__(self) -> str:
        return f"<TableWalk, {self._room.n_items} items>"

    def moved_by(self, joining: Ints, types: NDArray[Any]) -> Iterator[Moved]:
        """Yield the users whom the item of their type moves; `joining`: of each type, EMPTY_SLOT for none."""
        if self._walk is None:
            self._walk = self._users.walkers()
        walk, (buffer, gained) = self._walk, self._room.taken(self._users)
        for who in self._may_move(joining, types):
            sizes = walk.at[who + 1] - walk.at[who]
            at = np.concatenate([[0], np.cumsum(sizes)])
            state, before = np.empty(at[-1]), np.empty(int(sizes.max(initial=0)))
            moved = np.zeros(len(who), dtype=np.bool_)
            _try(walk, who, joining[types[who]], before, at, state, moved)
            who, at = who[moved], at[:-1][moved]
            lengths = self._starts[who + 1] - self._starts[who]
            begins = np.concatenate([[0], np.cumsum(lengths)])
            out = np.empty(begins[-1])
            _ask_some(walk, who, at, state, buffer, self._starts, self._items, gained, begins, out)
            yield Moved(who, out, (who, at, state))

    def _may_move(self, joining: Ints, types: NDArray[Any]) -> Iterator[Ints]:
        """Yield all users whom it may move, not too many at a time."""
        first = int(joining[0])
        if first != EMPTY_SLOT and (joining == first).all():
            who = np.flatnonzero(self._have_any([first], 0, len(self._users)))
        else:
            who = np.flatnonzero((joining != EMPTY_SLOT)[types])
        for low in range(0, len(who), TOGETHER):
            yield who[low : low + TOGETHER]

    def join(self, further: Any) -> None:
        """Some have come so far."""
        if self._walk is not None:
            _go_on(self._walk, *further)

    def around(self, slate: Sequence[int]) -> Iterator[tuple[Ints, Floats]]:
        """Yield what users gain around a slate: those who want nothing of it gain the same without any item."""
        rows = np.asarray(self._users.rows)
        for low in range(0, len(rows), TOGETHER):
            cares = self._have_any(slate, low, min(TOGETHER, len(rows) - low))
            for wanted, shown in ((~cares, ()), (cares, slate)):
                who = low + np.flatnonzero(wanted)
                starts, items = _side_by_side(self._starts, self._items, who)
                some = replace(self._users, rows=rows[who])
                for _, result in gains_around(self._room, [some], starts, items, shown):
                    yield who, result

    def _have_any(self, wanted: Sequence[int], low: int, many: int) -> NDArray[np.bool_]:
        """Whether each of `many` users from number `low` on may want one of these items."""
        have, rows = np.ones(many, dtype=np.bool_), self._users.rows
        if isinstance(rows, range) and _columns_are_items(self._users):
            marks = np.zeros(self._room.n_items, dtype=np.bool_)
            marks[[item for item in wanted if item != EMPTY_SLOT]] = True
            (result,) = self._family.rows(self._users.table, self._room.n_items)
            _have(result.indptr, result.indices, marks, rows.start + low, have)
        return have


class FunctionWalk:
    """A user who is a Python function, along a growing slate.

    A function may answer otherwise the next time. So what it said of each slate is recorded (`recorded`), and a release
    that comes to the same slate again takes what was said first: else rows and rest could add up to more than singles.
    """

    def __init__(
        self,
        room: Room,
        user: Segment,
        starts: Ints,
        items: NDArray[Any],
        recorded: dict[tuple[int, ...], Floats],
    ) -> None:
        if len(starts) != 2 or user.function is None:
            raise InvalidInput("A function is one user.")
        self._room, self._user, self._function = room, user, user.function
        self._slate: tuple[int, ...] = ()
        self._starts, self._items, self._recorded = starts, items, recorded

    def __repr__(self) -> str:
        return f"<FunctionWalk, {self._room.n_items} items>"

    def moved_by(self, joining: Ints, types: NDArray[Any]) -> Iterator[Moved]:
        """The function is queried whatever joins."""
        item = int(joining[types[0]])
        if item != EMPTY_SLOT:
            slate = (*self._slate, item)
            if slate not in self._recorded:
                answer = said(self._function, list(slate), self._room.n_items)
                self._recorded[slate] = answer[self._items[self._starts[0] : self._starts[1]]]
            yield Moved(np.zeros(1, dtype=np.int64), self._recorded[slate], slate)

    def join(self, further: Any) -> None:
        """The slate that the function has come to."""
        self._slate = further

    def around(self, slate: Sequence[int]) -> Iterator[tuple[Ints, Floats]]:
        """What items would add around a slate."""
        for _, result in gains_around(self._room, [self._user], self._starts, self._items, slate):
            yield np.zeros(1, dtype=np.int64), result


def _columns_are_items(users: Segment) -> bool:
    """Whether an item that is not among a user's columns adds nothing for this user."""
    family = users.family
    return family is not None and family.leaves == 1 and family.columns_are_items


def _side_by_side(starts: Ints, items: NDArray[Any], who: Ints) -> tuple[Ints, NDArray[Any]]:
    """The entries of some users, one after the other."""
    lengths = starts[who + 1] - starts[who]
    begins = np.concatenate([[0], np.cumsum(lengths)])
    return begins, items[np.arange(begins[-1]) + np.repeat(starts[who] - begins[:-1], lengths)]


def as_in_their_rows(users: Segment, n_items: int) -> SparseRows | None:
    """The rows of their table, where users lie side by side and say just that of items by themselves; else None."""
    family, rows = users.family, users.rows
    if family is None or not isinstance(rows, range) or not _columns_are_items(users):
        return None
    (result,) = family.rows(users.table, n_items)
    state = np.empty(largest_state(users.table, rows.start, rows.stop))
    same = _are_rows(
        users.table,
        rows.start,
        rows.stop,
        state,
        buffer_for(n_items, [users]),
        result.indptr,
        result.indices,
        result.data,
    )
    return result if same else None


@kernel
def _are_rows(
    table: Table,
    low: int,
    high: int,
    state: Floats,
    buffer: GainBuffer,
    starts: Ints,
    columns: NDArray[Any],
    values: Floats,
) -> bool:
    """Whether these users's gains before the first item are these rows, entry by entry."""
    for user in range(low, high):
        start(table, user, state, 0)
        first = starts[user]
        if gains(table, user, state, 0, buffer, 0) != starts[user + 1] - first:
            return False
        for j in range(starts[user + 1] - first):
            if buffer.items[j] != columns[first + j] or buffer.gains[j] != values[first + j]:
                return False
    return True


@kernel
def _have(
    starts: Ints, columns: NDArray[Any], marks: NDArray[np.bool_], low: int, out: NDArray[np.bool_]
) -> None:
    """Which users, from number `low` on, have a marked item among their columns."""
    for number in range(len(out)):
        result = False
        for j in range(starts[low + number], starts[low + number + 1]):
            result |= marks[columns[j]]
        out[number] = result


@kernel
def _try(
    walk: Walkers,
    who: Ints,
    joined: Ints,
    before: Floats,
    at: Ints,
    after: Floats,
    moved: NDArray[np.bool_],
) -> None:
    """How far some would come with one item more, in `after`; `moved`: for whom that is another prefix."""
    table, rows, places, state = walk
    for number in range(len(who)):
        i = who[number]
        first, size = places[i], places[i + 1] - places[i]
        for j in range(size):
            before[j] = state[first + j]
        add(table, rows[i], state, first, joined[number])
        for j in range(size):
            moved[number] |= before[j] != state[first + j]
            after[at[number] + j] = state[first + j]
            state[first + j] = before[j]


@kernel
def _go_on(walk: Walkers, who: Ints, at: Ints, after: Floats) -> None:
    """Some have come as far as `_try` said."""
    places, state = walk.at, walk.state
    for number in range(len(who)):
        first = places[who[number]]
        for j in range(places[who[number] + 1] - first):
            state[first + j] = after[at[number] + j]


@kernel
def _ask_some(
    walk: Walkers,
    who: Ints,
    at: Ints,
    state: Floats,
    buffer: GainBuffer,
    starts: Ints,
    items: NDArray[Any],
    gained: Floats,
    begins: Ints,
    out: Floats,
) -> None:
    """What the entries of some would add from where they would come to, side by side. `gained` stays 0."""
    table, rows = walk.table, walk.rows
    for number in range(len(who)):
        i = who[number]
        low, high = starts[i], starts[i + 1]
        begin = low - begins[number]
        write_gains(table, rows[i], state, at[number], buffer, items, low, high, gained, out, begin)
