"""Blocks without noise, not private: the same probes, and cells as they are. They show what noise takes away."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.probing.learner import Blocks, contributions
from diminuendo.learners.probing.schedule import Plan, planned
from diminuendo.privacy.budget import Guarantee, no_privacy
from diminuendo.randomness.coins import Coins
from diminuendo.randomness.words import SecretRandomness
from diminuendo.sums import snapshots
from diminuendo.sums.batch import OpenBatch
from diminuendo.sums.clip import Clip
from diminuendo.types import Floats


class OpenSum(OpenBatch):
    """A running sum that is published as it is."""

    def __init__(self, plan: Plan, ticks: int) -> None:
        super().__init__(plan.slots * plan.n_items, Clip("cell", ticks=ticks), contributions(plan))
        self._total = np.zeros(self.size, dtype=np.int64)

    def release(self, secret: SecretRandomness) -> Floats:
        """Close the batch; the sum so far, in units."""
        self._total += self._take()
        return self._total / self.clip.ticks

    def snapshot(self) -> bytes:
        """What was added so far."""
        return snapshots.packed(self._facts(), [self._entries(), self._marks, self._total])

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of a sum that was made with the same arguments."""
        batch = self._entries()
        snapshots.unpack(snapshot, self._facts(), [batch, self._marks, self._total])
        self._fill(batch)
        if not 0 <= self.batch <= len(self.schedule):
            raise InvalidInput("The snapshot is of a batch that there is not; it was altered.")

    def _facts(self) -> dict[str, Any]:
        return {"sum": repr((self.size, self.clip, self.schedule.ends))}


class OpenBlocks(Blocks):
    """Blocks without noise; planned for `horizon` rounds, after which nothing more is learned."""

    def __init__(
        self, n_items: int, slots: int, *, horizon: int, coins: Coins | None = None, patience: int = 10_000
    ) -> None:
        super().__init__(n_items, slots, coins=coins, patience=patience)
        self.horizon = _validate.positive_int(horizon, "horizon")
        theorem = type(self).theorem(self.slots)
        plan = planned(theorem, self.n_items, self.horizon, "none", 1.0, self.ticks)
        self._begin(plan, OpenSum(plan, self.ticks))

    @classmethod
    def for_setting(cls, setting: Setting, *, coins: Coins | None = None) -> Self:
        """Everything follows from the setting."""
        return cls(setting.n_items, setting.slots, horizon=setting.rounds, coins=coins)

    @property
    def guarantee(self) -> Guarantee:
        """None."""
        return no_privacy(self.coins.secure)

    def _spread(self) -> float:
        return 0.0

    def _config(self) -> dict[str, Any]:
        return super()._config() | {"horizon": self.horizon}
