"""The ledger: the budget of one population, what was charged to it, what is left.

    with Ledger.open("people.ledger", Budget(1.0, 1e-6)) as ledger:
        ledger.charge(event, "clicks, spring")      # refused, or on disk when this returns; only then draw

A charge is checked as a whole before anything is written, and written and synced before the caller may draw. So
whatever the moment of a crash, what was spent is never less than what could have been drawn. The file is lines of
JSON, each with a hash over itself and the line before: an altered, lost or swapped line is noticed when the file is
read. A file cut back at the end of a line looks like an older file, so keep `head` elsewhere and hand it to `open`.
(Hashes have no key: they find accidents and careless edits, not somebody who rewrites the whole file.)

One process holds a ledger at a time; a forked child may not charge. A charge takes no longer as the ledger grows.
Theorem A7 of docs/maths/accounting.md: events may be chosen in the light of everything released before.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

from diminuendo.errors import DiminuendoError, InvalidInput, LedgerDamaged, OverBudget
from diminuendo.privacy import _disk
from diminuendo.privacy.accountants import Tally, rounded_up
from diminuendo.privacy.budget import Budget, Guarantee
from diminuendo.privacy.events import Composed, Event, from_json, to_json

FORMAT = 1


@dataclass(frozen=True)
class Entry:
    """One charge: what it was, and a public note on what for."""

    event: Event
    note: str
    hash: str


@dataclass(frozen=True)
class Record:
    """What a ledger file says, read and checked."""

    budget: Budget
    entries: tuple[Entry, ...]
    head: str
    torn: bool
    """Whether the file ends in an unfinished line, as after a crash."""

    def must_contain(self, head: str | None, name: str) -> None:
        """Fail if a head that was noted earlier is not among those of the file."""
        if head not in {None, _hash("", _header(self.budget)), *(entry.hash for entry in self.entries)}:
            raise LedgerDamaged(f"{name} does not contain the noted head {head}: it was cut back.")

    def spent(self) -> float:
        """The epsilon, at the budget's delta, of all charges. Fails if they exceed the budget."""
        ledger = Ledger(self.budget)
        ledger._replay(self.entries)
        return ledger.spent()


