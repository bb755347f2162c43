"""What learners share whose slates are private draws from secret scores: a horizon, two budgets, two guarantees.

`guarantee` is what is proved here, by the accountant. `claim` is what the paper's own analysis says about the same
rate; with the paper's constants that is the epsilon asked for, and the truth is many times less.
"""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from typing import Any, ClassVar, Self

from diminuendo import _validate
from diminuendo.errors import OutOfRange, OverBudget
from diminuendo.learners.base.old_private import PrivateLearner
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.hedge.constants import Calibration, accountant_for
from diminuendo.privacy.accountants import ACCOUNTANTS
from diminuendo.privacy.budget import Budget, Guarantee
from diminuendo.privacy.draw_budget import DrawBudget
from diminuendo.privacy.events import Event
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.coins import Coins
from diminuendo.types import Ints


class PrivateDraws(PrivateLearner):
    """Draws slates from secret scores for `horizon` rounds, every draw paid for."""

    calibration: ClassVar[Calibration] = "tight"
    """Whose constants `for_setting` takes."""
    theorem: ClassVar[str]

    def __init__(
        self,
        n_items: int,
        slots: int,
        *,
        horizon: int,
        rate: float,
        epsilon: float,
        delta: float,
        visits: int = 1,
        ledger: Ledger | None = None,
        coins: Coins | None = None,
        patience: int = 10_000,
    ) -> None:
        super().__init__(
            n_items, slots, horizon=horizon, visits=visits, ledger=ledger, coins=coins, patience=patience
        )
        self.rate = _validate.positive_float(rate, "rate")
        self.budget = Budget(epsilon, delta, self.unit, accountant_for(delta))
        self._draw_budget = self._new_draw_budget(ledger)
        self._start()

    @classmethod
    def for_setting(cls, setting: Setting, *, coins: Coins | None = None, **more: Any) -> Self:
        """With the constants of its calibration."""
        return cls.calibrated(setting, cls.calibration, coins=coins, **more)

    def _as_planned(self, calibration: Calibration) -> Self:
        """Refuse a run that its ledger cannot pay for to the end; warn where the paper's rate costs more than said."""
        ledger, found = self._draw_budget.ledger, self.guarantee
        if calibration == "paper" and found.epsilon > self.budget.epsilon:
            warnings.warn(
                f"The paper's rate costs epsilon {found.epsilon:.4g} here, not {self.budget.epsilon:g}: its proof does "
                "not reach so large an epsilon at this delta.",
                OutOfRange,
                stacklevel=4,
            )
        if ledger is not None and not ledger.affords(self.events):
            raise OverBudget(
                f"The ledger cannot pay for the whole run, epsilon {found.epsilon:.4g}; {ledger.spent():.4g} of "
                f"{ledger.budget.epsilon:g} is spent. Ask for less, or for fewer rounds."
            )
        return self

    @classmethod
    @abstractmethod
    def calibrated(
        cls,
        setting: Setting,
        calibration: Calibration,
        *,
        coins: Coins | None = None,
        ledger: Ledger | None = None,
    ) -> Self:
        """With the paper's constants, or the best that the same budget allows."""

    @abstractmethod
    def _start(self) -> None:
        """Make the state, empty."""

    @abstractmethod
    def _new_draw_budget(self, ledger: Ledger | None) -> DrawBudget:
        """What one use is, and how many there may be."""

    @property
    @abstractmethod
    def _uses(self) -> Ints:
        """How many uses each expert has made."""

    @property
    @abstractmethod
    def _wanted(self) -> list[tuple[int, int]]:
        """(number from 0, expert) of the uses that the next round needs."""

    @property
    def events(self) -> Event:
        """What the whole run costs."""
        return self._draw_budget.event(self._draw_budget.total)

    @property
    def guarantee(self) -> Guarantee:
        """What is proved for the whole run, whatever its payoffs and whoever answers."""
        delta = self.budget.delta
        found = ACCOUNTANTS[self.budget.accountant].epsilon(self.events, delta, self.visits)
        return Guarantee(found, delta, str(self.unit), self.theorem, self.coins.secure)

    @property
    @abstractmethod
    def claim(self) -> Guarantee:
        """What the paper's analysis says about this rate: of several rounds, about so many times the rate."""

    def _claimed(self, epsilon: float, delta: float, where: str) -> Guarantee:
        delta_used = self.budget.delta
        if delta_used == 0:  # the paper's analysis composes with a delta; without one it says nothing
            return Guarantee(math.inf, 1.0, str(self.unit), where, self.coins.secure)
        return Guarantee(epsilon, delta, str(self.unit), where, self.coins.secure)

    def _config(self) -> dict[str, Any]:
        return super()._config() | {
            "rate": self.rate,
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
        }

    def _resume(self, rounds: int = 1) -> None:
        super()._resume(rounds)
        for number, expert in self._wanted:
            self._draw_budget.pay(number, expert)

    def _restored(self) -> None:
        super()._restored()
        self._check()
        self._draw_budget.restored(self._uses)

    @abstractmethod
    def _check(self) -> None:
        """Refuse a state, as read from a snapshot, that could not have come about; rebuild what follows from it."""
