"""Objectives: what one user feels about a slate. Monotone, submodular, in [0, 1]."""

from diminuendo._plugins import Table
from diminuendo.objectives.best_match import BestMatch
from diminuendo.objectives.check import Violation, check
from diminuendo.objectives.concave import Concave
from diminuendo.objectives.coverage import Coverage
from diminuendo.objectives.family import Family
from diminuendo.objectives.mixture import Mixture
from diminuendo.objectives.noisy_or import NoisyOr
from diminuendo.objectives.oracle import Oracle
from diminuendo.objectives.user import User, user

FAMILIES = Table[type[Family]](
    "family of objectives",
    {family.name: family for family in (NoisyOr, BestMatch, Coverage, Concave, Mixture)},
)
"""Every compiled family by the name users type, those of plugins included. A line here brings contract tests and a CLI
name."""

__all__ = [
    "FAMILIES",
    "BestMatch",
    "Concave",
    "Coverage",
    "Family",
    "Mixture",
    "NoisyOr",
    "Oracle",
    "User",
    "Violation",
    "check",
    "user",
]
