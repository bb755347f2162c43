r"""The exponential mechanism, exactly: item a with probability exactly in proportion to exp(rate * score[a]).

Every item has a whole number `bound` that is at least its weight 2^bits * exp(rate * (score - reference)). A draw
picks a point uniformly below the sum of the bounds, which falls on one item with a residual uniform below its
bound, and keeps the item if the residual, made continuous by a uniform fraction, is below its weight (`keep`). So an
item is kept with probability exactly weight / sum of bounds per try, whatever the bounds are (Theorem E1 of
docs/maths/exponential.md). A float decides `keep` where rounding cannot matter; otherwise exact arithmetic does.

`select` draws once from fresh scores; `survives` tosses one coin by the same comparison. Where scores are kept and
grow, see score_classes.py.

Cost       a user who moves differences of scores by at most D makes the draw (rate * D)-bounded-range
           (Theorem E2): one `Selections(1, rate * D)` event, or count draws together.
Assumes    that the library's exp is right to one part in 2^41. Excludes timing: the number of tries depends on scores.
Reference  McSherry & Talwar (2007), FOCS, for the mechanism.
"""

from __future__ import annotations

import math

import numpy as np

from diminuendo import _validate
from diminuendo._numba import inline, kernel
from diminuendo.errors import InvalidInput
from diminuendo.randomness.words import (
    UNFINISHED,
    WINDOW,
    SecretRandomness,
    SecretWords,
    begin,
    below,
    require_secret,
    undo,
    verdict_on,
)
from diminuendo.types import Ints

REJECTED, KEPT = 0, 1  # as verdicts are

WIDER = 4
"""Where `keep` is decided without the score, the window is this many times as wide: more than all that floats, and
bounds on weights, may be off on the way."""

LARGEST_SCORE = 1 << 61

COIN_BITS = 60
"""A single coin compares a number of this many bits, and of as many more as it takes."""


@kernel  # called from Python too, where what is inline would be compiled by every process anew
def scale_bits(n_items: int) -> int:
    """The heaviest item weighs 2^this; the bounds of n of them still fit into 62 bits."""
    bits = 60
    while n_items > 1:
        n_items = (n_items + 1) // 2
        bits -= 1
    return bits


@inline
def weight_bound(rate: float, difference: int, bits: int) -> int:
    """A whole number that is certainly not below 2^bits * exp(rate * difference), for difference <= 0."""
    return int(np.int64(math.exp(rate * difference) * float(1 << bits) * (1 + WINDOW))) + 2


@inline
def keep(residual: int, rate: float, difference: int, bits: int, secret: SecretWords) -> int:
    """KEPT if residual + a uniform fraction < 2^bits * exp(rate * difference), else REJECTED; or UNFINISHED."""
    weight = math.exp(rate * difference) * float(1 << bits)
    if residual + 1.0 <= weight * (1 - secret.window[0]) - 1.0:
        return KEPT
    if residual >= weight * (1 + secret.window[0]) + 1.0:
        return REJECTED
    return verdict_on(residual, rate, difference, bits, secret)


@inline
def below_weight(residual: int, bound: int, secret: SecretWords) -> bool:
    """Whether `keep` says KEPT of every weight from the one on that `bound` is the `weight_bound` of."""
    return bool(residual + 1.0 <= (bound - 2.0) * (1 - WIDER * secret.window[0]) - 1.0)


