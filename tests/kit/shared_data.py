"""Real streams that lie beside a developer's checkout, for tests that skip where they are absent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest
from scipy import sparse

from diminuendo import NoisyOr, People, from_places, grid
from diminuendo.streams import read_baskets, read_ratings

FOLDER = Path(__file__).parents[3] / "shared" / "data"

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


def uber(people: int) -> People:
    """Pickups in Manhattan against a fixed grid of 150 sites, served within 2 km."""
    table = pyarrow.csv.read_csv(FOLDER / "uber_apr_aug14.csv.gz")
    points = np.column_stack([table["lat"].to_numpy(), table["lon"].to_numpy()])
    south, north, west, east = 40.70, 40.82, -74.02, -73.93
    inside = (points >= (south, west)).all(axis=1) & (points <= (north, east)).all(axis=1)
    sites = grid(south, north, west, east, 15, 10)
    return from_places(points[inside][:people], sites, reach_km=2.0, distance="flat", name="uber")
