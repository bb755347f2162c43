"""The black box: bounds hold as often as they say, known leaks are shown, and luck is never mistaken for a leak."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from diminuendo.audit.black_box import _worlds, attack
from diminuendo.audit.classifier import Reader
from diminuendo.audit.effort import ALPHA, FALSE_ALARM, MOST_SUBJECTS, Effort
from diminuendo.audit.finding import at_least, at_most, epsilon_shown
from diminuendo.audit.subjects import Subject, View
from diminuendo.audit.variants import tried, tried_subject
from diminuendo.audit.worlds import SILENT, Neighbours, candidates, neighbours
from diminuendo.learners import LEARNERS, Setting, with_variants
from diminuendo.privacy.budget import Guarantee
from diminuendo.randomness import noise
from diminuendo.randomness.sources import RandomSource
from diminuendo.randomness.words import SecretRandomness
from diminuendo.types import EMPTY_SLOT, FEEDBACKS, Decision
from tests.kit.scripts import prompt

SETTING = Setting(2, 1, 2, "bandit")
EFFORT = Effort("test", scouts=100, training=1_200, scored=4_000, paths=1, views=1)


def binomial(runs: int, chance: float) -> np.ndarray:
    return np.array([math.comb(runs, h) * chance**h * (1 - chance) ** (runs - h) for h in range(runs + 1)])


# Bounds.


@pytest.mark.parametrize("chance", [0.0, 0.02, 0.3, 0.5, 0.9, 1.0])
def test_bounds_on_a_chance_are_wrong_as_rarely_as_they_say(chance: float) -> None:
    """Every outcome of 25 runs is counted, with its chance."""
    runs, alpha = 25, 0.05
    hits, law = np.arange(runs + 1), binomial(25, chance)
    rounding = 1e-12  # the law's chances add up to 1 to about 26 * 2**-53; bounds at 0 and 1 are exact
    assert law[at_least(hits, runs, alpha) > chance + rounding].sum() <= alpha
    assert law[at_most(hits, runs, alpha) < chance - rounding].sum() <= alpha


def test_a_slightly_bolder_bound_would_be_wrong_too_often() -> None:
    """Clopper and Pearson's bound is the chance at which so many hits are as rare as alpha: not a hair less."""
    for hits in (1, 7, 24):
        edge = float(at_least(hits, 25, 0.05))
        assert binomial(25, edge)[hits:].sum() == pytest.approx(0.05, rel=1e-9)  # beta.ppf is that exact
        assert binomial(25, edge * 1.01)[hits:].sum() > 0.05


@pytest.mark.parametrize(
    ("p", "q", "delta"), [(0.5, 0.5, 0.0), (0.6, 0.2, 0.0), (0.3, 0.1, 0.05), (0.2, 0.0, 0.2)]
)
def test_epsilon_is_overstated_as_rarely_as_is_said(p: float, q: float, delta: float) -> None:
    """All pairs of counts, each with its chance; the true epsilon of this one event is known."""
    runs, alpha = 30, 0.05
    true = math.log((p - delta) / q) if q and p > delta else 0.0 if p <= delta else math.inf
    hits, others = np.meshgrid(np.arange(runs + 1), np.arange(runs + 1), indexing="ij")
    chance = np.outer(binomial(runs, p), binomial(runs, q))
    assert chance[epsilon_shown(hits, others, runs, delta, alpha) > max(0.0, true)].sum() <= alpha


def test_many_runs_show_nearly_all() -> None:
    assert float(epsilon_shown(500_000, 184_000, 1_000_000, 0.0, ALPHA)) == pytest.approx(
        math.log(500 / 184), abs=0.02
    )
    assert float(epsilon_shown(10, 10, 20, 0.0, ALPHA)) == 0.0
    assert float(epsilon_shown(0, 0, 20, 0.0, ALPHA)) == 0.0


def test_the_error_rate_of_a_whole_audit_is_shared_out() -> None:
    assert sum(1 + len(tried(name)) for name in with_variants()) <= MOST_SUBJECTS
    assert 2 * MOST_SUBJECTS * ALPHA <= FALSE_ALARM * (1 + 1e-12)


