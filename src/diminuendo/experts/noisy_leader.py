r"""Leaders that see only sums: what to play when rewards are linear and their running sum may carry noise.

After t rounds with rewards <g, w>, and G the sum of the g so far, exact or noisy,

    PFTAL   plays  project(G / (H t))      the leader for the losses -<g, w> + (H/2) |w|^2
    FTRL    plays  project(c + eta G)      the leader with one regularizer |w - c|^2 / (2 eta)

over a convex set. FTRL begins with the point nearest to c; PFTAL with 0, or, where 0 is not in the set but neither
rewards nor points have negative entries, with any point. Both are functions of G, so whatever protects G protects them.
PFTAL is written in the literature with distances to earlier points; for linear rewards it is the line above
(docs/maths/continuous.md, Lemma C4).

Regret     against the best fixed point, expected: `pftal_bound` (Theorem C5), `ftrl_bound` (Theorem C6). FTRL is better
           by a logarithm, and where noise has the same law in every round it does not multiply the number of rounds.

Leaders on the simplex: k experts that draw items from points that follow noisy sums, purely private.

Each expert's gains are added up in a tree with Gamma-norm noise (sums/gamma_tree.py). After t steps it plays the point
of the simplex nearest to (noisy sum) / (H t), which is PFTAL, and draws its item from that point. Points
follow from what is published, so they and the coins of the draw are public.

Guarantee  (epsilon, 0) for all k experts together, epsilon / k each, in real arithmetic (docs/maths/paper.md, P4).
Assumes    gains in [0, 1], so that one user moves the vector of an expert by at most sqrt N in length.
References Thakurta & Smith (2013), NIPS 26, for PFTAL; Agarwal & Singh (2017), ICML; Kairouz et al. (2021), ICML;
           Michelot (1986), JOTA 50, for the projection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from diminuendo import _validate
from diminuendo._numba import as_kernel, inline
from diminuendo.errors import InvalidInput
from diminuendo.randomness.words import UNFINISHED, PublicWords, SecretWords, begin, below, undo
from diminuendo.streams.users import shown_before
from diminuendo.sums.gamma_tree import FINE, TreeState, draw_noise, new_tree, node_scale, step
from diminuendo.types import EMPTY_SLOT, Floats, Items

Project = Callable[[Floats], Floats]
"""To the nearest points of a convex set, row by row."""


def pftal_points(project: Project, sums: Floats, curvature: float, rounds: int) -> Floats:
    """What PFTAL plays after `rounds` rounds: one row of `sums`, one point each."""
    _validate.positive_int(rounds, "rounds")
    return project(sums / (_validate.positive_float(curvature, "curvature") * rounds))


def ftrl_points(project: Project, sums: Floats, rate: float, centre: Floats) -> Floats:
    """What FTRL plays: one row of `sums`, one point each."""
    return project(centre + _validate.positive_float(rate, "rate") * sums)


def paper_curvature(size: int, rounds: int, epsilon: float) -> float:
    """H = sqrt(n log^2.5 T / (epsilon T)), as printed; it has no unit, so it fits gradients and points of size 1."""
    if _validate.positive_int(rounds, "rounds") < 2:
        raise InvalidInput(f"The formula needs at least 2 rounds, since log 1 = 0; got {rounds}.")
    spread = _validate.positive_int(size, "size") * math.log(rounds) ** 2.5
    return math.sqrt(spread / (_validate.positive_float(epsilon, "epsilon") * rounds))


def best_curvature(radius: float, longest: float, rounds: int, noise: float = 0.0) -> float:
    """The H that minimises `pftal_bound`."""
    return math.sqrt(2 * _pftal_price(longest, rounds, noise) / (_size(radius, "radius") ** 2 * rounds))


def pftal_bound(radius: float, longest: float, rounds: int, curvature: float, noise: float = 0.0) -> float:
    """H R^2 T / 2 + (L^2 (2 + log T) / 2 + L z (1 + log T)) / H.

    radius     R: no point is longer
    longest    L: no reward vector is longer
    noise      z: in no round is the noise in the sum longer than this in expectation
    """
    h = _validate.positive_float(curvature, "curvature")
    return h * _size(radius, "radius") ** 2 * rounds / 2 + _pftal_price(longest, rounds, noise) / h


def _pftal_price(longest: float, rounds: int, noise: float) -> float:
    length, log = _size(longest, "longest"), math.log(_validate.positive_int(rounds, "rounds"))
    return length**2 * (2 + log) / 2 + length * _size(noise, "noise", or_none=True) * (1 + log)


def best_rate(spread: float, longest: float, sizes: Sequence[int], stray: float = 0.0) -> float:
    """The eta that minimises `ftrl_bound`."""
    return _size(spread, "spread") / math.sqrt(2 * _ftrl_price(longest, sizes, stray))


def ftrl_bound(
    spread: float, longest: float, sizes: Sequence[int], rate: float, noise: float = 0.0, stray: float = 0.0
) -> float:
    """D^2 / (2 eta) + (eta/2) L^2 sum of B^2 + D z + eta L T d.

    spread     D: no point is further from the centre
    sizes      B: how many rounds each batch has; the point changes between batches only
    noise      z: the expected length of the noise, the same law in every round or one that only grows (Theorem C6)
    stray      d: how far, in expectation, the noise of any round may be from such a law
    """
    eta = _validate.positive_float(rate, "rate")
    calm = _size(spread, "spread") ** 2 / (2 * eta) + eta * _ftrl_price(longest, sizes, stray)
    return calm + spread * _size(noise, "noise", or_none=True)


def _ftrl_price(longest: float, sizes: Sequence[int], stray: float) -> float:
    length = _size(longest, "longest")
    squares, rounds = sum(size * size for size in sizes), sum(sizes)
    _validate.positive_int(rounds, "rounds")
    return length**2 * squares / 2 + length * rounds * _size(stray, "stray", or_none=True)


def gamma_length(size: int, nodes: int, scale: float) -> float:
    """At least the expected length of a sum of `nodes` independent Gamma-norm vectors: sqrt(m n (n + 1)) scale."""
    return math.sqrt(nodes * size * (size + 1)) * scale


def _size(value: float, name: str, or_none: bool = False) -> float:
    return 0.0 if or_none and value == 0 else _validate.positive_float(value, name)


LOW = 1e15
"""So far below the best, an item's share is 0 whatever else there is."""


