"""Families of objectives as a parameter: two in the quick suite, all of them in the slow one.

Each kernel is compiled anew for each family, and compiling takes longer than any test. That a family's own functions
are right is tested for all of them (tests/objectives); that a kernel calls them rightly shows with two: the plainest,
and one whose items come in no order and whose users hold several numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from diminuendo.objectives import FAMILIES
from diminuendo.objectives.family import Family
from diminuendo.objectives.rows import Matrix

QUICK = ("noisy-or", "coverage")

families = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in FAMILIES]
)


def specimens(name: str) -> Iterator[tuple[Family, int, tuple[Matrix, ...]]]:
    """Small crowds of one family."""
    return FAMILIES[name].specimens()
