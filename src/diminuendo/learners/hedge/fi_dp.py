"""FI-DP, Algorithm 2 of the paper: k ordered Hedge experts whose draws are private, full information.

The experts are those of full.py. As printed, they may repeat each other's items: such a slot stays empty. With a rate
that ignores privacy it is the algorithm of Streeter and Golovin.

Regret     at most rate * T + k log N / rate beyond (1 - 1/e) of the best slate (docs/maths/paper.md, Theorem P3).
Guarantee  draws of rounds 2 to T, k each, within a span of 2 * rate (docs/maths/paper.md, Theorem P1); of 2 * rate * m
           for a user who has m rounds (docs/maths/accounting.md, Theorem A9).
Assumes    nothing about users: gains are clipped to [0, 1], in whole ticks.
Excludes   timing; rewards; and what is not a slate: scores are secret for good.
References Perez-Salazar & Cummings (2021), AISTATS, section 3; Streeter & Golovin (2008), NIPS 21.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from diminuendo import _validate
from diminuendo.learners.base.entry import Advice, Entry
from diminuendo.learners.base.feedback_window import Patient
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.hedge import constants
from diminuendo.learners.hedge.constants import CALIBRATIONS, NOT_FOR_USE, Calibration
from diminuendo.learners.hedge.full import FullInformationPolicy
from diminuendo.learners.hedge.private_draws import (
    FreeDraws,
    PrivateDraws,
    as_planned,
    claimed,
    recipe_arguments,
)
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.draw_budget import DrawBudget
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.sources import RandomSource

NAME = "fi-dp"
READS = FullInformationPolicy.reader.kinds


def fi_dp(
    n_items: int,
    slots: int,
    *,
    horizon: int,
    rate: float,
    epsilon: float,
    delta: float,
    max_rounds_per_user: int = 1,
    ledger: Ledger | None = None,
    rng: RandomSource | None = None,
    feedback_window: Patient = None,
) -> Learner:
    """Return FI-DP, Algorithm 2 of the paper: k ordered Hedge experts with private draws. Full information.

    Parameters
    ----------
    n_items : int
        Number of items.
    slots : int
        Number of items in a slate.
    horizon : int
        Number of rounds.
    rate : float
        Learning rate of the Hedge experts, per unit of gain.
    epsilon : float
        Privacy budget that was asked for; `LEARNERS["fi-dp"].for_setting` finds the rate for it.
    delta : float
        0 is counted as pure, anything above as zCDP.
    max_rounds_per_user : int, default 1
        Contribution bound: how many rounds of one user count.
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
    The run makes k (T - 1) draws of bounded range 2 * rate: (k (T - 1) rate**2 / 2)-zCDP (Theorem P1 of
    docs/maths/paper.md). `guarantee` states the epsilon that follows. Expected regret at most rate * T + k log N /
    rate (Theorem P3).

    References
    ----------
    Perez-Salazar & Cummings (2021), Differentially private online submodular maximization, AISTATS, Algorithm 2.

    Examples
    --------
    >>> import diminuendo as dim
    >>> setting = dim.Setting(n_items=20, slots=3, rounds=10_000, feedback="full", epsilon=1.0, delta=1e-6)
    >>> learner = dim.make("fi-dp", setting, rng=dim.SeededSource(1))
    >>> round(learner.parameters["rate"], 5), round(learner.guarantee.epsilon, 3)
    (0.00127, 1.0)
    """
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
    rate = _validate.positive_float(rate, "rate")
    budget = Budget(epsilon, delta, frame.unit, constants.accountant_for(delta))
    rounds = _validate.positive_int(horizon, "horizon")
    draws = PrivateDraws(
        frame,
        budget,
        # The first round's draws are uniform whatever users say; the last user's feedback is never used.
        DrawBudget(rounds - 1, frame.slots, 2 * rate, ledger, secure=frame.rng.secure),
        "docs/maths/paper.md, Theorem P1",
        claimed(frame, budget, rate, rounds, "Theorem 5"),
    )
    options = {"rate": rate, "epsilon": budget.epsilon, "delta": budget.delta}
    return Learner(FullInformationPolicy(frame, rate, draws, repeats=True, options=options))


def calibrated(
    setting: Setting,
    calibration: Calibration,
    *,
    rng: RandomSource | None = None,
    ledger: Ledger | None = None,
) -> Learner:
    """Algorithm 2 with the paper's rate, or the largest that the same budget allows."""
    rate = constants.full_information(setting, calibration)
    learner = fi_dp(**recipe_arguments(setting, rng, ledger), rate=rate)
    return as_planned(learner, calibration, ledger)


def streeter_golovin(
    n_items: int,
    slots: int,
    *,
    rate: float,
    rng: RandomSource | None = None,
    feedback_window: Patient = None,
) -> Learner:
    """Return Algorithm 2 without privacy: the algorithm of Streeter and Golovin. Full information.

    Parameters
    ----------
    n_items : int
        Number of items.
    slots : int
        Number of items in a slate.
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

    Notes
    -----
    Expected regret at most rate * T + k log N / rate (Theorem P3 of docs/maths/paper.md). Repeated items leave
    slots empty.

    References
    ----------
    Streeter & Golovin (2008), An online algorithm for maximizing submodular functions, NIPS 21.
    """
    frame = Frame("streeter-golovin", n_items, slots, rng=rng, feedback_window=feedback_window)
    rate = _validate.positive_float(rate, "rate")
    return Learner(FullInformationPolicy(frame, rate, FreeDraws(frame), repeats=True, options={"rate": rate}))


def streeter_golovin_for(
    setting: Setting, *, rng: RandomSource | None = None, ledger: Ledger | None = None
) -> Learner:
    """The original with the rate that balances the bound, sqrt(k log N / T)."""
    rate = math.sqrt(setting.slots * math.log(max(2, setting.n_items)) / setting.rounds)
    return streeter_golovin(setting.n_items, setting.slots, rate=min(constants.FASTEST, rate), rng=rng)


def _with_calibration(calibration: Calibration) -> dict[str, Any]:
    """The entry for another calibration than `tight`."""
    return {
        "summary": "Algorithm 2 with the paper's own rate: near random choice on real streams",
        "advice": Advice("below ε", "√T / ε", "scores", NOT_FOR_USE),
        "fits": partial(calibrated, calibration=calibration),
    }


FiDp = Entry(
    NAME,
    fi_dp,
    reads=READS,
    summary="the paper's Algorithm 2 with the best rate its budget allows; full information",
    advice=Advice("(ε, δ)", "√T / ε", "scores", "for the paper's Algorithm 2 at its best"),
    fits=partial(calibrated, calibration="tight"),
    audited_on=((4, 1, 2),),
    choices=CALIBRATIONS,
    vary=_with_calibration,
)

StreeterGolovin = Entry(
    "streeter-golovin",
    streeter_golovin,
    reads=READS,
    summary="Hedge experts as in 2008, one textbook rate; not private; what the paper builds on",
    advice=Advice("none", "√(kT log N)", "scores", "as what the paper builds on"),
    fits=streeter_golovin_for,
    private=False,
)
