"""What is proved of the regret of ordered Hedge experts, as functions.

Each bounds the expected (1 - 1/e)-regret of a whole run of T rounds, rewards in [0, 1], against users who do not react
to what is shown to others. A value of T or more says nothing.

Notation   N items, k slots, T rounds, rate = eta, exploring = gamma.
Proofs     docs/maths/paper.md, Theorem P3, for fixed rates; docs/maths/hedge.md for experts that find their own.
"""

from __future__ import annotations

import math

import scipy

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.learners.hedge.constants import bandit_bound

LARGEST_RATE = 1.7932821329007607
"""The largest y with e^y <= 1 + y + y^2, rounded down. Up to it the first-order bound of Hedge holds (erratum 13)."""


def full_information(n_items: int, slots: int, rounds: int, rate: float) -> float:
    """Algorithm 2: eta T + k log N/eta, for rates up to LARGEST_RATE; beyond, k (eta T/8 + log N/eta).

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

    Examples
    --------
    >>> from diminuendo.paper import bounds
    >>> round(bounds.full_information(n_items=50, slots=5, rounds=100_000, rate=0.01))
    2956
    """
    n_items, rounds, rate = checked_run(n_items, rounds, rate)
    slots = _validate.slots(slots, n_items)
    share = 1.0 if rate <= LARGEST_RATE else slots / 8
    return share * rate * rounds + slots * math.log(n_items) / rate


def bandit(
    n_items: int, slots: int, rounds: int, rate: float, exploring: float, *, extra: float = 0.0
) -> float:
    """Algorithm 3: k eta T + k^2 N log N/(gamma eta) + gamma T + extra, for rates up to LARGEST_RATE.

    Beyond that rate the first term is k N eta T/8. The bound is the same whether all experts draw again after an
    exploring round or only the one that learned; what is earned is not. `extra`: what a cap may add, see
    `cap_excess`.

    Parameters
    ----------
    n_items, slots, rounds : int
        N, k and T.
    rate : float
        eta, above 0.
    exploring : float
        gamma, in (0, 1].
    extra : float, default 0.0
        What a cap may add, see `cap_excess`.

    Returns
    -------
    float
        Expected (1 - 1/e)-regret of the run, at most; T or more says nothing.

    Examples
    --------
    >>> from diminuendo.paper import bounds
    >>> round(bounds.bandit(50, 5, 10_000_000, rate=0.01, exploring=0.1))
    6390029
    """
    n_items, rounds, rate = checked_run(n_items, rounds, rate)
    slots, exploring = _validate.slots(slots, n_items), checked_exploring(exploring)
    if extra != 0:
        extra = _validate.positive_float(extra, "extra")
    more = 0.0 if rate <= LARGEST_RATE else (n_items / 8 - 1) * slots * rate * rounds
    return bandit_bound(n_items, slots, rounds, rate, exploring) + more + extra


def cap_excess(rounds: int, exploring: float, cap: int) -> float:
    """T Pr(Bin(T, gamma) > cap): what stopping to explore at `cap` explorations can add to the regret.

    For caps of single experts ask with gamma/k, and add it up over the k experts.

    Parameters
    ----------
    rounds : int
        T.
    exploring : float
        gamma, in (0, 1].
    cap : int
        Maximum number of explorations.

    Returns
    -------
    float
        Theorem P3, c, of docs/maths/paper.md.
    """
    rounds, exploring = _validate.positive_int(rounds, "rounds"), checked_exploring(exploring)
    cap = _validate.whole(cap, 0, None, "cap")
    return rounds * float(scipy.special.betainc(cap + 1, rounds - cap, exploring)) if cap < rounds else 0.0


def presampled_bandit(n_items: int, slots: int, rounds: int, rate: float, explorations: int) -> float:
    """Appendix B.2, given that M exploring rounds were drawn beforehand: `bandit` at gamma = M/T, and a little more.

    The rate depends on M, and given M the chance that the next round explores depends on the past. That adds at
    most k (pi/2) sqrt(T/M - 1) T/sqrt(T - 1) (erratum 16).

    Parameters
    ----------
    n_items, slots, rounds : int
        N, k and T.
    rate : float
        eta, above 0.
    explorations : int
        M, from 1 to T.

    Returns
    -------
    float
        Expected (1 - 1/e)-regret of the run, at most; T or more says nothing.
    """
    rounds = _validate.positive_int(rounds, "rounds")
    explorations = _validate.whole(explorations, 1, rounds, "explorations")
    plain = bandit(n_items, slots, rounds, rate, explorations / rounds)
    drift = math.sqrt((rounds / explorations - 1) / max(1, rounds - 1)) * rounds
    return plain + slots * math.pi / 2 * drift


def own_rates(n_items: int, slots: int, rounds: int) -> float:
    """Full information, each expert at the rate that it finds: docs/maths/hedge.md, Theorems 1 and 2, as L <= T."""
    logarithm = math.log(max(2, n_items))
    return slots * (2.86 * math.sqrt(logarithm * (1 + rounds)) + 1.5 * logarithm)


def own_rates_bandit(n_items: int, slots: int, rounds: int, exploring: float) -> float:
    """Bandit feedback, each expert at the rate that it finds: docs/maths/hedge.md, Theorem 3."""
    logarithm = math.log(max(2, n_items))
    seen = 1 + math.log(n_items + 1) + 1.72 * exploring * rounds / (slots * n_items)
    expert = 2.86 * math.sqrt(logarithm * seen) + 1.5 * logarithm
    return exploring * rounds + slots * slots * n_items / exploring * expert


def checked_run(n_items: int, rounds: int, number: float, name: str = "rate") -> tuple[int, int, float]:
    """Items, rounds and a rate, or another number of that name, or an error."""
    n_items, rounds = _validate.positive_int(n_items, "n_items"), _validate.positive_int(rounds, "rounds")
    return n_items, rounds, _validate.positive_float(number, name)


def checked_exploring(value: float) -> float:
    """A share of exploring rounds that is above 0, or an error."""
    if _validate.positive_float(value, "exploring") > 1:
        raise InvalidInput(f"exploring is a chance, above 0 and at most 1; got {value!r}.")
    return float(value)
