"""Simulations of users of whom something is known: who is given contexts, what it is compared with, what is kept."""

from __future__ import annotations

import dataclasses
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from diminuendo import Functions, SeededSource, Setting
from diminuendo.errors import InvalidInput
from diminuendo.learners import LEARNERS, make
from diminuendo.offline import greedy_by_type, shuffled
from diminuendo.simulate import Simulation, simulate
from diminuendo.simulate.contexts import comparison, for_each_type, for_each_value, given, plain_name
from diminuendo.simulate.table import as_table, by_epsilon, worth_of_contexts
from diminuendo.simulate.task import Baseline, Run, sliced
from diminuendo.streams import Users, taste_groups
from diminuendo.streams.contexts import Contexts
from diminuendo.types import FEEDBACKS, FeedbackKind

NAMES = ("private", "private-no-contexts", "private-separate", "random")


def crowd(column: str = "group", *, private: bool = False, users: int = 1_200) -> Users:
    made = taste_groups(users, 12, groups=3, items_per_group=4, seed=2, right=0.9)
    return made.with_columns([column], private=private)


@cache
def small() -> Simulation:
    return simulate(crowd(), slots=2, learners=NAMES, epsilon=[1.0, 10.0], seeds=2)


def test_who_uses_contexts_and_who_does_not() -> None:
    uses = {name: runs[0].contexts["use"] for name, runs in small().by_learner().items()}
    assert uses == {
        "private": "slates by type",
        "private-no-contexts": "none",
        "private-separate": "separate",
        "random": "none",
    }
    assert {run.played_by for run in small().results} == {"overlap-greedy", "random"}
    groups = small().by_learner(10.0)
    own, none, separate = (np.mean([run.mean_reward for run in groups[name]]) for name in NAMES[:3])
    assert own > 1.03 * none, "labels are right nine times in ten"
    assert separate > 1.03 * none


def test_without_contexts_it_is_the_same_learner() -> None:
    alone = simulate(crowd().with_columns([]), slots=2, learners="private", seeds=2)
    rewards = [run.mean_reward for run in small().by_learner(1.0)["private-no-contexts"]]
    assert [run.mean_reward for run in alone.results] == rewards
    assert all("contexts" not in run.as_json() for run in alone.results)
    assert "contexts" not in alone.as_json()


def test_separate_learners_are_told_how_many_users_they_have() -> None:
    users = crowd()
    assert users.types is not None
    slates = np.full((len(users), 2), -1, dtype=np.int32)
    for kind in np.unique(users.types).tolist():
        rows = np.flatnonzero(users.types == kind)
        setting = Setting(12, 2, len(rows), "full", 1.0, 1e-6)
        learner = make("private", setting, rng=SeededSource((1 << 32) + kind))
        slates[rows] = learner.replay(users[rows])
    run = small().by_learner(1.0)["private-separate"][1]
    assert run.seed == 1
    assert run.mean_reward == pytest.approx(users.values(slates).mean(), abs=1e-15)
    assert run.epsilon is not None
    assert run.epsilon <= 1.0, "everybody is in the hands of one of them"


def test_hindsight_for_each_type_and_with_shuffled_labels() -> None:
    users, known = crowd(), small().contexts
    assert known is not None
    assert users.types is not None
    assert known.greedy == greedy_by_type(users, 2).value
    assert known.shuffled == greedy_by_type(users, 2, shuffled(users.types)).value
    assert known.columns == {"group": ["0", "1", "2"]}
    assert sum(one["users"] * one["greedy"] for one in known.values) / len(users) == pytest.approx(
        known.greedy
    )
    assert [kind["users"] for kind in known.shown] == sorted(np.bincount(users.types)[1:].tolist())[::-1]


def test_what_is_kept_for_each_type() -> None:
    users = crowd()
    assert users.types is not None
    assert users.contexts is not None
    slates = np.stack([users.types % 3, 3 + users.types], axis=1).astype(np.int32)
    rewards = users.values(slates)
    result = for_each_type(users, slates, rewards, None)
    assert result["use"] == "separate"
    for kind in result["shown"]:
        number = users.contexts.type_of(kind["context"])
        rows = users.types == number
        assert kind["users"] == rows.sum()
        assert kind["reward"] == pytest.approx(rewards[rows].mean())
        assert kind["slate"] == [number % 3, 3 + number]
    assert for_each_type(users.with_columns([]), slates, rewards, None) == {}


