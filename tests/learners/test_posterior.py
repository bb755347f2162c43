"""Beliefs are posterior means: better than what was measured, and right where noise is small."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from diminuendo.learners.overlap import posterior as belief_file
from diminuendo.learners.overlap.posterior import SHARES, SPREADS, TILE, Posterior, from_singletons
from diminuendo.learners.overlap.running_means import Measured, RunningMeans, units_since
from tests.kit.statistics import ALPHA
from tests.learners import plain_posterior

ITEMS = 400
SINCE = np.zeros(ITEMS, dtype=np.int64)


def market(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A few items are worth much, most little; half lose a third, some nearly all, others nothing."""
    worth = 10.0 * np.arange(1, ITEMS + 1) ** -0.8
    share = random.choice([0.0, 1 / 3, 0.9], size=ITEMS, p=[0.4, 0.5, 0.1])
    return worth, share * worth


def errors(seeds: range, noise: float) -> np.ndarray:
    """Mean squared errors of singles, of gains after a row, and of gains after a rest: believed, and measured."""
    result = []
    for seed in seeds:
        random = np.random.default_rng(seed)
        worth, lost = market(random)
        deviation = np.full(ITEMS, noise)
        singletons, row, rest = (
            truth + noise * random.normal(size=ITEMS) for truth in (worth, lost, worth - lost)
        )
        first = from_singletons(singletons, deviation)
        second = first.condition_on_losses(row, deviation)
        third = second.condition_on_gains(rest, deviation)
        pairs = (
            (first.mean - worth, singletons - worth),
            (second.mean - (worth - lost), singletons - row - (worth - lost)),
            (third.mean - (worth - lost), rest - (worth - lost)),
        )
        result.append([[float((error**2).mean()) for error in pair] for pair in pairs])
    return np.array(result)


@pytest.mark.parametrize("noise", [0.1, 0.5, 2.0])
def test_beliefs_are_closer_than_measurements(noise: float) -> None:
    """At each stage, over 30 markets: a paired t test at ALPHA."""
    for stage in errors(range(30), noise).transpose(1, 0, 2):
        gain = np.log(stage[:, 1] / stage[:, 0])
        assert stats.ttest_1samp(gain, 0.0, alternative="greater").pvalue < ALPHA


def test_with_little_noise_beliefs_are_what_was_measured() -> None:
    random = np.random.default_rng(1)
    worth, lost = market(random)
    small = np.full(ITEMS, 1e-6)
    first = from_singletons(worth, small)
    np.testing.assert_allclose(first.mean, worth, atol=1e-5)
    second = first.condition_on_losses(lost, small)
    np.testing.assert_allclose(second.mean, worth - lost, atol=1e-5)
    np.testing.assert_allclose(second.condition_on_gains(worth - lost, small).mean, worth - lost, atol=1e-5)


def test_variances_are_those_of_the_errors() -> None:
    """Squared errors over variances average to 1: within a fifth, where halving or doubling them would not be."""
    noise, ratios = 0.5, []
    for seed in range(20):
        random = np.random.default_rng(seed)
        worth, lost = market(random)
        deviation = np.full(ITEMS, noise)
        first = from_singletons(worth + noise * random.normal(size=ITEMS), deviation)
        second = first.condition_on_losses(lost + noise * random.normal(size=ITEMS), deviation)
        for posterior, truth in ((first, worth), (second, worth - lost)):
            ratios.append(float(((posterior.mean - truth) ** 2).sum() / posterior.variance.sum()))
    assert 0.8 < np.mean(ratios[::2]) < 1.25
    assert 0.8 < np.mean(ratios[1::2]) < 1.25


def test_what_was_not_measured_is_taken_for_what_is_usual() -> None:
    noise = np.full(ITEMS, 0.01)
    worth = np.full(ITEMS, 5.0)
    known = noise.copy()
    known[7] = np.inf
    after = from_singletons(worth, noise).condition_on_losses(np.full(ITEMS, 0.45 * 5.0), known)
    assert after.mean[0] == pytest.approx(0.55 * 5.0, abs=0.05)
    assert after.mean[7] == pytest.approx(0.55 * 5.0, abs=0.3), "as everybody else"
    assert after.variance[7] > 100 * after.variance[0]
    nothing = from_singletons(worth, np.full(ITEMS, np.inf))
    assert (nothing.mean == 0).all()
    same = Posterior(worth, noise).condition_on_losses(worth, np.full(ITEMS, np.inf))
    np.testing.assert_array_equal(same.mean, worth)


