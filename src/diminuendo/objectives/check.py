"""Checks an objective for what learners assume: normalised, in [0, 1], monotone, submodular, with matching gains.

Small objectives are checked on every set. Larger ones are checked on random chains, where finding nothing is evidence
and not proof.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from diminuendo.types import Objective

EXHAUSTIVE_UP_TO = 12
"""With at most this many items every set is looked at (2^12 values and 4096 x 12 comparisons)."""

VALUE_ROUNDING = 2.0**-40
"""Differences below this are rounding: values in [0, 1] built from up to thousands of float operations."""


@dataclass(frozen=True)
class Violation:
    """A condition that an objective breaks, and where.

    Attributes
    ----------
    rule : {"empty", "range", "monotone", "gains", "submodular"}
        Which condition.
    words : str
        The counterexample, with its slate and values.
    """

    rule: str
    words: str

    def __str__(self) -> str:
        return self.words


def check(objective: Objective, *, tries: int = 300, seed: int = 0) -> Violation | None:
    """Look for a counterexample to what learners assume of an objective.

    Parameters
    ----------
    objective : Objective
        Any object with `n_items`, `value` and `gains`.
    tries : int, default 300
        Number of random chains of items, if there are more than 12 items.
    seed : int, default 0
        Seed of the random chains.

    Returns
    -------
    Violation or None
        The first violation found: f(empty) = 0, values in [0, 1], monotone, submodular, `gains` agreeing with
        `value`.

    Notes
    -----
    With at most 12 items every set is checked, so None is a proof up to rounding (2**-40). With more items, None is
    evidence only.

    Examples
    --------
    >>> import diminuendo as dim
    >>> print(dim.check(dim.Oracle(lambda items: min(1.0, len(items) / 2), n_items=4)))
    None
    >>> violation = dim.check(dim.Oracle(lambda items: (len(items) / 4) ** 2, n_items=4))
    >>> violation.rule
    'submodular'
    >>> print(violation)
    Item 1 adds 0.1875 to [0], but only 0.0625 to [], a part of it; returns must diminish.
    """
    n = objective.n_items
    if n <= EXHAUSTIVE_UP_TO:
        return next(_exhaustive(objective, n), None)
    return next(_random(objective, n, tries, np.random.default_rng(seed)), None)


def _exhaustive(objective: Objective, n: int) -> Iterator[Violation]:
    sets = [s for size in range(n + 1) for s in itertools.combinations(range(n), size)]
    values = {s: float(objective.value(s)) for s in sets}
    for s in sets:
        yield from _value_faults(s, values[s])
    for s in sets:
        claimed = objective.gains(s)
        for a in range(n):
            if a in s:
                continue
            with_a = tuple(sorted((*s, a)))
            yield from _gain_faults(s, a, values[s], values[with_a], float(claimed[a]))
            for b in range(a):  # submodular everywhere iff submodular for pairs
                if b not in s:
                    with_b, both = tuple(sorted((*s, b))), tuple(sorted((*s, a, b)))
                    yield from _return_faults(
                        s, with_b, a, values[with_a] - values[s], values[both] - values[with_b]
                    )


def _random(objective: Objective, n: int, tries: int, rng: np.random.Generator) -> Iterator[Violation]:
    yield from _value_faults((), objective.value(()))
    yield from _value_faults(tuple(range(n)), float(objective.value(range(n))))
    for attempt in range(tries):  # few items and many, in turn
        size = min(n - 1, int(rng.geometric(0.15))) if attempt % 2 else int(rng.integers(1, n))
        order = [int(item) for item in rng.permutation(n)]
        small, large = tuple(order[: int(rng.integers(0, size))]), tuple(order[:size])
        before, after = objective.gains(small), objective.gains(large)
        low, high = float(objective.value(small)), float(objective.value(large))
        yield from _value_faults(small, low)
        yield from _value_faults(large, high)
        with np.errstate(invalid="ignore"):  # who knows what an objective calls a gain
            rise = np.asarray(after, dtype=float) - np.asarray(before, dtype=float)
        rise[list(large)] = -np.inf
        for a in {order[size], int(np.argmax(rise))} - set(large):
            with_small, with_large = float(objective.value((*small, a))), float(objective.value((*large, a)))
            yield from _value_faults((*small, a), with_small)
            yield from _value_faults((*large, a), with_large)
            yield from _gain_faults(small, a, low, with_small, float(before[a]))
            yield from _gain_faults(large, a, high, with_large, float(after[a]))
            yield from _return_faults(small, large, a, with_small - low, with_large - high)


def _value_faults(s: tuple[int, ...], f: float) -> Iterator[Violation]:
    if not s and f != 0:
        yield Violation("empty", f"The empty slate is worth {f:.6g}; it must be worth 0.")
    elif not -VALUE_ROUNDING <= f <= 1 + VALUE_ROUNDING:  # also true of NaN
        yield Violation("range", f"Slate {list(s)} is worth {f:.6g}; values must lie in [0, 1].")


def _gain_faults(s: tuple[int, ...], a: int, f: float, f_a: float, claimed: float) -> Iterator[Violation]:
    if f_a < f - VALUE_ROUNDING:
        yield Violation(
            "monotone",
            f"Adding item {a} to {list(s)} lowers its worth from {f:.6g} to {f_a:.6g}; more must never hurt.",
        )
    if not abs(claimed - (f_a - f)) <= VALUE_ROUNDING:
        yield Violation(
            "gains",
            f"gains({list(s)}) says item {a} adds {claimed:.6g}, but value() says {f_a - f:.6g}.",
        )


def _return_faults(
    small: tuple[int, ...], large: tuple[int, ...], a: int, early: float, delay: float
) -> Iterator[Violation]:
    if delay > early + VALUE_ROUNDING:
        yield Violation(
            "submodular",
            f"Item {a} adds {delay:.6g} to {list(large)}, but only {early:.6g} to {list(small)}, "
            "a part of it; returns must diminish.",
        )
