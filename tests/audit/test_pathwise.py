"""Pathwise audits: chances are chances, lower bounds are below and not far below, and what is known is found."""

from __future__ import annotations

import dataclasses
import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from diminuendo.audit import laws
from diminuendo.audit.effort import ALPHA, EFFORTS
from diminuendo.audit.finding import Finding
from diminuendo.audit.known import Known, known_of
from diminuendo.audit.pathwise import AIM, Losses, _difference, _most, epsilon_of, mean_exceeds, pathwise
from diminuendo.audit.subjects import View, shipped
from diminuendo.audit.taps import DRAWN, SHOWN, Crossing
from diminuendo.audit.worlds import Script, neighbours
from diminuendo.errors import InvalidInput
from diminuendo.learners import Setting, with_variants
from diminuendo.privacy import curves
from diminuendo.streams.contexts import Contexts
from tests.kit.slow import mostly_slow

QUICK = EFFORTS["quick"]


# Laws.


@pytest.mark.parametrize("law", ["laplace", "gaussian", "normal"])
@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5, 100.0])
def test_chances_of_noise_add_up(law: str, scale: float) -> None:
    reach = np.arange(-math.ceil(45 * scale), math.ceil(45 * scale) + 1)
    covered = np.zeros(1, dtype=np.int64)
    total = math.fsum(math.exp(laws.LAWS[law](covered, scale, np.array([z]))) for z in reach)
    assert total == pytest.approx(1.0, abs=1e-9)


def test_chances_of_rounded_noise_are_those_of_intervals() -> None:
    """On both sides of where the formula changes, and where doubles would cancel, against 50 digits."""
    with mpmath.workdps(50):
        for sigma in (0.5, 20.0, 1023.0, 1025.0, 1e4, 1e10):
            for place in (0.0, 0.7, -3.2, 6.0, -11.0):
                z = round(place * sigma)
                low, high = ((mpmath.mpf(-abs(z)) + end) / mpmath.mpf(sigma) for end in (-0.5, 0.5))
                interval = mpmath.ncdf(high) - mpmath.ncdf(low)
                result = laws.normal(np.zeros(1, dtype=np.int64), sigma, np.array([z]))
                assert result == pytest.approx(float(mpmath.log(interval)), abs=1e-8)


def test_chances_of_draws_add_up() -> None:
    covered = np.random.default_rng(1).dirichlet(np.ones(3), size=3)
    for law in (DRAWN, SHOWN):
        crossing = Crossing(law, covered, 1.0, np.zeros(3, dtype=np.int64))
        listed = list(laws.listed(crossing))
        assert len({tuple(out) for out, _ in listed}) == len(listed)
        assert math.fsum(math.exp(chance) for _, chance in listed) == pytest.approx(1.0, rel=1e-12)


# Bounds.


@pytest.mark.parametrize("p", [0.02, 0.3, 0.9])
def test_a_mean_is_above_what_it_is_said_to_exceed(p: float) -> None:
    """Exactly, for coins: the chance that it is not is at most alpha, and not for want of trying."""
    alpha, runs = 0.05, 40

    def said(chance: float) -> float:
        return math.fsum(
            stats.binom.pmf(hits, runs, chance)
            for hits in range(runs + 1)
            if mean_exceeds(np.repeat([1.0, 0.0], [hits, runs - hits]), p, alpha)
        )

    assert 0 < said(p) <= alpha
    assert said(p + 0.9 * (1 - p)) > 0.5


def moved_losses(mu: float, delta: float, runs: int, random: np.random.Generator) -> Losses:
    """What paired runs with Gaussian noise give: losses where noise was moved for the epsilon that mu is worth."""
    spread = mu**2
    aim = AIM * curves.gaussian_epsilon(mu, delta)
    stretch = aim / spread - 0.5
    noise = random.normal(stretch * mu, 1.0, size=runs)
    weights = np.exp(-stretch * mu * noise + stretch**2 * spread / 2)
    return Losses(mu * noise + spread / 2, weights, _most(aim, spread, stretch))


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("runs", [24, 480])
def test_epsilon_is_at_least_what_is_shown_and_not_much_more(delta: float, runs: int) -> None:
    """Of 50 bounds, each wrong with chance ALPHA, none may be wrong. Half of the noise is always found, with many runs
    three quarters too: there the bounds are within a tenth of the truth."""
    random, mu = np.random.default_rng(7), curves.gaussian_mu(1.0, delta)

    def shown(factor: float) -> list[float]:
        return [epsilon_of(moved_losses(mu / factor, delta, runs, random), delta)[0] for _ in range(50)]

    assert max(shown(1.0)) <= 1.0
    assert min(shown(0.5 if runs == 24 else 0.75)) > 1.0
    if runs == 480:
        assert min(shown(1.0)) > 0.9


def test_views_that_the_other_world_cannot_come_to_show_everything() -> None:
    losses = np.array([math.inf] * 5 + [0.1] * 15)
    assert epsilon_of(Losses(losses, np.ones(20), 1.0), 1e-6) == (math.inf, 1 - ALPHA)
    once = np.array([math.inf] + [0.1] * 19)
    assert epsilon_of(Losses(once, np.ones(20), 1.0), 0.01)[0] < 1, (
        "once in 20 is no proof of one in a hundred"
    )
    assert epsilon_of(Losses(once, np.ones(20), 1.0), 0.0) == (math.inf, 1.0), (
        "without a delta once is enough"
    )


