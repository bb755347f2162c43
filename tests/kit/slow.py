"""What of a long list of cases every run tries, and what waits for `make test-slow`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeVar

import pytest

Value = TypeVar("Value")

MECHANISMS = (
    *("random", "fi-dp", "fi-pure", "overlap-greedy", "epoch-greedy"),
    *("slate-clicks", "lazy-hedge"),
)
"""One learner for each way to be private: nothing learned, draws, noise on leaders, overlaps that are counted, epochs,
slates that are counted, coins and few draws. The others differ in constants, or in what they read."""


def is_variant(name: str) -> bool:
    """Whether the learner differs from another one by an option only."""
    return ":" in name


def mostly_slow(values: Iterable[Value], quick: Collection[Value]) -> list[pytest.ParameterSet]:
    """Values of a parameter: those in `quick` are tried in every run, the others in the slow one."""
    return [pytest.param(value, marks=[] if value in quick else [pytest.mark.slow]) for value in values]


def rows_mostly_slow(
    rows: Iterable[tuple[object, ...]], quick: Collection[tuple[object, ...]]
) -> list[pytest.ParameterSet]:
    """Rows of several parameters: those in `quick` are tried in every run, the others in the slow one."""
    return [pytest.param(*row, marks=[] if row in quick else [pytest.mark.slow]) for row in rows]
