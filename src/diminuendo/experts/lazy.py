r"""Lazy Hedge: an expert that keeps its item, and draws another now and then, by the law of Hedge all the same.

Between two draws it hears of a batch of B rounds in which item a gains X(a), at most B. Then it keeps its item x with
probability exp(-rate * (2 B - X(x))), and otherwise draws in proportion to exp(rate * total gains). Whatever the gains,
its item is at any time distributed as Hedge's would be (docs/maths/lazy.md, Theorem Z1): weights count losses 2 - gain,
so that all of them shrink, and who is kept is kept by as much as its own weight has shrunk.

It is private for two reasons. A person touches one coin, that of her batch, whose chances are never close to 0
because every loss is at least 1; and draws, of which there are few, one in 1 / (2 rate) rounds at most.

Regret     that of Hedge with the same rate, for gains that do not depend on its draws (Theorem Z5).
Guarantee  none by itself: a learner counts coins and draws (learners/released/lazy.py, Theorem Z3).
References Geulen, Vocking & Winkler (2010), COLT, for the shrinking dartboard; Asi, Feldman, Koren & Talwar (2023),
           COLT, and Asi, Koren, Liu & Talwar (2024), NeurIPS 37, for its privacy.
"""

from __future__ import annotations

import numpy as np

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.randomness.exponential import select, survives
from diminuendo.randomness.ticks import TICKS
from diminuendo.randomness.words import SecretRandomness
from diminuendo.types import Floats, Ints

NOTHING = -1
"""What an expert holds that has drawn nothing yet."""

MOST_LOST = 2
"""What is lost in a round by an item that gains nothing. With 1 an item that gains all there is would be kept for
certain, and one person could be seen by its leaving."""


def keeps(held: int, batch: Ints, rounds: int, ticks: int, rate: float, secret: SecretRandomness) -> bool:
    """Whether an expert keeps its item after a batch of `rounds` rounds; gains are in ticks, the rate is per tick."""
    return survives(rate, int(batch[held]) - MOST_LOST * rounds * ticks, secret)


def another(totals: Ints, rate: float, secret: SecretRandomness) -> int:
    """An item in proportion to exp(rate * total), totals in ticks and the rate per tick."""
    return select(totals, rate, secret)


class Lazy:
    """One lazy expert by itself; all that it learns between two draws is one batch."""

    def __init__(self, n_items: int, rate: float = 0.05) -> None:
        self.n_items = _validate.positive_int(n_items, "n_items")
        self._rate = _validate.positive_float(rate, "rate") / TICKS
        self._totals, self._batch = np.zeros(self.n_items, np.int64), np.zeros(self.n_items, np.int64)
        self._marks = np.array([NOTHING, 0])  # the item that it holds, and the rounds since it was asked

    def __repr__(self) -> str:
        return f"<Lazy over {self.n_items} items>"

    def draw(self, secret: SecretRandomness) -> int:
        """The item that it holds, or another, if it was told anything since it was asked last."""
        held, rounds = self._marks.tolist()
        if held == NOTHING or not keeps(held, self._batch, rounds, TICKS, self._rate, secret):
            held = another(self._totals + self._batch, self._rate, secret)
        self._totals += self._batch
        self._batch[:] = 0
        self._marks[:] = held, 0
        return int(held)

    def learn(self, gains: Floats, drawn: int | None = None) -> None:
        """Every item's gain in one round; values outside [0, 1] count as the nearest end, NaN as 0."""
        row = np.array(_validate.numbers(gains, "gains"), dtype=np.float64)
        if row.shape != (self.n_items,):
            raise InvalidInput(f"Expected one gain per item, {self.n_items}; got shape {row.shape}.")
        row[~(row > 0.0)] = 0.0  # NaN too
        self._batch += np.floor(np.minimum(row, 1.0) * TICKS).astype(np.int64)
        self._marks[1] += 1

    def state(self) -> tuple[Ints, Ints, Ints]:
        """Totals before the last draw, gains since, and what is held for how many rounds."""
        return self._totals, self._batch, self._marks

    def restored(self) -> None:
        """Nothing follows from the state."""
