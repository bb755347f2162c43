"""The exact law of everything an onlooker sees, for runs so small that all of them can be listed.

A run is a tree: each branch is one way the coins and draws may fall, with its probability and with the totals
that only the algorithm sees. Nothing here calls the package or borrows its formulas. Slow, and obvious.

Users   A user is the tuple of f(S) over all sets S by bit mask (f[0] is f of the empty set, f[0b101] is
         f of items 0 and 2), or None: did not answer. What an expert is told is clipped to [0, 1], and NaN
         counts as 0.
Worst    Neighbours are two streams that differ in one round. A worst case is over all neighbours whose users
         come from given lists, in both orders: exact for those lists, a lower bound for all users.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias

import numpy as np

User: TypeAlias = tuple[float, ...] | None
Stream: TypeAlias = tuple[User, ...]
Law: TypeAlias = dict[Any, float]
"""What is seen (a tuple with one entry per round), and how likely that is."""
Totals: TypeAlias = tuple[tuple[float, ...], ...]
"""totals[expert][item], which nobody sees."""
Resample: TypeAlias = Literal["all", "own", "every"]
Mistake: TypeAlias = Literal[
    "none", "redraw on arrival", "cap counts answers", "exploiting teaches", "one cap"
]


# Runs.


def unit(value: float) -> float:
    """The value clipped to [0, 1]; NaN is 0."""
    return 0.0 if math.isnan(value) else min(1.0, max(0.0, value))


def mask(items: Iterable[int]) -> int:
    """The bit mask of a set of items, of which some may be named twice."""
    return sum(1 << item for item in set(items))


@cache
def softmax(rate: float, totals: tuple[float, ...]) -> tuple[float, ...]:
    """Chances in proportion to exp(rate * total)."""
    weights = [math.exp(rate * (total - max(totals))) for total in totals]
    return tuple(weight / math.fsum(weights) for weight in weights)


def draws(totals: Totals, rate: float, redrawn: Collection[int], slate: Sequence[int]) -> Iterator[Any]:
    """Every slate that may be in force once some experts have drawn anew, with its chance."""
    n = len(totals[0])
    for new in itertools.product(*(range(n) if i in redrawn else (a,) for i, a in enumerate(slate))):
        yield new, math.prod(softmax(rate, totals[i])[new[i]] for i in redrawn)


def taught(totals: Totals, expert: int, item: int, value: float) -> Totals:
    """The totals after one expert has been told of one item's value."""
    row = list(totals[expert])
    row[item] += value
    return (*totals[:expert], tuple(row), *totals[expert + 1 :])


def full_information_law(stream: Stream, n: int, k: int, rate: float) -> Law:
    """The law of the slates when every expert learns the gain of every item.

    Every round, expert i draws item a with probability in proportion to exp(rate * G_i[a]); then G_i[a]
    grows by f(S + a) - f(S), clipped, where S is what the experts before i drew. An outcome is a tuple of
    slates, one per round; a slate names the items in the order of the experts.
    """
    branches: list[tuple[Any, float, Totals]] = [((), 1.0, ((0.0,) * n,) * k)]
    for user in stream:
        grown: list[tuple[Any, float, Totals]] = []
        for seen, chance, before in branches:
            for slate, share in draws(before, rate, range(k), (0,) * k):
                totals = before
                for i, a in itertools.product(range(k), range(n)):
                    if user is not None:
                        gain = user[mask((*slate[:i], a))] - user[mask(slate[:i])]
                        totals = taught(totals, i, a, unit(gain))
                grown.append(((*seen, slate), chance * share, totals))
        branches = grown
    return {seen: chance for seen, chance, _ in branches}


