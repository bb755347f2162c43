"""One round of the paper's bandit algorithms, compiled: who redraws, whether to explore, what is shown.

A round begins with the redraws that the round before it made due; whether they are due is decided by that round's
coins, never by whether an answer came. Then the coins of this round: whether it explores, and if so which slot and
item. All or nothing: where words run out, or a redraw is not paid for yet, nothing has happened.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from diminuendo._numba import inline, kernel
from diminuendo.experts.hedge import HedgeState, learn
from diminuendo.learners.desk import NO_PROBE
from diminuendo.objectives.family import Table, add, start, value
from diminuendo.privacy.meter import paid_for
from diminuendo.randomness.urns import draw, to_ticks
from diminuendo.randomness.words import UNFINISHED, PublicWords, SecretWords, begin, below, undo
from diminuendo.streams.people import shown_before
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items

COIN = 1 << 53
"""A coin lands on one of this many sides."""

ALL, OWN, EVERY = range(3)
"""Who redraws: everybody after an exploration, only the expert that explored, everybody in every round."""

NOBODY, EVERYBODY = -1, -2


class ExploringState(NamedTuple):
    """What the algorithm carries from round to round, beside what the experts learned. All of it is public."""

    current: Items
    """(k,) the experts' items, repeats included; -1 before the first draw."""
    due: Ints
    """(1,) who redraws before the next round: an expert, NOBODY or EVERYBODY."""
    redraws: Ints
    """(k,) of each expert; its first draw, which knows nothing, is not counted."""
    explored: Ints
    """(k,) explorations of each expert, answered or not."""
    rounds: Ints
    """(1,) so far."""

    def __repr__(self) -> str:
        return "<ExploringState>"


class Rules(NamedTuple):
    """How it was made; fixed."""

    share: float
    cap: int
    resample: int
    schedule: Ints
    """Rounds that explore, in order, where they were drawn beforehand; else `share` decides."""
    presampled: bool


def new_exploring(slots: int) -> ExploringState:
    """Before the first round."""
    return ExploringState(
        np.full(slots, EMPTY_SLOT, dtype=np.int32),
        np.array([EVERYBODY]),
        np.zeros(slots, dtype=np.int64),
        np.zeros(slots, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
    )


@inline
def next_round(
    experts: HedgeState,
    state: ExploringState,
    rules: Rules,
    paid: Ints,
    row: Items,
    probe: Items,
    coins: PublicWords,
    secret: SecretWords,
) -> bool:
    """The next slate and probe (slot, item, 0); False, with nothing changed, when it must be resumed."""
    begin(coins)
    begin(secret)
    k, first, due = len(row), state.rounds[0] == 0, state.due[0]
    for slot in range(k):
        row[slot] = state.current[slot]
        if due in (EVERYBODY, slot):
            if not first and not paid_for(paid, slot, state.redraws[slot]):
                undo(secret)
                return False
            item = draw(experts.urns, slot, secret)
            if item == UNFINISHED:
                undo(secret)
                return False
            row[slot] = item
    slot, item = NO_PROBE, NO_PROBE
    coin = below(COIN, coins)
    if coin != UNFINISHED and _explores(state, rules, coin):
        slot = below(k, coins)
        item = below(experts.urns.totals.shape[0], coins)
        coin = item
    if coin == UNFINISHED:
        undo(coins)
        undo(secret)
        return False
    for j in range(k):  # from here on nothing can fail
        if not first and due in (EVERYBODY, j):
            state.redraws[j] += 1
        state.current[j] = row[j]
    state.rounds[0] += 1
    used = state.explored[slot] if rules.resample == OWN else state.explored.sum()
    if slot != NO_PROBE and used >= rules.cap:
        slot = NO_PROBE
    state.due[0] = EVERYBODY if rules.resample == EVERY else NOBODY
    if slot != NO_PROBE:
        state.explored[slot] += 1
        if rules.resample != EVERY:
            state.due[0] = slot if rules.resample == OWN else EVERYBODY
    _show(row, slot, item)
    probe[0], probe[1], probe[2] = slot, item, 0
    return True


@inline
def _explores(state: ExploringState, rules: Rules, coin: int) -> bool:
    if rules.presampled:
        number = state.explored.sum()
        return bool(number < len(rules.schedule) and rules.schedule[number] == state.rounds[0])
    return coin < rules.share * COIN


@inline
def _show(row: Items, slot: int, item: int) -> None:
    """What is seen of the experts' items: repeats leave slots empty; an exploration ends the slate."""
    for j in range(len(row)):
        if slot != NO_PROBE and j > slot:
            row[j] = EMPTY_SLOT
        else:
            shown = item if j == slot else row[j]
            row[j] = EMPTY_SLOT if shown_before(row, j, shown) else shown


@kernel
def draw_round(
    experts: HedgeState,
    state: ExploringState,
    rules: Rules,
    paid: Ints,
    row: Items,
    probe: Items,
    coins: PublicWords,
    secret: SecretWords,
) -> bool:
    """`next_round`, to be called from outside."""
    return next_round(experts, state, rules, paid, row, probe, coins, secret)


@kernel
def learn_payoff(experts: HedgeState, probe: Items, payoff: float) -> None:
    """The expert that explored learns the payoff as the gain of the item it tried; others, nothing."""
    if probe[0] != NO_PROBE:
        learn(experts, probe[0], probe[1], to_ticks(payoff))


@kernel
def replay_rounds(
    experts: HedgeState,
    state: ExploringState,
    rules: Rules,
    paid: Ints,
    table: Table,
    slates: Items,
    done: int,
    coins: PublicWords,
    secret: SecretWords,
    person: Floats,
    probe: Items,
) -> int:
    """Rounds from `done` on, each answered at once, until one must be resumed."""
    while done < slates.shape[0] and next_round(
        experts, state, rules, paid, slates[done], probe, coins, secret
    ):
        if probe[0] != NO_PROBE:
            start(table, done, person, 0)
            for item in slates[done]:
                if item != EMPTY_SLOT:
                    add(table, done, person, 0, item)
            learn(experts, probe[0], probe[1], to_ticks(value(table, done, person, 0)))
        done += 1
    return done
