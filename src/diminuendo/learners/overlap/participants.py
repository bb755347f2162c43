"""The users of one release, over blocks: each query is a pure function of a block and public facts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from diminuendo.learners.base.engines import Engine, added_up
from diminuendo.learners.base.users import Block, FunctionUser
from diminuendo.streams.moved import FunctionWalk, TableWalk
from diminuendo.streams.walks import Room, singletons
from diminuendo.sums.batch import csr_rows
from diminuendo.sums.clip import Clip, cut_all
from diminuendo.sums.greedy_queries.participants import Answers, Prefix, PrefixWalk
from diminuendo.types import Floats, Ints


class Terms(NamedTuple):
    """Public facts of one release."""

    weights: Ints
    """Of batches; those that come later have none."""
    factors: Floats
    """Of items."""
    first_batch: Ints
    """Of items: the batch since which each is there. Users of earlier batches say nothing of it."""
    clip: Clip


_ROOMS: WeakValueDictionary[int, Room] = WeakValueDictionary()


def _room(n_items: int) -> Room:
    """One for all walks of this process, as long as there are any."""
    return _ROOMS.setdefault(n_items, Room(n_items))


def walk_of(block: Block, terms: Terms) -> PrefixWalk:
    """The users of a block, before the first item."""
    users = answers_of(block, terms)
    begin = partial(TableWalk, _room(block.n_items), block.segment, users.starts, users.items)
    return PrefixWalk(users, begin, terms.clip, terms.factors)


def answers_of(block: Block, terms: Terms) -> Answers:
    """Singleton values of the users of a block, within the ceiling, of items that were there for them."""
    ceiling, rows = terms.clip.ceiling, block.singletons
    if rows is not None:
        starts, items, values = rows.indptr[block.first : block.end + 1], rows.indices, rows.data
    else:
        starts, items, values = csr_rows(singletons(block.segment, block.n_items), block.n_items)
    entries = slice(int(starts[0]), int(starts[-1]))
    absent = terms.first_batch > int(block.spec.batches.min(initial=0))
    if rows is None or absent.any() or (values[entries] > ceiling).any():
        items, lengths = items[entries].astype(np.int32), np.diff(starts)
        values = cut_all(values[entries], ceiling)
        values[np.repeat(block.spec.batches, lengths) < terms.first_batch[items]] = 0.0
        starts = starts - starts[0]
        for array in (starts, items, values):
            array.flags.writeable = False  # as those of tables are: kernels are compiled once
    weights = _padded(terms.weights, block.spec.batches)
    return Answers(starts, items, values, weights, block.spec.types.astype(np.int32))


def _padded(weights: Ints, batches: NDArray[Any]) -> NDArray[Any]:
    """The weight of each user's batch; 0 for batches that have none yet."""
    padded = np.zeros(max(len(weights), 1 + int(batches.max(initial=0))), dtype=np.int32)
    padded[: len(weights)] = weights
    result: NDArray[Any] = padded[batches]
    return result


def walk_of_function(user: FunctionUser, terms: Terms) -> PrefixWalk:
    """A user who is a Python function, before the first item."""
    batch = np.array([user.batch])
    starts, items = np.array([0, len(user.items)]), user.items.astype(np.int32)
    values = np.where(terms.first_batch[items] <= user.batch, cut_all(user.values, terms.clip.ceiling), 0.0)
    for array in (starts, items, values):
        array.flags.writeable = False
    users = Answers(
        starts, items, values, _padded(terms.weights, batch), np.array([user.type], dtype=np.int32)
    )
    room = _room(len(terms.factors))
    begin = partial(FunctionWalk, room, user.segment, starts, items, dict[tuple[int, ...], Floats]())
    return PrefixWalk(users, begin, terms.clip, terms.factors)


class StoredParticipants:
    """Users as they were when a release began: blocks are queried by an engine, Python functions here."""

    def __init__(
        self, blocks: Sequence[Block], functions: Sequence[FunctionUser], terms: Terms, engine: Engine
    ) -> None:
        self._n_items = len(terms.factors)
        self._blocks = engine.over(blocks, partial(walk_of, terms=terms))
        self._functions = [walk_of_function(user, terms) for user in functions]

    def __repr__(self) -> str:
        return f"<StoredParticipants, {self._n_items} items>"

    def _total(self, query: str, shape: tuple[int, ...], *given: Any) -> Ints:
        blocks: Ints = self._blocks.total(query, shape, *given)
        return blocks + added_up(self._functions, query, shape, given)

    def sums(self, prefix: Prefix, whose: Ints, many: int) -> Ints:
        """(many, items): what is left after a chain."""
        return self._total("add_left", (many, self._n_items), prefix, whose)

    def losses(self, prefix: Prefix, joining: Ints, questions: Ints, many: int) -> Ints:
        """(many, items): what is lost as one more item joins the chain of each type."""
        return self._total("add_lost", (many, self._n_items), prefix, joining, questions)

    def swap(self, slate: Ints) -> Ints:
        """(1 + slots, items): what is said around a slate."""
        return self._total("add_swap", (1 + len(slate), self._n_items), slate)

    def counts(self, of_type: Ints, size: int, unit: int) -> Ints:
        """How often each value is there."""
        return self._total("add_counts", (size,), of_type, unit)
