"""A sweep that dies, as by kill -9, at its first change of a file; at its second; and so on. Forks, so it has a process
of its own: python -m tests.simulate.crash_everywhere FOLDER. Prints for each death what was kept and what came of it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from diminuendo.simulate import store, sweep
from diminuendo.simulate.task import Run
from diminuendo.streams import taste_groups

USERS = taste_groups(60, 8, groups=3, items_per_group=4, seed=1)
SEEDS = 1


def small(out: Path) -> None:
    sweep(USERS, slots=2, learners=["fi-dp"], epsilon=[0.5, 5.0], seeds=SEEDS, jobs=1, out=out)


def dying(chances: int) -> None:
    """From now on this process dies before its change number `chances` of a file, if it comes so far."""
    left = iter(range(chances))

    def fatal(change: Callable[..., Any]) -> Callable[..., Any]:
        def changed(*given: Any, **more: Any) -> Any:
            if next(left, None) is None:
                os._exit(9)
            return change(*given, **more)

        return changed

    for module, name in ((store, "write_parquet"), (os, "replace"), (Path, "unlink"), (Path, "mkdir")):
        setattr(module, name, fatal(getattr(module, name)))


def in_a_child(work: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def acknowledged(out: Path, note: Path) -> None:
    """Note every run as soon as it is said to be kept; and those that are made."""
    keep, work = store.ResultStore.add, Run.work

    def noted(self: store.ResultStore, task: Any, outcome: Any) -> None:
        keep(self, task, outcome)
        with note.open("a") as file:
            file.write(f"kept {task.key}\n")

    def made(self: Run, *rest: Any) -> Any:
        with note.open("a") as file:
            file.write(f"made {self.key}\n")
        return work(self, *rest)

    store.ResultStore.add = noted  # type: ignore[method-assign]
    Run.work = made  # type: ignore[assignment, method-assign]
    small(out)


def main(folder: Path) -> None:
    small(folder / "whole")  # compiles, too
    for number in range(10_000):
        out, note = folder / f"{number}", folder / f"{number}.txt"

        def first(number: int = number, out: Path = out, note: Path = note) -> None:
            dying(number)
            acknowledged(out, note)

        died = in_a_child(first)
        before = note.read_text().split() if note.exists() else []
        note.write_text("")
        assert in_a_child(lambda out=out, note=note: acknowledged(out, note)) == 0  # type: ignore[misc]
        after = note.read_text().split()
        print(
            json.dumps(
                {
                    "died": died,
                    "kept": [
                        key for said, key in zip(before[::2], before[1::2], strict=True) if said == "kept"
                    ],
                    "again": [
                        key for said, key in zip(after[::2], after[1::2], strict=True) if said == "made"
                    ],
                    "out": str(out),
                }
            )
        )
        if died == 0:
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]))
