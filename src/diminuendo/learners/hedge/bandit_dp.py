r"""BanditDP, Algorithm 3 of the paper, and its relatives: k ordered Hedge experts that learn from one number a person.

Now and then a round explores: a random slot i and item a, the experts' items before slot i and then a are shown, and
the payoff goes to expert i as the gain of a. Experts draw anew after an exploration only; in between the slate stays.

`bandit-dp`         only the expert that explored redraws ("own"), or all of them, as printed ("all");
`bandit-direct`     everybody redraws in every round (the paper's appendix: regret of order T^(3/4));
`bandit-presampled` exploring rounds are drawn before the first person comes, so that the rate can know their number;
`streeter-golovin-bandit`  the original: a redraw in every round, and no privacy.

The cap on explorations is the same for everybody and decided by coins, so privacy does not rest on luck: there is no
tail to add to delta. Without a cap (`cap=None`, as printed) delta is averaged over the number of explorations.

Regret     docs/maths/paper.md, Theorem P3.
Guarantee  one person's answer moves one score of one expert by at most one unit, so only that expert's later redraws
           count, each within a span of `rate` (docs/maths/paper.md, Theorem P2); `rate` * m for a person who has m
           rounds, wherever they fall (docs/maths/accounting.md, Theorem A9).
References Perez-Salazar & Cummings (2021), AISTATS, section 4; Streeter & Golovin (2008), NIPS 21.

Delta where the number of private draws is up to public coins.

A person's answer matters only if her round explores, and then for the redraw right after it and for those that later
explorations make due. Coins are public and know nothing of people, so the law of everything seen is a mixture over
them, and its delta at any epsilon is at most the average of the delta given the coins (docs/maths/paper.md, P2c):

    delta(epsilon) <= explores * sum over m of Pr(M = m) delta_{1 + m}(epsilon),   M ~ Binomial(later, again).

No tail bound is needed, so there is none to get wrong. The sum is taken over stretches of m, each at its upper end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self, cast

import numpy as np
import scipy

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.hedge import constants
from diminuendo.learners.hedge.constants import Calibration, Exploring, Resample
from diminuendo.learners.hedge.exploring import (
    ALL,
    EVERY,
    EVERYBODY,
    NOBODY,
    OWN,
    BanditExperts,
    Rules,
    share_of_rounds,
)
from diminuendo.learners.hedge.private_draws import PrivateDraws
from diminuendo.privacy import curves
from diminuendo.privacy.budget import Guarantee
from diminuendo.privacy.draw_budget import UNLIMITED, DrawBudget
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.coins import Coins
from diminuendo.types import Ints

STRETCHES = 400
ROUNDING = 1e-15
"""More than the distribution function, a product or a short sum may round away."""


def delta_over_coins(later: int, explores: float, again: float, rate: float, epsilon: float) -> float:
    """Delta at `epsilon` of redraws within a span of `rate` each: 1 + Binomial(later, again) of them, where her round
    explores, which it does with probability `explores`. Rounded up."""
    later = max(0, later)
    mean, spread = later * again, math.sqrt(later * again * (1 - again)) + 1
    ends = np.clip(np.floor(mean + spread * np.linspace(-12, 40, STRETCHES)), 0, later).astype(np.int64)
    ends = np.unique(np.append(ends, later))
    upto = np.ones(len(ends))  # the distribution function of the binomial law, as a beta integral
    inner = ends < later
    upto[inner] = scipy.special.betainc(later - ends[inner], ends[inner] + 1.0, 1 - again)
    inside = np.diff(upto, prepend=0.0).clip(0.0) + ROUNDING
    costs = [curves.zcdp_delta((1.0 + m) * rate * rate / 8 * (1 + ROUNDING), epsilon) for m in ends]
    return min(1.0, explores * float(inside @ np.array(costs)) * (1 + 1e3 * ROUNDING))


MOST_KEPT, CHUNK = 1 << 24, 1 << 20

REDRAWERS: dict[str, int] = {"all": ALL, "own": OWN, "every": EVERY}


class _PrivateBandit(BanditExperts, PrivateDraws):
    """What the private ones share."""

    theorem: ClassVar[str] = "docs/maths/paper.md, Theorem P2"

    @property
    def _paid(self) -> Ints:
        return self._draw_budget.paid

    @property
    def _uses(self) -> Ints:
        return self._exploring.redraws

    @property
    def _wanted(self) -> list[tuple[int, int]]:
        due = int(self._exploring.due[0])
        if self.rounds == 0 or due == NOBODY:
            return []
        experts = range(self.slots) if due == EVERYBODY else (due,)
        return [(int(self._exploring.redraws[expert]), expert) for expert in experts]

    def _draw_budget_of(self, most: int, ledger: Ledger | None) -> DrawBudget:
        return DrawBudget(most, 1, self.rate, ledger, experts=self.slots, secure=self.coins.secure)


class BanditDp(_PrivateBandit):
    """Algorithm 3 with a cap, and with the rate and the exploring that make its bound least."""

    name: ClassVar[str] = "bandit-dp"
    summary: ClassVar[str] = "the paper's Algorithm 3 with the best constants its budget allows; bandit"
    redraws: ClassVar[Resample] = "own"
    """Who redraws by default."""

    def __init__(
        self,
        n_items: int,
        slots: int,
        *,
        exploring: float,
        cap: int | None,
        resample: Resample = "own",
        ledger: Ledger | None = None,
        **config: Any,
    ) -> None:
        self.exploring = share_of_rounds(exploring)
        self.cap = None if cap is None else _validate.whole(cap, 0, UNLIMITED, "cap")
        self.resample: Resample = cast(Resample, _validate.one_of(resample, tuple(REDRAWERS), "resample"))
        if cap is None and ledger is not None and resample != "every":
            raise InvalidInput("Without a cap a run has no fixed price: give a cap, or no ledger.")
        super().__init__(n_items, slots, ledger=ledger, **config)

    @classmethod
    def calibrated(
        cls,
        setting: Setting,
        calibration: Calibration,
        *,
        coins: Coins | None = None,
        ledger: Ledger | None = None,
        resample: Resample | None = None,
        capped: bool = True,
    ) -> Self:
        """With the paper's constants, or those that make the proved bound least; `capped=False` as printed."""
        resample = resample or cls.redraws
        found: Exploring = constants.bandit(setting, calibration, resample)
        made = cls(
            setting.n_items,
            setting.slots,
            exploring=found.share,
            cap=found.cap if capped else None,
            resample=resample,
            horizon=setting.rounds,
            rate=found.rate,
            epsilon=setting.epsilon,
            delta=setting.delta,
            visits=setting.visits,
            ledger=ledger,
            coins=coins,
        )
        return made._as_planned(calibration)

    def _rules(self) -> Rules:
        cap = self.horizon if self.cap is None else self.cap
        return Rules(self.exploring, cap, REDRAWERS[self.resample], np.empty(0, dtype=np.int64), False)

    def _new_draw_budget(self, ledger: Ledger | None) -> DrawBudget:
        most = self.horizon - 1  # redraws of one expert: none before the first round
        if self.resample != "every" and self.cap is not None:
            most = min(most, self.cap)
        return self._draw_budget_of(most, ledger)

    @property
    def guarantee(self) -> Guarantee:
        """What is proved for the whole run; without a cap, delta includes that there may be many explorations.

        That average is over the coins after one given round. Where the rounds of one person may be chosen in the light
        of earlier coins, it proves nothing, and every round is counted as an exploration.
        """
        capped = super().guarantee
        if self.cap is not None or self.resample == "every" or self.visits > 1:
            return capped
        again = self.exploring / self.slots if self.resample == "own" else self.exploring
        epsilon = self.budget.epsilon
        delta = delta_over_coins(self.horizon - 2, self.exploring, again, self.rate, epsilon)
        if capped.epsilon <= epsilon and capped.delta <= delta:
            return capped
        return Guarantee(epsilon, delta, str(self.unit), self.theorem, self.coins.secure)

    @property
    def claim(self) -> Guarantee:
        """The paper's Theorem 7 for this rate: 2 gamma T draws of each expert, and a tail."""
        delta, direct, moved = self.budget.delta, self.resample == "every", self.visits * self.rate
        draws = self.horizon if direct else max(1.0, 2 * self.exploring * self.horizon)
        epsilon = constants.paper_claim(self.slots, draws, moved, delta) if delta else math.inf
        if direct:
            return self._claimed(epsilon, delta, "Perez-Salazar & Cummings (2021), Appendix B.1")
        # The theorem's exponent is for its own gamma, the proof's for any.
        exponent = min(self.exploring**2 * self.horizon, math.cbrt(self.horizon))
        claimed = min(1.0, delta + math.exp(-8 * exponent))
        return self._claimed(epsilon, claimed, "Perez-Salazar & Cummings (2021), Theorem 7")

    def _config(self) -> dict[str, Any]:
        return super()._config() | {
            "exploring": self.exploring,
            "cap": self.cap,
            "resample": self.resample,
        }


