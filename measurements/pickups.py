"""Pickups of Uber in Manhattan, for facility location."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import numpy as np

from diminuendo import Users, from_places, grid

FOLDER = Path(os.environ.get("DIMINUENDO_DATA", "no-folder-named"))
"""Where somebody keeps real streams that are not ours to hand on; tests/reference/README.md says which and whence."""
PICKUPS = FOLDER / "uber_apr_aug14.csv.gz"

SOUTH, NORTH, WEST, EAST = 40.70, 40.82, -74.02, -73.93
"""A box around Manhattan."""


def uber(users: int) -> Users:
    """Pickups in Manhattan against a fixed grid of 150 sites, served within 2 km."""
    with duckdb.connect() as database:
        places = database.execute("SELECT lat, lon FROM read_csv($1)", [str(PICKUPS)]).fetchnumpy()
    points = np.column_stack([places["lat"], places["lon"]])
    inside = (points >= (SOUTH, WEST)).all(axis=1) & (points <= (NORTH, EAST)).all(axis=1)
    sites = grid(SOUTH, NORTH, WEST, EAST, 15, 10)
    return from_places(points[inside][:users], sites, reach_km=2.0, distance="flat", name="uber")
