"""The service itself under simulation: its trainers, front ends and store, in an order that follows from a seed.

Trainers are threads that are let on one transaction at a time (turns.py), so that one may be frozen in the midst of
anything while another takes over. Calls are lost before or after they took effect; trainers and front ends are killed;
the wall clock jumps. Noise is nearly 0 (epsilon 100,000: nobody is protected here) and everybody who answers says 1, so
what is published of a block is how many of its answers counted, and that is compared with which were in time.
"""

from __future__ import annotations

import io
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

import msgspec
import numpy as np

from diminuendo.errors import LedgerDamaged, StoreUnavailable, Superseded
from diminuendo.learners.remote_rounds import RemoteRounds
from diminuendo.privacy.books.releases import digest, unpacked
from diminuendo.privacy.ledger import Ledger
from diminuendo.service.front import id_blocks as front_id_blocks
from diminuendo.service.front import placement as front_placement
from diminuendo.service.front.tokens import Tokens
from diminuendo.service.log import Log
from diminuendo.service.records import PlacementSpec, PopulationSpec, PublicMenu, Report
from diminuendo.service.store.sqlite import SqliteStore
from diminuendo.service.trainer.trainer import Trainer
from diminuendo.types import Words
from tests.protocol.shop import Shop
from tests.protocol.turns import DIE, DIE_AFTER, GO, LOST_AFTER, LOST_BEFORE, Turn, taking_turns
from tests.protocol.values import Broken
from tests.service.world import INSIDE

TICKS = 1 << 10
"""What one answer adds to a total that is published (learners/slates/totals.py)."""
SPEC = PlacementSpec(
    "everybody", tuple("abc"), 1, "bandit", users=200, learner="slate-totals", epsilon=1e5, delta=0.0, deadline=1.0,
    per_second=0.2, publish_interval=0.5, publish_delay=0.5,
)  # fmt: skip
START, RESTS = 1_000.0, 6.0
EVENTS, TROUBLE = 2_500, 0.04
"""Events of a run, and how often something goes wrong in one."""


class Played(NamedTuple):
    """What came of a run."""

    steps: int
    releases: int
    answers: int
    """How many were acknowledged."""
    fencing_tokens: int
    broken: str = ""


