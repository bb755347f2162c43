"""Two worlds that differ in what one user does: everything that may be seen is compared, step by step.

Public events (ID blocks, reports, crashes, operators, clocks that are set back) and everybody else's answers
are drawn by
chance and are the same in both. Noise follows from the names of releases, so worlds are equal, byte for byte, until
hers is drawn; then what was added up may differ by what one user is charged for, and not more.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from diminuendo.service.records import PlacementSpec, PublicMenu, Report, Said, Shown
from diminuendo.service.seal import Sealer
from diminuendo.service.store import AnswerRow, IdBlock
from diminuendo.service.trainer.trainer import Trainer
from diminuendo.sums.private_counts import PrivateCounts
from tests.service.world import ITEMS, World, chosen, spec

SMALL: dict[str, Any] = {"users": 400, "per_second": 1.0, "deadline": 2.0}
COLUMNS = {"group": ("a", "b", "c")}
KINDS: dict[str, PlacementSpec] = {
    "totals": spec("slate-totals", "bandit", **SMALL),
    "totals, exclusions": spec("slate-totals", "bandit", exclusions=True, **SMALL),
    "clicks": spec("slate-clicks", "click", **SMALL),
    "clicks, hidden": spec("slate-clicks", "click", contexts=COLUMNS, private_contexts=True, **SMALL),
    "greedy": spec("overlap-greedy", "full", **SMALL),
    "greedy, retention": spec("overlap-greedy", "full", retention=60, **SMALL),
    "epochs": spec("epoch-greedy", "full", **SMALL | {"delta": 0.0}),
}
SAYS = (
    "little",
    "much",
    "other",
    "foreign",
    "plain",
    "cut",
    "huge",
    "wrong field",
    "other round",
    "no count",
    "null",
)
"""What she may say: answers, or something that is none."""
POINTS = ("answers read", "learned", "due", "drawn", "key made", "encrypted", "published", "keys dropped")
START = 2_000_000.0


class Killed(BaseException):
    """As if the process were gone."""


class DrawnTwice(BaseException):
    """What nothing may keep to itself."""


class KilledAt:
    """Kills once, at the n-th point that is reached."""

    def __init__(self) -> None:
        self.left = -1

    def __call__(self, point: str) -> None:
        if point in POINTS and self.left >= 0:
            self.left -= 1
            if self.left < 0:
                raise Killed


class Hers(NamedTuple):
    """What she does in one world: what she says and when, in seconds after her slate; and when she is erased."""

    says: tuple[tuple[str, float], ...] = ()
    erased: tuple[float, ...] = ()
    type: int = 1
    excludes: bool = False
    kind: str = ""


def drawn_hers(rng: random.Random) -> Hers:
    many = rng.choice((0, 1, 1, 1, 2, 3))
    says = tuple(
        (
            rng.choice(SAYS[:3] if rng.random() < 0.6 else SAYS),
            rng.choice((0.0, 0.1, 0.5, 1.0, 1.5, 2.4, 3.0, 6.0)),
        )
        for _ in range(many)
    )
    erased = tuple(rng.choice((0.0, 0.3, 1.0, 2.3, 2.6, 4.0)) for _ in range(rng.choice((0, 0, 0, 0, 1, 2))))
    return Hers(says, erased, rng.randrange(4), rng.random() < 0.3, rng.choice(("", "", "object")))


class Side:
    """One of the two worlds."""

    def __init__(self, folder: Path, kind: str, hers: Hers, her_round: int) -> None:
        self.world = World(folder, place=KINDS[kind])
        self.world.front.clear()
        self.world.time = START
        self.spec, self.hers, self.her_round = KINDS[kind], hers, her_round
        self.stores = [self.world.store, self.world.opened()]
        self.marks = KilledAt()
        self.trainer: Trainer = self.world.trainer(self.world.opened(), self.marks)
        self.drawn: dict[str, tuple[Any, Any, int]] = {}
        self.menus: dict[int, PublicMenu] = {}
        self.waiting: list[tuple[float, str, int, bytes]] = []

    def step(self, kill: int) -> None:
        """The trainer does what is due; `kill`: after so many points it is gone, and the next one goes on."""
        self.marks.left = kill
        recorded = PrivateCounts._drawn

        def watched(counts: PrivateCounts, secret: Any, histogram: int) -> Any:
            name = f"{counts._paid.name}.{counts._numbers[histogram]:06d}"
            if name in self.drawn:
                raise DrawnTwice(name)
            self.drawn[name] = (
                counts._histograms[histogram].copy(),
                counts._sensitivities[histogram].copy(),
                counts.ticks,
            )
            return recorded(counts, secret, histogram)

        PrivateCounts._drawn = watched  # type: ignore
        try:
            self.trainer.step()
        except Killed:
            self.marks.left = -1
            self.trainer = self.world.trainer(self.world.opened(), self.marks)
            self.trainer.step()
        finally:
            PrivateCounts._drawn = recorded  # type: ignore[method-assign]
            self.marks.left = -1

    def reserve_ids(self, front: int, count: int, seconds: float, report: Report | None) -> IdBlock | None:
        result = self.stores[front].reserve_ids(1, count, seconds, report)
        for row in self.stores[front].menus(1, max(self.menus, default=0)):
            self.menus[row.version] = msgspec.json.decode(row.body, type=PublicMenu)
        return result

    def shown(self, number: int, version: int, type_: int, excludes: bool) -> Shown:
        slate = chosen(self.menus[version], number, type_, np.random.default_rng(number))
        if excludes:
            slate = (*slate[:-1], -1)
        return Shown(1, number, version, True, slate, type_)

    def come(self, id_block: IdBlock) -> None:
        """She comes, where it is her round."""
        if id_block.first <= self.her_round < id_block.end:
            hidden, now = self.spec.private_contexts, self.world.time
            shown = self.shown(
                self.her_round, id_block.version, self.hers.type if hidden else 0,
                self.hers.excludes and self.spec.exclusions,
            )  # fmt: skip
            for what, after in self.hers.says:
                self.waiting.append((now + after, "say", self.her_round, self.bytes_of(what, shown)))
            for after in self.hers.erased:
                self.waiting.append((now + after, "erase", self.her_round, b""))

    def said(self, shown: Shown, share: float) -> Said:
        if self.spec.feedback == "bandit":
            return Said(shown, reward=share)
        if self.spec.feedback == "click":
            there = [slot for slot, item in enumerate(shown.slate) if item >= 0]
            return Said(shown, click=None if share < 0.2 else there[int(share * 0.999 * len(there))])
        return Said(shown, ratings={int(share * 7.99): 1.0, (int(share * 7.99) + 3) % 8: share})

    def bytes_of(self, what: str, shown: Shown) -> bytes:
        """Sealed, and whatever she likes."""
        plain = msgspec.msgpack.encode(self.said(shown, {"little": 0.0, "much": 1.0}.get(what, 0.6)))
        match what:
            case "foreign":
                other = msgspec.structs.replace(shown, placement=2)
                plain = msgspec.msgpack.encode(self.said(other, 1.0))
            case "other round":
                other = msgspec.structs.replace(shown, round=shown.round + 1)
                plain = msgspec.msgpack.encode(self.said(other, 1.0))
            case "no count":
                other = msgspec.structs.replace(shown, counts=False)
                plain = msgspec.msgpack.encode(self.said(other, 1.0))
            case "plain":
                return plain
            case "cut":
                plain = plain[: len(plain) // 2]
            case "huge":
                plain = msgspec.msgpack.encode(
                    Said(shown, ratings=dict.fromkeys(range(50_000), 1.0), reward=1e300)
                )
            case "wrong field":
                wrong = (
                    Said(shown, ratings={0: 1.0}) if self.spec.feedback != "full" else Said(shown, reward=1.0)
                )
                plain = msgspec.msgpack.encode(wrong)
            case "null":
                plain = b"\xc0"
        return self.world_seal(plain)

    def world_seal(self, plain: bytes) -> bytes:
        number, key = self.menus[max(self.menus)].seal.split(":")
        return Sealer(bytes.fromhex(key), int(number)).seal(plain)

    def put(self, front: int, others: list[tuple[int, bytes]], first: bool) -> None:
        """Answers of others, and what she does by now, in one group."""
        now, store = self.world.time, self.stores[front]
        rows = [AnswerRow(1, number, self.world_seal(plain)) for number, plain in others]
        due = [each for each in self.waiting if each[0] <= now]
        self.waiting = [each for each in self.waiting if each[0] > now]
        mine = [AnswerRow(1, number, encrypted) for _, what, number, encrypted in due if what == "say"]
        if self.hers.kind == "object":
            mine += [AnswerRow(1, self.her_round, b""), AnswerRow(9, 0, b"x")]
        rows = [*mine, *rows] if first else [*rows, *mine]
        if rows:
            store.put(rows)
        for _, what, number, _ in due:
            if what == "erase":
                store.erase(1, [number])

    # What may be seen.

    def view(self) -> dict[str, Any]:
        """All that anybody may see; of the database, all columns that are not encrypted and not inside the wall."""
        rows, result = self.stores[0]._file.rows, dict[str, Any]()
        tables = (
            "trainers", "heartbeats", "populations", "placements", "counters", "events",
            "id_blocks", "ledger",
            "releases",
        )  # fmt: skip
        for table in tables:
            result[table] = rows(f"SELECT * FROM {table}")
        result["menus"] = [
            (*rest, {key: value for key, value in json.loads(body).items() if key != "seal"})
            for *rest, body in rows("SELECT placement, version, first, past, effective_at, body FROM menus")
        ]
        result["now"] = self.stores[0].now()
        result["failures"] = dict(self.trainer.failures)
        result["missed_deadlines"] = {
            number: each.missed_deadlines for number, each in self.trainer.placements.items()
        }
        result["snapshots"] = rows("SELECT DISTINCT placement, version FROM snapshot_parts")
        return result


class Found(NamedTuple):
    """What came of a pair: the charge that was used, from 0 to 1, or the first thing that gave her away."""

    used: float
    leak: str = ""
    released: bool = False


def pair(folder: Path, kind: str, seed: int, worlds: tuple[Hers, Hers] | None = None, steps: int = 90,
         setbacks: bool = False) -> Found:  # fmt: skip
    """Play two worlds up to her release."""
    rng = random.Random(seed)
    her_round = rng.randrange(24)
    hers = worlds or (drawn_hers(rng), drawn_hers(rng))
    sides = [Side(folder / f"{seed}-{at}", kind, each, her_round) for at, each in enumerate(hers)]
    try:
        return _play(sides, rng, her_round, steps, setbacks)
    except DrawnTwice as error:
        return Found(0.0, f"{error} was drawn twice")
    finally:
        for side in sides:
            for store in (*side.stores, side.trainer._store):
                store.close()


def _play(sides: list[Side], rng: random.Random, her_round: int, steps: int, setbacks: bool) -> Found:
    reports, delay, settles = list[Report](), list[tuple[float, int, Shown, float]](), np.inf
    for at in range(steps):
        dt = rng.choice((0.05, 0.25, 0.25, 0.5, 1.0))
        jump = rng.choice((0.3, 3.0)) if setbacks and rng.random() < 0.1 else 0.0
        for side in sides:
            side.world.time += dt - jump
        now, act, front = sides[0].world.time, rng.random(), rng.randrange(2)
        if act < 0.45:
            count, seconds = rng.randrange(0, 9), rng.choice((0.25, 0.25, 0.5, 4.0))
            report = reports.pop(rng.randrange(len(reports))) if reports and rng.random() < 0.7 else None
            id_blocks = [side.reserve_ids(front, count, seconds, report) for side in sides]
            if id_blocks[0] != id_blocks[1]:
                return Found(0.0, f"ID blocks {id_blocks}")
            if (id_block := id_blocks[0]) is not None:
                used = rng.randrange(id_block.end - id_block.first + 1)
                if id_block.first <= her_round < id_block.end:
                    used, settles = (
                        max(used, her_round + 1 - id_block.first),
                        id_block.expires_at + sides[0].spec.deadline,
                    )
                silent = tuple(
                    n
                    for n in range(id_block.first, id_block.first + used)
                    if n != her_round and rng.random() < 0.1
                )
                reports.append(Report(id_block.first, used, silent))
                for number in range(id_block.first, id_block.first + used):
                    if number != her_round and rng.random() < 0.9:
                        type_ = rng.randrange(4) if sides[0].spec.contexts else 0
                        shown = sides[0].shown(number, id_block.version, type_, False)
                        delay.append((now + rng.choice((0.0, 0.5, 1.5, 3.0)), number, shown, rng.random()))
                for side in sides:
                    side.come(id_block)
        due = [each for each in delay if each[0] <= now]
        delay = [each for each in delay if each[0] > now]
        first, kill = rng.random() < 0.5, rng.randrange(12) if rng.random() < 0.3 else -1
        erased = [each[1] for each in due if rng.random() < 0.05]
        looks, event = rng.random() < 0.6, rng.random() < 0.02
        for side in sides:
            side.put(
                front,
                [(n, msgspec.msgpack.encode(side.said(shown, share))) for _, n, shown, share in due],
                first,
            )
            if erased:
                side.stores[0].erase(1, erased)
            if event:
                body = msgspec.json.encode({"retire": [ITEMS[at % 8]], "appear": [ITEMS[(at + 4) % 8]]})
                side.stores[0].add_event(1, "items", body, "test")
            if looks:
                side.step(kill)
        views = [side.view() for side in sides]
        if views[0] != views[1]:
            return _judged(sides, views, views[0]["now"] >= settles)
    return Found(0.0)


def _judged(sides: list[Side], views: list[dict[str, Any]], settled: bool) -> Found:
    """The first difference: it must be that of a release of hers, by what she is charged for at most."""
    apart = [name for name in views[0] if views[0][name] != views[1][name]]
    if not settled:
        return Found(0.0, f"before her deadline: {apart}")
    if sides[0].spec.feedback == "full":
        return Found(0.0, "" if "releases" in apart else f"{apart}", True)
    names = [{row[1]: row[2] for row in view["releases"]} for view in views]
    differ = sorted(name for name in names[0] | names[1] if names[0].get(name) != names[1].get(name))
    cells = [name for name in differ if not name.endswith(".plan")]
    if len(cells) != 1:
        return Found(0.0, f"{apart}, {differ}")
    (one, sensitivity, ticks), (other, *_) = (side.drawn[cells[0]] for side in sides)
    used = float((np.abs(one - other) / (sensitivity * ticks)).sum())
    strange = set(apart) - {"releases", "ledger", "menus"}
    return Found(used, f"{strange}" if strange else "" if used <= 1 else f"{used} of the charge", True)
