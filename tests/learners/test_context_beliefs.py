"""What is believed of the values of columns, and rows by question, against oracles that share no code with them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from diminuendo import SeededSource
from diminuendo.learners.overlap.belief import Belief
from diminuendo.learners.overlap.contexts.columns import ColumnMeans, Evidence
from diminuendo.learners.overlap.contexts.counts import TypeCounts
from diminuendo.learners.overlap.contexts.shares import COUNTS, TRIAL, open_sizes, shared_focus, trial_shares
from diminuendo.learners.overlap.contexts.shrink import Cells, begin_common, believed, fit
from diminuendo.learners.overlap.recipes import OverlapGreedy
from diminuendo.learners.overlap.running_means import Measured
from diminuendo.streams.contexts import Contexts
from diminuendo.sums.chains.cells import SharedFocus
from diminuendo.sums.chains.focus import FULL, SHARES
from diminuendo.types import EMPTY_SLOT, Floats, Ints
from tests.kit.hostile_contexts import without_noise
from tests.learners.test_contexts import N_ITEMS, ROUNDS, SLOTS, TABLE, USERS
from tests.learners.test_overlap_greedy import policy_of

CASES = [(1.0, 0.0, 0.0)]
CASES += [(1.0, 0.03 * (4.0 / 0.03) ** (step / 7), 0.0) for step in range(8)]
CASES += [(0.0, 0.0, q) for q in (0.0005, 0.003, 0.01, 0.03, 0.1, 0.3)]
"""c, r and q of each case, as the docstring of shrink.py has them."""


def some_cells(random: np.random.Generator, values: int, items: int) -> Cells:
    m = random.uniform(0.0, 0.4, size=items)
    centres = np.tile(m, (values, 1)) + random.normal(0, 0.01, size=(values, items))
    variances = random.uniform(1e-5, 4e-3, size=(values, items))
    rates = centres * random.choice([0.0, 1.0, 1.0, 1.7], size=(values, items))
    rates += random.normal(0, np.sqrt(variances))
    variances[random.random((values, items)) < 0.1] = np.inf
    return Cells(
        rates, variances, centres, random.uniform(1e-7, 1e-4, size=items), np.maximum(m, 1e-4) * m.max()
    )


def normal_density(x: Any, mean: Any, variance: Any) -> Any:
    return np.exp(-((x - mean) ** 2) / (2 * variance)) / np.sqrt(2 * math.pi * variance)


def likelihoods(cells: Cells) -> Floats:
    """(values, items, cases): how likely each rate is in each case."""
    result = []
    for c, r, q in CASES:
        spread = c * cells.centre_variance + r**2 * cells.scales + q**2 + cells.variances
        result.append(normal_density(cells.rates, c * cells.centres, spread))
    return np.stack(result, axis=-1)


def test_the_posterior_is_the_integral() -> None:
    """Prior times likelihood, added up over a fine grid; cells of which nothing is known are the whole."""
    random = np.random.default_rng(0)
    cells = some_cells(random, 5, 4)
    common = random.dirichlet(np.ones(len(CASES)))
    mean, variance = believed(cells, common)
    for g, a in np.ndindex(*cells.rates.shape):
        centre, v, scale = cells.centres[g, a], cells.centre_variance[a], cells.scales[a]
        if np.isinf(cells.variances[g, a]):
            assert (mean[g, a], variance[g, a]) == (centre, v)
            continue
        total = first = second = 0.0
        for weight, (c, r, q) in zip(common, CASES, strict=True):
            own = c * v + r**2 * scale + q**2
            grid = c * centre + np.linspace(-9, 9, 40_001) * math.sqrt(own)
            here = weight * normal_density(grid, c * centre, own)
            here *= normal_density(cells.rates[g, a], grid, cells.variances[g, a])
            step = grid[1] - grid[0]
            total, first, second = (
                total + here.sum() * step,
                first + (here * grid).sum() * step,
                second + (here * grid**2).sum() * step,
            )
        assert mean[g, a] == pytest.approx(first / total, rel=1e-6, abs=1e-9)
        assert variance[g, a] == pytest.approx(second / total - (first / total) ** 2, rel=1e-4, abs=1e-12)


@pytest.mark.parametrize(("values", "items"), [(4, 5), (1, 1), (40, 500)])
def test_how_common_cases_are_is_expectation_maximisation(values: int, items: int) -> None:
    """Thirty steps, as if five cells more had not deviated; to a part of the cells where there are many."""
    cells = some_cells(np.random.default_rng(values), values, items)
    cells.variances[values // 2] = np.inf
    start = np.random.default_rng(1).dirichlet(np.ones(len(CASES)))
    known = np.flatnonzero(np.isfinite(cells.variances).any(axis=1))
    likely = likelihoods(cells)[known].reshape(-1, len(CASES))
    counts = np.isfinite(cells.variances[known]).ravel()
    stride = max(1, len(counts) // 4096)
    likely, expected = likely[::stride][counts[::stride]], start
    for _ in range(30):
        mine = likely * expected
        mine /= mine.sum(axis=1, keepdims=True)
        total = 0.01 + stride * mine.sum(axis=0)
        total[0] += 5
        expected = total / total.sum()
    if len(known) == 0:
        expected = start
    np.testing.assert_allclose(fit(cells, start), expected, rtol=1e-9)


def test_nothing_deviates_until_it_earns_its_place() -> None:
    """Noise alone leaves everything at the whole; cells that are far from it are believed."""
    random = np.random.default_rng(5)
    m = np.linspace(0.05, 0.3, 20)
    centres, noise = np.tile(m, (30, 1)), np.full((30, 20), 1e-3)
    rates = centres + random.normal(0, np.sqrt(noise))
    quiet = Cells(rates, noise, centres, np.full(20, 1e-6), m * m.max())
    mean, _ = believed(quiet, fit(quiet, begin_common()))
    assert np.abs(mean - centres).max() < 0.2 * np.abs(rates - centres).max()
    loud = quiet._replace(rates=np.where(np.arange(30)[:, None] % 2, 2.0, 0.1) * centres + rates - centres)
    mean, _ = believed(loud, fit(loud, begin_common()))
    assert np.abs(mean - loud.rates).mean() < 0.5 * np.abs(mean - centres).mean()


# Means of columns, and shares of the cost.


def test_means_of_a_column_are_by_precision_and_by_share() -> None:
    random = np.random.default_rng(2)
    column, total, weight = ColumnMeans(3, 4), np.zeros((3, 4)), np.zeros(4)
    shares = np.array([0.5, 0.3, 0.2])
    for _ in range(5):
        units, sigma = random.uniform(50, 90, size=4), random.uniform(1, 3)
        sums = shares[:, None] * units * random.uniform(0.1, 0.9, size=(3, 4))
        column = column.with_cells(Measured(sums, units, sigma), shares)
        # Of each value, sum / (share units) with deviation sigma / (share units), by precision.
        total += (shares[:, None] * units / sigma) ** 2 * sums / (shares[:, None] * units)
        weight += (units / sigma) ** 2
    whole = Belief(np.full(4, 0.3), np.full(4, 1e-5))
    rates = total / (shares[:, None] ** 2 * weight)
    np.testing.assert_allclose(column.shares(), shares)

    def look(**changes: Any) -> Any:
        given: dict[str, Any] = {"users": 100.0, "slots": 2, "shares": shares, "surely": 0.0, "opens": True}
        return column.look(np.tile(whole.mean, (3, 1)), whole, **(given | changes))

    view = look()
    noise = 1 / (shares[:, None] ** 2 * weight)
    cells = Cells(
        rates,
        noise + 0.5 * 0.3 / (100 * shares)[:, None],
        np.full((3, 4), 0.3),
        whole.variance,
        np.full(4, 0.09),
    )
    mean, variance = believed(cells, fit(cells, begin_common()))
    assert view.evidence.weight > 0
    np.testing.assert_allclose(view.deviations, mean - 0.3, rtol=1e-6)
    np.testing.assert_allclose(view.variances, variance, rtol=1e-6)
    closed = look(opens=False)
    assert closed.evidence == Evidence(0.0, False)
    assert (closed.deviations == 0).all(), "the gate is closed"
    unsure = look(surely=0.4)
    assert (unsure.deviations[1:] == 0).all(), "whether anybody has these values is not known"


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("around", [False, True])
def test_shares_are_all_of_the_cost_and_private_counts_get_theirs(private: bool, around: bool) -> None:
    random, weights = np.random.default_rng(3), np.full(4, FULL)
    for _ in range(300):
        many = int(random.integers(1, 4))
        result = [Evidence(float(random.choice([0.0, 0.5, 1.0])), False) for _ in range(many)]
        trial = trial_shares(result, float(random.random()), (random.random(many) * 1000).tolist(), 20.0)
        assert sum(trial) <= TRIAL + 1e-12
        singles = float(random.uniform(0.01, 0.99))
        focus = shared_focus(weights, result, trial, singles=singles, private=private, around=around)
        parts = (focus.singles, focus.others, *focus.cells, *focus.counts)
        assert sum(parts) == SHARES
        assert min(parts) >= 0
        assert focus.others > 0
        assert (focus.singles == 0) == around
        assert sum(focus.counts) == (many * int(SHARES * COUNTS / many) if private else 0)
        if all(evidence.weight == 0 for evidence in result):
            assert sum(focus.cells) <= TRIAL * SHARES


def test_a_segment_that_seems_empty_is_of_one_user() -> None:
    """By noisy counts all values may seem to be nobody's, when gates are open already."""
    assert open_sizes([Evidence(1.0, False)], [0.0], 50.0) == 1.0
    assert open_sizes([Evidence(0.5, False), Evidence(0.5, False)], [10.0, 30.0], 50.0) == 30.0
    assert open_sizes([Evidence(0.0, True)], [3.0], 50.0) == 50.0


