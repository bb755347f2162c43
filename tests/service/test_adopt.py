"""A store that was restored on a machine that knows nothing of it: refused, or adopted, with new populations."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from typer.testing import CliRunner

from diminuendo.cli.app import app
from diminuendo.errors import InvalidInput, LedgerDamaged, Superseded
from diminuendo.service.apply import apply_site
from diminuendo.service.dashboard.views import Public
from diminuendo.service.front.id_blocks import PAUSE
from diminuendo.service.keys import make_keys
from diminuendo.service.records import ItemsChanged, PlacementSpec, Shown
from diminuendo.service.site import Site as Config
from diminuendo.service.store import AnswerRow, UserRound, adopt, rolled_back
from tests.service import site as sites
from tests.service.test_postgres_server import fresh  # noqa: F401
from tests.service.test_rolled_back import PostgresWorld
from tests.service.world import INSIDE, KINDS, Front, World

SOON = 1.0
"""Seconds that these tests watch for somebody who beats."""


@pytest.fixture(params=["sqlite", "postgres"])
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(rolled_back, "WATCHES", SOON)
    monkeypatch.setattr(rolled_back, "ASKS", 0.02)
    if request.param == "sqlite":
        result = World(tmp_path, place=KINDS["totals"])
    else:
        server, database = request.getfixturevalue("postgres_server"), request.getfixturevalue("fresh")
        result = PostgresWorld(tmp_path, server, database, place=KINDS["totals"])
    yield result
    result.store.close()


def lost(world: World) -> Path:
    """The folder of a machine that has the store of before, and knows nothing of it; nobody works on it any more."""
    world.time += 60.0
    shutil.rmtree(world.folder / "keys")
    (world.folder / "keys").mkdir()
    return world.folder / "keys"


def played(world: World, ticks: int = 30) -> None:
    """Some releases."""
    trainer = world.trainer(world.store)
    world.play(ticks, trainer.step)
    trainer.leave()
    assert world.releases()
    assert world.menu().version > 2


def config(world: World, **more: Any) -> Config:
    """A site's file that names that store and that world's populations."""
    name = getattr(world, "_database", "")
    address = (
        world._server.address(name) if isinstance(world, PostgresWorld) else str(world.folder / "store.db")
    )
    return Config(address, world.folder / "site", **more)


def test_a_store_with_a_history_is_refused_where_nothing_is_known_of_it(world: World) -> None:
    played(world)
    before, folder, leads = (world.releases(), world.lines()), lost(world), world.store.leaders()
    (folder / "master.key").write_text("07" * 32)
    for begin in (lambda: world.trainer(world.store), lambda: list(apply_site(config(world)))):
        with pytest.raises(
            LedgerDamaged, match=r"history \(populations users\).*no high-water mark.*--adopt"
        ):
            begin()
    assert world.store.leaders() == leads
    assert (world.releases(), world.lines()) == before
    assert [path.name for path in folder.iterdir()] == ["master.key"], "nothing was noted either"
    assert not (world.folder / "site").exists(), "nor are there new keys"


def test_machines_without_trainers_need_no_mark(world: World) -> None:
    played(world)
    world.time += 60.0
    make_keys(world.folder / "site")
    assert list(apply_site(config(world, trainers=0))) == []
    with pytest.raises(InvalidInput, match="machine with trainers"):
        list(apply_site(config(world, trainers=0), adopting=True))


def test_what_was_never_used_is_refused_by_nobody(world: World) -> None:
    assert world.store.history() == []
    rolled_back.refuse_unknown(world.store, world.folder / "keys")
    with pytest.raises(InvalidInput, match="nothing was published in it yet"):
        rolled_back.adopt(world.store, world.folder / "keys")
    world.trainer(world.store).step()
    assert world.store.history() == ["users"]


@contextmanager
def beating(world: World, name: str) -> Iterator[None]:
    """Somebody who is well, all the while."""
    over = threading.Event()
    store, given = world.opened(), {}

    def heartbeat() -> None:
        try:
            while not over.wait(0.02):
                world.time += 0.1
                store.heartbeat(name, "well")
        except Exception as error:  # said where it is waited for
            given["error"] = error

    thread = threading.Thread(target=heartbeat)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        store.close()
    assert not given


def test_a_trainer_that_beats_vouches_for_the_store_and_keeps_it_from_being_adopted(world: World) -> None:
    """A further machine joins. Beats that are in the store already may be those of the copy, and vouch for nothing."""
    played(world)
    other = world.folder / "other"
    world.store.heartbeat("trainer three", "well")
    with pytest.raises(LedgerDamaged):  # a moment ago, and no more
        rolled_back.refuse_unknown(world.store, other)
    with beating(world, "front-a-0"), pytest.raises(LedgerDamaged):  # front ends know nothing of ledgers
        rolled_back.refuse_unknown(world.store, other)
    assert not other.exists()
    for name in ("trainer three", "front-a-0"):
        with beating(world, name), pytest.raises(InvalidInput, match=f"{name} works on this store"):
            rolled_back.adopt(world.store, other)
    with beating(world, "trainer three"):
        rolled_back.refuse_unknown(world.store, other)
    (mark,) = other.iterdir()
    assert mark.name == f"{rolled_back.NOTE}trainer%20three"
    rolled_back.refuse_unknown(world.store, other)  # from now on by its own mark
    mark.write_text(repr(world.store.now() + 5.0))
    with pytest.raises(LedgerDamaged, match=r"older than what .* knows of it"):
        rolled_back.refuse_unknown(world.store, other)


def test_a_store_that_is_adopted_goes_on_in_new_populations_and_in_none_of_the_old(world: World) -> None:
    played(world)
    store, old = world.store, world.store.leaders()["users"].fencing_token
    assert store.put([], [UserRound(1, bytes(16), 1, 10**6)])[0].counts
    store.heartbeat("front-a-0", '{"place": [99, "' + "0" * 64 + '"]}')  # has seen what is not in the copy
    lines, releases, menus = world.lines(), world.releases(), store.menus(1)
    folder, budget = lost(world), world.audited().budget
    assert rolled_back.adopt(store, folder) == ["users~1"]
    rows = {row.name: (row.number, row.population) for row in store.placements()}
    assert rows == {"place~1": (1, "users~1"), "place": (2, "users")}
    assert store.populations()["users"] == store.populations()["users~1"]
    new, was = (msgspec.json.decode(store.placements()[at].spec, type=PlacementSpec) for at in (1, 0))
    assert new == world.spec[1]
    assert was == msgspec.structs.replace(new, population="users~1")
    assert store.history() == []
    with pytest.raises(InvalidInput, match="nothing was published in it yet"):
        rolled_back.adopt(store, folder)

    # Nothing is drawn, published, handed out or kept in the old one, by whomever.
    with pytest.raises(Superseded, match="closed"):
        store.acquire_leadership("users~1", "trainer")
    for population, fencing_token in (
        ("users", old),
        ("users~1", old),
        ("users~1", INSIDE),
    ):
        books = store.books(population, fencing_token)
        books.lines.read()
        for write in (
            partial(books.lines.append, b"{}\n"),
            partial(books.releases.once, "a.b", lambda: np.zeros(1, dtype=np.int64)),
        ):
            with pytest.raises(Superseded):
                write()
    for fencing_token in (old, INSIDE):
        for refused in (
            lambda: store.allow(fencing_token, 1, 10**9, 0.0),  # noqa: B023
            lambda: store.stop_id_blocks(fencing_token, 1),  # noqa: B023
            lambda: store.add_key(fencing_token, 1, 7, b"key"),  # noqa: B023
        ):
            with pytest.raises(Superseded):
                refused()
    assert store.reserve_ids(1, 10, 5.0, None) is None
    store.put([AnswerRow(1, number, b"delay") for number in (0, 10**6)])
    assert list(store.answers(1, 0, 10**9)) == []
    assert store.snapshot(1) is None
    assert store.keys_of(1) == {}

    # What was published stays, to be read, and it is said that it is over.
    books = store.books("users~1", 0)
    assert books.lines.read() == b"".join(lines)
    assert set(books.releases.names()) == set(releases)
    assert store.menus(1) == menus
    assert "Count the whole budget as spent" in store.heartbeats()["population users~1"][1]
    assert "closed" in Public(store).state().stopped["users~1"]

    # The new one learns, on a ledger of its own, whatever front ends had seen before.
    world.front = {2: Front(world, 2, world.spec[1])}
    trainer = world.trainer(store, listens=3.0)
    world.play(60, trainer.step)
    assert not trainer.held["users"].stopped
    assert list(trainer.held) == ["users"]
    assert msgspec.json.decode(store.menus(2)[-1].body)["version"] > 2
    ledger = world.audited()
    assert ledger.budget == budget
    assert 0 < ledger.spent() <= budget.epsilon
    assert world.releases()
    assert books.lines.read() == b"".join(lines)
    said = [line for line in world.written.getvalue().splitlines() if '"closed"' in line]
    assert len(said) == 1
    assert "users~1" in said[0]
    trainer.leave()
    with pytest.raises(InvalidInput, match="this machine knows this store, as it is"):
        rolled_back.adopt(store, folder)
    rolled_back.refuse_unknown(store, folder)
    lost(world)
    assert rolled_back.adopt(store, folder) == ["users~2"], "the next time"
    assert {row.name for row in store.placements()} == {"place~1", "place~2", "place"}


def test_a_trainer_that_still_leads_writes_nothing_in_either(world: World) -> None:
    trainer = world.trainer(world.store)
    world.play(30, trainer.step)
    lost(world)
    before = world.lines()
    world.store.adopt()  # whoever asked had not seen it
    world.front = {}
    world.play(20, trainer.step)
    assert world.store.books("users~1", 0).lines.read() == b"".join(before)


def test_killed_in_the_midst_it_was_not_adopted_and_then_it_is(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    played(world)
    world.store.add_event(1, "items", msgspec.json.encode(ItemsChanged(retire=["item 3", "item 4"])), "admin")
    world.store.add_event(1, "items", msgspec.json.encode(ItemsChanged(appear=["item 4"])), "admin")
    store, folder, whole = world.store, lost(world), adopt.adoption
    before = store.populations(), store.placements(), world.lines(), store.leaders(), store.menus(1)

    def broken(statements: int) -> Any:
        script, result = whole(), None
        for _ in range(statements):
            result = yield next(script) if result is None else script.send(result)
        raise RuntimeError("killed")

    for statements in (1, 5, 8, 12, 16, 20):
        with monkeypatch.context() as patch:
            patch.setattr(adopt, "adoption", partial(broken, statements=statements))
            with pytest.raises(RuntimeError):
                rolled_back.adopt(store, folder)
        assert (
            store.populations(),
            store.placements(),
            world.lines(),
            store.leaders(),
            store.menus(1),
        ) == before
        with pytest.raises(LedgerDamaged, match="--adopt"):
            rolled_back.refuse_unknown(store, folder)
    # Also where the folder knows that the store is older: killed before it has forgotten what it knew.
    rolled_back.note(folder, "trainer", store.now() + 100.0)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", lambda path: exit("killed"))
        with pytest.raises(SystemExit):
            rolled_back.adopt(store, folder)
    with pytest.raises(LedgerDamaged, match="older"):
        rolled_back.refuse_unknown(store, folder)
    assert rolled_back.adopt(store, folder) == [], "what is new already is not closed again"
    rolled_back.refuse_unknown(store, folder)
    assert set(store.populations()) == {"users", "users~1"}
    (event,) = store.events(store.placements()[-1].number)
    assert msgspec.json.decode(event.body, type=ItemsChanged).retire == ["item 3"], (
        "what is sold out stays so"
    )


def test_a_site_says_what_is_adopted_and_starts_as_it_was(world: World) -> None:
    played(world)
    world.time += 60.0
    of = config(world, populations={}, placements={"place": world.spec[1]})
    with pytest.raises(LedgerDamaged):
        list(apply_site(of))
    (said,) = apply_site(of, adopting=True)
    assert said.startswith("Adopted: population users~1 is closed.")
    assert "users of both have both" in said
    keys = {path.name: path.read_bytes() for path in (world.folder / "site").iterdir() if path.is_file()}
    assert set(keys) == {"tokens.json", "names.key"}
    assert list(apply_site(of)) == []
    with pytest.raises(InvalidInput, match="nothing to adopt"):
        list(apply_site(of, adopting=True))
    assert {name: (world.folder / "site" / name).read_bytes() for name in keys} == keys


@pytest.mark.slow
def test_the_command_refuses_a_restored_store_and_adopts_it(tmp_path: Path) -> None:
    """The command looks for ten seconds whether somebody still works on the store."""
    world = World(tmp_path, place=KINDS["totals"])
    played(world)
    lost(world)
    world.store.close()
    (tmp_path / "site.toml").write_text('store = "store.db"\nkeys = "site"\n')
    refused, adopted, again = (
        CliRunner().invoke(app, ["apply", str(tmp_path / "site.toml"), *more])
        for more in ([], ["--adopt"], [])
    )
    assert isinstance(refused.exception, LedgerDamaged)
    assert "--adopt" in str(refused.exception)
    assert "Adopted: population users~1 is closed." in " ".join(adopted.output.split())
    assert (adopted.exit_code, again.exit_code) == (0, 0)


def test_until_the_new_population_has_published_the_last_menu_is_shown(tmp_path: Path) -> None:
    site = sites.Site(tmp_path, shop=sites.spec("click"))
    site.publish("shop", sites.block(0, 30))
    assert rolled_back.adopt(site.store, tmp_path / "keys") == ["users~1"]
    fallback = [sites.ITEMS[item] for item in (3, 0)]

    async def work() -> None:
        first = await site.decide("shop")
        assert first["slate"] == fallback
        shown = site.app.front.serving.shown(first["token"])[1]
        assert (shown.placement, shown.counts) == (2, False)
        before = site.app.front.serving._tokens.seal(Shown(1, 0, 1, True, (0, 1)))
        for token in (first["token"], before):
            assert (await site.answer(token, click=0)).status == 202
        assert site.kept("shop") == {}, "of the closed one"
        said = (await site.ask("GET", "/v1/placements", key="auditor")).json["placements"]
        assert said == [{"name": "shop~1"}, {"name": "shop"}]
        site.numbers["shop"], site.fencing_token = 2, site.store.acquire_leadership("users", "test")
        site.publish("shop", sites.block(0, 30))
        await site.app.front.look()
        await asyncio.sleep(2 * PAUSE)  # for so long it is not asked again
        again = await site.decide("shop")
        assert site.app.front.serving.shown(again["token"])[1].counts
        assert (await site.answer(again["token"], click=0)).status == 202
        assert set(site.kept("shop")) == {0}

    site.run(work)
