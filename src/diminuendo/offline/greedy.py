"""Greedy in hindsight: add the item that helps most, k times. At least 1 - 1/e of the best possible.

Fewer evaluations than of every item for every user in every step suffice: of users, only those whom the last item
moved; of functions, only items whose earlier gain, which can only have fallen, could still win. Ties go to the smaller
item. `data_bound` bounds what any slate can earn.

With rules (rules.py) the next item is the best that they leave; fitting.py has the approximation factors.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from diminuendo import _validate
from diminuendo.offline.fitting import FittedRules
from diminuendo.offline.rules import SlateRules, as_rules
from diminuendo.offline.total import Total, UsersTotal, total
from diminuendo.streams.users import Stream
from diminuendo.types import EMPTY_SLOT, Floats, Items, Slate


@dataclass(frozen=True)
class Hindsight:
    """A slate chosen with all users known.

    Attributes
    ----------
    slate : tuple of int
        The items.
    value : float
        Mean over users of f_t(slate).
    gains : tuple of float
        What each item added, per user, in the order in which items were chosen.

    """

    slate: Slate
    value: float
    gains: tuple[float, ...]


def greedy(stream: Stream, slots: int, *, rules: SlateRules | None = None) -> Hindsight:
    """Return the greedy slate in hindsight: k times the item that adds most. Not private.

    Parameters
    ----------
    stream : Stream
        All users.
    slots : int
        Number of items to choose, k.
    rules : SlateRules, optional
        What the slate must satisfy. The slate is then in the order of slots, without empty ones, and gains are in
        the order of choice, pinned items first.

    Returns
    -------
    Hindsight

    Raises
    ------
    InvalidInput
        If `slots` is out of range, or rules cannot be satisfied.

    Notes
    -----
    At least 1 - 1/e of the best possible value; with rules at least 1/2, or 1/3 with both caps and eligible slots
    (Lemma Y2 of docs/maths/rules.md). Ties go to the smaller item.

    References
    ----------
    Nemhauser, Wolsey & Fisher (1978), An analysis of approximations for maximizing submodular set functions,
    Mathematical Programming 14. Minoux (1978), Accelerated greedy algorithms, for the order of evaluations.

    Examples
    --------
    >>> import diminuendo as dim
    >>> best = dim.greedy(dim.msweb(), slots=3)
    >>> best.slate, round(best.value, 3)
    ((8, 4, 34), 0.627)
    """
    k = _validate.slots(slots, stream.n_items)
    summed, kept_to = total(stream), as_rules(rules)
    if kept_to is not None:
        return _by_rules(summed, FittedRules(kept_to, stream.n_items, k))
    added = _moving(summed, k) if isinstance(summed, UsersTotal) else _lazy(summed, k)
    users = max(1, len(stream))
    return Hindsight(tuple(summed.prefix), summed.value() / users, tuple(gain / users for gain in added))


def _by_rules(summed: Total, rules: FittedRules) -> Hindsight:
    """Evaluate every item for every user in every step."""
    slate: Items = np.full(rules.slots, EMPTY_SLOT, dtype=np.int32)
    everything, added = np.ones(rules.n_items, dtype=np.bool_), list[float]()
    while picked := rules.pick(gains := summed.gains(), slate, everything):
        slot, slate[slot] = picked
        summed.add(picked[1])
        added.append(float(gains[picked[1]]))
    users = max(1, len(summed.stream))
    shown = tuple(slate[slate != EMPTY_SLOT].tolist())
    return Hindsight(shown, summed.value() / users, tuple(gain / users for gain in added))


def data_bound(stream: Stream, chain: Slate, slots: int) -> float:
    """Return an upper bound on the best mean value of any slate, from the data instead of from 1 - 1/e.

    Parameters
    ----------
    stream : Stream
        All users, with monotone submodular objectives.
    chain : tuple of int
        Any slate, in order; greedy's gives good bounds.
    slots : int
        Number of items of the slates that are bounded.

    Returns
    -------
    float
        The smallest of the bounds F(S) plus the `slots` largest gains given S, over prefixes S of the chain.

    Notes
    -----
    Theorem 1 of docs/maths/hindsight.md.

    Examples
    --------
    >>> import diminuendo as dim
    >>> users = dim.msweb()
    >>> round(dim.data_bound(users, dim.greedy(users, 3).slate, 3), 3)  # greedy has 0.649
    0.755
    """
    summed = total(stream)
    best = top_sum(summed.gains(), slots)
    for item in chain:
        summed.add(item)
        best = min(best, summed.value() + top_sum(summed.gains(), slots))
    return best / max(1, len(stream))


def top_sum(gains: Floats, count: int) -> float:
    """The sum of the `count` largest entries."""
    if count >= len(gains):
        return float(gains.sum())
    return float(np.partition(gains, len(gains) - count)[len(gains) - count :].sum())


# Each of these makes the greedy slate the prefix of the sum, and returns what each item added.


def _moving(summed: UsersTotal, k: int) -> list[float]:
    """Gains that go along with the prefix are nearly right; where that leaves a doubt, all are evaluated anew."""
    added: list[float] = []
    gains = summed.gains()
    nearly = 8 * 2.0**-53 * len(summed.stream) * (1.0 + gains.max())
    for step in range(k):
        # A gain is a sum of numbers up to 1, from which each step takes at most one per user and to which it gives
        # one. Each time a rounding is lost, of a sum that stays below the largest first gain, and each user's own
        # number may be off by a few of its last digits.
        off = nearly * (1 + step)
        if step and np.count_nonzero(gains >= gains.max() - 2 * off) > 1:
            gains = summed.gains()
            gains[summed.prefix] = -np.inf
        best = int(np.argmax(gains))
        added.append(summed.move(best, gains))
        gains[best] = -np.inf
    return added


def _lazy(summed: Total, k: int) -> list[float]:
    added: list[float] = []
    queue = [(-gain, item) for item, gain in enumerate(summed.gains())]
    heapq.heapify(queue)
    asked_at = dict.fromkeys(range(summed.n_items), 0)  # the prefix length at which a gain was measured
    while len(added) < k:
        negated, item = heapq.heappop(queue)
        if asked_at[item] < len(added):
            asked_at[item] = len(added)
            heapq.heappush(queue, (-summed.gain(item), item))
            continue
        added.append(-negated)
        summed.add(item)
    return added
