"""Several trainers share the populations of a store: who takes what, and that a leader of before writes nothing."""

from __future__ import annotations

import math
import shutil
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from diminuendo.errors import LedgerDamaged, StoreUnavailable, Superseded
from diminuendo.privacy.events import Composed
from diminuendo.service.log import Log
from diminuendo.service.records import PopulationSpec
from diminuendo.service.store import DAY, Leader, Store
from diminuendo.service.trainer import trainer as module
from diminuendo.service.trainer.assignment import NOBODYS, SILENT, Assignment, well
from diminuendo.service.trainer.placement import Placement
from diminuendo.service.trainer.private_keys import make_master
from diminuendo.service.trainer.trainer import HEARTBEAT_EVERY, LOOKS, Trainer
from tests.service.test_trainer import learned
from tests.service.world import KINDS, TICK, Front, SameSource, World, spec

TAKEOVER = 15.0
"""Seconds, promised: from when a leader dies until another one has published for it."""


def shared(folder: Path, populations: int) -> World:
    """A world of as many populations, each with one placement."""
    world = World(folder, p0=KINDS["totals"])
    for number in range(1, populations):
        name = f"others{number}"
        world.store.add_population(name, msgspec.json.encode(PopulationSpec(20.0, 1e-6)))
        placed = spec("slate-totals", "bandit")
        placed = msgspec.structs.replace(placed, population=name)
        result = world.store.add_placement(f"p{number}", name, msgspec.json.encode(placed))
        world.front[result] = Front(world, result, placed)
    return world


def many(folder: Path, populations: int, trainers: int) -> tuple[World, list[Trainer]]:
    world = shared(folder, populations)
    return world, [world.trainer(name=f"trainer {number}") for number in range(trainers)]


def fence(*trainers: Trainer) -> list[int]:
    return [len(each.held) for each in trainers]


def one_leader_each(world: World, *trainers: Trainer) -> None:
    """Every population is led by one trainer, as the store says."""
    result = Counter(name for each in trainers for name in each.held)
    assert result == Counter(list(world.store.populations()))
    for each in trainers:
        for name, population in each.held.items():
            assert world.store.leaders()[name] == Leader(population.fencing_token, each.name)


def test_trainers_that_come_and_go_lead_about_as_many_each(tmp_path: Path) -> None:
    world, (one, two, three) = many(tmp_path, 7, 3)
    world.front.clear()

    def play(seconds: float, *trainers: Trainer) -> None:
        for _ in range(math.ceil(seconds / TICK)):
            world.time += TICK
            for each in trainers:
                each.step()

    play(2 * LOOKS, one)
    assert fence(one) == [7]
    play(4 * LOOKS, one, two)
    assert sorted(fence(one, two)) == [3, 4]
    one_leader_each(world, one, two)
    play(5 * LOOKS, one, two, three)
    assert sorted(fence(one, two, three)) == [2, 2, 3]
    one_leader_each(world, one, two, three)
    held = set(one.held)
    play(SILENT + 2 * LOOKS, two, three)  # the first was killed
    assert sorted(fence(two, three)) == [3, 4]
    one_leader_each(world, two, three)
    assert held <= {*two.held, *three.held}
    two.leave()
    play(2 * LOOKS, three)
    assert fence(three) == [7], "who has left is not waited for"
    assert all(not trainer.failures for trainer in (two, three))


