"""The file form of a ledger: lines of JSON, each with a hash over itself and the line before.

First the budget, then one line per charge and one per release. An altered, lost or swapped line is noticed when the
file is read; a last line that breaks off is what a crash leaves behind. One that is whole counts, also if its newline
is missing, and is refused like any other if something else follows it: a charge may have been drawn on. Hashes have no
key: they find accidents and careless edits, not an attacker who rewrites the whole file.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diminuendo.errors import DiminuendoError, InvalidInput, LedgerDamaged
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import Event, from_json, to_json

FORMAT = 1


@dataclass(frozen=True)
class Charge:
    """A cost, and a public note on what for."""

    event: Event
    note: str

    def body(self) -> dict[str, Any]:
        """As it stands in the file."""
        return {"charge": to_json(self.event), "note": self.note}


@dataclass(frozen=True)
class Drawn:
    """A release that was drawn and published: its name, its hash, and whether its randomness was secure."""

    name: str
    digest: str
    secure: bool

    def body(self) -> dict[str, Any]:
        """As it stands in the file."""
        return {"release": self.name, "digest": self.digest, "secure": self.secure}


@dataclass(frozen=True)
class Record:
    """What a ledger file says; every line fits the one before."""

    budget: Budget
    entries: tuple[Charge | Drawn, ...]
    heads: tuple[str, ...]
    """The hash of every line."""
    torn: bool
    """Whether the file ends in an unfinished line, as after a crash."""

    def must_contain(self, head: str | None, name: str) -> None:
        """Fail if a head that was noted earlier is not among those of the file."""
        if head is not None and head not in self.heads:
            raise LedgerDamaged(f"{name} does not contain the noted head {head}: it was cut back.")


def header(budget: Budget) -> dict[str, Any]:
    """The first line."""
    return {"ledger": FORMAT, "budget": budget.as_json()}


def chained(before: str, body: dict[str, Any]) -> str:
    """The hash of a line."""
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"{before}\n{canonical}".encode()).hexdigest()


def line(body: dict[str, Any], head: str) -> bytes:
    """A line of the file."""
    return json.dumps(body | {"hash": head}).encode() + b"\n"


def load(path: str | Path) -> Record:
    """Read and check a file, without taking hold of it."""
    try:
        return parse(Path(path).read_bytes(), str(path))
    except OSError as error:
        raise InvalidInput(f"Cannot read {path}: {error.strerror}.") from error


def parse(content: bytes, name: str) -> Record:
    """The lines of a ledger file, each checked against its hash; the last may be unfinished."""
    *lines, rest = content.split(b"\n")
    torn = bool(rest) and _breaks_off(rest)
    if rest and not torn:
        lines.append(rest)
    if not lines or not lines[0].startswith(b'{"ledger"'):
        raise LedgerDamaged(f"{name} is not a ledger: line 1 does not begin like one.")
    heads: list[str] = []
    entries: list[Charge | Drawn] = []
    budget = None
    for number, text in enumerate(lines, start=1):
        try:
            result, head = read_line(text, heads[-1] if heads else "")
        except LedgerDamaged as error:
            raise LedgerDamaged(f"{name}, line {number}: {error}. Restore the file from a copy.") from error
        heads.append(head)
        if isinstance(result, Budget):
            budget = result
        else:
            entries.append(result)
    assert budget is not None
    return Record(budget, tuple(entries), tuple(heads), torn)


def read_line(text: bytes, before: str) -> tuple[Budget | Charge | Drawn, str]:
    """What one line says, checked against the head of the line before, and its own head. The first has none before."""
    try:
        body = json.loads(text)
        head = body.pop("hash")
        if head != chained(before, body):
            raise LedgerDamaged("its hash does not fit")
        return _entry(body) if before else _budget(body), head
    except (ValueError, KeyError, TypeError, AttributeError, DiminuendoError) as error:
        raise LedgerDamaged(str(error)) from error


def _breaks_off(line: bytes) -> bool:
    """Whether it is the beginning of a line, as far as one can tell: printable, and no whole JSON."""
    try:
        json.JSONDecoder().raw_decode(line.decode("ascii"))
    except UnicodeDecodeError:
        return False
    except ValueError:
        return line.decode("ascii").isprintable()
    return False


def _budget(body: dict[str, Any]) -> Budget:
    if set(body) != {"ledger", "budget"} or body["ledger"] != FORMAT:
        raise LedgerDamaged(f"this version reads ledgers of format {FORMAT}")
    return Budget.from_json(body["budget"])


def _entry(body: dict[str, Any]) -> Charge | Drawn:
    if set(body) == {"charge", "note"}:
        return Charge(from_json(body["charge"]), body["note"])
    if set(body) == {"release", "digest", "secure"}:
        return Drawn(body["release"], body["digest"], body["secure"])
    raise LedgerDamaged(f"its fields are unknown: {sorted(body)}")
