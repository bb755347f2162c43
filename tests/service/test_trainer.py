"""The trainer: what it publishes and when, which answers count, and that one placement does not disturb another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from diminuendo.errors import LedgerDamaged
from diminuendo.learners.base.learner import Learner
from diminuendo.service.dashboard.accounts import Account
from diminuendo.service.records import PublicMenu, Report, Said, Shown
from diminuendo.service.store import STORED_WITHIN, AnswerRow, rolled_back
from diminuendo.service.trainer.answers import AnswerReader
from diminuendo.service.trainer.learners import in_flight
from diminuendo.service.trainer.placement import Placement
from diminuendo.service.trainer.trainer import Trainer
from diminuendo.service.trainer.warm_up import warm_up
from tests.kit.slow import mostly_slow
from tests.service.world import ITEMS, KINDS, TASTES, TICK, USERS, World, repeat_noise, spec


@pytest.mark.parametrize("kind", mostly_slow(list(KINDS), ["totals"]))
def test_users_are_shown_better_slates(kind: str, tmp_path: Path) -> None:
    world = World(tmp_path, place=KINDS[kind])
    trainer = world.trainer(world.store)
    world.play(160, trainer.step)
    front, menu = world.front[1], world.menu()
    assert not trainer.failures
    assert menu.releases > 3
    assert menu.version > 3
    assert menu.head == world.audited().head
    paid = [value_of(world, number) for number in sorted(front.shown)]
    few = len(paid) // 4
    assert np.mean(paid[-few:]) > np.mean(paid[:few]) + 0.02
    assert front.fallbacks < 0.35 * len(front.shown)


def value_of(world: World, number: int) -> float:
    return float(
        TASTES[number % USERS].value([item for item in world.front[1].shown[number][1] if item >= 0])
    )


# Which answers count.


def learned(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rounds whose answers are handed to learners."""
    result = list[int]()
    take_in = Placement._take_in

    def watched(self: Placement, id_block: Any) -> None:
        answered = self._remote_rounds.answered

        def seen(rounds: Any, rows: Any, types: Any, said: Any) -> None:
            result.extend(rounds)
            answered(rounds, rows, types, said)

        monkeypatch.setattr(self._remote_rounds, "answered", seen)
        take_in(self, id_block)
        monkeypatch.setattr(self._remote_rounds, "answered", answered)

    monkeypatch.setattr(Placement, "_take_in", watched)
    return result