class Simulation:
    """One run. `trouble` is how often something goes wrong."""

    def __init__(self, folder: Path, seed: int, *, trouble: float = TROUBLE) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.rng, self.trouble = folder, random.Random(seed), trouble
        self.time = START
        self.tokens = Tokens({1: bytes(32)}, 1)
        self.inside = SqliteStore(folder / "store.db", wall=lambda: self.time)
        self.inside.add_population("everybody", msgspec.json.encode(PopulationSpec(1e5, 0.0)))
        self.inside.add_placement("home", "everybody", msgspec.json.encode(SPEC))
        self.trainers: list[Turn] = []
        self.stores: dict[int, Trainer] = {}
        self.shops: list[tuple[Shop, list[str]]] = []
        self.waiting: list[str] = []
        self.ghost = Seen()
        self.slow: set[tuple[str, int]] = set()
        """Which trainers and front ends do something seldom."""
        self.rests: dict[int, float] = {}
        """Until when trainers that were killed or superseded are not begun again."""

    # Who is there.

    def _opened(self, ask: Callable[[bool], str]) -> SqliteStore:
        return taking_turns(SqliteStore(self.folder / "store.db", wall=lambda: self.time), ask)

    def _trainer(self, number: int) -> Turn:
        """A trainer, until it is killed or finds that the store was rolled back."""

        def work(turn: Turn) -> None:
            store = self._opened(lambda writes: turn.stop(writes=writes))
            try:
                trainer = Trainer(
                    store, self.folder / "keys", name=f"trainer-{number}", log=Log(io.StringIO()), listens=0.0,
                    rng=lambda: OwnSource(self.rng.getrandbits(64)),
                )  # fmt: skip
                self.stores[number] = trainer
                while True:
                    turn.stop(idle=True)
                    try:
                        trainer.step()
                    except StoreUnavailable:
                        continue
            except (Superseded, StoreUnavailable, LedgerDamaged):
                return
            finally:
                self.stores.pop(number, None)
                store._file._db.close()

        return Turn(work)

    def _shop(self) -> tuple[Shop, list[str]]:
        told = [GO]

        def ask(writes: bool) -> str:
            result, told[0] = told[0], GO
            return result

        return Shop(self._opened(ask), self.tokens, lambda: self.time), told

    # What happens.

    def play(self, steps: int, trainers: int = 2, shops: int = 2, rolled_back: bool = False) -> Played:
        """So many events; what was published is compared with what was said in time.

        `rolled_back`: the store is copied in the midst of it, and later the copy takes its place.
        """
        at, copy = 0, sqlite3.connect(":memory:")
        record = RemoteRounds.record_arrivals

        def watched(door: RemoteRounds, first: int, counts: Any, types: Any = None) -> None:
            self.ghost.record_arrivals(first, [bool(each) for each in counts])
            record(door, first, counts, types)

        monotonic = SimpleNamespace(monotonic=lambda: self.time)
        with (
            mock.patch.object(front_id_blocks, "time", monotonic),
            mock.patch.object(front_placement, "time", monotonic),
            mock.patch("diminuendo.service.trainer.warm_up.WarmUps.once"),
            mock.patch("os.fsync"),
            mock.patch.object(RemoteRounds, "record_arrivals", watched),
        ):
            self.trainers = [self._trainer(number) for number in range(trainers)]
            self.shops = [self._shop() for _ in range(shops)]
            try:
                for at in range(steps):
                    if rolled_back and at == steps // 2:
                        self.inside._file._db.backup(copy)
                    if rolled_back and at == 3 * steps // 4:
                        self._put_back(copy)
                    self._happen()
                self._totals()
            except Broken as broken:
                return self._played(at, str(broken))
            finally:
                for each in self.trainers:
                    each.end()
                for shop, _ in self.shops:
                    shop.close()
                self.inside.close()
                copy.close()
        return self._played(steps, "")

    def _played(self, steps: int, broken: str) -> Played:
        ghost = self.ghost
        return Played(steps, len(ghost.totals), len(ghost.acknowledged), len(ghost.fencing_tokens), broken)

    def _put_back(self, copy: sqlite3.Connection) -> None:
        """The store is as it was; trainers are begun again, front ends go on."""
        for each in self.trainers:
            each.end()
        self._look(None)
        copy.backup(self.inside._file._db)
        known = {name for (name,) in self.inside._file.rows("SELECT name FROM releases")}
        self.ghost.rolled_back = True
        self.ghost.lost = self.ghost.seen(self.inside.now()) - known
        self.ghost.menus = {}

    def _happen(self) -> None:
        rng, trouble = self.rng, self.trouble
        act = rng.random()
        self.inside.now()  # whoever always looks sees the latest time that anybody can have seen
        if act < 0.12:
            self.time += rng.choice((0.05, 0.1, 0.25, 0.25, 0.5))
            if rng.random() < trouble:
                self.time += rng.choice((-3.0, -0.5, 3.0, 15.0))
            if rng.random() < 0.04:  # somebody else is slow for a while
                names = [("trainer", each) for each in range(len(self.trainers))]
                names += [("shop", each) for each in range(len(self.shops))]
                self.slow = {name for name in names if rng.random() < 0.4}
        elif act < 0.62:
            number = rng.randrange(len(self.trainers))
            if ("trainer", number) not in self.slow or rng.random() < 0.02:
                self._train(number, trouble)
        else:
            number = rng.randrange(len(self.shops))
            if ("shop", number) not in self.slow or rng.random() < 0.02:
                self._serve(number, trouble)

    def _train(self, number: int, trouble: float) -> None:
        """A trainer goes on for a while, or is lost."""
        rng = self.rng
        for _ in range(rng.choice((1, 3, 10, 40))):
            turn = self.trainers[number]
            if turn.over:
                if self.time < self.rests.setdefault(number, self.time + RESTS):
                    return
                self.trainers[number] = turn = self._trainer(number)
                del self.rests[number]
            told = GO
            if rng.random() < trouble / 4:
                told = rng.choice((LOST_BEFORE, LOST_AFTER, DIE, DIE_AFTER))
            stored = self.stores.get(number)
            writes = turn.writes
            turn.on(told if writes or told not in (LOST_AFTER, DIE_AFTER) else GO)
            if writes:
                self._look(stored or self.stores.get(number))
            if self.ghost.complaint:
                raise Broken(self.ghost.complaint)
            if turn.idle and rng.random() < 0.5:
                break

    def _serve(self, number: int, trouble: float) -> None:
        rng = self.rng
        shop, told = self.shops[number]
        if rng.random() < trouble:
            told[0] = rng.choice((LOST_BEFORE, LOST_AFTER))
            if rng.random() < 0.3:
                shop.close()
                self.shops[number] = shop, told = self._shop()
        act = rng.random()
        try:
            if act < 0.25 or shop.place is None:
                shop.look()
            elif act < 0.7:
                for _ in range(rng.randrange(1, 4)):
                    if (result := shop.show()) is not None and result[1].counts:
                        self.ghost.show(result[1].round)
                        if rng.random() < 0.85:
                            self.waiting.append(result[0])
            elif self.waiting:
                many = [rng.choice(self.waiting) for _ in range(rng.randrange(1, 4))]
                for token in shop.answer(list(dict.fromkeys(many))):
                    self.ghost.acknowledged.setdefault(self.tokens.open(token).round, self.inside.now())
                    if rng.random() < 0.9:  # others say it again
                        self.waiting.remove(token)
        except StoreUnavailable:
            pass
        self._look(None)

    # What is promised.

    def _look(self, trainer: Trainer | None) -> None:
        """Everything new that can be seen in the store."""
        rows, ghost = self.inside._file.rows, self.ghost
        for number, at in rows("SELECT round, at FROM answers WHERE placement = 1 AND encrypted IS NOT NULL"):
            ghost.stored.setdefault(number, at)
        id_blocks = rows("SELECT first, past, expires_at, at, report, reported_at FROM id_blocks")
        for first, end, expires, taken, said, reported in id_blocks:
            ghost.reserve_ids(first, end, expires + SPEC.deadline, taken)
            if said is not None and reported <= expires + SPEC.deadline:
                ghost.reports[first] = msgspec.json.decode(said, type=Report)
        for name, body in rows("SELECT name, body FROM releases"):
            if ghost.releases.setdefault(name, body) != body and not ghost.rolled_back:
                raise Broken("a release of one name has two values")
            if name in ghost.lost:
                raise Broken("what was seen is drawn again")
        now = rows("SELECT max(at, ?) FROM clock", self.time)[0][0]
        for version, body, effective in rows(
            "SELECT version, body, effective_at FROM menus WHERE version > ?", max(ghost.menus, default=0)
        ):
            menu = msgspec.json.decode(body, type=PublicMenu)
            ghost.menus[version] = menu
            ghost.shows.append((effective, set(ghost.releases)))
            if effective % SPEC.publish_interval:
                raise Broken("a menu takes effect between two ticks")
            if effective < now and not ghost.rolled_back and trainer is not None:
                raise Broken("a menu takes effect when it is ready")
            leads = leading(self.inside)
            ghost.fencing_tokens.add(leads)
            if trainer is not None and epoch_of(trainer) != leads:
                raise Broken("somebody published who does not lead any more")
            lines = b"".join(line for (line,) in rows("SELECT line FROM ledger ORDER BY seq"))
            if menu.head.encode() not in lines and not ghost.rolled_back:
                raise Broken("a menu is made of what nobody has paid for")

    def _totals(self) -> None:
        """Each total is how many answers of its block were in time."""
        rows, ghost = self.inside._file.rows, self.ghost
        lines = b"".join(line for (line,) in rows("SELECT line FROM ledger ORDER BY seq"))
        if not lines or ghost.rolled_back:
            return
        drawn = ledger_of(self.inside).drawn
        names = [each.name for each in drawn]
        if any(each.digest != digest(unpacked(ghost.releases[each.name], each.name)) for each in drawn):
            raise Broken("a release is not what was entered")
        if len(names) > len(set(names)):
            raise Broken("a release was entered twice")
        blocks = sorted({(menu.first, menu.end) for menu in ghost.menus.values() if menu.end is not None})
        for name, (first, end) in zip([each for each in names if ".plan" not in each], blocks, strict=False):
            total = int(unpacked(ghost.releases[name], name).sum()) / TICKS
            in_time = {n for n, at in ghost.stored.items() if first <= n < end and at <= ghost.deadlines[n]}
            sure = {n for n in ghost.acknowledged if first <= n < end and ghost.sure(n)}
            ghost.totals[name] = total
            if sure - set(ghost.stored):
                raise Broken("an answer that was acknowledged in time is lost")
            if round(total) < len(in_time):
                raise Broken("an answer that was in time is not counted")
            if round(total) > len(in_time):
                raise Broken("more is counted than was said in time")


