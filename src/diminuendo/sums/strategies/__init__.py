"""The strategies there are, by name. A new one is one file and one line here."""

from __future__ import annotations

from diminuendo.sums.strategies.base import Independent, Strategy
from diminuendo.sums.strategies.toeplitz import SqrtToeplitz

STRATEGIES: dict[str, type[Strategy]] = {strategy.name: strategy for strategy in (Independent, SqrtToeplitz)}
"""Every strategy by the name users type."""