def test_shares_cover_everything_from_nothing_to_all() -> None:
    """Between neighbouring shares there is no gap that neither reaches."""
    low, high = SHARES - 2 * SPREADS, SHARES + 2 * SPREADS
    assert SHARES[0] == 0.0
    assert (high[1:-1] >= low[2:]).all()
    assert high[-1] >= 1.0


def test_running_means_count_by_precision_and_make_room() -> None:
    means = RunningMeans(2, 3, 2)

    def add(key: list[int], rate: float, deviation: float) -> tuple[float, float]:
        result = Measured(np.array([rate, 0.0]), np.ones(2), deviation)
        foretold = means.preview(key, result)
        means.add((key, result))
        np.testing.assert_array_equal(means.preview(key), foretold)
        (mean,), (spread,) = means.preview(key)
        return float(mean[0]), float(spread[0])

    add([1], 1.0, 1.0)
    assert add([1], 4.0, 0.5) == pytest.approx(((1 + 4 * 4) / 5, 5**-0.5))
    add([2, 1], 7.0, 1.0)
    assert add([1], 0.0, 1.0)[0] == pytest.approx(17 / 6)
    add([3], 0.0, 1.0)  # no room: [2, 1] was used longest ago
    assert add([2, 1], 9.0, 1.0)[0] == 9.0
    means.forget()
    assert add([1], 2.0, 1.0)[0] == 2.0
    assert np.isinf(means.preview([5])[1]).all()


def test_an_item_is_judged_by_users_since_it_appeared() -> None:
    """Item 1 appeared with batch 1: the same rate, though only half the users could want it."""
    since, means = np.array([0, 1, 5], dtype=np.int64), RunningMeans(1, 1, 3)
    for sums, weights, deviation in (
        ([60.0, 30.0, 0.0], [100.0, 50.0], [0.1, 0.2, np.inf]),
        ([60.0, 60.0, 0.0], [100.0, 100.0], [200**-0.5, 125**-0.5, np.inf]),
    ):
        means.add(([0], Measured(np.array(sums), units_since(np.array(weights), since), 10.0)))
        np.testing.assert_allclose(means.preview([0])[0], [[0.6, 0.6, 0.0]])
        np.testing.assert_allclose(means.preview([0])[1], [deviation])


@pytest.mark.parametrize("items", [1, 7, TILE - 1, TILE, 3 * TILE + 5])
def test_compiled_beliefs_are_the_plain_ones(items: int) -> None:
    """Up to roundings: of sums of so many numbers in means, of differences of squares in variances."""
    random = np.random.default_rng(items)
    deviation = np.where(random.random(items) < 0.1, np.inf, random.uniform(0.01, 2.0, size=items))
    deviation[0] = 0.5
    worth = 10.0 * random.random(items) ** 4
    singletons, row = (scale * worth + random.normal(size=items) for scale in (1.0, 0.4))
    first, plain = (
        from_singletons(singletons, deviation),
        plain_posterior.from_singletons(singletons, deviation),
    )
    errs = 1e3 * items * np.finfo(float).eps
    scale = float(np.abs(singletons).max()) ** 2
    for result, expected in (
        (first, plain),
        (
            first.condition_on_losses(row, deviation),
            plain_posterior.condition_on_losses(*first, row, deviation),
        ),
    ):
        np.testing.assert_allclose(result.mean, expected[0], rtol=errs, atol=errs)
        np.testing.assert_allclose(result.variance, expected[1], rtol=errs, atol=errs * scale)


def test_among_very_many_items_a_part_says_nearly_how_common_parts_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Most items are worth nothing, a thousandth much: beliefs differ by little of their own deviation."""
    random = np.random.default_rng(3)
    items = 5 * belief_file.SOME + 7
    worth = np.where(
        random.random(items) < 0.001, random.uniform(0.1, 0.4, items), 0.002 * random.random(items)
    )
    noise = np.full(items, 0.03)
    measured = worth + noise * random.standard_normal(items)
    by_part = from_singletons(measured, noise)
    monkeypatch.setattr(belief_file, "SOME", items)
    by_all = from_singletons(measured, noise)
    assert (np.abs(by_part.mean - by_all.mean) <= 0.1 * np.sqrt(by_all.variance) + 1e-4).all()
    assert (by_part.mean != by_all.mean).any()
