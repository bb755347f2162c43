"""Attacks on the trainer: leaders that sleep, crashes at bad moments, names that mislead, clocks that go back."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from diminuendo.learners.base.learner import Learner
from diminuendo.learners.remote_rounds import RemoteRounds
from diminuendo.service.records import PublicMenu
from diminuendo.service.store import STORED_WITHIN, AnswerRow
from diminuendo.service.store.sqlite import SqliteStore
from diminuendo.service.trainer import placement
from diminuendo.service.trainer.assignment import SILENT
from diminuendo.service.trainer.placement import Placement
from tests.kit.slow import mostly_slow
from tests.service.test_trainer import learned
from tests.service.world import KINDS, TICK, World, spec

LONG_AGO = 1_000_000.0
"""A time at which, as on any real clock, a snapshot is older than an hour before there is one."""


class Killed(BaseException):
    """As if the process were gone: nothing catches it."""


class Once:
    """Does something when a point is reached for the n-th time."""

    def __init__(self, point: str, work: Callable[[], Any], after: int = 1) -> None:
        self.point, self.work, self.left = point, work, after

    def __call__(self, point: str) -> None:
        if point == self.point:
            self.left -= 1
            if self.left == 0:
                self.work()


def killed() -> None:
    raise Killed


def made_of(world: World) -> list[tuple[PublicMenu, float, int]]:
    """Each menu, when it takes effect, and how many cells had been published by then: as the ledger's lines say."""
    lines = [msgspec.json.decode(line) for line in world.lines()]
    cells, many = dict[str, int](), 0
    for line in lines:
        many += "release" in line and not line["release"].endswith(".plan")
        cells[line["hash"]] = many
    menus = [(msgspec.json.decode(row.body, type=PublicMenu), row) for row in world.store.menus(1)]
    return [(menu, row.effective_at, cells[menu.head]) for menu, row in menus]


def waits_after_settling(world: World, step: Callable[[], Placement]) -> list[float]:
    """Of menus that are made of new cells: how long after these were settled each takes effect."""
    result = dict[int, float]()

    def seen() -> None:
        settles = step()._settles
        for row in world.store.menus(1):
            result.setdefault(row.version, row.effective_at - settles)

    world.play(30, seen)
    menus = made_of(world)
    new = [now[0].version for before, now in pairwise(menus) if now[2] > before[2]]
    assert new
    return [result[version] for version in new]


@pytest.mark.parametrize("name", mostly_slow(["front", "front.plan"], ["front.plan"]))
def test_whatever_its_name_a_placement_waits_for_its_allowance(name: str, tmp_path: Path) -> None:
    """Else menus take effect as soon as they are ready, and the tick tells how long the release took."""
    said = spec("slate-totals", "bandit", publish_delay=4 * TICK)
    world = World(tmp_path, **{name: said})
    trainer = world.trainer(world.store)

    def step() -> Placement:
        trainer.step()
        return trainer.placements[1]

    assert min(waits_after_settling(world, step)) >= said.publish_delay


def test_what_was_drawn_before_a_crash_takes_effect_when_it_would_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the first thing that the next trainer publishes is a snapshot alone."""
    settled, publish = list[float](), Placement._publish

    def published(self: Placement, at: float) -> None:
        settled.append(at)
        publish(self, at)

    said = spec("slate-totals", "bandit", publish_delay=8 * TICK)
    world = World(tmp_path, place=said)
    world.time = LONG_AGO
    trainer = world.trainer(reached=Once("drawn", killed, after=6))
    with pytest.raises(Killed):
        world.play(60, trainer.step)
    last, trainer = world.menu().version, world.trainer()
    monkeypatch.setattr(Placement, "_publish", published)
    world.time += TICK
    trainer.step()
    result = world.store.menus(1, last)[:2]
    assert len(result) == 2
    assert [row.effective_at - at for row, at in zip(result, settled, strict=False)] >= [
        said.publish_delay
    ] * 2


def test_releases_are_those_of_the_placement_itself(tmp_path: Path) -> None:
    each = spec("slate-totals", "bandit", epsilon=4.0)
    world = World(tmp_path, shop=each, shops=each)
    trainer = world.trainer(world.store)
    world.front.pop(1)  # nobody comes to the first one
    world.play(22, trainer.step)
    many = world.menu(2).releases
    trainer.placements[1]._publish(world.time)
    assert many > 2 > 1 == world.menu(1).releases, "its first plan"


@pytest.mark.parametrize("point", mostly_slow(["published", "key made"], ["published"]))
def test_a_leader_that_slept_throws_no_key_of_the_next_away(
    point: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is stopped at some point; another leads and publishes; then it goes on, until it hears of that."""
    result = learned(monkeypatch)
    world = World(tmp_path, place=KINDS["totals"])
    others: list[Any] = []

    def another() -> None:
        others.append(world.trainer(instance="two"))
        world.time += SILENT
        world.play(12, others[0].step)

    sleeper = world.trainer(reached=Once(point, another, after=3))
    world.play(30, sleeper.step)
    assert not sleeper.held
    assert not sleeper.failures
    assert not others[0].failures
    before, last = len(result), world.trainer(world.store, instance="three")
    world.time += SILENT
    world.play(12, last.step)
    assert not last.failures, "its snapshot can be opened"
    assert len(result) > before


