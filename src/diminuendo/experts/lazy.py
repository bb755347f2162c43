"""Lazy Hedge: an expert that holds its item, and draws another now and then, by the law of Hedge all the same.

Weights count losses 2 - gain, so that all of them shrink, and an item is kept with the factor by which its own weight
has shrunk. That is private for two reasons. A user touches one coin, that of their batch, whose chances are never
close to 0 because every loss is at least 1; and draws are few, at most one in 1 / (2 rate) rounds.

Regret     that of Hedge with the same rate, for gains that do not depend on its draws (docs/maths/lazy.md, Theorem Z5).
Guarantee  none by itself: a learner accounts for coins and draws (learners/released/lazy.py, Theorem Z3).
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
    """One lazy Hedge expert: has the law of Hedge at any time, and seldom draws again.

    Parameters
    ----------
    n_items : int
        Number of items.
    rate : float, default 0.05
        Learning rate, above 0.

    Raises
    ------
    InvalidInput
        If a number is out of range.

    Notes
    -----
    After B rounds in which its item gained X, it keeps the item with probability exp(-rate * (2 B - X)), and
    otherwise draws anew (Theorem Z1 of docs/maths/lazy.md). Regret is that of Hedge with the same rate (Theorem
    Z5). Not private by itself: a learner accounts for coins and draws (Theorem Z3).

    References
    ----------
    Geulen, Vocking & Winkler (2010), COLT. Asi, Feldman, Koren & Talwar (2023), COLT.

    Examples
    --------
    >>> from diminuendo.experts import Lazy
    >>> from diminuendo.randomness import SecretRandomness, SeededCoins
    >>> expert, secret = Lazy(3), SecretRandomness(SeededCoins(1))
    >>> item = expert.draw(secret)
    >>> expert.draw(secret) == item  # nothing was learned in between
    True
    """

    def __init__(self, n_items: int, rate: float = 0.05) -> None:
        self.n_items = _validate.positive_int(n_items, "n_items")
        self._rate = _validate.positive_float(rate, "rate") / TICKS
        self._totals, self._batch = np.zeros(self.n_items, np.int64), np.zeros(self.n_items, np.int64)
        self._marks = np.array([NOTHING, 0])  # the item that it holds, and the rounds since it was asked

    def __repr__(self) -> str:
        return f"<Lazy over {self.n_items} items>"

    def draw(self, secret: SecretRandomness) -> int:
        """Return the item that it holds, or another one, if it has learned anything since the last draw."""
        held, rounds = self._marks.tolist()
        if held == NOTHING or not keeps(held, self._batch, rounds, TICKS, self._rate, secret):
            held = another(self._totals + self._batch, self._rate, secret)
        self._totals += self._batch
        self._batch[:] = 0
        self._marks[:] = held, 0
        return int(held)

    def learn(self, gains: Floats, drawn: int | None = None) -> None:
        """Learn from one round.

        Parameters
        ----------
        gains : ndarray of float, shape (n_items,)
            Gain of every item. Values outside [0, 1] count as the nearest end, NaN as 0.
        drawn : int, optional
            Not used.

        Raises
        ------
        InvalidInput
            Unless there is one gain per item.
        """
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
        """Refuse what could not have come about."""
        held, rounds = self._marks.tolist()
        sound = (
            self._totals.min() >= 0
            and self._batch.min() >= 0
            and self._batch.max() <= rounds * TICKS
            and NOTHING <= held < self.n_items
        )
        if not sound:
            raise InvalidInput(
                "The snapshot holds totals or items that could not have come about; it was altered."
            )
