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

from diminuendo._numba import inline, kernel
from diminuendo.experts.hedge import HedgeState, learn, learned, new_hedge, rebuild, settle
from diminuendo.learners.base.old_feedback import FullInformation, Read
from diminuendo.objectives.family import GainBuffer, Table, add, gains, offset, start
from diminuendo.privacy.budget import Guarantee, no_privacy
from diminuendo.randomness.coins import Coins
from diminuendo.randomness.score_classes import draw, to_ticks
from diminuendo.randomness.words import UNFINISHED, SecretWords, begin, below, undo
from diminuendo.streams.people import People, shown_before
from diminuendo.types import EMPTY_SLOT, Floats, Items

ATTEMPTS = 8
"""How often an expert draws before it takes any item that is not shown yet."""


class HedgeExperts(FullInformation):
    """k Hedge experts that learn every item's gain."""

    _experts: HedgeState
    _room: Floats = np.empty(0)
    """For the state of the person who is learned from."""

    def _state(self) -> Any:
        return learned(self._experts)

    def _learn(self, place: int, answer: Read) -> None:
        table, person, leaves = answer
        row, bag = self._decisions.rows[place], self._bag(leaves)
        while wanted := _learn_one(self._experts, table, person, row, self._room, bag):
            self._room = np.empty(wanted)


class OrderedExperts(HedgeExperts):
    """k ordered Hedge experts, not private. `rate=None`: each expert finds its own rate."""

    name: ClassVar[str] = "hedge"
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

    @property
    def guarantee(self) -> Guarantee:
        """None."""
        return no_privacy(self.coins.secure)

    def _config(self) -> dict[str, Any]:
        return super()._config() | {"rate": self.rate}

    def _restored(self) -> None:
        super()._restored()
        rebuild(self._experts)

    def _draw(self, row: Items, probe: Items) -> bool:
        return bool(_draw_slate(self._experts, row, self._secret.view))

    def _replay(self, people: People, slates: Items, done: int) -> int:
        state, bag = np.empty(people.largest_state), self._bag(people.family.leaves)
        return int(_replay(self._experts, people.table, slates, done, self._secret.view, state, bag))


@inline
def draw_slots(experts: HedgeState, row: Items, secret: SecretWords) -> bool:
    """One item per slot, all different; False, nothing used, when the round must be resumed."""
    begin(secret)
    n_items = experts.classes.totals.shape[0]
    for slot in range(len(row)):
        for attempt in range(ATTEMPTS + 1):
            if attempt < ATTEMPTS:
                item = draw(experts.classes, slot, secret)
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
def learn_gains(
    experts: HedgeState, table: Table, person: int, row: Items, state: Floats, bag: GainBuffer
) -> None:
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
def _learn_one(
    experts: HedgeState, table: Table, person: int, row: Items, state: Floats, bag: GainBuffer
) -> int:
    """`learn_gains`, and 0; or nothing, and how much room her state takes, where there is less."""
    size = offset(table, person + 1) - offset(table, person)
    if size > len(state):
        return size
    learn_gains(experts, table, person, row, state, bag)
    return 0


@kernel
def _replay(
    experts: HedgeState,
    table: Table,
    slates: Items,
    done: int,
    secret: SecretWords,
    state: Floats,
    bag: GainBuffer,
) -> int:
    while done < slates.shape[0] and draw_slots(experts, slates[done], secret):
        learn_gains(experts, table, done, slates[done], state, bag)
        done += 1
    return done