# Toys whose epsilon is known.


class Toy:
    """As much of a learner as can be seen from outside: its first user's answer decides what is shown next."""

    name = "toy"

    def __init__(self, rng: RandomSource, claimed: float) -> None:
        self.secret = SecretRandomness(rng)
        self.random = np.random.default_rng(int(rng.secret(1)[0]))
        self.claimed, self.shown, self.told = claimed, 0, 0.0

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(self.claimed, 0.0, "replace one round", "", False)

    def choose(self, *, context: None = None, exclude: None = None) -> Decision:
        self.shown += 1
        return Decision(self.shown - 1, (self._item(),))

    def _item(self) -> int:
        return 0

    def row_of(self, decision: Decision) -> np.ndarray:
        return np.array(decision.slate, dtype=np.int32)

    def observe(self, decision: Decision, feedback: float) -> None:
        self.told += feedback if decision.round == 0 else 0.0


class RandomizedResponse(Toy):
    """Shows what she said with odds of e to 1: epsilon is exactly 1."""

    def _item(self) -> int:
        lies = self.random.random() > math.e / (1 + math.e)
        return int((self.told > 0.5) != lies)


class NoisyCount(Toy):
    """Publishes her answer with Laplace noise of scale 1 and shows always the same: epsilon is exactly 1."""

    scale = 1.0

    def _item(self) -> int:
        if self.shown == 2:
            noise.laplace(np.array([round(self.told)], dtype=np.int64), self.scale, self.secret)
        return 0


class HalfTheNoise(NoisyCount):
    scale = 0.5


class Deaf(Toy):
    """Shows anything, whatever she says."""

    def _item(self) -> int:
        return int(self.random.random() < 0.5)


def subject(kind: type[Toy], claimed: float) -> Subject:
    def make(setting: Setting, rng: RandomSource) -> Any:
        return kind(rng, claimed)

    return Subject(kind.__name__, "bandit", make)


def says(value: float) -> Any:
    return lambda slate: value


NOTHING = Neighbours("same", SETTING, 0, prompt([says(0.0), None]), prompt([says(0.0), None]))
PAIR = Neighbours("1 or 0", SETTING, 0, prompt([says(1.0), None]), prompt([says(0.0), None]))


@pytest.mark.parametrize("kind", [RandomizedResponse, NoisyCount])
def test_a_known_epsilon_is_nearly_shown_and_never_exceeded(kind: type[Toy]) -> None:
    finding = attack(subject(kind, 1.0), [NOTHING, PAIR], EFFORT, seed=1)
    assert finding.about == "1 or 0", "scouts find the pair in which something is to be found"
    assert not finding.violation
    # Of 1,000 runs: the best event has chances .5 and .184, or .73 and .27; its bounds are 5 deviations off.
    assert 0.5 < finding.shown <= 1.0
    assert finding.confidence == 1 - ALPHA


@pytest.mark.parametrize(("kind", "claimed"), [(RandomizedResponse, 0.4), (HalfTheNoise, 1.0)])
def test_who_claims_too_little_is_found(kind: type[Toy], claimed: float) -> None:
    finding = attack(subject(kind, claimed), [NOTHING, PAIR], EFFORT, seed=2)
    assert finding.violation
    assert finding.claimed < finding.shown < 2.0


def test_luck_is_not_mistaken_for_a_leak() -> None:
    """Thousands of events are looked at; the best by luck is counted anew, and has gone."""
    for seed in range(2):
        finding = attack(subject(Deaf, 0.0), [PAIR], EFFORT, seed=seed)
        assert finding.shown == 0.0
        assert not finding.violation


def test_every_run_is_fresh() -> None:
    """What is counted was not looked at before: as many different seeds are used as runs are stated."""
    seeds: list[int] = []

    def make(setting: Setting, rng: RandomSource) -> Any:
        seeds.append(getattr(rng, "seed", -1))
        return Deaf(rng, 0.0)

    few = Effort("test", scouts=5, training=40, scored=80, paths=1, views=1)
    finding = attack(Subject("deaf", "bandit", make), [NOTHING, PAIR], few, seed=1)
    played = [seed for seed in seeds if seed > 2**32]  # promises are asked of small seeds
    assert finding.runs == 2 * (2 * 2 * 5 + 10 + 20)  # a run of 2 rounds, and its start, counts as 4 rounds
    assert len(set(played)) == len(played) == finding.runs


