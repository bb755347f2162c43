"""A policy whose people are in one sum: how its snapshot holds that sum."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput
from diminuendo.sums.exact_sum import ExactSum
from diminuendo.sums.private_sum import PrivateSum


def sum_as_extra(kept: PrivateSum | ExactSum) -> dict[str, NDArray[Any]]:
    """The sum as `Policy.extra` hands it to a snapshot. As private as what people said."""
    return {"sum": np.frombuffer(kept.snapshot(), dtype=np.uint8)}


def take_sum(kept: PrivateSum | ExactSum, found: dict[str, NDArray[Any]]) -> None:
    """Go on from what `sum_as_extra` wrote; refuse what it could not have written."""
    try:
        kept.restore(found.pop("sum").tobytes())
    except (KeyError, AttributeError) as error:
        raise InvalidInput(f"The snapshot's sum cannot be read: {error}.") from error
    if found:
        raise InvalidInput("The snapshot holds more than this learner keeps; it was altered.")
