"""Hedge as a private algorithm (Proposition 2): one expert, a horizon, and every draw paid for."""

from __future__ import annotations

import math

from diminuendo.errors import InvalidInput, refuse_copies
from diminuendo.experts.hedge import Hedge
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.hedge.constants import Calibration, accountant_for, full_information, paper_claim
from diminuendo.privacy.budget import REPLACE_ONE_ROUND, Budget, Guarantee
from diminuendo.privacy.draw_budget import DrawBudget
from diminuendo.privacy.ledger import Ledger
from diminuendo.privacy.process_guard import ProcessGuard
from diminuendo.randomness.sources import RandomSource, SystemSource
from diminuendo.randomness.words import SecretRandomness
from diminuendo.types import Floats


class PrivateHedge:
    """Algorithm 1 as a private algorithm (Proposition 2): draws an item per round, learns every item's gain.

    To read it: `paper.algorithms.hedge`.

    Parameters
    ----------
    n_items : int
        Number of actions.
    rounds : int
        Horizon, T.
    epsilon, delta : float
        Privacy budget.
    calibration : {"tight", "paper"}, default "tight"
        "paper": rate epsilon / sqrt(32 T log(1/delta)); "tight": the largest rate that the budget allows.
    ledger : Ledger, optional
        Charged as it draws.
    rng : RandomSource, optional
        Randomness. By default SystemSource.

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Notes
    -----
    (epsilon, delta)-DP, replacing one round's gains: T - 1 draws of bounded range 2 * rate (Theorem P1 of
    docs/maths/paper.md with k = 1).

    Examples
    --------
    >>> from diminuendo import SeededSource, paper
    >>> expert = paper.private_hedge(3, 1_000, 1.0, 1e-6, rng=SeededSource(1))
    >>> item = expert.draw()
    >>> expert.learn([0.0, 1.0, 0.0])
    >>> round(expert.guarantee.epsilon, 6)
    1.0
    """

    def __init__(
        self,
        n_items: int,
        rounds: int,
        epsilon: float,
        delta: float,
        *,
        calibration: Calibration = "tight",
        ledger: Ledger | None = None,
        rng: RandomSource | None = None,
    ) -> None:
        setting = Setting(n_items, 1, rounds, "full", epsilon, delta)
        self.horizon, self.rate = setting.rounds, full_information(setting, calibration)
        self.budget = Budget(setting.epsilon, setting.delta, accountant=accountant_for(setting.delta))
        self.rng: RandomSource = SystemSource() if rng is None else rng
        self._secret = SecretRandomness(self.rng)
        self._expert = Hedge(n_items, self.rate)
        self._draw_budget = DrawBudget(self.horizon - 1, 1, 2 * self.rate, ledger, secure=self.rng.secure)
        self._guard = ProcessGuard()
        self._rounds = 0
        self._answered = True

    def __repr__(self) -> str:
        return f"<PrivateHedge over {self._expert.n_items} items, {self._rounds} of {self.horizon} rounds>"

    def draw(self) -> int:
        """Return the item of the next round. Raises InvalidInput if all rounds are over."""
        self._guard.check()
        if self._rounds == self.horizon:
            raise InvalidInput(
                f"All {self.horizon} rounds are over; another draw would cost more than was promised."
            )
        if self._rounds:  # the first draw knows nothing, and is free
            self._draw_budget.pay(self._rounds - 1)
        item = self._expert.draw(self._secret)
        self._rounds += 1
        self._answered = False
        return item

    def learn(self, gains: Floats) -> None:
        """Learn every item's gain in the round just drawn. Once per round; a second time changes nothing."""
        self._guard.check()
        row = self._expert.checked(gains)  # asked first: what is said must not depend on who answered
        if not self._answered:
            self._expert.learn(row)
            self._answered = True

    __getstate__ = refuse_copies

    @property
    def guarantee(self) -> Guarantee:
        """What is proved for the whole run."""
        worth = self.budget.worth_of(self._draw_budget.event(self._draw_budget.total))
        proof = "docs/maths/paper.md, Theorem P1"
        return Guarantee(worth, self.budget.delta, REPLACE_ONE_ROUND, proof, self.rng.secure)

    @property
    def claim(self) -> Guarantee:
        """What Proposition 2 says about this rate."""
        delta, where = self.budget.delta, "Perez-Salazar & Cummings (2021), Proposition 2"
        epsilon = paper_claim(1, self.horizon, self.rate, delta) if delta else math.inf
        return Guarantee(epsilon, delta or 1.0, REPLACE_ONE_ROUND, where, self.rng.secure)