class OwnSource:
    """Coins that say they are secure, and follow from a seed."""

    secure = True

    def __init__(self, seed: int) -> None:
        self._words = np.random.Philox(seed)

    def public(self, count: int) -> Words:
        return np.asarray(self._words.random_raw(count), dtype=np.uint64)

    secret = public


class Seen:
    """All that was ever seen."""

    def __init__(self) -> None:
        self.shown: set[int] = set()
        self.acknowledged: dict[int, float] = {}
        self.stored: dict[int, float] = {}
        self.deadlines: dict[int, float] = {}
        self.taken: dict[int, float] = {}
        self.releases: dict[str, bytes] = {}
        self.menus: dict[int, PublicMenu] = {}
        self.totals: dict[str, float] = {}
        self.fencing_tokens: set[int] = set()
        self.reports: dict[int, Report] = {}
        self.shows: list[tuple[float, set[str]]] = []
        """When each menu takes effect, and which releases there were when it was published."""
        self.complaint = ""
        """What is wrong, where whoever noticed could not say so."""
        self.rolled_back = False
        self.lost: set[str] = set()
        """Releases that somebody has seen, and that the store has forgotten."""

    def seen(self, now: float) -> set[str]:
        """Releases that a menu in effect is made of."""
        return set[str]().union(*(names for effective, names in self.shows if effective <= now))

    def record_arrivals(self, first: int, counts: list[bool]) -> None:
        """A trainer was told who came in the rounds of an ID block: what was reported in time."""
        report = self.reports.get(first)
        used = len(counts) if report is None else report.used
        if not self.rolled_back and counts != [at < used for at in range(len(counts))]:
            self.complaint = "who came does not follow from what was said in time"

    def show(self, number: int) -> None:
        """Somebody was shown that round."""
        if number in self.shown and not self.rolled_back:
            raise Broken("a round was shown twice")
        self.shown.add(number)

    def reserve_ids(self, first: int, end: int, deadline: float, taken: float) -> None:
        """An ID block that is in the store."""
        if self.taken.setdefault(first, taken) != taken and not self.rolled_back:
            raise Broken("a round was handed out twice")
        for number in range(first, end):
            self.deadlines[number] = deadline

    def sure(self, number: int) -> bool:
        """Whether an answer was acknowledged before its deadline."""
        return self.acknowledged[number] <= self.deadlines[number]


def leading(store: SqliteStore) -> int:
    """The fencing token of whoever leads."""
    return store.leaders()["everybody"].fencing_token


def epoch_of(trainer: Trainer) -> int | None:
    """The fencing token in which a trainer believes that it leads."""
    fence = trainer.held.get("everybody")
    return None if fence is None else fence.fencing_token


def ledger_of(store: SqliteStore) -> Ledger:
    """The ledger, read from its first line to its last."""
    return Ledger.on(store.books("everybody", INSIDE))
