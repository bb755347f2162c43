"""The paper: every algorithm of "Differentially Private Online Submodular Maximization", by its name.

Sebastian Perez-Salazar and Rachel Cummings (2021), AISTATS. To read an algorithm, open `paper.algorithms`: one plain
function each, beside the paper's pseudocode. The functions here make the compiled learners, which tests hold to these.

Each takes `calibration="paper"`, which is the algorithm as printed, its constants letter by letter; or `"tight"`, the
default: the best constants that the same guarantee allows. In `bandit_dp` and `continuous`, `"tight"` changes more than
constants; their docstrings say what. A learner has a `guarantee`, which is proved here, and a `claim`, which is what
the paper's own analysis says about the same run.

Do not deploy the paper's constants: at epsilon 1 they are near random choice on real streams (docs/paper.md). Where a
formula leaves its range, an `OutOfRange` warning says how many rounds it would need. What does not hold as printed
is in docs/errata.md; bounds on the regret, as functions, are in `paper.bounds`.

>>> from diminuendo import paper
>>> learner = paper.fi_dp(50, 5, rounds=100_000, epsilon=1.0, delta=1e-6, calibration="paper")
>>> rate = learner.parameters["rate"]
>>> print(f"{rate:.4e} claims epsilon {learner.claim.epsilon:.2f}, and is {learner.guarantee.epsilon:.3f}")
2.8467e-05 claims epsilon 1.00, and is 0.078
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from diminuendo.continuous.domains import Domain
from diminuendo.continuous.frank_wolfe import MetaFrankWolfe, NoiseKind
from diminuendo.experts.hedge import Hedge
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.hedge import bandit_dp as algorithm_3
from diminuendo.learners.hedge import fi_dp as algorithm_2
from diminuendo.learners.hedge import fi_pure as pure_experts
from diminuendo.learners.hedge.bandit import StreeterGolovinBandit
from diminuendo.learners.hedge.constants import Calibration, Resample
from diminuendo.learners.hedge.fi_dp import StreeterGolovin
from diminuendo.offline.private_greedy import private_greedy
from diminuendo.paper import algorithms, bounds
from diminuendo.paper.one_expert import PrivateHedge
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.sources import RandomSource
from diminuendo.types import FeedbackKind


def hedge(n_items: int, rate: float) -> Hedge:
    """Return Algorithm 1: draws action a with probability proportional to exp(rate * total gain of a). Not private.

    To read it: `paper.algorithms.hedge`.

    Parameters
    ----------
    n_items : int
        Number of actions.
    rate : float
        Learning rate.

    Returns
    -------
    Hedge

    Examples
    --------
    >>> from diminuendo import paper
    >>> paper.hedge(3, rate=0.5).probabilities().round(3).tolist()
    [0.333, 0.333, 0.333]
    """
    return Hedge(n_items, rate)


private_hedge = PrivateHedge
"""Algorithm 1 as a private algorithm (Proposition 2), with that rate or the largest."""


@dataclass(frozen=True)
class Algorithm:
    """An algorithm of the paper that chooses slates and is (epsilon, delta)-DP: call it to make a learner.

    To read it: the function of the same name in `paper.algorithms`.

    Attributes
    ----------
    feedback : {"full", "bandit"}
        What users report.
    calibrated : callable
        Makes the learner of a setting, for a calibration.

    Examples
    --------
    >>> from diminuendo import paper
    >>> learner = paper.fi_dp(20, 3, rounds=1_000, epsilon=1.0, delta=1e-6)
    >>> learner.name, learner.guarantee.proof
    ('fi-dp', 'docs/maths/paper.md, Theorem P1')
    """

    feedback: FeedbackKind
    calibrated: Callable[..., Learner]

    def __call__(
        self,
        n_items: int,
        slots: int,
        rounds: int,
        epsilon: float,
        delta: float,
        *,
        calibration: Calibration = "tight",
        ledger: Ledger | None = None,
        rng: RandomSource | None = None,
    ) -> Learner:
        """Make a learner.

        Parameters
        ----------
        n_items, slots, rounds : int
            N, k and T.
        epsilon, delta : float
            Privacy budget.
        calibration : {"tight", "paper"}, default "tight"
            The best constants that the proved guarantee allows, or those that the paper prints.
        ledger : Ledger, optional
            What is charged. By default a ledger in memory.
        rng : RandomSource, optional
            Randomness. By default SystemSource.

        Returns
        -------
        Learner
            `guarantee` is what is proved here, `claim` what the paper's analysis says.

        Raises
        ------
        InvalidInput
            If an argument is out of range.
        OverBudget
            If the ledger cannot pay.
        """
        setting = Setting(n_items, slots, rounds, self.feedback, epsilon, delta)
        return self.calibrated(setting, calibration, ledger=ledger, rng=rng)


fi_dp = Algorithm("full", algorithm_2.calibrated)
"""Algorithm 2: k ordered private Hedge experts, full information. To read it: `paper.algorithms.fi_dp`."""

direct_bandit = Algorithm("bandit", partial(algorithm_3.calibrated, resample="every"))
"""Appendix B.1, the direct approach: all experts draw again in every round; regret of order T^(3/4).

