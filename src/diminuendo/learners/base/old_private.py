"""What every private learner keeps to: so many rounds, so many of each person, one process, no copies, its ledger."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.old_learner import Learner
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.base.visits import VisitLimit
from diminuendo.privacy.budget import Unit
from diminuendo.privacy.ledger import Ledger
from diminuendo.privacy.process_guard import refuse_copies
from diminuendo.randomness.coins import Coins


class PrivateLearner(Learner):
    """Made for `horizon` rounds, up to `visits` of them of one person; paid for on `ledger`, where there is one."""

    pure: ClassVar[bool] = False
    """Whether its delta is 0, so that only an epsilon is asked for."""
    _visit_limit: VisitLimit

    def __init__(
        self,
        n_items: int,
        slots: int,
        *,
        horizon: int,
        visits: int = 1,
        ledger: Ledger | None = None,
        coins: Coins | None = None,
        patience: int = 10_000,
    ) -> None:
        super().__init__(n_items, slots, coins=coins, patience=patience)
        self.horizon = _validate.positive_int(horizon, "horizon")
        self.visits = _validate.positive_int(visits, "visits")
        self.unit = Unit(self.visits)
        self._visit_limit = VisitLimit(self.visits)
        if ledger is not None and not isinstance(ledger, Ledger):
            raise InvalidInput(f"What is published is paid for on a Ledger; got {ledger!r}.")
        if ledger is not None and ledger.budget.unit.rounds < self.visits:
            raise InvalidInput(
                f"The ledger protects {ledger.budget.unit.rounds} rounds of one person, and this learner lets her "
                f"answer in {self.visits}. Open it with Budget(..., unit=Unit(rounds={self.visits})), or ask for fewer "
                "visits."
            )
        self._given = ledger

    @classmethod
    def for_setting(
        cls, setting: Setting, *, coins: Coins | None = None, ledger: Ledger | None = None
    ) -> Self:
        """Everything follows from the setting."""
        more: dict[str, Any] = {"epsilon": setting.epsilon, "visits": setting.visits}
        more |= {} if cls.pure else {"delta": setting.delta}
        return cls(setting.n_items, setting.slots, horizon=setting.rounds, ledger=ledger, coins=coins, **more)

    def __getstate__(self) -> dict[str, Any]:
        raise refuse_copies(self)

    def _config(self) -> dict[str, Any]:
        several = {"visits": self.visits} if self.visits > 1 else {}
        return super()._config() | {"horizon": self.horizon} | several

    def _packed(self) -> bytes:
        self._guard.check()
        return super()._packed()

    def _restored(self) -> None:
        super()._restored()
        if self.rounds > self.horizon:
            raise InvalidInput(
                "The snapshot holds more rounds than its learner was made for; it was altered."
            )

    def _facts(self) -> dict[str, Any]:
        return super()._facts() | {"ledger": self._given is not None}

    def _admit(self, rounds: int) -> None:
        guard = self._guard
        if guard.broken or not guard.same_process:
            guard.check()
        if self._decisions.rounds + rounds > self.horizon:
            raise InvalidInput(
                f"This learner was made for {self.horizon:,} rounds, and {self.rounds:,} are over; {rounds:,} more "
                "would cost more privacy than was promised. Make a new one for the people to come."
            )