def test_a_trainer_that_was_killed_is_followed_after_some_silence_whatever_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes of one name, as on machines that were cloned, are two trainers."""
    monkeypatch.setattr(module, "AT_ONCE", 2)
    world = shared(tmp_path, 5)
    one, two = (world.trainer(name="trainer x", instance=instance) for instance in ("one", ""))
    world.play(4, one.step)

    def both() -> None:
        one.step()
        two.step()

    world.play(20, both)
    assert sorted(fence(one, two)) == [2, 3]
    one_leader_each(world, one, two)
    leaders = world.store.leaders()
    world.play(math.ceil(SILENT / TICK), both)
    assert world.store.leaders() == leaders, "no population goes back and forth"
    died = world.time
    while len(two.held) < 5:
        assert world.time - died < TAKEOVER
        world.play(1, two.step)
    assert world.time - died > SILENT - HEARTBEAT_EVERY
    one_leader_each(world, two)
    world.time += DAY
    world.play(20, two.step)
    assert set(world.store.heartbeats()) >= {two.name, "trainer x"}
    assert one.name not in world.store.heartbeats(), "rows of processes that are gone do not pile up"
    two.leave()
    assert two.name not in world.store.heartbeats()


def test_a_leader_that_slept_writes_nothing_and_lets_go_of_that_population_alone(tmp_path: Path) -> None:
    world, (one, two) = many(tmp_path, 2, 2)
    for _ in range(20):
        world.play(1, one.step)
        two.step()
    assert fence(one, two) == [1, 1]
    ((name, population),) = one.held.items()
    number = one._numbers[name][0]
    slept = population.placements[number]
    died = world.time
    while len(two.held) < 2:
        world.play(1, two.step)
    assert world.time - died < SILENT + 2 * LOOKS
    version = world.menu(number).version
    while world.menu(number).version == version:
        world.play(1, two.step)
    assert world.time - died < TAKEOVER
    refused: list[Callable[[], object]] = [
        lambda: world.store.allow(population.fencing_token, number, 10**6, 0.0),
        lambda: slept._publish(world.time),
        lambda: slept._ledger.charge(Composed(())),
    ]
    for each in refused:
        with pytest.raises(Superseded):
            each()
    one.step()  # wakes up
    assert name not in one.held
    for _ in range(20):
        world.play(1, one.step)
        two.step()
    assert fence(one, two) == [1, 1], "it may lead again"
    assert not one.failures
    names = [drawn.name for drawn in world.audited().drawn]
    assert len(names) == len(set(names))


@pytest.mark.slow
def test_who_follows_on_another_machine_opens_what_was_sealed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder has the master key and the last mark; the snapshot is there; answers to the key of before count."""
    result = learned(monkeypatch)
    world = shared(tmp_path, 1)
    make_master(tmp_path / "keys")
    one = world.trainer(name="trainer one", in_store=True)
    world.play(30, one.step)
    there = tmp_path / "there"
    there.mkdir()
    for path in (tmp_path / "keys" / "master.key", *(tmp_path / "keys").glob("last-well-*")):
        (there / path.name).write_bytes(path.read_bytes())
    shutil.rmtree(tmp_path / "keys")  # with its machine
    two = Trainer(
        world.opened(), there, name="trainer two", in_store=True, rng=SameSource, log=Log(world.written)
    )
    version, told = world.menu().version, len(result)
    waiting = {row.round for row in world.store.answers(1, 0, 10**9)}
    while not two.held:
        world.play(1, two.step)
    assert world.menu().version == version, "it listens first"
    world.play(30, two.step)
    assert not two.failures
    assert world.menu().version > version
    assert waiting & set(result[told:]), "answers that were encrypted to the one before"
    assert [path.name for path in there.glob("*.key")] == ["master.key"]


@pytest.mark.slow
def test_a_leader_that_is_superseded_in_mid_release_goes_on_with_its_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, (one,) = many(tmp_path, 2, 1)
    world.play(20, one.step)
    assert fence(one) == [2]
    publish, taken = Placement._publish, list[int]()

    def overtaken(self: Placement, at: float) -> None:
        if self.number == 1 and self.version and not taken:
            world.store.heartbeat("trainer#two", "well")
            taken.append(world.store.acquire_leadership("users", "trainer#two"))
        publish(self, at)

    monkeypatch.setattr(Placement, "_publish", overtaken)
    version = world.menu(2).version
    while not taken:
        world.play(1, one.step)
    last = world.menu(1).version
    world.play(20, one.step)
    assert set(one.held) == {"others1"}
    assert not one.failures
    assert world.menu(1).version == last
    assert world.menu(2).version > version + 1
    world.play(math.ceil(SILENT / TICK) + 8, one.step)
    assert set(one.held) == {"users", "others1"}, "the other one has not beaten since"
    assert world.menu(1).version > last


def test_who_was_not_told_that_it_leads_finds_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world, (one,) = many(tmp_path, 1, 1)
    store: Store = one._store
    lead, lost = store.acquire_leadership, list[int]()

    def unheard(*given: Any) -> int:
        fencing_token = lead(*given)
        if not lost:
            lost.append(fencing_token)
            raise StoreUnavailable("It went away when it had written.")
        return fencing_token

    monkeypatch.setattr(store, "acquire_leadership", unheard)
    with pytest.raises(StoreUnavailable):
        one.step()
    assert world.store.leaders() == {"users": Leader(lost[0], one.name)}
    world.time += LOOKS
    one.step()
    assert fence(one) == [1]
    one_leader_each(world, one)


def test_who_is_asked_to_stop_hands_over(tmp_path: Path) -> None:
    world, (one, two) = many(tmp_path, 2, 2)
    one.run(iter([True, False]).__next__, poll=0.0)
    assert {name: leader.name for name, leader in world.store.leaders().items()} == {
        "users": "",
        "others1": "",
    }
    two.step()
    assert fence(one, two) == [0, 2], "at once"


