"""Whole replays of a learner that keeps people: where the time goes, and whether a person costs the same in any crowd.

    python -m benchmarks.whole_replay                              # 100,000 and a million people, 1,000 items
    python -m benchmarks.whole_replay --people 100000,1000000,10000000 --items 1000,100000

People want 20 things each and come in pieces, which are made up on the way and not timed. All times are of the
processor. A release draws noise for every item and every question, whoever comes, and works out what is believed of
every item: that is the same for few people and for many, and it is shown beside what people cost. The floor is what has
to be done in any case: that noise, drawn once more by itself, and one bare pass over everything that the people of each
release want, in which each value is added to the sum of its item.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import scipy
from numba import njit
from rich.console import Console

from benchmarks.report import Part, verdict
from diminuendo import NoisyOr, OverlapGreedy, People, SeededCoins
from diminuendo.learners.base.users import UserStore
from diminuendo.learners.overlap.participants import StoredParticipants
from diminuendo.randomness import SecretRandomness, rounded_normal
from diminuendo.types import Floats, Ints

WANTS, SLOTS, PIECE = 20, 10, 100_000
FLAT = 1.5
"""A person of the smallest crowd costs at most so many times what one of the largest does."""
COLUMNS = (
    "people", "whole", "noise", "beliefs and the rest", "kept and asked", "floor: noise", "floor: passes", "peak, MB"
)  # fmt: skip
CLAIMS = {"whole": "A person costs", "people": "To keep and ask, a person costs"}
LAPS, FEW = 3, 1_000_000
"""Of crowds below FEW, the best of several laps."""
WARM = 30_000
"""People of a replay that is not timed, so that all kernels are loaded."""


class Spent(NamedTuple):
    """Seconds of the processor for one replay, and what they went into."""

    whole: float
    noise: float
    people: float
    """Keeping and asking people."""
    draws: int
    asked: int
    """People who were asked, over all releases."""
    peak: int
    """Bytes that the process had at most so far."""


def people_in_pieces(people: int, items: int) -> Iterator[People]:
    """Some after the others, with tastes spread out."""
    rng = np.random.default_rng(1)
    for first in range(0, people, PIECE):
        many = min(PIECE, people - first)
        start = rng.integers(0, items, (many, 1))
        steps = rng.integers(1, max(2, items // WANTS), (many, WANTS)).cumsum(axis=1)
        wanted = np.sort((start + steps) % items, axis=1)
        values = rng.random(many * WANTS)
        ends = np.arange(0, many * WANTS + 1, WANTS)
        yield People(
            NoisyOr(), scipy.sparse.csr_array((values, wanted.reshape(-1), ends), shape=(many, items)), items
        )


class Watch:
    """Adds up the time that some functions take."""

    def __init__(self) -> None:
        self.seconds, self._inside = 0.0, False

    def over(self, owner: Any, name: str) -> Any:
        """Watch a function until what is returned here is left again."""
        watched = getattr(owner, name)

        def timed(*given: Any, **more: Any) -> Any:
            if self._inside:
                return watched(*given, **more)
            self._inside, began = True, time.process_time()
            try:
                return watched(*given, **more)
            finally:
                self.seconds += time.process_time() - began
                self._inside = False

        return mock.patch.object(owner, name, timed)


def replayed(people: int, items: int) -> Spent:
    """One replay, watched."""
    learner = OverlapGreedy(items, SLOTS, horizon=people, epsilon=1.0, delta=1e-6, coins=SeededCoins(1))
    noise, asking, counted = Watch(), Watch(), [0, 0]
    draw: Callable[..., Ints] = rounded_normal._noise
    begin = StoredParticipants.__init__

    def counting(count: int, *more: Any) -> Ints:
        counted[0] += count
        return draw(count, *more)

    def asked(self: StoredParticipants, blocks: Any, *given: Any) -> None:
        counted[1] += sum(map(len, blocks))
        begin(self, blocks, *given)

    whole = 0.0
    with (
        mock.patch.object(rounded_normal, "_noise", counting),
        mock.patch.object(StoredParticipants, "__init__", asked),
    ):
        watching = [noise.over(rounded_normal, "_noise")]
        watching += [asking.over(UserStore, "add_rows"), asking.over(StoredParticipants, "_total")]
        for each in watching:
            each.start()
        try:
            for piece in people_in_pieces(people, items):
                began = time.process_time()
                learner.replay(piece)
                whole += time.process_time() - began
        finally:
            for each in reversed(watching):
                each.stop()
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Spent(whole, noise.seconds, asking.seconds, counted[0], counted[1], peak)


def floor(spent: Spent, items: int) -> tuple[float, float]:
    """Seconds for that noise by itself, and for one bare pass over all who were asked."""
    secret, began = SecretRandomness(SeededCoins(2)), time.process_time()
    some = min(spent.draws, 3_000_000)
    rounded_normal.rounded_normal(np.zeros(some, dtype=np.int64), 1e6, secret)
    noise = (time.process_time() - began) * spent.draws / some
    (piece,) = people_in_pieces(PIECE, items)
    sums = np.zeros(items)
    _add(piece.table.columns, piece.table.values, sums)
    began = time.process_time()
    for _ in range(5):
        _add(piece.table.columns, piece.table.values, sums)
    return noise, (time.process_time() - began) / 5 / PIECE * spent.asked


@njit
def _add(items: Any, values: Floats, sums: Floats) -> None:
    for j in range(len(items)):
        sums[items[j]] += values[j]


def whole_replay(crowds: list[int], catalogues: list[int]) -> Iterator[Part]:
    """A table for each catalogue."""
    for items in catalogues:
        replayed(WARM, items)
        part = Part(
            "whole replay",
            f"Whole replay of overlap-greedy, {SLOTS} of {items:,} items, {WANTS} wishes each: CPU us a person",
            COLUMNS,
        )
        each: dict[int, dict[str, float]] = {}
        for people in sorted(crowds):
            laps = LAPS if people < FEW else 1
            spent = min(replayed(people, items) for _ in range(laps))
            least = floor(spent, items)
            unit = 1e6 / people
            rest = spent.whole - spent.noise - spent.people
            each[people] = {"whole": unit * spent.whole, "people": unit * spent.people}
            part.rows.append(
                [
                    people,
                    *(unit * seconds for seconds in (spent.whole, spent.noise, rest, spent.people, *least)),
                    spent.peak >> 20,
                ]
            )
        part.numbers = {str(people): found for people, found in each.items()}
        for what, said in CLAIMS.items():
            costs = [found[what] for found in each.values()]
            ratio = max(costs) / min(costs)
            part.notes.append(
                verdict(
                    f"{said} the same in any of these crowds, within a factor of {FLAT:g}: {ratio:.3g}",
                    ratio <= FLAT,
                )
            )
        yield part


def main() -> None:
    """Print the tables asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.whole_replay",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--people", default="100000,1000000", help="crowds, separated by commas")
    parser.add_argument("--items", default="1000", help="catalogues, separated by commas")
    asked = parser.parse_args()
    crowds, catalogues = ([int(number) for number in said.split(",")] for said in (asked.people, asked.items))
    for part in whole_replay(crowds, catalogues):
        part.print(Console(width=130))


if __name__ == "__main__":
    main()
