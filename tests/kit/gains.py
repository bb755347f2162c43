"""What items add for each of many people after a growing slate, asked one by one: the oracle of compiled walks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diminuendo.objectives.person import Person
from diminuendo.streams.walks import Segment
from diminuendo.types import Floats


def gains_after(n_items: int, segments: Sequence[Segment], chain: Sequence[int]) -> Floats:
    """(people, items): gains after `chain`, 0 for items that are in it."""
    rows: list[Floats] = []
    for part in segments:
        if part.function is not None:
            rows.append(np.asarray(part.function(tuple(chain)), dtype=np.float64))
        else:
            assert part.family is not None
            people = (Person(part.family, n_items, part.table, int(row)) for row in part.rows)
            rows += [person.gains(chain) for person in people]
    result = np.array(rows).reshape(-1, n_items)
    result[:, list(chain)] = 0.0
    return result
