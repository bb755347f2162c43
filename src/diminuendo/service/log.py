"""The log: JSON lines of public facts, from closed lists. Nothing that a person said gets in, nor an error's text."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Literal, TextIO

import msgspec

Happened = Literal[
    "started",
    "stopped",
    "menu",
    "store away",
    "store back",
    "operator",
    "fault",
    "led",
    "let go",
    "put back",
    "name taken",
    "name free",
]
FACTS = frozenset(
    {"front", "trainer", "placement", "population", "version", "did", "trace", "error", "where"}
)
"""What a line may say; all of it public."""
ROOT = Path(__file__).parents[1]


class Log:
    """Writes lines, and nothing that is not on the lists above."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out

    def say(self, happened: Happened, **facts: str | int) -> None:
        """One line."""
        assert facts.keys() <= FACTS, "the log has a closed list of facts"
        line = msgspec.json.encode({"at": round(time.time(), 3), "happened": happened, **facts}).decode()
        print(line, file=self._out or sys.stderr, flush=True)

    def fault(self, error: BaseException, trace: str = "", **facts: str) -> None:
        """Something of ours that went wrong: which kind of error, and in which line of our code; not what it says."""
        where, step = "", error.__traceback__
        while step is not None:
            path = Path(step.tb_frame.f_code.co_filename)
            if path.is_relative_to(ROOT):
                where = f"{path.relative_to(ROOT)}:{step.tb_lineno}"
            step = step.tb_next
        self.say("fault", trace=trace, error=type(error).__name__, where=where, **facts)
