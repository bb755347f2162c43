"""A small world around a trainer: time that tests move, a front end in a few lines, coins that repeat themselves."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from diminuendo.privacy.ledger import Ledger, Paid
from diminuendo.randomness.words import SecretRandomness
from diminuendo.service.log import Log
from diminuendo.service.records import PlacementSpec, PopulationSpec, PublicMenu, Report, Said, Shown
from diminuendo.service.seal import Sealer
from diminuendo.service.store import AnswerRow, IdBlock
from diminuendo.service.store.sqlite import SqliteStore
from diminuendo.service.trainer.trainer import Trainer
from diminuendo.streams import taste_groups
from diminuendo.types import Ints, Words

N_ITEMS, SLOTS, USERS = 8, 3, 3000
TASTES = taste_groups(USERS, N_ITEMS, groups=3, items_per_group=4, seed=4)
ITEMS = tuple(f"item {number}" for number in range(N_ITEMS))
TICK = 0.25
INSIDE = 0
"""The fencing token of nobody: who has one reads all books, and who does not lead writes nothing."""


class SameSource:
    """Coins that say they are secure, and are not: the noise of a release follows from its name."""

    secure = True

    def __init__(self) -> None:
        self.begin("")

    def begin(self, name: str) -> None:
        seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])
        self._secret = np.random.Philox(seed)

    def public(self, count: int) -> Words:
        return np.full(count, 12345, dtype=np.uint64)

    def secret(self, count: int) -> Words:
        return np.asarray(self._secret.random_raw(count), dtype=np.uint64)


class Watched:
    """Who is told before something is drawn, and when it was entered."""

    reached: Callable[[str], None] = staticmethod(lambda point: None)


def repeat_noise(monkeypatch: pytest.MonkeyPatch) -> Watched:
    """Let noise follow from the names of releases."""
    once, watched = Paid.once, Watched()

    def named(self: Paid, part: str, draw: Callable[[], Ints], secret: SecretRandomness) -> Ints:
        def begun() -> Ints:
            secret.empty()
            secret.digits.empty()
            rng: Any = secret.rng
            if isinstance(rng, SameSource):  # in a rehearsal there are others
                rng.begin(f"{self.name}.{part}")
            secret.digits.rng = rng
            watched.reached("to be drawn")
            return draw()

        result = once(self, part, begun, secret)
        watched.reached("entered")
        return result

    monkeypatch.setattr(Paid, "once", named)
    return watched


def spec(learner: str, feedback: Any, **more: Any) -> PlacementSpec:
    said: dict[str, Any] = {
        "users": USERS,
        "epsilon": 8.0,
        "deadline": 2.0,
        "per_second": 60.0,
        "publish_interval": TICK,
    }
    return PlacementSpec(
        "users", ITEMS, SLOTS, feedback, **said | {"learner": learner, "publish_delay": TICK} | more
    )


CONTEXTS = {"group": ("a", "b", "c")}
KINDS: dict[str, PlacementSpec] = {
    "totals": spec("slate-totals", "bandit"),
    "clicks by type": spec("slate-clicks", "click", contexts=CONTEXTS),
    "clicks, hidden": spec("slate-clicks", "click", contexts=CONTEXTS, private_contexts=True),
    "greedy": spec("overlap-greedy", "full"),
    "greedy by type": spec("overlap-greedy", "full", contexts=CONTEXTS),
    "epochs": spec("epoch-greedy", "full", delta=0.0),
}


class World:
    """A store in a folder, one trainer and one front end, in a time of its own."""

    def __init__(self, folder: Path, **placements: PlacementSpec) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.time, self.written = folder, 1000.0, io.StringIO()
        self.store = self.opened()
        first = next(iter(placements.values()))
        budget = PopulationSpec(
            20.0, first.delta, max(each.max_rounds_per_user for each in placements.values())
        )
        self.store.add_population("users", msgspec.json.encode(budget))
        self.spec = {
            self.store.add_placement(name, "users", msgspec.json.encode(each)): each
            for name, each in placements.items()
        }
        self.front = {number: Front(self, number, each) for number, each in self.spec.items()}

    def opened(self) -> SqliteStore:
        return SqliteStore(self.folder / "store.db", wall=lambda: self.time)

    def trainer(
        self,
        store: SqliteStore | None = None,
        reached: Callable[[str], None] = lambda point: None,
        **more: Any,
    ) -> Trainer:
        """One that listens to nobody before it begins, unless something else is said."""
        told: dict[str, Any] = {
            "rng": SameSource,
            "reached": reached,
            "instance": "one",
            "log": Log(self.written),
            "listens": 0.0,
        } | more
        return Trainer(store or self.opened(), self.folder / "keys", **told)

    def play(self, ticks: int, step: Callable[[], Any]) -> None:
        for _ in range(ticks):
            self.time += TICK
            for front in self.front.values():
                front.publish_interval()
            step()

    def releases(self) -> dict[str, bytes]:
        books = self.store.books("users", INSIDE)
        return {name: books.releases.once(name, _never).tobytes() for name in books.releases.names()}

    def menu(self, placement: int = 1) -> PublicMenu:
        return msgspec.json.decode(self.store.menus(placement)[-1].body, type=PublicMenu)

    def audited(self) -> Ledger:
        """The ledger as it is written, checked line by line."""
        return Ledger.on(self.store.books("users", INSIDE))

    def lines(self) -> list[bytes]:
        """The ledger as it is written, also what is not shown yet."""
        return self.store.books("users", INSIDE).lines.read().splitlines(keepends=True)


def _never() -> Ints:
    raise AssertionError("this was not released")


class Front:
    """Chooses by menus, for a few users at each tick; most answer, some late, some never."""

    def __init__(self, world: World, placement: int, spec: PlacementSpec) -> None:
        self.world, self.number, self.spec = world, placement, spec
        self.rng = np.random.default_rng(placement)
        self.report: Report | None = None
        self.delay: list[tuple[float, int, bytes]] = []
        self.menus: dict[int, PublicMenu] = {}
        self.shown: dict[int, tuple[int, tuple[int, ...]]] = {}
        self.per_tick, self.fallbacks = 12, 0
        self.said: dict[int, tuple[float, Said]] = {}

    def publish_interval(self) -> None:
        store, time = self.world.store, self.world.time
        self.look()
        due = [each for each in self.delay if each[0] <= time]
        self.delay = [each for each in self.delay if each[0] > time]
        store.put([AnswerRow(self.number, number, self.encrypted(said), at) for at, number, said in due])
        id_block = store.reserve_ids(self.number, self.per_tick, 2 * TICK, self.report)
        self.report = None
        if id_block is None:
            self.fallbacks += self.per_tick
            return
        self.report = self.show(id_block)

    def look(self) -> None:
        """Read the menus that are new."""
        for row in self.world.store.menus(self.number, max(self.menus, default=0)):
            self.menus[row.version] = msgspec.json.decode(row.body, type=PublicMenu)

    def encrypted(self, said: bytes) -> bytes:
        number, key = self.menus[max(self.menus)].seal.split(":")
        return Sealer(bytes.fromhex(key), int(number)).seal(said)

    def show(self, id_block: IdBlock) -> Report:
        """The rounds of an ID block but the last, to users whose type is that of their round."""
        menu, types = self.menus[id_block.version], list[int]()
        used = max(1, id_block.end - id_block.first - 1)
        for number in range(id_block.first, id_block.first + used):
            types.append(number % 3 + 1 if self.spec.contexts else 0)
            slate = chosen(menu, number, types[-1], self.rng)
            self.shown[number] = id_block.version, slate
            if self.rng.random() < 0.9:
                said = self.say(Shown(self.number, number, id_block.version, True, slate, types[-1]))
                at = self.world.time + float(self.rng.uniform(0, 1.4 * self.spec.deadline))
                self.delay.append((at, number, msgspec.msgpack.encode(said)))
                self.said[number] = at, said
        public = bool(self.spec.contexts) and not self.spec.private_contexts
        return Report(id_block.first, used, types=tuple(types) if public else ())

    def say(self, shown: Shown) -> Said:
        someone, slate = TASTES[shown.round % USERS], [item for item in shown.slate if item >= 0]
        if self.spec.feedback == "bandit":
            return Said(shown, reward=float(someone.value(slate)))
        if self.spec.feedback == "click":
            click = TASTES.click(shown.round % USERS, tuple(slate))
            return Said(shown, click=None if click is None else shown.slate.index(slate[click]))
        row = TASTES.matrices[0][[shown.round % USERS]]
        return Said(shown, ratings=dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)))


def chosen(menu: PublicMenu, number: int, kind: int, rng: np.random.Generator) -> tuple[int, ...]:
    """The slate of a round, as records.py says it."""
    match menu.kind:
        case "one":
            return menu.slates[0]
        case "types":
            return menu.slates[kind]
        case "rounds":
            return menu.slates[menu.shown[number - menu.first]]
        case "groups":
            return menu.slates[menu.decks[menu.groups[kind]][number - menu.first]]
        case _:
            assert menu.lists is not None
            return tuple(rng.permutation(menu.lists.items)[: menu.slots].tolist())
