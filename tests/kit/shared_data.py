"""Real streams that lie beside a developer's checkout, for tests that skip where they are absent."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from benchmarks.pickups import PICKUPS, uber
from diminuendo import NoisyOr, People
from diminuendo.streams import read_baskets, read_ratings

__all__ = ["FOLDER", "groceries", "movielens", "needs_shared_data", "uber"]

FOLDER = PICKUPS.parent

needs_shared_data = pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"needs the developers' data in {FOLDER.parent.name}/data"
)


def groceries() -> People:
    """Till receipts of one shop."""
    return read_baskets(FOLDER / "groceries.baskets.txt.gz", n_items=169)


def movielens(top: int) -> People:
    """Film ratings, a tenth of a click per star, on the `top` most rated films."""
    path = FOLDER / "movielens_small.ratings.csv.gz"
    everything = read_ratings(path, columns=("userId", "movieId", "rating"), scale=(0, 10)).matrices[0]
    popular = np.sort(np.argsort(-np.bincount(everything.indices), kind="stable")[:top])
    return People(NoisyOr(), sparse.csr_array(everything[:, popular]), name=f"movielens-{top}")
