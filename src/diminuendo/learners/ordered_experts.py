"""Ordered experts with full information: one Hedge expert per slot (Streeter & Golovin).

Expert i draws the item of slot i and learns, from each person's objective, what every item would have added to
the slots before it. An expert that draws an item shown already draws again, and after a few attempts takes one of
the others at random: slates are always full, and no expert gains less by it (docs/maths/hedge.md, remark e).

Regret     (1 - 1/e) of the best slate in hindsight minus our payoff is at most the sum of the experts'
           regrets (docs/maths/hedge.md, Theorem 2), here O(sqrt(k T log N)) with nothing to tune.
Guarantee  none. This is the yardstick for the price of privacy.
References Streeter & Golovin (2008), NIPS 21; Perez-Salazar & Cummings (2021), AISTATS, Algorithm 2 without noise.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from diminuendo._jit import inline, kernel
from diminuendo.errors import InvalidInput, WrongFeedback
from diminuendo.experts.hedge import HedgeState, learn, learned, new_hedge, rebuild, settle
from diminuendo.learners.learner import Learner
from diminuendo.objectives.family import Bag, Table, add, gains, new_bag, start
from diminuendo.objectives.oracle import Oracle
from diminuendo.objectives.person import compiled, largest_state
from diminuendo.privacy.budget import Guarantee, no_privacy
from diminuendo.randomness.coins import Coins
from diminuendo.randomness.urns import draw, to_ticks
from diminuendo.randomness.words import UNFINISHED, SecretWords, begin, below, undo
from diminuendo.streams.people import People, shown_before
from diminuendo.types import EMPTY_SLOT, Decision, FeedbackKind, Floats, Items, Objective

ATTEMPTS = 8
"""How often an expert draws before it takes any item that is not shown yet."""


class OrderedExperts(Learner):
    """k ordered Hedge experts, not private. `rate=None`: each expert finds its own rate."""

    name: ClassVar[str] = "hedge"
    reads: ClassVar[frozenset[FeedbackKind]] = frozenset({"full"})
    summary: ClassVar[str] = "one Hedge expert per slot, full information; not private; the yardstick"

    def __init__(
        self,
        n_items: int,
        slots: int,
        *,
        rate: float | None = None,
        coins: Coins | None = None,
        patience: int = 10_000,
    ) -> None:
        super().__init__(n_items, slots, coins=coins, patience=patience)
        self.rate = rate
        self._experts = new_hedge(self.n_items, self.slots, rate)
        self._bag = new_bag(self.n_items, 1)

    @property
    def guarantee(self) -> Guarantee:
        """None."""
        return no_privacy(self.coins.secure)

    def _config(self) -> dict[str, Any]:
        return super()._config() | {"rate": self.rate}

    def _state(self) -> Any:
        return learned(self._experts)

    def _restored(self) -> None:
        super()._restored()
        rebuild(self._experts)

    def _draw(self, row: Items, probe: Items) -> bool:
        return bool(_draw_slate(self._experts, row, self._secret.handful))

    def _read(self, decision: Decision, feedback: Any) -> tuple[Table, int, int]:
        return read_objective(self, decision, feedback)

    def _learn(self, place: int, answer: tuple[Table, int, int]) -> None:
        table, person, leaves = answer
        self._make_room(leaves)
        state = np.empty(largest_state(table, person, person + 1))
        learn_person(self._experts, table, person, self._desk.rows[place], state, self._bag)

    def _replay(self, people: People, slates: Items, done: int) -> int:
        self._make_room(people.family.leaves)
        state = np.empty(people.largest_state)
        return int(_replay(self._experts, people.table, slates, done, self._secret.handful, state, self._bag))

    def _make_room(self, leaves: int) -> None:
        if len(self._bag.items) < leaves * self.n_items:
            self._bag = new_bag(self.n_items, leaves)


def full_information(learner: Learner, feedback: Any) -> Objective:
    """Full information at the door: an objective over the learner's items."""
    if not isinstance(feedback, Objective):
        raise WrongFeedback(
            f"{learner.name!r} learns from full information: give observe() the person's objective "
            f"(with value() and gains()), not {type(feedback).__name__}."
        )
    if feedback.n_items != learner.n_items:
        raise InvalidInput(f"The learner has {learner.n_items} items, the objective {feedback.n_items}.")
    return feedback


def read_objective(learner: Learner, decision: Decision, feedback: Any) -> tuple[Table, int, int]:
    """An objective at the door, as (table, row, leaves)."""
    feedback = full_information(learner, feedback)
    try:
        return compiled(feedback, decision.slate)
    except Exception:  # whatever goes wrong inside, it is what this person said: nothing
        return compiled(Oracle(lambda chosen: 0.0, learner.n_items), decision.slate)


@inline
def draw_slots(experts: HedgeState, row: Items, secret: SecretWords) -> bool:
    """One item per slot, all different; False, nothing used, when the round must be resumed."""
    begin(secret)
    n_items = experts.urns.totals.shape[0]
    for slot in range(len(row)):
        for attempt in range(ATTEMPTS + 1):
            if attempt < ATTEMPTS:
                item = draw(experts.urns, slot, secret)
            else:
                item = below(n_items - slot, secret)
            if item == UNFINISHED:
                undo(secret)
                return False
            if attempt == ATTEMPTS:
                item = _not_shown(row, slot, item)
            if not shown_before(row, slot, item):
                row[slot] = item
                break
    return True


@inline
def _not_shown(row: Items, slot: int, number: int) -> int:
    """The item with that number among those not shown in slots before `slot`."""
    item = number
    while True:
        passed = 0
        for before in range(slot):
            passed += row[before] <= item
        if item == number + passed:
            return item
        item = number + passed


@inline
def learn_gains(experts: HedgeState, table: Table, person: int, row: Items, state: Floats, bag: Bag) -> None:
    """Every expert learns what each item would have added to the slots before its own."""
    start(table, person, state, 0)
    for slot in range(len(row)):
        own = 0
        for j in range(gains(table, person, state, 0, bag, 0)):
            item = bag.items[j]
            if not shown_before(row, slot, item):
                ticks = to_ticks(bag.gains[j])
                learn(experts, slot, item, ticks)
                if item == row[slot]:
                    own = ticks
        settle(experts, slot, own)
        if row[slot] != EMPTY_SLOT:
            add(table, person, state, 0, row[slot])


@kernel
def _draw_slate(experts: HedgeState, row: Items, secret: SecretWords) -> bool:
    return draw_slots(experts, row, secret)


@kernel
def learn_person(experts: HedgeState, table: Table, person: int, row: Items, state: Floats, bag: Bag) -> None:
    """`learn_gains`, to be called from outside."""
    learn_gains(experts, table, person, row, state, bag)


@kernel
def _replay(
    experts: HedgeState, table: Table, slates: Items, done: int, secret: SecretWords, state: Floats, bag: Bag
) -> int:
    while done < slates.shape[0] and draw_slots(experts, slates[done], secret):
        learn_gains(experts, table, done, slates[done], state, bag)
        done += 1
    return done
