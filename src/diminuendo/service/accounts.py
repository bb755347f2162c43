"""Accounts: what the ledger of a population says, for users to read. Everything in a ledger is public.

Lines are read once: what was read and checked before is not read again as long as the ledger still begins with it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from diminuendo.errors import LedgerDamaged
from diminuendo.privacy import events
from diminuendo.privacy.accountants import ZCDP, BatchCosts
from diminuendo.privacy.books.ledger_file import Charge, Drawn, read_line
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import Event

NUMBERED = re.compile(r"-\d+$")
"""What is charged for release by release is numbered, and is one purpose."""


@dataclass(frozen=True)
class Line:
    """One line of a ledger."""

    number: int
    """Counted from 1 on; the first says the budget."""
    kind: str
    """`budget`, `charge` or `release`."""
    name: str
    """Under which name it was paid or published, without that of the placement."""
    placement: str
    """For whom; nothing where it is for the whole population."""
    about: str
    head: str
    cost: Fraction | None = None
    """Of a charge: what one round pays at most, in what adds up."""
    noise: float | None = None
    """Of a charge: the noise of each release that it pays for is at least that wide (see `noise_of`)."""
    release: str = ""
    """Of a release: the name that it is kept under."""


@dataclass(frozen=True)
class Spent:
    """What was spent by a placement, on one purpose or on everything."""

    placement: str
    purpose: str
    epsilon: float
    """What all of it is worth by itself; epsilons of several do not add up ..."""
    part: float
    """... and this does: the part of the whole budget, from 0 to 1, in rho (in epsilon where accounting is pure)."""
    charges: int


class Account:
    """What was read of one ledger so far."""

    def __init__(self) -> None:
        self.budget: Budget | None = None
        self.lines: list[Line] = []
        self.damaged = ""  # where and how a line does not follow from the one before
        self._read = b""
        self._tally, self._count = BatchCosts(), 0
        self._parts: dict[tuple[str, str], tuple[BatchCosts, int]] = {}
        self._charged: dict[str, Line] = {}
        self._after: dict[str, Fraction] = {}
        self._worths: dict[Fraction, float] = {}

    @property
    def head(self) -> str:
        """The hash of the last line: whoever notes it elsewhere knows a ledger that was cut back for what it is."""
        return self.lines[-1].head if self.lines else ""

    @property
    def spent(self) -> float:
        """The epsilon of everything that was charged."""
        return self.worth(self._tally.total)

    @property
    def part(self) -> float:
        """How much of the budget is spent, from 0 to 1, in what adds up."""
        return self._part(self._tally.total)

    def part_of(self, placement: str) -> float:
        """The part of the budget that one placement has spent."""
        cost = self._parts.get((placement, ""))
        return 0.0 if cost is None else self._part(cost[0].total)

    def spent_at(self, head: str) -> float | None:
        """What had been spent when the ledger had that head; None where it never had."""
        return self.worth(self._after[head]) if head in self._after else None

    def read(self, content: bytes) -> Account:
        """Go on with what a ledger says now; a new account where that does not go on from what was read."""
        if not content.startswith(self._read):
            return Account().read(content)
        whole = content[: content.rfind(b"\n") + 1]
        for text in whole[len(self._read) :].splitlines() if not self.damaged else ():
            try:
                result, head = read_line(text, self.head)
            except LedgerDamaged as error:
                self.damaged = f"line {len(self.lines) + 1}: {error}"
                break
            self._enter(result, head)
        self._read = whole
        return self

    def purposes(self, placement: str) -> list[Spent]:
        """What one placement spent on what, the dearest first."""
        result = [(key, cost) for key, cost in self._parts.items() if key[0] == placement and key[1]]
        return sorted((self._said(*one) for one in result), key=lambda one: -one.part)

    def placements(self) -> list[Spent]:
        """What each placement spent in all, the dearest first; their parts add up to `part`."""
        result = [(key, cost) for key, cost in self._parts.items() if not key[1]]
        return sorted((self._said(*one) for one in result), key=lambda one: -one.part)

    def releases(self, placement: str) -> Iterator[tuple[Line, Line]]:
        """What was published for a placement, the last first: the line of each release, and that of its charge."""
        for line in reversed(self.lines):
            if line.kind == "release" and line.placement == placement:
                yield line, self._charged[line.about]

    def _enter(self, found: Budget | Charge | Drawn, head: str) -> None:
        number = len(self.lines) + 1
        if isinstance(found, Budget):
            self.budget = found
            line = Line(number, "budget", "", "", str(found), head)
        elif isinstance(found, Charge):
            whole, _, about = found.note.partition(": ")
            name, _, placement = whole.rpartition("@") if "@" in whole else (whole, "", "")
            assert self.budget is not None
            price = self.budget.counting.tally(found.event)
            line = Line(number, "charge", name, placement, about, head, price.total, noise_of(found.event))
            self._tally.add(price)
            for key in ((placement, ""), (placement, NUMBERED.sub("", name))):
                cost, many = self._parts.get(key, (BatchCosts(), 0))
                self._parts[key] = (cost.add(price), many + 1)
            self._charged.setdefault(whole, line)
        else:
            paid = next(
                (found.name[:dot] for dot in _dots(found.name) if found.name[:dot] in self._charged), ""
            )
            charge = self._charged.get(paid) or self._charged.setdefault("", self.lines[0])
            name = f"{charge.name}.{found.name[len(paid) + 1 :]}"
            line = Line(number, "release", name, charge.placement, paid, head, release=found.name)
        self.lines.append(line)
        self._after[head] = self._tally.total

    def worth(self, cost: Fraction) -> float:
        """The epsilon of a cost; converted once, which takes its time."""
        if self.budget is None:
            return 0.0
        if cost not in self._worths:
            self._worths[cost] = self.budget.worth(cost)
        return self._worths[cost]

    def _part(self, cost: Fraction) -> float:
        return float(cost / self.budget.limit) if self.budget else 0.0

    def _said(self, key: tuple[str, str], cost: tuple[BatchCosts, int]) -> Spent:
        return Spent(*key, self.worth(cost[0].total), self._part(cost[0].total), cost[1])


def noise_of(event: Event) -> float | None:
    """How wide the noise of whatever an event pays for is at least, as deviations over what one round can move.

    Of several releases each has at least that much. None where nothing is added to numbers, or at no cost.
    """
    if isinstance(event, events.Laplace):
        return math.sqrt(2) / event.epsilon if event.epsilon else None
    if isinstance(event, events.Repeated):
        return noise_of(event.event)
    if isinstance(event, (events.Composed, events.Parallel)):
        result = [noise_of(part) for part in event.events]
        known = [one for one in result if one is not None]
        return min(known) if known and len(known) == len(result) else None
    if isinstance(event, events.Selections):
        return None
    rho = ZCDP.tally(event).total
    return 1 / math.sqrt(2 * rho) if rho else None


def _dots(name: str) -> list[int]:
    return [at for at, letter in enumerate(name) if letter == "."]
