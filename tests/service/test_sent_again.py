"""A decision that is sent again: the deadline that it is told is that of its round, and its answer is not silenced."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from diminuendo.errors import StoreUnavailable
from diminuendo.service.api import create_app
from diminuendo.service.log import Log
from diminuendo.service.records import ID_BLOCK_LASTS, Shown
from diminuendo.service.store import AnswerRow, QuotaResult, UserRound
from diminuendo.service.store.sqlite import SqliteStore
from tests.service.site import CONFIG, Reply, Site, block, spec

DECISIONS = "/v1/placements/shop/decisions"


class Lossy(SqliteStore):
    """Counts visits, and once does not say so: as where a connection is cut in the midst of a commit."""

    loses = False

    def put(self, answers: Sequence[AnswerRow], user_rounds: Sequence[UserRound] = ()) -> list[QuotaResult]:
        result = super().put(answers, user_rounds)
        if user_rounds and self.loses:
            self.loses = False
            raise StoreUnavailable("lost")
        return result


def shown(site: Site, told: Any) -> Shown:
    return site.app.front.serving.shown(told["token"])[1]


async def ask(site: Site, key: str) -> Any:
    reply: Reply = await site.ask("POST", DECISIONS, {"user_id": "ann"}, idempotency_key=key)
    assert reply.status == 201
    return reply.json


def deadline(site: Site, number: int) -> float:
    """Of a round, as the trainer has it."""
    result = [row for row in site.store.id_blocks(site.numbers["shop"], 0) if row.first <= number < row.end]
    return result[0].expires_at + 2.0


def told_until(told: Any) -> float:
    return datetime.fromisoformat(told["expires_at"]).timestamp()


def test_a_decision_that_is_sent_again_has_the_deadline_of_its_round(tmp_path: Path) -> None:
    site = Site(tmp_path, shop=spec("click", deadline=2.0))
    site.publish("shop", block(0, 90))

    async def work() -> None:
        first = await ask(site, "k")
        await asyncio.sleep(ID_BLOCK_LASTS + 0.2)  # its ID block is over, and the next one ends later
        again = await ask(site, "k")
        assert shown(site, again) == shown(site, first)
        assert again["expires_at"] == first["expires_at"]
        until = deadline(site, shown(site, first).round)
        assert until - 0.001 <= told_until(first) <= until

    site.run(work)


def test_another_front_end_tells_of_a_round_no_later_deadline_than_it_has(tmp_path: Path) -> None:
    site = Site(tmp_path, shop=spec("click", deadline=2.0))
    site.publish("shop", block(0, 90))
    here = site.app

    async def work() -> None:
        site.app = other = create_app(site.store, CONFIG, Log(site.written))
        await other.front.start()
        new = await ask(site, "k")
        site.app = here
        again = await ask(site, "k")
        assert shown(site, again).round == -1, "nothing is known here of so early a round: a fallback slate"
        site.app = other
        await asyncio.sleep(ID_BLOCK_LASTS + 0.2)
        new = await ask(site, "l")
        site.app = here
        again = await ask(site, "l")
        assert shown(site, again).round == shown(site, new).round
        assert told_until(again) <= deadline(site, shown(site, new).round)
        await other.front.stop()

    site.run(work)


def test_a_round_is_not_silent_where_nobody_knows_whether_it_was_counted(tmp_path: Path) -> None:
    store = Lossy(tmp_path / "site.db")
    site = Site(tmp_path, store, shop=spec("click"))
    site.publish("shop", block(0, 90))

    async def work() -> None:
        store.loses = True
        assert shown(site, await ask(site, "k")).round == -1, (
            "a fallback slate: nobody said that she was counted"
        )
        again = await ask(site, "k")
        assert shown(site, again).counts
        assert (await site.answer(again["token"], click=0)).status == 202
        await site.app.front.by_name["shop"].rounds.close()
        reports = [row.report for row in site.store.id_blocks(site.numbers["shop"], 0)]
        silent = {number for report in reports if report for number in report.silent}
        assert list(site.kept("shop")) == [shown(site, again).round]
        assert not silent & site.kept("shop").keys(), "what was acknowledged is learned from"
        assert len(silent) == 1, "that of the request that was sent again is shown to nobody"

    site.run(work)
