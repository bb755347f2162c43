"""What items add for each of many users after a growing slate, asked one by one: the oracle of compiled walks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diminuendo.objectives.user import User
from diminuendo.streams.walks import Segment
from diminuendo.types import Floats


def gains_after(n_items: int, segments: Sequence[Segment], chain: Sequence[int]) -> Floats:
    """(users, items): gains after `chain`, 0 for items that are in it."""
    rows: list[Floats] = []
    for part in segments:
        if part.function is not None:
            rows.append(np.asarray(part.function(tuple(chain)), dtype=np.float64))
        else:
            assert part.family is not None
            users = (User(part.family, n_items, part.table, int(row)) for row in part.rows)
            rows += [user.gains(chain) for user in users]
    result = np.array(rows).reshape(-1, n_items)
    result[:, list(chain)] = 0.0
    return result
