"""Greedy in hindsight on real people: ours, two libraries, and the floor."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

import diminuendo
from benchmarks.floor import count
from benchmarks.peers import BARE, PEERS, best_match_peers, installed, peers
from benchmarks.pickups import pickups
from benchmarks.report import Cell, Disagreement, Part, verdict
from benchmarks.stopwatch import Competitor, Result, race
from diminuendo import People
from diminuendo.objectives.rows import Matrix
from diminuendo.types import Slate

OURS = "ours lazy"
FLOOR = "floor"

FASTER = 5.0
"""Times, than a call of a peer; what is left of a peer when it is spared its preparation need only be beaten."""

PICKUPS = 65_000

NEAR = 2.0**-20
"""Of a value: peers add up short floats."""


def offline_greedy() -> Iterator[Part]:
    """One table for 5 slots and one for 10, of visitors whom one thing satisfies and of people near places."""
    for people, theirs in ((diminuendo.msweb(), peers), (pickups(PICKUPS), best_match_peers)):
        (matrix,) = people.matrices
        for slots in (5, 10):
            results = race([*_ours(people, matrix, slots), *theirs(matrix, slots), _floor(people)])
            yield _part(people, results, slots)


def _ours(people: People, matrix: Matrix, slots: int) -> Iterator[Competitor]:
    def prepare(_: int) -> People:
        return People(people.family, matrix)

    def run(method: str, made: People) -> tuple[Slate, float]:
        found = diminuendo.greedy(made, slots, method=method)
        return found.slate, found.value * len(made)

    for method in ("lazy", "plain"):
        yield Competitor(f"ours {method}", prepare, partial(run, method))
        yield Competitor(f"ours {method}{BARE}", lambda _: people, partial(run, method))


def _floor(people: People) -> Competitor:
    return Competitor(
        FLOOR,
        lambda _: np.zeros(people.n_items, dtype=np.int64),
        lambda totals: count(people.table.columns, totals),
    )


def _part(people: People, results: dict[str, Result], slots: int) -> Part:
    part = Part(
        f"offline greedy, {people.name}, k={slots}",
        f"Offline greedy: {slots} of {people.n_items} items for {len(people):,} people ({people.name})",
        ["who", "call, ms", "call / ours", "from matrix, ms", "from matrix / ours", "laps"],
    )
    slate, satisfied = _agreed(results)
    ours = results[OURS]
    for name, result in results.items():
        call: list[Cell] = [1e3 * result.run, result.run / ours.run]
        whole: list[Cell] = [1e3 * result.prepared, result.prepared / ours.prepared]
        if name == FLOOR or name.endswith(BARE):
            whole = ["-", "-"]
        part.rows.append([name, *call, *whole, result.laps])
    part.notes += [
        f"All chose {slate}, worth {satisfied:,.0f} people satisfied.",
        "call: from the library's own input to the slate, as documented; from matrix: with making that "
        "input from the same people x items CSR matrix.",
        "bare: without what need be done only once (apricot compiles and submodlib copies sets in every call; "
        "ours: people who were asked before).",
        "floor: counts once how many people want each item.",
    ]
    for module, package in PEERS.items():
        if not installed(module):
            part.notes.append(f"MISSING: {package} is not installed here; `make bench` brings it along.")
            continue
        theirs = [one for name, one in results.items() if name.startswith(module)]
        if theirs:
            _judge(part, package, theirs, results)
        else:
            part.notes.append(f"{package} knows facilities only where people and sites are the same.")
    return part


def _judge(part: Part, package: str, theirs: list[Result], results: dict[str, Result]) -> None:
    """Ours, lazy, against the fastest way to use one peer."""
    ours, ours_bare = results[OURS], results[OURS + BARE]
    bare = [one for one in theirs if one.name.endswith(BARE)]
    calls = [one for one in theirs if one not in bare]
    for what, ratio, least in (
        ("a call", min(one.run for one in calls) / ours.run, FASTER),
        ("a call from the matrix", min(one.prepared for one in calls) / ours.prepared, FASTER),
        ("the bare selection", min(one.run for one in bare) / ours_bare.run, 1.0),
    ):
        part.numbers[f"{what} of {package} / ours"] = ratio
        claim = "ours is faster than" if least == 1.0 else f"ours is at least {least:g} times faster than"
        part.notes.append(verdict(f"{claim} {what} of {package}: {ratio:.3g} times", ratio >= least))


def _agreed(results: dict[str, Result]) -> tuple[Slate, float]:
    """The slate and value that everybody found in every lap."""
    slate, satisfied = results[OURS].answers[0]
    for name, result in results.items():
        for found, value in result.answers if name != FLOOR else ():
            if set(found) != set(slate) or abs(value - satisfied) > NEAR * satisfied:
                raise Disagreement(f"{name} found {found} worth {value}, {OURS} {slate} worth {satisfied}.")
    return slate, satisfied
