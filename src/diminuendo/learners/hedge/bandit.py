"""Ordered experts with bandit feedback: explore now and then, learn only from that (Streeter & Golovin).

All that comes back is one number, the payoff. With probability `exploring` a round explores: a random slot i and a
random item a are drawn, the experts' items before slot i and then a are shown, and expert i learns the payoff
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
from diminuendo.learners.base.feedback import Payoffs
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.patience import Patient
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.hedge import bounds
from diminuendo.learners.hedge.full import draw_slots
from diminuendo.learners.hedge.private_draws import FreeDraws, SecretScoresPolicy
from diminuendo.objectives.family import Table, add, start, value
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.coins import Coins
from diminuendo.randomness.ticks import to_ticks
from diminuendo.randomness.words import UNFINISHED, PublicWords, SecretWords, begin, below, undo
from diminuendo.streams.people import People, shown_before
from diminuendo.types import EMPTY_SLOT, Floats, Items

COIN = 1 << 53
"""A coin lands on one of this many sides."""


def default_exploring(n_items: int, slots: int, rounds: int) -> float:
    """The share of exploring rounds that balances the bound."""
    return min(0.5, slots * math.cbrt(n_items * math.log(max(2, n_items)) / rounds))


class ExploreExploitPolicy(SecretScoresPolicy):
    """k ordered Hedge experts that learn from exploring rounds only, not private. `rate=None`: each finds its own."""

    reader = Payoffs()

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

    # Private: the expert that explored learns the payoff as the gain of the item that it tried.

    def learn(self, place: int, answer: float) -> None:
        """Of an exploring round, the payoff; of others, nothing."""
        learn_payoff(self._experts, self.frame.decisions.probes[place], answer)

    def replay(self, people: People, slates: Items, done: int) -> int:
        """Draw and learn, round by round, compiled."""
        frame, room = self.frame, (np.empty(people.largest_state), np.empty(3, dtype=np.int32))

        def play(done: int, stop: int) -> int:
            words = frame.public.view, frame.secret.view
            return _replay(self._experts, self.exploring, people.table, slates[:stop], done, *words, *room)

        return frame.stride(play, done, len(people))

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
    coins: Coins | None = None,
    patience: Patient = None,
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
    coins : Coins, optional
        Randomness. By default SystemCoins.
    patience : Patience or int, optional
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
    >>> learner = dim.ExploreExploit(20, 3, exploring=0.5, coins=dim.SeededCoins(1))
    >>> learner.choose_many(4)[0].probe is None, sorted(learner.reads)
    (False, ['bandit'])
    """
    frame = Frame("hedge-bandit", n_items, slots, coins=coins, patience=patience)
    return Learner(ExploreExploitPolicy(frame, exploring, rate))


def explore_exploit_for(
    setting: Setting, *, coins: Coins | None = None, ledger: Ledger | None = None
) -> Learner:
    """Explores as much as balances the bound for the rounds of the setting."""
    exploring = default_exploring(setting.n_items, setting.slots, setting.rounds)
    return explore_exploit(setting.n_items, setting.slots, exploring=exploring, coins=coins)


ExploreExploit = Entry(
    "hedge-bandit",
    explore_exploit,
    reads=Payoffs.kinds,
    summary="one Hedge expert per slot, learns from exploring rounds; not private; the bandit yardstick",
    advice=Advice("none", "T^(2/3)", "scores", "as the non-private yardstick with one reward per slate"),
    fits=explore_exploit_for,
    private=False,
)


@inline
def _next_round(
    experts: HedgeState, exploring: float, row: Items, probe: Items, coins: PublicWords, secret: SecretWords
) -> bool:
    """The next slate, and the probe (slot, item, whether the expert drew that item itself)."""
    begin(coins)
    k = len(row)
    coin = below(COIN, coins)
    slot = below(k, coins) if coin != UNFINISHED else UNFINISHED
    item = below(experts.classes.totals.shape[0], coins) if slot != UNFINISHED else UNFINISHED
    if item == UNFINISHED or not draw_slots(experts, row, False, secret):
        undo(coins)
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
def learn_probe(experts: HedgeState, probe: Items, payoff: float) -> None:
    """The expert that explored learns the payoff as the gain of the item it tried; others, nothing."""
    if probe[0] != NO_PROBE:
        ticks = to_ticks(payoff)
        learn(experts, probe[0], probe[1], ticks)
        settle(experts, probe[0], ticks if probe[2] == 1 else 0)


learn_payoff = as_kernel(learn_probe)


@inline
def payoff_of(table: Table, person: int, row: Items, state: Floats) -> float:
    """What a person feels about a slate."""
    start(table, person, state, 0)
    for item in row:
        if item != EMPTY_SLOT:
            add(table, person, state, 0, item)
    return float(value(table, person, state, 0))


@kernel
def _replay(
    experts: HedgeState,
    exploring: float,
    table: Table,
    slates: Items,
    done: int,
    coins: PublicWords,
    secret: SecretWords,
    state: Floats,
    probe: Items,
) -> int:
    while done < slates.shape[0] and _next_round(experts, exploring, slates[done], probe, coins, secret):
        if probe[0] != NO_PROBE:
            learn_probe(experts, probe, payoff_of(table, done, slates[done], state))
        done += 1
    return done
