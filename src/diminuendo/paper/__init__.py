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
from diminuendo.learners.hedge.constants import Calibration, Resample
from diminuendo.learners.hedge.exploring import StreeterGolovinBandit
from diminuendo.learners.hedge.fi_dp import StreeterGolovin
from diminuendo.offline.private_greedy import private_greedy
from diminuendo.paper import algorithms, bounds
from diminuendo.paper.one_expert import PrivateHedge
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.coins import Coins
from diminuendo.types import FeedbackKind


def hedge(n_items: int, rate: float) -> Hedge:
    """Algorithm 1: draws item a with probability in proportion to exp(rate * total gain of a).

    To read it: `paper.algorithms.hedge`.
    """
    return Hedge(n_items, rate)


private_hedge = PrivateHedge
"""Algorithm 1 as a private algorithm (Proposition 2), with that rate or the largest."""


@dataclass(frozen=True)
class Algorithm:
    """An algorithm of the paper that chooses slates and is (epsilon, delta)-private: call it to make a learner.

    To read it: the function of the same name in `paper.algorithms`.
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
        coins: Coins | None = None,
    ) -> Learner:
        """A learner for `rounds` rounds."""
        setting = Setting(n_items, slots, rounds, self.feedback, epsilon, delta)
        return self.calibrated(setting, calibration, ledger=ledger, coins=coins)


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
    coins: Coins | None = None,
) -> Learner:
    """The remark after Algorithm 2: (epsilon, 0)-private experts of Thakurta and Smith instead of Hedge.

    To read it: `paper.algorithms.fi_pure`.
    """
    setting = Setting(n_items, slots, rounds, "full", epsilon, 0.0)
    return pure_experts.calibrated(setting, calibration, ledger=ledger, coins=coins)


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
    coins: Coins | None = None,
) -> Learner:
    """Algorithm 3: explore with a small probability, and draw again only after that.

    To read it: `paper.algorithms.bandit_dp`. `calibration="paper"` is the pseudocode as printed: after an exploration
    all experts draw again (`resample="all"`), and nothing bounds the number of explorations (`capped=False`). `"tight"`
    changes more than numbers: only the expert that learned draws again (`"own"`), and explorations are capped, so that
    the cost of a run does not depend on coins. Each can be asked for with either calibration.
    """
    setting = Setting(n_items, slots, rounds, "bandit", epsilon, delta)
    return algorithm_3.calibrated(
        setting, calibration, resample=resample, capped=capped, ledger=ledger, coins=coins
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
    """Algorithm 4: K private leaders climb a continuous DR-submodular function together.

    To read it: `paper.algorithms.continuous`. `calibration="paper"` is as printed: pure Gamma-norm noise, its own
    number of copies, a release after every round. `"tight"` chooses copies and releases by the proved bound. Without a
    delta its noise is Gamma-norm too, padded to the same law in every release; with one, it is Gaussian noise on all
    copies together.
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


def streeter_golovin(n_items: int, slots: int, rounds: int, *, coins: Coins | None = None) -> Learner:
    """Full information, at the rate that makes the bound least: 2 sqrt(k T log N).

    To read it: `paper.algorithms.streeter_golovin`.
    """
    return StreeterGolovin.for_setting(Setting(n_items, slots, rounds, "full"), coins=coins)


def streeter_golovin_bandit(n_items: int, slots: int, rounds: int, *, coins: Coins | None = None) -> Learner:
    """Bandit feedback, exploring k (N log N / T)^(1/3) of the rounds.

    To read it: `paper.algorithms.streeter_golovin_bandit`.
    """
    return StreeterGolovinBandit.for_setting(Setting(n_items, slots, rounds, "bandit"), coins=coins)


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
