"""Adding people to a private sum: ours against the bare additions.

Ours reads anybody's numbers and makes whole numbers of bounded norm out of them before it adds (clip.py). The floor
gets those whole numbers, and only adds. What is between the two is the price of trusting nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from benchmarks.flat import uniform_people
from benchmarks.report import Disagreement, Part
from benchmarks.stopwatch import Competitor, race
from diminuendo._numba import inline
from diminuendo.objectives.rows import Matrix
from diminuendo.sums.batch import OpenBatch
from diminuendo.sums.clip import Clip, Rule, clip_row
from diminuendo.sums.schedule import equal
from diminuendo.types import Floats, Ints

SIZES = (1_000, 10_000, 100_000)
NNZ = (10, 50)
N_PEOPLE, N_SINGLE = 100_000, 500
LAPS = 5

OURS, CALLS, FLOOR = "add_rows", "add", "floor"


def contributions() -> Iterator[Part]:
    """Microseconds per person, all together and one by one."""
    part = Part(
        "add",
        f"Adding {N_PEOPLE:,} people to a private sum, us per person",
        ["entries", "size", "add_rows", "floor", "add_rows / floor", "ns per entry", "single add", "laps"],
    )
    for nnz, size in product(NNZ, SIZES):
        matrix = uniform_people(N_PEOPLE, size, nnz).matrices[0]
        work = clipped(matrix, Clip())
        results = race(list(_competitors(matrix, work, size)), LAPS, fewest=LAPS)
        agreed(results[OURS].answers, results[FLOOR].answers)
        ours, floor = (1e6 * results[who].run / N_PEOPLE for who in (OURS, FLOOR))
        single = 1e6 * results[CALLS].run / N_SINGLE
        part.rows.append([nnz, size, ours, floor, ours / floor, 1e3 * ours / nnz, single, LAPS])
        part.numbers[f"add_rows / floor, {nnz} entries, size {size}"] = ours / floor
    part.notes += [
        "floor: adds the same numbers, clipped beforehand, in compiled code; both reach the same totals.",
        f"single add: a call from Python for each of {N_SINGLE:,} people.",
    ]
    yield part


class Clipped(NamedTuple):
    """What people come to: amounts[j] at columns[j], person after person."""

    columns: Ints
    amounts: Ints


def clipped(matrix: Matrix, clip: Clip) -> Clipped:
    """Every row of a matrix, clipped."""
    amounts = np.zeros(len(matrix.data), dtype=np.int64)
    _clip_all(clip.rule, matrix.indptr.astype(np.int64), matrix.data, amounts, np.zeros_like(amounts))
    return Clipped(matrix.indices.astype(np.int64), amounts)


def scatter(work: Clipped, totals: Ints) -> Ints:
    """Add it all up, and nothing else."""
    _scatter(work.columns, work.amounts, totals)
    return totals


def agreed(ours: list[Ints], floor: list[Ints]) -> None:
    """Everybody reached the same totals in every lap."""
    for found in [*ours, *floor]:
        if not np.array_equal(found, ours[0]):
            raise Disagreement("The sums of add_rows and of the floor differ.")


def _competitors(matrix: Matrix, work: Clipped, size: int) -> Iterator[Competitor]:
    def fresh(_: int) -> OpenBatch:
        return OpenBatch(size, Clip(), equal(rounds=N_PEOPLE, batches=1))

    def together(made: OpenBatch) -> Ints:
        made.add_rows(matrix)
        return made._cells.entries()

    rows = [(row.data, row.indices) for row in matrix[:N_SINGLE]]

    def one_by_one(made: OpenBatch) -> None:
        for values, indices in rows:
            made.add(values, indices)

    def zeros(_: int) -> Ints:
        totals = np.empty(size, dtype=np.int64)
        totals.fill(0)  # so that no lap waits for the system's pages
        return totals

    yield Competitor(OURS, fresh, together)
    yield Competitor(FLOOR, zeros, lambda totals: scatter(work, totals))
    yield Competitor(CALLS, fresh, one_by_one)


@inline  # as the package compiles its own, but not kept on disk
def _clip_all(rule: Rule, starts: Ints, values: Floats, amounts: Ints, scratch: Ints) -> None:
    for row in range(len(starts) - 1):
        low, high = starts[row], starts[row + 1]
        clip_row(rule, values, low, high, scratch)
        for j in range(low, high):
            amounts[j] = scratch[j - low]


@inline
def _scatter(columns: Ints, amounts: Ints, totals: Ints) -> None:
    for j in range(len(columns)):
        totals[columns[j]] += amounts[j]
