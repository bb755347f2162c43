"""Real streams that are not ours to hand on, for slow tests that are skipped where nobody has fetched them."""

from __future__ import annotations

import os

import pytest

from measurements.pickups import PICKUPS, uber
from measurements.streams import GROCERIES, MOVIELENS, groceries, movielens

__all__ = ["groceries", "movielens", "needs", "uber"]

FILES = {
    "groceries": GROCERIES,
    "movielens": MOVIELENS,
    "uber": PICKUPS,
}


def needs(stream: str) -> tuple[pytest.MarkDecorator, ...]:
    """Marks of a test on that stream: slow, and skipped where its file is missing. MSWeb, which we have, needs none."""
    if stream not in FILES:
        return ()
    named = os.environ.get("DIMINUENDO_DATA", "a folder")
    missing = f"needs {FILES[stream].name} in {named}: set DIMINUENDO_DATA, see tests/reference/README.md"
    return pytest.mark.slow, pytest.mark.skipif(not FILES[stream].is_file(), reason=missing)
