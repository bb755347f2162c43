"""A store in memory with plausible public data, which raises on every private read."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import numpy as np

from diminuendo.privacy import Budget, Ledger, Releases
from diminuendo.privacy.budget import Guarantee
from diminuendo.privacy.events import Event, Gaussian, Laplace, NormalColumns
from diminuendo.randomness import SystemSource
from diminuendo.randomness.words import SecretRandomness
from diminuendo.service.records import PlacementSpec, PublicMenu, Report
from diminuendo.service.store import EventRow, IdBlockRow, MenuRow, PlacementRow

TEAS = (
    "Assam", "Bergamot", "Camomile", "Darjeeling", "Earl Grey", "First Flush", "Genmaicha", "Hojicha", "Iron Goddess",
    "Jasmine", "Keemun", "Lapsang", "Matcha", "Nilgiri", "Oolong", "Pu-erh", "Quince", "Rooibos", "Sencha", "Tung Ting",
    "Uva", "Verbena", "White Peony", "Yunnan", "Zealong",
)  # fmt: skip
HOSTILE = "<script>window.hacked=1</script>\"'&"
BEGAN = 1_795_000_000.0
GUARANTEE = Guarantee(1.0, 0.0, "replace one round", f"guarantee of {HOSTILE}", True).as_json()


class Private(AssertionError):
    """A private read."""


@dataclass(frozen=True)
class FakeBooks:
    """A ledger and its releases, to be read."""

    path: Path
    releases: Releases

    @property
    def lines(self) -> Any:
        return self

    def read(self) -> bytes:
        return self.path.read_bytes() if self.path.exists() else b""


class FakeStore:
    """The store of a shop that sells tea, after a day."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.clock, self.away = folder, BEGAN, False
        self._populations: dict[str, bytes] = {}
        self._placements: list[PlacementRow] = []
        self._menus: dict[int, list[MenuRow]] = {}
        self._id_blocks: dict[int, list[IdBlockRow]] = {}
        self._events: dict[int, list[EventRow]] = {}
        self._beats: dict[str, tuple[float, str]] = {}

    # Public reads.

    def now(self) -> float:
        if self.away:
            raise OSError("the disk is gone")
        return self.clock

    def populations(self) -> dict[str, bytes]:
        return dict(self._populations)

    def placements(self) -> list[PlacementRow]:
        return list(self._placements)

    def menus(self, placement: int, after: int = 0) -> list[MenuRow]:
        return [row for row in self._menus[placement] if row.version > after]

    def id_blocks(self, placement: int, first: int) -> list[IdBlockRow]:
        return [row for row in self._id_blocks[placement] if row.first >= first]

    def events(self, placement: int, after: int = 0) -> list[EventRow]:
        return [row for row in self._events[placement] if row.seq > after]

    def heartbeats(self) -> dict[str, tuple[float, str]]:
        return dict(self._beats)

    def books(self, population: str, fencing_token: int | None) -> Any:
        assert fencing_token is None, "to be read only"
        return FakeBooks(self.folder / population, Releases(self.folder / f"{population}.releases"))

    # Private reads.

    def _private(self, *_: object) -> NoReturn:
        raise Private

    answers = erased = snapshot = erase_user = put = erase = publish = id_block = lead = stop_id_blocks = (
        _private
    )

    # Writes of tests.

    def heartbeat(self, name: str, note: str = "") -> None:
        self._beats[name] = (self.clock, note)

    def population(self, name: str, budget: Budget) -> Ledger:
        self._populations[name] = json.dumps({"epsilon": budget.epsilon, "delta": budget.delta}).encode()
        return Ledger.open(self.folder / name, budget)

    def placement(self, name: str, spec: PlacementSpec) -> int:
        number = len(self._placements) + 1
        row = PlacementRow(number, name, spec.population, msgspec.json.encode(spec), self.clock)
        self._placements.append(row)
        self._menus[number], self._id_blocks[number], self._events[number] = [], [], []
        return number

    def menu(self, placement: int, at: float | None = None, **fields: Any) -> None:
        version = len(self._menus[placement]) + 1
        menu = PublicMenu(version=version, **{"guarantee": GUARANTEE} | fields)
        row = MenuRow(version, msgspec.json.encode(menu), self.clock if at is None else at)
        self._menus[placement].append(row)

    def hand_out(self, placement: int, count: int) -> None:
        rows = self._id_blocks[placement]
        first = rows[-1].end if rows else 0
        report = Report(first, count)
        version = len(self._menus[placement])
        rows.append(IdBlockRow(first, first + count, version, self.clock, self.clock + 5, report))

    def event(self, placement: int, kind: str, body: dict[str, Any], by: str) -> None:
        rows = self._events[placement]
        rows.append(EventRow(len(rows) + 1, placement, self.clock, kind, json.dumps(body).encode(), by))


