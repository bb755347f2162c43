"""A judge of what was recorded of a site: what its clients were told, and what is public afterwards, must fit together.

Everybody answers 1 and noise is next to nothing, so the total of a block is how many of its answers counted. Of each
block it is compared with what clients were told. All else is compared with the ledger, which says of itself whether it
is whole. Nothing here knows how the site works inside, or on what store.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np

from diminuendo.errors import LedgerDamaged
from diminuendo.privacy.books import ledger_file
from diminuendo.privacy.books.ledger_file import Charge, Drawn
from diminuendo.privacy.books.releases import digest
from diminuendo.service.front.tokens import Tokens
from diminuendo.service.records import PublicMenu, Shown
from diminuendo.service.store import Store
from tests.service.users import Told

TICKS = 1 << 10
"""What one answer adds to a total that is published (learners/slates/totals.py)."""
POPULATION, PLACEMENT = "everybody", 1


class Menu(NamedTuple):
    """What of a menu is compared."""

    version: int
    first: int
    head: str


class Write(NamedTuple):
    """What a database noted when something was published: who wrote it, and who led at that moment."""

    kind: str
    """`menu`, `line` or `release`."""
    name: str
    who: str
    leader: str
    fencing_token: int


@dataclass
class Record:
    """All that is compared."""

    shown: list[Shown] = field(default_factory=list)
    """What tokens say that users were handed, in any order."""
    acknowledged: list[tuple[int, bool]] = field(default_factory=list)
    """Rounds that count, whose answers were acknowledged, and whether surely in time."""
    unknown: set[int] = field(default_factory=set)
    """Rounds that count, whose answers were sent and never acknowledged."""
    menus: list[Menu] = field(default_factory=list)
    lines: bytes = b""
    """The ledger."""
    totals: dict[str, float] = field(default_factory=dict)
    """By the name of a block's release, how many answered, in the order of blocks."""
    bodies: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    """By kind and name of what was published, digests of all that anybody ever saw under it."""
    writes: list[Write] = field(default_factory=list)
    """In the order in which they were written; empty where nobody noted it."""


@dataclass
class Verdict:
    """What was counted, and what does not fit."""

    decisions: int = 0
    fallbacks: int = 0
    in_time: int = 0
    delay: int = 0
    unknown: int = 0
    published: float = 0.0
    releases: int = 0
    fencing_tokens: int = 0
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.decisions:,} decisions, "
            f"of them {self.fallbacks:,} fallback slates; {self.in_time:,} answers acknowledged "
            f"in time, {self.delay:,} later, {self.unknown:,} never; {self.published:,.3f} published in "
            f"{self.releases} releases of {self.fencing_tokens} fencing tokens; "
            f"faults: {'; '.join(self.faults) or 'none'}"
        )


def judged(record: Record) -> Verdict:
    """What is to be said of a record."""
    rounds = [each.round for each in record.shown if each.counts]
    verdict = Verdict(len(record.shown), len(record.shown) - len(rounds), releases=len(record.totals))
    verdict.fencing_tokens = len({each.fencing_token for each in record.writes})
    verdict.faults += _answers(record, verdict)
    if twice := sorted(number for number, many in Counter(rounds).items() if many > 1):
        verdict.faults.append(f"{len(twice)} rounds were handed out twice, the first is {twice[0]}")
    verdict.faults += [*_ledger(record), *_menus(record), *_bodies(record), *_writers(record)]
    return verdict


def _answers(record: Record, verdict: Verdict) -> Iterator[str]:
    """Block by block, so that one that was lost does not make up for one that counted twice."""
    starts = [*sorted({menu.first for menu in record.menus}), math.inf, math.inf]
    for (name, total), first, end in zip(record.totals.items(), starts, starts[1:], strict=False):
        surely = {number for number, sure in record.acknowledged if sure and first <= number < end}
        perhaps = {number for number, _ in record.acknowledged if first <= number < end} - surely
        unknown = {number for number in record.unknown if first <= number < end} - surely - perhaps
        verdict.in_time, verdict.delay = verdict.in_time + len(surely), verdict.delay + len(perhaps)
        verdict.unknown, verdict.published = verdict.unknown + len(unknown), verdict.published + total
        if total < len(surely) - 0.5:
            yield f"{name} is of {total:g} answers, and {len(surely)} were acknowledged in time"
        if total > (most := len(surely) + len(perhaps) + len(unknown)) + 0.5:
            yield f"{name} is of {total:g} answers, and there were no more than {most}"


def _ledger(record: Record) -> Iterator[str]:
    """It is whole; each release was paid for, then entered, once, as it is."""
    try:
        result = ledger_file.parse(record.lines, "the ledger")
    except LedgerDamaged as error:
        yield f"the ledger is not whole: {error}"
        return
    if result.torn:
        yield "the ledger is not whole: its last line breaks off"
    paid, entered = set[str](), dict[str, str]()
    for entry in result.entries:
        if isinstance(entry, Charge):
            paid.add(entry.note.partition(":")[0])
        elif isinstance(entry, Drawn):
            if not any(entry.name[:end] in paid for end, letter in enumerate(entry.name) if letter == "."):
                yield f"{entry.name} was drawn and not charged for"
            if entry.name in entered:
                yield f"{entry.name} was entered twice"
            entered[entry.name] = entry.digest
    for (kind, name), seen in record.bodies.items():
        if kind == "release" and name not in entered:
            yield f"{name} was released and is not on the ledger"
        elif kind == "release" and entered[name] not in seen:
            yield f"{name} is not what the ledger says"


