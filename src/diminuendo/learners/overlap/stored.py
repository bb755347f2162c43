"""Overlap greedy: keeps people, asks them again at every release, and follows greedy on what they said, with noise.

At each of a few dozen releases, at times fixed beforehand, all people who are kept answer one chain of questions. First
what each item is worth by itself; noise is added, and the best item is picked. Then what every other item loses when
that one is shown, with noise; and so on, and at last what is left. Rows and rest of one person come out of her
singles, so the whole chain costs no more than twice the first question, whatever k is. People of earlier releases are
asked again with weights whose squares add up, and averages over releases then have noise that falls like 1 / (people so
far). The slate is shown to everybody until the next release; in the first batch slates are random.

One number per batch besides, the payoff, tells whether tastes have changed: then memory begins anew.

Regret     proved for people of one taste, and for greedy on the last release alone: of order k^(3/2) sigma log T
           (docs/maths/overlap.md, Theorem O3). No bound against an adversary.
Guarantee  every release is paid for before it is drawn; rounded Gaussian noise (docs/maths/overlap.md).
Assumes    nothing about people: singles are clipped to length 1, rows by a running minimum. One answer per round.
Memory     people themselves, as rows or functions, are kept as long as the learner lives or until tastes change.
Excludes   timing, and the memory of the process.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput
from diminuendo.learners.base.stored_objectives import Walk, singles
from diminuendo.learners.base.stored_people import KeptPeople
from diminuendo.learners.overlap.learner import Overlap
from diminuendo.learners.overlap.one_answer import Answer
from diminuendo.learners.overlap.pick import Measured
from diminuendo.randomness.words import SecretRandomness
from diminuendo.streams.people import People
from diminuendo.sums.chains.release import Chain, OtherChain
from diminuendo.sums.chains.stored import StoredPeople
from diminuendo.types import Floats, Items, Objective


class OverlapGreedy(Overlap):
    """Private greedy on people who are kept."""

    name: ClassVar[str] = "overlap-greedy"
    summary: ClassVar[str] = (
        "keeps people, asks them again with noise a few dozen times; full information; private"
    )

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._people = StoredPeople(
            self.n_items, schedule=self.plan.schedule, ledger=self._ledger, clip=self.clip
        )
        self._kept = KeptPeople(self.n_items)

    def _keep(self, answer: Objective, said: Answer, batch: int) -> None:
        self._people.add(said.worth, said.items, batch=batch)
        self._kept.add(answer, batch)

    def _keep_rows(self, people: People, slates: Items, low: int, high: int, batch: int) -> None:
        rows = list(range(low, high))
        worth = singles(people.family, people.table, rows, self.n_items)
        worth.data[self._shelf.since[worth.indices] > batch] = 0.0
        self._people.add_rows(worth, batch=batch)
        self._kept.add_rows(people.family, people.table, rows, batch)

    def _ask(self, number: int, first: int) -> StoredQuestions:
        weights = self.plan.weights[number, : number + 1].copy()
        weights[:first] = 0
        sizes = np.array(self.plan.schedule.sizes, dtype=np.float64)
        sizes[: number + 1] *= self.clip.ticks * weights
        sizes[number + 1 :] = 0.0
        chain = self._people.release(number, weights, self.plan.sigmas[number])
        walk = self._kept.keeper.walk(chain.starts, chain.items)
        units = np.cumsum(sizes[::-1])[::-1].copy()
        return StoredQuestions(chain, walk, units, self.plan.sigmas[number], self._secret)

    def _forget(self, batch: int) -> None:
        self._people.forget(batch)
        self._kept.forget(batch)

    # What a snapshot holds: people too. Python functions cannot be written down; who is one is left out.

    def _extra(self) -> dict[str, NDArray[Any]]:
        kept, rows = self._kept.written()
        parts = {"stored": self._people.snapshot(only=kept), "payoffs": self._payoffs.snapshot()}
        return {name: np.frombuffer(part, dtype=np.uint8) for name, part in parts.items()} | rows

    def _take_extra(self, found: dict[str, NDArray[Any]]) -> None:
        try:
            self._people.restore(found.pop("stored").tobytes())
            self._payoffs.restore(found.pop("payoffs").tobytes())
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInput(f"The snapshot's people cannot be read: {error}.") from error
        self._kept.read(found)
        if len(self._kept) != len(self._people):
            raise InvalidInput("The snapshot holds other people than it says; it was altered.")


class StoredQuestions:
    """One release over everybody who is kept. What was published once is the answer ever after."""

    def __init__(
        self, chain: Chain, walk: Walk, units: Floats, sigmas: tuple[float, float], secret: SecretRandomness
    ) -> None:
        self._chain, self._walk, self._units, self._sigmas, self._secret = chain, walk, units, sigmas, secret
        self._singles: Measured | None = None
        self._rows: list[tuple[int, Measured]] = []
        self._rest: Measured | None = None
        self._at, self._elsewhere = 0, False  # how many rows were asked for; whether along another chain

    def __repr__(self) -> str:
        return "<StoredQuestions>"

    def begin(self) -> None:
        """From the start."""
        self._at, self._elsewhere = 0, False

    def singles(self) -> Measured:
        """What each item is worth by itself."""
        if self._singles is None:
            self._singles = Measured(self._chain.singles(self._secret), self._units, self._sigmas[0])
        return self._singles

    def row(self, item: int) -> Measured | None:
        """What each item loses when this one joins; after a crash only what was drawn before it."""
        self._at += 1
        if self._at <= len(self._rows) and not self._elsewhere:
            joined, found = self._rows[self._at - 1]
            self._elsewhere = joined != item  # the catalogue has changed since
            return None if self._elsewhere else found
        if self._elsewhere or not self._chain.goes_on():
            return None
        try:
            gains = self._walk.after_moving(item)
            sums = self._chain.row(item, gains, self._secret, self._walk.moved)
        except OtherChain:
            self._elsewhere = True
            return None
        self._rows.append((item, Measured(sums, self._units, self._sigmas[1])))
        return self._rows[-1][1]

    def rest(self) -> Measured | None:
        """What is left of each item."""
        if self._elsewhere:
            return None
        if self._rest is None and self._chain.goes_on(rest=True):
            self._rest = Measured(self._chain.rest(self._secret), self._units, self._sigmas[1])
        return self._rest
