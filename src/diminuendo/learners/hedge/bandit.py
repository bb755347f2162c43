"""Bandit learners without privacy: the yardstick, and what the paper builds on (Streeter & Golovin).

`hedge-bandit` has experts that find their own rates and never repeat an item; `streeter-golovin-bandit` is as printed.
How they explore and learn is in exploring.py.

Regret     as with full information plus exploring * T, the experts' own regrets being magnified by kN / exploring
           (docs/maths/hedge.md, Theorem 3). The default, k (N log N / T)^(1/3), balances the two; it is held
           below 1/2, where the bound says nothing any more.
Guarantee  none.
References Streeter & Golovin (2008), NIPS 21; Perez-Salazar & Cummings (2021), AISTATS, section 4.
"""

from __future__ import annotations

import math

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.entry import Advice, Entry
from diminuendo.learners.base.feedback import Rewards
from diminuendo.learners.base.feedback_window import Patient
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.hedge import bounds, constants
from diminuendo.learners.hedge.exploring import EVERY, ExploringPolicy, Rules
from diminuendo.learners.hedge.private_draws import FreeDraws
from diminuendo.privacy.draw_budget import UNLIMITED
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.sources import RandomSource


def default_exploring(n_items: int, slots: int, rounds: int) -> float:
    """The share of exploring rounds that balances the bound."""
    return min(0.5, slots * math.cbrt(n_items * math.log(max(2, n_items)) / rounds))


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
    rules = Rules(bounds.checked_exploring(exploring), UNLIMITED, EVERY, repeats=False)
    options = {"exploring": rules.share, "rate": rate}
    return Learner(ExploringPolicy(frame, rate, rules, FreeDraws(frame), options))


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


def streeter_golovin_bandit(
    n_items: int,
    slots: int,
    *,
    exploring: float,
    rate: float,
    rng: RandomSource | None = None,
    feedback_window: Patient = None,
) -> Learner:
    """Return Algorithm 3 without privacy: every expert draws in every round. Bandit feedback.

    Parameters
    ----------
    n_items : int
        Number of items.
    slots : int
        Number of items in a slate.
    exploring : float
        Share of rounds that explore, from 0 to 1.
    rate : float
        Learning rate of the Hedge experts, per unit of gain.
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

    References
    ----------
    Streeter & Golovin (2008), An online algorithm for maximizing submodular functions, NIPS 21.
    """
    frame = Frame("streeter-golovin-bandit", n_items, slots, rng=rng, feedback_window=feedback_window)
    share, rate = share_of_rounds(exploring), _validate.positive_float(rate, "rate")
    rules = Rules(share, UNLIMITED, EVERY)
    options = {"exploring": share, "rate": rate}
    return Learner(ExploringPolicy(frame, rate, rules, FreeDraws(frame), options))


def streeter_golovin_bandit_for(
    setting: Setting, *, rng: RandomSource | None = None, ledger: Ledger | None = None
) -> Learner:
    """The original with the constants that make the bound least; k (N log N / T)^(1/3) of the rounds explore."""
    n, k, rounds = setting.n_items, setting.slots, setting.rounds
    exploring = default_exploring(n, k, rounds)
    rate = math.sqrt(k * n * math.log(max(2, n)) / (exploring * rounds))
    return streeter_golovin_bandit(n, k, exploring=exploring, rate=min(constants.FASTEST, rate), rng=rng)


StreeterGolovinBandit = Entry(
    "streeter-golovin-bandit",
    streeter_golovin_bandit,
    reads=Rewards.kinds,
    summary="exploring Hedge experts as in 2008, textbook constants; not private",
    advice=Advice("none", "T^(2/3)", "scores", "as what the paper builds on"),
    fits=streeter_golovin_bandit_for,
    private=False,
)


def share_of_rounds(value: float) -> float:
    """A probability, 0 allowed."""
    if value == 0 and not isinstance(value, bool):
        return 0.0
    share = _validate.positive_float(value, "exploring")
    if share > 1:
        raise InvalidInput(f"exploring is a share of rounds, at most 1; got {value}.")
    return share
