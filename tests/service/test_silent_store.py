"""A store that falls silent, since a network is cut: nobody who comes waits for it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from diminuendo.service.front.id_blocks import TIMEOUT
from diminuendo.service.front.tokens import NO_ROUND
from diminuendo.service.records import Shown
from diminuendo.service.store import open_store
from tests.kit.postgres import Server
from tests.kit.proxy import proxy
from tests.service.site import Site, block, spec

SLACK = 2.0
"""Seconds that a busy machine takes."""


def test_who_has_a_name_is_shown_a_filler_soon_and_counted_again_once_it_is_back(
    tmp_path: Path, postgres_server: Server, database: str
) -> None:
    with proxy(postgres_server.folder / ".s.PGSQL.5432") as between:
        store = open_store(f"postgresql://owner@127.0.0.1:{between.port}/{database}")
        site = Site(tmp_path, store, shop=spec("click", max_rounds_per_user=1))
        site.publish("shop", block(0, 900))

        async def decided(user_id: str) -> tuple[Shown, float]:
            began = time.monotonic()
            reply = await site.ask("POST", "/v1/placements/shop/decisions", {"user_id": user_id})
            assert reply.status == 201
            shown = site.app.front.serving.shown(reply.json["token"])[1]
            return shown, time.monotonic() - began

        async def work() -> None:
            shown, _ = await decided("ada")
            assert shown.counts
            rounds, users = (
                site.app.front.by_name["shop"].rounds,
                [f"user {number}" for number in range(5)],
            )
            while (at_hand := rounds.current()) is None or at_hand.id_block.end - at_hand.next <= len(users):
                await site.decide("shop", count=20)  # users come, and ID blocks become longer
            before = at_hand.next
            between.cut()
            result = [await decided("the one whose visit is on its way")]
            result += await asyncio.gather(*map(decided, users))
            assert at_hand.next > before, "there were rounds, and nobody was counted"
            assert {shown.round for shown, _ in result} == {NO_ROUND}
            assert max(took for _, took in result) < TIMEOUT + SLACK
            between.heal()
            until = time.monotonic() + 30
            while (await decided("bea"))[0].round == NO_ROUND:
                assert time.monotonic() < until
                await asyncio.sleep(0.1)
            again = [(await decided(user_id))[0] for user_id in users]
            assert all(shown.counts for shown in again), "who was shown nothing has her visit"

        site.run(work)
