"""Ordered Hedge experts with full information, compiled: one policy, whether or not draws are private.

Expert i draws the item of slot i with probability in proportion to exp(rate * total gain), and learns from each
user's objective what every item would have added to the slots before it. What differs is an argument: at which rate
experts learn, whether one may repeat another's item, and what is paid for draws. `hedge` is made in ordered.py, the
private ones and what the paper builds on in fi_dp.py.

Regret     (1 - 1/e) of the best slate in hindsight minus our reward is at most the sum of the experts' regrets
           (docs/maths/hedge.md, Theorem 2; docs/maths/paper.md, Theorem P3).
Guarantee  that of the draws which the policy is given.
Readable   paper/algorithms.py, `fi_dp`: the same slates from the same words.
References Streeter & Golovin (2008), NIPS 21; Perez-Salazar & Cummings (2021), AISTATS, Algorithm 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from diminuendo._numba import as_kernel, inline, kernel
from diminuendo.experts.hedge import HedgeState, learn, learned, new_hedge, rebuild, settle
from diminuendo.learners.base.feedback import CompiledObjective, CompiledObjectives
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.hedge import bounds
from diminuendo.learners.hedge.private_draws import Draws, SecretScoresPolicy
from diminuendo.objectives.family import GainBuffer, Table, add, gains, new_gain_buffer, offset, start
from diminuendo.privacy.draw_budget import paid_for
from diminuendo.randomness.score_classes import draw
from diminuendo.randomness.ticks import to_ticks
from diminuendo.randomness.words import UNFINISHED, SecretWords, begin, below, undo
from diminuendo.streams.users import Users, shown_before
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items

ATTEMPTS = 8
"""How often an expert draws before it takes any item that is not shown yet."""


class FullInformationPolicy(SecretScoresPolicy):
    """k Hedge experts that learn every item's gain.

    rate     None: each expert finds its own.
    repeats  Whether an expert may repeat an item that is shown already, as printed in the paper: that slot stays empty.
    """

    reader = CompiledObjectives()

    def __init__(
        self, frame: Frame, rate: float | None, draws: Draws, *, repeats: bool, options: dict[str, Any]
    ) -> None:
        self.frame, self.budget, self._draws, self._options = frame, draws.budget, draws, options
        self.rate, self._repeats = rate, repeats
        self._experts = new_hedge(frame.n_items, frame.slots, rate)
        self._state_room: Floats = np.empty(0)  # scratch: the state of the user who is learned from
        self._gain_room = new_gain_buffer(frame.n_items, 1)  # scratch: their gains

    # What is promised.

    def regret_bound(self, rounds: int | None = None) -> float | None:
        """Of experts with their own rates, and of those that draw as printed; of others nothing is proved here."""
        n_items, slots, rounds = self.frame.n_items, self.frame.slots, rounds or self.frame.horizon
        if rounds is None:
            return None
        if self.rate is None:
            return bounds.own_rates(n_items, slots, rounds)
        return bounds.full_information(n_items, slots, rounds, self.rate) if self._repeats else None

    # The door: scores are secret, so every slate passes through it, paid for before it is drawn.

    def draw(self, row: Items, probe: Items) -> bool:
        """One item of each expert; False, with nothing drawn, where the round is not paid for yet."""
        paid, secret = self._draws.paid, self.frame.secret.view
        return draw_slate(self._experts, row, self.frame.rounds, paid, self._repeats, secret)

    def resume(self, rounds: int = 1) -> None:
        """More words; and pay for the next round's draws, unless it is the first, which knows nothing."""
        self.frame.resume(rounds)
        if self.frame.rounds:
            self._draws.pay([(self.frame.rounds - 1, 0)])

    # Private: every expert adds what each item would have gained.

    def learn(self, place: int, answer: CompiledObjective) -> None:
        """Every expert learns what each item would have added to the slots before its own."""
        table, user, n_matrices = answer
        row, room = self.frame.decisions.rows[place], self._room_for(n_matrices)
        while wanted := _learn_one(self._experts, table, user, row, self._state_room, room):
            self._state_room = np.empty(wanted)

    def replay(self, users: Users, slates: Items, done: int) -> int:
        """Draw and learn, round by round, compiled."""
        frame, before, paid = self.frame, self.frame.rounds - done, self._draws.paid
        room = np.empty(users.largest_state), self._room_for(users.family.leaves)

        def play(done: int, stop: int) -> int:
            rounds = slates[:stop], done, before
            return _replay(self._experts, users.table, *rounds, paid, self._repeats, frame.secret.view, *room)

        return frame.stride(play, done, len(users))

    def _room_for(self, n_matrices: int) -> GainBuffer:
        """Room for the gains of a user who is described by that many matrices."""
        if len(self._gain_room.items) < n_matrices * self.frame.n_items:
            self._gain_room = new_gain_buffer(self.frame.n_items, n_matrices)
        return self._gain_room

    # What a snapshot holds.

    def state(self) -> Any:
        """What experts have learned."""
        return learned(self._experts)

    def restored(self) -> None:
        """Score classes follow from scores; what was paid for beyond the last round may be used up."""
        rebuild(self._experts)
        self._draws.restored(np.array([max(0, self.frame.rounds - 1)]))


