"""ID blocks: rounds are shown once, before they expire, fetched ahead, reported; nobody waits for what is not there."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from diminuendo.errors import StoreUnavailable
from diminuendo.service.front import id_blocks
from diminuendo.service.front.choose import Chooser
from diminuendo.service.front.id_blocks import Rounds
from diminuendo.service.records import PublicMenu, Report
from diminuendo.service.store import IdBlock, Store

MENU = Chooser(PublicMenu(1, "one", 1, 0, None, (0,), ((0,),)), "ab", False)


class Counter:
    """Hands out rounds, and remembers what was said of them."""

    def __init__(self, end: int = 10**9, lasts: float = 5.0) -> None:
        self.next, self.end, self.lasts = 0, end, lasts
        self.sizes: list[int] = []
        self.reports: list[Report] = []
        self.calls = 0
        self.away = False
        self.takes = 0.0

    def reserve_ids(
        self, placement: int, count: int, seconds: float, report: Report | None
    ) -> IdBlock | None:
        self.calls += 1
        time.sleep(self.takes)
        if self.away:
            raise StoreUnavailable("away")
        if report is not None:
            self.reports.append(report)
        first, self.next = self.next, min(self.next + count, self.end)
        if count == 0 or first == self.next:
            return None
        self.sizes.append(count)
        return IdBlock(first, self.next, 1, 1000.0, 1000.0 + self.lasts)


def run(store: Counter, work: Any, types: bool = False) -> None:
    async def inside() -> None:
        with ThreadPoolExecutor(2) as pool:
            rounds = Rounds(cast(Store, store), 1, 60.0, types, lambda id_block: MENU, pool)
            await work(rounds)

    asyncio.run(inside())


async def take(rounds: Rounds, type_: int = 0) -> int | None:
    taken = rounds.current() or await rounds.wait()
    return None if taken is None else taken.take(type_)


def test_every_round_is_shown_once_and_id_blocks_grow_with_traffic() -> None:
    store = Counter()

    async def work(rounds: Rounds) -> None:
        result = [
            number for _ in range(400) for number in await asyncio.gather(*(take(rounds) for _ in range(10)))
        ]
        assert result == list(range(4000))
        assert store.sizes[:2] == [1, 9], "one asked, and nine waited meanwhile"
        assert max(store.sizes) == id_blocks.MOST
        assert store.calls < 60
        await rounds.close()
        assert sum(report.used for report in store.reports) == 4000
        assert [report.first for report in store.reports] == sorted(report.first for report in store.reports)
        assert rounds.shown == 4000
        assert rounds.lost == store.next - 4000

    run(store, work)


def test_a_slow_placement_id_blocks_what_it_needs() -> None:
    store = Counter()

    async def work(rounds: Rounds) -> None:
        for _ in range(3):
            await take(rounds)
            await asyncio.sleep(0.2)
        assert sum(store.sizes) <= 3 + 5  # five a second

    run(store, work)


def test_what_has_expired_is_not_shown() -> None:
    store = Counter(lasts=0.05)

    async def work(rounds: Rounds) -> None:
        await rounds.wait(50)
        assert [await take(rounds) for _ in range(3)] == [0, 1, 2]
        await asyncio.sleep(0.06)
        assert await take(rounds) == 50
        assert rounds.lost == 47

    run(store, work)


def test_where_there_is_no_round_nobody_waits_and_the_store_is_left_alone() -> None:
    store = Counter(end=0)

    async def work(rounds: Rounds) -> None:
        began = time.monotonic()
        assert [await take(rounds) for _ in range(200)] == [None] * 200
        assert time.monotonic() - began < id_blocks.PAUSE
        assert store.calls == 1
        await asyncio.sleep(id_blocks.PAUSE)
        store.end = 100
        assert await take(rounds) == 0

    run(store, work)


def test_a_store_that_hangs_or_is_away_is_not_waited_for() -> None:
    store = Counter()

    async def work(rounds: Rounds) -> None:
        store.takes = 2 * id_blocks.TIMEOUT
        began = time.monotonic()
        assert await take(rounds) is None
        assert id_blocks.TIMEOUT * 0.9 < time.monotonic() - began < 1.5 * id_blocks.TIMEOUT
        began = time.monotonic()
        assert [await take(rounds) for _ in range(8)] == [None] * 8
        assert time.monotonic() - began < id_blocks.TIMEOUT / 2, "the first has waited for all of them"
        await asyncio.sleep(2 * id_blocks.TIMEOUT)
        assert await take(rounds) == 0
        store.takes, store.away = 0.0, True
        while await take(rounds) is not None:
            pass
        store.away = False
        await asyncio.sleep(2 * id_blocks.PAUSE)
        assert await take(rounds) is not None
        await rounds.tidy()
        assert 0 in [report.first for report in store.reports], "what could not be said is said later"

    run(store, work)


def test_reports_say_who_was_silent_and_wait_until_that_is_known() -> None:
    store = Counter()

    async def work(rounds: Rounds) -> None:
        taken = await rounds.wait(4)
        assert taken is not None
        for type_ in (3, 1, 2):
            taken.take(type_)
        taken.waiting = 1
        await rounds.close()
        assert not store.reports
        taken.silence(2)
        taken.silence(0)
        taken.waiting = 0
        await rounds.tidy()
        assert store.reports == [Report(0, 3, (0, 2), (3, 1, 2))]

    run(store, work, types=True)
