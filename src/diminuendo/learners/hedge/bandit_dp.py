r"""BanditDP, Algorithm 3 of the paper, and its relatives: k ordered Hedge experts that learn from one number a user.

Now and then a round explores (bandit.py). Experts draw again after an exploration only; in between the slate stays. All
of them are one policy (exploring.py):

`bandit-dp`          only the expert that explored redraws ("own"), or all of them, as printed ("all");
`draw="direct"`      all experts redraw in every round (the paper's appendix: regret of order T^(3/4));
`draw="presampled"`  exploring rounds are drawn before the first user comes, so that the rate can know their number;
`streeter-golovin-bandit`  the original: a redraw in every round, and no privacy.

The cap on explorations is the same for all users and decided by coins, so privacy does not rest on luck: there is no
tail to add to delta. Without a cap (`cap=None`, as printed) delta is averaged over the number of explorations, and the
guarantee is the epsilon at which that average is the delta asked for; on a ledger, or for users who have several
rounds, it is that of a run that explores in every round.

That average: a user's feedback matters only if their round explores, and then for the redraw right after it and for
those that later explorations make due. Coins are public and know nothing of users, so the law of everything seen is a
mixture over them, and its delta at any epsilon is at most the average of the delta given the coins
(docs/maths/paper.md, P2c):

    delta(epsilon) <= explores * sum over m of Pr(M = m) delta_{1 + m}(epsilon),   M ~ Binomial(later, again).

No tail bound is needed, so there is none to get wrong. The sum is taken over intervals of m, each at its upper end.

Regret     docs/maths/paper.md, Theorem P3.
Guarantee  one user's answer moves one score of one expert by at most one unit, so only that expert's later redraws
           count, each within a span of `rate` (docs/maths/paper.md, Theorem P2); `rate` * m for a user who has m
           rounds, wherever they fall (docs/maths/accounting.md, Theorem A9).
References Perez-Salazar & Cummings (2021), AISTATS, section 4; Streeter & Golovin (2008), NIPS 21.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import scipy

from diminuendo import _validate
from diminuendo.errors import InvalidInput, OverBudget
from diminuendo.learners.base.entry import Advice, Entry
from diminuendo.learners.base.feedback import Rewards
from diminuendo.learners.base.feedback_window import Patient
from diminuendo.learners.base.frame import Frame, checked_rng
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.hedge import constants
from diminuendo.learners.hedge.bandit import share_of_rounds
from diminuendo.learners.hedge.constants import CALIBRATIONS, NOT_FOR_USE, Calibration, Resample
from diminuendo.learners.hedge.exploring import ALL, EVERY, OWN, ExploringPolicy, Rules
from diminuendo.learners.hedge.private_draws import PrivateDraws, as_planned, claimed, recipe_arguments
from diminuendo.privacy import curves
from diminuendo.privacy.budget import Budget, Guarantee
from diminuendo.privacy.draw_budget import UNLIMITED, DrawBudget
from diminuendo.privacy.ledger import Ledger
from diminuendo.privacy.rounding import rounded_up
from diminuendo.randomness.sources import RandomSource
from diminuendo.types import Ints

INTERVALS = 400
"""Into how many intervals the number of explorations is cut, where delta is averaged over it."""
BETA_ROUNDING, SUM_ROUNDING = 1e-12, 1e-12
"""More than a beta integral, beside the 8 roundings allowed for its exponents, which are up to `later`; and more than
differences of rising costs and a sum of INTERVALS products round away."""

MOST_KEPT, CHUNK = 1 << 24, 1 << 20
"""The most exploring rounds that are kept in memory, and for how many rounds coins are tossed at a time."""

REDRAWERS: dict[Resample, int] = {"all": ALL, "own": OWN, "every": EVERY}

NAME = "bandit-dp"


def delta_over_draws(later: int, explores: float, again: float, rate: float, epsilon: float) -> float:
    """Delta at `epsilon` of redraws within a span of `rate` each: 1 + Binomial(later, again) of them, if the round
    explores, which it does with probability `explores`. Rounded up, and so never 0."""
    later = max(0, later)
    mean, spread = later * again, math.sqrt(later * again * (1 - again)) + 1
    ends = np.clip(np.floor(mean + spread * np.linspace(-12, 40, INTERVALS)), 0, later).astype(np.int64)
    ends = np.unique(np.append(ends, later))
    beyond = np.ones(len(ends))  # the chance of more than the interval before has, as a beta integral
    beyond[1:] = scipy.special.betainc(ends[:-1] + 1.0, later - ends[:-1], again) + math.ulp(0.0)
    beyond[1:] *= 1 + BETA_ROUNDING + later * 2.0**-50
    step = Fraction(rate) ** 2 / 8
    costs = [curves.zcdp_delta(rounded_up((1 + m) * step), epsilon) for m in ends.tolist()]
    # By parts, sum over intervals of Pr(M beyond the interval before) * (cost here - cost before): with rising costs
    # a chance that is rounded up makes the sum larger, and small chances keep all their digits.
    more = np.diff(np.maximum.accumulate(costs), prepend=0.0)
    explores += 2.0**-53  # a coin has 2^53 sides, of which a whole number explores
    result = explores * float(np.minimum(beyond, 1.0) @ more) * (1 + SUM_ROUNDING)
    return min(1.0, result) or math.ulp(0.0)


# Recipes.


def bandit_dp(
    n_items: int,
    slots: int,
    *,
    exploring: float,
    cap: int | None,
    resample: Resample = "own",
    explore_at: Sequence[int] | Ints | None = None,
    horizon: int,
    rate: float,
    epsilon: float,
    delta: float,
    max_rounds_per_user: int = 1,
    ledger: Ledger | None = None,
    rng: RandomSource | None = None,
    feedback_window: Patient = None,
) -> Learner:
    """Return BanditDP, Algorithm 3 of the paper: exploring Hedge experts with private draws. Bandit feedback.

    Parameters
    ----------
    n_items : int
        Number of items.
    slots : int
        Number of items in a slate.
    exploring : float
        Share of rounds that explore, from 0 to 1.
    cap : int or None
        Maximum number of explorations, of one expert ("own") or of all together ("all"). None: no maximum, as
        printed. On a ledger an uncapped run is priced as if every round explored.
    resample : {"own", "all", "every"}, default "own"
        Which experts redraw after an exploration: the one that explored, all, or all in every round.
    horizon : int
        Number of rounds.
    rate : float
        Learning rate of the Hedge experts, per unit of gain.
    epsilon : float
        Privacy budget that was asked for; `LEARNERS["bandit-dp"].for_setting` finds the constants for it.
    delta : float
        0 is counted as pure, anything above as zCDP.
    max_rounds_per_user : int, default 1
        Contribution bound: how many rounds of one user count.
    explore_at : sequence of int, optional
        Exploring rounds that were drawn beforehand, in place of `exploring` and `cap`; all experts redraw.
    ledger : Ledger, optional
        What is charged. By default a ledger of its own, in memory.
    rng : RandomSource, optional
        Randomness. By default SystemSource.
    feedback_window : FeedbackWindow or int, optional
        Feedback window.

    Returns
    -------
    Learner

    Raises
    ------
    OverBudget
        If the ledger cannot pay for the run.
    InvalidInput
        If an argument is out of range.

    Notes
    -----
    A user's feedback moves one score of one expert by at most one unit, so only that expert's later redraws count,
    each of bounded range `rate` (Theorem P2, a, of docs/maths/paper.md). The cap bounds their number whatever the
    coins (P2, b). Without a cap, delta is the average over the public coins (P2, c). Regret is Theorem P3.

    References
    ----------
    Perez-Salazar & Cummings (2021), Differentially private online submodular maximization, AISTATS, Algorithm 3.

    Examples
    --------
    >>> import diminuendo as dim
    >>> setting = dim.Setting(n_items=20, slots=3, rounds=100_000, feedback="bandit", epsilon=1.0, delta=1e-6)
    >>> learner = dim.make("bandit-dp", setting, rng=dim.SeededSource(1))
    >>> round(learner.guarantee.epsilon, 3), learner.guarantee.proof
    (1.0, 'docs/maths/paper.md, Theorem P2')
    """
    share = share_of_rounds(exploring)
    cap = None if cap is None else _validate.whole(cap, 0, UNLIMITED, "cap")
    resample = _validate.one_of(resample, tuple(REDRAWERS), "resample")
    frame = Frame(
        NAME,
        n_items,
        slots,
        horizon=horizon,
        max_rounds_per_user=max_rounds_per_user,
        ledger=ledger,
        rng=rng,
        feedback_window=feedback_window,
    )
    rounds, rate = _validate.positive_int(horizon, "horizon"), _validate.positive_float(rate, "rate")
    budget = Budget(epsilon, delta, frame.unit, constants.accountant_for(delta))
    if explore_at is not None:
        schedule = _checked_rounds(explore_at)
        rules = Rules(0.0, len(schedule), ALL, schedule, True)
        claim = claimed(frame, budget, rate, len(schedule) + 1, "Appendix B.2")
        options = {"exploring": 0.0, "cap": len(schedule), "resample": "all", "explore_at": schedule.tolist()}
        return _exploring(frame, rate, budget, rules, min(rounds - 1, len(schedule)), claim, options)
    most = rounds - 1  # redraws of one expert: none before the first round
    if resample != "every" and cap is not None:
        most = min(most, cap)
    if resample == "every":
        source, draws, tail = "Appendix B.1", float(rounds), 0.0
    else:
        source, draws = "Theorem 7", max(1.0, 2 * share * rounds)
        # The theorem's exponent is for its own gamma, the proof's for any.
        tail = math.exp(-8 * min(share**2 * rounds, math.cbrt(rounds)))
    average = None
    again = share / frame.slots if resample == "own" else share
    if (
        cap is None
        and resample != "every"
        and frame.max_rounds_per_user == 1
        and ledger is None
        and again < 1
    ):
        # Over the coins after one given round. Where the rounds of one user may be chosen in the light of earlier
        # coins, an average proves nothing, and every round is counted as an exploration. So it is on a ledger, which
        # is charged for the coins as they fall: what is promised is never less than what is charged.
        average = partial(delta_over_draws, rounds - 2, share, again, rate)
    rules = Rules(share, rounds if cap is None else cap, REDRAWERS[resample])
    claim = claimed(frame, budget, rate, draws, source, tail)
    options = {"exploring": share, "cap": cap, "resample": resample}
    return _exploring(frame, rate, budget, rules, most, claim, options, average)


def _checked_rounds(explore_at: Sequence[int] | Ints) -> Ints:
    """Exploring rounds that were drawn beforehand: memory for delta."""
    given = np.asarray(explore_at)
    whole = given.ndim == 1 and (given.size == 0 or np.issubdtype(given.dtype, np.integer))
    if not whole or (given[:1] < 0).any() or (np.diff(given) <= 0).any() or (given >= 1 << 62).any():
        raise InvalidInput("explore_at must be rounds, counted from 0, each once and in order.")
    return given.astype(np.int64)


def _exploring(
    frame: Frame,
    rate: float,
    budget: Budget,
    rules: Rules,
    most: int,
    claim: Guarantee,
    options: dict[str, Any],
    average: Callable[[float], float] | None = None,
) -> Learner:
    """Experts of which each makes at most `most` redraws; `average`: delta over the coins, where that is less."""
    paid = DrawBudget(most, 1, rate, frame.ledger, experts=frame.slots, secure=frame.rng.secure)
    draws = PrivateDraws(frame, budget, paid, "docs/maths/paper.md, Theorem P2", claim, average)
    options = {"rate": rate, "epsilon": budget.epsilon, "delta": budget.delta} | options
    return Learner(ExploringPolicy(frame, rate, rules, draws, options))


# With the constants that fit a setting.


def calibrated(
    setting: Setting,
    calibration: Calibration,
    *,
    resample: Resample | None = None,
    capped: bool | None = None,
    rng: RandomSource | None = None,
    ledger: Ledger | None = None,
) -> Learner:
    """With the paper's constants, or those that make the proved bound least.

    Where nothing is said, the paper's calibration is as printed: all experts redraw, and nothing is capped; the tight
    one redraws the expert that learned, its "own", and is capped.
    """
    printed = constants.checked(calibration) == "paper"
    resample = resample or ("all" if printed else "own")
    capped = not printed if capped is None else capped
    result = constants.bandit(setting, calibration, resample)
    learner = bandit_dp(
        **recipe_arguments(setting, rng, ledger),
        exploring=result.share,
        cap=result.cap if capped else None,
        resample=resample,
        rate=result.rate,
    )
    try:
        return as_planned(learner, calibration, ledger)
    except OverBudget as error:
        if capped or resample == "every":
            raise
        raise OverBudget(
            f"{error} Uncapped, as printed, each of {setting.rounds:,} rounds may explore: with capped=True a run "
            f"makes at most {result.cap:,} explorations and costs accordingly; without a ledger the guarantee is an "
            "average over the public coins."
        ) from None


def presampled(
    setting: Setting,
    calibration: Calibration,
    *,
    rng: RandomSource | None = None,
    ledger: Ledger | None = None,
) -> Learner:
    """Draw the exploring rounds with public coins, then take the rate that their number allows."""
    source, share = checked_rng(rng), constants.bandit(setting, calibration, "all").share
    if share * setting.rounds > MOST_KEPT:
        raise InvalidInput(
            f"About {share * setting.rounds:,.0f} exploring rounds would have to be kept in memory, more than "
            f"{MOST_KEPT:,}. Leave draw='presampled' out: 'bandit-dp' keeps none."
        )
    parts = []
    for first in range(0, setting.rounds, CHUNK):
        words = source.public(min(CHUNK, setting.rounds - first))
        parts.append(first + np.flatnonzero((words >> np.uint64(11)) < share * 2.0**53))
    explore_at = np.concatenate(parts)
    rate = constants.presampled_rate(setting, calibration, len(explore_at))
    learner = bandit_dp(
        **recipe_arguments(setting, source, ledger), exploring=0.0, cap=None, explore_at=explore_at, rate=rate
    )
    return as_planned(learner, calibration, ledger)


def _variant(draw: str, calibration: Calibration) -> dict[str, Any]:
    """The entry that draws otherwise, or with the paper's constants."""
    summary = {
        "online": "Algorithm 3 as printed, with the paper's own constants: often explores in every round",
        "direct": "the paper's direct bandit: redraws in every round; shows why Algorithm 3 does not",
        "presampled": "Algorithm 3 with exploring rounds drawn beforehand; memory grows with their number",
    }[draw]
    when = {
        "direct": "to see why Algorithm 3 redraws so rarely",
        "presampled": "to study exploring rounds drawn beforehand",
    }
    printed = calibration == "paper"
    if printed and draw != "online":
        summary += "; the paper's own constants"
    fits: Any = partial(presampled, calibration=calibration)
    if draw != "presampled":
        fits = partial(calibrated, calibration=calibration, resample="every" if draw == "direct" else None)
    return {
        "summary": summary,
        "advice": Advice(
            "below ε" if printed else "(ε, δ)",
            "T^(3/4)" if draw == "direct" else "T^(2/3)",
            "scores",
            NOT_FOR_USE if printed else when[draw],
        ),
        "fits": fits,
    }


BanditDp = Entry(
    NAME,
    bandit_dp,
    reads=Rewards.kinds,
    summary="the paper's Algorithm 3 with the best constants its budget allows; bandit",
    advice=Advice("(ε, δ)", "T^(2/3)", "scores", "with one reward per slate and millions of users"),
    fits=partial(calibrated, calibration="tight"),
    choices={"draw": ("online", "direct", "presampled")} | CALIBRATIONS,
    vary=_variant,
)
