r"""Privacy curves: what a cost of one kind is worth as (epsilon, delta), and back.

Every function rounds in the safe direction: deltas and epsilons up, budgets (rho, mu) down. A value is computed in
logarithms, moved outward by a bound on the rounding error of the terms it came from, and bisections return the safe
end. Proofs in docs/maths/accounting.md.

References Bun & Steinke (2016), TCC; Canonne, Kamath & Steinke (2020), NeurIPS 33; Dong, Roth & Su (2022), JRSS B 84;
Kairouz, Oh & Viswanath (2015), ICML; Dwork, Rothblum & Vadhan (2010), FOCS.
"""

from __future__ import annotations

import math

from diminuendo.privacy.rounding import greatest, least

ROUNDINGS = 16
"""Of 2^-53 each."""

FRACTION_FROM = 30.0
"""From here on the fraction is used; erfc would come to nothing at 37."""

DEPTH = 12
"""How much of the fraction: 12! / 30^24 is less than 2^-88."""


def log_normal(x: float) -> float:
    """log Phi(x), the logarithm of the normal distribution function, from the C library's error function.

    scipy has it too, but to load it takes longer than to choose a learner, and this one errs less: by at most ROUNDINGS
    roundings of (1 + its own size), where what is built on it allows for 512. Up to -FRACTION_FROM that holds if
    `erfc` errs by no more than 4 roundings, as the C libraries in use do; a test compares with exact arithmetic.
    Far out the tail is the density over a continued fraction, Phi(-x) = phi(x) / (x + 1/(x + 2/(x + 3/(x + ...)))).
    Its n-th convergents lie on both sides of the limit in turn, and the n-th is off by at most n! / x^(2n) of it.
    """
    if x > -1.0:
        return math.log1p(-math.erfc(x / math.sqrt(2)) / 2)
    if x > -FRACTION_FROM:
        return math.log(math.erfc(-x / math.sqrt(2)) / 2)
    fraction = -x
    for level in range(DEPTH, 0, -1):
        fraction = -x + level / fraction
    return -x * x / 2 - math.log(2 * math.pi) / 2 - math.log(fraction)


SLACK = 2.0**-44
"""Relative error allowed for each term of a sum in logarithms: 256 roundings."""


def zcdp_delta(rho: float, epsilon: float) -> float:
    """The delta at epsilon of anything that is rho-zCDP (Theorem A2), at the order where the bound is least."""
    if rho == 0.0:
        return 0.0
    low, high = 1.0, min(2.0 + (epsilon + 1.0) / (2.0 * rho), 2.0**500)
    for _ in range(2000):
        order = (low + high) / 2
        if not low < order < high:
            break
        if (2 * order - 1) * rho - epsilon + math.log1p(-1 / order) < 0:
            low = order
        else:
            high = order
    # Any order above 1 gives a valid delta, so only the evaluation below has to be careful.
    order = high
    # Two ways to write the logarithm of (1 - 1/a)^a / (a - 1), each exact where the other is not.
    if order > 2:
        factor = order * math.log1p(-1 / order), -math.log(order - 1)
    else:
        factor = (order - 1) * math.log(order - 1), -order * math.log(order)
    terms = (order - 1) * order * rho, -(order - 1) * epsilon, *factor
    return _exp_up(sum(terms), sum(map(abs, terms)))


def zcdp_epsilon(rho: float, delta: float) -> float:
    """The epsilon at delta of anything that is rho-zCDP."""
    return least(lambda epsilon: zcdp_delta(rho, epsilon) <= delta)


def zcdp_rho(epsilon: float, delta: float) -> float:
    """The largest rho whose delta at epsilon is at most delta."""
    return greatest(lambda rho: zcdp_delta(rho, epsilon) <= delta)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """The delta at epsilon of Gaussian noise in real arithmetic, sensitivity over deviation = mu (Theorem A3)."""
    if mu == 0.0:
        return 0.0
    first = log_normal(-epsilon / mu + mu / 2)
    second = epsilon + log_normal(-epsilon / mu - mu / 2)
    slack = SLACK * (abs(first) + abs(second) + 2 * abs(epsilon) + 1)
    result = math.exp(first + slack) * -math.expm1(min(0.0, second - first - 2 * slack))
    return min(1.0, result) or math.ulp(0.0)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The epsilon at delta of Gaussian noise in real arithmetic."""
    return least(lambda epsilon: gaussian_delta(mu, epsilon) <= delta)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest mu whose delta at epsilon is at most delta."""
    return greatest(lambda mu: gaussian_delta(mu, epsilon) <= delta)


def pure_delta(step: float, count: int, epsilon: float) -> float:
    """The delta at epsilon of the best adversary against `count` mechanisms, each (step, 0)-private.

    It is 0 from count * step on, and only there: below, terms may underflow.
    """
    total = 0.0
    whole = count * math.log1p(math.exp(-step))
    for turned in range(count + 1):
        gap = epsilon - (count - 2 * turned) * step * (1 + SLACK)
        if gap < 0:
            ways = math.lgamma(count + 1) - math.lgamma(turned + 1) - math.lgamma(count - turned + 1)
            total += math.exp(ways - turned * step - whole) * -math.expm1(gap)
    return _up(total, 4 * count) or (math.ulp(0.0) if epsilon < count * step * (1 + SLACK) else 0.0)


def advanced_epsilon(step: float, count: int, delta: float) -> float:
    """Advanced composition of `count` (step, 0)-private mechanisms, as the paper prints it."""
    return _up(step * math.sqrt(2 * count * -math.log(delta)) + count * step * math.expm1(step))


def _up(value: float, roundings: int = 1) -> float:
    return min(value * (1 + SLACK * roundings), math.inf)


def _exp_up(power: float, size: float) -> float:
    return min(1.0, math.nextafter(math.exp(min(0.0, power + SLACK * (size + 1))), 1.0))
