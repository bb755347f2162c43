"""The private estimate: what one user moves, what noise it has, and that its interval knows of both."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from diminuendo import SeededSource, SystemSource
from diminuendo.errors import InvalidInput, OverBudget
from diminuendo.evaluate import Log, evaluate_privately
from diminuendo.evaluate.intervals import RATES
from diminuendo.evaluate.private import WEIGHT_TICKS, _capital, interval
from diminuendo.privacy import Budget, Ledger
from diminuendo.randomness import SecretRandomness
from diminuendo.sums.private_counts import PrivateCounts
from diminuendo.types import Decision, Floats, Ints
from tests.evaluate.test_coverage import covers_often_enough
from tests.kit.statistics import assert_follows, assert_rejects


def ledger(epsilon: float = 1.0) -> Ledger:
    return Ledger(Budget(epsilon, 0.0, accountant="pure"))


def log_of(rewards: Floats, seed: int = 0) -> Log:
    """Three slates of one item, with chances 1/2, 1/4 and 1/4."""
    chances = np.array([0.5, 0.25, 0.25])
    shown = np.random.default_rng(seed).choice(3, p=chances, size=len(rewards))
    return Log.from_arrays(shown[:, None], chances[shown], rewards[np.arange(len(rewards)), shown])


def cell(log: Log, monkeypatch: pytest.MonkeyPatch) -> int:
    """The whole number that noise is added to."""
    seen = []

    def exact(counts: PrivateCounts, secret: SecretRandomness, histogram: int) -> Ints:
        seen.append(int(counts._histograms[histogram][0]))
        return counts._histograms[histogram]

    monkeypatch.setattr(PrivateCounts, "_drawn", exact)
    secret = SecretRandomness(SeededSource(1))
    evaluate_privately(log, {(1,): 0.5, (2,): 0.5}, epsilon=1.0, ledger=ledger(), secret=secret)
    return seen[0]


def test_one_user_moves_the_sum_by_one_unit_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every user, from any reward to any other: WEIGHT_TICKS are what noise is made for, and attained."""
    rewards = np.random.default_rng(2).random((12, 3))
    moved = []
    for user in range(len(rewards)):
        sums = []
        for reward in (0.0, 0.3, 1.0):
            other = rewards.copy()
            other[user] = reward
            sums.append(cell(log_of(other), monkeypatch))
        moved.append(max(sums) - min(sums))
    assert max(moved) == WEIGHT_TICKS
    assert min(moved) == 0, "whose slate the policy would not show says nothing"


def test_noise_is_as_promised() -> None:
    """Halves of the discrete Laplace law, and no other epsilon's."""
    log = log_of(np.full((40, 3), 0.5))
    weights = np.where(log.slates[:, 0] == 1, 4.0, 0.0)
    exact = float(weights @ log.rewards) / len(log)
    secret, result = SecretRandomness(SeededSource(3)), []
    for _ in range(2_000):
        value = evaluate_privately(log, (1,), epsilon=0.5, ledger=ledger(), secret=secret).value
        result.append((value - exact) * len(log) / weights.max())  # in units, of scale 1/epsilon
    cuts = [-4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0]

    def law(scale: float) -> Floats:
        ends = np.concatenate([[0.0], stats.laplace(scale=scale).cdf(cuts), [1.0]])
        return np.diff(ends)

    draws = np.digitize(result, cuts)
    assert_follows(draws, law(2.0))
    assert_rejects(draws, law(1.6))


def test_it_is_paid_for_and_published_once() -> None:
    log, paid = log_of(np.random.default_rng(4).random((50, 3))), ledger(0.3)
    secret = SecretRandomness(SystemSource())
    result = evaluate_privately(log, (1,), epsilon=0.2, ledger=paid, secret=secret)
    assert result.private
    assert "released; may be published" in str(result)
    assert "nan" not in str(result)
    assert paid.spent() == pytest.approx(0.2)
    with pytest.raises(InvalidInput, match="evaluation"):
        evaluate_privately(log, (2,), epsilon=0.2, ledger=paid, secret=secret)
    with pytest.raises(OverBudget):
        evaluate_privately(log, (2,), epsilon=0.2, ledger=paid, secret=secret, name="another")
    assert paid.spent() == pytest.approx(0.2)


def test_after_a_restart_it_is_the_same_number(tmp_path: Path) -> None:
    """Not new noise on the same sum; and other weights do not go by its name."""
    log, budget, result = log_of(np.ones((50, 3))), Budget(1.0, 0.0, accountant="pure"), []
    for _ in range(2):
        with Ledger.open(tmp_path / "ledger", budget) as paid:
            secret = SecretRandomness(SystemSource())
            result.append(evaluate_privately(log, (1,), epsilon=0.2, ledger=paid, secret=secret))
            assert paid.spent() == pytest.approx(0.2)
    assert result[0].value == result[1].value
    with (
        Ledger.open(tmp_path / "ledger", budget) as paid,
        pytest.raises(InvalidInput, match="something else"),
    ):
        evaluate_privately(log, (2,), epsilon=0.2, ledger=paid, secret=SecretRandomness(SystemSource()))