def test_a_release_that_takes_long_is_nobodys_death(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beats come from beside the loop."""
    world, (one,) = many(tmp_path, 1, 1)
    one.step()
    before, until = one._last, time.monotonic() + 10
    monkeypatch.setattr(module, "HEARTBEAT_EVERY", 0.01)
    world.time += 100.0
    with one._heartbeats():
        while one._last == before and time.monotonic() < until:
            time.sleep(0.01)
    assert world.store.heartbeats()[one.name] == one._last > before


def test_shares_are_of_those_that_are_well() -> None:
    heartbeats = {
        "trainer#a": (100.0, "well"), "trainer#b": (91.0, "well"), "trainer#c": (90.0, "well"),
        "trainer": (100.0, ""), "front-0": (100.0, "{}"), "placement x": (100.0, "waits"),
    }  # fmt: skip
    assert well(heartbeats, 100.0) == ["trainer#a", "trainer#b"]
    names = [f"q{number}" for number in range(5)]
    shares = [Assignment(f"trainer#{name}").look(names, {}, heartbeats, {}, 100.0) for name in "ab"]
    taken = [[name for name, after in each.take] for each in shares]
    assert sorted(taken[0] + taken[1]) == names, "each begins with others"
    assert [len(each) for each in taken] == [3, 2]
    assert all(after == 0 for each in shares for _, after in each.take)


def test_nothing_is_handed_over_for_the_sake_of_one() -> None:
    heartbeats = {f"trainer#{name}": (100.0, "well") for name in "abc"}
    for each, give in (([0, 2, 2], 1), ([1, 2, 2], 0), ([1, 1, 3], 2), ([0, 0, 1], 0), ([0, 1, 4], 3)):
        leaders = {f"{name}{number}": Leader(1, f"trainer#{name}") for name, many in zip("abc", each, strict=True)
                   for number in range(many)}  # fmt: skip
        mine = {name: 1 for name, leader in leaders.items() if leader.name == "trainer#c"}
        result = Assignment("trainer#c").look(leaders, leaders, heartbeats, mine, 100.0)
        assert (result.take, len(result.give)) == ([], give), each


def test_what_nobody_takes_is_soon_taken_by_anybody() -> None:
    heartbeats, names = {"trainer#a": (100.0, "well"), "trainer#b": (100.0, "well")}, ["p", "q"]
    mine, assignment = {"p": 4}, Assignment("trainer#a")
    leaders = {"p": Leader(4, "trainer#a"), "q": Leader(7, "")}
    for later, take in ((0.0, []), (NOBODYS / 2, []), (NOBODYS, [("q", 7)])):
        assert assignment.look(names, leaders, heartbeats, mine, 100.0 + later).take == take
    led_again = leaders | {"q": Leader(8, "trainer#b")}
    assert assignment.look(names, led_again, heartbeats, mine, 104.0) == ([], [])
    assert assignment.look(names, leaders, heartbeats, mine, 104.5).take == [], "it is counted anew"


def test_a_trainer_whose_beat_the_store_has_forgotten_stops(tmp_path: Path) -> None:
    world, (one,) = many(tmp_path, 1, 1)
    world.play(20, one.step)
    world.store._file.execute("UPDATE heartbeats SET at = at - 3600 WHERE name LIKE 'trainer 0%'")
    with pytest.raises(LedgerDamaged, match="rolled back while it ran"):
        world.play(20, one.step)
    with pytest.raises(LedgerDamaged, match="older than what"):
        world.trainer(name="trainer 0")
    with pytest.raises(LedgerDamaged, match="older than what"):
        world.trainer(name="trainer 1")  # of the same machine


def test_a_beat_that_was_kept_and_not_told_of_is_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, (one,) = many(tmp_path, 1, 1)
    store, lost = one._store, list[float | None]()
    heartbeat = store.heartbeat_after

    def unheard(*given: Any) -> float | None:
        lost.append(heartbeat(*given))
        if len(lost) in (1, 3):
            raise StoreUnavailable("It went away when it had written.")
        return lost[-1]

    monkeypatch.setattr(store, "heartbeat_after", unheard)
    for _ in range(6):
        with suppress(StoreUnavailable):
            one.step()
        world.time += 3.0
    assert fence(one) == [1]


def test_a_store_that_is_put_back_between_a_look_and_a_beat_is_known(tmp_path: Path) -> None:
    """Also where it is put back just before the beat: nothing hides that it has forgotten the last one."""
    world, (one,) = many(tmp_path, 1, 1)
    one.step()
    older = world.store.heartbeats()[one.name][0]
    world.time += 3.0
    one.step()
    heartbeats, done = one._store.heartbeats, list[bool]()

    def put_back_then() -> Any:
        result, file = heartbeats(), one._store._file  # type: ignore[attr-defined]
        if not file._db.in_transaction and not done:
            done.append(True)
            with file.writing():
                file.execute("UPDATE heartbeats SET at = ? WHERE name LIKE 'trainer 0%'", older)
        return result

    one._store.heartbeats = put_back_then  # type: ignore[method-assign]
    world.time += 3.0
    with suppress(LedgerDamaged):
        one.step()
    one._store.heartbeats = heartbeats  # type: ignore[method-assign]
    world.time += 3.0
    with pytest.raises(LedgerDamaged):
        one.step()
    assert world.store.heartbeats()[one.name][0] == older, "the sign is not overwritten"
    with pytest.raises(LedgerDamaged):
        world.trainer(name="trainer 0")
