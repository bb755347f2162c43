"""Overlap greedy: keeps people, asks them again at every release, and follows greedy on what they said, with noise.

At each of a few dozen releases, at times fixed beforehand, all people who are kept answer one chain of questions. First
what each item is worth by itself; noise is added, and the best item is picked. Then what every other item loses when
that one is shown, with noise; and so on for k items. The rows of one person come out of her singles, so the whole chain
costs no more than twice the first question, whatever k is. People of earlier releases are asked again with weights
whose squares add up, and averages over releases then have noise that falls like 1 / (people so far). The slate is
shown to everybody until the next release; in the first batch slates are random.

One number per batch besides, the payoff, tells whether tastes have changed: then memory begins anew.

Regret     people of one taste: of order k^(3/2) sigma log T, and no more for privacy. No bound against an adversary.
Guarantee  every release is paid for before it is drawn; rounded Gaussian noise (docs/maths/sums.md, Theorems S4, S6).
Assumes    nothing about people: singles are clipped to length 1, rows by a running minimum. One answer per round.
Memory     people themselves, as rows or functions, are kept as long as the learner lives or until tastes change.
Excludes   timing, and the memory of the process.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from diminuendo.errors import InvalidInput
from diminuendo.learners.drift import DriftTest
from diminuendo.learners.full_information import checked_objective
from diminuendo.learners.keeper import Keeper, read, singles, written
from diminuendo.learners.learner import Setting
from diminuendo.learners.overlap_plan import overlap_plan, planned_events
from diminuendo.learners.private_learner import PrivateLearner
from diminuendo.learners.random_slates import draw_random, draw_random_slates
from diminuendo.learners.running_means import RunningMeans
from diminuendo.learners.shrinkage import shrunk
from diminuendo.privacy.accountants import ACCOUNTANTS
from diminuendo.privacy.budget import REPLACE_ONE_ROUND, Budget, Guarantee
from diminuendo.privacy.events import Event
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.coins import Coins
from diminuendo.streams.people import People
from diminuendo.sums.clip import Clip
from diminuendo.sums.private_sum import PrivateSum
from diminuendo.sums.stored import StoredPeople
from diminuendo.types import EMPTY_SLOT, Decision, FeedbackKind, Items, Objective

FAR = 50.0
"""Published numbers are not so many deviations away from what they can be; what is was altered."""


class OverlapGreedy(PrivateLearner):
    """Private greedy on people who are kept."""

    name: ClassVar[str] = "overlap-greedy"
    reads: ClassVar[frozenset[FeedbackKind]] = frozenset({"full"})
    summary: ClassVar[str] = (
        "keeps people, asks them again with noise a few dozen times; full information; private"
    )

    def __init__(
        self,
        n_items: int,
        slots: int,
        *,
        horizon: int,
        epsilon: float,
        delta: float,
        ledger: Ledger | None = None,
        coins: Coins | None = None,
        patience: int = 10_000,
    ) -> None:
        super().__init__(n_items, slots, horizon=horizon, ledger=ledger, coins=coins, patience=patience)
        self.budget = Budget(epsilon, delta, accountant="continuous-gaussian")
        self._ledger = Ledger(self.budget) if ledger is None else ledger
        clip = Clip()
        self.plan = overlap_plan(self.n_items, self.horizon, self.budget, clip.ticks)
        schedule = self.plan.schedule
        self._payoffs = PrivateSum(
            1,
            schedule=schedule,
            cost=self.plan.drift,
            ledger=self._ledger,
            strategy="independent",
            clip=Clip("cell"),
            name="payoffs",
        )
        self._people = StoredPeople(self.n_items, schedule=schedule, ledger=self._ledger, clip=clip)
        self._keeper = Keeper(self.n_items)
        self._batches: list[int] = []  # of everybody who is kept
        self._slate: Items = np.zeros(self.slots, dtype=np.int32)
        self._marks = np.zeros(2, dtype=np.int64)  # releases made; where memory begins
        self._earned = np.zeros(1)  # the payoffs published so far
        self._worth = RunningMeans(1, 1, self.n_items)
        self._rows = RunningMeans(2 * self.slots, self.slots + 1, self.n_items)
        self._drift = DriftTest()

    @classmethod
    def for_setting(
        cls, setting: Setting, *, coins: Coins | None = None, ledger: Ledger | None = None
    ) -> Self:
        """Everything follows from the setting."""
        return cls(
            setting.n_items,
            setting.slots,
            horizon=setting.rounds,
            epsilon=setting.epsilon,
            delta=setting.delta,
            ledger=ledger,
            coins=coins,
        )

    @property
    def events(self) -> Event:
        """What the whole run costs at most."""
        return planned_events(self.plan, Clip().ticks)

    @property
    def guarantee(self) -> Guarantee:
        """What is proved for the whole run."""
        found = ACCOUNTANTS[self.budget.accountant].epsilon(self.events, self.budget.delta)
        proof, epsilon = "docs/maths/sums.md, Theorems S4 and S6", min(found, self.budget.epsilon)
        return Guarantee(epsilon, self.budget.delta, REPLACE_ONE_ROUND, proof, self.coins.secure)

    def _config(self) -> dict[str, Any]:
        return super()._config() | {
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
        }

    # Choosing: the slate of the last release; before the first, random ones.

    def _draw(self, row: Items, probe: Items) -> bool:
        self._release_due(self.rounds)
        if self._marks[0] == 0:
            return bool(draw_random(self.n_items, row, self._public.handful))
        row[:] = self._slate
        return True

    def _release_due(self, rounds: int) -> None:
        while self._marks[0] < self.plan.schedule.closed_by(rounds):
            self._release(int(self._marks[0]))

    # Learning: people are kept; what they say is asked for at the next release.

    def _read(self, decision: Decision, feedback: Any) -> Objective:
        return checked_objective(self, feedback)

    def _learn(self, place: int, answer: Objective) -> None:
        issued, patience = self.rounds, self._desk.patience
        number = issued - 1 - (issued - 1 - place) % patience
        batch = self.plan.schedule.batch_of(number)
        row = self._desk.rows[place]
        try:
            worth = np.asarray(answer.gains(()), dtype=np.float64)
            payoff = float(answer.value(tuple(int(item) for item in row if item != EMPTY_SLOT)))
        except Exception:  # whatever goes wrong inside, it is what this person said: nothing
            return
        if worth.shape != (self.n_items,):
            return
        self._payoffs.add([payoff], [0], batch=min(batch, self._payoffs.batch))
        if batch >= self._marks[1]:
            self._people.add(worth, batch=batch)
            self._keeper.keep(answer)
            self._batches.append(batch)

    def _replay(self, people: People, slates: Items, done: int) -> int:
        before = self.rounds - done
        while done < len(people):
            self._release_due(before + done)
            batch = self.plan.schedule.batch_of(before + done)
            end = min(len(people), self.plan.schedule.ends[batch] - before)
            if self._marks[0] == 0:
                stop = done + int(draw_random_slates(self.n_items, slates[done:end], 0, self._public.handful))
            else:
                slates[done:end] = self._slate
                stop = end
            self._take(people, slates, done, stop, batch)
            if stop < end:
                return stop
            done = end
        return done

    def _take(self, people: People, slates: Items, low: int, high: int, batch: int) -> None:
        if high > low:
            rows = list(range(low, high))
            payoffs = people[low:high].values(slates[low:high])
            self._payoffs.add_rows(sparse.csr_array(payoffs[:, None]))
            self._people.add_rows(singles(people.family, people.table, rows, self.n_items), batch=batch)
            self._keeper.keep_rows(people.family, people.table, rows)
            self._batches += [batch] * len(rows)

    # Releasing.

    def _release(self, number: int) -> None:
        plan, sizes = self.plan, np.array(self.plan.schedule.sizes, dtype=np.float64)
        if self._payoffs.batch == number:  # else this release was begun before, and could not be finished
            self._look_at_payoffs(number, float(sizes[number]))
        first = int(self._marks[1])
        weights = plan.weights[number, : number + 1].copy()
        weights[:first] = 0
        chain = self._people.release(number, weights, plan.sigmas[number])
        unit = Clip().ticks * float(weights @ sizes[: number + 1])
        walk = self._keeper.walk(chain.starts, chain.items)
        worth, _ = self._worth.add([0], chain.singles(self._secret) / unit, plan.sigmas[number][0] / unit)
        left = worth.copy()
        slate: list[int] = []
        for slot in range(self.slots):
            left[slate] = -math.inf
            item = int(np.argmax(left))
            if slot + 1 < self.slots:
                lost = chain.row(item, walk.after(item), self._secret) / unit
                mean, deviation = self._rows.add([*sorted(slate), item], lost, plan.sigmas[number][1] / unit)
                most = max(0.0, float(left[item]) + deviation)
                left -= np.clip(shrunk(mean, deviation), 0.0, most)
            slate.append(item)
        self._slate[:] = slate
        self._marks[0] = number + 1

    def _look_at_payoffs(self, number: int, size: float) -> None:
        """Publish what this batch earned, and see whether tastes have changed. In the first, slates were random."""
        total = float(self._payoffs.release(self._secret)[0])
        earned, self._earned[0] = (total - float(self._earned[0])) / size, total
        if number > 0 and self._drift.changed(earned, self._payoffs.deviation(1) / size):
            self._begin_anew(number)

    def _begin_anew(self, batch: int) -> None:
        """Tastes have changed: forget everybody who came before this batch."""
        self._marks[1] = batch
        self._worth.forget()
        self._rows.forget()
        stays = np.array(self._batches, dtype=np.int64) >= batch
        self._people.forget(batch)
        self._keeper.drop(stays)
        self._batches = [b for b in self._batches if b >= batch]

    # What a snapshot holds: people too. Python functions cannot be written down; who is one is left out.

    def _state(self) -> Any:
        return (
            self._slate,
            self._marks,
            self._earned,
            self._worth.arrays,
            self._rows.arrays,
            self._drift.arrays,
        )

    def _extra(self) -> dict[str, NDArray[Any]]:
        kept, rows = written(self._keeper)
        people = self._people.snapshot(only=kept)
        batches = np.array(self._batches, dtype=np.int64)[kept]
        parts = {"people": people, "payoffs": self._payoffs.snapshot()}
        return (
            {name: np.frombuffer(part, dtype=np.uint8) for name, part in parts.items()}
            | rows
            | {"batches": batches}
        )

    def _take_extra(self, found: dict[str, NDArray[Any]]) -> None:
        try:
            self._people.restore(found.pop("people").tobytes())
            self._payoffs.restore(found.pop("payoffs").tobytes())
            batches = found.pop("batches")
            read(self._keeper, found)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInput(f"The snapshot's people cannot be read: {error}.") from error
        if batches.dtype != np.int64 or not len(batches) == len(self._keeper) == len(self._people):
            raise InvalidInput("The snapshot holds other people than it says; it was altered.")
        self._batches = [int(batch) for batch in batches]

    def _restored(self) -> None:
        super()._restored()
        made, first = (int(mark) for mark in self._marks)
        sound = (
            0 <= first <= made <= self.plan.releases
            and made == self._payoffs.batch
            and ((self._slate >= 0) & (self._slate < self.n_items)).all()
            and (made == 0 or len(set(self._slate.tolist())) == self.slots)
            and abs(self._earned[0]) <= self.horizon + FAR * self._payoffs.deviation(1) * (made + 1)
            and self._worth.sound(1, FAR)
            and self._rows.sound(self.n_items, FAR)
            and self._drift.sound(FAR)
        )
        if not sound:
            raise InvalidInput("The snapshot holds releases that could not have been made; it was altered.")
