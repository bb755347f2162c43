"""OSMviaOCO and what it needs of the package: supergradients, slates from a point, and the plug-in itself.

Each check runs on what is shipped and on planted slips, which it must find.
"""

from __future__ import annotations

import itertools
import math
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import diminuendo as dim
from diminuendo._plugins import load
from diminuendo.audit import EFFORTS
from diminuendo.audit.pathwise import pathwise
from diminuendo.audit.subjects import shipped
from diminuendo.audit.without_noise import without_noise
from diminuendo.contract import CHECKS, cases_of
from diminuendo.contract.releases import check_what_is_restored_goes_on_as_the_learner_would
from diminuendo.contract.slates import check_replay_is_the_loop_on_functions_too
from diminuendo.errors import InvalidInput
from diminuendo.experts.capped_simplex import ONE
from diminuendo.extend import Frame, SlatesFromPoint, Supergradients, point_ends
from diminuendo.learners import LEARNERS, Setting
from diminuendo.learners.base.feedback import Objectives
from diminuendo.objectives import User
from diminuendo.randomness import SeededSource
from diminuendo.randomness.words import PublicSource
from diminuendo.types import ONE_MINUS_1_OVER_E, Floats
from tests.kit import brute
from tests.kit.menus import read_menu
from tests.kit.pages import blocks
from tests.kit.plugins import plugins_forgotten
from tests.kit.slow import mostly_slow
from tests.kit.statistics import assert_follows, assert_rejects

EXAMPLE = Path(__file__).parents[1] / "examples" / "osm_via_oco.py"
N_ITEMS = 5
ROUNDING = 1e-12

# Supergradients.

Supergradient = Callable[[User, Floats], tuple[float, Floats]]
KINDS = ("noisy-or", "best-match", "coverage", "mixture")


def shipped_supergradient(user: User, point: Floats) -> tuple[float, Floats]:
    return user.supergradient(point)


def multilinear(value: Callable[[tuple[int, ...]], float], point: Floats) -> float:
    """The mean over all sets, each item in it with its probability, independently."""
    total = 0.0
    for items in brute.subsets(len(point)):
        total += value(items) * math.prod(p if a in items else 1 - p for a, p in enumerate(point.tolist()))
    return total


def check_ceiling_and_sandwich(
    found: Supergradient, user: User, value: Callable[[tuple[int, ...]], float], point: Floats
) -> None:
    """Theorem 2 of docs/maths/hindsight.md on every set, and Theorem J1, by enumeration."""
    level, slope = found(user, point)
    for items in brute.subsets(len(point)):
        shown = np.isin(np.arange(len(point)), items)
        assert value(items) <= level + slope @ (shown - point) + ROUNDING
    for item in range(len(point)):
        assert 0 <= slope[item] <= value((item,)) + ROUNDING
    mean = multilinear(value, point)
    assert ONE_MINUS_1_OVER_E * level - ROUNDING <= mean <= level + ROUNDING


def points(rng: np.random.Generator, count: int) -> Iterator[Floats]:
    """Points of all sizes, some with entries that are 0 or 1."""
    for _ in range(count):
        point = rng.random(N_ITEMS) ** rng.choice([0.3, 1.0, 4.0])
        yield np.where(rng.random(N_ITEMS) < 0.15, np.round(point), point)


def check_kind(kind: str, found: Supergradient, crowds: int = 12) -> None:
    rng = np.random.default_rng(5)
    for crowd in itertools.islice(brute.tossed_crowds(kind, n_items=N_ITEMS, n_users=2), crowds):
        for t, user in enumerate(crowd.users()):

            def value(items: tuple[int, ...], t: int = t, crowd: brute.Crowd = crowd) -> float:
                return float(crowd.value(t, items))

            for point in points(rng, 6):
                check_ceiling_and_sandwich(found, user, value, point)


@pytest.mark.parametrize("kind", mostly_slow(KINDS, ("noisy-or", "coverage")))
def test_supergradients_are_ceilings_and_worth_what_is_proved(kind: str) -> None:
    check_kind(kind, shipped_supergradient)


@pytest.mark.parametrize("curve", ["capped", "exponential"])
def test_two_curves_are_worth_what_is_proved(curve: str) -> None:
    rng = np.random.default_rng(3)
    for scale, point in itertools.product((0.5, 1.0, 2.5), points(rng, 20)):
        weights = rng.random(N_ITEMS)
        user = dim.user(dim.Concave(curve, scale), dict(enumerate(weights)), N_ITEMS)
        check_ceiling_and_sandwich(shipped_supergradient, user, user.value, point)


