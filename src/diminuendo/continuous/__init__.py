"""Continuous choice: points instead of slates, DR-submodular functions instead of submodular ones.

`BoostedAscent` is what we recommend; `MetaFrankWolfe` is Algorithm 4.
"""

from diminuendo.continuous.boosted import BoostedAscent
from diminuendo.continuous.check import check
from diminuendo.continuous.domains import Box, CappedSimplex, Domain
from diminuendo.continuous.frank_wolfe import Claim, MetaFrankWolfe
from diminuendo.continuous.learner import PointDecision
from diminuendo.continuous.objectives import (
    DRObjective,
    MultilinearCoverage,
    MultilinearNoisyOr,
    multilinear,
)
from diminuendo.continuous.offline import frank_wolfe_offline, total_value
from diminuendo.continuous.smooth import BudgetAllocation, ConcaveOfLinear, Quadratic

__all__ = [
    "BoostedAscent",
    "Box",
    "BudgetAllocation",
    "CappedSimplex",
    "Claim",
    "ConcaveOfLinear",
    "DRObjective",
    "Domain",
    "MetaFrankWolfe",
    "MultilinearCoverage",
    "MultilinearNoisyOr",
    "PointDecision",
    "Quadratic",
    "check",
    "frank_wolfe_offline",
    "multilinear",
    "total_value",
]
