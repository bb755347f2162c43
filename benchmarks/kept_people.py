"""People who are kept and asked again: who came one by one, against the same people of one table.

A release of `overlap-greedy` asks everybody who is kept what items are worth after a slate that grows. Visitors of
MSWeb, drawn with replacement, come to its memory once one after the other, each with a table of her own, as in a
service, and once in one table, as in a replay. Published numbers must be the same bit for bit. Memory is what Python's
tracer sees of the kept people at rest; the first release of those who came one by one gathers who still waits.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

import diminuendo
from benchmarks.report import Disagreement, Part, verdict
from diminuendo import Person, SeededCoins
from diminuendo.learners.base.engines import Threads
from diminuendo.learners.base.users import UserStore
from diminuendo.learners.overlap.participants import StoredParticipants, Terms
from diminuendo.privacy import Budget, Ledger
from diminuendo.randomness import SecretRandomness
from diminuendo.streams.people import People
from diminuendo.sums.chains.cost import UNIT
from diminuendo.sums.chains.focus import FULL, Focus
from diminuendo.sums.chains.stored import StoredPeople
from diminuendo.sums.schedule import Schedule
from diminuendo.types import Floats, Ints

SIZES = 20_000, 78_670
CHAIN = 0, 8, 26, 17
"""Items that join one after the other."""
LAPS = 5
TIME_GOAL, ROOM_GOAL = 2.0, 1.5
"""Times what people of a table take."""


class Filled(NamedTuple):
    """Both stores of one crowd, and what it took to fill them."""

    ticks: StoredPeople
    people: UserStore
    room: float
    """Bytes a person."""
    longest: float
    """Seconds of the slowest of all people, and on average."""
    mean: float


def kept_people() -> Iterator[Part]:
    """Two crowds, each in both ways."""
    part = Part(
        "kept people",
        f"People who are kept, {diminuendo.msweb().n_items} items: a release in ms, bytes a person, us to keep one",
        ["who", "people", "first release", "release", "bytes", "keep, mean", "keep, longest"],
    )
    for filling in (in_a_table, one_by_one):
        release(filling(diminuendo.msweb()[:300]), 0)  # compiles, and loads what is loaded when it is used
    for size in SIZES:
        crowd = diminuendo.msweb()[np.random.default_rng(1).integers(0, len(diminuendo.msweb()), size)]
        filled = {"in a table": in_a_table(crowd), "one by one": one_by_one(crowd)}
        times: dict[str, list[float]] = {name: [] for name in filled}
        for lap in range(LAPS):
            published = set()
            for name, kept in filled.items():
                seconds, numbers = release(kept, lap)
                times[name].append(seconds)
                published.add(numbers.tobytes())
            if len(published) > 1:
                raise Disagreement("Who comes one by one says something else than in a table.")
        for name, kept in filled.items():
            first, best = 1e3 * times[name][0], 1e3 * min(times[name])
            part.rows.append([name, size, first, best, kept.room, 1e6 * kept.mean, 1e6 * kept.longest])
        slower = min(times["one by one"]) / min(times["in a table"])
        larger = filled["one by one"].room / filled["in a table"].room
        part.numbers |= {f"time, {size}": slower, f"memory, {size}": larger}
        part.notes += [
            verdict(
                f"{size:,} people who came one by one: a release takes at most {TIME_GOAL:g} times that of a table: "
                f"{slower:.3g}",
                slower <= TIME_GOAL,
            ),
            verdict(f"and memory at most {ROOM_GOAL:g} times: {larger:.3g}", larger <= ROOM_GOAL),
        ]
    yield part


def in_a_table(crowd: People) -> Filled:
    """All at once."""
    n_items = crowd.n_items
    gc.collect()
    tracemalloc.start()
    ticks, people = _empty(crowd)
    table = crowd.with_rows(tuple(crowd.family.rows(crowd.table, n_items))).table
    people.add_rows(crowd.family, table, range(len(crowd)))
    gc.collect()
    room = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return Filled(ticks, people, room / len(crowd), 0.0, 0.0)


def one_by_one(crowd: People) -> Filled:
    """Once traced, once timed."""
    people = _filled(crowd, trace=False)
    return people._replace(room=_filled(crowd, trace=True).room)


def _filled(crowd: People, *, trace: bool) -> Filled:
    rows, seconds = crowd.family.rows(crowd.table, crowd.n_items), np.zeros(len(crowd))
    gc.collect()
    if trace:
        tracemalloc.start()
    ticks, people = _empty(crowd)
    for number in range(len(crowd)):
        own = crowd.family.table([part.between(number, number + 1) for part in rows], crowd.n_items)
        person = Person(crowd.family, crowd.n_items, own, 0)
        began = time.perf_counter()
        people.add(person)
        seconds[number] = time.perf_counter() - began
    del person, own
    gc.collect()
    room = tracemalloc.get_traced_memory()[0] if trace else 0
    tracemalloc.stop()
    return Filled(ticks, people, room / len(crowd), float(seconds.max()), float(seconds.mean()))


def _empty(crowd: People) -> tuple[StoredPeople, UserStore]:
    schedule, users, always = (
        Schedule((len(crowd), len(crowd) + 1)),
        UserStore(crowd.n_items),
        np.zeros(crowd.n_items, dtype=np.int64),
    )

    def asked(weights: Ints, factors: Floats) -> StoredParticipants:
        return StoredParticipants(users.blocks, [], Terms(weights, factors, always, ticks.clip), Threads())

    ticks = StoredPeople(crowd.n_items, schedule=schedule, ledger=Ledger(Budget(1.0, 1e-6)), asked=asked)
    return ticks, users


def release(kept: Filled, number: int) -> tuple[float, Ints]:
    """Seconds, and what was published: one chain."""
    secret = SecretRandomness(SeededCoins(number))
    gc.collect()
    began = time.perf_counter()
    focus = Focus(np.full(kept.ticks.n_items, FULL), 512)
    # So much noise costs next to nothing.
    chain = kept.ticks.focused(number, [UNIT], (1e9, 1e9), focus, secret)
    numbers = [chain.singles(secret)]
    for item in CHAIN:
        numbers.append(chain.row(item, secret))
    numbers.append(chain.rest(secret))
    return time.perf_counter() - began, np.array(numbers)
