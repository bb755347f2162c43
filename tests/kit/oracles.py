"""Privacy curves and strategies by their definitions: in 60 digits, by enumeration, or with dense matrices.

Nothing here calls the package or borrows its formulas. A minimum over orders is a bisection on the
derivative, a worst mechanism is searched for among all mechanisms with two outcomes, a composition is an
enumeration or a plain dynamic programme, and a strategy is a matrix. Slow, and obvious.

The worst bounded-range mechanism has two outcomes: the hockey-stick and the Renyi divergence are both means
of a convex function of the ratio P/Q under Q, and among ratios in an interval with mean 1 such a mean is
largest at the ends.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

mp: Any = importlib.import_module("mpmath").mp.clone()
mp.dps = 60

Floats: TypeAlias = NDArray[np.float64]
Number: TypeAlias = Any
"""A float, a Fraction or an mpf; results are mpf, which know no underflow."""


def exact(x: Number) -> Any:
    """A number in 60 digits; floats and integers are taken as they are."""
    return mp.mpf(x.numerator) / x.denominator if isinstance(x, Fraction) else mp.mpf(x)


HAIR = 1e-7
"""What a result of the package may give away for safety, relatively. The oracles are good to 1e-30."""


def check_delta(wanted: Any, given: float, hair: float = HAIR) -> None:
    """Above the truth by a hair at most; where floats end, still not nothing."""
    if wanted > 1e-300:
        assert wanted <= exact(given) <= wanted * (1 + hair)
    else:
        assert (0 < given <= 1e-299) if wanted > 0 else given == 0


def between(low: float, high: float) -> st.SearchStrategy[float]:
    """Numbers spread evenly over the orders of magnitude."""
    return st.floats(math.log10(low), math.log10(high)).map(lambda x: 10.0**x)


# Curves of one mechanism.


def zcdp_log_delta(rho: Number, epsilon: Number) -> Any:
    """log of min over a > 1 of exp((a-1)(a rho - epsilon)) (1-1/a)^a / (a-1).

    The logarithm is convex in a, with derivative (2a-1) rho - epsilon + log(1-1/a), which runs from minus
    infinity to infinity: bisect it in log(a-1). The value is flat there, so 40 digits of a give 60 of it.
    """
    rho, epsilon = exact(rho), exact(epsilon)
    low, high = mp.mpf(-1), mp.mpf(1)

    def slope(u: Any) -> Any:
        a = 1 + mp.exp(u)
        return (2 * a - 1) * rho - epsilon + u - mp.log(a)

    while slope(low) > 0:
        low *= 2
    while slope(high) < 0:
        high *= 2
    for _ in range(140):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    a = 1 + mp.exp(low)
    return (a - 1) * (a * rho - epsilon) + (a - 1) * low - a * mp.log(a)


def zcdp_delta(rho: Number, epsilon: Number) -> Any:
    return mp.exp(zcdp_log_delta(rho, epsilon))


@cache
def zcdp_rho(epsilon: Number, delta: Number) -> Any:
    """The largest rho whose delta is at most what is asked."""
    wanted = mp.log(exact(delta))
    return crossing(lambda rho: zcdp_log_delta(rho, epsilon) - wanted)


@cache
def zcdp_epsilon(rho: Number, delta: Number) -> Any:
    wanted = mp.log(exact(delta))
    return crossing(lambda epsilon: wanted - zcdp_log_delta(rho, epsilon))


def bun_steinke_rho(epsilon: Number, delta: Number) -> Any:
    """The root of rho + 2 sqrt(rho log(1/delta)) = epsilon, a quadratic in sqrt(rho)."""
    log = -mp.log(exact(delta))
    return (mp.sqrt(log + exact(epsilon)) - mp.sqrt(log)) ** 2


def gaussian_delta(mu: Number, epsilon: Number) -> Any:
    """P(X > epsilon) - e^epsilon Q(X > epsilon) for the log-ratio X of N(mu, 1) and N(0, 1)."""
    mu, epsilon = exact(mu), exact(epsilon)
    return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


@cache
def gaussian_mu(epsilon: Number, delta: Number) -> Any:
    wanted = mp.log(exact(delta))
    return crossing(lambda mu: mp.log(gaussian_delta(mu, epsilon)) - wanted)


def gaussian_epsilon(mu: Number, delta: Number) -> Any:
    wanted = mp.log(exact(delta))
    return crossing(lambda epsilon: wanted - mp.log(gaussian_delta(mu, epsilon)))


def crossing(rising: Callable[[Any], Any]) -> Any:
    """Where a rising function of a positive number turns positive, to 30 digits."""
    low, high = mp.mpf(1), mp.mpf(1)
    while rising(low) > 0:
        low /= 4
    while rising(high) <= 0:
        high *= 4
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) <= 0 else (low, middle)
    return low


# Mechanisms of bounded range: two outcomes, log-ratios t and t - span, 0 <= t <= span.


def two_points(span: Any, t: Any) -> tuple[Any, Any]:
    """The law Q of the outcomes with log-ratios t and t - span, from total mass 1 of both Q and P."""
    low, high = mp.exp(t - span), mp.exp(t)
    return (1 - low) / (high - low), (high - 1) / (high - low)


def largest(value: Callable[[Any], Any], low: Any, high: Any) -> Any:
    """The maximum of a function over an interval: the best of 64 cells, then golden section."""
    step = (high - low) / 64
    best = max(range(1, 64), key=lambda i: value(low + i * step))
    a, b = low + (best - 1) * step, low + (best + 1) * step
    golden = (mp.sqrt(5) - 1) / 2
    for _ in range(120):
        c, d = b - golden * (b - a), a + golden * (b - a)
        a, b = (c, b) if value(c) < value(d) else (a, d)
    return value((a + b) / 2)


def range_delta(span: Number, epsilon: Number) -> Any:
    span, epsilon = exact(span), exact(epsilon)

    def hockey_stick(t: Any) -> Any:
        q = two_points(span, t)
        return q[0] * max(0, mp.exp(t) - mp.exp(epsilon)) + q[1] * max(0, mp.exp(t - span) - mp.exp(epsilon))

    return largest(hockey_stick, max(mp.mpf(0), epsilon), span) if epsilon < span else mp.mpf(0)


def range_renyi(span: Number, order: Number) -> Any:
    span, order = exact(span), exact(order)

    def divergence(t: Any) -> Any:
        q = two_points(span, t)
        return mp.log(q[0] * mp.exp(order * t) + q[1] * mp.exp(order * (t - span))) / (order - 1)

    return largest(divergence, mp.mpf(0), span)


# Compositions.


def pure_delta(step: Number, count: int, epsilon: Number) -> Any:
    """Randomised response is the worst (step, 0)-private mechanism: sum over the number of lies told."""
    step = exact(step)
    p = 1 / (1 + mp.exp(-step))
    total = mp.mpf(0)
    for lies in range(count + 1):
        here = p ** (count - lies) * (1 - p) ** lies
        there = (1 - p) ** (count - lies) * p**lies
        gain = here - mp.exp(exact(epsilon)) * there
        total += math.comb(count, lies) * (
            gain if gain > here * mp.mpf(10) ** -50 else 0
        )  # not mere rounding
    return total


def advanced_epsilon(step: Number, count: int, delta: Number) -> Any:
    step = exact(step)
    return step * mp.sqrt(-2 * count * mp.log(exact(delta))) + count * step * (mp.exp(step) - 1)


def adaptive_delta(span: float, count: int, epsilon: float, parts: int = 200) -> float:
    """Adaptive composition of mechanisms of bounded range: a dynamic programme over what is left of epsilon.

    v(x) is the largest delta at epsilon x with the steps that remain. Log-ratios are whole numbers of
    span/parts, so every x that occurs is on the grid and nothing is interpolated: a lower bound, short of the
    supremum by the square of the grid.
    """
    h = span / parts
    t = h * np.arange(parts + 1)
    up = (
        np.expm1(span - t) / np.expm1(span) * np.exp(t)
    )  # the chance, under P, of the outcome with log-ratio t
    reach = count * parts
    v = np.maximum(0.0, -np.expm1(epsilon + h * np.arange(-reach, reach + 1)))
    for _ in range(count):
        width = len(v) - 2 * parts
        steps = range(parts + 1)
        v = np.max(
            [up[s] * v[parts - s :][:width] + (1 - up[s]) * v[2 * parts - s :][:width] for s in steps],
            axis=0,
        )
    assert len(v) == 1
    return float(v[0])


# Strategies. Row by row: what is published; column by column: what one batch of users is part of.


def best_variance(matrix: NDArray[np.int64], batches: int) -> float:
    """The least variance of an unbiased linear estimate of the sum of all batches, noise 1 per row."""
    dense = matrix[:, :batches].astype(float)
    ones = np.ones(batches)
    return float(ones @ np.linalg.solve(dense.T @ dense, ones))


def sqrt_toeplitz(releases: int) -> Floats:
    """r_j = binomial(2j, j) / 4^j, the coefficients of (1-x)^(-1/2)."""
    j = np.arange(1, releases)
    return np.concatenate([[1.0], np.cumprod((2 * j - 1) / (2 * j))])


def prefix_row(column: Floats) -> Floats:
    """The last row of (prefix sums)(Toeplitz matrix)^(-1), backwards: forward substitution, then cumulate."""
    inverse = np.zeros(len(column))
    inverse[0] = 1 / column[0]
    for k in range(1, len(column)):
        inverse[k] = -(column[1 : k + 1] @ inverse[k - 1 :: -1]) / column[0]
    return np.cumsum(inverse)


def decoder(matrix: NDArray[np.int64]) -> Floats:
    """(prefix sums)(square matrix)^(-1)."""
    dense = matrix.astype(float)
    return np.linalg.solve(dense.T, np.tri(len(dense)).T).T
