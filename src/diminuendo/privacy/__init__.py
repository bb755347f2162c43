"""Privacy: what is asked, what is proved, what is spent."""

from typing import TYPE_CHECKING

from diminuendo._lazy import lazily
from diminuendo.privacy.accountants import ACCOUNTANTS
from diminuendo.privacy.budget import Budget, Guarantee, Unit
from diminuendo.privacy.dp_event import to_dp_event
from diminuendo.privacy.events import (
    Composed,
    ContinuousGaussian,
    Event,
    Gaussian,
    Laplace,
    Parallel,
    Repeated,
    Selections,
)

if TYPE_CHECKING:
    from diminuendo.privacy.books.releases import Releases
    from diminuendo.privacy.ledger import Ledger
    from diminuendo.privacy.tokens import Tokens

# To read a ledger takes no sampler: front ends of the service never load one.
__getattr__, __dir__ = lazily(
    __name__, {"books.releases": "Releases", "ledger": "Ledger", "tokens": "Tokens"}
)

__all__ = [
    "ACCOUNTANTS",
    "Budget",
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
    "to_dp_event",
]
