"""Streams that the command line has no name for, written as files that `diminuendo simulate` reads.

Real ones are made from files that are not ours to hand on; tests/reference/README.md says which, and where they come
from. The environment variable DIMINUENDO_DATA names the folder that has them.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

from diminuendo import BestMatch, NoisyOr, Users
from diminuendo.objectives import Family
from diminuendo.streams import read_baskets, read_ratings
from diminuendo.streams.synthetic import taste_groups
from measurements.pickups import FOLDER, PICKUPS, uber

GROCERIES = FOLDER / "groceries.baskets.txt.gz"
MOVIELENS = FOLDER / "movielens_small.ratings.csv.gz"

FILES = Path("out") / "streams"
"""Where the files go, below the folder of the repository."""


class MissingData(Exception):
    """A file with real users is not on this machine, or is not the one that was measured."""


class Recipe(NamedTuple):
    """How a stream is made, and of which file, where it is real."""

    make: Callable[[], Users]
    source: Path | None = None
    sha256: str | None = None
    """The checksum of the source, where results are only comparable if it is exactly this file."""


def groceries() -> Users:
    """Till receipts of one shop."""
    return read_baskets(GROCERIES, n_items=169)


def movielens(top: int) -> Users:
    """Film ratings, a tenth of a click per star, on the `top` most rated films."""
    columns = ("userId", "movieId", "rating")
    everything = read_ratings(MOVIELENS, columns=columns, scale=(0, 10), round="user").matrices[0]
    popular = np.sort(np.argsort(-np.bincount(everything.indices), kind="stable")[:top])
    return Users(NoisyOr(), sparse.csr_array(everything[:, popular]), name=f"movielens-{top}")


def held_out(file: str, family: Family, sha256: str) -> Recipe:
    """A stream on which no constant was chosen. tests/reference/README.md says how its file was made."""
    source = FOLDER / "heldout" / file
    return Recipe(lambda: Users(family, sparse.load_npz(source), name=file.partition(".")[0]), source, sha256)


RECIPES = {
    "groceries": Recipe(groceries, GROCERIES),
    "uber-20000": Recipe(partial(uber, 20_000), PICKUPS),
    "uber-65000": Recipe(partial(uber, 65_000), PICKUPS),
    "movielens-300": Recipe(partial(movielens, 300), MOVIELENS),
    "taste-groups-50000": Recipe(partial(taste_groups, 50_000)),
    "taste-groups-300000": Recipe(partial(taste_groups, 300_000, 50)),
    "retail": held_out(
        "retail.noisy-or.npz", NoisyOr(), "a74ae7e18601e1de68d763d549e39f2f001f5831dbba0f4f5c723f84a9d2e745"
    ),
    "jester5k": held_out(
        "jester5k.noisy-or.npz", NoisyOr(), "d35fc759de6d21a20f135b68486707648b9394327cf6e79de1d5946c918bc45a"
    ),
    "uk-accidents": held_out(
        "uk_accidents.best-match.npz",
        BestMatch(),
        "aa2bb2cebedd7a0bfcb55ce85377c4c1761401044705d5f815e4826cf4f933c4",
    ),
}
"""Streams by the names of their files."""


def check_source(name: str, source: Path | None, sha256: str | None) -> None:
    """Refuse a source that is not there, or is another file."""
    if source is not None and not source.is_file():
        file = source.relative_to(FOLDER) if source.is_relative_to(FOLDER) else source.name
        raise MissingData(
            f"{name} is made from {file}; set DIMINUENDO_DATA to a folder that has it, "
            "see tests/reference/README.md."
        )
    if source is not None and sha256 and hashlib.sha256(source.read_bytes()).hexdigest() != sha256:
        raise MissingData(
            f"{source} is another file than the one that was measured, whose sha256 begins with {sha256[:12]}; "
            "see tests/reference/README.md."
        )


def write_stream(name: str, path: Path) -> Path:
    """Write the stream to a file that ends in .npz: row = user, column = item."""
    make, source, sha256 = RECIPES[name]
    check_source(name, source, sha256)
    (matrix,) = make().matrices
    path.parent.mkdir(parents=True, exist_ok=True)
    sparse.save_npz(path, sparse.csr_array(matrix))
    return path


def command(name: str) -> str:
    """What to type to have the file written."""
    return f"python -m measurements.streams {name}"


def main() -> None:
    """Write the streams asked for."""
    parser = argparse.ArgumentParser(prog="python -m measurements.streams", description=__doc__)
    parser.add_argument("name", nargs="+", choices=RECIPES)
    parser.add_argument("--out", type=Path, default=FILES, metavar="FOLDER", help="default: out/streams")
    asked = parser.parse_args()
    for name in asked.name:
        try:
            print(write_stream(name, asked.out / f"{name}.npz"))
        except MissingData as missing:
            sys.exit(str(missing))


if __name__ == "__main__":
    main()