def test_what_is_not_charged_is_said_in_its_own_words() -> None:
    plain = Finding("pathwise", "x", "y", claimed=1.0, delta=1e-6, shown=1.45, confidence=1.0, runs=1)
    words = "more is moved than is charged: shifts worth 1.45"
    charged = dataclasses.replace(plain, uncharged=words)
    assert str(charged) == f"{words}, charged 1.00, VIOLATION (certain)"
    assert "attacker can show at least 1.45" in str(plain)
    assert charged.as_json()["uncharged"] == words


# Learners.


@pytest.mark.slow
def test_all_that_counts_promise_is_shown() -> None:
    """Laplace noise gives away all that it is paid for, in one view of two; so the promise is met exactly."""
    (result,) = pathwise(shipped("slate-clicks"), 1.0, 1e-6, QUICK, 1)
    assert (result.delta, result.confidence, result.violation) == (0.0, 1.0, False)
    assert result.shown == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    "name", mostly_slow(["overlap-greedy", "lazy-hedge", "bandit-dp:draw=direct"], ["overlap-greedy"])
)
def test_most_of_what_is_promised_is_shown(name: str) -> None:
    (result,) = pathwise(shipped(name), 1.0, 1e-6, QUICK, 1)
    assert 0.4 < result.shown <= result.claimed
    assert result.detail["words_used_twice"] == 0
    assert result.detail["passages"] > 0
    assert not result.violation


def test_where_nothing_depends_on_anybody_nothing_is_shown() -> None:
    (result,) = pathwise(shipped("random"), 1.0, 1e-6, QUICK, 1)
    assert (result.shown, result.claimed, result.violation) == (0.0, 0.0, False)
    assert pathwise(shipped("fi-pure"), 1.0, 1e-6, QUICK, 1) == [], "its noise passes where nobody watches"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::diminuendo.errors.OutOfRange")
@pytest.mark.parametrize("name", with_variants())
def test_every_shipped_learner_is_cleared(name: str) -> None:
    subject = shipped(name)
    if math.isfinite(subject.promise(Setting(2, 1, 4, subject.feedback)).epsilon):
        for epsilon in (0.3, 1.0, 4.0):
            for finding in pathwise(subject, epsilon, 1e-6, EFFORTS["full"], 1):
                assert not finding.violation, str(finding)


CONTEXTS = {
    "public": Contexts(group=3),
    "private": Contexts(group=3, private=True),
    "one private value": Contexts(member=["yes"], private=True),
    "two private columns": Contexts(group=2, coin=2, private=True),
}


@pytest.mark.parametrize("known", mostly_slow(CONTEXTS, ["private"]))
def test_a_learner_with_contexts_is_cleared(known: str) -> None:
    (result,) = pathwise(shipped("overlap-greedy", CONTEXTS[known]), 1.0, 1e-6, QUICK, 11)
    assert not result.violation, str(result)
    assert result.shown > 0.5, "and not because nothing was tried"


def test_neighbours_differ_in_what_is_known_only_where_it_is_hers_alone() -> None:
    random, setting = np.random.default_rng(0), Setting(3, 1, 6, "full", 1.0, 1e-6)
    for contexts, items in itertools.product((None, *CONTEXTS.values()), (0, 3)):
        for target in (0, 5):
            result = known_of(contexts, items, 6, target, random)
            hers = items > 0 or (contexts is not None and contexts.private)
            pair = neighbours(setting, "anybody", target, (), (), [None] * 6, result)
            assert pair.target_hidden == hers
            for part, differs in ((0, contexts is not None and contexts.private), (1, items > 0)):
                one, other = result[0][part], result[1][part]
                assert [a != b for a, b in zip(one, other, strict=True)] == [
                    differs and number == target for number in range(len(one))
                ]
            if contexts is None and not items:
                continue
            fewer = Known(result[0].contexts[:4], result[0].excluded[:4])
            with pytest.raises(InvalidInput, match="these do not"):
                dataclasses.replace(pair, other=dataclasses.replace(pair.other, known=fewer))
            if hers:
                with pytest.raises(InvalidInput, match="these do not"):
                    dataclasses.replace(pair, target_hidden=False)


def test_scripts_say_what_is_known_round_by_round() -> None:
    known = Known(({"group": "0"}, None), ((), (2, 1)))
    script = Script(2, (), known)
    assert (script.context_of(0), script.context_of(1)) == ({"group": "0"}, None)
    assert (script.excluded_by(0), script.excluded_by(1)) == ((), (2, 1))
    assert (Script(2, ()).context_of(1), Script(2, ()).excluded_by(1)) == (None, None)


def test_what_she_is_shown_herself_is_in_the_view_unless_more_than_her_answer_is_replaced() -> None:
    setting, random = Setting(3, 1, 6, "full", 1.0, 1e-6), np.random.default_rng(1)
    views = []
    for slate in (0, 1):
        slates, probes = np.zeros((6, 1), dtype=np.int32), np.full((6, 2), -1, dtype=np.int32)
        slates[2] = slate
        views.append(View(slates, probes, (), np.ones(6), ((2, f"returned {slate}"),)))
    for contexts, items, said in (
        (CONTEXTS["public"], 0, "other slates are shown"),
        (CONTEXTS["private"], 0, ""),
        (None, 3, ""),
    ):
        pair = neighbours(setting, "", 2, (), (), [None] * 6, known_of(contexts, items, 6, 2, random))
        assert _difference(views[0], views[1], pair, 0, 0) == said
