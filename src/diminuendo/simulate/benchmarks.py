"""Benchmarks: what hindsight and chance reach on a stream, and the regret of single slots. Not private."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from diminuendo._numba import kernel
from diminuendo.learners import RandomSlates
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.replay import replay
from diminuendo.learners.random_slates import RandomPolicy
from diminuendo.objectives.family import GainBuffer, Table, add, gains, new_gain_buffer, start
from diminuendo.offline import Bracket, Hindsight, SlateRules, greedy, optimum
from diminuendo.randomness import SeededSource
from diminuendo.simulate.contexts import ContextBenchmarks, context_benchmarks
from diminuendo.streams.users import Stream, Users, shown_before
from diminuendo.types import EMPTY_SLOT, Floats, Items

RANDOM_RUNS = 10
"""Random choice is averaged over this many passes through the stream."""


@dataclass(frozen=True)
class Benchmarks:
    """What learners are compared with, per round. For evaluation, not private.

    Attributes
    ----------
    greedy : Hindsight
        Greedy in hindsight.
    optimum : Bracket
        Bounds on the best fixed slate.
    random : float
        Mean reward of random slates.
    contexts : ContextBenchmarks, optional
        What contexts could be worth.

    """

    greedy: Hindsight
    optimum: Bracket
    random: float
    contexts: ContextBenchmarks | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the numbers and slates as plain values."""
        return {
            "greedy": self.greedy.value,
            "optimum_lower": self.optimum.lower,
            "optimum_upper": self.optimum.upper,
            "random": self.random,
            "greedy_slate": list(self.greedy.slate),
            "optimum_slate": list(self.optimum.slate),
        }

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        """Return the benchmarks of a record that `dataclasses.asdict` made, after JSON."""
        parts: list[dict[str, Any]] = [
            {key: tuple(value) if isinstance(value, list) else value for key, value in record[name].items()}
            for name in ("greedy", "optimum")
        ]
        known = record.get("contexts")
        contexts = None if known is None else ContextBenchmarks(**known)
        return cls(Hindsight(**parts[0]), Bracket(**parts[1]), record["random"], contexts)


def benchmarks(
    stream: Stream, slots: int, *, time_limit: float = 20.0, rules: SlateRules | None = None
) -> Benchmarks:
    """Return greedy in hindsight, bounds on the optimum, and what random slates earn on a stream.

    Parameters
    ----------
    stream : Stream
        All users.
    slots : int
        Number of items in a slate.
    time_limit : float, default 20.0
        Seconds for the optimum.
    rules : SlateRules, optional
        What all slates satisfy.

    Returns
    -------
    Benchmarks

    Examples
    --------
    >>> from diminuendo.simulate import benchmarks
    >>> from diminuendo.streams import taste_groups
    >>> found = benchmarks(taste_groups(300, 20, groups=4), slots=3)
    >>> found.random < found.greedy.value <= found.optimum.upper
    True
    """
    chance = [
        stream.values(replay(learner, stream)).mean()
        for learner in _random_learners(stream.n_items, slots, rules)
    ]
    return Benchmarks(
        greedy(stream, slots, rules=rules),
        optimum(stream, slots, time_limit=time_limit, rules=rules),
        float(np.mean(chance)),
        context_benchmarks(stream, slots),
    )


def _random_learners(n_items: int, slots: int, rules: SlateRules | None) -> list[Learner]:
    """Those whose reward, on average, is that of chance."""
    return [
        Learner(RandomPolicy(Frame(RandomSlates.name, n_items, slots, rng=SeededSource(seed)), rules))
        for seed in range(RANDOM_RUNS)
    ]


def expert_regrets(stream: Stream, slates: Items) -> Floats:
    """Return the regret of each slot's expert, per round, of one run over a whole stream.

    Parameters
    ----------
    stream : Stream
        All users.
    slates : ndarray of int, shape (n_users, slots)
        As `replay` returned them.

    Returns
    -------
    ndarray of float, shape (slots,)
        What the slot's best fixed item would have added to the slots before it, minus what was added. The sum of
        the positive ones bounds the (1 - 1/e)-regret of the run (Theorem 2 of docs/maths/hedge.md).

    Examples
    --------
    >>> import numpy as np
    >>> import diminuendo as dim
    >>> from diminuendo.simulate import expert_regrets
    >>> users = dim.Users(dim.NoisyOr(), [[1.0, 0.0], [1.0, 0.0]])
    >>> expert_regrets(users, np.array([[1], [0]])).tolist()  # item 0 would have earned 2 of 2, and 1 was earned
    [0.5]
    """
    slots = slates.shape[1]
    totals, own = np.zeros((slots, stream.n_items)), np.zeros(slots)
    if isinstance(stream, Users):
        buffer = new_gain_buffer(stream.n_items, stream.family.leaves)
        _add_up(stream.table, slates, np.empty(stream.largest_state), buffer, totals, own)
    else:
        for t in range(len(slates)):
            prefix: list[int] = []
            for slot, item in enumerate(slates[t]):
                added = stream[t].gains(prefix)
                totals[slot] += added
                if item != EMPTY_SLOT:
                    own[slot] += added[item]
                    prefix.append(int(item))
    regrets: Floats = (totals.max(axis=1) - own) / max(1, len(slates))
    return regrets


@kernel
def _add_up(
    table: Table, slates: Items, state: Floats, buffer: GainBuffer, totals: Floats, own: Floats
) -> None:
    for t in range(slates.shape[0]):
        start(table, t, state, 0)
        for slot in range(slates.shape[1]):
            for j in range(gains(table, t, state, 0, buffer, 0)):
                item = buffer.items[j]
                if not shown_before(slates[t], slot, item):
                    totals[slot, item] += buffer.gains[j]
                    if item == slates[t, slot]:
                        own[slot] += buffer.gains[j]
            if slates[t, slot] != EMPTY_SLOT:
                add(table, t, state, 0, slates[t, slot])
