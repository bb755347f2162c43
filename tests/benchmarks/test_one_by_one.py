"""Who is timed one by one must do the whole work; who does not is not compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.bandit_peers import Obp
from benchmarks.memory import FLOOR, Used, check_tracer, floor_of
from benchmarks.one_by_one import (
    SLOTS,
    Audience,
    Timed,
    best_of,
    play_peer,
    pleased_or_not,
    same_as_replay,
    whole_slates,
)
from benchmarks.report import Disagreement
from diminuendo import Learner
from diminuendo.types import Ints

PEOPLE = pleased_or_not(40, 30, 6)


class Policy:
    """Shows the same slate to everybody, and counts as obp does."""

    def __init__(self) -> None:
        self.action_counts, self.reward_counts = np.zeros(30, dtype=np.int64), np.zeros(30)

    def select_action(self) -> Ints:
        return np.arange(SLOTS)

    def update_params(self, action: Ints, reward: float) -> None:
        self.action_counts[action] += 1
        self.reward_counts[action] += reward


class Deaf(Policy):
    """Does not listen to those who are pleased."""

    def update_params(self, action: Ints, reward: float) -> None:
        super().update_params(action, 0.0)


def test_a_peer_is_told_everything() -> None:
    run = play_peer(PEOPLE, 40, Obp(Policy()))
    np.testing.assert_array_equal(run.payoffs, PEOPLE.values(np.arange(SLOTS)))
    assert set(run.payoffs) == {0.0, 1.0}
    assert (run.choose > 0).all()
    assert (run.observe > 0).all()
    with pytest.raises(Disagreement, match="told"):
        play_peer(PEOPLE, 40, Obp(Deaf()))


def test_the_loop_is_compared_with_the_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    same_as_replay("random", Audience(PEOPLE, "bandit"))
    replay = Learner.replay

    def other(self: Learner, *args: Any, **more: Any) -> Any:
        return replay(self, *args, **more)[::-1]

    monkeypatch.setattr(Learner, "replay", other)
    with pytest.raises(Disagreement, match="random shows other slates"):
        same_as_replay("random", Audience(PEOPLE, "bandit"))


@pytest.mark.parametrize(
    "row",
    [[0, 1, 2, 3, 3], [0, 1, 2, 3, -1], [0, 1, 2, 3, 30], [-1] * 5],
    ids=["twice", "short", "beyond", "none"],
)
def test_slates_must_be_whole(row: list[int]) -> None:
    whole_slates("obp", np.array([[4, 3, 2, 1, 0], [25, 26, 27, 28, 29]], dtype=np.int32), 30)
    with pytest.raises(Disagreement, match="obp showed"):
        whole_slates("obp", np.array([[4, 3, 2, 1, 0], row], dtype=np.int32), 30)


def test_every_call_counts_at_its_best() -> None:
    slates, payoffs = np.zeros((3, SLOTS), dtype=np.int32), np.zeros(3)
    one = Timed(np.array([1.0, 9.0, 1.0]), np.array([2.0, 2.0, 7.0]), slates, payoffs)
    other = Timed(np.array([8.0, 1.0, 4.0]), np.array([9.0, 2.0, 2.0]), slates, payoffs)
    best = best_of([one, other])
    assert best.choose.tolist() == [1.0, 1.0, 1.0]
    assert best.observe.tolist() == [2.0, 2.0, 2.0]
    assert best.median == best.mean == 3e6


def test_a_tracer_that_misses_arrays_is_not_believed() -> None:
    known = floor_of(FLOOR)
    check_tracer(Used(known, known, known, known, known, known))
    for seen in ((known // 2, known), (known, known * 2)):
        with pytest.raises(Disagreement, match="sees"):
            check_tracer(Used(known, known, seen[0], known, seen[1], known))