class BanditDpPaper(BanditDp):
    """Algorithm 3 with the paper's constants; every expert redraws."""

    name: ClassVar[str] = "bandit-dp-paper"
    summary: ClassVar[str] = "Algorithm 3 with the paper's own constants: often explores in every round"
    calibration: ClassVar[Calibration] = "paper"
    redraws: ClassVar[Resample] = "all"


class DirectBandit(BanditDp):
    """The direct approach of the appendix: everybody redraws in every round."""

    name: ClassVar[str] = "bandit-direct"
    summary: ClassVar[str] = (
        "the paper's direct bandit: redraws in every round; shows why Algorithm 3 does not"
    )
    redraws: ClassVar[Resample] = "every"


class DirectBanditPaper(DirectBandit):
    """The direct approach with the paper's constants."""

    name: ClassVar[str] = "bandit-direct-paper"
    summary: ClassVar[str] = "the direct bandit with the paper's own constants"
    calibration: ClassVar[Calibration] = "paper"


class PresampledBandit(_PrivateBandit):
    """Algorithm 3 with exploring rounds that were drawn beforehand: memory for delta."""

    name: ClassVar[str] = "bandit-presampled"
    summary: ClassVar[str] = (
        "Algorithm 3 with exploring rounds drawn beforehand; memory grows with their number"
    )

    def __init__(self, n_items: int, slots: int, *, explore_at: Sequence[int] | Ints, **config: Any) -> None:
        given = np.asarray(explore_at)
        whole = given.ndim == 1 and (given.size == 0 or np.issubdtype(given.dtype, np.integer))
        if not whole or (given[:1] < 0).any() or (np.diff(given) <= 0).any() or (given >= 1 << 62).any():
            raise InvalidInput("explore_at must be rounds, counted from 0, each once and in order.")
        self._schedule = given.astype(np.int64)
        super().__init__(n_items, slots, **config)

    @classmethod
    def calibrated(
        cls,
        setting: Setting,
        calibration: Calibration,
        *,
        coins: Coins | None = None,
        ledger: Ledger | None = None,
    ) -> Self:
        """Draw the exploring rounds with public coins, then take the rate that their number allows."""
        source, share = cls._coins(coins), constants.presampled(setting, calibration)
        if share * setting.rounds > MOST_KEPT:
            raise InvalidInput(
                f"About {share * setting.rounds:,.0f} exploring rounds would have to be kept in memory, more than "
                f"{MOST_KEPT:,}. Use 'bandit-dp', which keeps none."
            )
        parts = []
        for first in range(0, setting.rounds, CHUNK):
            words = source.public(min(CHUNK, setting.rounds - first))
            parts.append(first + np.flatnonzero((words >> np.uint64(11)) < share * 2.0**53))
        explore_at = np.concatenate(parts)
        made = cls(
            setting.n_items,
            setting.slots,
            explore_at=explore_at,
            horizon=setting.rounds,
            rate=constants.presampled_rate(setting, calibration, len(explore_at)),
            epsilon=setting.epsilon,
            delta=setting.delta,
            visits=setting.visits,
            ledger=ledger,
            coins=source,
        )
        return made._as_planned(calibration)

    def _rules(self) -> Rules:
        return Rules(0.0, len(self._schedule), ALL, self._schedule, True)

    def _new_draw_budget(self, ledger: Ledger | None) -> DrawBudget:
        return self._draw_budget_of(min(self.horizon - 1, len(self._schedule)), ledger)

    @property
    def claim(self) -> Guarantee:
        """The paper's appendix: M + 1 draws of each expert, and no tail."""
        delta, draws, moved = self.budget.delta, len(self._schedule) + 1, self.visits * self.rate
        epsilon = constants.paper_claim(self.slots, draws, moved, delta) if delta else math.inf
        return self._claimed(epsilon, delta, "Perez-Salazar & Cummings (2021), Appendix B.2")

    @property
    def parameters(self) -> dict[str, Any]:
        """The public numbers that it was made with; the exploring rounds are only counted."""
        kept = {name: value for name, value in super().parameters.items() if name != "explore_at"}
        return kept | {"explorations": len(self._schedule)}

    def _config(self) -> dict[str, Any]:
        return super()._config() | {"explore_at": self._schedule.tolist()}


class PresampledBanditPaper(PresampledBandit):
    """Exploring rounds drawn beforehand, with the paper's constants."""

    name: ClassVar[str] = "bandit-presampled-paper"
    summary: ClassVar[str] = "exploring rounds drawn beforehand, with the paper's own constants"
    calibration: ClassVar[Calibration] = "paper"