def test_published_counts_are_all_that_is_known_of_private_contexts() -> None:
    contexts = Contexts(group=3, coin=2, private=True)
    counts = TypeCounts(contexts, 4)
    counts.record_arrivals(0, np.arange(contexts.n_types))
    arrays: Any = counts.arrays
    assert not any(part.any() for part in arrays)
    counts.publish(0, np.array([0.5, 0.3, 0.1]), 0.1)
    counts.publish(0, np.array([0.5, 0.5, -0.1]), 0.2)
    shares, deviation = counts.published(0)
    np.testing.assert_allclose(shares, [0.5, (4 * 0.3 + 0.5) / 5, (4 * 0.1 - 0.1) / 5])
    assert deviation == pytest.approx((100 + 25) ** -0.5)
    counts.publish(1, np.array([0.6, 0.2]), 0.1)
    result = counts.type_shares(np.zeros(0, dtype=np.int64), 1.0, 1.0)
    of_type = result[contexts.type_of({"group": 0, "coin": 1})]
    assert of_type == pytest.approx(0.5 * 0.2)
    assert result[0] == pytest.approx((1 - 0.5 - 0.34 - 0.06) * 0.2), "nothing known of either"
    np.testing.assert_allclose(counts.value_shares(0, result), shares)


# Rows by question.


