"""Compiles what the quick tests call, before they start: `make kernels`.

Tests run in several processes, and each of them compiles what it does not find on disk: at the beginning, all compile
the same. Here two processes share learners and families out, so that their kernels are compiled once.

`python -m tests.frozen.compile first` does one half, `second` the other. Where all is on disk, it takes a few seconds.
"""

from __future__ import annotations

import sys

import numpy as np

from diminuendo import FAMILIES, Functions, Setting, Users
from diminuendo.learners.base.replay import loop
from diminuendo.offline.total import UsersTotal
from tests.frozen.record import N_ITEMS, SLOTS, cases, made, played, streams

FIRST = ("hedge", "fi-", "bandit-d", "bandit-p", "streeter-golovin", "overlap-", "epoch-", "mixture")
"""How the names of learners and families begin whose kernels take as long to compile as those of all others, and share
little with them."""
ONE_BY_ONE = ("fi-dp", "fi-pure", "overlap-greedy")
"""Learners whose kernels are compiled anew for users who are functions: audits and contracts are full of them."""


def main(which: str) -> None:
    """Let the learners of one half play, for all families of the quick tests; and ask users of half the families."""
    for users in streams().values():
        for name, feedback in cases():
            if name.startswith(FIRST) == (which == "first"):
                played(name, feedback, users)
    for name in FAMILIES:
        if name.startswith(FIRST) == (which == "first"):
            ask(name)
    if which == "first":
        users_who_are_functions()


def users_who_are_functions() -> None:
    """Learners that are told what users said, and not who they are."""
    few = streams()["noisy-or"][:60]
    asked = Functions([lambda slate, user=user: user.value(sorted(slate)) for user in few], N_ITEMS)  # type: ignore[misc]
    for name in ONE_BY_ONE:
        loop(made(name, Setting(N_ITEMS, SLOTS, len(few), "full")), asked)


def ask(name: str) -> None:
    """What tests ask of users of any family: values, gains, totals and ceilings."""
    for specimen, n_items, matrices in FAMILIES[name].specimens():
        users = Users(specimen, tuple(matrices), n_items)
        users[0].value([0])
        users[0].gains([0])
        users.values([0])
        summed = UsersTotal(users)
        summed.begin()
        summed.move(0, summed.gains())
        summed.add(1)
        summed.value()
        summed.ceiling(np.full(n_items, 0.5))


if __name__ == "__main__":
    main(sys.argv[1])
