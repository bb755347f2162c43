"""The noise that a plan foretells is the noise that the learner publishes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats

from diminuendo import NoisyOr, SeededSource, Setting, Users
from diminuendo.learners import OverlapGreedy
from diminuendo.learners.overlap import query_weights
from diminuendo.learners.overlap.schedule import OverlapPlan
from diminuendo.plan import plan
from diminuendo.plan.noise import SURE, apart, deviations
from diminuendo.types import Floats
from tests.kit.statistics import ALPHA
from tests.learners.test_overlap_greedy import policy_of, shown_of

ITEMS, GROUPS, CARES, ROUNDS, SEEDS = 600, 100, 3, 6_000, 30
SETTING = Setting(ITEMS, 1, ROUNDS, "full", 0.8, 1e-6)


def users() -> Users:
    """User t wants the three even items of group t mod 100, fully; no user wants odd items."""
    wanted = 2 * (CARES * (np.arange(ROUNDS) % GROUPS)[:, None] + np.arange(CARES))
    starts = CARES * np.arange(ROUNDS + 1)
    return Users(
        NoisyOr(),
        sparse.csr_array((np.ones(CARES * ROUNDS), wanted.ravel(), starts), shape=(ROUNDS, ITEMS)),
    )


@pytest.fixture(scope="module")
def published() -> tuple[OverlapPlan, Floats]:
    """For each seed, what the learner holds every item's share to be after its last release; all items count alike."""
    rows, stream = [], users()
    with pytest.MonkeyPatch.context() as alike:
        alike.setattr(query_weights, "FLOOR", 1.0)
        for seed in range(SEEDS):
            learner = OverlapGreedy.for_setting(SETTING, rng=SeededSource(seed))
            learner.replay(stream)
            policy = policy_of(learner)
            if (
                policy._position.memory_begins == 0
            ):  # else memory began anew, and fewer releases were averaged
                rows.append(shown_of(learner).picker.worth.preview([0])[0][0])
    assert len(rows) > 0.9 * SEEDS
    return policy.plan, np.array(rows)


def two_sided(statistic: float, law: Any) -> float:
    """The p-value of a statistic that should be neither small nor large."""
    return float(2 * min(law.cdf(statistic), law.sf(statistic)))


def test_the_deviation_of_what_is_published(published: tuple[OverlapPlan, Floats]) -> None:
    plans, shares = published
    foretold = float(deviations(plans, CARES)[-1]) / plans.schedule.ends[plans.releases - 1]
    unwanted = shares[:, 1::2]  # nothing but noise, independent over items and seeds
    squares, law = float((unwanted**2).sum()), stats.chi2(unwanted.size)
    assert two_sided(squares / foretold**2, law) > ALPHA
    for wrong in (0.9, 1.1):
        assert two_sided(squares / (wrong * foretold) ** 2, law) < ALPHA, "ten percent off would be noticed"


def test_how_often_the_better_item_comes_out_ahead(published: tuple[OverlapPlan, Floats]) -> None:
    plans, shares = published
    deviation, more = float(deviations(plans, CARES)[-1]), plans.schedule.ends[plans.releases - 1] / GROUPS
    ahead, pairs = int((shares[:, ::2] > shares[:, 1::2]).sum()), shares.size // 2
    # `more` users want the even one: apart() is linear, so this is how many quantiles they are apart
    often = stats.norm.cdf(stats.norm.ppf(SURE) * more / apart(deviation, CARES))
    assert stats.binomtest(ahead, pairs, often).pvalue > ALPHA
    for wrong in (0.9, 1.1):
        often = stats.norm.cdf(stats.norm.ppf(SURE) * more / apart(wrong * deviation, CARES))
        assert stats.binomtest(ahead, pairs, often).pvalue < ALPHA, "ten percent off would be noticed"


def test_clipping_counts_a_user_who_wants_three_things_less(
    published: tuple[OverlapPlan, Floats],
) -> None:
    plans, shares = published
    deviation = float(deviations(plans, CARES)[-1]) / plans.schedule.ends[plans.releases - 1]
    wanted = shares[:, ::2]
    # Batches are not whole cycles of the groups, so an item's own share may be off, but the mean over items is exact,
    # up to the tick that is rounded off.
    mean, expected = float(wanted.mean()), 1 / GROUPS / math.sqrt(CARES)
    sure = float(stats.norm.isf(ALPHA / 2)) * deviation / math.sqrt(wanted.size)
    assert abs(mean - expected) < sure + 1 / GROUPS / 1024
    assert abs(mean - 1 / GROUPS) > sure + 1 / GROUPS / 1024, "counting the user fully would be noticed"


def test_the_plan_says_it() -> None:
    result = plan(50, 5, 100_000, cares_about=9)
    assert result.noise is not None
    # sqrt(2) / mu is 5.97 users at (1, 1e-6); .95 of the budget is for sums, about half of that for singles, and
    # averages over releases of overlapping users cost a factor of about sqrt(2) more.
    assert 5.97 / math.sqrt(0.95) < result.noise.deviation < 3 * 5.97
    assert result.noise.apart == pytest.approx(1.6448536 * math.sqrt(18) * result.noise.deviation)
    assert result.noise.users < 100_000
    again = plan(50, 5, 100_000, cares_about=1, epsilon=0.1).noise
    assert again is not None
    assert 2 < again.apart / result.noise.apart < 3.5, (
        "nearly ten times the noise, and three times what one counts"
    )
    assert plan(50, 5, 100_000, feedback="bandit").noise is None