def test_answers_in_time_are_read_once_and_others_never(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = learned(monkeypatch)
    world = World(tmp_path, place=KINDS["totals"])
    trainer, id_blocks = world.trainer(world.store), dict[int, float]()

    def step() -> None:
        for id_block in world.store.id_blocks(1, 0):
            id_blocks.update(dict.fromkeys(range(id_block.first, id_block.end), id_block.expires_at))
        trainer.step()

    world.play(60, step)
    deadline = KINDS["totals"].deadline
    settled = [n for n in id_blocks if id_blocks[n] + deadline + STORED_WITHIN < world.time - 2 * TICK]
    # When it arrived counts, not the tick at which it is stored.
    stored = {n: at for n, (at, _) in world.front[1].said.items()}
    expected = {n for n in settled if n in stored and stored[n] <= id_blocks[n] + deadline}
    assert len(result) == len(set(result))
    assert {n for n in result if n in set(settled)} == expected
    assert 0 < len(expected) < len([n for n in settled if n in stored]), "some were late"


def test_who_else_is_stored_with_an_answer_does_not_make_it_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It arrived at its very deadline, and its group was stored after that: it counts, whatever held its group up.

    One that arrived later does not count, nor one that was stored too late for anybody to wait for it.
    """
    result = learned(monkeypatch)
    world = World(tmp_path, place=KINDS["totals"])
    trainer, front = world.trainer(world.store), world.front.pop(1)
    trainer.step()
    world.time += TICK
    front.look()
    id_block = world.store.reserve_ids(1, 10, TICK, None)
    assert id_block is not None
    front.per_tick = 0
    front.show(id_block)
    deadline = id_block.expires_at + KINDS["totals"].deadline
    said = {number: said for _, number, said in front.delay}
    early, delay, lost = sorted(said)[:3]
    for now, rows in (
        (deadline + STORED_WITHIN / 2, {early: deadline, delay: deadline + 0.001}),
        (deadline + STORED_WITHIN, {lost: deadline - 0.001}),
    ):
        world.time = now
        trainer.step()
        world.store.put([AnswerRow(1, each, front.encrypted(said[each]), at) for each, at in rows.items()])
    world.front.clear()
    world.play(8, trainer.step)
    assert trainer.placements[1]._remote_rounds.closed == id_block.end
    assert result == [early]


@pytest.mark.parametrize("meanwhile", [False, True])
def test_rounds_that_nobody_was_shown_are_silent(meanwhile: bool, tmp_path: Path) -> None:
    """So are those of users over quota; where nothing was reported, or too late, nobody is.

    Whether the trainer looked `meanwhile`, before ID blocks were reported, changes nothing.
    """
    world = World(tmp_path, place=KINDS["totals"])
    trainer = world.trainer(world.store)
    trainer.step()
    world.front.clear()
    world.time += TICK
    id_blocks = [world.store.reserve_ids(1, 10, TICK, None)]
    for report in (Report(0, 6, silent=(2, 3, 99)), Report(10, 0)):
        if meanwhile:
            world.time += TICK / 8
            trainer.step()
        id_blocks.append(world.store.reserve_ids(1, 10, TICK, report))
    world.time += 20 * TICK
    world.store.reserve_ids(
        1, 1, TICK, Report(20, 1)
    )  # its deadline has passed, though nobody has looked yet
    world.play(2, trainer.step)
    assert [(id_block.first, id_block.end) for id_block in id_blocks if id_block] == [
        (0, 10),
        (10, 20),
        (20, 30),
    ]
    placement = trainer.placements[1]
    assert placement._remote_rounds.closed == 30
    assert placement.learner._frame.silent == [2, 3, 6, 7, 8, 9, *range(10, 20)]


def test_a_longer_id_block_settles_those_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An ID block that was taken later and expired earlier is settled with the one before it; its answers are read."""
    result = learned(monkeypatch)
    world = World(tmp_path, place=KINDS["totals"])
    trainer, front = world.trainer(world.store), world.front[1]
    trainer.step()
    world.front.clear()
    world.time += TICK
    front.look()
    id_blocks = [world.store.reserve_ids(1, 10, seconds, None) for seconds in (8 * TICK, TICK)]
    for id_block in id_blocks:
        assert id_block is not None
        front.show(id_block)
    world.store.put([AnswerRow(1, number, front.encrypted(said)) for _, number, said in front.delay])
    world.play(30, trainer.step)
    assert sorted(result) == sorted(front.said)
    policy: Any = trainer.placements[1].learner.policy
    total = sum(said.reward or 0.0 for _, said in front.said.values())
    assert policy._counts.exact().sum() == pytest.approx(total, abs=len(result) / 1024)


def test_what_is_stored_for_an_answer_may_be_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other placements, other rounds, cut, foreign or plain bytes: nothing of it counts, and nothing fails."""
    result = learned(monkeypatch)
    world = World(tmp_path, place=KINDS["totals"])
    trainer, front = world.trainer(world.store), world.front[1]
    world.play(6, trainer.step)
    front.delay.clear()
    first = max(front.shown) + 1
    id_block = world.store.reserve_ids(1, 12, 2 * TICK, None)
    assert id_block is not None
    assert id_block.first <= first + 1
    shown = front.shown[0][1]

    def said(number: int, **more: Any) -> bytes:
        given: dict[str, Any] = {
            "placement": 1,
            "round": number,
            "version": 1,
            "counts": True,
            "slate": shown,
        } | more
        reward = given.pop("reward", 0.5)
        return front.encrypted(msgspec.msgpack.encode(Said(Shown(**given), reward=reward)))

    n = id_block.first
    hostile = [
        said(n, placement=2), said(n + 1, round=n), said(n + 2, slate=(1, 2)), said(n + 3, counts=False),
        said(n + 4)[:-1], b"", bytes(200), front.encrypted(b"\xc1"), front.encrypted(b""), said(n + 9,
        reward=float("nan")),
        said(n + 10),
    ]  # fmt: skip
    world.store.put([AnswerRow(1, n + each, encrypted) for each, encrypted in enumerate(hostile)])
    world.front.clear()
    world.play(20, trainer.step)
    assert not trainer.failures
    assert {each - n for each in result if each >= n} == {10}


def test_a_lost_key_means_that_nobody_said_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = learned(monkeypatch)
    world = World(tmp_path, place=KINDS["totals"])
    trainer = world.trainer(world.store)
    world.play(6, trainer.step)
    for path in (tmp_path / "keys").iterdir():
        path.unlink()
    trainer.held["users"]._keys._agreed.clear()
    front = dict(world.front)
    world.front.clear()
    world.play(20, trainer.step)
    assert not trainer.failures
    assert not result
    world.front.update(front)
    world.play(30, trainer.step)
    assert result, "with the next key it goes on"


HERS = 30


@pytest.mark.parametrize("how", ["missing", "delay", "garbage", "another", "erased"])
def test_her_answer_moves_nothing_but_what_is_published_of_her_block(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs that differ in one round: ID blocks, menus, their times and all releases before hers are the same."""
    repeat_noise(monkeypatch)
    runs = []
    for name in ("as it was", how):
        world = World(tmp_path / name, place=KINDS["totals"])
        trainer, front = world.trainer(world.store), world.front[1]

        def publish_interval(
            name: str = name, world: World = world, front: Any = front, trainer: Trainer = trainer
        ) -> None:
            front.delay = [changed(name, world, each) for each in front.delay]
            trainer.step()

        world.play(8, publish_interval)
        if how == name == "erased":
            world.store.erase(1, [HERS])
        world.play(42, publish_interval)
        menus = [(row, msgspec.json.decode(row.body, type=PublicMenu)) for row in world.store.menus(1)]
        drawn, bodies = [each.name for each in world.audited().drawn], world.releases()
        runs.append((drawn, bodies, menus, front.shown))
    (drawn, one, menus, shown), (drawn_too, other, menus_too, shown_too) = runs
    first = next(place for place, name in enumerate(drawn) if one[name] != other[name])
    assert drawn[: first + 1] == drawn_too[: first + 1]
    assert ".plan" not in drawn[first]
    told = [
        [
            (row.effective_at, msgspec.structs.replace(menu, head="", seal=""))
            for row, menu in each
            if menu.releases <= first
        ]
        for each in (menus, menus_too)
    ]
    assert told[0] == told[1] != []
    last = told[0][-1][1].version
    hers = [
        next(row.effective_at for row, menu in each if menu.version == last + 1)
        for each in (menus, menus_too)
    ]
    assert hers[0] == hers[1], "nor does it tell when that is published"
    assert {n: x for n, x in shown.items() if x[0] <= last} == {
        n: x for n, x in shown_too.items() if x[0] <= last
    }


def changed(how: str, world: World, answer: tuple[float, int, bytes]) -> tuple[float, int, bytes]:
    """What she does instead; in the first run she answers at once."""
    at, number, said = answer
    if number != HERS:
        return answer
    at = {"missing": 1e12, "delay": 1006.0}.get(how, world.time)
    shown = msgspec.msgpack.decode(said, type=Said).shown
    instead = Said(shown, reward=1.0 if how == "as it was" else 0.0)
    return at, number, b"?" if how == "garbage" else msgspec.msgpack.encode(instead)


# Keys, erasure, retention.


def test_old_keys_and_answers_are_gone(tmp_path: Path) -> None:
    import diminuendo.service.trainer.placement as module

    world = World(tmp_path, place=KINDS["totals"])
    trainer = world.trainer(world.store)
    before = module.STALE
    try:
        module.STALE = 0.5
        world.play(100, trainer.step)
    finally:
        module.STALE = before
    keys = list((tmp_path / "keys").glob("*.key"))
    assert 1 <= len(keys) <= 6 < world.menu().version
    assert all(key.stat().st_mode & 0o777 == 0o600 for key in keys)
    settled = trainer.placements[1]._remote_rounds.closed
    assert settled > 300
    assert min(row.round for row in world.store.answers(1, 0, 10**9)) > 100


@pytest.mark.parametrize("restarted", [False, True])
def test_who_is_erased_is_forgotten_with_the_next_release(restarted: bool, tmp_path: Path) -> None:
    world = World(tmp_path, place=KINDS["greedy"])
    trainer = world.trainer(world.store)
    world.play(30, trainer.step)
    kept = users(trainer)
    assert len(kept) > 100
    gone = kept[:40:2]
    world.store.erase(1, gone)
    world.play(1, trainer.step)
    made = world.menu().version
    if restarted:
        trainer = world.trainer(world.store)
    while world.menu().version < made + 2:
        world.play(1, trainer.step)
    assert not set(gone) & set(users(trainer))
    assert set(kept[1:40:2]) <= set(users(trainer))
    again = world.trainer(world.store)
    again.step()
    assert not set(gone) & set(users(again)), "nor is she in the snapshot"


def users(trainer: Trainer) -> list[int]:
    policy: Any = trainer.placements[1].learner.policy
    return [int(number) for block in policy._memory.users.blocks for number in block.spec.rounds]


def test_the_trainer_says_what_was_spent(tmp_path: Path) -> None:
    world = World(tmp_path, place=KINDS["totals"])
    world.play(30, world.trainer(world.store).step)
    account = Account().read(b"".join(world.lines()))  # which counts by itself
    for row in world.store.menus(1):
        menu = msgspec.json.decode(row.body, type=PublicMenu)
        assert menu.spent == pytest.approx((account.spent_at(menu.head), 20.0))
    assert menu.spent[0] > 0
    assert {note.partition(" ")[0] for _, note in world.store.heartbeats().values()} == {"", "well"}


@pytest.mark.parametrize("kind", mostly_slow(list(KINDS), ["totals", "greedy"]))
def test_a_rehearsal_gets_to_a_release(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    released, drawn = Learner.release, list[int]()

    def release(self: Learner) -> None:
        released(self)
        drawn.append(len(self.policy.frame.ledger.drawn))  # type: ignore[union-attr]

    monkeypatch.setattr(Learner, "release", release)
    warm_up(KINDS[kind], AnswerReader(1, KINDS[kind], None))  # type: ignore[arg-type]
    assert len(drawn) == 2
    assert drawn[1] > drawn[0], "it drew from what users said"


# Several placements, several trainers.


def test_what_fails_is_kept_to_its_placement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(
        tmp_path, good=spec("slate-totals", "bandit", epsilon=4.0), bad=spec("slate-totals", "bandit")
    )
    trainer, take_in = world.trainer(world.store), Placement._take_in
    secret = "what somebody said"

    def fails(self: Placement, id_block: Any) -> None:
        if self.number == 2 and world.time < 1015:
            raise RuntimeError(secret)
        take_in(self, id_block)

    monkeypatch.setattr(Placement, "_take_in", fails)
    world.play(40, trainer.step)
    assert 2 in trainer.failures
    assert world.menu(1).releases > world.menu(2).releases
    notes = {name: note for name, (_, note) in world.store.heartbeats().items()}
    assert notes["placement bad"] == "waits, and is tried again"
    assert all(secret not in note for note in notes.values())
    world.play(50, trainer.step)
    assert not trainer.failures
    assert world.menu(2).releases > 4
    assert world.audited()


def test_items_retire_and_return(tmp_path: Path) -> None:
    world = World(tmp_path, place=KINDS["totals"])
    trainer = world.trainer(world.store)
    world.play(30, trainer.step)
    world.store.add_event(1, "items", msgspec.json.encode({"retire": [ITEMS[0], ITEMS[1]]}), "test")
    world.play(1, trainer.step)
    changed = world.menu().version
    world.play(20, trainer.step)
    assert trainer.placements[1]._checkpoint.events == 1
    assert world.menu().version < changed + 8, "it is done once"
    shown = [slate for version, slate in world.front[1].shown.values() if version >= changed]
    assert len(shown) > 20
    assert not {0, 1} & {item for slate in shown for item in slate}
    assert not {0, 1} & set(world.menu().fallback)
    assert not trainer.failures


def test_a_store_that_was_put_back_is_refused(tmp_path: Path) -> None:
    """It lacks the head that was published last: whatever is drawn on it now, users may have seen otherwise."""
    world = World(tmp_path, place=KINDS["totals"])
    trainer = world.trainer(world.store)
    world.play(20, trainer.step)
    world.store.close()
    old = (tmp_path / "store.db").read_bytes()
    world.store = world.opened()
    trainer = world.trainer(world.store)
    world.play(40, trainer.step)
    world.store.close()
    for path in tmp_path.glob("store.db*"):
        path.unlink()
    (tmp_path / "store.db").write_bytes(old)
    world.store = world.opened()
    before = world.releases()
    with pytest.raises(LedgerDamaged, match="restored from a copy"):
        world.trainer(world.store)
    (tmp_path / "keys" / f"{rolled_back.NOTE}trainer").unlink()  # the ledger says it as well
    trainer = world.trainer(world.store)
    for _ in range(20):
        world.time += TICK
        trainer.step()
    assert trainer.failures[1].startswith("LedgerDamaged")
    line = json.loads(world.written.getvalue().splitlines()[-1])
    assert (line["happened"], line["placement"], line["error"]) == ("fault", "place", "LedgerDamaged")
    assert world.releases() == before


# Public times.


def test_menus_take_effect_at_ticks_after_the_allowance(tmp_path: Path) -> None:
    said = spec("overlap-greedy", "full", publish_delay=4 * TICK, publish_interval=2 * TICK)
    world = World(tmp_path, place=said)
    trainer = world.trainer(world.store)
    result = dict[int, tuple[float, float]]()

    def step() -> None:
        trainer.step()
        for row in world.store.menus(1):
            result.setdefault(row.version, (row.effective_at, trainer.placements[1]._closes_at))

    world.play(50, step)
    assert len(result) > 4
    del result[1]  # before anybody came
    for effective, settled in result.values():
        assert effective % said.publish_interval == 0
        assert (
            settled + said.publish_delay <= effective < settled + said.publish_delay + said.publish_interval
        )
    assert trainer.placements[1].missed_deadlines == 0
    world.time += 60  # nobody looked for a minute
    trainer.step()
    assert trainer.placements[1].missed_deadlines > 0
    assert world.store.menus(1)[-1].effective_at >= world.time


def test_a_batch_larger_than_what_may_be_in_flight_ends(tmp_path: Path) -> None:
    world = World(tmp_path, place=spec("overlap-greedy", "full", per_second=2.0, epsilon=1.0))
    trainer = world.trainer(world.store)
    world.play(90, trainer.step)
    placement = trainer.placements[1]
    policy: Any = placement.learner.policy
    assert in_flight(placement.spec) == 25 < policy.plan.schedule.ends[0]
    assert placement._remote_rounds.closed > policy.plan.schedule.ends[1]
    assert placement.learner.rounds - placement._remote_rounds.closed <= 25


def test_a_block_ends_though_few_of_its_rounds_are_left(tmp_path: Path) -> None:
    """Rounds are allowed in portions; the last portion of a block is as small as it is."""
    items = tuple(f"item {number}" for number in range(12))
    said = spec(
        "slate-totals", "bandit", per_second=8.0, users=100_000, epsilon=1.0, delta=0.0, publish_interval=1.0
    )
    said = msgspec.structs.replace(said, items=items, slots=2, publish_delay=2.0)
    world = World(tmp_path, place=said)
    trainer = world.trainer(world.store)
    world.front.clear()
    trainer.step()
    end = world.menu().end
    assert end is not None
    first = in_flight(said)
    assert first < end
    size = end - first - in_flight(said) // 16  # so that few are left when these are settled
    for _ in range(40):
        world.time += 1.0
        world.store.reserve_ids(1, size, 0.5, None)
        trainer.step()
    assert trainer.placements[1]._remote_rounds.closed >= end
    assert world.menu().version > 1