def test_the_same_seed_finds_the_same() -> None:
    few = Effort("test", scouts=0, training=200, scored=400, paths=1, views=1)
    first, again, other = (attack(subject(NoisyCount, 1.0), [PAIR], few, seed=seed) for seed in (3, 3, 4))
    assert first == again
    assert first.detail != other.detail


def test_the_largest_promise_counts_where_rng_decide_it() -> None:
    """Some learners promise more or less as their public coins fall; who sees the coins is promised the worst."""

    def make(setting: Setting, rng: RandomSource) -> Any:
        return RandomizedResponse(rng, 1.0 if getattr(rng, "seed", 0) % 5 == 4 else 0.1)

    few = Effort("test", scouts=0, training=200, scored=400, paths=1, views=1)
    assert attack(Subject("rng", "bandit", make), [PAIR], few, seed=1).claimed == 1.0


# What the attacker looks at.


def test_columns_are_the_same_whatever_is_published() -> None:
    def view(*published: list[int]) -> View:
        return View(
            np.zeros((3, 1), dtype=np.int32),
            np.array([[0, 1], [-1, -1], [-1, -1]], dtype=np.int32),
            tuple(np.array(numbers) for numbers in published),
        )

    views = [view([1, 2], [3, 4]), view([5, 6])]
    reader = Reader.of(views, n_items=2, target=0)
    assert reader.sizes == (2, 2)
    known = reader.columns(views)
    longer = reader.columns([view([1, 2, 9], [3, 4], [7]), view()])
    assert known.shape == longer.shape
    np.testing.assert_array_equal(known[0, :-2], longer[0, :-2])  # all but the number of publications
    for number in (1, 2, 3, 4):
        assert number in known[0]
    assert {3 - 1, 4 - 2} <= set(known[0]), "what changed from one to the next"


def test_every_learner_has_neighbours() -> None:
    for name, learner in LEARNERS.items():
        for feedback in FEEDBACKS:
            if feedback in learner.reads:
                result = candidates(name, feedback, 1.0, 1e-6)
                assert len(result) >= 4
                assert len({pair.about for pair in result}) == len(result)
                assert any(not [a for a in pair.other.answers if a.to == pair.target] for pair in result), (
                    "silence"
                )


@pytest.mark.parametrize("variant", ["contexts", "private contexts", "exclusions"])
def test_an_attacker_sees_what_she_is_shown_unless_that_is_hers_alone(variant: str) -> None:
    subject = tried_subject(f"overlap-greedy, {variant}")
    random = np.random.default_rng(3)
    setting = Setting(3, 2, 6, "full", 1.0, 1e-6)
    known = subject.knows(setting, 2, random)
    pair = neighbours(setting, "anybody", 2, SILENT, SILENT, [None] * 6, known)
    for views in _worlds(subject, pair, 2, iter(range(10))):
        for view in views:
            assert (view.slates[2] == EMPTY_SLOT).all() == (variant != "contexts")
            assert (view.slates[:2] != EMPTY_SLOT).any(axis=1).all() or variant == "exclusions"


def test_users_of_an_attack_from_outside_are_known_as_the_subject_says() -> None:
    subject, random = tried_subject("overlap-greedy, private, exclusions"), np.random.default_rng(4)
    pairs = candidates(
        "overlap-greedy", "full", 1.0, 1e-6, lambda setting, target: subject.knows(setting, target, random)
    )
    for pair in pairs:
        assert pair.target_hidden
        for one, other in zip(pair.one.known, pair.other.known, strict=True):
            assert len(one) == len(other) == pair.setting.rounds
            assert [a != b for a, b in zip(one, other, strict=True)] == [
                number == pair.target for number in range(pair.setting.rounds)
            ]