def tea_shop(folder: Path) -> FakeStore:
    """Four placements of two populations: a global slate, a block of slates, a slate per context, one just begun."""
    folder.mkdir(parents=True, exist_ok=True)
    store, rng = FakeStore(folder), random.Random(5)
    secret = SecretRandomness(SystemSource())
    with (
        store.population("customers", Budget(2.0, 1e-6)) as ledger,
        store.population("newcomers", Budget(1.0, 0.0, accountant="pure")),
    ):
        front = store.placement("front-page", PlacementSpec("customers", TEAS, 5, "full", 40_000))
        mail = store.placement(
            "newsletter",
            PlacementSpec("customers", TEAS[:12], 3, "click", 9_000, epsilon=0.8, deadline=86_400.0),
        )
        lands: dict[str, tuple[str, ...]] = {"region": ("north", "south"), "device": ("phone", "desk")}
        basket = store.placement(
            "basket",
            PlacementSpec(
                "customers",
                (*TEAS[:24], HOSTILE),
                4,
                "full",
                20_000,
                contexts=lands,
                max_rounds_per_user=3,
                epsilon=0.5,
            ),
        )
        store.placement(
            "spring-sale", PlacementSpec("newcomers", TEAS[4:18], 4, "bandit", 12_000, learner="private")
        )
        store.menu(4, kind="random", slots=4, first=0, end=1_200, fallback=(0, 3, 7, 9))
        _basket(store, basket, ledger, secret)
        _front_page(
            store, front, ledger, secret, rng, lambda block: _newsletter(store, mail, ledger, secret, block)
        )
        row = (24, 2, 14, 8)
        store.menu(
            basket, store.clock + 12, kind="types", slots=4, first=3_120, end=None, fallback=row, slates=(row,) * 9,
            releases=2, head=ledger.head,
        )  # fmt: skip
    store.heartbeat("trainer")
    store.heartbeat("front-0")
    return store


def _release(
    ledger: Ledger, event: Event, name: str, about: str, size: int, secret: SecretRandomness
) -> None:
    ledger.bought(event, name, about).once("sums", lambda: np.arange(size, dtype=np.int64), secret)


def _front_page(
    store: FakeStore,
    number: int,
    ledger: Ledger,
    secret: SecretRandomness,
    rng: random.Random,
    meanwhile: Callable[[int], None],
) -> None:
    mine, slate, rounds = ledger.named("front-page"), [3, 17, 0, 9, 12], 0
    store.menu(number, kind="random", slots=5, first=0, end=None, fallback=(0, 1, 2, 3, 4), head=ledger.head)
    for release in range(22):
        size = int(200 * 1.22**release)
        for _ in range(4):
            store.clock += size / 4
            store.hand_out(number, size // 4)
        rounds += 4 * (size // 4)
        squares = tuple(0.006 * 0.8 ** (release - batch) for batch in range(release + 1))
        _release(
            mine,
            NormalColumns(0, squares, "users"),
            f"users-{release:06d}",
            "a chain over 24 items",
            24,
            secret,
        )
        if release % 4 == 1 and release < 20:
            meanwhile(release // 4)
        if release == 9:
            store.event(number, "items", {"retire": ["Quince"], "why": "out of stock"}, "mara@shop")
        if release == 15:
            store.event(number, "items", {"appear": ["Quince"], "why": "back again"}, "mara@shop")
        for _ in range(2 if release < 6 else int(rng.random() < 0.4)):
            if rng.random() < 0.6:
                slate[rng.randrange(5)] = rng.choice([item for item in range(25) if item not in slate])
            else:
                one = rng.randrange(4)
                slate[one : one + 2] = slate[one + 1], slate[one]
        row = tuple(slate)
        store.menu(
            number, kind="one", slots=5, first=rounds, end=None, fallback=row, slates=(row,), releases=release + 1,
            head=ledger.head,
        )  # fmt: skip
    for _ in range(8):
        store.clock += 60
        store.hand_out(number, 55)


def _newsletter(store: FakeStore, number: int, ledger: Ledger, secret: SecretRandomness, block: int) -> None:
    if block:
        name, about = f"counts-{block:06d}", "each user in one lot of counts"
        _release(ledger.named("newsletter"), Laplace(0.12), name, about, 4, secret)
    slates = ((4, 2, 9), (4, 9, 2), (1, 4, 9), (4, 2, 7))
    shown = (0,) * 240 + (1,) * 100 + (2,) * 40 + (3,) * 20
    store.menu(
        number, kind="rounds", slots=3, first=400 * block, end=400 * block + 400, fallback=slates[block % 2],
        slates=slates, shown=shown, releases=block, head=ledger.head,
    )  # fmt: skip
    store.hand_out(number, 400)


def _basket(store: FakeStore, number: int, ledger: Ledger, secret: SecretRandomness) -> None:
    mine = ledger.named("basket")
    _release(mine, Gaussian(0.006), "users", "a chain over 25 items, by 2 values, by 2 values", 125, secret)
    rows = [(24, 2, 14, 8)] * 4 + [(24, 2, 14, 19)] * 3 + [(24, 6, 14, 8)] * 2
    store.menu(
        number, kind="types", slots=4, first=0, end=None, fallback=(24, 2, 14, 8), slates=tuple(rows), releases=1,
        head=ledger.head,
    )  # fmt: skip
    store.hand_out(number, 3_120)
