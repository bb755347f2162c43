"""A plan: all candidates for a setting, which one to take, and what to expect of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from diminuendo.errors import InvalidInput
from diminuendo.learners import LEARNERS
from diminuendo.learners.learner import Setting
from diminuendo.plan.candidates import Candidate, candidate
from diminuendo.plan.choice import pick
from diminuendo.plan.forecast import half_way
from diminuendo.plan.model import PublicModel, assumed
from diminuendo.plan.noise import Noise, noise, releases_of
from diminuendo.plan.price import EPSILONS, Price, prices, random_loss
from diminuendo.types import FeedbackKind, Progress

MODEL = (
    "Forecasts are for made-up people: each wants {cares_about:g} of the {n_items:,} things on average, {top:.0%} want "
    "the most wanted one, and appeal falls like 1/rank."
)
CHECKED = (
    " Real people differ: on three real streams half way came within a factor of 2 of its forecast, losses within a "
    "factor of 3."
)
"""Of overlap greedy; tests/test_plan_forecast.py holds it to that."""
UNCHECKED = " Real people differ, and this learner's forecasts were not held against any."


@dataclass(frozen=True)
class Plan:
    """All candidates for a setting, which one to take, and what to expect of it."""

    setting: Setting
    store_people: bool
    adversarial: bool
    cares_about: float
    """How many items a person cares about, as was said or else assumed."""
    candidates: list[Candidate] = field(repr=False)
    left_out: dict[str, str]
    """Learners that cannot be made for this setting, and why."""
    recommended: str
    why: str
    noise: Noise | None
    """The noise of privacy at the last release; None where the learner publishes no sums."""
    half_way: int | None
    """A forecast: after so many people half the way from random choice to hindsight is made."""
    prices: tuple[Price, ...] = ()
    """Forecasts for several epsilons; empty until `with_prices` was asked for."""

    def __getitem__(self, name: str) -> Candidate:
        return next(candidate for candidate in self.candidates if candidate.name == name)

    @property
    def model(self) -> str:
        """What all forecasts assume, in words."""
        top = float(PublicModel(self.setting.n_items, self.cares_about).appeal[0])
        said = MODEL.format(cares_about=self.cares_about, n_items=self.setting.n_items, top=top)
        return said + (CHECKED if self.recommended == "overlap-greedy" else UNCHECKED)

    def with_prices(
        self, epsilons: Sequence[float] = EPSILONS, progress: Callable[[str, int], Progress] | None = None
    ) -> Plan:
        """The same plan, and what the recommended learner is expected to lose at other epsilons; takes seconds."""
        if self.recommended == "random":  # it costs nothing at any epsilon
            return self
        found = prices(self.recommended, self.setting, self.cares_about, epsilons, progress)
        return replace(self, prices=found)

    @property
    def random_loss(self) -> float:
        """A forecast: the part of greedy's payoff that random choice loses."""
        return random_loss(self.setting, self.cares_about)

    def as_json(self) -> dict[str, Any]:
        """The documented file format."""
        return {
            "setting": vars(self.setting),
            "store_people": self.store_people,
            "adversarial": self.adversarial,
            "cares_about": self.cares_about,
            "recommended": self.recommended,
            "why": self.why,
            "noise": None if self.noise is None else self.noise.as_json(),
            "forecast": {
                "model": self.model,
                "half_way": self.half_way,
                "random_loss": self.random_loss,
                "prices": [price.as_json() for price in self.prices],
            },
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
    store_people: bool = True,
    adversarial: bool = False,
    cares_about: float | None = None,
) -> Plan:
    """What every learner would do, which one to take, and what to expect of it.

    store_people  whether what single people said may be kept in memory
    adversarial   whether a bound is wanted that holds whatever people want
    cares_about   how many items one person cares about on average, where that is known
    """
    setting = Setting(n_items, slots, rounds, feedback, epsilon, delta)
    cares = assumed(cares_about, setting.n_items)
    found, left_out = [], {}
    for name, kind in LEARNERS.items():
        if feedback in kind.reads:
            try:
                found.append(candidate(name, setting))
            except InvalidInput as error:
                left_out[name] = str(error)
    name, why = pick(
        found, setting, store_people=store_people, adversarial=adversarial, cares_about=cares_about
    )
    releases = releases_of(LEARNERS[name].for_setting(setting))
    model = PublicModel(setting.n_items, cares)
    return Plan(
        setting,
        store_people,
        adversarial,
        cares,
        found,
        left_out,
        name,
        why,
        noise(releases, cares),
        None if releases is None else half_way(releases, model, setting.slots),
    )