To read it: `paper.algorithms.direct_bandit`.
"""

presampled_bandit = Algorithm("bandit", algorithm_3.presampled)
"""Appendix B.2: Algorithm 3 with exploring rounds drawn beforehand, memory for delta.

To read it: `paper.algorithms.presampled_bandit`.
"""


def fi_pure(
    n_items: int,
    slots: int,
    rounds: int,
    epsilon: float,
    *,
    calibration: Calibration = "tight",
    ledger: Ledger | None = None,
    rng: RandomSource | None = None,
) -> Learner:
    """Return the remark after Algorithm 2: purely private experts of Thakurta and Smith instead of Hedge.

    To read it: `paper.algorithms.fi_pure`.

    Parameters
    ----------
    n_items, slots, rounds : int
        N, k and T.
    epsilon : float
        Privacy budget.
    calibration : {"tight", "paper"}, default "tight"
        The curvature that makes the proved bound least, or the printed one.
    ledger : Ledger, optional
        What is charged. By default a ledger in memory.
    rng : RandomSource, optional
        Randomness. By default SystemSource.

    Returns
    -------
    Learner

    Notes
    -----
    (epsilon, 0)-DP in real arithmetic (Theorem P4 of docs/maths/paper.md); not for serving users.

    Examples
    --------
    >>> from diminuendo import paper
    >>> learner = paper.fi_pure(20, 3, rounds=1_000, epsilon=1.0)
    >>> learner.guarantee.delta, learner.guarantee.exact, learner.guarantee.proof
    (0.0, False, 'docs/maths/paper.md, Theorem P4')
    """
    setting = Setting(n_items, slots, rounds, "full", epsilon, 0.0)
    return pure_experts.calibrated(setting, calibration, ledger=ledger, rng=rng)


def bandit_dp(
    n_items: int,
    slots: int,
    rounds: int,
    epsilon: float,
    delta: float,
    *,
    calibration: Calibration = "tight",
    resample: Resample | None = None,
    capped: bool | None = None,
    ledger: Ledger | None = None,
    rng: RandomSource | None = None,
) -> Learner:
    """Return Algorithm 3: explore with a small probability, and redraw only after that.

    To read it: `paper.algorithms.bandit_dp`. `calibration="paper"` is the pseudocode as printed: after an
    exploration all experts redraw (`resample="all"`), and nothing bounds the number of explorations
    (`capped=False`). "tight" changes more than numbers: only the expert that learned redraws ("own"), and
    explorations are capped, so that the cost of a run does not depend on random draws. Each can be combined with either
    calibration.

    Parameters
    ----------
    n_items, slots, rounds : int
        N, k and T.
    epsilon, delta : float
        Privacy budget.
    calibration : {"tight", "paper"}, default "tight"
        The constants that make the proved bound least, or the printed ones.
    resample : {"own", "all", "every"}, optional
        Which experts redraw.
    capped : bool, optional
        Whether explorations are capped.
    ledger : Ledger, optional
        What is charged. By default a ledger in memory.
    rng : RandomSource, optional
        Randomness. By default SystemSource.

    Returns
    -------
    Learner

    Raises
    ------
    OverBudget
        If the ledger cannot pay; an uncapped run is priced as if every round explored.

    Notes
    -----
    Theorems P2 and P3 of docs/maths/paper.md.

    Examples
    --------
    >>> from diminuendo import paper
    >>> printed = paper.bandit_dp(20, 3, 100_000_000, epsilon=1.0, delta=1e-6, calibration="paper")
    >>> printed.parameters["resample"], printed.parameters["cap"], round(printed.claim.epsilon, 6)
    ('all', None, 1.0)
    """
    setting = Setting(n_items, slots, rounds, "bandit", epsilon, delta)
    return algorithm_3.calibrated(
        setting, calibration, resample=resample, capped=capped, ledger=ledger, rng=rng
    )


def continuous(
    domain: Domain,
    rounds: int,
    epsilon: float,
    delta: float = 0.0,
    *,
    gradient_bound: float,
    smoothness: float,
    calibration: Calibration = "tight",
    noise: NoiseKind | None = None,
    **more: Any,
) -> MetaFrankWolfe:
    """Return Algorithm 4: K private leaders climb a continuous DR-submodular function together.

    To read it: `paper.algorithms.continuous`. `calibration="paper"` is as printed: pure Gamma-norm noise, its own
    number of copies, a release after every round. "tight" chooses copies and releases by the proved bound. Without
    a delta its noise is Gamma-norm too, padded to the same law in every release; with one, it is Gaussian noise on
    all copies together.

    Parameters
    ----------
    domain : Domain
        Points that may be played.
    rounds : int
        T.
    epsilon : float
        Privacy budget.
    delta : float, default 0.0
        0 for Gamma-norm noise.
    gradient_bound, smoothness : float
        Public bounds on gradients and on how fast they change.
    calibration : {"tight", "paper"}, default "tight"
        As above.
    noise : {"gaussian", "gamma"}, optional
        By default it follows from delta.
    **more
        Options of `MetaFrankWolfe`.

    Returns
    -------
    MetaFrankWolfe

    Notes
    -----
    Theorems C1 to C6 of docs/maths/continuous.md.

    Examples
    --------
    >>> from diminuendo import paper
    >>> from diminuendo.continuous import Box
    >>> learner = paper.continuous(Box([1.0, 1.0]), 1_000, epsilon=1.0, gradient_bound=1.0, smoothness=1.0)
    >>> learner.noise, learner.guarantee.delta, learner.guarantee.exact
    ('gamma', 0.0, False)
    """
    return MetaFrankWolfe(
        domain,
        rounds,
        gradient_bound=gradient_bound,
        smoothness=smoothness,
        noise=noise or ("gamma" if calibration == "paper" or delta == 0 else "gaussian"),
        calibration=calibration,
        epsilon=epsilon,
        delta=delta,
        **more,
    )


# What the paper builds on, without privacy.


def streeter_golovin(n_items: int, slots: int, rounds: int, *, rng: RandomSource | None = None) -> Learner:
    """Return what Algorithm 2 builds on: full information, not private, at the rate with the least bound.

    To read it: `paper.algorithms.streeter_golovin`.

    Parameters
    ----------
    n_items, slots, rounds : int
        N, k and T.
    rng : RandomSource, optional
        Randomness. By default SystemSource.

    Returns
    -------
    Learner
        With expected regret at most 2 sqrt(k T log N).

    Examples
    --------
    >>> from diminuendo import paper
    >>> learner = paper.streeter_golovin(50, 5, rounds=10_000)
    >>> learner.name, round(learner.parameters["rate"], 4)
    ('streeter-golovin', 0.0442)
    """
    return StreeterGolovin.for_setting(Setting(n_items, slots, rounds, "full"), rng=rng)


def streeter_golovin_bandit(
    n_items: int, slots: int, rounds: int, *, rng: RandomSource | None = None
) -> Learner:
    """Return what Algorithm 3 builds on: bandit feedback, not private, k (N log N / T)^(1/3) of the rounds exploring.

    To read it: `paper.algorithms.streeter_golovin_bandit`.

    Parameters
    ----------
    n_items, slots, rounds : int
        N, k and T.
    rng : RandomSource, optional
        Randomness. By default SystemSource.

    Returns
    -------
    Learner

    Examples
    --------
    >>> from diminuendo import paper
    >>> learner = paper.streeter_golovin_bandit(50, 5, rounds=1_000_000)
    >>> learner.name, round(learner.parameters["exploring"], 4)
    ('streeter-golovin-bandit', 0.2902)
    """
    return StreeterGolovinBandit.for_setting(Setting(n_items, slots, rounds, "bandit"), rng=rng)


meta_frank_wolfe = MetaFrankWolfe
"""Chen, Hassani and Karbasi's algorithm for continuous functions. To read it: `paper.algorithms.meta_frank_wolfe`."""


__all__ = [
    "algorithms",
    "bandit_dp",
    "bounds",
    "continuous",
    "direct_bandit",
    "fi_dp",
    "fi_pure",
    "hedge",
    "meta_frank_wolfe",
    "presampled_bandit",
    "private_greedy",
    "private_hedge",
    "streeter_golovin",
    "streeter_golovin_bandit",
]
