"""Leaders on the simplex: k experts that draw items from points that follow noisy sums, purely private.

Each expert's gains are added up in a tree with Gamma-norm noise (sums/gamma_tree.py). After t steps it plays the point
of the simplex nearest to (noisy sum) / (H t), which is PFTAL (pftal.py), and draws its item from that point. Points
follow from what is published, so they and the coins of the draw are public.

Guarantee  (epsilon, 0) for all k experts together, epsilon / k each, in real arithmetic
           (docs/maths/paper.md, Theorem P4).
Assumes    gains in [0, 1], so that one person moves the vector of an expert by at most sqrt N in length.
References Thakurta & Smith (2013), NIPS 26; Michelot (1986), JOTA 50, for the projection.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from diminuendo._numba import inline, kernel
from diminuendo.experts.pftal import gamma_length
from diminuendo.randomness.words import UNFINISHED, PublicWords, SecretWords, begin, below, undo
from diminuendo.streams.people import shown_before
from diminuendo.sums.gamma_tree import FINE, TreeState, draw_noise, new_tree, node_scale, step
from diminuendo.types import EMPTY_SLOT, Floats, Items

LOW = 1e15
"""So far below the best, an item's share is 0 whatever else there is."""


class PureState(NamedTuple):
    """k experts over n items."""

    tree: TreeState
    pending: Floats
    """(patience, k, n): gains of the rounds that have not expired."""
    points: Floats
    """(k, n): the law of each expert's next item; public."""
    sums: Floats
    """(k, n): the running sums as published."""
    coins: Floats
    """(k,) of no meaning between rounds."""
    curvature: Floats
    """(1,) H."""

    def __repr__(self) -> str:
        return "<PureState>"


def new_leaders(
    n_items: int, slots: int, rounds: int, epsilon: float, curvature: float, patience: int
) -> PureState:
    """Before the first round: every item equally likely."""
    shape = slots, n_items
    return PureState(
        new_tree(slots, n_items, rounds, pure_scale(n_items, slots, rounds, epsilon)),
        np.zeros((patience, *shape)),
        np.full(shape, 1 / n_items),
        np.zeros(shape),
        np.zeros(slots),
        np.array([curvature]),
    )


def pure_scale(n_items: int, slots: int, rounds: int, epsilon: float) -> float:
    """The scale of the noise: gains in [0, 1] of one person move a vector of N by at most sqrt N."""
    return node_scale(rounds.bit_length(), math.sqrt(n_items), epsilon / slots)


def pure_noise(n_items: int, slots: int, rounds: int, epsilon: float) -> float:
    """At least the expected length of the noise in one expert's sums."""
    return gamma_length(n_items, rounds.bit_length(), pure_scale(n_items, slots, rounds, epsilon))


@inline
def project_simplex(values: Floats, out: Floats) -> None:
    """The nearest point of the simplex: max(0, values - level), the level found by leaving out what falls below it."""
    n, top = len(values), values[0]
    for j in range(1, n):
        top = max(top, values[j])
    for j in range(n):  # the nearest point stays the same, and large numbers do not swallow the 1
        out[j] = max(values[j] - top, -LOW)
    level, count = -math.inf, -1
    for _ in range(n + 1):
        total, above = 0.0, 0
        for j in range(n):
            if out[j] > level:
                total += out[j]
                above += 1
        if above == count:
            break
        level, count = (total - 1.0) / above, above
    for j in range(n):
        out[j] = max(0.0, out[j] - level)


@inline
def follow(experts: PureState) -> None:
    """Every expert's point after the sums changed."""
    k, n = experts.sums.shape
    share = 1.0 / (experts.curvature[0] * experts.tree.done[0])
    for slot in range(k):
        for item in range(n):
            experts.points[slot, item] = experts.sums[slot, item] * share
        project_simplex(experts.points[slot], experts.points[slot])


@inline
def next_slate(experts: PureState, row: Items, number: int, coins: PublicWords, secret: SecretWords) -> bool:
    """The slate of round `number`; False, with nothing changed, when it must be resumed."""
    begin(coins)
    begin(secret)
    patience, k, n = experts.pending.shape
    expires = number >= patience
    for slot in range(k):
        coin = below(FINE, coins)
        if coin == UNFINISHED:
            undo(coins)
            return False
        experts.coins[slot] = (coin + 0.5) / FINE
    if expires:
        if not draw_noise(experts.tree, secret):
            undo(coins)
            undo(secret)
            return False
        step(experts.tree, experts.pending[number % patience], experts.sums)
        experts.pending[number % patience] = 0.0
        follow(experts)
    for slot in range(k):
        rest, item = experts.coins[slot], 0
        while item < n - 1 and rest >= experts.points[slot, item]:
            rest -= experts.points[slot, item]
            item += 1
        row[slot] = EMPTY_SLOT if shown_before(row, slot, item) else item
    return True


@kernel
def catch_up(experts: PureState) -> None:
    """Points anew from sums, after a snapshot was read."""
    follow(experts)