def test_what_is_kept_for_each_value_of_several_columns() -> None:
    contexts = Contexts(x=["a", "b"], y=3)
    users = taste_groups(6, 4, groups=2, items_per_group=2)
    users = users.with_contexts(contexts, np.array([[0, 0], [0, 1], [0, -1], [1, 1], [1, 1], [-1, 1]]))
    result = for_each_value(users, np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]), "reward")
    kept = [(one["column"], one["value"], one["users"], round(one["reward"], 9)) for one in result]
    assert kept == [
        ("x", "a", 3, 0.2),
        ("x", "b", 2, 0.45),
        ("x", None, 1, 0.6),
        ("y", "1", 4, 0.425),
        ("y", None, 1, 0.3),
        ("y", "0", 1, 0.1),
    ]


def test_slates_for_types_are_those_of_the_last_menu() -> None:
    users = crowd()
    assert users.types is not None
    setting = Setting(12, 2, len(users), "full", 10.0, 1e-6, contexts=users.contexts)
    learner = make("private", setting, rng=SeededSource(0))
    slates = learner.replay(users)
    menu = learner.menu
    (first,) = (run for run in small().by_learner(10.0)["private"] if run.seed == 0)
    assert users.contexts is not None
    for kind in first.contexts["shown"]:
        number = users.contexts.type_of(kind["context"])
        assert kind["slate"] == menu.slates[number].tolist()  # type: ignore[union-attr]
    assert first.mean_reward == users.values(slates).mean()


def test_numbers_as_json_hold_contexts(tmp_path: Path) -> None:
    written = json.loads(json.dumps(small().as_json()))
    assert written["contexts"]["greedy"] == small().contexts.greedy  # type: ignore[union-attr]
    assert written["contexts"]["private"] is False
    assert {run["contexts"]["use"] for run in written["results"]} == {"none", "separate", "slates by type"}


def test_contexts_are_in_every_key() -> None:
    streams = crowd().with_columns([]), crowd(), crowd("chance"), crowd(private=True)
    slices = [sliced(0, users) for users in streams]
    setting = Setting(12, 2, 1_200, "full")
    runs = {Run(one, "private", 0, setting, "").key for one in slices}
    assert len(runs) == len({Baseline(one, 2, 1.0).key for one in slices}) == 4


def test_finished_runs_are_found_again(tmp_path: Path) -> None:
    def run(users: Users) -> Simulation:
        return simulate(users, slots=2, learners=NAMES[::2], seeds=1, out=tmp_path)

    first = run(crowd())
    assert len(list((tmp_path / "hindsight").glob("*.json"))) == 1
    again = run(crowd())
    assert again.contexts == first.contexts
    seconds = [one.seconds for one in first.results]
    assert [one.seconds for one in again.results] == seconds, "read, not run again"
    hidden = simulate(crowd(private=True), slots=2, learners="private", seeds=1, out=tmp_path)
    assert hidden.results[0].guarantee["view"] == "all others"
    assert len(list((tmp_path / "hindsight").glob("*.json"))) == 2


def test_what_to_compare_with() -> None:
    setting, contexts = Setting(12, 2, 1_200, "full"), Contexts(x=2)
    names = ["private", "nonprivate", "random"]
    assert comparison(names, setting, None) == names
    assert comparison(names, setting, contexts)[:3] == list(NAMES[:3])
    assert comparison(names, setting, contexts)[3:] == names[1:]
    hidden = comparison(names, setting, Contexts(x=2, private=True))
    assert "private-separate" not in hidden, "by a private context she would choose who counts her"
    assert "private-separate" not in comparison(names, setting, contexts, at_once=False)
    clicks = comparison(["private", "random"], Setting(12, 2, 1_200, "click"), contexts)
    assert clicks == ["private", "private-no-contexts", "private-separate", "random"]
    pure = comparison(["private", "random"], Setting(12, 2, 1_200, "full", 1.0, 0.0), contexts)
    assert pure == ["private", "private-separate", "random"], "epoch-greedy does not take contexts"


