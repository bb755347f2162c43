"""People at places, for facility location: real pickups where DIMINUENDO_DATA names them, else made-up ones."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import numpy as np

from diminuendo import People, from_places, grid
from diminuendo.types import Floats

FOLDER = Path(os.environ.get("DIMINUENDO_DATA", "no-folder-named"))
"""Where somebody keeps real streams that are not ours to hand on; tests/reference/README.md says which and whence."""
PICKUPS = FOLDER / "uber_apr_aug14.csv.gz"

SOUTH, NORTH, WEST, EAST = 40.70, 40.82, -74.02, -73.93
"""A box around Manhattan."""


def pickups(people: int) -> People:
    """The real ones, or, where they are absent, people around three squares of the same box."""
    return uber(people) if PICKUPS.is_file() else _made_up(people)


def uber(people: int) -> People:
    """Pickups in Manhattan against a fixed grid of 150 sites, served within 2 km."""
    with duckdb.connect() as database:
        places = database.execute("SELECT lat, lon FROM read_csv($1)", [str(PICKUPS)]).fetchnumpy()
    return _served(np.column_stack([places["lat"], places["lon"]]), people, "uber")


def _made_up(people: int) -> People:
    rng = np.random.default_rng(1)
    squares = np.array([(40.75, -73.985), (40.72, -74.0), (40.78, -73.96)])
    points = squares[rng.integers(len(squares), size=2 * people)] + rng.normal(0, 0.012, (2 * people, 2))
    return _served(points, people, "made-up pickups")


def _served(points: Floats, people: int, name: str) -> People:
    inside = (points >= (SOUTH, WEST)).all(axis=1) & (points <= (NORTH, EAST)).all(axis=1)
    sites = grid(SOUTH, NORTH, WEST, EAST, 15, 10)
    return from_places(points[inside][:people], sites, reach_km=2.0, distance="flat", name=name)