def bandit_law(
    stream: Stream,
    n: int,
    k: int,
    rate: float,
    exploring: float | Sequence[float],
    resample: Resample,
    cap: int | None = None,
    first: tuple[int, ...] | Literal["uniform"] = "uniform",
    mistake: Mistake = "none",
) -> Law:
    """The law of slates and coins when only the value of the set shown is learnt, in exploring rounds.

    Every round tosses a coin that comes up with the chance `exploring` (one number, or one per round) and
    picks an expert i and an item a uniformly. If it came up and the cap is not used up, the round explores:
    it shows what the experts before i hold, and a, and G_i[a] grows by the clipped value of that set.
    Otherwise the round exploits: it shows the slate and teaches nothing.

    resample  Who draws anew for the next round, by softmax(rate * G_i): "all" experts after an exploring
              round; the exploring expert alone, its "own"; or all experts after "every" round.
    cap       How many rounds may explore: in total for "all" and "every", with each expert for "own". The
              coin is tossed regardless; when it picks an expert that is used up, the round exploits.
    first     The slate of the first round: drawn uniformly, or given.
    mistake   What a wrong implementation does: "redraw on arrival" draws anew only if the user answered;
              "cap counts answers" lets unanswered exploring rounds go uncounted; "exploiting teaches" adds
              the clipped value of an exploited slate to G_i[a_i] of every expert; "one cap" replaces the k
              caps of "own" by one on their sum, k * cap.

    Whether someone answered decides nothing but what is learnt: no answer is the value 0. An outcome is a
    tuple of rounds (slate in force, (i, a) if the round explored, else None). A coin that came up but met a
    used-up cap is not told apart from one that did not come up: which it was depends on no user.
    """
    chances = [float(exploring)] * len(stream) if isinstance(exploring, int | float) else list(exploring)
    assert len(chances) == len(stream)
    assert mistake != "one cap" or resample == "own"

    def may_explore(used: tuple[int, ...], expert: int) -> bool:
        if cap is None:
            return True
        if mistake == "one cap":
            return sum(used) < k * cap
        return used[expert] < cap if resample == "own" else sum(used) < cap

    everyone = tuple(range(k))
    start = (everyone, (0,) * k) if first == "uniform" else ((), first)
    # what was seen, its chance, totals, explorations of each expert, who draws anew, the slate in force
    branches: list[tuple[Any, ...]] = [((), 1.0, ((0.0,) * n,) * k, (0,) * k, *start)]
    for user, coin in zip(stream, chances, strict=True):
        grown: list[tuple[Any, ...]] = []
        for seen, chance, totals, used, redrawn, held in branches:
            for slate, share in draws(totals, rate, redrawn, held):
                here = chance * share
                able = [i for i in everyone if may_explore(used, i)] if coin > 0 else []
                answers = user is not None
                for i, a in itertools.product(able, range(n)):
                    value = unit(user[mask((*slate[:i], a))]) if user is not None else 0.0
                    counts = answers or mistake != "cap counts answers"
                    spent = tuple(u + (counts and j == i) for j, u in enumerate(used))
                    redraws = (i,) if resample == "own" else everyone
                    if mistake == "redraw on arrival" and not answers:
                        redraws = ()
                    view = (*seen, (slate, (i, a)))
                    told = taught(totals, i, a, value)
                    grown.append((view, here * coin / (k * n), told, spent, redraws, slate))
                exploits = 1 - coin * len(able) / k
                if exploits > 0:
                    told = totals
                    for i in everyone if mistake == "exploiting teaches" else ():
                        told = taught(told, i, slate[i], unit(user[mask(slate)]) if user is not None else 0.0)
                    redraws = everyone if resample == "every" else ()
                    grown.append(((*seen, (slate, None)), here * exploits, told, used, redraws, slate))
        branches = grown
    return {branch[0]: branch[1] for branch in branches}


def presampled_law(
    stream: Stream, n: int, k: int, rate: float, schedule: Collection[int], resample: Resample, **options: Any
) -> Law:
    """The law of a bandit run whose exploring rounds were fixed beforehand: `schedule` counts from 0."""
    chances = [float(t in schedule) for t in range(len(stream))]
    return bandit_law(stream, n, k, rate, chances, resample, **options)


# Worst cases.


