"""Accounts: what the ledger of a population says. Everything in a ledger is public.

An account is read incrementally: lines that were checked are not read again while the ledger begins with them.
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
"""Charges for one release each are numbered, and have one purpose."""


@dataclass(frozen=True)
class Line:
    """One line of a ledger.

    Attributes
    ----------
    number : int
        Counted from 1 on; the first line holds the budget.
    kind : str
        `budget`, `charge` or `release`.
    name : str
        The name of the charge or release, without that of the placement.
    placement : str
        Empty for charges of the whole population.
    about : str
        What a charge is for; of a release, the name of its charge.
    head : str
        The hash of the line.
    cost : Fraction, optional
        Of a charge: the largest cost of one round, in the accountant's additive unit.
    noise : float, optional
        Of a charge: a lower bound on the noise of its releases (`noise_of`).
    release : str
        Of a release: its full name.
    """

    number: int
    kind: str
    name: str
    placement: str
    about: str
    head: str
    cost: Fraction | None = None
    noise: float | None = None
    release: str = ""


@dataclass(frozen=True)
class Spent:
    """What a placement spent, on one purpose or in all."""

    placement: str
    purpose: str
    epsilon: float
    """Its epsilon alone; epsilons of several do not add up."""
    part: float
    """Its share of the budget, from 0 to 1, in the additive unit: shares add up."""
    charges: int


class Account:
    """What was read of one ledger so far."""

    def __init__(self) -> None:
        self.budget: Budget | None = None
        self.lines: list[Line] = []
        self.damaged = ""  # which line does not follow from the one before, and why
        self._read = b""
        self._tally = BatchCosts()
        self._parts: dict[tuple[str, str], tuple[BatchCosts, int]] = {}
        self._charges: dict[str, Line] = {}
        self._after: dict[str, Fraction] = {}  # the total, by the head of each line
        self._epsilons: dict[Fraction, float] = {}

    @property
    def head(self) -> str:
        """The hash of the last line. A truncated ledger does not contain a head that was stored elsewhere."""
        return self.lines[-1].head if self.lines else ""

    @property
    def spent(self) -> float:
        """The epsilon of all charges."""
        return self.epsilon(self._tally.total)

    @property
    def part(self) -> float:
        """The share of the budget that is spent, from 0 to 1."""
        return self._part(self._tally.total)

    def part_of(self, placement: str) -> float:
        """The share of the budget that one placement has spent."""
        cost = self._parts.get((placement, ""))
        return 0.0 if cost is None else self._part(cost[0].total)

    def spent_at(self, head: str) -> float | None:
        """The epsilon spent when the ledger had that head; None if it never had."""
        return self.epsilon(self._after[head]) if head in self._after else None

    def read(self, content: bytes) -> Account:
        """Read on. Returns a new account if the ledger does not begin with what was read before."""
        if not content.startswith(self._read):
            return Account().read(content)
        whole = content[: content.rfind(b"\n") + 1]
        for text in whole[len(self._read) :].splitlines() if not self.damaged else ():
            try:
                entry, head = read_line(text, self.head)
            except LedgerDamaged as error:
                self.damaged = f"line {len(self.lines) + 1}: {error}"
                break
            self._enter(entry, head)
        self._read = whole
        return self

    def purposes(self, placement: str) -> list[Spent]:
        """What one placement spent by purpose, the largest first."""
        return self._spent([key for key in self._parts if key[0] == placement and key[1]])

    def placements(self) -> list[Spent]:
        """What each placement spent in all, the largest first; the parts add up to `part`."""
        return self._spent([key for key in self._parts if not key[1]])

    def releases(self, placement: str) -> Iterator[tuple[Line, Line]]:
        """The releases of a placement, the newest first: the line of each, and that of its charge."""
        for line in reversed(self.lines):
            if line.kind == "release" and line.placement == placement:
                yield line, self._charges[line.about]

    def _enter(self, entry: Budget | Charge | Drawn, head: str) -> None:
        number = len(self.lines) + 1
        if isinstance(entry, Budget):
            self.budget = entry
            line = Line(number, "budget", "", "", str(entry), head)
        elif isinstance(entry, Charge):
            whole, _, about = entry.note.partition(": ")
            name, _, placement = whole.rpartition("@") if "@" in whole else (whole, "", "")
            assert self.budget is not None
            price = self.budget.counting.tally(entry.event)
            line = Line(number, "charge", name, placement, about, head, price.total, noise_of(entry.event))
            self._tally.add(price)
            for key in ((placement, ""), (placement, NUMBERED.sub("", name))):
                cost, many = self._parts.get(key, (BatchCosts(), 0))
                self._parts[key] = (cost.add(price), many + 1)
            self._charges.setdefault(whole, line)
        else:  # the name of a release is that of its charge, a dot and a part
            dots = [at for at, letter in enumerate(entry.name) if letter == "."]
            paid = next((entry.name[:dot] for dot in dots if entry.name[:dot] in self._charges), "")
            charge = self._charges.get(paid) or self._charges.setdefault("", self.lines[0])
            name = f"{charge.name}.{entry.name[len(paid) + 1 :]}"
            line = Line(number, "release", name, charge.placement, paid, head, release=entry.name)
        self.lines.append(line)
        self._after[head] = self._tally.total

    def epsilon(self, cost: Fraction) -> float:
        """The epsilon of a cost, converted once."""
        if self.budget is None:
            return 0.0
        if cost not in self._epsilons:
            self._epsilons[cost] = self.budget.worth(cost)
        return self._epsilons[cost]

    def _part(self, cost: Fraction) -> float:
        return float(cost / self.budget.limit) if self.budget else 0.0

    def _spent(self, keys: list[tuple[str, str]]) -> list[Spent]:
        costs = [(key, *self._parts[key]) for key in keys]
        result = [
            Spent(*key, self.epsilon(cost.total), self._part(cost.total), many) for key, cost, many in costs
        ]
        return sorted(result, key=lambda one: -one.part)


def noise_of(event: Event) -> float | None:
    """A lower bound on the noise of each release that an event pays for: its standard deviation over the sensitivity.

    None if nothing numeric is released, or at no cost.
    """
    if isinstance(event, events.Laplace):
        return math.sqrt(2) / event.epsilon if event.epsilon else None
    if isinstance(event, events.Repeated):
        return noise_of(event.event)
    if isinstance(event, (events.Composed, events.Parallel)):
        parts = [noise_of(part) for part in event.events]
        known = [one for one in parts if one is not None]
        return min(known) if known and len(known) == len(parts) else None
    if isinstance(event, events.Selections):
        return None
    rho = ZCDP.tally(event).total
    return 1 / math.sqrt(2 * rho) if rho else None
