"""Exploring experts: k ordered Hedge experts with bandit feedback, which learn from exploring rounds alone.

All that comes back is one number, the reward. An exploring round shows the experts' items before a random slot i, and
then a random item a; expert i learns the reward as the gain of a. Other rounds show the experts' slate and teach
nothing. An exploring slate is shorter than k if i is.

A round begins with the redraws that the round before it made due; that round's coins decide which are due, never
whether feedback arrived. Then the coins of this round: whether it explores, and if so which slot and item. All or
nothing: if words run out, or a redraw is not paid for yet, nothing has happened.

`ExploringPolicy` is the policy of all of them; what differs is an argument: how much is explored and who redraws
(`Rules`), and what is paid for draws. Recipes are in bandit.py, and in bandit_dp.py for private learners.

Readable   paper/algorithms.py, `bandit_dp` and `streeter_golovin_bandit`: the same slates from the same words.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from diminuendo._numba import as_kernel, inline, kernel
from diminuendo.experts.hedge import HedgeState, learn, learned, new_hedge, rebuild, settle
from diminuendo.learners.base.decisions import NO_PROBE
from diminuendo.learners.base.feedback import Rewards
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.hedge import bounds
from diminuendo.learners.hedge.full import draw_slots
from diminuendo.learners.hedge.private_draws import Draws, SecretScoresPolicy, Use
from diminuendo.objectives.family import Table, add, start, value
from diminuendo.privacy.draw_budget import paid_for
from diminuendo.randomness.score_classes import draw
from diminuendo.randomness.ticks import to_ticks
from diminuendo.randomness.words import UNFINISHED, PublicWords, SecretWords, begin, below, undo
from diminuendo.streams.users import Users, shown_before
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items

COIN = 1 << 53
"""A coin lands on one of this many sides."""

ALL, OWN, EVERY = range(3)
"""Which experts redraw: all after an exploration, only the one that explored, all in every round."""

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
    schedule: Ints = np.empty(0, dtype=np.int64)
    """Rounds that explore, in order, if they were drawn beforehand; else `share` decides."""
    presampled: bool = False
    repeats: bool = True
    """Whether an expert may repeat an item, as printed. Else all experts draw different items in every round."""


@inline
def next_round(
    experts: HedgeState,
    state: ExploringState,
    rules: Rules,
    paid: Ints,
    row: Items,
    probe: Items,
    rng: PublicWords,
    secret: SecretWords,
) -> bool:
    """The next slate and probe (slot, item, whether an expert that finds its own rate drew the item itself).

    False, with nothing changed, if it must be resumed.
    """
    begin(rng)
    begin(secret)
    k, first, due = len(row), state.rounds[0] == 0, state.due[0]
    if not rules.repeats and not draw_slots(experts, row, False, secret):
        return False
    for slot in range(k if rules.repeats else 0):
        row[slot] = state.current[slot]
        if due in (EVERYBODY, slot):
            if not first and not paid_for(paid, slot, state.redraws[slot]):
                undo(secret)
                return False
            item = draw(experts.classes, slot, secret)
            if item == UNFINISHED:
                undo(secret)
                return False
            row[slot] = item
    slot, item = NO_PROBE, NO_PROBE
    coin = below(COIN, rng)
    explores = coin != UNFINISHED and _explores(state, rules, coin)
    if explores or (coin != UNFINISHED and not rules.repeats):
        slot = below(k, rng)
        item = below(experts.classes.totals.shape[0], rng)
        coin = item
    if coin == UNFINISHED:
        undo(rng)
        undo(secret)
        return False
    for j in range(k):  # from here on nothing can fail
        if not first and due in (EVERYBODY, j):
            state.redraws[j] += 1
        state.current[j] = row[j]
    state.rounds[0] += 1
    used = state.explored[max(slot, 0)] if rules.resample == OWN else state.explored.sum()
    if not explores or used >= rules.cap:
        slot = NO_PROBE
    state.due[0] = EVERYBODY if rules.resample == EVERY else NOBODY
    if slot != NO_PROBE:
        state.explored[slot] += 1
        if rules.resample != EVERY:
            state.due[0] = slot if rules.resample == OWN else EVERYBODY
    probe[0], probe[1], probe[2] = slot, item, 0
    if slot != NO_PROBE and not rules.repeats:
        probe[2] = row[slot] == item
    _show(row, slot, item)
    return True


draw_round = as_kernel(next_round)


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


@inline
def learn_probe(experts: HedgeState, probe: Items, reward: float) -> None:
    """The expert that explored learns the reward as the gain of the item it tried; others, nothing."""
    if probe[0] != NO_PROBE:
        ticks = to_ticks(reward)
        learn(experts, probe[0], probe[1], ticks)
        settle(experts, probe[0], ticks if probe[2] == 1 else 0)


learn_reward = as_kernel(learn_probe)


@inline
def reward_of(table: Table, user: int, row: Items, state: Floats) -> float:
    """What a user feels about a slate."""
    start(table, user, state, 0)
    for item in row:
        if item != EMPTY_SLOT:
            add(table, user, state, 0, item)
    return float(value(table, user, state, 0))


@kernel
def replay_rounds(
    experts: HedgeState,
    state: ExploringState,
    rules: Rules,
    paid: Ints,
    table: Table,
    slates: Items,
    done: int,
    rng: PublicWords,
    secret: SecretWords,
    user: Floats,
    probe: Items,
) -> int:
    """Rounds from `done` on, each answered at once, until one must be resumed."""
    while done < slates.shape[0] and next_round(
        experts, state, rules, paid, slates[done], probe, rng, secret
    ):
        if probe[0] != NO_PROBE:
            learn_probe(experts, probe, reward_of(table, done, slates[done], user))
        done += 1
    return done


class ExploringPolicy(SecretScoresPolicy):
    """Experts that learn from exploring rounds only, and draw again only when their rules say so."""

    reader = Rewards()

    def __init__(
        self, frame: Frame, rate: float | None, rules: Rules, draws: Draws, options: dict[str, Any]
    ) -> None:
        self.frame, self.budget, self._draws, self._options = frame, draws.budget, draws, options
        self.rate, self.rules = rate, rules
        self._experts = new_hedge(frame.n_items, frame.slots, rate)
        self._exploring = ExploringState(
            np.full(frame.slots, EMPTY_SLOT, dtype=np.int32),
            np.array([EVERYBODY]),
            np.zeros(frame.slots, dtype=np.int64),
            np.zeros(frame.slots, dtype=np.int64),
            np.zeros(1, dtype=np.int64),
        )

    # What is promised.

    def regret_bound(self, rounds: int | None = None) -> float | None:
        """What is proved, unless it never explores."""
        rules, n_items, slots = self.rules, self.frame.n_items, self.frame.slots
        rounds = rounds or self.frame.horizon
        if rounds is None:
            return None
        if self.rate is None:
            return bounds.own_rates_bandit(n_items, slots, rounds, rules.share)
        if rules.presampled:
            planned = int((rules.schedule < rounds).sum())
            return bounds.presampled_bandit(n_items, slots, rounds, self.rate, planned) if planned else None
        if rules.share == 0 or not rules.repeats:
            return None
        capped = slots if rules.resample == OWN else 1  # how many caps there are
        extra = capped * bounds.cap_excess(rounds, rules.share / capped, rules.cap)
        return bounds.bandit(n_items, slots, rounds, self.rate, rules.share, extra=extra)

    # The door: scores are secret, so every redraw passes through it, paid for before it is made.

    def draw(self, row: Items, probe: Items) -> bool:
        """The next slate and probe; False, with nothing changed, where a redraw is not paid for yet."""
        words = self.frame.public.view, self.frame.secret.view
        return draw_round(self._experts, self._exploring, self.rules, self._draws.paid, row, probe, *words)

    def resume(self, rounds: int = 1) -> None:
        """More words; and pay for the redraws that the next round begins with."""
        self.frame.resume(rounds)
        self._draws.pay(self._due())

    def _due(self) -> list[Use]:
        """The redraws that the next round begins with; an expert's first draw, which knows nothing, is not one."""
        due = int(self._exploring.due[0])
        if self.frame.rounds == 0 or due == NOBODY:
            return []
        experts = range(self.frame.slots) if due == EVERYBODY else (due,)
        return [(int(self._exploring.redraws[expert]), expert) for expert in experts]

    # Private: the expert that explored learns the reward as the gain of the item that it tried.

    def learn(self, place: int, answer: float) -> None:
        """Of an exploring round, the reward; of others, nothing."""
        learn_reward(self._experts, self.frame.decisions.probes[place], answer)

    def replay(self, users: Users, slates: Items, done: int) -> int:
        """Draw and learn, round by round, compiled."""
        state = self._experts, self._exploring, self.rules, self._draws.paid
        frame, room = self.frame, (np.empty(users.largest_state), np.empty(3, dtype=np.int32))

        def play(done: int, stop: int) -> int:
            words = frame.public.view, frame.secret.view
            return replay_rounds(*state, users.table, slates[:stop], done, *words, *room)

        return frame.stride(play, done, len(users))

    # What a snapshot holds.

    def parameters(self) -> dict[str, Any]:
        """The public numbers that it was made with; exploring rounds drawn beforehand are only counted."""
        if not self.rules.presampled:
            return dict(self._options)
        parameters = {name: self._options[name] for name in ("rate", "epsilon", "delta")}
        return parameters | {"explorations": len(self.rules.schedule)}

    def state(self) -> Any:
        """What experts have learned, and what is carried from round to round."""
        return (learned(self._experts), self._exploring) if self.rules.repeats else learned(self._experts)

    def restored(self) -> None:
        """Score classes follow from scores; what was paid for beyond the last redraw may be used up."""
        rebuild(self._experts)
        self._draws.restored(self._exploring.redraws)
