r"""Observations: all that was published about slates, as likelihoods that a Markov chain can look up. Public.

A published number y is a sum over n users who were shown a slate, with noise. Whatever chance p the model gives each
of them, y is Normal(n p, n p (1 - p)) plus Laplace noise of known scale; the logarithm of that density is written down
on a grid of chances once, when y is published, and read off as often as the chain wants. Two numbers about the same
slate and question add their logarithms, so what is kept grows with the number of different slates only, and nothing
that was published is thrown away.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from diminuendo._numba import inline
from diminuendo.learners.slates.blocks import WHICH_SLOT
from diminuendo.learners.slates.model import NO_PAIR, Neighbours
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items

GRID_POINTS = 512
"""For how many chances a likelihood is written down."""
CHANCE_GRID: Floats = (np.arange(GRID_POINTS) / (GRID_POINTS - 1)) ** 2
"""The chances, closer together where they are small."""
_INSIDE = np.clip(CHANCE_GRID, 1e-7, 1 - 1e-6)
COUNT_VARIANCE = 0.1
"""Variance of a count even where its chance is 0 or 1: the density of a whole number has a width."""


def log_likelihood(
    published: float, users: int, scale: float, response_rate: float = 1.0, unsure: float = 0.0
) -> Floats:
    """The log-likelihood of a published count, for every chance on the grid; up to a constant.

    `response_rate`: the share of users who answer at all. Who does not is counted as who says no. `unsure`:
    the variance of the number of users, where that is not known exactly.
    """
    said = response_rate * _INSIDE
    spread = np.sqrt(users * said * (1 - said) + unsure * said**2 + COUNT_VARIANCE)
    off = published - users * said
    if scale == 0:
        return np.asarray(-0.5 * (off / spread) ** 2 - np.log(spread))
    ratio = spread / scale
    right = -off / scale + scipy.special.log_ndtr(off / spread - ratio)
    left = off / scale + scipy.special.log_ndtr(-off / spread - ratio)
    return np.asarray(np.logaddexp(right, left) + ratio**2 / 2)


class Evidence(NamedTuple):
    """All observations as kernels read them. A row is one slate with one question."""

    slates: Items
    lengths: Ints
    """How many of its slots the question is about."""
    which: NDArray[np.bool_]
    """Whether the row has a table for each slot; otherwise it has one for all of them."""
    tables: NDArray[np.float32]
    """(rows, slots, GRID_POINTS): logarithms of likelihoods."""
    ceilings: Floats
    """The largest log-likelihood that any chances give each row."""
    pairs: Ints
    """(rows, slots, slots): numbers of pairs."""
    row_starts: Ints
    rows: Ints
    """The rows in which item a stands: rows[row_starts[a]:row_starts[a+1]]."""
    pair_items: Ints
    """(pairs, 2): the two items of each pair, the smaller first."""
    pair_starts: Ints
    pair_rows: Ints
    """The rows in which both items of a pair stand."""


@inline
def look_up(table: NDArray[np.float32], chance: float) -> float:
    """The logarithm of the likelihood, between two points of the grid."""
    place = np.sqrt(max(chance, 0.0)) * (GRID_POINTS - 1)
    low = min(int(place), GRID_POINTS - 2)
    weight = min(place - low, 1.0)
    return float(table[low] * (1 - weight) + table[low + 1] * weight)


class Observations:
    """Published numbers, by slate and question."""

    def __init__(self, n_items: int, slots: int, response_rate: float = 1.0) -> None:
        self.n_items, self.slots, self.response_rate = n_items, slots, response_rate
        self.forget()

    def __len__(self) -> int:
        """How many slates were published about."""
        return len(self._published)

    def forget(self) -> None:
        """Forget everything that was published."""
        self._numbers: dict[tuple[int, ...], int] = {}
        self._pairs: dict[tuple[int, int], int] = {}
        self._tables = np.zeros((64, self.slots, GRID_POINTS), dtype=np.float32)
        self._published: list[tuple[Items, int, int, Floats, float, float]] = []
        self._evidence: Evidence | None = None
        self._neighbours: Neighbours | None = None
        self.shown = np.zeros(self.n_items, dtype=np.int64)
        """To how many users each item was shown."""

    @property
    def published(self) -> list[tuple[Items, int, int, Floats, float, float]]:
        """All that was published, in order: slate, question, users, numbers, scale of noise, variance of users."""
        return list(self._published)

    @property
    def n_pairs(self) -> int:
        """How many pairs of items were shown together."""
        return len(self._pairs)

    def add(
        self, slate: Items, question: int, users: int, published: Floats, scale: float, unsure: float = 0.0
    ) -> None:
        """`users` were shown `slate` and asked `question`; `published` is the answer, with noise of that scale.

        `unsure`: the variance of the number of users, where that is not known exactly. Slots that are empty count as
        if they came last; of a slate without items nothing is learned.
        """
        items = [int(item) for item in slate if item != EMPTY_SLOT]
        if not items:
            return
        self._published.append((slate.copy(), question, users, published.copy(), scale, unsure))
        self.shown[items] += users
        if question == WHICH_SLOT:
            key = (WHICH_SLOT, *items)
        else:
            key = (1, *sorted(items[:question]))  # in whatever order: only the sum was asked for
        row = self._numbers.setdefault(key, len(self._numbers))
        if row == len(self._tables):
            self._tables = np.concatenate([self._tables, np.zeros_like(self._tables)])
        for cell, count in enumerate(published[: len(items)]):
            self._tables[row, cell] += log_likelihood(float(count), users, scale, self.response_rate, unsure)
        for i, a in enumerate(key[1:]):
            for b in key[1 : i + 1]:
                self._pairs.setdefault((min(a, b), max(a, b)), len(self._pairs))
        self._evidence = self._neighbours = None

    def evidence(self) -> Evidence:
        """All observations, for kernels."""
        if self._evidence is None:
            self._evidence = self._built_evidence()
        return self._evidence

    def _built_evidence(self) -> Evidence:
        rows, k = len(self._numbers), self.slots
        slates = np.zeros((rows, k), dtype=np.int32)
        lengths, which = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.bool_)
        pairs = np.full((rows, k, k), NO_PAIR, dtype=np.int64)
        for (kind, *items), row in self._numbers.items():
            slates[row, : len(items)], lengths[row], which[row] = items, len(items), kind == WHICH_SLOT
            for i, a in enumerate(items):
                for j, b in enumerate(items[:i]):
                    pairs[row, i, j] = pairs[row, j, i] = self._pairs[min(a, b), max(a, b)]
        in_question = np.arange(k) < lengths[:, None]
        pair_items = np.array(list(self._pairs), dtype=np.int64).reshape(-1, 2)
        below = np.tril(np.ones((k, k), dtype=np.bool_)) & (pairs != NO_PAIR)
        by_item = _grouped(slates[in_question], np.nonzero(in_question)[0], self.n_items)
        by_pair = _grouped(pairs[below], np.nonzero(below)[0], len(pair_items))
        # A row that was not asked which slot has one table, and zeros in the place of others.
        ceilings = self._tables[:rows].max(axis=2).astype(np.float64).sum(axis=1)
        return Evidence(slates, lengths, which, self._tables, ceilings, pairs, *by_item, pair_items, *by_pair)

    def neighbours(self) -> Neighbours:
        """Which items were shown together."""
        if self._neighbours is None:
            self._neighbours = self._built_neighbours()
        return self._neighbours

    def _built_neighbours(self) -> Neighbours:
        pair_items = self.evidence().pair_items
        ones, others = pair_items.ravel(), pair_items[:, ::-1].ravel()
        numbers = np.repeat(np.arange(len(pair_items)), 2)
        starts, items = _grouped(ones, others, self.n_items)
        return Neighbours(starts, items, _grouped(ones, numbers, self.n_items)[1])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """For a snapshot: what was published, in order. Tables are made again. The names are those of a format."""
        many, k = len(self._published), self.slots
        said = np.full((many, k), np.nan)
        for row, (_, _, _, counts, _, _) in zip(said, self._published, strict=True):
            row[: len(counts)] = counts
        slates = np.array([slate for slate, *_ in self._published], dtype=np.int32).reshape(many, k)
        queries = np.array([(question, users) for _, question, users, *_ in self._published], dtype=np.int64)
        scales = np.array([scale for *_, scale, _ in self._published], dtype=np.float64)
        result: dict[str, NDArray[Any]] = {
            "slates": slates, "asked": queries.reshape(many, 2), "said": said, "scales": scales,
        }  # fmt: skip
        unsure = np.array([unsure for *_, unsure in self._published], dtype=np.float64)
        return result | ({"unsure": unsure} if unsure.any() else {})

    def take(self, arrays: dict[str, Any]) -> None:
        """Go on from what `arrays` gave."""
        slates, queries, said, scales = (arrays[name] for name in ("slates", "asked", "said", "scales"))
        k, unsure = self.slots, arrays.get("unsure", np.zeros(len(slates)))
        self.forget()
        for slate, (question, users), row, scale, spread in zip(
            slates, queries, said, scales, unsure, strict=True
        ):
            numbers = row[: k if question == WHICH_SLOT else 1]
            self.add(slate, int(question), int(users), numbers, float(scale), float(spread))


def _grouped(whose: NDArray[Any], what: NDArray[Any], many: int) -> tuple[Ints, Ints]:
    """The values of `what`, grouped by `whose`, which is 0 .. many - 1; and where each group begins."""
    starts = np.zeros(many + 1, dtype=np.int64)
    np.cumsum(np.bincount(whose, minlength=many), out=starts[1:])
    return starts, np.asarray(what[np.argsort(whose, kind="stable")], dtype=np.int64)
