"""Benchmarks: what hindsight and chance reach on a stream. Per-round means, not private."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from diminuendo.learners import RandomSlates, replay
from diminuendo.offline import Bracket, Hindsight, greedy, optimum
from diminuendo.randomness import SeededCoins
from diminuendo.streams.people import Stream

RANDOM_RUNS = 10
"""Random choice is averaged over this many passes through the stream."""


@dataclass(frozen=True)
class Benchmarks:
    """What learners are measured against."""

    greedy: Hindsight
    optimum: Bracket
    random: float

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
        parts: dict[str, dict[str, Any]] = {
            name: {
                key: tuple(value) if isinstance(value, list) else value for key, value in record[name].items()
            }
            for name in ("greedy", "optimum")
        }
        return cls(Hindsight(**parts["greedy"]), Bracket(**parts["optimum"]), record["random"])


def benchmarks(stream: Stream, slots: int, *, time_limit: float = 20.0) -> Benchmarks:
    """Hindsight greedy, bounds on the optimum, and random choice."""
    chance = [
        stream.values(replay(RandomSlates(stream.n_items, slots, coins=SeededCoins(seed)), stream)).mean()
        for seed in range(RANDOM_RUNS)
    ]
    return Benchmarks(
        greedy(stream, slots), optimum(stream, slots, time_limit=time_limit), float(np.mean(chance))
    )
