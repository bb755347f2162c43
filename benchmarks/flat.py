"""Does a round cost the same however many items there are? Ours against the floor on the same people.

Additions per person are fixed: 10 items each, 5 slots. Two things still grow with the number of items. The
memory that items are spread over grows, so more accesses miss the processor's caches; the floor has that
too, which is why it stands next to ours. And the same gains, spread over more items, leave each total
smaller and so the rates higher, up to 1: an item then changes its class more often.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

import numpy as np
from scipy import sparse

from benchmarks.floor import additions
from benchmarks.report import Disagreement, Part
from benchmarks.stopwatch import Competitor, Result, race
from diminuendo import NoisyOr, OrderedExperts, People, SeededCoins

SIZES = (1_000, 10_000, 100_000, 1_000_000)
N_PEOPLE = 100_000
NNZ = 10
SLOTS = 5
LAPS = 7


def flat() -> Iterator[Part]:
    """Microseconds per person for each number of items, and the exponents."""
    competitors = [one for n_items in SIZES for one in _pair(n_items)]
    results = race(competitors, LAPS, fewest=LAPS)
    _check(results)
    ours = [1e6 * results[f"ours {n}"].run / N_PEOPLE for n in SIZES]
    floor = [1e6 * results[f"floor {n}"].run / N_PEOPLE for n in SIZES]
    part = Part(
        "flat in N",
        f"Replay by number of items: {SLOTS} slots, {N_PEOPLE:,} people, {NNZ} items each",
        ["items", "ours, us per person", "floor, us per person", "ours / floor"],
    )
    for n_items, mine, least in zip(SIZES, ours, floor, strict=True):
        part.rows.append([n_items, mine, least, mine / least])
    mine, least = exponent(ours), exponent(floor)
    part.numbers |= {"exponent of ours": mine, "exponent of the floor": least}
    part.notes += [
        f"Exponent of cost against items (least squares in logs): ours {mine:.3f}, floor {least:.3f}.",
        f"From {SIZES[0]:,} to {SIZES[-1]:,} items ours grows {ours[-1] / ours[0]:.2f} times, "
        f"the floor {floor[-1] / floor[0]:.2f} times.",
        "Not timed: making the learner and its memory, which is in proportion to the number of items and "
        "happens once; all its pages are in place when a lap starts. The floor is treated alike.",
    ]
    yield part


def _check(results: dict[str, Result]) -> None:
    """Every lap of ours starts from the same learner with the same coins, so it must show the same slates."""
    for n_items in SIZES:
        first, *others = results[f"ours {n_items}"].answers
        if not all(np.array_equal(first, other) for other in others):
            raise Disagreement(f"Laps of ours with {n_items} items showed different slates.")


def exponent(costs: Sequence[float], sizes: Sequence[int] = SIZES) -> float:
    """b of the best fit cost = a * items^b."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


def uniform_people(n_people: int, n_items: int, nnz: int, seed: int = 0) -> People:
    """People who each want `nnz` distinct items, uniformly: `sparse_display` without its loop."""
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.integers(0, n_items, size=(n_people, nnz)), axis=1)
    while len(twice := np.flatnonzero((np.diff(rows, axis=1) == 0).any(axis=1))):
        rows[twice] = np.sort(rng.integers(0, n_items, size=(len(twice), nnz)), axis=1)
    starts = np.arange(n_people + 1) * nnz
    chances = rng.random(n_people * nnz)
    matrix = sparse.csr_array((chances, rows.ravel(), starts), shape=(n_people, n_items))
    return People(NoisyOr(), matrix)


def _pair(n_items: int) -> Iterator[Competitor]:
    people = uniform_people(N_PEOPLE, n_items, NNZ)
    fresh = OrderedExperts(n_items, SLOTS, coins=SeededCoins(0))
    work = additions(people, copy.deepcopy(fresh).replay(people))
    # A copy, unlike a new learner, has written all its memory, so that no lap waits for the system's pages.
    yield Competitor(
        f"ours {n_items}", lambda _: copy.deepcopy(fresh), lambda learner: learner.replay(people)
    )
    yield Competitor(f"floor {n_items}", lambda _: work.fresh_totals(), lambda totals: work.run(totals)[:0])
