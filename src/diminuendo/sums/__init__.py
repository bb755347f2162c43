"""Private running sums: what users contribute is added up, and published with noise now and then."""

from diminuendo.sums.batch import OpenBatch
from diminuendo.sums.clip import Clip
from diminuendo.sums.private_sum import PrivateSum
from diminuendo.sums.schedule import Schedule, equal, geometric
from diminuendo.sums.strategies import STRATEGIES

__all__ = [
    "STRATEGIES",
    "Clip",
    "OpenBatch",
    "PrivateSum",
    "Schedule",
    "equal",
    "geometric",
]
