r"""Running sums of real vectors after every step, purely private: the tree of Thakurta and Smith. Real arithmetic only.

A step adds one vector to each of several copies and publishes all running sums so far. Steps are the leaves of a binary
tree; a running sum is read from the complete nodes in the binary digits of its number of steps. Each of these is
published once, when it is complete, with noise of density in proportion to exp(-|b|_2 / scale), independent for every
node and copy: its length is Gamma(size, scale), its direction uniform. A node below another that is complete at the
same time is in no running sum, and is not published. So a leaf enters at most `levels` nodes, and one noise vector is
drawn per step.

Guarantee  a user who changes one vector of one copy by at most D in length changes the density of everything
           published of that copy by a factor of at most exp(levels * D / scale) (docs/maths/sums.md, Theorem S5).
Assumes    real numbers. Floats are not (Mironov 2012): what serves users should use `PrivateSum`, which is exact.
References Thakurta & Smith (2013), NIPS 26; Dwork, Naor, Pitassi & Rothblum (2010), STOC; Chan, Shi & Song (2011).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from diminuendo import _validate
from diminuendo._numba import inline, kernel
from diminuendo.errors import InvalidInput, refuse_copies
from diminuendo.randomness.words import (
    SHORT,
    UNFINISHED,
    SecretRandomness,
    SecretWords,
    begin,
    below,
    require_secret,
    undo,
)
from diminuendo.types import Floats, Ints

FINE = 1 << 53
"""A uniform number is one of this many."""


class TreeState(NamedTuple):
    """The sums of `copies` times `size` numbers over up to 2^levels - 1 steps."""

    done: Ints
    """(1,) steps so far."""
    nodes: Floats
    """(levels, copies, size): the complete nodes in the binary digits of `done`, as they are."""
    published: Floats
    """(levels, copies, size): the same with noise, as published; 0 where the digit is 0."""
    scale: Floats
    """(1,) of the noise; 0 for none."""
    noise: Floats
    """(copies, size) of no meaning between steps."""

    def __repr__(self) -> str:
        return "<TreeState>"


def new_tree(copies: int, size: int, steps: int, scale: float) -> TreeState:
    """An empty tree for up to `steps` steps."""
    levels = _validate.positive_int(steps, "steps").bit_length()
    if not (math.isfinite(scale) and scale >= 0):
        raise InvalidInput(f"scale must be a number from 0 (no noise) on; got {scale!r}.")
    shape = levels, _validate.positive_int(copies, "copies"), _validate.positive_int(size, "size")
    return TreeState(
        np.zeros(1, dtype=np.int64), np.zeros(shape), np.zeros(shape), np.array([scale]), np.zeros(shape[1:])
    )


@inline
def _uniform(secret: SecretWords) -> float:
    """Uniform in (0, 1); of no meaning when words ran out."""
    word = below(FINE, secret)
    return 0.5 if word == UNFINISHED else (word + 0.5) / FINE


@inline
def draw_noise(tree: TreeState, secret: SecretWords) -> bool:
    """Noise for the next step, into `noise`; False when words ran out. The caller begins and undoes."""
    copies, size = tree.noise.shape
    if tree.scale[0] == 0.0:
        return True
    for copy in range(copies):
        length, product, norm = 0.0, 1.0, 0.0
        for j in range(size):
            product *= _uniform(secret)
            if j % 16 == 15 or j == size - 1:  # the sum of up to 16 exponential numbers, with one logarithm
                length -= math.log(product)
                product = 1.0
            if j % 2 == 0:  # two normal numbers at a time (Box and Muller)
                radius = math.sqrt(-2.0 * math.log(_uniform(secret)))
                angle = 2.0 * math.pi * _uniform(secret)
                tree.noise[copy, j] = radius * math.cos(angle)
                if j + 1 < size:
                    tree.noise[copy, j + 1] = radius * math.sin(angle)
            norm += tree.noise[copy, j] ** 2
        if secret.used[SHORT]:
            return False
        stretch = tree.scale[0] * length / math.sqrt(norm)
        for j in range(size):
            tree.noise[copy, j] *= stretch
    return True


@inline
def step(tree: TreeState, vectors: Floats, out: Floats) -> None:
    """Add one vector per copy and read off the running sums, with the noise that was drawn."""
    tree.done[0] += 1
    top = 0
    while (tree.done[0] >> top) & 1 == 0:
        top += 1
    levels, copies, size = tree.nodes.shape
    for copy in range(copies):
        for j in range(size):
            node = vectors[copy, j]
            for level in range(top):
                node += tree.nodes[level, copy, j]
                tree.nodes[level, copy, j] = tree.published[level, copy, j] = 0.0
            tree.nodes[top, copy, j] = node
            tree.published[top, copy, j] = node + tree.noise[copy, j]
            running = 0.0
            for level in range(top, levels):
                running += tree.published[level, copy, j]
            out[copy, j] = running


@kernel
def _add(tree: TreeState, vectors: Floats, out: Floats, secret: SecretWords) -> bool:
    begin(secret)
    if not draw_noise(tree, secret):
        undo(secret)
        return False
    step(tree, vectors, out)
    return True


class GammaTree:
    """Running sums of `copies` vectors of `size` numbers, published after each of up to `steps` steps."""

    __getstate__ = refuse_copies

    def __init__(self, copies: int, size: int, steps: int, scale: float) -> None:
        self.steps = _validate.positive_int(steps, "steps")
        self._tree = new_tree(copies, size, steps, scale)
        self.levels = self._tree.nodes.shape[0]
        self.scale = scale

    def __repr__(self) -> str:
        copies, size = self._tree.noise.shape
        return f"<GammaTree: {copies} x {size} numbers, {self._tree.done[0]} of {self.steps} steps>"

    @property
    def arrays(self) -> tuple[Any, ...]:
        """Everything it remembers, for snapshots; changed in place. As private as what was added."""
        return self._tree.done, self._tree.nodes, self._tree.published

    def add(self, vectors: Floats, secret: SecretRandomness) -> Floats:
        """One vector per copy; returns the running sums with noise."""
        require_secret(secret)
        given = np.ascontiguousarray(_validate.numbers(vectors, "vectors"))
        if given.shape != self._tree.noise.shape:
            raise InvalidInput(
                f"Expected {self._tree.noise.shape} numbers (copies, size); got {given.shape}."
            )
        if self._tree.done[0] >= self.steps:
            raise InvalidInput(f"All {self.steps} steps of this tree are done.")
        out = np.empty_like(given)
        with secret.lock:
            while not _add(self._tree, given, out, secret.view):
                secret.resume()
        return out


def node_scale(levels: int, sensitivity: float, epsilon: float) -> float:
    """The scale at which a copy whose vectors a user can move by `sensitivity` costs at most epsilon."""
    distance = _validate.positive_float(sensitivity, "sensitivity")
    return distance * levels / _validate.positive_float(epsilon, "epsilon")
