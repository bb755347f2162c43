"""In the service users are forgotten in memory, in snapshots and in the store; and outside of a sample nothing happens
but that somebody is shown a slate."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from diminuendo.service.front import serving
from diminuendo.service.front.choose import Chooser
from diminuendo.service.front.names import Names
from diminuendo.service.front.serving import NotReady, Serving, in_sample
from diminuendo.service.front.tokens import NO_ROUND, Tokens
from diminuendo.service.records import Lists, PublicMenu, Said
from diminuendo.service.store import NO_PLACEMENT
from diminuendo.service.trainer.learners import in_flight, make_arguments
from tests.kit.statistics import ALPHA
from tests.service.world import ITEMS, World, repeat_noise, spec

RETENTION = 300
ONE = PublicMenu(1, "one", 2, 0, None, (2, 3), ((0, 1),))
TYPES = PublicMenu(1, "types", 2, 0, None, (2, 3), ((0, 1), (4, 5)))
DEALT = PublicMenu(1, "rounds", 2, 0, 4, (2, 3), ((0, 1), (4, 5)), (0, 1, 0, 1))
RANDOM = PublicMenu(1, "random", 2, 0, None, (2, 3), lists=Lists((0, 8), tuple(range(8))))


class NoRounds:
    """Whoever is outside of the sample takes no round, and waits for none."""

    def current(self) -> NoReturn:
        raise AssertionError("an ID block was looked at")

    wait = current


def place_with(menu: PublicMenu | None, sample: int = 10**15) -> Any:
    known = spec("overlap-greedy", "full", sample=sample)
    chooser = None if menu is None else Chooser(menu, ITEMS, known.hidden, sample > 1)
    return SimpleNamespace(
        number=1, spec=known, rounds=NoRounds(), fallback=lambda: chooser, decisions=0, fallbacks=0, outside=0,
        ready=True, fresh=True, encrypted=lambda said: said,
    )  # fmt: skip


def serves() -> Serving:
    writer: Any = None  # nothing is written
    return Serving(Tokens({1: bytes(range(32))}), Names(bytes(32)), writer)


def test_the_coin_is_one_in_so_many_and_always_falls_where_there_is_no_sample() -> None:
    assert all(in_sample(1) for _ in range(10))
    heads = sum(in_sample(4) for _ in range(20_000)) / 20_000
    assert abs(heads - 0.25) < math.sqrt(math.log(2 / ALPHA) / 40_000)  # Hoeffding


@pytest.mark.parametrize(
    ("menu", "slate", "chance"),
    [(ONE, (0, 1), 1.0), (TYPES, (4, 5), 1.0), (DEALT, (2, 3), None), (RANDOM, None, 1 / 56)],
)
@pytest.mark.parametrize("user_id", ["", "ada"])
def test_outside_the_menu_is_shown_without_a_round_a_visit_or_a_row(
    menu: PublicMenu, slate: Any, chance: float | None, user_id: str
) -> None:
    place, front = place_with(menu), serves()
    decide = front.decide_for(place, user_id, "", 1, ()) if user_id else front.decide(place, 1, ())
    decision = asyncio.run(decide)
    shown = front._tokens.open(decision.token)
    assert (shown.round, shown.counts) == (NO_ROUND, False)
    assert shown.slate == slate or (slate is None and len(set(shown.slate)) == 2)
    assert decision.propensity == chance
    assert (place.decisions, place.fallbacks, place.outside) == (1, 0, 1)
    (row,) = front.row(place, Said(shown, ratings={0: 1.0}), 0.0)
    assert row.placement == NO_PLACEMENT, "her answer is not stored"


def test_what_she_excludes_is_left_out_outside_too_and_nobody_is_served_before_there_is_a_menu() -> None:
    place, front = place_with(ONE), serves()
    decision = asyncio.run(front.decide(place, 0, {1}))
    assert 1 not in front._tokens.open(decision.token).slate
    with pytest.raises(NotReady):
        asyncio.run(front.decide(place_with(None), 0, ()))


def test_dealt_slates_say_no_chance_where_some_are_outside() -> None:
    plain, sampled = (Chooser(DEALT, ITEMS, False, each) for each in (False, True))
    assert plain.bag(0, 4).chance(0, 0) == 0.5
    assert sampled.bag(0, 4).chance(0, 0) is sampled.certain() is None


def test_the_coin_is_thrown_before_anything_is_read_of_her(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for a request that is sent again: by no name, key or type."""
    seen = Counter[Any]()

    def coin(*given: Any) -> bool:
        seen[given] += 1
        return False

    monkeypatch.setattr(serving, "in_sample", coin)
    front, place = serves(), place_with(TYPES, sample=7)
    for user_id, key, type_ in (("ada", "k", 0), ("ada", "k", 1), ("bob", "", 1)):
        asyncio.run(front.decide_for(place, user_id, key, type_, ()))
    asyncio.run(front.decide(place, 1, ()))
    assert seen == {(7,): 4}


def test_a_learner_is_made_for_the_rounds_of_the_sample() -> None:
    whole, sampled = spec("overlap-greedy", "full"), spec("overlap-greedy", "full", sample=10)
    name, setting, options = make_arguments(sampled, lambda: 0.0)
    assert (name, setting.rounds, setting.sample, options) == ("overlap-greedy", 300, 1, {})
    assert in_flight(sampled) < in_flight(whole) / 8
    assert spec("overlap-greedy", "full", sample=10, users=None).rounds is None


def kept(trainer: Any) -> list[int]:
    policy: Any = trainer.placements[1].learner.policy
    return [int(number) for block in policy._memory.users.blocks for number in block.spec.rounds]


@pytest.mark.parametrize("restarted", [pytest.param(False, marks=pytest.mark.slow), True])
def test_whoever_is_forgotten_is_gone_from_memory_snapshot_and_store(
    restarted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repeat_noise(monkeypatch)
    world = World(tmp_path, place=spec("overlap-greedy", "full", retention=RETENTION))
    trainer = world.trainer(world.store)
    oldest, most = 0, 0
    for _ in range(9):
        world.play(10, trainer.step)
        if restarted:
            trainer = world.trainer(world.store)
            trainer.step()
        policy: Any = trainer.placements[1].learner.policy
        ends, made = policy.plan.schedule.ends, policy._position.releases
        rounds = kept(trainer)
        assert not rounds or min(rounds) >= ends[made] - RETENTION
        oldest, most = min(rounds, default=0), max(most, len(rounds))
    assert oldest > 300, "many were forgotten by then"
    assert most > RETENTION / 3
    again = world.trainer(world.opened())
    again.step()
    assert min(kept(again)) >= oldest, "nor are they in the snapshot"
    assert min(row.round for row in world.store.answers(1, 0, 10**9)) > oldest, "nor in the store"
    assert world.audited().spent() <= 8.0 * (1 + 1e-9)
