"""The protocol's model keeps its promises, in every order of events that is looked at; and planted mistakes are found.

`python -m tests.protocol` explores further, and plays one seed again.
"""

from __future__ import annotations

import pytest

from tests.protocol import lively, mistakes, pairs
from tests.protocol.explore import everything, replayed, walk
from tests.protocol.mistakes import MISTAKES, SMALL, WORLDS, Mistake
from tests.protocol.values import Broken

FEW, MANY = 10, 2_000
"""Seeds, quickly and slowly."""


def test_all_states_of_a_small_world_are_well() -> None:
    result = everything(SMALL["one trainer, a block of two rounds"])
    assert result.whole
    assert result.states > 1_000
    assert not result.broken, result.path


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_the_first_states_of_small_worlds_are_well(name: str) -> None:
    result = everything(SMALL[name], 400_000)
    assert not result.broken, result.path


@pytest.mark.parametrize("name", WORLDS)
def test_random_orders_of_events_break_nothing(name: str) -> None:
    assert {walk(WORLDS[name], seed).broken for seed in range(FEW)} == {""}


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_many_random_orders_of_events_break_nothing(name: str) -> None:
    assert {walk(WORLDS[name], seed).broken for seed in range(MANY)} == {""}


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda each: each.name)
def test_a_planted_mistake_is_found(mistake: Mistake) -> None:
    setup = mistake.setup._replace(mistakes=frozenset({mistake.name}))
    result = walk(setup, mistake.walk)
    assert result.broken == mistake.breaks
    with pytest.raises(Broken, match=mistake.breaks):  # and again, event by event
        replayed(setup, result.path)


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda each: each.name)
def test_it_is_found_by_nobody_who_knows_where(mistake: Mistake) -> None:
    assert mistakes.found(mistake)[0] == mistake.walk


def test_breadth_first_finds_the_shortest_way_to_a_mistake() -> None:
    setup = SMALL["two trainers, a block of one round"]
    result = everything(setup._replace(mistakes=frozenset({"fencing token not checked at publish"})))
    assert result.broken == "somebody published who does not lead any more"
    assert len(result.path) <= 12


# Two worlds.


def test_two_worlds_look_the_same_but_for_what_is_noisy() -> None:
    result = [pairs.played(pairs.PAIRED, seed) for seed in range(4 * FEW)]
    assert {each.broken for each in result} == {""}
    assert all(each.counts for each in result), "the trainer was late, which nothing is promised about"


@pytest.mark.slow
def test_many_pairs_of_worlds_look_the_same() -> None:
    result = [pairs.played(pairs.PAIRED, seed) for seed in range(MANY)]
    assert {(each.broken, each.counts) for each in result} == {("", True)}


@pytest.mark.parametrize("mistake", pairs.MISTAKES)
def test_two_worlds_find_what_gives_her_away(mistake: str) -> None:
    assert pairs.found(mistake) is not None


# After trouble.


def test_everything_is_released_once_trouble_has_ended() -> None:
    assert None not in {lively.stands_still(lively.LIVELY, seed) for seed in range(FEW)}


@pytest.mark.slow
def test_everything_is_released_after_any_trouble() -> None:
    assert None not in {lively.stands_still(lively.LIVELY, seed) for seed in range(MANY)}


@pytest.mark.parametrize("mistake", lively.MISTAKES)
def test_what_stands_still_is_noticed(mistake: str) -> None:
    assert lively.found(mistake) is not None
