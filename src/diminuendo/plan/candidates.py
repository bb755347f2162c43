"""Candidates: a learner made for the setting and asked what it runs with, what it promises, what regret is proved."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from diminuendo.errors import OutOfRange
from diminuendo.experts.noisy_leader import pftal_bound, pure_noise
from diminuendo.learners import LEARNERS
from diminuendo.learners.base.learner import Learner, Setting
from diminuendo.learners.hedge.bandit import ExploreExploit
from diminuendo.learners.hedge.bandit_dp import BanditDp, PresampledBandit
from diminuendo.learners.hedge.constants import paper_exploring, rounds_for_paper_exploring
from diminuendo.learners.hedge.exploring import StreeterGolovinBandit
from diminuendo.learners.hedge.fi_dp import FiDp, StreeterGolovin
from diminuendo.learners.hedge.fi_pure import FiPure
from diminuendo.learners.hedge.full import OrderedExperts
from diminuendo.offline import ONE_MINUS_1_OVER_E
from diminuendo.paper import bounds
from diminuendo.privacy.budget import Guarantee


@dataclass(frozen=True)
class Candidate:
    """One learner, made for the setting."""

    name: str
    summary: str
    parameters: dict[str, Any]
    guarantee: Guarantee
    """What is proved here."""
    claim: Guarantee | None
    """What the paper's analysis says about the same parameters, where it is one of the paper's."""
    bound: float | None
    """On the expected regret of the whole run to (1 - 1/e) of the best slate; None where nothing is proved."""
    notes: tuple[str, ...] = ()

    def says_something(self, rounds: int) -> bool:
        """Whether the bound is below what never showing anything would lose at most."""
        return self.bound is not None and self.bound < ONE_MINUS_1_OVER_E * rounds

    def keeps_to(self, setting: Setting) -> bool:
        """Whether what is proved of it, for the arithmetic that is run, is within the budget."""
        promise = self.guarantee
        return promise.exact and promise.epsilon <= setting.epsilon and promise.delta <= setting.delta

    def as_json(self, rounds: int) -> dict[str, Any]:
        """The candidate as plain values, as it is written to files."""
        return {
            "learner": self.name,
            "summary": self.summary,
            "parameters": self.parameters,
            "guarantee": self.guarantee.as_json(),
            "claim": None if self.claim is None else self.claim.as_json(),
            "bound": self.bound,
            "bound_per_person": None if self.bound is None else self.bound / rounds,
            "bound_says_something": self.says_something(rounds),
            "notes": list(self.notes),
        }


def candidate(name: str, setting: Setting) -> Candidate:
    """One learner for the setting; warnings become notes."""
    kind = LEARNERS[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OutOfRange)
        made = kind.for_setting(setting)
    notes = tuple(str(warning.message) for warning in caught if issubclass(warning.category, OutOfRange))
    return Candidate(
        name,
        kind.summary,
        made.parameters | _printed(made, setting),
        made.guarantee,
        getattr(made, "claim", None),
        regret_bound(made, setting),
        notes,
    )


def _printed(made: Learner, setting: Setting) -> dict[str, Any]:
    """The paper's letters, and its formula for gamma before it is held at 1."""
    letters = {"rate": "eta", "exploring": "gamma", "curvature": "H"}
    found: dict[str, Any] = {}
    for name, value in made.parameters.items():
        if name in letters and value is not None:
            found[letters[name]] = value
    if made.name in ("bandit-dp-paper", "bandit-presampled-paper"):
        found["gamma_as_printed"] = paper_exploring(setting.n_items, setting.slots, setting.rounds)
        found["rounds_for_gamma"] = rounds_for_paper_exploring(setting.n_items, setting.slots)
    return found


def regret_bound(made: Learner, setting: Setting) -> float | None:
    """A bound on the expected regret of the run to (1 - 1/e) of the best slate; None where nothing is proved."""
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
    """The bound of docs/maths/hedge.md, Theorems 1 and 2, with L at most T."""
    logarithm = math.log(max(2, n))
    return k * (2.86 * math.sqrt(logarithm * (1 + rounds)) + 1.5 * logarithm)


def _own_rates_bandit(made: Any, n: int, k: int, rounds: int) -> float:
    """The bound of docs/maths/hedge.md, Theorem 3."""
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
