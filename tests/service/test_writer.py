"""Group commit: all who wait are kept at once, nobody is told before it is durable, and no row fails another."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any, cast

import pytest

from diminuendo.errors import StoreUnavailable
from diminuendo.service.front.writer import MOST_WAITING, Writer
from diminuendo.service.store import AnswerRow, QuotaResult, Store, UserRound

VISIT = UserRound(1, b"a" * 16, 1, 2)


class Slow:
    """Keeps what it is given once it may; refuses what the test says."""

    def __init__(self) -> None:
        self.groups: list[list[AnswerRow]] = []
        self.user_rounds: list[Sequence[UserRound]] = []
        self.writing, self.go = threading.Event(), threading.Event()
        self.away = False

    async def is_writing(self) -> None:
        assert await asyncio.get_running_loop().run_in_executor(None, self.writing.wait, 60)

    def put(self, answers: Sequence[AnswerRow], user_rounds: Sequence[UserRound] = ()) -> list[QuotaResult]:
        self.writing.set()
        assert self.go.wait(60)
        if self.away:
            raise StoreUnavailable("away")
        if any(row.encrypted == b"hostile" for row in answers):
            raise OverflowError("a row that no table takes")
        self.groups.append(list(answers))
        self.user_rounds.append(user_rounds)
        return [QuotaResult(user_round.round % 2 == 0, user_round.round) for user_round in user_rounds]


def run(work: Any) -> None:
    async def inside() -> None:
        store = Slow()
        writer = Writer(cast(Store, store), asyncio.get_running_loop())
        try:
            await work(store, writer)
        finally:
            store.go.set()
            await asyncio.get_running_loop().run_in_executor(None, writer.close)

    asyncio.run(inside())


def test_who_has_given_up_is_not_counted_and_what_was_said_is_kept() -> None:
    async def work(store: Slow, writer: Writer) -> None:
        first = writer.keep((row(0),))
        await store.is_writing()
        gone, stays = writer.keep((), (VISIT,)), writer.keep((), (VISIT,))
        left = writer.keep((row(1),), (VISIT,))
        gone.cancel()
        left.cancel()
        store.go.set()
        assert await first == []
        assert await stays == [QuotaResult(True, 2)]
        assert [len(user_rounds) for user_rounds in store.user_rounds] == [0, 2]
        assert [[each.round for each in group] for group in store.groups] == [[0], [1]]

    run(work)


def row(number: int, encrypted: bytes = b"x") -> AnswerRow:
    return AnswerRow(1, number, encrypted)


def test_all_who_wait_are_kept_at_once_and_told_afterwards() -> None:
    async def work(store: Slow, writer: Writer) -> None:
        first = writer.keep([row(0)])
        await store.is_writing()
        rest = [writer.keep([row(number)], [UserRound(1, bytes(16), 1, number)]) for number in range(1, 50)]
        await asyncio.sleep(0.02)
        assert not first.done()
        assert not any(each.done() for each in rest)
        store.go.set()
        await asyncio.gather(first, *rest)
        assert [len(group) for group in store.groups] == [1, 49]
        assert [each.result() for each in rest] == [[QuotaResult(n % 2 == 0, n)] for n in range(1, 50)]

    run(work)


def test_a_hostile_row_fails_itself_alone() -> None:
    async def work(store: Slow, writer: Writer) -> None:
        kept = [writer.keep([row(number, b"hostile" if number == 3 else b"x")]) for number in range(6)]
        store.go.set()
        result = await asyncio.gather(*kept, return_exceptions=True)
        assert [isinstance(each, StoreUnavailable) for each in result] == [number == 3 for number in range(6)]
        assert sorted(each.round for group in store.groups for each in group) == [0, 1, 2, 4, 5]

    run(work)


def test_with_the_store_away_everybody_is_told_so_and_it_goes_on_afterwards() -> None:
    async def work(store: Slow, writer: Writer) -> None:
        store.away = True
        kept = [writer.keep([row(number)]) for number in range(3)]
        store.go.set()
        result = await asyncio.gather(*kept, return_exceptions=True)
        assert all(isinstance(each, StoreUnavailable) for each in result)
        store.away = False
        await writer.keep([row(9)])
        assert [each.round for group in store.groups for each in group] == [9]

    run(work)


def test_more_than_can_wait_are_sent_away_and_what_waits_is_kept_at_the_end() -> None:
    async def work(store: Slow, writer: Writer) -> None:
        writer.keep([row(0)])
        await store.is_writing()
        kept = [writer.keep([row(number)]) for number in range(MOST_WAITING)]
        with pytest.raises(StoreUnavailable):
            await writer.keep([row(1)])
        kept[0].cancel()  # whoever has gone is kept all the same
        store.go.set()
        await asyncio.get_running_loop().run_in_executor(None, writer.close)
        await asyncio.gather(*kept[1:])
        assert sum(map(len, store.groups)) == MOST_WAITING + 1
        with pytest.raises(StoreUnavailable):
            await writer.keep([row(2)])

    run(work)