def select(scores: Ints, rate: float, secret: SecretRandomness) -> int:
    """Draw one item by the exponential mechanism: probability exactly proportional to exp(rate * score).

    Parameters
    ----------
    scores : ndarray of int, shape (n_items,)
        Scores in fixed-point units, within 2**61 of 0. Integers, because sums of floats depend on their order and
        one user may then move them by more than their own gain.
    rate : float
        Above 0, per unit of score. It is taken as the rational number that the float is.
    secret : SecretRandomness
        Source of the draw.

    Returns
    -------
    int
        An item, from 0 to `n_items` - 1.

    Raises
    ------
    InvalidInput
        If scores are no integers, too large, or empty; if the rate is not positive; or without SecretRandomness.

    Notes
    -----
    Exact by Theorem E1 of docs/maths/exponential.md, given that the C library's exp errs by less than one part in
    2**41. If one round moves differences of scores by at most D, the draw costs `Selections(1, rate * D)` (Theorem
    E2): (rate * D, 0)-DP, and ((rate * D)**2 / 8)-zCDP. Running time depends on the scores and is not hidden.

    References
    ----------
    McSherry & Talwar (2007), Mechanism design via differential privacy, FOCS.

    Examples
    --------
    >>> import numpy as np
    >>> from diminuendo.randomness import SecretRandomness, SeededSource, select
    >>> secret = SecretRandomness(SeededSource(1))
    >>> draws = [select(np.array([0, 0, 40]), 0.1, secret) for _ in range(1_000)]
    >>> [round(draws.count(item) / 1_000, 2) for item in range(3)]  # 1 : 1 : exp(4)
    [0.02, 0.01, 0.96]
    """
    require_secret(secret)
    checked = np.ascontiguousarray(scores)
    if checked.ndim != 1 or len(checked) == 0 or not np.issubdtype(checked.dtype, np.integer):
        raise InvalidInput(
            f"scores must be a row of whole numbers, one per item; got {checked.dtype} of shape {checked.shape}. "
            "Round gains down to ticks first: what is private must be whole."
        )
    if checked.min() < -LARGEST_SCORE or checked.max() > LARGEST_SCORE:
        raise InvalidInput("scores must lie within 2^61 of 0, so that differences cannot overflow.")
    _validate.positive_float(rate, "rate")
    row = checked.astype(np.int64)
    bounds = np.empty(len(row), dtype=np.int64)
    with secret.lock:
        while (item := int(_select(row, float(rate), bounds, secret.view))) == UNFINISHED:
            secret.resume()
    return item


def survives(rate: float, difference: int, secret: SecretRandomness) -> bool:
    """Toss a coin that is True with probability exactly exp(rate * difference).

    Parameters
    ----------
    rate : float
        Above 0.
    difference : int
        From -2**61 to 0.
    secret : SecretRandomness
        Source of the coin.

    Returns
    -------
    bool

    Raises
    ------
    InvalidInput
        If the difference or the rate is out of range, or without SecretRandomness.
    """
    require_secret(secret)
    if not -LARGEST_SCORE <= difference <= 0:
        raise InvalidInput("What a coin survives must be a whole number from -2^61 to 0.")
    _validate.positive_float(rate, "rate")
    with secret.lock:
        while (verdict := int(_survives(float(rate), int(difference), secret.view))) == UNFINISHED:
            secret.resume()
    return verdict == KEPT


@kernel
def _survives(rate: float, difference: int, secret: SecretWords) -> int:
    begin(secret)
    residual = below(1 << COIN_BITS, secret)
    verdict = UNFINISHED if residual == UNFINISHED else keep(residual, rate, difference, COIN_BITS, secret)
    if verdict == UNFINISHED:
        undo(secret)
    return verdict


@kernel
def _select(scores: Ints, rate: float, bounds: Ints, secret: SecretWords) -> int:
    begin(secret)
    item = select_once(scores, rate, scale_bits(len(scores)), bounds, secret)
    if item == UNFINISHED:
        undo(secret)
    return item


@inline
def select_once(scores: Ints, rate: float, bits: int, bounds: Ints, secret: SecretWords) -> int:
    """`select` inside a round; `bounds` is scratch, one per item."""
    best = scores[0]
    for item in range(len(scores)):
        best = max(best, scores[item])
    total = 0
    for item in range(len(scores)):
        bounds[item] = weight_bound(rate, scores[item] - best, bits)
        total += bounds[item]
    while True:
        point = below(total, secret)
        if point == UNFINISHED:
            return UNFINISHED
        item = 0
        while point >= bounds[item]:
            point -= bounds[item]
            item += 1
        verdict = keep(point, rate, scores[item] - best, bits, secret)
        if verdict == UNFINISHED:
            return UNFINISHED
        if verdict == KEPT:
            return item
