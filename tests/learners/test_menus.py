"""Menus are public data: another process chooses by them slate for slate, and nothing private is in them."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diminuendo import LEARNERS, Learner, SeededSource, Setting
from diminuendo.audit.taps import Diverged, Taps
from diminuendo.errors import InvalidInput, OutOfRange
from diminuendo.learners import with_variants
from diminuendo.learners.base.decisions import OpenDecisions
from diminuendo.learners.base.menu import Menu, RandomFromLists, SlateByType, SlatesFromPoint
from diminuendo.learners.base.policy import MenuPolicy
from diminuendo.learners.slates.contexts.menu import SlatesByGroup
from diminuendo.streams import taste_groups
from diminuendo.types import FEEDBACKS, FeedbackKind, Items
from tests.kit.choose_by_menu import SEED
from tests.kit.menus import MENUS, read_menu
from tests.kit.slow import MECHANISMS, mostly_slow

ROOT = Path(__file__).parents[2]
N_ITEMS, SLOTS, ROUNDS = 9, 3, 400
USERS = taste_groups(ROUNDS, N_ITEMS, groups=3, items_per_group=4, seed=2)


def fresh(name: str, feedback_window: int | None = None) -> tuple[Learner, FeedbackKind]:
    entry = LEARNERS[name]
    feedback = next(kind for kind in FEEDBACKS if kind in entry.reads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutOfRange)  # the paper's constants for so few rounds
        setting = Setting(N_ITEMS, SLOTS, ROUNDS, feedback, epsilon=4.0, feedback_window=feedback_window)
        return entry.for_setting(setting, rng=SeededSource(SEED)), feedback


WITH_MENUS = [
    name for name in with_variants() if isinstance(getattr(fresh(name)[0], "policy", None), MenuPolicy)
]


def answer(feedback: FeedbackKind, t: int, slate: tuple[int, ...]) -> Any:
    if feedback == "click":
        return USERS.click(t, slate)
    return USERS[t] if feedback == "full" else USERS[t].value(slate)


def played(
    name: str, silent: int | None = None, feedback_window: int | None = None
) -> Iterator[tuple[Menu, Items, Items]]:
    """Every menu of a run, and the slates and probes that the learner showed by it; who is `silent` does not answer."""
    learner, feedback = fresh(name, feedback_window)
    menu, rows, probes = None, list[Items](), list[tuple[int, int]]()
    for t in range(ROUNDS):
        decision = learner.choose()
        if learner.menu is not menu:
            if menu is not None:
                yield menu, np.array(rows), np.array(probes)
            menu, rows, probes = learner.menu, [], []
        rows.append(learner.row_of(decision))
        probes.append((-1, -1) if decision.probe is None else decision.probe)
        if t != silent:
            learner.observe(decision, answer(feedback, t, decision.slate))
    assert menu is not None
    yield menu, np.array(rows), np.array(probes)


def test_some_learners_have_menus_and_some_draw_from_secrets() -> None:
    assert {"random", "epoch-greedy"} <= set(WITH_MENUS)
    assert not {"fi-dp", "bandit-dp", "hedge"} & set(WITH_MENUS)


@pytest.mark.parametrize("feedback_window", mostly_slow([None, 25], [25]))
def test_another_process_chooses_the_same_slates(tmp_path: Path, feedback_window: int | None) -> None:
    """All learners in one process of its own, which holds nothing but menus and public coins."""
    expected = {}
    for name in WITH_MENUS:
        menus = list(played(name, feedback_window=feedback_window))
        for number, (menu, rows, probes) in enumerate(menus):
            case = f"{name}.{number:03d}"
            expected[case] = rows, probes
            (tmp_path / f"{case}.menu").write_bytes(menu.to_bytes())
            (tmp_path / f"{case}.rounds").write_text(str(len(rows)))
        firsts = [menu.first for menu, _, _ in menus]
        assert firsts == list(np.cumsum([0] + [len(rows) for _, rows, _ in menus[:-1]])), name
        assert [menu.end for menu, _, _ in menus[:-1]] == firsts[1:], name
    subprocess.run([sys.executable, "-m", "tests.kit.choose_by_menu", str(tmp_path)], cwd=ROOT, check=True)
    for case, (rows, probes) in expected.items():
        with np.load(tmp_path / f"{case}.npz") as result:
            np.testing.assert_array_equal(result["slates"], rows, err_msg=case)
            np.testing.assert_array_equal(result["probes"][:, :2], probes, err_msg=case)


def menus_beside(name: str, silent: Sequence[int], feedback_window: int | None = None) -> list[bool]:
    """For each user who might not answer: whether menus are the same, byte for byte, where the same is published."""
    with (taps := Taps()).open():
        menus = [menu.to_bytes() for menu, _, _ in played(name, feedback_window=feedback_window)]
    assert taps.crossings or not LEARNERS[name].private, "something is published, and menus follow it"
    result = []
    for user in silent:
        with Taps(taps.crossings).open():
            result.append([menu.to_bytes() for menu, _, _ in played(name, user, feedback_window)] == menus)
    return result


@pytest.mark.parametrize("feedback_window", mostly_slow([None, 25], [25]))
@pytest.mark.parametrize(
    "name",
    mostly_slow([name for name in WITH_MENUS if LEARNERS[name].private or name == "random"], MECHANISMS),
)
def test_nothing_private_is_in_a_menu(name: str, feedback_window: int | None) -> None:
    assert all(menus_beside(name, (0, 7, 150), feedback_window))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["slate-clicks", "overlap-greedy", "lazy-hedge", "epoch-greedy"])
def test_to_count_as_settled_who_has_answered_would_tell(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: in flight is issued minus answered, so that a batch closes when everybody in it has answered."""

    def answered(decisions: OpenDecisions) -> int:
        first = max(0, decisions.rounds - decisions.remembered)
        for number in range(first, decisions.rounds):
            if decisions.waiting[number % decisions.remembered]:
                return number
        return decisions.rounds

    monkeypatch.setattr(OpenDecisions, "closed", property(answered))
    with suppress(Diverged):  # noticed as soon as something else is published
        assert not all(menus_beside(name, (0, 7, 150), 25))


@pytest.mark.slow
def test_that_test_can_tell() -> None:
    """Counts that are published as they are pass no tap, and menus follow them."""
    assert not all(menus_beside("slate-totals:private=false", range(8)))


@pytest.mark.parametrize("name", WITH_MENUS)
def test_a_menu_is_read_back_as_it_was_written(name: str) -> None:
    menu = next(played(name))[0]
    written = menu.to_bytes()
    assert type(read_menu(written)) is type(menu)
    assert read_menu(written).to_bytes() == written


def test_what_is_no_menu_is_refused() -> None:
    with pytest.raises(InvalidInput, match="not a menu"):
        read_menu(b"nothing")
    with pytest.raises(InvalidInput, match="not a menu"):
        read_menu(fresh("random")[0].snapshot())


def test_every_kind_of_menu_is_shown_by_some_learner() -> None:
    shown = {type(menu) for name in WITH_MENUS for menu, _, _ in played(name)}
    # Of learners with rules or contexts: tests/learners/test_rules.py, test_contexts.py, test_slate_contexts.py.
    # Of plugins: tests/test_osm.py.
    restricted = {RandomFromLists, SlateByType, SlatesByGroup, SlatesFromPoint}
    assert shown | restricted == set(MENUS.values())
