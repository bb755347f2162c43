"""FI-DP, Algorithm 2 of the paper: k ordered Hedge experts whose draws are private, full information.

Expert i draws the item of slot i with probability in proportion to exp(rate * total gain), and learns from each
person's objective what every item would have added to the slots before it. As printed, experts may repeat each other's
items: such a slot stays empty. With a rate that ignores privacy it is the algorithm of Streeter and Golovin.

Regret     at most rate * T + k log N / rate beyond (1 - 1/e) of the best slate (docs/maths/paper.md, Theorem P3).
Guarantee  draws of rounds 2 to T, k each, within a span of 2 * rate (docs/maths/paper.md, Theorem P1); of 2 * rate * m
           for a person who has m rounds (docs/maths/accounting.md, Theorem A9).
Assumes    nothing about people: gains are clipped to [0, 1], in whole ticks.
Excludes   timing; payoffs; and what is not a slate: scores are secret for good.
References Perez-Salazar & Cummings (2021), AISTATS, section 3; Streeter & Golovin (2008), NIPS 21.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from diminuendo import _validate
from diminuendo._numba import inline, kernel
from diminuendo.experts.hedge import HedgeState, check_fixed, new_hedge
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.hedge import constants
from diminuendo.learners.hedge.constants import Calibration
from diminuendo.learners.hedge.full import HedgeExperts, learn_gains
from diminuendo.learners.hedge.private_draws import PrivateDraws
from diminuendo.objectives.family import GainBuffer, Table
from diminuendo.privacy.budget import Guarantee, no_privacy
from diminuendo.privacy.draw_budget import UNLIMITED, DrawBudget, paid_for
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.coins import Coins
from diminuendo.randomness.score_classes import draw
from diminuendo.randomness.words import UNFINISHED, SecretWords, begin, undo
from diminuendo.streams.people import People, shown_before
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items


class PrintedExperts(HedgeExperts):
    """k ordered Hedge experts with one fixed rate that may repeat each other's items, as printed."""

    rate: float

    @property
    @abstractmethod
    def _paid(self) -> Ints:
        """How many rounds after the first are paid for."""

    def _start(self) -> None:
        self._experts = new_hedge(self.n_items, self.slots, self.rate)

    def _check(self) -> None:
        check_fixed(self._experts, self.rate, self.rounds)

    def _draw(self, row: Items, probe: Items) -> bool:
        return bool(_draw_slate(self._experts, row, self.rounds, self._paid, self._secret.view))

    def _replay(self, people: People, slates: Items, done: int) -> int:
        state, bag = np.empty(people.largest_state), self._bag(people.family.leaves)
        before, secret = self.rounds - done, self._secret.view
        return int(_replay(self._experts, people.table, slates, done, before, self._paid, secret, state, bag))


class StreeterGolovin(PrintedExperts):
    """The original, not private: rate sqrt(k log N / T)."""

    name: ClassVar[str] = "streeter-golovin"
    summary: ClassVar[str] = (
        "Hedge experts as in 2008, one textbook rate; not private; what the paper builds on"
    )

    def __init__(
        self,
        n_items: int,
        slots: int,
        *,
        rate: float,
        coins: Coins | None = None,
        patience: int = 10_000,
    ) -> None:
        super().__init__(n_items, slots, coins=coins, patience=patience)
        self.rate = _validate.positive_float(rate, "rate")
        self._start()

    @property
    def _paid(self) -> Ints:
        return np.array([UNLIMITED])

    @classmethod
    def for_setting(cls, setting: Setting, *, coins: Coins | None = None) -> Self:
        """The rate that balances the bound."""
        rate = math.sqrt(setting.slots * math.log(max(2, setting.n_items)) / setting.rounds)
        return cls(setting.n_items, setting.slots, rate=min(constants.FASTEST, rate), coins=coins)

    @property
    def guarantee(self) -> Guarantee:
        """None."""
        return no_privacy(self.coins.secure)

    def _restored(self) -> None:
        super()._restored()
        self._check()

    def _config(self) -> dict[str, Any]:
        return super()._config() | {"rate": self.rate}


class FiDp(PrintedExperts, PrivateDraws):
    """Algorithm 2 with the largest rate that the budget allows."""

    name: ClassVar[str] = "fi-dp"
    summary: ClassVar[str] = "the paper's Algorithm 2 with the best rate its budget allows; full information"
    theorem: ClassVar[str] = "docs/maths/paper.md, Theorem P1"

    @classmethod
    def calibrated(
        cls,
        setting: Setting,
        calibration: Calibration,
        *,
        coins: Coins | None = None,
        ledger: Ledger | None = None,
    ) -> Self:
        """With the paper's rate, or the largest that the same budget allows."""
        made = cls(
            setting.n_items,
            setting.slots,
            horizon=setting.rounds,
            rate=constants.full_information(setting, calibration),
            epsilon=setting.epsilon,
            delta=setting.delta,
            visits=setting.visits,
            ledger=ledger,
            coins=coins,
        )
        return made._as_planned(calibration)

    def _new_draw_budget(self, ledger: Ledger | None) -> DrawBudget:
        # The first round's draws are uniform whatever anybody says; what the last person says is never used.
        return DrawBudget(self.horizon - 1, self.slots, 2 * self.rate, ledger, secure=self.coins.secure)

    @property
    def _paid(self) -> Ints:
        return self._draw_budget.paid

    @property
    def _uses(self) -> Ints:
        return np.array([max(0, self.rounds - 1)])

    @property
    def _wanted(self) -> list[tuple[int, int]]:
        return [(self.rounds - 1, 0)] if self.rounds else []

    @property
    def claim(self) -> Guarantee:
        """k experts, T draws each, by advanced and basic composition."""
        delta, moved = self.budget.delta, self.visits * self.rate
        epsilon = constants.paper_claim(self.slots, self.horizon, moved, delta) if delta else math.inf
        return self._claimed(epsilon, delta, "Perez-Salazar & Cummings (2021), Theorem 5")


class FiDpPaper(FiDp):
    """Algorithm 2 with the paper's constants."""

    name: ClassVar[str] = "fi-dp-paper"
    summary: ClassVar[str] = "Algorithm 2 with the paper's own rate: near random choice on real streams"
    calibration: ClassVar[Calibration] = "paper"


@inline
def draw_with_repeats(experts: HedgeState, row: Items, secret: SecretWords) -> bool:
    """One item per slot; a slot that repeats an earlier one stays empty. False, nothing used, to be resumed."""
    begin(secret)
    for slot in range(len(row)):
        item = draw(experts.classes, slot, secret)
        if item == UNFINISHED:
            undo(secret)
            return False
        row[slot] = EMPTY_SLOT if shown_before(row, slot, item) else item
    return True


@inline
def _next(experts: HedgeState, row: Items, number: int, paid: Ints, secret: SecretWords) -> bool:
    """The slate of round `number`, if it is paid for; the first is free."""
    return (number == 0 or paid_for(paid, 0, number - 1)) and draw_with_repeats(experts, row, secret)


@kernel
def _draw_slate(experts: HedgeState, row: Items, number: int, paid: Ints, secret: SecretWords) -> bool:
    return _next(experts, row, number, paid, secret)


@kernel
def _replay(
    experts: HedgeState,
    table: Table,
    slates: Items,
    done: int,
    before: int,
    paid: Ints,
    secret: SecretWords,
    state: Floats,
    bag: GainBuffer,
) -> int:
    while done < slates.shape[0] and _next(experts, slates[done], before + done, paid, secret):
        learn_gains(experts, table, done, slates[done], state, bag)
        done += 1
    return done
