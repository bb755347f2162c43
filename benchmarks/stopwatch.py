"""How things are timed: everybody takes turns, and the best of several laps counts.

Other work on the machine only ever makes a lap slower, so the fastest lap is the one nearest to the
truth. Competitors take turns within every round, so that a slow minute is a slow minute for all of
them. Whatever compiles itself on first use does so in a lap that is not counted.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

LAPS = 15
"""Counted laps of a competitor ..."""

FEWEST_LAPS = 3
"""... but only this many, once its laps have taken longer than PATIENCE altogether."""

PATIENCE = 4.0
"""Seconds. What takes long varies little, so a few laps will do."""


@dataclass(frozen=True)
class Competitor:
    """`prepare` makes from the lap's number what `run` needs; the two are timed apart."""

    name: str
    prepare: Callable[[int], Any]
    run: Callable[[Any], Any]


@dataclass
class Result:
    """What a competitor needed at best, and what it answered in each lap."""

    name: str
    prepared: float = math.inf
    """Seconds for preparation and run together, in the best lap."""
    run: float = math.inf
    """Seconds for the run alone, in the best lap."""
    laps: int = 0
    answers: list[Any] = field(default_factory=list)
    """One per counted lap."""


def race(competitors: Sequence[Competitor], laps: int = LAPS, fewest: int = FEWEST_LAPS) -> dict[str, Result]:
    """Let them all run in turns; the results by name."""
    results = {competitor.name: Result(competitor.name) for competitor in competitors}
    spent = dict.fromkeys(results, 0.0)
    for competitor in competitors:
        competitor.run(competitor.prepare(-1))  # the warm-up
    for lap in range(laps):
        for competitor in competitors:
            result = results[competitor.name]
            if lap >= fewest and spent[competitor.name] > PATIENCE:
                continue
            prepared, run, answer = _lap(competitor, lap)
            spent[competitor.name] += prepared
            result.prepared = min(result.prepared, prepared)
            result.run = min(result.run, run)
            result.laps += 1
            result.answers.append(answer)
    return results


def _lap(competitor: Competitor, lap: int) -> tuple[float, float, Any]:
    gc.collect()
    gc.disable()
    try:
        began = time.perf_counter()
        ready = competitor.prepare(lap)
        started = time.perf_counter()
        answer = competitor.run(ready)
        ended = time.perf_counter()
    finally:
        gc.enable()
    return ended - began, ended - started, answer
