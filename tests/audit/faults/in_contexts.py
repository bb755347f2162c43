"""What can be done wrong where users have contexts; planted into overlap greedy (`PLANTED`).

While one of these learners lives, broken or mended, types part early (variants.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast
from unittest import mock

import numpy as np

from diminuendo.audit.variants import types_part_early
from diminuendo.learners.overlap.contexts.counts import TypeCounts
from diminuendo.randomness import rounded_normal as normal
from diminuendo.streams.contexts import Contexts
from diminuendo.sums.chains.cells import CellRelease, SharedFocus
from diminuendo.sums.chains.release import ChainRelease
from diminuendo.sums.chains.users.participants import Participants
from diminuendo.types import Floats, Ints, Objective


class _Unpaid:
    """What is drawn on this was never charged."""

    name = "unpaid"

    def has(self, part: str) -> bool:
        return False

    def once(self, part: str, draw: Any, secret: Any) -> Ints:
        result: Ints = draw()
        return result


def two_chains(policy: Any, broken: bool) -> None:
    """Users are asked along the chain of their type, and along one for everybody, and only one of them is paid."""
    memory, frame = policy._memory, policy.frame
    begin, freeze, everybody = memory.begin_by_type, memory._asked, list[Participants]()

    def twice(weights: Ints, factors: Floats) -> Any:
        everybody[:] = [freeze(weights, factors)]
        return freeze(weights, factors)

    def both(number: int, first: int, focus: SharedFocus) -> Any:
        asked, cells = begin(number, first, focus)
        if broken:
            release, paid = asked._release, cast(Any, _Unpaid())
            common = ChainRelease(everybody[0], paid, release.sigmas, release.factors, release.n_types)
            common.row(0, frame.secret)
            common.rest(frame.secret)
        return asked, cells

    memory._asked, memory.begin_by_type = twice, both


def exact_counts(policy: Any, broken: bool) -> None:
    """How many users have each value is used as it is, without noise, though contexts are private."""
    if broken:
        known = Contexts({column.name: column.values for column in policy.frame.contexts.columns})
        exact = TypeCounts(known, len(policy.plan.schedule))
        policy._memory._counts = policy._shown._counts = exact


def batch_ends_on_a_value(policy: Any, broken: bool) -> None:
    """A batch is over when somebody of a certain type has come as well."""
    due, record_arrivals, seen = policy.due, policy.record_arrivals, [0]

    def counted(first: int, types: Ints, counts: Any) -> None:
        record_arrivals(first, types, counts)
        seen[0] += int((types == 1).sum())

    policy.record_arrivals = counted
    policy.due = lambda: bool(due() and (not broken or seen[0] > policy._position.made))


def counts_follow_answers(policy: Any, broken: bool) -> None:
    """Whoever wants item 0 is counted as of the first type from then on, whatever was known of her when she came."""
    learn, decisions, schedule = policy.learn, policy.frame.decisions, policy.plan.schedule

    def moved(place: int, answer: Objective) -> None:
        learn(place, answer)
        if broken and answer.value([0]) > 0:
            batch, by_type = schedule.batch_of(decisions.round_at(place)), policy._memory._counts._by_type
            by_type[batch, int(decisions.types[place])] -= 1
            by_type[batch, 1] += 1

    policy.learn = moved


@contextmanager
def only_cells_with_users() -> Iterator[None]:
    """Types part early; and of values that nobody has who answered, nothing is published."""

    def cells(self: CellRelease, column: int, secret: Any) -> Ints | None:
        (shape, of_type), size = self._columns[column], self._n_items
        there = np.flatnonzero(self._users.counts(of_type, shape, 1))
        result = np.zeros((shape, size), dtype=np.int64)
        if np.isinf(self.deviations.cells[column]):
            return None
        total = self._users.sums((), of_type, shape)
        result[there] = normal.rounded_normal(total[there], self.deviations.cells[column], secret)
        return result

    with types_part_early(), mock.patch.object(CellRelease, "cells", cells):
        yield


@contextmanager
def still_in_the_old_cell() -> Iterator[None]:
    """Types part early; and whoever is moved to another cell, as everybody is, stays in the old one too."""

    def cells(self: CellRelease, column: int, secret: Any) -> Ints | None:
        shape, of_type = self._columns[column]
        if np.isinf(self.deviations.cells[column]):
            return None
        other = np.where(of_type < 0, -1, (of_type + 1) % shape)
        total = self._users.sums((), of_type, shape) + self._users.sums((), other, shape)
        return normal.rounded_normal(total, self.deviations.cells[column], secret)

    with types_part_early(), mock.patch.object(CellRelease, "cells", cells):
        yield