class PureState(NamedTuple):
    """k experts over n items."""

    tree: TreeState
    pending: Floats
    """(waiting, k, n): gains of the rounds that have not expired."""
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
    n_items: int, slots: int, rounds: int, epsilon: float, curvature: float, waiting: int
) -> PureState:
    """Before the first round: every item equally likely."""
    shape = slots, n_items
    return PureState(
        new_tree(slots, n_items, rounds, pure_scale(n_items, slots, rounds, epsilon)),
        np.zeros((waiting, *shape)),
        np.full(shape, 1 / n_items),
        np.zeros(shape),
        np.zeros(slots),
        np.array([curvature]),
    )


def pure_scale(n_items: int, slots: int, rounds: int, epsilon: float) -> float:
    """The scale of the noise: gains in [0, 1] of one user move a vector of N by at most sqrt N."""
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


catch_up = as_kernel(follow)
"""After a snapshot was read."""


@inline
def next_slate(experts: PureState, row: Items, number: int, rng: PublicWords, secret: SecretWords) -> bool:
    """The slate of round `number`; False, with nothing changed, when it must be resumed."""
    begin(rng)
    begin(secret)
    waiting, k, n = experts.pending.shape
    expires = number >= waiting
    for slot in range(k):
        coin = below(FINE, rng)
        if coin == UNFINISHED:
            undo(rng)
            return False
        experts.coins[slot] = (coin + 0.5) / FINE
    if expires:
        if not draw_noise(experts.tree, secret):
            undo(rng)
            undo(secret)
            return False
        step(experts.tree, experts.pending[number % waiting], experts.sums)
        experts.pending[number % waiting] = 0.0
        follow(experts)
    for slot in range(k):
        rest, item = experts.coins[slot], 0
        while item < n - 1 and rest >= experts.points[slot, item]:
            rest -= experts.points[slot, item]
            item += 1
        row[slot] = EMPTY_SLOT if shown_before(row, slot, item) else item
    return True


draw_slate = as_kernel(next_slate)
