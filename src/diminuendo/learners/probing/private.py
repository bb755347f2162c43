"""Blocks with noise: which noise, and what it costs."""

from __future__ import annotations

from typing import Any

from diminuendo.learners.base.old_private import PrivateLearner
from diminuendo.learners.probing.learner import Blocks, contributions
from diminuendo.learners.probing.schedule import Noise, planned, spread_ahead
from diminuendo.privacy.budget import Budget, Guarantee
from diminuendo.privacy.events import Event
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.coins import Coins
from diminuendo.sums.clip import Clip
from diminuendo.sums.private_sum import PrivateSum

STRATEGY = {"laplace": "independent", "gaussian": "blt"}
"""Each block by itself, or running sums."""


class PrivateBlocks(Blocks, PrivateLearner):
    """Blocks with noise."""

    def __init__(
        self,
        n_items: int,
        slots: int,
        *,
        horizon: int,
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
        self._asked = Budget(epsilon, delta, self.unit, "zcdp" if delta else "pure")
        theorem, plans = type(self).theorem(self.slots), []
        for noise in self._noises(ledger):
            budget = self._budget(noise)
            limit = float(budget.limit)
            plan = planned(theorem, self.n_items, self.horizon, noise, limit, self.ticks)
            plans.append((plan.bound(theorem, spread_ahead(noise, plan.blocks, limit), self.ticks), plan))
        plan = min(plans, key=lambda found: found[0])[1]
        self.budget = self._budget(plan.noise)
        self._sum: PrivateSum
        made = PrivateSum(
            self.slots * self.n_items,
            schedule=contributions(plan),
            cost=self.budget.share(),
            ledger=Ledger(self.budget) if ledger is None else ledger,
            strategy=STRATEGY[plan.noise],
            clip=Clip("cell", ticks=self.ticks),
            name=self.name,
        )
        self._begin(plan, made)

    def _noises(self, ledger: Ledger | None) -> tuple[Noise, ...]:
        """Which noise may be taken; of two, that with the lesser bound is."""
        if self.reacting or self._asked.delta == 0:
            return ("laplace",)
        if ledger is not None:
            return ("laplace",) if ledger.budget.accountant == "pure" else ("gaussian",)
        return ("laplace", "gaussian")

    def _budget(self, noise: Noise) -> Budget:
        if noise == "laplace":
            return Budget(self._asked.epsilon, 0.0, self.unit, "pure")
        return Budget(self._asked.epsilon, self._asked.delta, self.unit, "continuous-gaussian")

    @property
    def events(self) -> Event:
        """What the whole run costs."""
        return self._sum.event

    def _spread(self) -> float:
        if self.plan.noise == "laplace":
            return self._sum.scale / self.ticks
        return self._sum.deviation(len(self._sum.schedule))

    @property
    def guarantee(self) -> Guarantee:
        """What is proved for the whole run."""
        found = self.budget.counting.epsilon(self.events, self.budget.delta, self.visits)
        epsilon, proof = min(found, self.budget.epsilon), "docs/maths/blocks.md, Theorem K1"
        return Guarantee(epsilon, self.budget.delta, str(self.unit), proof, self.coins.secure)

    def _config(self) -> dict[str, Any]:
        return super()._config() | {"epsilon": self._asked.epsilon, "delta": self._asked.delta}
