"""What only tests look at."""

from __future__ import annotations

from typing import Any

from diminuendo import Learner


def inside(learner: Learner) -> Any:
    """The policy of a learner, whatever it is, to look at what nobody else should."""
    return learner.policy


def last_deviation(sums: Any) -> float:
    """The deviation of the noise in every entry of the last release of gradients in whole ticks."""
    return float(sums._unit * sums._sum.deviation(len(sums._sum.schedule)))