class Ledger:
    """A budget and its charges, in memory; `Ledger.open` keeps them in a file."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.entries: list[Entry] = []
        self._noted: dict[str, Entry] = {}
        self.head = _hash("", _header(budget))
        self._limit = budget.limit
        self._tally = Tally()
        self._lock = threading.Lock()
        self._file: _disk.AppendOnly | None = None

    def __repr__(self) -> str:
        return f"<Ledger: {self.budget}; {len(self.entries)} charges, epsilon {self.spent():.6g} spent>"

    @classmethod
    def open(cls, path: str | Path, budget: Budget | None = None, *, expect: str | None = None) -> Self:
        """The ledger in that file; made if there is none and a budget is given.

        `expect` is a `head` noted earlier: the file must still contain it.
        """
        file = _disk.AppendOnly(Path(path), create=budget is not None)
        try:
            content = file.read()
            if b"\n" not in content:  # new, or the very first line was never finished
                if budget is None:
                    raise InvalidInput(f"{path} holds no ledger; give a budget to begin one.")
                if expect is not None:
                    raise LedgerDamaged(f"{path} is empty, but its head was noted once: the ledger was lost.")
                ledger = cls(budget)
                first = _line(_header(budget), ledger.head)
                if not first.startswith(content):
                    raise InvalidInput(f"{path} is a file of another kind; give a ledger a file of its own.")
                file.cut(0)
                file.append(first)
            else:
                record = parse(content, str(path))
                if budget is not None and budget != record.budget:
                    raise InvalidInput(
                        f"{path} was opened for {record.budget}; got {budget}. Budgets do not change."
                    )
                record.must_contain(expect, str(path))
                ledger = cls(record.budget)
                ledger._replay(record.entries)
                if record.torn:
                    file.cut(content.rindex(b"\n") + 1)
            heads = {
                ledger.head,
                _hash("", _header(ledger.budget)),
                *(entry.hash for entry in ledger.entries),
            }
            if expect is not None and expect not in heads:
                raise LedgerDamaged(
                    f"{path} does not contain the noted head {expect[:12]}...: it was cut back."
                )
            ledger._file = file
            if b"\n" in content and not content.endswith(b"\n"):
                ledger.charge(Composed(()), "an unfinished charge was dropped: nothing had been drawn on it")
        except BaseException:
            file.close()
            raise
        return ledger

    def charge(self, event: Event, note: str = "") -> None:
        """Spend, or refuse with OverBudget. When this returns the charge is durable, and only then may one draw."""
        price = self.budget.counting.tally(event)
        if not isinstance(note, str) or len(note) > 200 or "\n" in note:
            raise InvalidInput("note must be one public line of at most 200 characters.")
        with self._lock:
            if self._tally.after(price) > self._limit:
                raise OverBudget(self._refusal(event, price))
            body = {"charge": to_json(event), "note": note}
            entry = Entry(event, note, _hash(self.head, body))
            if self._file is not None:
                self._file.append(_line(body, entry.hash))
            self._tally.add(price)
            self._enter(entry)

    def find(self, note: str) -> Entry | None:
        """The first charge with that note, as when going on after a crash: what is paid for is not paid again."""
        return self._noted.get(note)

    def affords(self, event: Event) -> bool:
        """Whether a charge would be accepted now."""
        return self._tally.after(self.budget.counting.tally(event)) <= self._limit

    def spent(self) -> float:
        """The epsilon, at the budget's delta, of everything charged so far."""
        return self._worth(self._tally.total)

    def guarantee(self, secure_coins: bool) -> Guarantee:
        """What is proved about everything drawn on this ledger so far."""
        proof = "docs/maths/accounting.md, Theorem A7"
        return Guarantee(self.spent(), self.budget.delta, str(self.budget.unit), proof, secure_coins)

    def close(self) -> None:
        """Let another process have the file."""
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def _replay(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self._tally.add(self.budget.counting.tally(entry.event))
        if self._tally.total > self._limit:
            raise LedgerDamaged(
                "The charges add up to more than the budget: this ledger did not accept them."
            )
        for entry in entries:
            self._enter(entry)

    def _enter(self, entry: Entry) -> None:
        self.entries.append(entry)
        self._noted.setdefault(entry.note, entry)
        self.head = entry.hash

    def _worth(self, cost: Any) -> float:
        counting = self.budget.counting
        worth = counting.convert(rounded_up(counting.owned(cost, self.budget.unit.rounds)), self.budget.delta)
        return min(worth, self.budget.epsilon)  # nothing beyond the limit was accepted; the rest is rounding

    def _refusal(self, event: Event, price: Tally) -> str:
        alone = self.budget.counting.epsilon(event, self.budget.delta, self.budget.unit.rounds)
        return (
            f"Not charged: of epsilon {self.budget.epsilon:g} (delta {self.budget.delta:g}) {self.spent():.6g} is "
            f"spent, and this would cost {alone:.6g} by itself. "
        ) + (
            "Ask for less, or stop releasing."
            if self._tally.after(price) > self._limit * (1 + Fraction(1, 10**9))
            else "It exceeds the budget by a rounding error only: a float like 0.1 is a little more than a tenth. "
            "Budget.share(0.1) is not."
        )


def read(path: str | Path, *, expect: str | None = None) -> Record:
    """What a ledger file says, checked line by line, without taking hold of it."""
    try:
        record = parse(Path(path).read_bytes(), str(path))
    except OSError as error:
        raise InvalidInput(f"Cannot read {path}: {error.strerror}.") from error
    record.spent()
    record.must_contain(expect, str(path))
    return record


def parse(content: bytes, name: str) -> Record:
    """The lines of a ledger file, each checked against its hash; the last may be unfinished."""
    *lines, rest = content.split(b"\n")
    head, budget, entries = "", None, []
    for number, line in enumerate(lines, start=1):
        try:
            body = json.loads(line)
            claimed = body.pop("hash")
            if claimed != _hash(head, body):
                raise LedgerDamaged("its hash does not fit")
            if number == 1:
                if body.pop("ledger") != FORMAT:
                    raise LedgerDamaged(f"it is not a ledger of format {FORMAT}")
                budget = Budget.from_json(body.pop("budget"))
            else:
                entries.append(Entry(from_json(body.pop("charge")), body.pop("note"), claimed))
            if body:
                raise LedgerDamaged(f"it has unknown fields {sorted(body)}")
        except (ValueError, KeyError, TypeError, AttributeError, DiminuendoError) as error:
            raise LedgerDamaged(f"{name}, line {number}: {error}. Restore the file from a copy.") from error
        head = claimed
    if budget is None:
        raise LedgerDamaged(f"{name} holds no ledger.")
    return Record(budget, tuple(entries), head, torn=bool(rest))


def _header(budget: Budget) -> dict[str, Any]:
    return {"ledger": FORMAT, "budget": budget.as_json()}


def _hash(before: str, body: dict[str, Any]) -> str:
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"{before}\n{canonical}".encode()).hexdigest()


def _line(body: dict[str, Any], digest: str) -> bytes:
    return json.dumps(body | {"hash": digest}).encode() + b"\n"
