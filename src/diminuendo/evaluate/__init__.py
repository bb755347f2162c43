"""Evaluate: what another policy would have earned, from logged rounds whose propensities are public."""

from __future__ import annotations

from diminuendo.evaluate.estimate import Estimate, evaluate
from diminuendo.evaluate.estimators import METHODS
from diminuendo.evaluate.log import Log
from diminuendo.evaluate.policies import AnyOrder, ByRound, Mixture, Policy
from diminuendo.evaluate.private import evaluate_privately

__all__ = [
    "METHODS",
    "AnyOrder",
    "ByRound",
    "Estimate",
    "Log",
    "Mixture",
    "Policy",
    "evaluate",
    "evaluate_privately",
]
