"""Compiles what the quick tests call, before they start: `make kernels`.

Tests run in several processes, and each of them compiles what it does not find on disk: at the beginning, all compile
the same. Here two processes share the learners out, so that their kernels are compiled once.

`python -m tests.frozen.compile first` does one half, `second` the other. Where all is on disk, it takes a few seconds.
"""

from __future__ import annotations

import sys

from tests.frozen.record import cases, played, streams

FIRST = ("hedge", "fi-", "bandit-d", "bandit-p", "streeter-golovin", "overlap-", "epoch-")
"""How the names of learners begin whose kernels take as long to compile as those of all others, and share little with
them."""


def main(which: str) -> None:
    """Let the learners of one half play, for all families of the quick tests."""
    for people in streams().values():
        for name, feedback in cases():
            if name.startswith(FIRST) == (which == "first"):
                played(name, feedback, people)


if __name__ == "__main__":
    main(sys.argv[1])