def test_a_leader_that_sleeps_as_it_begins_throws_no_key_of_the_next_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, place=KINDS["totals"])
    world.play(10, world.trainer().step)
    others = list[Any]()

    def slept(learner: Learner) -> RemoteRounds:
        if not others:
            others.append(None)
            others[0] = world.trainer(instance="two")
            world.time += SILENT
            world.play(12, others[0].step)
        return RemoteRounds(learner)

    sleeper = world.trainer()
    monkeypatch.setattr(placement, "RemoteRounds", slept)
    world.play(10, sleeper.step)
    assert not sleeper.held
    last = world.trainer(world.store, instance="three")
    world.time += SILENT
    world.play(10, last.step)
    assert not last.failures


def test_due_after_a_crash_it_keeps_the_keys_of_answers_that_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers to rounds that were reserved long ago are read, though something is due before ID blocks are
    looked at."""
    result = learned(monkeypatch)
    world = World(tmp_path, place=spec("slate-totals", "bandit", deadline=600.0, per_second=0.3))
    trainer, front = world.trainer(world.store), world.front.pop(1)
    trainer.step()
    world.time += TICK
    answered = list[int]()
    for _ in range(8):  # a menu every two minutes: by far too old keys for whoever forgets that rounds wait
        for row in world.store.menus(1, max(front.menus, default=0)):
            front.menus[row.version] = msgspec.json.decode(row.body, type=PublicMenu)
        id_block = world.store.reserve_ids(1, 4, TICK, None)
        assert id_block is not None
        front.show(id_block)
        world.store.put([AnswerRow(1, number, front.encrypted(said)) for _, number, said in front.delay])
        answered += [number for _, number, _ in front.delay]
        front.delay.clear()
        world.time += 60
        trainer.placements[1]._publish(world.time)
    trainer = world.trainer(world.store)
    due = [True]  # as where two blocks were settled at once
    real = Placement._release

    def release(self: Placement, at: float) -> None:
        if due and self.learner.policy is not None:
            due.clear()
            self._publish(at)
        real(self, at)

    monkeypatch.setattr(Placement, "_release", release)
    trainer._look(world.time)
    trainer.held["users"]._of(world.store.placements()[0])._release(world.time)
    for _ in range(8):
        world.time += 100
        trainer.step()
    assert sorted(result) == sorted(answered)


@pytest.mark.parametrize("offset", mostly_slow(range(5), [1]))
def test_an_answer_that_is_written_as_its_deadline_passes_is_read_or_late(
    offset: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is settled was looked at after a time was written down: between two looks at the clock time goes by."""
    world = World(tmp_path, place=KINDS["totals"])
    trainer, front = world.trainer(world.store), world.front.pop(1)
    trainer.step()
    world.time += TICK
    front.look()
    id_block = world.store.reserve_ids(1, 4, TICK, None)
    assert id_block is not None
    trainer.step()
    deadline = id_block.expires_at + KINDS["totals"].deadline
    monkeypatch.setattr(world.store._file, "_wall", lambda: world.time)
    now, asked = SqliteStore.now, list[float]()

    def ticking(self: SqliteStore) -> float:
        result = now(self)
        asked.append(result)
        world.time += 1e-4
        return result

    monkeypatch.setattr(SqliteStore, "now", ticking)
    taken = list[float]()
    take_in = Placement._take_in

    def watched(self: Placement, id_block: Any) -> None:
        ((at, _),) = [
            heartbeat
            for name, heartbeat in self._store.heartbeats().items()
            if name == f"barrier of {trainer.slot}"
        ]
        taken.append(at)
        take_in(self, id_block)

    monkeypatch.setattr(Placement, "_take_in", watched)
    settles = deadline + STORED_WITHIN
    world.time = settles - 1e-3 + offset * 1e-4
    while not taken:
        trainer.step()
    assert settles < min(taken) < settles + 1.0
