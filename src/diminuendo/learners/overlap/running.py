"""Overlap sums: as overlap greedy, but nobody is kept: what people say is added to a few sums and forgotten.

Every person of a batch answers one chain of questions: what each item is worth by itself; what the others lose when the
best item joins; and so on; at last what is left. The chain is the one by which the slate of her batch was picked.
Answers are added to running sums, one for each question, and each release publishes all sums with noise. The next
slate is greedy on what is believed then; weights and noise are those of overlap greedy.

When a new item comes first, nobody was asked what the others lose by it, and the row of that item after another set, if
there is one, has to do (fallback_rows.py). That is what it costs to keep nobody: a new chain is learned item by item,
release by release.

Regret     no bound.
Guarantee  every release is paid for before it is drawn; rounded Gaussian noise (docs/maths/overlap.md, Theorem O2).
Assumes    nothing about people: singles are clipped to length 1, rows by a running minimum. One answer per round.
Memory     with N items and k slots N x (1 + 2k + 4) running sums and N x (1 + k) sums of the open batch, over people,
           without noise. Nobody's own answer after observe(); but the sum over one person so far is hers.
Excludes   timing, and the memory of the process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput
from diminuendo.learners.base.stored_objectives import Keeper, singles
from diminuendo.learners.overlap.fallback_rows import NearbyChain
from diminuendo.learners.overlap.learner import Overlap
from diminuendo.learners.overlap.one_answer import Answer
from diminuendo.learners.overlap.pick import Measured
from diminuendo.learners.overlap.schedule import OverlapPlan
from diminuendo.streams.people import People
from diminuendo.sums.chains.running import SINGLES, ChainSums, Walk
from diminuendo.sums.chains.weights import UNIT, RunningWeights, running_weights
from diminuendo.types import EMPTY_SLOT, Items, Objective


@dataclass(frozen=True)
class SumsPlan(OverlapPlan):
    """The same releases with the same noise per person; but people are added more often, and noise grows."""

    running: RunningWeights = field(repr=False)
    start: float

    @property
    def first(self) -> float:
        """The deviation of noise on singles at the first release, in people of weight 1."""
        return self.start


class OverlapSums(Overlap):
    """Private greedy on running sums."""

    name: ClassVar[str] = "overlap-sums"
    summary: ClassVar[str] = "as overlap-greedy, but keeps sums of what people said, and nobody; private"
    plan: SumsPlan
    _chain: NearbyChain

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        schedule = self.plan.schedule
        self._sums = ChainSums(
            self.n_items,
            self.slots - 1,
            schedule=schedule,
            weights=self.plan.running,
            ledger=self._ledger,
            clip=self.clip,
        )
        if self._prior is not None:  # the first slate is known already, so people can be asked about it
            shown = self._slate[self._slate != EMPTY_SLOT]
            order = shown[np.argsort(-self._chain.gains[shown], kind="stable")]
            self._sums.ask(order[: self.slots - 1].tolist(), batch=0)

    def _made_chain(self) -> NearbyChain:
        return NearbyChain(self._shelf, len(self.plan.schedule))

    def _made_plan(self, rounds: int | None) -> SumsPlan:
        plan = super()._made_plan(rounds)
        running = running_weights(plan.schedule, plan.releases, self.clip)
        sigmas = tuple(
            (one / UNIT * grown, other / UNIT * grown)
            for (one, other), grown in zip(plan.sigmas, running.growth.tolist(), strict=True)
        )
        weights, start = running.matrix(len(plan.schedule)), plan.first if plan.releases else 0.0
        return SumsPlan(plan.schedule, weights, sigmas, plan.drift, plan.nu, running, start)

    # Nobody is kept.

    def _keep(self, answer: Objective, said: Answer, batch: int) -> None:
        passing = Keeper(self.n_items)
        passing.keep(answer)
        self._sums.add(said.worth, _along(passing), batch=batch, indices=said.items)

    def _keep_rows(self, people: People, slates: Items, low: int, high: int, batch: int) -> None:
        passing, rows = Keeper(self.n_items), list(range(low, high))
        passing.keep_rows(people.family, people.table, rows)
        worth = singles(people.family, people.table, rows, self.n_items)
        worth.data[self._shelf.since[worth.indices] > batch] = 0.0
        self._sums.add_rows(worth, _along(passing), batch=batch)

    def _ask(self, number: int, first: int) -> PublishedSums:
        found = self._sums.release(number, self.plan.sigmas[number], self._secret)

        def take_in() -> None:
            with self._guard.all_or_broken():
                for question, published in found.items():
                    if question != SINGLES:
                        self._chain.take_in(question.item, question.before, Measured(*published))

        return PublishedSums(Measured(*found[SINGLES]), take_in, partial(self._sums.ask, batch=number + 1))

    def _forget(self, batch: int) -> None:
        self._sums.forget()

    # What a snapshot holds: sums.

    def _state(self) -> Any:
        return super()._state(), self._sums.arrays

    def _extra(self) -> dict[str, NDArray[Any]]:
        return {"payoffs": np.frombuffer(self._payoffs.snapshot(), dtype=np.uint8)}

    def _take_extra(self, found: dict[str, NDArray[Any]]) -> None:
        if set(found) != {"payoffs"}:
            raise InvalidInput("The snapshot holds other things than this learner keeps; it was altered.")
        self._payoffs.restore(found["payoffs"].tobytes())

    def _restored(self) -> None:
        super()._restored()
        if not self._sums.sound():
            raise InvalidInput("The snapshot holds sums that could not have come about; it was altered.")


def _along(passing: Keeper) -> Walk:
    """How to ask people who are not kept."""
    return lambda starts, items: passing.walk(starts, items).after


class PublishedSums:
    """One release, all of it there at once. The chain that is picked is what people are asked about next."""

    def __init__(
        self, singles: Measured, take_in: Callable[[], None], ask_next: Callable[[list[int]], None]
    ) -> None:
        self._singles, self._ask_next, self._chain = singles, ask_next, list[int]()
        self._to_take_in: list[Callable[[], None]] = [take_in]

    def __repr__(self) -> str:
        return "<PublishedSums>"

    def begin(self) -> None:
        """Rows and rests are taken in, once, before the first item is picked."""
        self._chain.clear()
        while self._to_take_in:
            self._to_take_in.pop()()

    def singles(self) -> Measured:
        """What each item is worth by itself."""
        return self._singles

    def row(self, item: int) -> None:
        """An item was picked. What is known of its row was taken in."""
        self._chain.append(item)
        self._ask_next(self._chain)

    def rest(self) -> None:
        """Was taken in."""