def all_users(n: int, values: Sequence[float] = (0.0, 1.0), largest: int | None = None) -> list[User]:
    """Everyone whose f is 0 at the empty set and takes the given values at sets of at most `largest` items.

    Larger sets have the value 0; no run with k experts asks for sets of more than k items.
    """
    asked = [s for s in range(1, 2**n) if s.bit_count() <= (n if largest is None else largest)]
    users: list[User] = []
    for chosen in itertools.product(values, repeat=len(asked)):
        table = dict(zip(asked, chosen, strict=True))
        users.append(tuple(table.get(s, 0.0) for s in range(2**n)))
    return users


def covering_users(n: int) -> list[User]:
    """Everyone who is pleased by a set that has one of the items they like: monotone and submodular."""
    return [tuple(float(s & likes != 0) for s in range(2**n)) for likes in range(2**n)]


def neighbours(choices: Sequence[Sequence[User]]) -> Iterator[tuple[Stream, Stream]]:
    """All ordered pairs of streams that differ in one round; round t's user is one of choices[t]."""
    for stream in itertools.product(*choices):
        for t, users in enumerate(choices):
            for other in users:
                if other != stream[t]:
                    yield stream, (*stream[:t], other, *stream[t + 1 :])


def delta(p: Law, q: Law, epsilon: float) -> float:
    """The least delta with P(E) <= exp(epsilon) Q(E) + delta for every event E."""
    return math.fsum(max(0.0, x - math.exp(epsilon) * q.get(seen, 0.0)) for seen, x in p.items())


def renyi(p: Law, q: Law, order: float) -> float:
    """The Renyi divergence of P from Q; at order 1 Kullback-Leibler's, at infinity the largest log P/Q."""
    logs = [
        (x, math.log(x / q[seen]) if q.get(seen, 0.0) > 0 else math.inf) for seen, x in p.items() if x > 0
    ]
    if any(ratio == math.inf for _, ratio in logs) or order == math.inf:
        return max(ratio for _, ratio in logs)
    if order == 1:
        return math.fsum(x * ratio for x, ratio in logs)
    return math.log(math.fsum(x * math.exp((order - 1) * ratio) for x, ratio in logs)) / (order - 1)


@dataclass(frozen=True)
class Worst:
    """The largest over all neighbours: delta by epsilon, Renyi divergence by order, and log P/Q."""

    delta: Mapping[float, float]
    divergence: Mapping[float, float]
    epsilon: float

    def ratio(self, rho: float) -> float:
        """The largest D_order / (order * rho): rho-zCDP says at most 1."""
        return max(divergence / (order * rho) for order, divergence in self.divergence.items())


ORDERS = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 8.0, 16.0, 32.0)


def worst(
    law: Callable[[Stream], Law],
    choices: Sequence[Sequence[User]],
    epsilons: Sequence[float],
    orders: Sequence[float] = ORDERS,
) -> Worst:
    """Try all neighbours; infinite where something is possible in one run and not in the other.

    To leave out a round that is known not to matter, give it one choice: it stays, and is not replaced.
    """
    laws = {stream: law(stream) for stream in itertools.product(*choices)}
    places = {seen: j for j, seen in enumerate(dict.fromkeys(seen for x in laws.values() for seen in x))}
    rows: dict[Stream, Any] = {}
    for stream, x in laws.items():
        rows[stream] = np.zeros(len(places))
        rows[stream][[places[seen] for seen in x]] = list(x.values())
    laws.clear()
    deltas, divergences, pure = dict.fromkeys(epsilons, 0.0), dict.fromkeys(orders, 0.0), 0.0
    with np.errstate(divide="ignore", over="ignore"):
        for one, other in neighbours(choices):
            p, q = rows[one], rows[other]
            for epsilon in epsilons:
                excess = float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())
                deltas[epsilon] = max(deltas[epsilon], excess)
            possible = p > 0
            logs = np.log(p[possible]) - np.log(q[possible])
            pure = max(pure, float(logs.max()))
            for order in orders:
                if logs.max() == math.inf:
                    value = math.inf
                elif order == 1:
                    value = float(p[possible] @ logs)
                else:
                    value = math.log(float(p[possible] @ np.exp((order - 1) * logs))) / (order - 1)
                divergences[order] = max(divergences[order], value)
    return Worst(delta=deltas, divergence=divergences, epsilon=pure)