@inline
def draw_slots(experts: HedgeState, row: Items, repeats: bool, secret: SecretWords) -> bool:
    """One item per slot, all different; or, with repeats, a slot that repeats an earlier one stays empty.

    False, nothing used, when the round must be resumed.
    """
    begin(secret)
    n_items = experts.classes.totals.shape[0]
    for slot in range(len(row)):
        row[slot] = EMPTY_SLOT
        for attempt in range(1 if repeats else ATTEMPTS + 1):
            if attempt < ATTEMPTS:
                item = draw(experts.classes, slot, secret)
            else:
                item = below(n_items - slot, secret)
            if item == UNFINISHED:
                undo(secret)
                return False
            if attempt == ATTEMPTS:
                item = not_shown(row, slot, item)
            if not shown_before(row, slot, item):
                row[slot] = item
                break
    return True


@inline
def not_shown(row: Items, slot: int, number: int) -> int:
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
def next_slate(
    experts: HedgeState, row: Items, number: int, paid: Ints, repeats: bool, secret: SecretWords
) -> bool:
    """The slate of round `number`, if it is paid for; the first is free. False, with nothing used, to be resumed."""
    if number > 0 and not paid_for(paid, 0, number - 1):
        return False
    return draw_slots(experts, row, repeats, secret)


draw_slate = as_kernel(next_slate)


@inline
def learn_gains(
    experts: HedgeState, table: Table, user: int, row: Items, state: Floats, room: GainBuffer
) -> None:
    """Every expert learns what each item would have added to the slots before its own."""
    start(table, user, state, 0)
    for slot in range(len(row)):
        own = 0
        for j in range(gains(table, user, state, 0, room, 0)):
            item = room.items[j]
            if not shown_before(row, slot, item):
                ticks = to_ticks(room.gains[j])
                learn(experts, slot, item, ticks)
                if item == row[slot]:
                    own = ticks
        settle(experts, slot, own)
        if row[slot] != EMPTY_SLOT:
            add(table, user, state, 0, row[slot])


@inline
def gains_of_slots(table: Table, user: int, row: Items, state: Floats, room: GainBuffer, out: Floats) -> None:
    """Into out[slot, item], which is 0, what an item would have added to the slots before, cut to [0, 1]."""
    start(table, user, state, 0)
    for slot in range(len(row)):
        for j in range(gains(table, user, state, 0, room, 0)):
            item, gain = room.items[j], room.gains[j]
            if gain > 0.0 and not shown_before(row, slot, item):  # NaN is not
                out[slot, item] = min(gain, 1.0)
        if row[slot] != EMPTY_SLOT:
            add(table, user, state, 0, row[slot])


find_gains_of_slots = as_kernel(gains_of_slots)


@kernel
def _learn_one(
    experts: HedgeState, table: Table, user: int, row: Items, state: Floats, room: GainBuffer
) -> int:
    """`learn_gains`, and 0; or nothing, and how much room the user's state takes, if there is less."""
    size = offset(table, user + 1) - offset(table, user)
    if size > len(state):
        return size
    learn_gains(experts, table, user, row, state, room)
    return 0


@kernel
def _replay(
    experts: HedgeState,
    table: Table,
    slates: Items,
    done: int,
    before: int,
    paid: Ints,
    repeats: bool,
    secret: SecretWords,
    state: Floats,
    room: GainBuffer,
) -> int:
    while done < slates.shape[0] and next_slate(experts, slates[done], before + done, paid, repeats, secret):
        learn_gains(experts, table, done, slates[done], state, room)
        done += 1
    return done