def test_learners_that_do_not_take_contexts_are_not_given_any() -> None:
    contexts = Contexts(x=2)
    for name, feedback in (("bandit-dp", "bandit"), ("nonprivate", "full"), ("random", "full")):
        setting = Setting(12, 2, 1_200, feedback)  # type: ignore[arg-type]
        assert given(name, setting, contexts).contexts is None
    assert given("private", Setting(12, 2, 1_200, "full", 1.0, 0.0), contexts).contexts is None, (
        "epoch-greedy"
    )
    assert given("private", Setting(12, 2, 1_200, "full"), contexts).contexts == contexts
    assert not any(plain_name(name) != name for name in LEARNERS), "no learner is called so"


def test_names_that_need_contexts_are_refused_without_them() -> None:
    plain = crowd().with_columns([])
    with pytest.raises(InvalidInput, match="private-separate is for users with contexts"):
        simulate(plain, slots=2, learners="private-separate")
    with pytest.raises(InvalidInput, match="would not hide private contexts"):
        simulate(crowd(private=True), slots=2, learners="private-separate")
    with pytest.raises(InvalidInput, match="only where answers come at once"):
        simulate(crowd(), slots=2, learners="private-separate", delay=5)
    functions = Functions([lambda items: float(0 in items)] * 3, 4)
    known = functions.with_contexts(Contexts(x=2), np.zeros(3, dtype=np.int64))
    with pytest.raises(InvalidInput, match="Contexts of Python functions cannot be simulated"):
        simulate(known, slots=2)


@pytest.mark.parametrize("feedback", FEEDBACKS[1:])
def test_separate_learners_for_rewards_and_clicks(feedback: FeedbackKind) -> None:
    result = simulate(
        crowd(users=600),
        slots=2,
        learners=["private", "private-separate"],
        feedback=feedback,
        seeds=1,
    )
    first, second = result.results
    assert (first.contexts["use"], second.contexts["use"]) == ("slates by type", "separate")
    assert first.mean_reward != second.mean_reward
    assert second.epsilon is not None
    assert second.epsilon <= 1.0


def test_tables_say_what_contexts_are_worth() -> None:
    alone = dataclasses.replace(small(), results=[run for run in small().results if run.asked_epsilon != 1.0])
    table = as_table(alone)
    names = list(table.columns[0].cells)
    assert names[1:4] == ["greedy", "greedy by context", "  labels shuffled"]
    known, reference = small().contexts, small().benchmarks.greedy.value
    assert known is not None
    assert list(table.columns[3].cells)[2:4] == [
        f"{known.greedy / reference:.3f}",
        f"{known.shuffled / reference:.3f}",
    ]
    assert "contexts: group (3 values); public" in str(table.title)
    for one in (table, by_epsilon(small())):
        assert "Contexts are used by private and private-separate." in str(one.caption)
    said = worth_of_contexts(small())
    assert f"{known.greedy / reference:.3f} of greedy's reward" in said
    assert f"{(known.greedy - known.shuffled) / reference:.3f}, is the information in the contexts" in said
    nothing = simulate(crowd("chance"), slots=2, learners="random", seeds=1)
    assert "next to none here" in worth_of_contexts(nothing)
    assert "none of these learners" in str(as_table(nothing).caption)
    plain = simulate(crowd().with_columns([]), slots=2, learners="random", seeds=1)
    assert worth_of_contexts(plain) == ""
    assert list(as_table(plain).columns[0].cells)[1:] == ["greedy", "random"]


def test_joint_promises_are_called_so() -> None:
    hidden = simulate(crowd(private=True), slots=2, learners=["private", "private-no-contexts"], seeds=1)
    caption = str(as_table(hidden).caption)
    assert "The guarantee of private is joint" in caption
    assert "private-no-contexts" not in caption
