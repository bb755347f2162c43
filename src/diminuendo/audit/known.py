"""Contexts and exclusions of the users of a world."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from diminuendo.streams.contexts import Context, Contexts

EXCLUDED = 1 / 3
"""The probability that a user excludes an item."""


class Known(NamedTuple):
    """Of all users in a world, round by round; empty: none."""

    contexts: tuple[Context, ...] = ()
    excluded: tuple[tuple[int, ...], ...] = ()

    def but_of(self, target: int) -> Known:
        """What is known of all others."""
        before, after = slice(None, target), slice(target + 1, None)
        return Known(
            self.contexts[before] + self.contexts[after], self.excluded[before] + self.excluded[after]
        )


NOTHING_KNOWN = Known()


def known_of(
    contexts: Contexts | None,
    n_excludable: int,
    rounds: int,
    target: int,
    random: np.random.Generator,
) -> tuple[Known, Known]:
    """Random contexts and exclusions in two worlds; the target's differ, as far as they are private.

    `n_excludable`: how many items users may exclude; 0: none. Contexts differ if contexts are private; exclusions
    always differ.
    """
    one, other = list[Context](), list[Context]()
    if contexts is not None:
        types = random.integers(contexts.n_types, size=rounds)
        one = [contexts.said(number) for number in types.tolist()]
        other = list(one)
        if contexts.private:
            apart = types[target] + random.integers(1, contexts.n_types)
            other[target] = contexts.said(int(apart % contexts.n_types))
    if not n_excludable:
        return Known(tuple(one)), Known(tuple(other))
    excludes = random.random((rounds, n_excludable)) < EXCLUDED
    differs = excludes.copy()
    differs[target] ^= random.random(n_excludable) < EXCLUDED
    differs[target, 0] = not excludes[target, 0]  # certainly different: the item that the first targets want
    sets, others = (
        tuple(tuple(np.flatnonzero(row).tolist()) for row in rows) for rows in (excludes, differs)
    )
    return Known(tuple(one), sets), Known(tuple(other), others)
