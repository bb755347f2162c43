"""A store that was rolled back: front ends have seen what it does not have, and nothing more is released on it."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import msgspec
import pytest

from diminuendo.errors import LedgerDamaged
from diminuendo.service.front.front import LOOKS_EVERY, PROBES_EVERY
from diminuendo.service.store import rolled_back
from diminuendo.service.trainer.high_water_marks import LISTENS, STOPPED, HighWaterMarks, LedgerHeads
from diminuendo.service.trainer.trainer import Trainer
from tests.kit.slow import mostly_slow
from tests.service.world import KINDS, TICK, World


def sings(world: World, name: str = "front-a-0", **instead: object) -> None:
    """A front end says what it has seen last, as front/front.py does."""
    seen = {"place": (world.menu().version, world.menu().head)}
    world.store.heartbeat(name, json.dumps(seen | instead))


def waits(world: World, trainer: Trainer, seconds: float) -> None:
    for _ in range(round(seconds / TICK)):
        world.time += TICK
        trainer.step()


@pytest.mark.slow
def test_what_front_ends_have_seen_and_the_store_has_changes_nothing(tmp_path: Path) -> None:
    world = World(tmp_path, place=KINDS["totals"])
    trainer = world.trainer(world.store, listens=LISTENS)
    for _ in range(40):
        world.play(1, trainer.step)
        sings(world)
    assert world.menu().releases > 2
    assert not trainer.held["users"].stopped
    again = world.trainer(world.store, listens=LISTENS)  # listens first
    version = world.menu().version
    for _ in range(round(LISTENS / TICK) - 1):
        world.play(1, again.step)
        sings(world)
        assert world.menu().version == version
    for _ in range(16):
        world.play(1, again.step)
        sings(world)
    assert world.menu().version > version
    assert not again.held["users"].stopped


SEEN: dict[str, tuple[int, str | None]] = {
    "a later menu": (99, None), "another head": (1, "0" * 64), "both": (99, "0" * 64)
}  # fmt: skip


@pytest.mark.parametrize("what", mostly_slow(list(SEEN), ["both"]))
def test_who_has_seen_what_is_not_there_stops_the_population(what: str, tmp_path: Path) -> None:
    seen = SEEN[what]
    world = World(tmp_path, place=KINDS["totals"])
    trainer = world.trainer(world.store, listens=LISTENS)
    world.play(20, trainer.step)
    sings(world)
    sings(world, "front-b-0", place=(seen[0], seen[1] or world.menu().head))
    waits(world, trainer, 1.5)
    before, version = world.releases(), world.menu().version
    world.play(20, trainer.step)
    assert (world.releases(), world.menu().version) == (before, version)
    assert world.store.heartbeats()["population users"][1] == STOPPED
    said = [json.loads(line) for line in world.written.getvalue().splitlines()]
    assert [line["population"] for line in said if line["happened"] == "rolled back"] == ["users"]
    assert not trainer.failures
    sings(world, "front-b-0")  # whoever saw it was started anew
    again = world.trainer(world.store, name="trainer two", listens=LISTENS)
    world.time += 30.0
    waits(world, again, 2 * LISTENS)
    world.play(20, again.step)
    assert again.held["users"].stopped, "what was seen stays seen"
    assert world.releases() == before


def test_a_store_of_an_hour_ago_is_noticed_though_the_folder_of_the_trainer_is_lost(tmp_path: Path) -> None:
    """Put back under front ends that live on, and with the trainer's notes gone: they are the ones who know."""
    world = World(tmp_path, place=KINDS["totals"])
    trainer = world.trainer(world.store, listens=LISTENS)
    world.play(20, trainer.step)
    old = sqlite3.connect(tmp_path / "old.db")
    live = sqlite3.connect(tmp_path / "store.db")
    live.backup(old)
    keys = {path.name: path.read_bytes() for path in (tmp_path / "keys").glob("*.key")}
    world.play(40, trainer.step)
    sings(world)
    saw = {"place": (world.menu().version, world.menu().head)}
    old.backup(live)  # all who have it open see it as it was
    shutil.rmtree(tmp_path / "keys")
    (tmp_path / "keys").mkdir()
    for name, content in keys.items():
        (tmp_path / "keys" / name).write_bytes(content)
    before = world.releases()
    world.front.clear()
    with pytest.raises(LedgerDamaged, match="no high-water mark"):
        world.trainer(world.store, listens=LISTENS)
    rolled_back.note(
        tmp_path / "keys", "trainer", world.store.heartbeats()["trainer"][0]
    )  # a mark as old as the copy
    trainer = world.trainer(world.store, listens=LISTENS)
    trainer.step()
    world.time += TICK
    world.store.heartbeat("front-a-0", json.dumps(saw))
    waits(world, trainer, 20.0)
    assert trainer.held["users"].stopped
    assert world.releases() == before, "nothing is drawn that users have seen otherwise"
    assert world.menu().version < saw["place"][0]
    assert world.store.heartbeats()["population users"][1] == STOPPED
    for each in (old, live):
        each.close()


def test_nothing_is_released_before_front_ends_could_speak(tmp_path: Path) -> None:
    world = World(tmp_path, place=KINDS["totals"])
    trainer = world.trainer(world.store, listens=LISTENS)
    world.play(12, trainer.step)
    sings(world)
    world.play(8, lambda: None)
    before, version = world.releases(), world.menu().version
    (tmp_path / "keys" / f"{rolled_back.NOTE}trainer").unlink()
    again = world.trainer(world.store, listens=LISTENS)
    began = world.time
    while world.menu().version == version:
        assert world.releases() == before
        world.time += TICK
        again.step()
    assert LISTENS <= world.time - began <= LISTENS + 4 * TICK


def test_whoever_listens_does_so_for_longer_than_front_ends_are_silent() -> None:
    assert LISTENS > PROBES_EVERY + LOOKS_EVERY


def test_notes_that_are_no_notes_witness_nothing(tmp_path: Path) -> None:
    high_water_marks = HighWaterMarks()
    high_water_marks.read({"trainer": (1.0, '{"place": [9, "x"]}')})
    assert high_water_marks.of("place") == set()
    notes = {"front-a": (1.0, "?"), "front-b": (1.0, '{"place": 3}'), "front-c": (1.0, '{"place": [3, "x"]}')}
    high_water_marks.read(notes)
    assert high_water_marks.of("place") == {(3, "x")}
    assert high_water_marks.of("remote_rounds") == set()
    high_water_marks.read({"front-c": (2.0, '{"place": [4, "y"]}')})
    assert high_water_marks.of("place") == {(4, "y")}


@pytest.mark.slow
def test_heads_are_those_of_all_lines(tmp_path: Path) -> None:
    world = World(tmp_path, place=KINDS["totals"])
    trainer = world.trainer(world.store, listens=LISTENS)
    seen = set[str]()
    for _ in range(3):
        world.play(12, trainer.step)
        heads = LedgerHeads(world.store, "users", trainer.held["users"].fencing_token)
        seen |= {msgspec.json.decode(row.body)["head"] for row in world.store.menus(1)}
        assert all(heads.has(head) for head in seen)
        assert not heads.has("0" * 64)
    assert len(seen) > 3
