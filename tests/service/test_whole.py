"""Front end and trainer together on one store: what users say over HTTP is learned, and what is published is shown."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from diminuendo.service.store.sqlite import SqliteStore
from diminuendo.service.trainer.trainer import Trainer
from tests.service.site import Site, spec

ITEMS = tuple(f"item {number}" for number in range(12))


@pytest.mark.slow
def test_what_users_say_is_learned(tmp_path: Path) -> None:
    """Everybody wants the last two items and nothing else."""
    given: dict[str, Any] = {"items": ITEMS, "users": 4000, "deadline": 0.3}
    given |= {"per_second": 1000.0, "publish_interval": 0.1, "publish_delay": 0.2}
    site = Site(tmp_path, shop=spec("full", **given))
    over = threading.Event()

    def train() -> None:
        with SqliteStore(tmp_path / "site.db") as store:
            Trainer(store, tmp_path / "keys").run(lambda: not over.is_set())

    thread = threading.Thread(target=train)
    thread.start()
    shown: list[bool] = []

    async def work() -> None:
        place = site.app.front.by_name["shop"]
        while not place.ready or place.in_effect() is None:
            assert thread.is_alive()
            await asyncio.sleep(0.05)
        for _ in range(200):
            body = (await site.ask("POST", "/v1/placements/shop/decisions", {"count": 20})).json
            rows: list[dict[str, Any]] = []
            for each in body["decisions"]:
                shown.append(bool(set(each["slate"]) & set(ITEMS[-2:])))
                rows.append({"token": each["token"], "ratings": ITEMS[-2:]})
            assert (await site.ask("POST", "/v1/feedback", rows)).status == 202
            await asyncio.sleep(0.06)
        assert place.rounds.id_blocks > 5
        assert place.fallbacks < 2000

    try:
        site.run(work)
    finally:
        over.set()
        thread.join()
    assert sum(shown[:200]) < 120, "a third, by chance"
    assert sum(shown[-400:]) > 360, "nearly everybody is shown something that she wants"
