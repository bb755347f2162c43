"""Budgets and guarantees: what is asked, and what is proved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What a learner promises about everything it lets out."""

    epsilon: float
    delta: float
    neighbours: str
    """Which change of the input is hidden."""
    proof: str
    """Where the promise is proved."""
    secure_coins: bool
    """False: computed for a run with seeded coins, which anybody with the seed can repeat."""

    def __str__(self) -> str:
        if math.isinf(self.epsilon):
            return "none: not private"
        note = "" if self.secure_coins else ", seeded: for simulation only"
        return f"({self.epsilon:g}, {self.delta:g})-differentially private ({self.neighbours}{note})"

    def as_json(self) -> dict[str, Any]:
        """For files: an infinite epsilon is null."""
        return {
            "epsilon": None if math.isinf(self.epsilon) else self.epsilon,
            "delta": self.delta,
            "neighbours": self.neighbours,
            "proof": self.proof,
            "secure_coins": self.secure_coins,
        }


REPLACE_ONE_ROUND = "replace one round"


def no_privacy(secure_coins: bool) -> Guarantee:
    """For learners that promise nothing."""
    return Guarantee(math.inf, 1.0, REPLACE_ONE_ROUND, "nothing is claimed", secure_coins)


def perfect_privacy(proof: str, secure_coins: bool) -> Guarantee:
    """For learners whose slates do not depend on anybody."""
    return Guarantee(0.0, 0.0, REPLACE_ONE_ROUND, proof, secure_coins)
