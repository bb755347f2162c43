"""Bounds on the regret, by kind of learner: which theorem bounds whose."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from diminuendo.experts.pftal import pftal_bound
from diminuendo.experts.simplex_leader import pure_noise
from diminuendo.learners.bandit_dp import BanditDp, PresampledBandit
from diminuendo.learners.bandit_experts import StreeterGolovinBandit
from diminuendo.learners.explore_exploit import ExploreExploit
from diminuendo.learners.fi_dp import FiDp, StreeterGolovin
from diminuendo.learners.fi_pure import FiPure
from diminuendo.learners.learner import Learner, Setting
from diminuendo.learners.ordered_experts import OrderedExperts
from diminuendo.paper import bounds


def regret_bound(made: Learner, setting: Setting) -> float | None:
    """On the expected regret of the whole run to (1 - 1/e) of the best slate; None where nothing is proved."""
    own: float | None = getattr(made, "bound", None)  # a learner may carry the bound of its own theorem
    if own is not None:
        return float(own)
    for kind, bound in BOUNDS.items():
        if isinstance(made, kind):
            return bound(made, setting.n_items, setting.slots, setting.rounds)
    return None


def _full(made: Any, n: int, k: int, rounds: int) -> float:
    return bounds.full_information(n, k, rounds, made.rate)


def _pure(made: Any, n: int, k: int, rounds: int) -> float:
    return k * pftal_bound(1.0, math.sqrt(n), rounds, made.curvature, pure_noise(n, k, rounds, made.epsilon))


def _bandit(made: Any, n: int, k: int, rounds: int) -> float | None:
    if made.exploring == 0:
        return None
    extra = 0.0
    if getattr(made, "cap", None) is not None:
        own = made.resample == "own"
        extra = (k if own else 1) * bounds.cap_excess(rounds, made.exploring / (k if own else 1), made.cap)
    return bounds.bandit(n, k, rounds, made.rate, made.exploring, extra=extra)


def _presampled(made: Any, n: int, k: int, rounds: int) -> float | None:
    explorations = made.parameters["explorations"]
    return bounds.presampled_bandit(n, k, rounds, made.rate, explorations) if explorations else None


def _own_rates(made: Any, n: int, k: int, rounds: int) -> float:
    """docs/maths/hedge.md, Theorems 1 and 2, with L at most T."""
    logarithm = math.log(max(2, n))
    return k * (2.86 * math.sqrt(logarithm * (1 + rounds)) + 1.5 * logarithm)


def _own_rates_bandit(made: Any, n: int, k: int, rounds: int) -> float:
    """docs/maths/hedge.md, Theorem 3."""
    logarithm, share = math.log(max(2, n)), made.exploring
    seen = 1 + math.log(n + 1) + 1.72 * share * rounds / (k * n)
    expert = 2.86 * math.sqrt(logarithm * seen) + 1.5 * logarithm
    return float(share * rounds + k * k * n / share * expert)


BOUNDS: dict[type[Learner], Callable[[Any, int, int, int], float | None]] = {
    FiDp: _full,
    StreeterGolovin: _full,
    FiPure: _pure,
    BanditDp: _bandit,
    PresampledBandit: _presampled,
    StreeterGolovinBandit: _bandit,
    OrderedExperts: _own_rates,
    ExploreExploit: _own_rates_bandit,
}
"""Which theorem bounds whose regret."""
