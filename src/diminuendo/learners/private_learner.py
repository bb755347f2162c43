"""What every private learner keeps to: so many rounds, one process, no copies, and a ledger that is not forgotten."""

from __future__ import annotations

from typing import Any

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.learners.learner import Learner
from diminuendo.privacy.custody import refuse_copies
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.coins import Coins


class PrivateLearner(Learner):
    """Made for `horizon` rounds; paid for on `ledger`, where there is one."""

    def __init__(
        self,
        n_items: int,
        slots: int,
        *,
        horizon: int,
        ledger: Ledger | None = None,
        coins: Coins | None = None,
        patience: int = 10_000,
    ) -> None:
        super().__init__(n_items, slots, coins=coins, patience=patience)
        self.horizon = _validate.positive_int(horizon, "horizon")
        if ledger is not None and not isinstance(ledger, Ledger):
            raise InvalidInput(f"What is published is paid for on a Ledger; got {ledger!r}.")
        self._given = ledger

    def __getstate__(self) -> dict[str, Any]:
        raise refuse_copies(self)

    def _config(self) -> dict[str, Any]:
        return super()._config() | {"horizon": self.horizon}

    def _facts(self) -> dict[str, Any]:
        return super()._facts() | {"ledger": self._given is not None}

    def _admit(self, rounds: int) -> None:
        self._custody.check()
        if self.rounds + rounds > self.horizon:
            raise InvalidInput(
                f"This learner was made for {self.horizon:,} rounds, and {self.rounds:,} are over; {rounds:,} more "
                "would cost more privacy than was promised. Make a new one for the people to come."
            )
