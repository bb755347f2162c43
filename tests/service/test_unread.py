"""What is in the store and cannot be read counts as nothing, and takes nobody else along."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import msgspec
import pytest

from diminuendo.service.apply import apply_site
from diminuendo.service.dashboard.views import Public
from diminuendo.service.front import placement
from diminuendo.service.keys import make_keys
from diminuendo.service.records import PublicMenu, Report
from diminuendo.service.site import read_site
from diminuendo.service.store import IdBlockRow
from diminuendo.service.trainer.high_water_marks import HighWaterMarks
from diminuendo.service.trainer.keys import Keys
from tests.service.site import Site, block, spec
from tests.service.world import KINDS, World

UNREAD = [b"\xff", b"null", b'{"appear": 3, "silent": 3, "first": []}', b"[" * 5000]


def changed(path: Path, statement: str, *values: object) -> None:
    """Change the file behind the store's back."""
    db = sqlite3.connect(path)
    with db:
        db.execute(statement, values)
    db.close()


@pytest.mark.parametrize("written", UNREAD)
def test_spec_of_a_placement(written: bytes, tmp_path: Path) -> None:
    """Others are served, are ready and on the dashboard, and the site is prepared."""
    site = Site(tmp_path, shop=spec("click"), other=spec("click"))
    site.publish("shop", block(0, 90))
    changed(tmp_path / "site.db", "UPDATE placements SET spec = ? WHERE name = 'other'", written)

    async def work() -> None:
        token = (await site.decide("shop"))["token"]
        assert (await site.answer(token, click=0)).status == 202
        await site.app.front.store_probe()
        await site.app.front.look()
        assert (await site.ask("GET", "/readyz", key=None)).status == 200
        assert (await site.ask("POST", "/v1/placements/other/decisions", {})).problem == "placement"
        public = Public(site.store)
        assert [view.row.name for view in public.state().placements] == ["shop"]
        assert public.state("other").placements == []
        assert public.state().health
        assert site.written.getvalue().count("fault") == 1, "said once"

    site.run(work)
    (tmp_path / "site.toml").write_text("trainers = 0\n[populations.guests]\n")
    make_keys(tmp_path / "keys")
    assert any("guests" in line for line in apply_site(read_site(tmp_path / "site.toml")))


@pytest.mark.parametrize("written", UNREAD)
def test_what_an_operator_wrote_down(written: bytes, tmp_path: Path) -> None:
    site = Site(tmp_path, shop=spec("click"))
    site.store.add_event(1, "items", written, "admin")

    async def work() -> None:
        assert (await site.ask("GET", "/v1/placements/shop", key="admin")).json["retired"] == []
        retire = {"retire": ["plum"]}
        assert (await site.ask("POST", "/v1/placements/shop/items", retire, key="admin")).status == 202
        assert (await site.ask("GET", "/v1/placements/shop", key="admin")).json["retired"] == ["plum"]
        (view,) = Public(site.store).state("shop").placements
        assert view.retired == {"plum"}

    site.run(work)


@pytest.mark.parametrize("written", UNREAD)
def test_a_trainer_goes_on_after_an_event_and_a_report(written: bytes, tmp_path: Path) -> None:
    world = World(tmp_path, place=KINDS["totals"])
    trainer = world.trainer()
    world.play(10, trainer.step)
    world.store.add_event(1, "items", written, "admin")
    changed(tmp_path / "store.db", "UPDATE id_blocks SET report = ?, reported_at = at", written)
    version = world.menu().version
    world.play(30, trainer.step)
    assert not trainer.failures
    assert world.menu().version > version + 1


def test_numbers_of_a_report_that_cannot_be(tmp_path: Path) -> None:
    world = World(tmp_path, place=KINDS["clicks by type"])
    trainer = world.trainer()
    world.play(10, trainer.step)
    large = Report(0, 2**70, (-1, 2**70, 10**9), (2**70, -(2**70), 2**40))
    changed(
        tmp_path / "store.db", "UPDATE id_blocks SET report = ?, reported_at = at", msgspec.json.encode(large)
    )
    before = len(world.store.menus(1))
    world.play(30, trainer.step)
    assert not trainer.failures
    assert len(world.store.menus(1)) > before


@pytest.mark.parametrize("written", UNREAD)
def test_notes_of_front_ends(written: bytes) -> None:
    high_water_marks = HighWaterMarks()
    seen = {"front-1": (1.0, '{"home": [3, "0f"]}'), "front-2": (1.0, written.decode(errors="replace"))}
    high_water_marks.read(seen)
    assert high_water_marks.of("home") == {(3, "0f")}


def test_heads_are_noted_under_the_population_that_the_store_says(tmp_path: Path) -> None:
    """Whatever a placement's facts say: else the head of another population would be overwritten."""
    world = World(tmp_path, place=msgspec.structs.replace(KINDS["totals"], population="somebody else's"))
    trainer = world.trainer()
    world.play(30, trainer.step)
    menus = [msgspec.json.decode(row.body, type=PublicMenu) for row in world.store.menus(1)]
    assert Keys(tmp_path / "keys").noted("users") == menus[-1].head
    assert Keys(tmp_path / "keys").noted("somebody else's") is None


def test_an_id_block_whose_report_cannot_be_read_has_none(tmp_path: Path) -> None:
    site = Site(tmp_path, shop=spec("click"))
    site.publish("shop", block(0, 90))
    site.store.reserve_ids(1, 5, 1.0, None)
    changed(tmp_path / "site.db", "UPDATE id_blocks SET report = ?, reported_at = 1.0", b"\xff")
    (id_block,) = site.store.id_blocks(1, 0)
    assert isinstance(id_block, IdBlockRow)
    assert id_block.report is None
    site.store.close()


def test_a_menu_that_cannot_be_read_leaves_its_placement_behind_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody takes the key of a menu of before for the newest: answers to that placement wait."""
    monkeypatch.setattr(placement, "FRESH", 0.3)
    site = Site(tmp_path, shop=spec("click"), other=spec("click"))
    for name in ("shop", "other"):
        site.publish(name, block(0, 90))

    async def work() -> None:
        tokens = [(await site.decide(name))["token"] for name in ("shop", "other")]
        site.publish("other", block(0, 90, version=2))
        site.publish("shop", block(0, 90, version=2))
        changed(
            tmp_path / "site.db", "UPDATE menus SET body = ? WHERE placement = 2 AND version = 2", b"\xff"
        )
        for _ in range(3):
            await asyncio.sleep(0.2)
            await site.app.front.look()
        assert [(await site.answer(token, click=0)).status for token in tokens] == [202, 503]
        assert site.app.front.by_name["shop"].version == 2
        assert not site.app.front.unwell

    site.run(work)
