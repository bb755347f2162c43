"""Recorded objectives: any objective, recorded along one chain of items, so that compiled code can read it.

Learners walk each user along the slate that was shown. For an objective that is only a Python
function, its values and gains along that slate are recorded first; kernels then read the record like
any other table. A record answers for the recorded chain alone, added in order.

State: how many items of the chain have been added.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from diminuendo._validate import as_float, as_floats
from diminuendo.errors import InvalidInput
from diminuendo.objectives.family import GainBuffer, Kernels, register
from diminuendo.types import Floats, Objective, Slate


class RecordedTable(NamedTuple):
    """values[d] and gains[d] belong to the first d items of the chain."""

    values: Floats
    gains: Floats


def record(objective: Objective, chain: Slate) -> RecordedTable:
    """Ask `objective` for its values and gains along `chain`."""
    values = np.array([as_float(objective.value(chain[:depth])) for depth in range(len(chain) + 1)])
    gains = np.zeros((len(chain) + 1, objective.n_items))
    for depth in range(len(chain) + 1):
        row = as_floats(objective.gains(chain[:depth]))
        if row.shape != (objective.n_items,):
            raise InvalidInput(
                f"gains() must return one number per item, {objective.n_items}; got shape {row.shape}."
            )
        gains[depth] = row
    values.flags.writeable = gains.flags.writeable = False
    return RecordedTable(values, gains)


def _value(table: RecordedTable, user: int, state: Floats, at: int) -> float:
    return float(table.values[int(state[at])])


def _gain(table: RecordedTable, user: int, state: Floats, at: int, item: int) -> float:
    return float(table.gains[int(state[at]), item])


def _gains(table: RecordedTable, user: int, state: Floats, at: int, buffer: GainBuffer, count: int) -> int:
    depth = int(state[at])
    for item in range(table.gains.shape[1]):
        if table.gains[depth, item] != 0.0:
            buffer.items[count] = item
            buffer.gains[count] = table.gains[depth, item]
            count += 1
    return count


def _add(table: RecordedTable, user: int, state: Floats, at: int, item: int) -> None:
    state[at] += 1.0


def _ceiling(table: RecordedTable, user: int, x: Floats, scale: float, slope: Floats) -> float:
    return np.inf  # a record knows only its chain; this ceiling says nothing


register(RecordedTable, Kernels(_value, _gain, _gains, _add, _ceiling))
