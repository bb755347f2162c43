"""Benchmarks: what hindsight and chance reach on a stream, and the regret of single slots. Not private.

Everything here looks at what people wanted, for evaluation. Values are means per round.
"""

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
from diminuendo.randomness import SeededCoins
from diminuendo.simulate.contexts import ContextBenchmarks, context_benchmarks
from diminuendo.streams.people import People, Stream, shown_before
from diminuendo.types import EMPTY_SLOT, Floats, Items

RANDOM_RUNS = 10
"""Random choice is averaged over this many passes through the stream."""


@dataclass(frozen=True)
class Benchmarks:
    """What learners are measured against."""

    greedy: Hindsight
    optimum: Bracket
    random: float
    contexts: ContextBenchmarks | None = None
    """What contexts could be worth; None where nothing is known of people."""

    def as_json(self) -> dict[str, Any]:
        """The numbers, and the slates behind them."""
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
        """What `dataclasses.asdict` made of it, read back from JSON."""
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
    """Hindsight greedy, bounds on the optimum and random choice, all by the rules; and what contexts could be worth."""
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
    """Those whose payoff, on average, is that of chance."""
    return [
        Learner(RandomPolicy(Frame(RandomSlates.name, n_items, slots, coins=SeededCoins(seed)), rules))
        for seed in range(RANDOM_RUNS)
    ]


def expert_regrets(stream: Stream, slates: Items) -> Floats:
    """For each slot: what its best fixed item would have added to the slots before it, minus what was added, per round.

    The sum of those above 0 bounds the (1 - 1/e)-regret of the run (docs/maths/hedge.md, Theorem 2).
    """
    slots = slates.shape[1]
    totals, own = np.zeros((slots, stream.n_items)), np.zeros(slots)
    if isinstance(stream, People):
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