def test_the_square_root_is_not_worth_as_much() -> None:
    """As docs/maths/osm.md says; so the sandwich is no check that everything passes."""
    weights, point = np.concatenate([[1.0], np.full(2000, 1e-8)]), np.concatenate([[0.3], np.ones(2000)])
    user = dim.user(dim.Concave("sqrt", 1.0), dict(enumerate(weights)), 2001)
    level, _ = user.supergradient(point)
    mean = 0.3 * user.value(range(2001)) + 0.7 * user.value(range(1, 2001))
    assert mean < ONE_MINUS_1_OVER_E * level


SLIPS: dict[str, Supergradient] = {
    "singleton values": lambda user, y: (float(user.gains(()) @ y), user.gains(())),
    "slopes too small": lambda user, y: (user.supergradient(y)[0], 0.9 * user.supergradient(y)[1]),
    "level of another point": lambda user, y: (user.supergradient(y / 2)[0], user.supergradient(y)[1]),
    "slopes of another item": lambda user, y: (
        user.supergradient(y)[0],
        np.roll(user.supergradient(y)[1], 1),
    ),
    "gains at the rounded point": lambda user, y: (
        user.value(np.flatnonzero(y > 0.5)) + float(user.gains(np.flatnonzero(y > 0.5)) @ y),
        user.gains(np.flatnonzero(y > 0.5)),
    ),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_slips_in_supergradients_are_found(slip: str) -> None:
    with pytest.raises(AssertionError):
        check_kind("noisy-or", SLIPS[slip])


def relaxation(user: User, weights: Floats, marks: Floats, point: Floats) -> float:
    """The concave forms of docs/maths/hindsight.md, Theorem 3, written out."""
    if isinstance(user.family, dim.NoisyOr):
        open_ = weights < 1
        curved = 1 - np.prod((1 - weights[open_]) ** point[open_]) + point[~open_].sum()
        return float(min(1.0, weights @ point, curved))
    if isinstance(user.family, dim.BestMatch):
        left, total = 1.0, 0.0
        for item in np.argsort(-weights):
            total += weights[item] * min(left, point[item])
            left -= min(left, point[item])
        return total
    return float(weights @ np.minimum(1.0, marks.T @ point))


def check_slopes(found: Supergradient, family: str) -> None:
    """Where the form has one derivative, by differences to both sides, the slope is it, cut to the item's value."""
    rng, step, smooth = np.random.default_rng(8), 1e-6, 0
    for _ in range(60):
        marks = (rng.random((N_ITEMS, 4)) < 0.4).astype(float)
        weights = rng.random(N_ITEMS) * (rng.random(N_ITEMS) < 0.8)
        weights = rng.dirichlet(np.ones(4)) if family == "coverage" else np.where(weights > 0.9, 1.0, weights)
        families = {"noisy-or": dim.NoisyOr(), "best-match": dim.BestMatch(), "coverage": dim.Coverage(marks)}
        user = dim.user(families[family], dict(enumerate(weights)), N_ITEMS)
        point = 0.05 + 0.9 * rng.random(N_ITEMS)
        level, slope = found(user, point)
        here = relaxation(user, weights, marks, point)
        assert level <= here + ROUNDING
        uncut = True
        for item in range(N_ITEMS):
            aside = step * np.eye(N_ITEMS)[item]
            above = (relaxation(user, weights, marks, point + aside) - here) / step
            below = (here - relaxation(user, weights, marks, point - aside)) / step
            if abs(above - below) > 1e-4:
                uncut = False
                continue
            alone = user.value([item])
            assert slope[item] == pytest.approx(min(above, alone), abs=1e-4)
            uncut &= above < alone + 1e-4
            smooth += 1
        if uncut:
            assert level == pytest.approx(here, abs=1e-9)
    assert smooth > 150


@pytest.mark.parametrize("family", ["noisy-or", "best-match", "coverage"])
def test_slopes_are_derivatives(family: str) -> None:
    check_slopes(shipped_supergradient, family)


@pytest.mark.parametrize("slip", SLIPS)
def test_slips_in_slopes_are_found(slip: str) -> None:
    with pytest.raises(AssertionError):
        check_slopes(SLIPS[slip], "noisy-or")


@pytest.mark.parametrize("point", [[0.5], [0.5, 1.5, 0.0], [0.1, np.nan, 0.0], "abc"])
def test_points_are_checked(point: Any) -> None:
    user = dim.user(dim.NoisyOr(), {0: 0.5}, 3)
    with pytest.raises(InvalidInput, match="point"):
        user.supergradient(point)


# Slates from a point.

POINT = np.array([7, 5, 2, 1, 6, 3]) / 8


def law_of(menu: SlatesFromPoint) -> dict[tuple[int, ...], float]:
    """Every slate in every order, with the chance that the menu says."""
    chooser = menu.chooser()
    rows = itertools.permutations(range(menu.n_items), menu.slots)
    return {row: chooser.propensity(0, np.array(row, dtype=np.int32)) or 0.0 for row in rows}


def check_law(law: dict[tuple[int, ...], float], point: Floats) -> None:
    """Chances add up to 1, and each item is shown as often as the point says; rewards are no worse than F."""
    assert sum(law.values()) == pytest.approx(1, abs=1e-11)
    for item, share in enumerate(point):
        assert sum(p for row, p in law.items() if item in row) == pytest.approx(share, abs=1e-11)
    users = itertools.islice(brute.tossed_crowds("noisy-or", n_items=len(point)), 6)
    values: list[Callable[[tuple[int, ...]], float]] = [lambda items: float(0 in items or 1 in items)]
    values += [lambda items, user=user: float(user.value(0, items)) for user in users]  # type: ignore[misc]
    for value in values:
        assert sum(p * value(row) for row, p in law.items()) >= multilinear(value, point) - 1e-11


def menu_of(point: Floats, slots: int) -> SlatesFromPoint:
    return SlatesFromPoint(len(point), slots, 0, None, 0, point_ends(point, slots))


def test_the_law_of_slates_by_enumeration() -> None:
    menu = menu_of(POINT, 3)
    law = law_of(menu)
    check_law(law, POINT)
    check_law(law, menu.point)
    half = np.full(4, 0.5)
    check_law(law_of(menu_of(half, 2)), half)
    with pytest.raises(AssertionError):
        check_law(law_of(menu_of(POINT[[0, 1, 3, 2, 4, 5]], 3)), POINT)
    with pytest.raises(AssertionError):  # shares are right, and items come together
        check_law({(0, 1): 0.5, (2, 3): 0.5}, half)


def test_slates_follow_the_law() -> None:
    menu, rng, done = menu_of(POINT, 3), PublicSource(SeededSource(4), size=64), 0
    slates, probes = np.zeros((30_000, 3), dtype=np.int32), np.zeros((30_000, 3), dtype=np.int32)
    chooser = menu.chooser()
    while done < len(slates):
        done += chooser.draw(done, slates[done:], probes[done:], rng.view)
        if done < len(slates):
            rng.resume()
    law = law_of(menu)
    names = list(law)
    place = {row: i for i, row in enumerate(names)}
    drawn = [place[tuple(row)] for row in slates.tolist()]
    assert_follows(drawn, np.array([law[row] for row in names]))
    near = law_of(menu_of(POINT + np.array([-1, 1, 0, 0, 0, 0]) / 32, 3))
    assert_rejects(drawn, np.array([near[row] for row in names]))


def test_a_menu_travels_and_is_checked() -> None:
    menu = menu_of(POINT, 3)
    again = read_menu(menu.to_bytes())
    assert isinstance(again, SlatesFromPoint)
    np.testing.assert_array_equal(again.ends, menu.ends)
    np.testing.assert_allclose(menu.point, POINT, atol=6 / ONE)
    ends = menu.ends
    wrong: Any
    for wrong in (ends[:-1], ends + 1, ends[::-1].copy(), ends.astype(float), np.linspace(0, 3, 7)):
        with pytest.raises(InvalidInput, match="capped simplex"):
            SlatesFromPoint(6, 3, 0, None, 0, wrong)
    for point in (
        POINT * 1.01,
        POINT[:-1],
        np.append(POINT[1:], np.nan),
        POINT[:, None],
        POINT * [2, 0, 1, 1, 1, 1],
    ):
        with pytest.raises(InvalidInput, match="add up to 3"):
            point_ends(point, 3)


# The plug-in.


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Loads the example, or one with slips: what is written in place of what."""

    def loaded(*slips: tuple[str, str]) -> None:
        text = EXAMPLE.read_text()
        for right, wrong in slips:
            assert text.count(right) == 1, right
            text = text.replace(right, wrong)
        (tmp_path / "osm_tried.py").write_text(text)
        load(str(tmp_path / "osm_tried.py"))

    with plugins_forgotten():
        yield loaded
    sys.modules.pop("osm_tried", None)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: str(check.__name__))
@pytest.mark.parametrize("name", ["osm", "osm-dp"])
def test_it_keeps_the_contract(plugin: Callable[..., None], name: str, check: Any) -> None:
    plugin()
    for case in cases_of(LEARNERS[name]):
        check(case)


def test_a_snapshot_that_lacks_the_cost_fails_the_contract(plugin: Callable[..., None]) -> None:
    plugin(
        ("return self.cost, self.released", "return self.released"),
        ("        self.cost += step_cost", "        self.cost = self.cost + step_cost"),
    )
    (case,) = cases_of(LEARNERS["osm-dp"])
    with pytest.raises(AssertionError, match="lacks something"):
        check_what_is_restored_goes_on_as_the_learner_would(case)


def test_functions_are_shown_something_else_than_rows(
    plugin: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The contract leaves one check out for learners that read rows; without that it fails, as it should."""
    plugin()
    (case,) = cases_of(LEARNERS["osm"])
    assert case.reads_rows
    monkeypatch.setattr(type(case), "reads_rows", False)
    with pytest.raises(AssertionError, match="not equal"):
        check_replay_is_the_loop_on_functions_too(case)


def regret_of(name: str, users: dim.Users, **options: Any) -> tuple[float, float]:
    """To (1 - 1/e) of the best slate, and what is proved."""
    setting = Setting(users.n_items, 3, len(users), "full", epsilon=20.0)
    learner = LEARNERS[name].for_setting(setting, rng=dim.SeededSource(2), **options)
    bound = learner.policy.regret_bound()
    assert bound is not None
    best = dim.optimum(users, 3).lower * len(users)
    return ONE_MINUS_1_OVER_E * best - float(users.values(learner.replay(users)).sum()), bound


def crowd(rounds: int = 3000, n_items: int = 12) -> dim.Users:
    """Users who want one of four items, and never one of the others."""
    wanted = np.random.default_rng(1).integers(4, size=rounds)
    return dim.Users(dim.NoisyOr(), (0.9 * np.eye(n_items)[wanted],), n_items)


@pytest.mark.parametrize(("name", "options"), [("osm", {"batches": 3000}), ("osm-dp", {"length": 5.0})])
def test_regret_is_within_the_bound(plugin: Callable[..., None], name: str, options: dict[str, Any]) -> None:
    plugin()
    regret, bound = regret_of(name, crowd(), **options)
    assert regret <= bound


def test_who_goes_the_wrong_way_exceeds_the_bound(plugin: Callable[..., None]) -> None:
    plugin(("leader(self.released,", "leader(-self.released,"))
    regret, bound = regret_of("osm", crowd(), batches=3000)
    assert regret > bound


def test_no_bound_is_claimed_where_none_is_proved(plugin: Callable[..., None]) -> None:
    plugin()
    make = LEARNERS["osm-dp"].for_setting
    assert make(Setting(12, 3, 500, "full")).policy.regret_bound() is None  # clipped to length 1
    assert make(Setting(12, 3, 500, "full", feedback_window=5), length=5.0).policy.regret_bound() is None


def test_the_audit_finds_nothing_and_is_not_blind(plugin: Callable[..., None]) -> None:
    """The ledger's epsilon holds along the worst path that is tried; without noise, or counted twice, it does not."""
    plugin()
    (result,) = pathwise(shipped("osm-dp"), 1.0, 1e-6, EFFORTS["quick"], 1)
    assert not result.violation
    (result,) = pathwise(without_noise("osm-dp"), 1.0, 1e-6, EFFORTS["quick"], 1)
    assert result.violation


def test_the_audit_finds_who_counts_twice(plugin: Callable[..., None]) -> None:
    add = "self.total.add(answer, batch=self.total.schedule.batch_of(number))"
    plugin((add, f"{add}\n        {add}"))
    (result,) = pathwise(shipped("osm-dp"), 1.0, 1e-6, EFFORTS["quick"], 1)
    assert result.violation


# Hostile answers.


def test_whatever_is_said_counts_as_numbers_in_the_unit_interval() -> None:
    reader, decision = Supergradients(lambda: np.full(4, 0.5)), dim.Decision(0, (0, 1))
    frame = Frame("osm", 4, 2)

    def ends() -> float:
        raise ValueError("secret")

    user = dim.user(dim.NoisyOr(), {0: 0.5, 2: 1.0}, 4)
    slope = reader(frame, decision, user)
    np.testing.assert_array_equal(slope, user.supergradient(np.full(4, 0.5))[1])
    assert (reader(frame, decision, dim.Oracle(lambda items: ends(), 4)) == 0).all()
    seen = reader(frame, decision, dim.Oracle(lambda items: 0.25 * bool(items), 4))
    np.testing.assert_array_equal(seen, np.full(4, 0.25))
    assert reader.kinds == Objectives.kinds
    with pytest.raises(InvalidInput):
        reader(frame, decision, dim.user(dim.NoisyOr(), {0: 0.5}, 5))


@pytest.mark.slow
def test_the_page_shows_what_the_example_prints(capsys: pytest.CaptureFixture[str]) -> None:
    page = EXAMPLE.parents[1] / "docs" / "how-to" / "your-own-learner.md"
    (shown,) = (block.text for block in blocks(page) if block.text.startswith("msweb:"))
    with plugins_forgotten():
        runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert capsys.readouterr().out == shown
