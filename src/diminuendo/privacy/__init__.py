"""Privacy: what is asked, what is proved, what is spent."""

from diminuendo.privacy.accountants import ACCOUNTANTS
from diminuendo.privacy.budget import Budget, Guarantee, Unit
from diminuendo.privacy.events import (
    Columns,
    Composed,
    ContinuousGaussian,
    Event,
    Gaussian,
    Laplace,
    Parallel,
    Repeated,
    Selections,
)
from diminuendo.privacy.ledger import Ledger
from diminuendo.privacy.releases import Releases
from diminuendo.privacy.tokens import Tokens

__all__ = [
    "ACCOUNTANTS",
    "Budget",
    "Columns",
    "Composed",
    "ContinuousGaussian",
    "Event",
    "Gaussian",
    "Guarantee",
    "Laplace",
    "Ledger",
    "Parallel",
    "Releases",
    "Repeated",
    "Selections",
    "Tokens",
    "Unit",
]
