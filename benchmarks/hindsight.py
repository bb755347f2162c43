"""How long the best slate in hindsight takes, with a proof that it is the best."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import diminuendo
from benchmarks.report import Disagreement, Part
from benchmarks.stopwatch import Competitor, race
from diminuendo import optimum

SLOTS = (5, 10)
LAPS = 5


def hindsight() -> Iterator[Part]:
    """Seconds, value, and whether it is proven."""
    people = diminuendo.msweb()
    results = race([Competitor(f"k={k}", lambda _: people, partial(optimum, slots=k)) for k in SLOTS], LAPS)
    part = Part(
        "hindsight",
        f"The best slate in hindsight: {len(people):,} people, {people.n_items} items (msweb)",
        ["slots", "seconds", "value", "upper bound - value", "proven", "method", "laps"],
    )
    for slots in SLOTS:
        result = results[f"k={slots}"]
        found = result.answers[0]
        value = float(people.values(found.slate).mean())
        if abs(value - found.lower) > 1e-9 or found.upper < found.lower:
            raise Disagreement(f"k={slots}: {found} but the slate is worth {value}.")
        part.rows.append(
            [
                slots,
                result.run,
                found.lower,
                found.upper - found.lower,
                found.proven,
                found.method,
                result.laps,
            ]
        )
    yield part