def oracle_rows(chains: list[list[int]], types: Ints, factors: Floats) -> tuple[Any, Any, Any]:
    """What is published without noise along a chain for each type, by sets and Python numbers alone."""
    users = np.asarray(USERS.matrices[0].todense())[: len(types)]
    whole = np.zeros(N_ITEMS, dtype=np.int64)
    rows: dict[tuple[frozenset[int], int], Ints] = {}
    rests: dict[frozenset[int], Ints] = {}
    for chances, kind in zip(users, types.tolist(), strict=True):
        said = factors * chances
        scale = 1024 * min(1.0, 1 / max(1e-300, math.sqrt(float((said**2).sum()))))
        left = np.floor(scale * said).astype(np.int64)
        whole += left
        so_far: list[int] = []
        for item in chains[kind]:
            if item == EMPTY_SLOT:
                continue
            key = frozenset(so_far), item
            so_far.append(item)
            missed = float(np.prod(1 - chances[so_far]))
            after = np.minimum(left, np.floor(scale * said * missed).astype(np.int64))
            after[so_far] = 0
            rows[key] = rows.get(key, 0) + left - after
            left = after
        rests[frozenset(so_far)] = rests.get(frozenset(so_far), 0) + left
    return whole, rows, rests


def test_rows_are_summed_by_question() -> None:
    """Chains that part, join again, stop for one step and go on; up to one tick for each user's rounding."""
    contexts = Contexts(group=3)
    learner = OverlapGreedy(
        N_ITEMS, SLOTS, horizon=ROUNDS, epsilon=8.0, delta=1e-6, rng=SeededSource(1), contexts=contexts
    )
    policy = policy_of(learner)
    first = policy.plan.schedule.ends[0]
    learner.replay(USERS[:first], contexts=TABLE[:first])
    weights = np.array([FULL, 77] * (N_ITEMS // 2))
    focus = SharedFocus(weights, 300, 600, (124,), (0,))
    chains = [[0, 4, 8], [0, EMPTY_SLOT, 4], [4, 0, 8], [9, 8, 2]]
    memory: Any = policy._memory
    types = TABLE[:first] + 1
    whole, rows, rests = oracle_rows(chains, types, weights / FULL)
    unit = int(policy.plan.weights[0, 0])
    with without_noise():
        asked, cells = memory.begin_by_type(0, 0, focus)
        np.testing.assert_allclose(asked.singles().sums, unit * whole, atol=unit * first)
        sets = [frozenset[int]()] * 4
        for step in range(3):
            items = np.array([chain[step] for chain in chains])
            whose, measured = asked.row_by_type(items)
            assert (whose < 0).tolist() == (items == EMPTY_SLOT).tolist()
            keys = {(sets[kind], int(items[kind])): int(whose[kind]) for kind in range(4) if whose[kind] >= 0}
            assert len(measured.sums) == len(keys) == len(set(keys.values())), "a question is published once"
            for key, place in keys.items():
                expected = unit * rows.get(key, np.zeros(N_ITEMS))
                np.testing.assert_allclose(measured.sums[place], expected, atol=unit * first)
            sets = [so_far | {int(item)} - {EMPTY_SLOT} for so_far, item in zip(sets, items, strict=True)]
        whose, measured = asked.rest_by_type()
        for kind, so_far in enumerate(sets):
            np.testing.assert_allclose(
                measured.sums[whose[kind]], unit * rests.get(so_far, 0), atol=unit * first
            )
        result = cells.cells(0)
    for value in range(3):
        own = np.asarray(USERS.matrices[0].todense())[:first][types == value + 1] * weights / FULL
        lengths = np.maximum(1.0, np.sqrt((own**2).sum(axis=1)))[:, None]
        expected = unit * np.floor(1024 * own / lengths).sum(axis=0)
        np.testing.assert_allclose(result.sums[value], expected, atol=unit * first)
