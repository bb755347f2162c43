"""What only tests look at."""

from __future__ import annotations

from typing import Any

from diminuendo import Learner


def inside(learner: Learner) -> Any:
    """The policy of a learner, whatever it is, to look at what nobody else should."""
    return learner.policy