def _menus(record: Record) -> Iterator[str]:
    """One line of menus: each follows the one before, on the ledger as well, and so does what users were shown."""
    if [menu.version for menu in record.menus] != list(range(1, len(record.menus) + 1)):
        yield "a version of a menu is missing, or there twice"
    heads = [msgspec.json.decode(line)["hash"] for line in record.lines.split(b"\n")[:-1]]
    places = [heads.index(menu.head) if menu.head in heads else -1 for menu in record.menus]
    if -1 in places:
        yield f"menu {record.menus[places.index(-1)].version} names a head that is not on the ledger"
    for before, (after, place) in pairwise(zip(record.menus, places, strict=True)):
        if place < before[1] or after.first < before[0].first:
            yield f"menu {after.version} follows {before[0].version}, and is of an older state"
    counted = sorted((each.round, each.version) for each in record.shown if each.counts)
    for (number, version), (later, then) in pairwise(counted):
        if then < version:
            yield f"round {later} was shown by menu {then}, after round {number} by menu {version}"
            break


def _bodies(record: Record) -> Iterator[str]:
    """What was seen once is there, and as it was."""
    there = {"line": range(len(record.lines.splitlines())), "menu": [menu.version for menu in record.menus]}
    for (kind, name), seen in record.bodies.items():
        if len(seen) > 1:
            yield f"{kind} {name} was seen with {len(seen)} different bodies"
        if kind in there and int(name) not in there[kind]:
            yield f"{kind} {name} was seen, and is not there any more"


def _writers(record: Record) -> Iterator[str]:
    """Whoever wrote something led at that moment, and nobody of an older fencing token wrote after somebody of
    a newer."""
    for each in record.writes:
        if each.who != each.leader:
            yield f"{each.kind} {each.name} was written by {each.who}, while {each.leader} led"
    for before, after in pairwise(each for each in record.writes if each.kind == "menu"):
        if after.fencing_token < before.fencing_token:
            yield (
                f"menu {after.name} is of fencing token {after.fencing_token}, "
                f"after one of fencing token {before.fencing_token}"
            )
    names = Counter((each.kind, each.name) for each in record.writes)
    yield from (f"{kind} {name} was written {many} times" for (kind, name), many in names.items() if many > 1)


class Auditor:
    """Looks at what is public now and then, and remembers how it looked: what was published once stays as it was."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._bodies: dict[tuple[str, str], set[str]] = {}

    def look(self, *, again: bool = False) -> None:
        """Look at what is new, or at all of it once more."""
        kept = self._store.books(POPULATION, None).releases
        for name in kept.names():
            if again or ("release", name) not in self._bodies:
                self._saw("release", name, digest(kept.once(name, _never)))
        known = Counter(kind for kind, _ in ([] if again else self._bodies))
        for row in self._store.menus(PLACEMENT, known["menu"]):
            self._saw("menu", str(row.version), sha256(row.body).hexdigest())
        lines = self._store.ledger(POPULATION, known["line"])
        for number, line in enumerate(lines, start=known["line"]):
            self._saw("line", str(number), sha256(line).hexdigest())

    def versions(self) -> int:
        """How many menus were seen."""
        return sum(kind == "menu" for kind, _ in self._bodies)

    def changed(self) -> list[tuple[str, str]]:
        """What was seen in two ways."""
        return [name for name, seen in self._bodies.items() if len(seen) > 1]

    def record(self, told: Told, tokens: Tokens, writes: list[Write]) -> Record:
        """All that is to be compared, once nothing happens any more."""
        self.look(again=True)
        kept, result = self._store.books(POPULATION, None).releases, Record(writes=writes)
        result.lines = b"".join(self._store.ledger(POPULATION))
        result.bodies = self._bodies
        drawn = [each.name for each in ledger_file.parse(result.lines, "").entries if isinstance(each, Drawn)]
        totals = [name for name in dict.fromkeys(drawn) if ".plan" not in name]
        result.totals = {name: int(kept.once(name, _never).sum()) / TICKS for name in totals}
        result.menus = [
            Menu(menu.version, menu.first, menu.head)
            for row in self._store.menus(PLACEMENT)
            for menu in [msgspec.json.decode(row.body, type=PublicMenu)]
        ]
        result.shown = [tokens.open(token) for token in told.decisions]
        for token, sure in told.acknowledged:
            if (shown := tokens.open(token)).counts:
                result.acknowledged.append((shown.round, sure))
        result.unknown = {shown.round for token in told.unknown if (shown := tokens.open(token)).counts}
        return result

    def _saw(self, kind: str, name: str, body: str) -> None:
        self._bodies.setdefault((kind, name), set()).add(body)


def _never() -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    raise AssertionError("what was released is kept")
