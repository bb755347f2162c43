"""The service itself under simulation: promises hold whatever is lost, frozen or killed; planted mistakes are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.slow import mostly_slow
from tests.protocol import real_mistakes
from tests.protocol.real import EVENTS, Simulation
from tests.protocol.real_mistakes import MISTAKES, Mistake

QUICK = ["deadlines are ignored", "menus take effect when they are ready", "rounds are taken twice"]


@pytest.mark.parametrize("rolled_back", [False, True])
def test_the_service_keeps_its_promises(rolled_back: bool, tmp_path: Path) -> None:
    result = Simulation(tmp_path, 0).play(EVENTS, rolled_back=rolled_back)
    assert not result.broken
    assert result.answers > 30
    assert result.fencing_tokens > 1, "somebody took over"
    assert rolled_back or result.releases > 2


def test_one_seed_plays_the_same_again(tmp_path: Path) -> None:
    one, two = (Simulation(tmp_path / name, 5) for name in ("one", "two"))
    assert one.play(600) == two.play(600)
    assert one.ghost.stored == two.ghost.stored
    assert one.ghost.deadlines == two.ghost.deadlines
    assert one.ghost.releases == two.ghost.releases


@pytest.mark.slow
@pytest.mark.parametrize("rolled_back", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_the_service_keeps_its_promises_in_many_runs(seed: int, rolled_back: bool, tmp_path: Path) -> None:
    assert not Simulation(tmp_path, seed).play(EVENTS, rolled_back=rolled_back).broken


@pytest.mark.parametrize("name", mostly_slow([each.name for each in MISTAKES], QUICK))
def test_a_mistake_planted_in_the_service_is_found(name: str, tmp_path: Path) -> None:
    mistake: Mistake = next(each for each in MISTAKES if each.name == name)
    assert real_mistakes.found(mistake, tmp_path) is not None
