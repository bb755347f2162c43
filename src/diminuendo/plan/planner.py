"""The planner: all candidates for a setting, which one to take and why, and what to expect of it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from diminuendo.errors import InvalidInput, OutOfRange
from diminuendo.learners import LEARNERS, with_variants
from diminuendo.learners.base.feedback_window import as_feedback_window, feedback_window_in
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.replay import as_delay
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.hedge.constants import paper_exploring, rounds_for_paper_exploring
from diminuendo.learners.recommend import Rule, preferred
from diminuendo.offline import ONE_MINUS_1_OVER_E
from diminuendo.plan.contexts import ContextPlan, context_plan
from diminuendo.plan.first_look import FirstLook, first_look
from diminuendo.plan.model import PublicModel, assumed, half_way
from diminuendo.plan.noise import Noise, noise, releases_of
from diminuendo.plan.price import Price, in_sample, prices, random_loss, short_run
from diminuendo.privacy.budget import Guarantee
from diminuendo.types import FeedbackKind, Progress

MODEL = (
    "Forecasts simulate users: each wants {cares_about:g} of the {n_items:,} items on average, {top:.0%} want the most "
    "wanted one, and demand falls like 1/rank."
)
HARDER = (
    " Real users are harder: on three real streams losses came to between three quarters of their "
    "forecast and 6 times as much, and half way up to 6 times as late, once never."
)
CHECKED = {
    "overlap-greedy": (
        " Real users differ: on three real streams half way came within a factor of 2 of its forecast, losses within "
        "a factor of 3."
    ),
    "slate-totals": HARDER,
    "slate-clicks": HARDER,
}
"""Learners whose forecasts were held against real users; tests/test_plan_forecast.py and test_plan_slates.py hold
them to that."""
LITTLE = 0.2
"""Where less of the way from random choice to hindsight is forecast, users are too few."""
UNCHECKED = " Real users differ, and this learner's forecasts were not held against any."


@dataclass(frozen=True)
class Candidate:
    """One learner, made for the setting of a plan.

    Attributes
    ----------
    name : str
        In `LEARNERS`.
    summary : str
        One line: what it is.
    parameters : dict
        Public numbers that it would run with.
    guarantee : Guarantee
        What is proved here.
    claim : Guarantee, optional
        What the paper's analysis says about the same parameters, for algorithms of the paper.
    bound : float, optional
        On the expected regret of the whole run against (1 - 1/e) of the best slate; None where nothing is proved.
    notes : tuple of str
        Warnings that making it raised.

    """

    name: str
    summary: str
    parameters: dict[str, Any]
    guarantee: Guarantee
    claim: Guarantee | None
    bound: float | None
    notes: tuple[str, ...] = ()

    def says_something(self, rounds: int) -> bool:
        """Return whether the bound is below what showing nothing would lose: (1 - 1/e) * rounds."""
        return self.bound is not None and self.bound < ONE_MINUS_1_OVER_E * rounds

    def keeps_to(self, setting: Setting) -> bool:
        """Return whether the guarantee is within the setting's budget, for the arithmetic that is run."""
        promise = self.guarantee
        return promise.exact and promise.epsilon <= setting.epsilon and promise.delta <= setting.delta

    def as_json(self, rounds: int) -> dict[str, Any]:
        """Return the candidate as plain values, as files hold it."""
        return {
            "learner": self.name,
            "summary": self.summary,
            "parameters": self.parameters,
            "guarantee": self.guarantee.as_json(),
            "claim": None if self.claim is None else self.claim.as_json(),
            "bound": self.bound,
            "bound_per_user": None if self.bound is None else self.bound / rounds,
            "bound_says_something": self.says_something(rounds),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Plan:
    """All candidates for a setting, which one to take, and what to expect of it.

    `plan["name"]` is the candidate of that name.

    Attributes
    ----------
    setting : Setting
        What the plan is for.
    store_users, adversarial : bool
        As given to `plan`.
    cares_about : float
        How many items a user cares about, as given or assumed.
    candidates : list of Candidate
        All learners for this feedback.
    left_out : dict of str to str
        Learners that cannot be made for the setting, and why.
    recommended, why : str
        The name of the learner to take, and the reason.
    noise : Noise, optional
        Noise at the last release, for learners that release sums.
    first_look : FirstLook, optional
        What it takes to show every item once, for learners that release one number per slate.
    half_way : int, optional
        Forecast: after how many users half of the way from random slates to hindsight is made. With bandit or click
        feedback only after `with_prices`.
    contexts : ContextPlan, optional
        What contexts would do, if they were asked about.
    prices : tuple of Price
        Forecasts for several epsilons; empty before `with_prices`.

    """

    setting: Setting
    store_users: bool
    adversarial: bool
    cares_about: float
    candidates: list[Candidate] = field(repr=False)
    left_out: dict[str, str]
    recommended: str
    why: str
    noise: Noise | None
    first_look: FirstLook | None
    half_way: int | None
    contexts: ContextPlan | None = None
    prices: tuple[Price, ...] = ()

    def __getitem__(self, name: str) -> Candidate:
        return next(candidate for candidate in self.candidates if candidate.name == name)

    @property
    def model(self) -> str:
        """What all forecasts assume, in words."""
        top = float(PublicModel(self.setting.n_items, self.cares_about).appeal[0])
        said = MODEL.format(cares_about=self.cares_about, n_items=self.setting.n_items, top=top)
        whole = in_sample(self.setting)
        simulated = short_run(self.recommended, whole).said(whole)
        return said + simulated + CHECKED.get(self.recommended, UNCHECKED)

    def with_prices(
        self,
        epsilons: Sequence[float] | None = None,
        progress: Callable[[str, int], Progress] | None = None,
    ) -> Plan:
        """Return this plan with forecasts of what the recommended learner loses at other epsilons.

        Parameters
        ----------
        epsilons : sequence of float, optional
            By default a few from 0.1 to 10. The setting's own is always among them.
        progress : callable, optional
            Called with a description and a number of runs; returns what is called as they finish.

        Returns
        -------
        Plan
            Takes seconds; with bandit and click feedback up to half a minute.
        """
        if self.recommended == "random":  # it costs nothing at any epsilon
            return self
        result = prices(self.recommended, self.setting, self.cares_about, epsilons, progress)
        priced = replace(self, prices=result)
        return priced if priced.price is None else replace(priced, half_way=priced.price.half_way)

    @property
    def price(self) -> Price | None:
        """The forecast for the plan's own epsilon, if `with_prices` was called."""
        return next((price for price in self.prices if price.epsilon == self.setting.epsilon), None)

    @property
    def too_few(self) -> str | None:
        """A message if too few users are expected to earn much more than random slates, and what it would take."""
        look, rounds, price = self.first_look, self.setting.rounds, self.price
        little = price is not None and price.loss > (1 - LITTLE) * self.random_loss
        if look is None or not (look.too_few or little):
            return None
        said = (
            f"The noise requires {look.whole:,} users to show every item once, and {rounds:,} are expected: expect "
            "little more than random slates."
        )
        if look.enough <= rounds:
            return (
                said + " With this many items, more users or more epsilon are needed to find the good ones."
            )
        said += f" Half of the way to hindsight would take about {look.enough:,} users"
        if look.epsilon is None:
            return said + "; a larger epsilon alone is not enough."
        return said + f", or an epsilon of about {look.epsilon:.2g}."

    @property
    def random_loss(self) -> float:
        """Forecast: the share of greedy's reward that random slates lose."""
        return random_loss(self.setting, self.cares_about)

    def as_json(self) -> dict[str, Any]:
        """Return the plan in the documented file format."""
        return {
            "setting": {name: value for name, value in vars(self.setting).items() if name != "contexts"}
            | {"feedback_window": as_feedback_window(self.setting.feedback_window).config()},
            "store_users": self.store_users,
            "adversarial": self.adversarial,
            "cares_about": self.cares_about,
            "recommended": self.recommended,
            "why": self.why,
            "noise": None if self.noise is None else self.noise.as_json(),
            "first_look": None if self.first_look is None else self.first_look.as_json(),
            "too_few": self.too_few,
            "forecast": {
                "model": self.model,
                "half_way": self.half_way,
                "random_loss": self.random_loss,
                "prices": [price.as_json() for price in self.prices],
            },
            "contexts": None if self.contexts is None else self.contexts.as_json(),
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
    store_users: bool = True,
    adversarial: bool = False,
    cares_about: float | None = None,
    max_rounds_per_user: int = 1,
    delay: str | int = 0,
    response_rate: float = 1.0,
    contexts: Sequence[int] | None = None,
    private_context: bool = False,
    retention: int | None = None,
    sample: int = 1,
) -> Plan:
    """Plan a deployment: what every learner would guarantee, which one to take, and what to expect of it.

    Parameters
    ----------
    n_items, slots, rounds : int
        Numbers of items, of items in a slate, and of rounds.
    epsilon : float, default 1.0
        Privacy budget.
    delta : float, default 1e-6
        0 for pure differential privacy.
    feedback : {"full", "bandit", "click"}, default "full"
        What users report.
    store_users : bool, default True
        Whether single users' data may be kept in memory.
    adversarial : bool, default False
        Whether a regret bound is wanted that holds for any sequence of users.
    cares_about : float, optional
        How many items a user cares about on average, if that is known.
    max_rounds_per_user : int, default 1
        How many rounds of one user count; they share the budget.
    delay : int or str, default 0
        Feedback delay in users: a number, or "exponential:1000" for a mean.
    response_rate : float, default 1.0
        Share of users who respond.
    contexts : sequence of int, optional
        How many categories each feature of contexts has, as (20, 24).
    private_context : bool, default False
        Whether contexts are private.
    retention : int, optional
        For how many rounds a user's data may be kept.
    sample : int, default 1
        One in `sample` users is learned from.

    Returns
    -------
    Plan

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Notes
    -----
    A plan uses public facts alone and costs no privacy. Forecasts simulate synthetic users; real users are harder.

    Examples
    --------
    >>> from diminuendo.plan import plan
    >>> found = plan(50, 5, 20_000, epsilon=0.5)
    >>> found.recommended, found["fi-dp"].guarantee.epsilon <= 0.5, found.noise.users
    ('overlap-greedy', True, 19160)
    """
    feedback_window = as_delay(delay, response_rate).feedback_window
    setting = Setting(
        n_items, slots, rounds, feedback, epsilon, delta, max_rounds_per_user,
        feedback_window_in(feedback_window, sample),
        retention=retention, sample=sample,
    )  # fmt: skip
    cares = assumed(cares_about, setting.n_items)
    result, left_out = [], {}
    for name in with_variants():
        if feedback in LEARNERS[name].reads:
            try:
                result.append(candidate(name, setting))
            except InvalidInput as error:
                left_out[name] = str(error)
    name, why = pick(result, setting, store_users=store_users, adversarial=adversarial)
    learner = LEARNERS[name].for_setting(setting)
    releases, look = releases_of(learner), first_look(learner)
    model = PublicModel(setting.n_items, cares)
    if private_context and contexts is None:
        raise InvalidInput(
            "private_context says how contexts are treated; say how many values they have, too."
        )
    known = None
    if contexts is not None:
        known = context_plan(tuple(contexts), private_context, learner, setting, look)
    half = None
    if releases is not None:
        half = half_way(releases, model, setting.slots, as_feedback_window(setting.feedback_window))
    return Plan(
        setting,
        store_users,
        adversarial,
        cares,
        result,
        left_out,
        name,
        why,
        noise(releases, cares),
        look,
        None if half is None else min(setting.rounds, half * setting.sample),
        known,
    )


def candidate(name: str, setting: Setting) -> Candidate:
    """Return one learner for a setting; warnings become notes.

    Parameters
    ----------
    name : str
        In `LEARNERS`.
    setting : Setting
        What it is made for.

    Returns
    -------
    Candidate

    Raises
    ------
    InvalidInput
        If it cannot be made for the setting.

    Examples
    --------
    >>> import diminuendo as dim
    >>> from diminuendo.plan import candidate
    >>> one = candidate("fi-dp", dim.Setting(50, 5, 20_000, "full"))
    >>> one.bound > 0, one.says_something(20_000), one.guarantee.epsilon <= 1
    (True, False, True)
    """
    kind = LEARNERS[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OutOfRange)
        learner = kind.for_setting(setting)
    notes = tuple(str(warning.message) for warning in caught if issubclass(warning.category, OutOfRange))
    return Candidate(
        name,
        kind.summary,
        learner.parameters | _printed(name, learner, setting),
        learner.guarantee,
        learner.claim,
        learner.regret_bound(setting.rounds),
        notes,
    )


def _printed(name: str, learner: Learner, setting: Setting) -> dict[str, Any]:
    """The paper's letters, and its formula for gamma before it is held at 1."""
    letters = {"rate": "eta", "exploring": "gamma", "curvature": "H"}
    own = learner.parameters
    result = {letter: own[name] for name, letter in letters.items() if own.get(name) is not None}
    if learner.name == "bandit-dp" and "calibration=paper" in name and "draw=direct" not in name:
        result["gamma_as_printed"] = paper_exploring(setting.n_items, setting.slots, setting.rounds)
        result["rounds_for_gamma"] = rounds_for_paper_exploring(setting.n_items, setting.slots)
    return result


def pick(
    candidates: Sequence[Candidate],
    setting: Setting,
    *,
    store_users: bool = True,
    adversarial: bool = False,
) -> tuple[str, str]:
    """Return the learner to take, and why.

    Parameters
    ----------
    candidates : sequence of Candidate
        All candidates.
    setting : Setting
        What they were made for.
    store_users : bool, default True
        Whether single users' data may be kept.
    adversarial : bool, default False
        Whether a regret bound is wanted that holds for any sequence of users.

    Returns
    -------
    name, why : str
        Random slates if there is nothing to learn. Otherwise the rules of learners/recommend.py; if none applies,
        or a bound is wanted, the least proved regret among learners whose guarantee is within the budget.

    Examples
    --------
    >>> import diminuendo as dim
    >>> from diminuendo.plan import candidate, pick
    >>> setting = dim.Setting(50, 5, 20_000, "full", delta=0.0)
    >>> pick([candidate("epoch-greedy", setting)], setting)[0]
    'epoch-greedy'
    """
    users = "1 user" if setting.rounds == 1 else f"{setting.rounds:,} users"
    if setting.n_items == setting.slots or setting.rounds == 1:
        return "random", (
            "There is nothing to learn: no slate is better than another, or no user comes after the first. "
            "Random slates are free."
        )
    kept_out = () if store_users else [name for name, entry in LEARNERS.items() if entry.advice.keeps_users]
    private = [one for one in candidates if one.keeps_to(setting) and one.name not in kept_out]
    entries = {one.name: LEARNERS[one.name] for one in private if one.name in LEARNERS}
    rule = preferred(setting, entries, store_users=store_users)
    if rule is not None and not adversarial:
        return rule.learner, rule.why
    bounded = [one for one in private if one.bound is not None]
    if not bounded:
        return "random", (
            f"No private learner{'' if store_users else ' that stores no users'} with a bound can be made for this "
            f"budget and {users}. Random slates are free." + ("" if rule is None else f" {_rival(rule)}")
        )
    best = min(bounded, key=lambda one: one.bound or math.inf)
    assert best.bound is not None
    if best.says_something(setting.rounds):
        return best.name, (
            f"Of the private learners it has the least proved regret: whatever users want, at most "
            f"{best.bound / setting.rounds:.3f} per user over {users}, where showing nothing would lose up to "
            f"{ONE_MINUS_1_OVER_E:.3f}. " + _rival(rule)
        )
    return best.name, (
        f"It has the least proved regret, but for {users} no bound says anything: all exceed what there is to gain. "
        + ("Expect little more than random choice." if rule is None else _rival(rule))
    )


def _rival(rule: Rule | None) -> str:
    """What would be taken if no bound were wanted."""
    if rule is None:
        return "The paper's own constants would give up more for no more privacy."
    return f"Where tastes are steady {rule.learner} loses less, with no such bound."
