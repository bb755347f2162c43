"""Real streams that are not ours to hand on, for slow tests that are skipped where nobody has fetched them."""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy import sparse

from benchmarks.pickups import FOLDER, PICKUPS, uber
from diminuendo import NoisyOr, People
from diminuendo.streams import read_baskets, read_ratings

__all__ = ["groceries", "movielens", "needs", "uber"]

FILES = {
    "groceries": FOLDER / "groceries.baskets.txt.gz",
    "movielens": FOLDER / "movielens_small.ratings.csv.gz",
    "uber": PICKUPS,
}


def needs(stream: str) -> tuple[pytest.MarkDecorator, ...]:
    """Marks of a test on that stream: slow, and skipped where its file is missing. MSWeb, which we have, needs none."""
    if stream not in FILES:
        return ()
    named = os.environ.get("DIMINUENDO_DATA", "a folder")
    missing = f"needs {FILES[stream].name} in {named}: set DIMINUENDO_DATA, see tests/reference/README.md"
    return pytest.mark.slow, pytest.mark.skipif(not FILES[stream].is_file(), reason=missing)


def groceries() -> People:
    """Till receipts of one shop."""
    return read_baskets(FILES["groceries"], n_items=169)


def movielens(top: int) -> People:
    """Film ratings, a tenth of a click per star, on the `top` most rated films."""
    everything = read_ratings(
        FILES["movielens"], columns=("userId", "movieId", "rating"), scale=(0, 10)
    ).matrices[0]
    popular = np.sort(np.argsort(-np.bincount(everything.indices), kind="stable")[:top])
    return People(NoisyOr(), sparse.csr_array(everything[:, popular]), name=f"movielens-{top}")
