"""Learners whose people are in one sum: how a snapshot holds it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput
from diminuendo.learners.base.old_learner import Learner


class OneSum(Learner):
    """Keeps `_sum`, which writes and reads itself."""

    _sum: Any

    def _extra(self) -> dict[str, NDArray[Any]]:
        return {"sum": np.frombuffer(self._sum.snapshot(), dtype=np.uint8)}

    def _take_extra(self, found: dict[str, NDArray[Any]]) -> None:
        try:
            self._sum.restore(found.pop("sum").tobytes())
        except (KeyError, AttributeError) as error:
            raise InvalidInput(f"The snapshot's sum cannot be read: {error}.") from error
        super()._take_extra(found)
