"""Longer explorations of the protocol, and one seed again.

    python -m tests.protocol everything [STATES]       all orders of events in small worlds, breadth first
    python -m tests.protocol walks [SEEDS]             random orders in larger worlds, pairs, and what follows trouble
    python -m tests.protocol walk WORLD SEED [MISTAKE] one of them, event by event
    python -m tests.protocol service [SEEDS]           the service itself under simulation
    python -m tests.protocol mistakes                  planted mistakes, and after how much each is found

All of it is the same each time. A seed that breaks a promise is played again by `walk`, or, of the service, by
`Simulation(folder, seed).play(EVENTS)` in tests/protocol/real.py.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.protocol import lively, mistakes, pairs, real_mistakes
from tests.protocol.explore import everything, walk
from tests.protocol.mistakes import WORLDS
from tests.protocol.real import EVENTS, TROUBLE, Simulation


def main() -> None:
    """Do what is asked for, and print what was found."""
    what, *given = sys.argv[1:] or ["help"]
    if what not in COMMANDS:
        print(__doc__)
        return
    began = time.process_time()
    COMMANDS[what](*given)
    print(f"{time.process_time() - began:,.0f} s of processor time")


def _everything(most: str = "400000") -> None:
    for name, setup in mistakes.SMALL.items():
        result = everything(setup, int(most))
        whole = "all of them" if result.whole else "the first ones"
        print(f"{name}: {result.states:,} states, {whole}; {result.broken or 'nothing broken'}", flush=True)


def _walks(many: str = "2000") -> None:
    for name, setup in WORLDS.items():
        result = [walk(setup, seed) for seed in range(int(many))]
        broken = Counter(each.broken for each in result if each.broken)
        print(
            f"{name}: {len(result):,} walks, {sum(each.states for each in result):,} events; {_said(broken)}",
            flush=True,
        )
    compared = [pairs.played(pairs.PAIRED, seed) for seed in range(int(many))]
    print(f"pairs: {len(compared):,}; {_said(Counter(each.broken for each in compared if each.broken))}")
    times = [lively.stands_still(lively.LIVELY, seed) for seed in range(int(many) // 4)]
    longest = max(each for each in times if each is not None)
    print(
        f"after trouble: {len(times):,}, all goes on within {longest} times; {times.count(None)} stand still"
    )


def _said(broken: Counter[str]) -> str:
    return ", ".join(f"{words}: {many}" for words, many in broken.items()) or "nothing broken"


def _walk(world: str, seed: str, mistake: str = "") -> None:
    setup = WORLDS[world]._replace(mistakes=frozenset({mistake} if mistake else ()))
    result = walk(setup, int(seed))
    for number, label in enumerate(result.path):
        print(number, *label)
    print(result.broken or "nothing broken")


def _service(many: str = "100") -> None:
    with tempfile.TemporaryDirectory() as folder:
        for rolled_back in (False, True):
            result = [
                Simulation(Path(folder) / f"{rolled_back} {seed}", seed).play(EVENTS, rolled_back=rolled_back)
                for seed in range(int(many))
            ]
            broken = Counter(each.broken for each in result if each.broken)
            print(
                f"{'put back' if rolled_back else 'service'}: {len(result):,} runs of {EVENTS:,} events, "
                f"{sum(each.answers for each in result):,} answers, "
                f"{sum(each.releases for each in result):,} releases, "
                f"{sum(each.fencing_tokens for each in result):,} fencing tokens; {_said(broken)}", flush=True,
            )  # fmt: skip


def _mistakes() -> None:
    for each in mistakes.MISTAKES:
        seed, events = mistakes.found(each)
        print(f"model | {each.name} | {each.breaks} | walk {seed}, {events:,} events", flush=True)
    for name, breaks in pairs.MISTAKES.items():
        print(f"pairs | {name} | {breaks} | pair {pairs.found(name)}", flush=True)
    for name in lively.MISTAKES:
        print(f"after trouble | {name} | it stands still | walk {lively.found(name)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for planted in real_mistakes.MISTAKES:
            seed = real_mistakes.found(planted, Path(folder) / planted.name)
            print(f"service | {planted.name} | {planted.breaks} | run {seed}", flush=True)
    print(f"trouble in runs of the service: {TROUBLE}")


COMMANDS: dict[str, Callable[..., None]] = {
    "everything": _everything, "walks": _walks, "walk": _walk, "service": _service, "mistakes": _mistakes,
}  # fmt: skip

if __name__ == "__main__":
    main()
