"""Plan: what each learner would do with a budget, before anybody arrives.

A candidate is the learner itself, made for the setting and asked: what it runs with, what it promises, what regret is
proved. So what is planned is what is run. Only public facts go in: nothing here ever sees a person.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from diminuendo.errors import InvalidInput, OutOfRange
from diminuendo.experts.pftal import pftal_bound
from diminuendo.experts.simplex_leader import pure_noise
from diminuendo.learners import LEARNERS
from diminuendo.learners.bandit_dp import BanditDp, PresampledBandit
from diminuendo.learners.bandit_experts import StreeterGolovinBandit
from diminuendo.learners.constants import paper_exploring, rounds_for_paper_exploring
from diminuendo.learners.explore_exploit import ExploreExploit
from diminuendo.learners.fi_dp import FiDp, StreeterGolovin
from diminuendo.learners.fi_pure import FiPure
from diminuendo.learners.learner import Learner, Setting
from diminuendo.learners.ordered_experts import OrderedExperts
from diminuendo.learners.overlap_plan import overlap_plan
from diminuendo.offline import ONE_MINUS_1_OVER_E
from diminuendo.paper import bounds
from diminuendo.privacy.budget import Budget, Guarantee
from diminuendo.types import FeedbackKind

GAUSSIAN: Literal["continuous-gaussian"] = "continuous-gaussian"


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

    def as_json(self, rounds: int) -> dict[str, Any]:
        """For files."""
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


@dataclass(frozen=True)
class Plan:
    """All candidates for a setting, and which one to take."""

    setting: Setting
    candidates: list[Candidate] = field(repr=False)
    left_out: dict[str, str]
    """Learners that cannot be made for this setting, and why."""
    recommended: str
    why: str

    def __getitem__(self, name: str) -> Candidate:
        return next(candidate for candidate in self.candidates if candidate.name == name)

    def as_json(self) -> dict[str, Any]:
        """The documented file format."""
        return {
            "setting": vars(self.setting),
            "recommended": self.recommended,
            "why": self.why,
            "candidates": [candidate.as_json(self.setting.rounds) for candidate in self.candidates],
            "left_out": self.left_out,
        }


def plan(
    n_items: int,
    slots: int,
    rounds: int,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    feedback: FeedbackKind = "full",
) -> Plan:
    """What every learner would do, and which one to take.

    Overlap greedy where it can be made; else, of the private ones, that with the least proved regret.
    """
    setting = Setting(n_items, slots, rounds, feedback, epsilon, delta)
    found, left_out = [], {}
    for name, kind in LEARNERS.items():
        if feedback in kind.reads:
            try:
                found.append(candidate(name, setting))
            except InvalidInput as error:
                left_out[name] = str(error)
    return Plan(setting, found, left_out, *_choice(found, setting))


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
        _bound(made, setting),
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


def _choice(found: list[Candidate], setting: Setting) -> tuple[str, str]:
    private = [
        one
        for one in found
        if one.bound is not None
        and one.guarantee.exact
        and one.guarantee.epsilon <= setting.epsilon
        and one.guarantee.delta <= setting.delta
    ]
    people = "1 person" if setting.rounds == 1 else f"{setting.rounds:,} people"
    if setting.n_items == setting.slots or setting.rounds == 1:
        return (
            "random",
            "There is nothing to learn: every slate is as good as any other, and random ones are free.",
        )
    if any(one.name == "overlap-greedy" for one in found):
        budget = Budget(setting.epsilon, setting.delta, accountant=GAUSSIAN)
        noise = overlap_plan(setting.n_items, setting.rounds, budget, 1).nu
        bounded = [one.name for one in private if one.says_something(setting.rounds)]
        why = f"Items whose appeal differs by about {noise:,.0f} people can be told apart, out of {people}: "
        if setting.rounds < 10 * noise:
            why += "too few to learn much; expect little more than chance."
        else:
            why += "it does nearly as well as without privacy once there are many times more."
        why += " It keeps people in memory, and nothing is proved for streams that work against it"
        return "overlap-greedy", why + (
            f"; {', '.join(bounded)} has such a bound, and earns far less." if bounded else "."
        )
    if not private:
        return (
            "random",
            f"No private learner can be made for this budget and {people}; random slates are free.",
        )
    best = min(private, key=lambda one: one.bound or math.inf)
    assert best.bound is not None
    if best.says_something(setting.rounds):
        return best.name, (
            f"Of the private learners it has the least proved regret, {best.bound / setting.rounds:.3f} per person "
            f"over {people}; to show nothing at all would lose {ONE_MINUS_1_OVER_E:.3f} at most. The paper's own "
            "constants would give up more for no more privacy."
        )
    return best.name, (
        f"For {people} no bound here says anything: proved regrets exceed what there is to gain. {best.name} has the "
        "least; expect little more than random choice, and try it on a stream of your own with `diminuendo simulate`."
    )


# Bounds on the regret, by kind of learner.


def _bound(made: Learner, setting: Setting) -> float | None:
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