def test_all_that_is_public_is_the_same_whoever_answers() -> None:
    """What is said of the log beside the noisy number, also to the ledger, is known before anybody answers."""
    told = []
    for answered in (0, 11, 12):
        log, paid = Log(1), ledger()
        decisions = [Decision(t, (t % 2,), None, 0.5) for t in range(12)]
        for decision in decisions:
            log.add(decision)
        for decision in decisions[:answered]:
            log.answer(decision, 1.0)
        secret = SecretRandomness(SeededSource(5))
        result = evaluate_privately(log, (1,), epsilon=0.5, ledger=paid, secret=secret)
        told.append(([charge.note for charge in paid.charges], replace(result, value=0.0, low=0.0, high=0.0)))
    assert repr(told[0]) == repr(told[1]) == repr(told[2])


def test_noise_that_can_be_foreseen_is_not_published() -> None:
    log = log_of(np.ones((50, 3)))
    result = evaluate_privately(
        log, (1,), epsilon=0.5, ledger=ledger(), secret=SecretRandomness(SeededSource(1))
    )
    assert not result.private
    assert "simulation only" in str(result)
    assert "may be published" not in str(result)


def test_what_cannot_be_released_is_refused_before_it_is_paid_for() -> None:
    sound = log_of(np.ones((20, 3)))
    tiny = Log.from_arrays([[1]] * 3, [1.0, 2.0**-501, 5e-324], [1.0] * 3)
    secret = SecretRandomness(SystemSource())
    for log, epsilon, by, match in (
        (tiny, 0.5, secret, "above 2"),
        (sound, 2.0**-40, secret, "scale"),
        (sound, 0.5, np.random.default_rng(1), "SecretRandomness"),
    ):
        paid = ledger()
        with pytest.raises(InvalidInput, match=match):
            evaluate_privately(log, (1,), epsilon=epsilon, ledger=paid, secret=by)  # type: ignore[arg-type]
        assert not paid.charges


def test_nothing_to_look_at_costs_nothing() -> None:
    paid = ledger()
    with pytest.raises(InvalidInput, match="Nothing was charged"):
        evaluate_privately(
            log_of(np.ones((20, 3))), (7,), epsilon=0.5, ledger=paid, secret=SecretRandomness(SeededSource(1))
        )
    assert paid.spent() == 0


@pytest.mark.slow
@pytest.mark.parametrize("most_weight", [None, 2.0])
def test_its_interval_covers(most_weight: float | None) -> None:
    """With noise, with users who differ, and where weights are cut off."""
    rewards = np.random.default_rng(6).random((1_000, 3)) ** np.linspace(0.3, 3, 1_000)[:, None]
    truth, secret = float(rewards[:, 1].mean()), SecretRandomness(SeededSource(7))
    result = [
        evaluate_privately(
            log_of(rewards, seed), (1,), epsilon=0.5, ledger=ledger(), secret=secret, most_weight=most_weight
        )
        for seed in range(100)
    ]
    assert covers_often_enough(sum(one.low <= truth <= one.high for one in result), len(result))
    assert all(one.high - one.low < 1 for one in result), "and says something"


def test_the_interval_counts_noise() -> None:
    """It reaches as far as it would from sums that are off by as much as noise may be, with 1 - confidence / 4."""
    weights = np.where(np.arange(4_000) % 4 == 0, 4.0, 0.0)
    none, scale = 1e-9, 100.0
    low, high = interval(weights, 2_000.0, none, 0.95)
    assert 0.3 < low < 0.5 < high < 0.7
    reach = scale * np.log(4 / 0.05)
    wide = interval(weights, 2_000.0, scale, 0.95)
    assert wide[0] == pytest.approx(interval(weights, 2_000.0 - reach, none, 0.95)[0], abs=1e-9)
    assert wide[1] == pytest.approx(interval(weights, 2_000.0 + reach, none, 0.95)[1], abs=1e-9)


def test_public_bounds_are_below_what_looking_would_say() -> None:
    """Whatever rewards are: the capital that is claimed from weights and the sum alone is never more than it is."""
    rng = np.random.default_rng(8)
    for _ in range(200):
        weights, rewards = rng.exponential(3.0, 30), rng.random(30) ** rng.exponential(2.0)
        looked = np.array([np.log1p(rate * weights * rewards).sum() for rate in RATES])
        claimed = _capital(weights, float(weights @ rewards))
        assert (claimed <= looked * (1 + 1e-12)).all()  # sums of 30 floats
    equal = np.full(30, 3.0)
    yes = np.where(np.arange(30) < 9, 1.0, 0.0)
    np.testing.assert_allclose(_capital(equal, 27.0), [np.log1p(rate * equal * yes).sum() for rate in RATES])
