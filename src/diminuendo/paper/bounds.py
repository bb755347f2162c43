"""The bounds of Perez-Salazar & Cummings as functions: what is proved, and beside it what is printed.

Each regret function bounds the expected (1 - 1/e)-regret of a whole run of T rounds, rewards in [0, 1], against users
who do not react to what is shown to others. A value of T or more says nothing. Plain names are proved, with every
constant; names that begin with `printed_` are what the paper prints, and their docstrings say what is wrong with it.

Notation   N items, k slots, T rounds, rate = eta, exploring = gamma, L = log(k / delta).
Proofs     docs/maths/paper.md; docs/errata.md numbers the paper's slips and names a test for each.
References Perez-Salazar & Cummings (2021), AISTATS; Freund & Schapire (1997), JCSS 55; Streeter & Golovin (2008),
           NIPS 21; Dwork, Rothblum & Vadhan (2010), FOCS; Thakurta & Smith (2013), NIPS 26.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from diminuendo import _validate
from diminuendo.continuous.frank_wolfe_plan import printed_regret
from diminuendo.errors import InvalidInput
from diminuendo.learners.hedge.bounds import (
    LARGEST_RATE,
    bandit,
    cap_excess,
    checked_exploring,
    checked_run,
    full_information,
    presampled_bandit,
)
from diminuendo.learners.hedge.constants import paper_rate
from diminuendo.privacy import curves
from diminuendo.privacy.rounding import rounded_up


def hedge(n_items: int, rounds: int, rate: float) -> float:
    """One Hedge expert: eta T/8 + log N/eta, for every rate.

    The printed eta T + log N/eta is never smaller. What it is good for is its first-order form, which
    `full_information` and `bandit` rest on and which needs a rate of at most LARGEST_RATE.

    Parameters
    ----------
    n_items, rounds : int
        N and T.
    rate : float
        eta, above 0.

    Returns
    -------
    float
        Expected regret of one expert, at most; T or more says nothing.

    Examples
    --------
    >>> from diminuendo.paper import bounds
    >>> round(bounds.hedge(n_items=50, rounds=100_000, rate=0.01), 1), round(bounds.printed_hedge(50, 100_000, 0.01), 1)
    (516.2, 1391.2)
    """
    n_items, rounds, rate = checked_run(n_items, rounds, rate)
    return rate * rounds / 8 + math.log(n_items) / rate


def printed_hedge(n_items: int, rounds: int, rate: float) -> float:
    """eta T + log N/eta. True, but the sum over rounds behind it is not when eta >= 2 (erratum 13).

    Parameters
    ----------
    n_items, rounds : int
        N and T.
    rate : float
        eta, above 0.

    Returns
    -------
    float
        Expected regret of one expert, at most; T or more says nothing.

    See Also
    --------
    hedge : the proved bound.
    """
    n_items, rounds, rate = checked_run(n_items, rounds, rate)
    return rate * rounds + math.log(n_items) / rate


def printed_full_information(n_items: int, slots: int, rounds: int, rate: float) -> float:
    """k (eta T + log N/eta). True; its first term is k times too large (erratum 15).

    Parameters
    ----------
    n_items, slots, rounds : int
        N, k and T.
    rate : float
        eta, above 0.

    Returns
    -------
    float
        Expected (1 - 1/e)-regret of the run, at most; T or more says nothing.
    """
    one = printed_hedge(n_items, rounds, rate)
    return _validate.slots(slots, n_items) * one


def theorem_full_information(n_items: int, slots: int, rounds: int, epsilon: float, delta: float) -> float:
    """Theorem 6 with its constants: `printed_full_information` at the paper's rate. True.

    The theorem's O() keeps the second term alone; the first grows with epsilon (erratum 20).

    Parameters
    ----------
    n_items, slots, rounds : int
        N, k and T.
    epsilon, delta : float
        What the paper's guarantee is asked for; delta above 0.

    Returns
    -------
    float
        Expected (1 - 1/e)-regret of the run, at most; T or more says nothing.
    """
    n_items, rounds, epsilon, _ = _asked(n_items, slots, rounds, epsilon, delta)
    return printed_full_information(n_items, slots, rounds, paper_rate(slots, rounds, epsilon, delta))


def printed_bandit_lemma(
    n_items: int, slots: int, rounds: int, exploring: float, epsilon: float, delta: float
) -> float:
    """Lemma 3, one expert: 16 k^2 N log N sqrt(T L)/(epsilon sqrt gamma) + (k N/gamma) T e^(-8 gamma^2 T).

    The first term holds for epsilon^2 <= 64 k^3 N log N L, with an argument other than the printed one, and not for
    every epsilon (errata 7 and 21).
    The second is not needed, and its tail is wrong for gamma from .0518 to 1/2 (errata 1 and 7).

    Parameters
    ----------
    n_items, slots, rounds : int
        N, k and T.
    exploring : float
        gamma, in (0, 1].
    epsilon, delta : float
        What the paper's guarantee is asked for; delta above 0.

    Returns
    -------
    float
        Expected regret of one expert, at most; T or more says nothing.
    """
    n_items, rounds, epsilon, logarithm = _asked(n_items, slots, rounds, epsilon, delta)
    exploring = checked_exploring(exploring)
    learning = 16 * slots**2 * _items(n_items) * math.sqrt(rounds * logarithm / exploring) / epsilon
    return learning + slots * n_items / exploring * rounds * math.exp(-8 * exploring**2 * rounds)


def printed_bandit(n_items: int, slots: int, rounds: int, epsilon: float, delta: float) -> float:
    """Theorem 8: 32 (sqrt L/epsilon) (k (N log N)^(1/3))^2 T^(2/3). Its tail, below e^-498, is left out.

    Does not follow from Lemma 3 with the stated gamma, which gives k^(5/2): from k = 26 on the first term alone is
    larger (erratum 3). The tail lost a factor k (erratum 18), and the stated gamma is mostly above 1 (erratum 2).
    Exploring costs gamma T, which is more than all of this for epsilon > 5.04 k sqrt L (erratum 21).

    Parameters
    ----------
    n_items, slots, rounds : int
        N, k and T.
    epsilon, delta : float
        What the paper's guarantee is asked for; delta above 0.

    Returns
    -------
    float
        Expected (1 - 1/e)-regret of the run, at most; T or more says nothing.

    Examples
    --------
    >>> from diminuendo.paper import bounds
    >>> bounds.printed_bandit(50, 5, 100_000, epsilon=1.0, delta=1e-6) > 100_000  # says nothing yet
    True
    """
    n_items, rounds, epsilon, logarithm = _asked(n_items, slots, rounds, epsilon, delta)
    return 32 * math.sqrt(logarithm) / epsilon * (slots * math.cbrt(_items(n_items) * rounds)) ** 2


def bandit_at_stated_gamma(n_items: int, slots: int, rounds: int, epsilon: float, delta: float) -> float:
    """What Lemmas 2 and 3 give with the stated gamma, tail left out: of order k^(5/2), not k^2 (erratum 3).

    k^(5/2) (16 N log N)^(2/3) (sqrt L/epsilon) T^(2/3) + k (16 N log N)^(2/3) T^(2/3). Where the stated gamma is
    above 1 there is no such run (erratum 2).

    Parameters
    ----------
    n_items, slots, rounds : int
        N, k and T.
    epsilon, delta : float
        What the paper's guarantee is asked for; delta above 0.

    Returns
    -------
    float
        Expected (1 - 1/e)-regret of the run, at most; T or more says nothing.
    """
    n_items, rounds, epsilon, logarithm = _asked(n_items, slots, rounds, epsilon, delta)
    common = math.cbrt(16 * _items(n_items) * rounds) ** 2
    return (slots**2 * math.sqrt(slots * logarithm) / epsilon + slots) * common


def best_printed_gamma(n_items: int, slots: int, rounds: int, epsilon: float, delta: float) -> float:
    """The gamma at which k times Lemma 3's first term plus gamma T is least; above 1 where T is too short.

    k^2 (8 N log N sqrt L/epsilon)^(2/3) T^(-1/3): in proportion to k^2, with epsilon and delta in it (erratum 3).

    Parameters
    ----------
    n_items, slots, rounds : int
        N, k and T.
    epsilon, delta : float
        What the paper's guarantee is asked for; delta above 0.

    Returns
    -------
    float
        A share of rounds if it is at most 1.
    """
    n_items, rounds, epsilon, logarithm = _asked(n_items, slots, rounds, epsilon, delta)
    return (slots * math.cbrt(8 * _items(n_items) * math.sqrt(logarithm) / epsilon)) ** 2 / math.cbrt(rounds)


def bandit_at_best_gamma(n_items: int, slots: int, rounds: int, epsilon: float, delta: float) -> float:
    """That least value, 3 k^2 (8 N log N)^(2/3) L^(1/3) epsilon^(-2/3) T^(2/3): here k^2 is right (erratum 3).

    Parameters
    ----------
    n_items, slots, rounds : int
        N, k and T.
    epsilon, delta : float
        What the paper's guarantee is asked for; delta above 0.

    Returns
    -------
    float
        Expected (1 - 1/e)-regret of the run, at most; T or more says nothing.
    """
    return 3 * rounds * best_printed_gamma(n_items, slots, rounds, epsilon, delta)


def direct_bandit(n_items: int, slots: int, rounds: int, rate: float, exploring: float) -> float:
    """Appendix B.1, new draws in every round: as `bandit`. What differs is the price of privacy, hence the rate.

    Parameters
    ----------
    n_items, slots, rounds : int
        N, k and T.
    rate : float
        eta, above 0.
    exploring : float
        gamma, in (0, 1].

    Returns
    -------
    float
        Expected (1 - 1/e)-regret of the run, at most; T or more says nothing.
    """
    return bandit(n_items, slots, rounds, rate, exploring)


def printed_direct_bandit(
    n_items: int, slots: int, rounds: int, exploring: float, epsilon: float, delta: float
) -> float:
    """k^4 N sqrt(32 T L)/(epsilon gamma) + epsilon k^2 sqrt T/sqrt(32 L) + gamma T, L for the printed log(k delta).

    As printed the first root is imaginary when k delta < 1. log N is missing, so that the formula is too small for
    log N > k; of k^4 one factor is too many, and k^2 should be 1 (erratum 11).

    Parameters
    ----------
    n_items, slots, rounds : int
        N, k and T.
    exploring : float
        gamma, in (0, 1].
    epsilon, delta : float
        What the paper's guarantee is asked for; delta above 0.

    Returns
    -------
    float
        Expected (1 - 1/e)-regret of the run, at most; T or more says nothing.
    """
    n_items, rounds, epsilon, logarithm = _asked(n_items, slots, rounds, epsilon, delta)
    exploring, root = checked_exploring(exploring), math.sqrt(32 * logarithm)
    learning = slots**4 * n_items * math.sqrt(rounds) * root / (epsilon * exploring)
    return learning + epsilon * slots**2 * math.sqrt(rounds) / root + exploring * rounds


def printed_presampled(
    n_items: int, slots: int, rounds: int, exploring: float, epsilon: float, delta: float
) -> float:
    """8 k^3 N log N (L/epsilon) sqrt(T/gamma) + gamma T.

    L should be sqrt L (erratum 11); the estimate behind it is not the claimed one (erratum 16).

    Parameters
    ----------
    n_items, slots, rounds : int
        N, k and T.
    exploring : float
        gamma, in (0, 1].
    epsilon, delta : float
        What the paper's guarantee is asked for; delta above 0.

    Returns
    -------
    float
        Expected (1 - 1/e)-regret of the run, at most; T or more says nothing.
    """
    n_items, rounds, epsilon, logarithm = _asked(n_items, slots, rounds, epsilon, delta)
    exploring = checked_exploring(exploring)
    learning = 8 * slots**3 * _items(n_items) * logarithm / epsilon * math.sqrt(rounds / exploring)
    return learning + exploring * rounds


def printed_pftal(dimension: int, rounds: int, epsilon: float, *, lipschitz: float, diameter: float) -> float:
    """Theorem 10 with 1 for the constant of its O(): an order of magnitude, not a bound.

    Its own choice of curvature gives epsilon^(-1/2) where 1/epsilon is printed, and Gaussian noise cannot be
    (epsilon, 0)-private (errata 4 and 15). Bounds with constants: docs/maths/continuous.md.

    Parameters
    ----------
    dimension, rounds : int
        n and T.
    epsilon : float
        What the paper's guarantee is asked for.
    lipschitz, diameter : float
        L and the diameter of the domain.

    Returns
    -------
    float
        The printed order of magnitude.
    """
    spread, epsilon = _spread(dimension, rounds), _validate.positive_float(epsilon, "epsilon")
    size = _validate.positive_float(lipschitz, "lipschitz")
    size += math.sqrt(spread / (epsilon * rounds)) * _validate.positive_float(diameter, "diameter")
    return math.sqrt(spread * rounds) * size**2 / epsilon


def printed_continuous(
    dimension: int,
    rounds: int,
    epsilon: float,
    *,
    gradient: float,
    radius: float,
    diameter: float,
    smoothness: float,
) -> float:
    """Lemma 5, the regret of Algorithm 4, with 1 for the constant of its O(): an order of magnitude, not a bound.

    T^(3/4) belongs to the number of copies that Algorithm 4 names; the appendix names another (erratum 5), and
    neither is a good choice (docs/maths/continuous.md).

    Parameters
    ----------
    dimension, rounds : int
        n and T.
    epsilon : float
        What the paper's guarantee is asked for.
    gradient, radius, diameter, smoothness : float
        G, R, the diameter of the domain, and beta.

    Returns
    -------
    float
        The printed order of magnitude.
    """
    n, rounds = _validate.positive_int(dimension, "dimension"), _validate.positive_int(rounds, "rounds")
    sizes = {"gradient": gradient, "radius": radius, "diameter": diameter, "smoothness": smoothness}
    checked = [_validate.positive_float(size, name) for name, size in ({"epsilon": epsilon} | sizes).items()]
    return printed_regret(n, rounds, *checked)


def printed_pure_experts(n_items: int, slots: int, rounds: int, epsilon: float) -> float:
    """Section 3's remark on pure privacy: k^2 sqrt(N T log^2.5 T)/epsilon, with 1 for the constant of its O().

    An order of magnitude, not a bound. Gains are vectors of length up to sqrt N, so Theorem 10 gives N^(3/2) where
    sqrt N is printed (erratum 19), and it has 1/epsilon where its own curvature gives epsilon^(-1/2) (erratum 15).
    What is proved of `fi_pure` is of order k^(3/2) N sqrt(T/epsilon) (docs/maths/paper.md, Theorem P4).

    Parameters
    ----------
    n_items, slots, rounds : int
        N, k and T.
    epsilon : float
        What the paper's guarantee is asked for.

    Returns
    -------
    float
        The printed order of magnitude.
    """
    spread, epsilon = _spread(n_items, rounds), _validate.positive_float(epsilon, "epsilon")
    return _validate.slots(slots, n_items) ** 2 * math.sqrt(spread * rounds) / epsilon


def greedy_from_experts(regrets: Iterable[float]) -> float:
    """Proposition 3: the experts' regrets, negative ones counted as 0, add up to a bound on the (1 - 1/e)-regret.

    The paper does not count negative regrets as 0; without that it is false (erratum 17).

    Parameters
    ----------
    regrets : iterable of float
        Regret of each expert.

    Returns
    -------
    float

    Examples
    --------
    >>> from diminuendo.paper import bounds
    >>> bounds.greedy_from_experts([3.0, -2.0, 1.5])
    4.5
    """
    values = [float(regret) for regret in regrets]
    if any(math.isnan(value) for value in values):
        raise InvalidInput("regrets must be numbers; got NaN.")
    return math.fsum(max(0.0, value) for value in values)


def basic_composition(epsilons: Iterable[float], deltas: Iterable[float]) -> tuple[float, float]:
    """Releases one after the other, each in the light of those before: epsilons add, and deltas add. Rounded up.

    Parameters
    ----------
    epsilons, deltas : iterable of float
        One of each for every release.

    Returns
    -------
    epsilon : float
        The sum, rounded up.
    delta : float
        The sum, rounded up, at most 1.

    Examples
    --------
    >>> from diminuendo.paper import bounds
    >>> bounds.basic_composition([0.5, 0.25], [0.0, 0.0])
    (0.75, 0.0)
    """
    costs = [_validate.positive_float(epsilon, "epsilon") if epsilon != 0 else 0.0 for epsilon in epsilons]
    chances = [_validate.delta(delta) for delta in deltas]
    if len(costs) != len(chances):
        raise InvalidInput(f"Expected a delta for each of {len(costs)} epsilons; got {len(chances)} deltas.")
    total, chance = (rounded_up(sum(map(Fraction, parts), Fraction(0))) for parts in (costs, chances))
    return total, min(1.0, chance)


def advanced_composition(epsilon: float, count: int, slack: float) -> float:
    """Theorem 4: the epsilon of `count` releases, each (epsilon, delta)-private, at count * delta + slack.

    epsilon sqrt(2 count log(1/slack)) + count epsilon (e^epsilon - 1). Printed for slack >= 0; at 0 it says nothing
    (erratum 12).

    Parameters
    ----------
    epsilon : float
        Of each release.
    count : int
        Number of releases.
    slack : float
        Above 0: what is added to delta.

    Returns
    -------
    float
        Rounded up.

    References
    ----------
    Dwork, Rothblum & Vadhan (2010), Boosting and differential privacy, FOCS.

    Examples
    --------
    >>> from diminuendo.paper import bounds
    >>> round(bounds.advanced_composition(0.01, count=1_000, slack=1e-6), 3)
    1.763
    """
    epsilon, count = _validate.positive_float(epsilon, "epsilon"), _validate.positive_int(count, "count")
    return curves.advanced_epsilon(epsilon, count, _positive_delta(slack))


def _asked(
    n_items: int, slots: int, rounds: int, epsilon: float, delta: float
) -> tuple[int, int, float, float]:
    """The arguments checked, and log(k/delta)."""
    n_items, rounds, epsilon = checked_run(n_items, rounds, epsilon, "epsilon")
    return n_items, rounds, epsilon, math.log(_validate.slots(slots, n_items) / _positive_delta(delta))


def _positive_delta(value: float) -> float:
    if _validate.delta(value) == 0:
        raise InvalidInput("This bound needs a delta above 0; got 0. With delta = 0 use basic_composition.")
    return float(value)


def _items(n_items: int) -> float:
    """N log N, where N is the number of items."""
    return n_items * math.log(n_items)


def _spread(dimension: int, rounds: int) -> float:
    """n log^2.5 T, where n is the dimension and T the number of rounds."""
    n = _validate.positive_int(dimension, "dimension")
    return float(n * math.log(_validate.positive_int(rounds, "rounds")) ** 2.5)


__all__ = [
    "LARGEST_RATE",
    "advanced_composition",
    "bandit",
    "bandit_at_best_gamma",
    "bandit_at_stated_gamma",
    "basic_composition",
    "best_printed_gamma",
    "cap_excess",
    "direct_bandit",
    "full_information",
    "greedy_from_experts",
    "hedge",
    "presampled_bandit",
    "printed_bandit",
    "printed_bandit_lemma",
    "printed_continuous",
    "printed_direct_bandit",
    "printed_full_information",
    "printed_hedge",
    "printed_pftal",
    "printed_presampled",
    "printed_pure_experts",
    "theorem_full_information",
]
