"""Learners, with kernels that look at every index, and with buffers that run dry all the time.

Run as a program with NUMBA_BOUNDSCHECK=1 (tests/test_bounds.py): a kernel that reads past its words, or past any other
array, ends it with an IndexError. Prints the names of learners whose slates were those of a run with full buffers.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable

import numpy as np
import pytest

from diminuendo import SeededSource, Setting
from diminuendo._numba import kernel
from diminuendo.learners import LEARNERS, Learner
from diminuendo.objectives import FAMILIES
from diminuendo.streams import Users, taste_groups
from diminuendo.types import FEEDBACKS, Ints

FEW = 3
"""Words to a buffer."""


@kernel
def past_the_end(words: Ints) -> int:
    """What must not happen."""
    return int(words[len(words)])


def made(name: str, users: Users) -> Learner:
    """With a seed."""
    learner = LEARNERS[name]
    feedback = next(kind for kind in FEEDBACKS if kind in learner.reads)
    slots = min(3, users.n_items)
    setting = Setting(users.n_items, slots, rounds=len(users), feedback=feedback, epsilon=1.0, delta=1e-6)
    return learner.for_setting(setting, rng=SeededSource(1))


def check(name: str, users: Users) -> None:
    """The same slates, however often words run out."""
    plenty, scarce = made(name, users), made(name, users)
    for buffer in (scarce._frame.public, scarce._frame.secret):
        buffer.size = FEW
    if not np.array_equal(plenty.replay(users), scarce.replay(users)):
        sys.exit(f"{name}: other slates when words run out")


def families() -> Iterable[Users]:
    """Users of every family, several times over."""
    for family in FAMILIES.values():
        for specimen, n_items, matrices in family.specimens():
            yield Users(specimen, tuple(np.tile(np.asarray(matrix), (8, 1)) for matrix in matrices), n_items)


def main(everybody: bool, names: list[str]) -> None:
    """These learners; with `everybody`, on users of all families."""
    warnings.simplefilter("ignore")  # of paper constants that do not fit so few users
    with pytest.raises(IndexError):  # else indices are not looked at: set NUMBA_BOUNDSCHECK=1
        past_the_end(np.zeros(3, dtype=np.int64))
    for name in names:
        crowds = families() if everybody else [taste_groups(90, 9, groups=3, items_per_group=4, seed=1)]
        for users in crowds:
            check(name, users)
        print(name, flush=True)


if __name__ == "__main__":
    main("--families" in sys.argv, [name for name in sys.argv[1:] if name in LEARNERS])
