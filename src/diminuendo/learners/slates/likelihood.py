r"""Heard: all that was published about slates, as likelihoods that a Markov chain can look up.

A published number y is a sum over n people who were shown a slate, with noise. Whatever chance p the model gives each
of them, y is Normal(n p, n p (1 - p)) plus Laplace noise of known scale; the logarithm of that density is written down
on a grid of chances once, when y is published, and read off as often as the chain wants. Two numbers about the same
slate and question add their logarithms, so what is kept grows with the number of different slates only, and nothing
that was published is thrown away. All of it is public.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from diminuendo._numba import inline
from diminuendo.errors import InvalidInput
from diminuendo.learners.slates.blocks import WHICH
from diminuendo.learners.slates.model import NO_PAIR, Neighbours
from diminuendo.types import Floats, Ints, Items

GRID = 512
CHANCES: Floats = (np.arange(GRID) / (GRID - 1)) ** 2
"""Closer together where they are small."""
_INSIDE = np.clip(CHANCES, 1e-7, 1 - 1e-6)
ROUNDING = 0.1
"""Variance of a count even where its chance is 0 or 1: the density of a whole number has a width."""


def log_likelihood(said: float, people: int, scale: float) -> Floats:
    """Of a published count, for every chance on the grid; up to a constant."""
    spread = np.sqrt(people * _INSIDE * (1 - _INSIDE) + ROUNDING)
    off = said - people * _INSIDE
    if scale == 0:
        return np.asarray(-0.5 * (off / spread) ** 2 - np.log(spread))
    ratio = spread / scale
    right = -off / scale + scipy.special.log_ndtr(off / spread - ratio)
    left = off / scale + scipy.special.log_ndtr(-off / spread - ratio)
    return np.asarray(np.logaddexp(right, left) + ratio**2 / 2)


class Evidence(NamedTuple):
    """What kernels read. A row is one slate with one question."""

    slates: Items
    lengths: Ints
    """How many of its slots the question is about."""
    which: NDArray[np.bool_]
    """Whether there is a table for each slot; else one for all of them."""
    tables: NDArray[np.float32]
    """(rows, slots, GRID) logarithms of likelihoods."""
    ceilings: Floats
    """Of each row, what no chance exceeds."""
    pairs: Ints
    """(rows, slots, slots) numbers of pairs."""
    row_starts: Ints
    rows: Ints
    """The rows in which item a stands: rows[row_starts[a]:row_starts[a+1]]."""
    couples: Ints
    """(pairs, 2): the two items of each pair, the smaller first."""
    pair_starts: Ints
    pair_rows: Ints
    """The rows in which both items of a pair stand."""


@inline
def look_up(table: NDArray[np.float32], chance: float) -> float:
    """The logarithm of the likelihood, between two points of the grid."""
    place = np.sqrt(max(chance, 0.0)) * (GRID - 1)
    low = min(int(place), GRID - 2)
    weight = min(place - low, 1.0)
    return float(table[low] * (1 - weight) + table[low + 1] * weight)


class Heard:
    """Published numbers, by slate and question."""

    def __init__(self, n_items: int, slots: int) -> None:
        self.n_items, self.slots = n_items, slots
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self._numbers: dict[tuple[int, ...], int] = {}
        self._pairs: dict[tuple[int, int], int] = {}
        self._tables = np.zeros((64, self.slots, GRID), dtype=np.float32)
        self._said: list[tuple[Items, int, int, Floats, float]] = []
        self._evidence: Evidence | None = None
        self._neighbours: Neighbours | None = None
        self.shown = np.zeros(self.n_items, dtype=np.int64)
        """To how many people each item was shown."""

    @property
    def n_pairs(self) -> int:
        """How many pairs of items were shown together."""
        return len(self._pairs)

    def add(self, slate: Items, question: int, people: int, said: Floats, scale: float) -> None:
        """`people` were shown `slate` and asked `question`; `said` was published, with noise of that scale."""
        self._said.append((slate.copy(), question, people, said.copy(), scale))
        self.shown[slate] += people
        items = [int(item) for item in slate]
        if question == WHICH:
            key = (WHICH, *items)
        else:
            key = (1, *sorted(items[:question]))  # in whatever order: only the sum was asked for
        row = self._numbers.setdefault(key, len(self._numbers))
        if row == len(self._tables):
            self._tables = np.concatenate([self._tables, np.zeros_like(self._tables)])
        for cell, count in enumerate(said):
            self._tables[row, cell] += log_likelihood(float(count), people, scale)
        for i, a in enumerate(key[1:]):
            for b in key[1 : i + 1]:
                self._pairs.setdefault((min(a, b), max(a, b)), len(self._pairs))
        self._evidence = self._neighbours = None

    def evidence(self) -> Evidence:
        """All of it, for kernels."""
        if self._evidence is None:
            self._evidence = self._gathered()
        return self._evidence

    def _gathered(self) -> Evidence:
        rows, k = len(self._numbers), self.slots
        slates = np.zeros((rows, k), dtype=np.int32)
        lengths, which = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.bool_)
        pairs = np.full((rows, k, k), NO_PAIR, dtype=np.int64)
        for (kind, *items), row in self._numbers.items():
            slates[row, : len(items)], lengths[row], which[row] = items, len(items), kind == WHICH
            for i, a in enumerate(items):
                for j, b in enumerate(items[:i]):
                    pairs[row, i, j] = pairs[row, j, i] = self._pairs[min(a, b), max(a, b)]
        asked = np.arange(k) < lengths[:, None]
        couples = np.array(list(self._pairs), dtype=np.int64).reshape(-1, 2)
        below = np.tril(np.ones((k, k), dtype=np.bool_)) & (pairs != NO_PAIR)
        by_item = _listed(slates[asked], np.nonzero(asked)[0], self.n_items)
        by_pair = _listed(pairs[below], np.nonzero(below)[0], len(couples))
        # A row without the question which has one table, and zeros in the place of others.
        ceilings = self._tables[:rows].max(axis=2).astype(np.float64).sum(axis=1)
        return Evidence(slates, lengths, which, self._tables, ceilings, pairs, *by_item, couples, *by_pair)

    def neighbours(self) -> Neighbours:
        """Who was shown with whom."""
        if self._neighbours is None:
            self._neighbours = self._listed_neighbours()
        return self._neighbours

    def _listed_neighbours(self) -> Neighbours:
        couples = self.evidence().couples
        ones, others = couples.ravel(), couples[:, ::-1].ravel()
        numbers = np.repeat(np.arange(len(couples)), 2)
        starts, items = _listed(ones, others, self.n_items)
        return Neighbours(starts, items, _listed(ones, numbers, self.n_items)[1])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """For a snapshot: what was published, in order. Tables are made again."""
        many, k = len(self._said), self.slots
        said = np.full((many, k), np.nan)
        for row, (_, _, _, counts, _) in zip(said, self._said, strict=True):
            row[: len(counts)] = counts
        slates = np.array([slate for slate, *_ in self._said], dtype=np.int32).reshape(many, k)
        asked = np.array([(question, people) for _, question, people, *_ in self._said], dtype=np.int64)
        scales = np.array([scale for *_, scale in self._said], dtype=np.float64)
        return {"slates": slates, "asked": asked.reshape(many, 2), "said": said, "scales": scales}

    def take(self, found: dict[str, Any]) -> None:
        """Go on from what `arrays` gave; refuse what it could not have given."""
        slates, asked = found.get("slates", np.empty(0)), found.get("asked", np.empty(0))
        said, scales = found.get("said", np.empty(0)), found.get("scales", np.empty(0))
        many, k = len(slates), self.slots
        kinds = (slates.dtype, asked.dtype, said.dtype, scales.dtype)
        sound = (
            kinds == (np.int32, np.int64, np.float64, np.float64)
            and (slates.shape, asked.shape, said.shape, scales.shape)
            == ((many, k), (many, 2), (many, k), (many,))
            and ((slates >= 0) & (slates < self.n_items)).all()
            and all(len(set(slate)) == k for slate in slates.tolist())
            and ((asked[:, 0] >= WHICH) & (asked[:, 0] <= k) & (asked[:, 1] > 0)).all()
            and (scales >= 0).all()
            and np.isfinite(scales).all()
            and np.isfinite(said[np.arange(k) < np.where(asked[:, :1] == WHICH, k, 1)]).all()
        )
        if not sound:
            raise InvalidInput(
                "The snapshot holds counts that could not have been published; it was altered."
            )
        self.forget()
        for slate, (question, people), row, scale in zip(slates, asked, said, scales, strict=True):
            self.add(slate, int(question), int(people), row[: k if question == WHICH else 1], float(scale))


def _listed(whose: NDArray[Any], what: NDArray[Any], many: int) -> tuple[Ints, Ints]:
    """For each of 0 .. many - 1 what is its own, one after the other, and where each begins."""
    starts = np.zeros(many + 1, dtype=np.int64)
    np.cumsum(np.bincount(whose, minlength=many), out=starts[1:])
    return starts, np.asarray(what[np.argsort(whose, kind="stable")], dtype=np.int64)
