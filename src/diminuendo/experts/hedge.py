r"""Hedge: k experts, one per slot, each drawing items in proportion to exp(rate * total gains).

With a fixed rate this is Freund and Schapire's algorithm. By default each expert sets its own rate
from what it has seen, with no horizon and nothing to tune:

    rate = sqrt(log N / (1 + L)),  at most 1,  rounded down to a power of sqrt 2,

where L is the larger of the best item's total gain and the expert's own. Then its expected regret is at
most 2.86 sqrt(log N (1 + L)) + 1.5 log N (docs/maths/hedge.md, Theorem 1): the textbook bound, with
the gain that was there to be had in place of the number of rounds. Later slots have little left to gain,
so they may move faster; the textbook rate makes all slots wait for the first.

State is integers (ticks), so that the order in which users answer does not matter.
Guarantee  none: draws follow secret totals and are not accounted for here.
References Freund & Schapire (1997), JCSS 55; Auer, Cesa-Bianchi & Gentile (2002), JCSS 64.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from diminuendo import _validate
from diminuendo._numba import inline, kernel
from diminuendo.errors import InvalidInput
from diminuendo.randomness.score_classes import (
    ScoreClasses,
    draw,
    grow,
    new_score_classes,
    probabilities,
    retune,
    sort_again,
)
from diminuendo.randomness.ticks import TICKS, to_ticks
from diminuendo.randomness.words import UNFINISHED, SecretRandomness, SecretWords, begin, undo
from diminuendo.types import Floats, Ints

SLOWEST, FASTEST = 2.0**-40, 2.0**10
"""Beyond these a rate means never moving, or always following the leader; class widths stay whole numbers."""


class HedgeState(NamedTuple):
    """k experts over n items."""

    classes: ScoreClasses
    best: Ints
    """(k,) the best item's total, in ticks."""
    own: Ints
    """(k,) what the expert itself has gained, in ticks."""
    limit: Floats
    """(1,) a rate falls when rate^2 (1 + L) exceeds this: log N, or infinity where the rate is fixed."""

    def __repr__(self) -> str:
        return "<HedgeState>"


def new_hedge(n_items: int, experts: int, rate: float | None) -> HedgeState:
    """Fresh experts; `rate=None` lets each find its own."""
    first = 1.0 if rate is None else _validate.positive_float(rate, "rate")
    if not SLOWEST <= first <= FASTEST:
        raise InvalidInput(f"rate must lie from {SLOWEST:.1e} to {FASTEST:g}; got {rate}.")
    return HedgeState(
        new_score_classes(n_items, experts, first / TICKS),
        np.zeros(experts, dtype=np.int64),
        np.zeros(experts, dtype=np.int64),
        np.array([math.log(max(2, n_items)) if rate is None else math.inf]),
    )


def learned(state: HedgeState) -> tuple[Ints, Floats, Ints, Ints]:
    """What was learned, from which all else follows: totals, rates, the best and the own gains."""
    return state.classes.totals, state.classes.rate, state.best, state.own


def rebuild(state: HedgeState) -> None:
    """Build everything else from what was learned."""
    sort_again(state.classes)


@inline
def learn(state: HedgeState, expert: int, item: int, ticks: int) -> None:
    """Item gained `ticks` more."""
    if ticks > 0:
        grow(state.classes, expert, item, ticks)
        state.best[expert] = max(state.best[expert], state.classes.totals[item, expert])


@inline
def settle(state: HedgeState, expert: int, own: int) -> None:
    """The round is over for this expert, whose own item gained `own` ticks."""
    state.own[expert] += own
    seen = 1.0 + max(state.best[expert], state.own[expert]) / TICKS
    rate = state.classes.rate[expert] * TICKS
    if rate * rate * seen > state.limit[0]:
        wanted = math.sqrt(state.limit[0] / seen)
        retune(state.classes, expert, 2.0 ** (math.floor(2.0 * math.log2(wanted)) / 2.0) / TICKS)


class Hedge:
    """One Hedge expert: draws items with probability proportional to exp(rate * total gain), exactly.

    Parameters
    ----------
    n_items : int
        Number of items.
    rate : float, optional
        Learning rate, from 2**-40 to 2**10. By default the expert sets its own, with no horizon.

    Raises
    ------
    InvalidInput
        If a number is out of range.

    Notes
    -----
    With its own rate, expected regret is at most 2.86 sqrt(log N (1 + L)) + 1.5 log N, where L is the larger of the
    best item's total gain and the expert's own (Theorem 1 of docs/maths/hedge.md). Not private by itself: a learner
    accounts for draws.

    References
    ----------
    Freund & Schapire (1997), JCSS 55. Auer, Cesa-Bianchi & Gentile (2002), JCSS 64.

    Examples
    --------
    >>> from diminuendo.experts import Hedge
    >>> expert = Hedge(3, rate=1.0)
    >>> expert.learn([0.0, 1.0, 0.0], drawn=0)
    >>> expert.probabilities().round(3).tolist()
    [0.212, 0.576, 0.212]
    """

    def __init__(self, n_items: int, rate: float | None = None) -> None:
        self.n_items = _validate.positive_int(n_items, "n_items")
        self._state = new_hedge(self.n_items, 1, rate)
        self._drawn = 0

    def __repr__(self) -> str:
        return f"<Hedge over {self.n_items} items>"

    def draw(self, secret: SecretRandomness) -> int:
        """Return an item, with probability exactly proportional to exp(rate * total gain)."""
        with secret.lock:
            while (item := int(_draw_one(self._state, secret.view))) == UNFINISHED:
                secret.resume()
        self._drawn = item
        return item

    def learn(self, gains: Floats, drawn: int | None = None) -> None:
        """Learn from one round.

        Parameters
        ----------
        gains : ndarray of float, shape (n_items,)
            Gain of every item. Values outside [0, 1] count as the nearest end, NaN as 0.
        drawn : int, optional
            The item that was shown. By default the one that was drawn last.

        Raises
        ------
        InvalidInput
            Unless there is one gain per item.
        """
        _learn_all(self._state, self.checked(gains), self._drawn if drawn is None else drawn)

    def checked(self, gains: Floats) -> Floats:
        """Return gains as an array. Raises InvalidInput unless there is one per item."""
        row = np.ascontiguousarray(_validate.numbers(gains, "gains"))
        if row.shape != (self.n_items,):
            raise InvalidInput(f"Expected one gain per item, {self.n_items}; got shape {row.shape}.")
        return row

    def probabilities(self) -> Floats:
        """Return the law of the next draw, an array of shape (n_items,)."""
        return probabilities(self._state.classes, 0)

    def state(self) -> tuple[Ints, Floats, Ints, Ints]:
        """Return what was learned: totals, the rate, and the best item's and the expert's own gains."""
        return learned(self._state)

    def restored(self) -> None:
        """All else follows from what was learned."""
        rebuild(self._state)


@kernel
def _draw_one(state: HedgeState, secret: SecretWords) -> int:
    begin(secret)
    item = draw(state.classes, 0, secret)
    if item == UNFINISHED:
        undo(secret)
    return item


@kernel
def _learn_all(state: HedgeState, gains: Floats, drawn: int) -> None:
    for item in range(len(gains)):
        learn(state, 0, item, to_ticks(gains[item]))
    settle(state, 0, to_ticks(gains[drawn]))
