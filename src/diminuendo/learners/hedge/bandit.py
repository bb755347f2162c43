"""Ordered experts with bandit feedback: explore now and then, learn only from that (Streeter & Golovin).

All that comes back is one number, the reward. With probability `exploring` a round explores: a random slot i and a
random item a are drawn, the experts' items before slot i and then a are shown, and expert i learns the reward
as the gain of a. Other rounds show the experts' slate and teach nothing. An exploring slate is shorter
than k where i is.

Regret     as with full information plus exploring * T, the experts' own regrets being magnified by kN / exploring
           (docs/maths/hedge.md, Theorem 3). The default, k (N log N / T)^(1/3), balances the two; it is held
           below 1/2, where the bound says nothing any more.
Guarantee  none.
References Streeter & Golovin (2008), NIPS 21; Perez-Salazar & Cummings (2021), AISTATS, section 4.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from diminuendo import _validate
from diminuendo._numba import as_kernel, inline, kernel
from diminuendo.errors import InvalidInput
from diminuendo.experts.hedge import HedgeState, learn, learned, new_hedge, rebuild, settle
from diminuendo.learners.base.decisions import NO_PROBE
from diminuendo.learners.base.entry import Advice, Entry
from diminuendo.learners.base.feedback import Rewards
from diminuendo.learners.base.feedback_window import Patient
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.hedge import bounds
from diminuendo.learners.hedge.full import draw_slots
from diminuendo.learners.hedge.private_draws import FreeDraws, SecretScoresPolicy
from diminuendo.objectives.family import Table, add, start, value
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.sources import RandomSource
from diminuendo.randomness.ticks import to_ticks
from diminuendo.randomness.words import UNFINISHED, PublicWords, SecretWords, begin, below, undo
from diminuendo.streams.users import Users, shown_before
from diminuendo.types import EMPTY_SLOT, Floats, Items

COIN = 1 << 53
"""A coin lands on one of this many sides."""


def default_exploring(n_items: int, slots: int, rounds: int) -> float:
    """The share of exploring rounds that balances the bound."""
    return min(0.5, slots * math.cbrt(n_items * math.log(max(2, n_items)) / rounds))


class ExploreExploitPolicy(SecretScoresPolicy):
    """k ordered Hedge experts that learn from exploring rounds only, not private. `rate=None`: each finds its own."""

    reader = Rewards()

    def __init__(self, frame: Frame, exploring: float, rate: float | None) -> None:
        self.frame, self._draws, self.rate = frame, FreeDraws(frame), rate
        self.exploring = _validate.positive_float(exploring, "exploring")
        if self.exploring > 1:
            raise InvalidInput(f"exploring is a share of rounds, at most 1; got {exploring}.")
        self._options = {"exploring": self.exploring, "rate": rate}
        self._experts = new_hedge(frame.n_items, frame.slots, rate)

    # What is promised.

    def regret_bound(self, rounds: int | None = None) -> float | None:
        """Where each expert finds its own rate."""
        if rounds is None or self.rate is not None:
            return None
        return bounds.own_rates_bandit(self.frame.n_items, self.frame.slots, rounds, self.exploring)

    # The door: every slate is drawn from secret scores, and nothing is paid.

    def draw(self, row: Items, probe: Items) -> bool:
        """One item of each expert, or what stood before a slot and a random item."""
        words = self.frame.public.view, self.frame.secret.view
        return _draw_round(self._experts, self.exploring, row, probe, *words)

    # Private: the expert that explored learns the reward as the gain of the item that it tried.

    def learn(self, place: int, answer: float) -> None:
        """Of an exploring round, the reward; of others, nothing."""
        learn_reward(self._experts, self.frame.decisions.probes[place], answer)

    def replay(self, users: Users, slates: Items, done: int) -> int:
        """Draw and learn, round by round, compiled."""
        frame, room = self.frame, (np.empty(users.largest_state), np.empty(3, dtype=np.int32))

        def play(done: int, stop: int) -> int:
            words = frame.public.view, frame.secret.view
            return _replay(self._experts, self.exploring, users.table, slates[:stop], done, *words, *room)

        return frame.stride(play, done, len(users))

    # What a snapshot holds.

    def state(self) -> Any:
        """What experts have learned."""
        return learned(self._experts)

    def restored(self) -> None:
        """Score classes follow from scores."""
        rebuild(self._experts)


def explore_exploit(
    n_items: int,
    slots: int,
    *,
    exploring: float,
    rate: float | None = None,
    rng: RandomSource | None = None,
    feedback_window: Patient = None,
) -> Learner:
    """Return k ordered Hedge experts that learn from exploring rounds only. Bandit feedback, not private.

    Parameters
    ----------
    n_items : int
        Number of items.
    slots : int
        Number of items in a slate.
    exploring : float
        Share of rounds that explore, in (0, 1].
    rate : float, optional
        Learning rate. By default each expert finds its own.
    rng : RandomSource, optional
        Randomness. By default SystemSource.
    feedback_window : FeedbackWindow or int, optional
        Feedback window.

    Returns
    -------
    Learner

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Notes
    -----
    Expected regret of order k (N log N)^(1/3) T^(2/3) with `exploring` of order k (N log N / T)^(1/3) (Theorem 3 of
    docs/maths/hedge.md).

    References
    ----------
    Streeter & Golovin (2008), An online algorithm for maximizing submodular functions, NIPS 21.

    Examples
    --------
    >>> import diminuendo as dim
    >>> learner = dim.ExploreExploit(20, 3, exploring=0.5, rng=dim.SeededSource(1))
    >>> learner.choose_many(4)[0].probe is None, sorted(learner.reads)
    (False, ['bandit'])
    """
    frame = Frame("hedge-bandit", n_items, slots, rng=rng, feedback_window=feedback_window)
    return Learner(ExploreExploitPolicy(frame, exploring, rate))


def explore_exploit_for(
    setting: Setting, *, rng: RandomSource | None = None, ledger: Ledger | None = None
) -> Learner:
    """Explores as much as balances the bound for the rounds of the setting."""
    exploring = default_exploring(setting.n_items, setting.slots, setting.rounds)
    return explore_exploit(setting.n_items, setting.slots, exploring=exploring, rng=rng)


ExploreExploit = Entry(
    "hedge-bandit",
    explore_exploit,
    reads=Rewards.kinds,
    summary="one Hedge expert per slot, learns from exploring rounds; not private; the bandit yardstick",
    advice=Advice("none", "T^(2/3)", "scores", "as the non-private yardstick with one reward per slate"),
    fits=explore_exploit_for,
    private=False,
)


@inline
def _next_round(
    experts: HedgeState, exploring: float, row: Items, probe: Items, rng: PublicWords, secret: SecretWords
) -> bool:
    """The next slate, and the probe (slot, item, whether the expert drew that item itself)."""
    begin(rng)
    k = len(row)
    coin = below(COIN, rng)
    slot = below(k, rng) if coin != UNFINISHED else UNFINISHED
    item = below(experts.classes.totals.shape[0], rng) if slot != UNFINISHED else UNFINISHED
    if item == UNFINISHED or not draw_slots(experts, row, False, secret):
        undo(rng)
        return False
    probe[0] = NO_PROBE
    if coin < exploring * COIN:
        probe[0], probe[1], probe[2] = slot, item, row[slot] == item
        row[slot] = EMPTY_SLOT if shown_before(row, slot, item) else item
        for later in range(slot + 1, k):
            row[later] = EMPTY_SLOT
    return True


_draw_round = as_kernel(_next_round)


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
def _replay(
    experts: HedgeState,
    exploring: float,
    table: Table,
    slates: Items,
    done: int,
    rng: PublicWords,
    secret: SecretWords,
    state: Floats,
    probe: Items,
) -> int:
    while done < slates.shape[0] and _next_round(experts, exploring, slates[done], probe, rng, secret):
        if probe[0] != NO_PROBE:
            learn_probe(experts, probe, reward_of(table, done, slates[done], state))
        done += 1
    return done
