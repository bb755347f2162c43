"""Twins without noise: the same learner, which publishes what people said as it is. It shows the price of privacy."""

from __future__ import annotations

from typing import Any, ClassVar

from diminuendo.errors import InvalidInput
from diminuendo.learners.slates.blocks import DealtRounds
from diminuendo.privacy.budget import Guarantee, no_privacy
from diminuendo.types import Floats


class OpenTwin(DealtRounds):
    """Put before a learner: its counts are published exactly, and nothing is promised."""

    noisy: ClassVar[bool] = False

    def __init__(self, n_items: int, slots: int, *, ledger: None = None, **config: Any) -> None:
        if ledger is not None:
            raise InvalidInput(
                f"{self.name!r} publishes what people said as it is; no ledger can pay for that."
            )
        super().__init__(n_items, slots, **config)

    @property
    def guarantee(self) -> Guarantee:
        """None."""
        return no_privacy(self.coins.secure)

    def _release(self) -> Floats:
        return self._counts.exact()
