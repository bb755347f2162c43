"""Draws from secret scores: how they are paid for, what is promised of them and what the paper claims.

`guarantee` is what is proved here, by the accountant. `claim` is what the paper's own analysis says about the same
rate; with the paper's constants that is the epsilon asked for, and the truth is many times less.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from diminuendo.errors import OutOfRange
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.policy import Policy
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.hedge.constants import Calibration, paper_claim
from diminuendo.privacy.budget import Budget, Guarantee, no_privacy
from diminuendo.privacy.draw_budget import UNLIMITED, DrawBudget
from diminuendo.privacy.events import Event
from diminuendo.privacy.ledger import Ledger
from diminuendo.privacy.rounding import least
from diminuendo.randomness.sources import RandomSource
from diminuendo.types import Ints

Use: TypeAlias = tuple[int, int]
"""A use that a round needs: its number, from 0, and the expert whose it is."""


class PrivateDraws:
    """Every draw is paid for before it is made, and what all of them together cost is known beforehand."""

    def __init__(
        self,
        frame: Frame,
        budget: Budget,
        draw_budget: DrawBudget,
        theorem: str,
        claim: Guarantee,
        delta_over_draws: Callable[[float], float] | None = None,
    ) -> None:
        self.budget: Budget | None = budget
        self.claim: Guarantee | None = claim
        self._frame, self._budget, self._draw_budget, self._theorem = frame, budget, draw_budget, theorem
        self._delta_over_draws = delta_over_draws

    @property
    def paid(self) -> Ints:
        """How many uses of each expert are paid for, for compiled code."""
        return self._draw_budget.paid

    @property
    def events(self) -> Event:
        """What the whole run costs."""
        return self._draw_budget.event(self._draw_budget.total)

    @property
    def guarantee(self) -> Guarantee:
        """What is proved for the whole run, whatever the feedback, at the delta of the budget."""
        frame, delta = self._frame, self._budget.delta
        return Guarantee(self._epsilon, delta, str(frame.unit), self._theorem, frame.rng.secure)

    @cached_property
    def _epsilon(self) -> float:
        """That of all draws that there may be; or, where their number is up to public coins, averaged over them."""
        budget, average = self._budget, self._delta_over_draws
        result = budget.worth_of(self.events, self._frame.max_rounds_per_user)
        if average is None or budget.delta == 0:  # an average is never pure
            return result
        return min(result, least(lambda epsilon: average(epsilon) <= budget.delta))

    def pay(self, wanted: Iterable[Use]) -> None:
        """Pay for these uses, as far as they are not paid for."""
        for number, expert in wanted:
            self._draw_budget.pay(number, expert)

    def restored(self, used: Ints) -> None:
        """Go on where each expert has made `used` uses; what was paid for beyond that may be used up."""
        self._draw_budget.restored(used)


class FreeDraws:
    """Nothing is promised, and nothing is paid."""

    budget: Budget | None = None
    claim: Guarantee | None = None
    events: Event | None = None

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self.paid: Ints = np.full(frame.slots, UNLIMITED)

    @property
    def guarantee(self) -> Guarantee:
        """Nothing is promised."""
        return no_privacy(self._frame.rng.secure)

    def pay(self, wanted: Iterable[Use]) -> None:
        """Nothing is to be paid."""

    def restored(self, used: Ints) -> None:
        """Nothing was paid."""


Draws: TypeAlias = PrivateDraws | FreeDraws


class SecretScoresPolicy(Policy):
    """A policy that draws every slate from secret scores: what it promises is what is promised of its draws."""

    purpose = "draws of items from secret scores"
    _draws: Draws
    """What is paid for them, and what is promised."""
    _options: dict[str, Any]
    """The arguments of the recipe, besides those of the frame."""

    @property
    def guarantee(self) -> Guarantee:
        """What is proved about all slates together."""
        return self._draws.guarantee

    @property
    def claim(self) -> Guarantee | None:
        """What the paper's analysis says about this rate."""
        return self._draws.claim

    @property
    def events(self) -> Event | None:
        """What the whole run costs; None where nothing is promised."""
        return self._draws.events

    def config(self) -> dict[str, Any]:
        """The arguments of the recipe."""
        return self._options


def recipe_arguments(setting: Setting, rng: RandomSource | None, ledger: Ledger | None) -> dict[str, Any]:
    """The arguments that a setting decides, of every recipe with private draws."""
    unused = ("contexts", "rules", "exclusions", "retention", "sample")
    decided = {name: value for name, value in setting.arguments().items() if name not in unused}
    return decided | {"ledger": ledger, "rng": rng}


def claimed(
    frame: Frame, budget: Budget, rate: float, draws: float, where: str, tail: float = 0.0
) -> Guarantee:
    """What the paper says, `where`, of `draws` draws of each expert at that rate; `tail` is added to delta.

    For a user who has several rounds, what it says about as many times the rate.
    """
    where = f"Perez-Salazar & Cummings (2021), {where}"
    unit, secure = str(frame.unit), frame.rng.secure
    if budget.delta == 0:  # the paper's analysis composes with a delta; without one it says nothing
        return Guarantee(math.inf, 1.0, unit, where, secure)
    epsilon = paper_claim(frame.slots, draws, frame.max_rounds_per_user * rate, budget.delta)
    return Guarantee(epsilon, min(1.0, budget.delta + tail), unit, where, secure)


def as_planned(learner: Learner, calibration: Calibration, ledger: Ledger | None) -> Learner:
    """Refuse a run that its ledger cannot pay for to the end; warn where the paper's rate costs more than said.

    To be called by what `Entry.for_setting`, or a function of the paper, calls: the warning is about their caller.
    """
    result, budget, events = learner.guarantee, learner.budget, learner.events
    if calibration == "paper" and budget is not None and result.epsilon > budget.epsilon:
        warnings.warn(
            f"The paper's rate costs epsilon {result.epsilon:.4g} here, not {budget.epsilon:g}: its proof does "
            "not reach so large an epsilon at this delta.",
            OutOfRange,
            stacklevel=4,
        )
    if ledger is not None and events is not None:
        ledger.require(events)
    return learner
