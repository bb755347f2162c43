"""The model of slates against its own definition, written out; the chain against integrals."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from diminuendo.learners.slates.blocks import WHICH_SLOT
from diminuendo.learners.slates.likelihood import (
    CHANCE_GRID,
    COUNT_VARIANCE,
    GRID_POINTS,
    Observations,
    log_likelihood,
    look_up,
)
from diminuendo.learners.slates.mcmc import (
    PRIOR_NO_OVERLAP,
    PRIOR_SHRINKAGE,
    PRIOR_TOTAL_APPEAL,
    PRIOR_WIDTH,
    SHRINKAGE,
    ChainState,
    Prior,
    initial_state,
    prior_of,
    sweep,
)
from diminuendo.learners.slates.model import Draws, best_slate, chances
from diminuendo.learners.slates.posterior import N_CHAINS, N_DRAWS, SlatePosterior
from diminuendo.types import Floats
from tests.kit.statistics import ALPHA

N, K = 6, 3


def worth(slate: tuple[int, ...], appeals: Floats, overlaps: dict[tuple[int, int], float]) -> float:
    """1 - exp(-t(S)), as defined."""
    total = 0.0
    for a in slate:
        part = appeals[a]
        for b in slate:
            if (appeals[b], -b) > (appeals[a], -a):
                part *= 1 - overlaps.get((min(a, b), max(a, b)), 0.0)
        total += part
    return 1 - math.exp(-total)


@pytest.fixture
def observations() -> Observations:
    result = Observations(N, K)
    for slate in ((0, 1, 2), (2, 3, 4), (1, 4, 5)):
        result.add(np.array(slate, dtype=np.int32), K, 10, np.array([3.0]), 1.0)
    return result


def made(
    observations: Observations, seed: int, many: int = 4
) -> tuple[Draws, list[dict[tuple[int, int], float]]]:
    rng = np.random.default_rng(seed)
    couples = [tuple(couple) for couple in observations.evidence().pair_items.tolist()]
    overlaps = np.where(
        rng.random((many, len(couples))) < 0.4, 0.0, rng.uniform(-0.3, 0.95, (many, len(couples)))
    )
    appeals = rng.exponential(0.4, (many, N))
    return Draws(appeals, overlaps), [dict(zip(couples, row, strict=True)) for row in overlaps.tolist()]


@pytest.mark.parametrize("seed", range(5))
def test_chances_are_the_definition(observations: Observations, seed: int) -> None:
    draws, overlaps = made(observations, seed)
    for slate in itertools.permutations(range(N), K):
        out = np.zeros((len(overlaps), K))
        chances(np.array(slate, dtype=np.int32), draws, np.arange(len(out)), observations.neighbours(), out)
        for draw, i in itertools.product(range(len(overlaps)), range(K)):
            expected = worth(slate[: i + 1], draws.appeals[draw], overlaps[draw])
            assert out[draw, i] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_the_best_slate_is_greedy_then_no_exchange_helps(observations: Observations, seed: int) -> None:
    draws, overlaps = made(observations, seed)
    which = np.array([0, 2, 3])

    def value(slate: tuple[int, ...]) -> float:
        return sum(worth(slate, draws.appeals[draw], overlaps[draw]) for draw in which)

    chosen: tuple[int, ...] = ()
    for _ in range(K):
        options = [(*chosen, a) for a in range(N) if a not in chosen]
        chosen = max(options, key=value)
    slate = np.zeros(K, dtype=np.int32)
    best_slate(draws, which, observations.neighbours(), slate, 0)
    assert tuple(slate.tolist()) == chosen
    best_slate(draws, which, observations.neighbours(), slate, 20)
    result = tuple(slate.tolist())
    assert value(result) >= value(chosen) - 1e-12
    for i, a in itertools.product(range(K), range(N)):
        if a not in result:
            assert value((*result[:i], a, *result[i + 1 :])) <= value(result) * (1 + 1e-8)


def test_nobody_who_is_not_looked_at_would_have_been_chosen() -> None:
    """Many items of which few were shown together: nearly all are ruled out by a bound, and the best is the best."""
    many, slots = 80, 4
    observations = Observations(many, slots)
    for shown in ((0, 1, 2, 3), (3, 40, 41, 2), (70, 0, 5, 6)):
        observations.add(np.array(shown, dtype=np.int32), slots, 10, np.array([3.0]), 1.0)
    couples = [tuple(couple) for couple in observations.evidence().pair_items.tolist()]
    for seed in range(12):
        rng = np.random.default_rng(seed)
        laps = rng.uniform(
            -0.3, 0.95 if seed % 2 else 0.0, (5, len(couples))
        )  # things that go together, or not
        draws = Draws(rng.lognormal(-3.0 + seed / 4, 0.5, (5, many)), laps)
        draws.appeals[:, observations.shown > 0] *= 2.0
        slate, chosen = np.zeros(slots, dtype=np.int32), list[int]()
        best_slate(draws, np.arange(5), observations.neighbours(), slate, 0)
        for _ in range(slots):
            paid = [
                -1.0
                if a in chosen
                else sum(
                    worth((*chosen, a), draws.appeals[d], dict(zip(couples, laps[d], strict=True)))
                    for d in range(5)
                )
                for a in range(many)
            ]
            chosen.append(int(np.argmax(paid)))
        assert slate.tolist() == chosen


def test_a_move_that_is_given_up_early_would_have_been_refused() -> None:
    """Where nothing is known of what rows can add, all of them are looked at: the same chain, the same coins."""
    rng, observations = np.random.default_rng(3), Observations(N, K)
    for users in (20, 300, 4_000) * 5:
        slate = rng.permutation(N)[:K].astype(np.int32)
        question = int(rng.integers(K + 1))
        said = rng.uniform(0, users / K, K if question == WHICH_SLOT else 1)
        observations.add(slate, question, users, said, 2.0)
    evidence = observations.evidence()
    assert evidence.which.any()
    assert not evidence.which.all()
    ends = []
    for ceilings in (evidence.ceilings, np.full_like(evidence.ceilings, np.inf), evidence.ceilings - 20.0):
        chain, rng = initial_state(N, observations.n_pairs), np.random.default_rng(4)
        for _ in range(40):
            sweep(evidence._replace(ceilings=ceilings), chain, prior_of(N), rng)
        ends.append((*(part.tolist() for part in chain), rng.random()))
    assert ends[0] == ends[1]
    assert ends[0] != ends[2], "moves are given up, and by too low a ceiling wrongly"


@pytest.mark.parametrize(("users", "said", "scale"), [(20, 7.0, 2.0), (500, 120.0, 10.0), (4, -3.0, 1.0)])
def test_the_likelihood_is_a_convolution(users: int, said: float, scale: float) -> None:
    """Normal plus Laplace, integrated numerically; up to the constant log(2 scale)."""
    result = log_likelihood(said, users, scale)
    for place in (40, 200, 330, 480):
        chance = CHANCE_GRID[place]
        mean, spread = users * chance, math.sqrt(users * chance * (1 - chance) + COUNT_VARIANCE)

        def density(x: float, mean: float = mean, spread: float = spread) -> float:
            return float(stats.norm.pdf(x, mean, spread) * stats.laplace.pdf(said - x, scale=scale))

        low, high = mean - 12 * spread, mean + 12 * spread
        kink = [said] if low < said < high else None
        exact = float(integrate.quad(density, low, high, points=kink, limit=500)[0])
        assert result[place] == pytest.approx(math.log(exact) + math.log(2 * scale), abs=1e-6)
    mean, spread = (
        users * CHANCE_GRID[200],
        math.sqrt(users * CHANCE_GRID[200] * (1 - CHANCE_GRID[200]) + COUNT_VARIANCE),
    )
    exact = float(stats.norm.logpdf(said, mean, spread))
    assert log_likelihood(said, users, 0.0)[200] == pytest.approx(exact + 0.5 * math.log(2 * math.pi))


def test_numbers_about_the_same_slate_are_added_up() -> None:
    one, two = Observations(N, K), Observations(N, K)
    slate, turned = np.array([3, 1, 4], dtype=np.int32), np.array([4, 3, 1], dtype=np.int32)
    one.add(slate, K, 10, np.array([3.0]), 1.0)
    one.add(turned, K, 20, np.array([9.0]), 1.0)  # a sum does not know the order
    one.add(slate, WHICH_SLOT, 20, np.array([9.0, 1.0, 2.0]), 2.0)
    one.add(turned, WHICH_SLOT, 20, np.array([9.0, 1.0, 2.0]), 2.0)  # which one does
    result = one.evidence()
    assert len(result.lengths) == 3
    np.testing.assert_allclose(
        result.tables[0, 0], log_likelihood(3.0, 10, 1.0) + log_likelihood(9.0, 20, 1.0), rtol=1e-5
    )
    np.testing.assert_array_equal(one.shown[[3, 1, 4, 0]], [70, 70, 70, 0])
    two.take(one.arrays())
    for mine, theirs in zip(result, two.evidence(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_the_table_is_read_between_its_points() -> None:
    table = np.sqrt(CHANCE_GRID).astype(np.float32)
    for chance in (0.0, 1e-5, 0.0371, 0.5, 0.99999, 1.0):
        assert look_up(table, chance) == pytest.approx(math.sqrt(chance), abs=2 / GRID_POINTS)
    assert look_up(table, -0.2) == table[0]


def test_the_chain_draws_from_the_posterior() -> None:
    """Two items, shown together and asked about twice: means of functions of both against integrals over a grid.

    The prior's own parameters are held, which leaves two appeals and an overlap. The error of a mean over batches of
    draws is measured by the batches; with ALPHA for each, and a wrong likelihood is told apart.
    """
    observations = Observations(2, 2)
    slate = np.array([0, 1], dtype=np.int32)
    observations.add(slate, 2, 30, np.array([17.0]), 1.0)
    observations.add(slate, WHICH_SLOT, 25, np.array([9.0, 6.0]), 2.0)
    chain = initial_state(2, observations.n_pairs)
    rng = np.random.default_rng(1)
    evidence, prior = observations.evidence(), chain.prior.copy()
    batches, each = 60, 400
    seen = np.zeros((batches, 3))
    for batch in range(batches):
        for _ in range(each):
            sweep(evidence, chain, prior_of(len(chain.appeals)), rng)
            chain.prior[:] = prior
            seen[batch] += (chain.appeals[0], chain.appeals[1], chain.overlaps[0] == 0)
    seen /= each

    def posterior(wrong: float) -> Floats:
        logs = np.linspace(-6.5, 2.5, 121)
        values = np.concatenate([[0.0], np.linspace(-0.3, 0.95, 26)])
        a, b, r = np.meshgrid(np.exp(logs), np.exp(logs), values, indexing="ij")
        weight = np.where(r == 0, prior[2], (1 - prior[2]) / 26)
        weight = weight * np.exp(
            -((np.log(a) - prior[0]) ** 2 + (np.log(b) - prior[0]) ** 2) / (2 * prior[1] ** 2)
        )
        both = 1 - np.exp(-(np.maximum(a, b) + np.minimum(a, b) * (1 - r)))
        first = 1 - np.exp(-a)
        likely = np.zeros_like(a)
        for said, users, scale, chance in (
            (17.0, 30, wrong, both),
            (9.0, 25, 2 * wrong, first),
            (6.0, 25, 2 * wrong, both - first),
        ):
            likely += np.interp(chance, CHANCE_GRID, log_likelihood(said, users, scale))
        weight = weight * np.exp(likely - likely.max())
        weight /= weight.sum()
        return np.array([(weight * a).sum(), (weight * b).sum(), weight[..., 0].sum()])

    deviation = seen.std(axis=0, ddof=1) / math.sqrt(batches)
    limit = stats.t.isf(ALPHA / 2, batches - 1)
    assert (np.abs(seen.mean(axis=0) - posterior(1.0)) < limit * deviation).all()
    assert (np.abs(seen.mean(axis=0) - posterior(8.0)) > limit * deviation).any(), "more noise is another law"


def test_the_prior_is_what_it_says_when_nothing_was_published() -> None:
    chain, rng = initial_state(40), np.random.default_rng(2)
    evidence = Observations(40, 2).evidence()
    centres, widths, no_overlaps = [], [], []
    for _ in range(3000):
        sweep(evidence, chain, prior_of(len(chain.appeals)), rng)
        centres.append(chain.prior[0])
        widths.append(chain.prior[1] ** -2)
        no_overlaps.append(chain.prior[2])
    batch = np.array([centres, widths, no_overlaps]).reshape(3, 30, -1).mean(axis=2)
    shape, scale = PRIOR_WIDTH
    expected = np.array(
        [math.log(PRIOR_TOTAL_APPEAL / 40), shape / scale, PRIOR_NO_OVERLAP[0] / sum(PRIOR_NO_OVERLAP)]
    )
    limit = stats.t.isf(ALPHA / 2, 29) * batch.std(axis=1, ddof=1) / math.sqrt(30)
    assert (np.abs(batch.mean(axis=1) - expected) < limit).all()
    assert (np.abs(batch.mean(axis=1) - expected - [1.0, 0.4, 0.2]) > limit).all()


@pytest.mark.slow
def test_the_shrinkage_is_what_it_says_when_nothing_was_published() -> None:
    """And appeals are that much like those of others."""
    rng, evidence = np.random.default_rng(8), Observations(3, 2).evidence()
    base = np.array([1.0, -0.5, -0.5])
    given = Prior(base, -2.0, PRIOR_WIDTH)
    chain = ChainState(np.full(3, 0.1), np.zeros(0), np.array([-2.0, 1.3, 0.7, 0.5]))
    likenesses, slopes = [], []
    for _ in range(40_000):
        sweep(evidence, chain, given, rng)
        likenesses.append(chain.prior[SHRINKAGE])
        slopes.append(np.log(chain.appeals) @ base / (base @ base))
    thinned = np.array(
        likenesses[::5]
    )  # of one draw about a fifth is left in the next: in the fifth, nothing
    assert stats.kstest(thinned, stats.norm(*PRIOR_SHRINKAGE).cdf).pvalue > ALPHA
    assert stats.kstest(thinned, stats.norm(0.5, 0.6).cdf).pvalue < ALPHA
    # A slope is the likeness and chance, of the variance width^2 / sum of squares; their means are alike.
    batches = np.array(slopes).reshape(100, -1).mean(axis=1)
    assert stats.ttest_1samp(batches, PRIOR_SHRINKAGE[0]).pvalue > ALPHA
    assert stats.ttest_1samp(batches, 0.0).pvalue < ALPHA


def test_users_find_out_how_like_others_they_are() -> None:
    """Exact counts of single items: the same as of others, or the other way round."""
    rng, n = np.random.default_rng(2), 20
    rates = np.linspace(0.05, 0.6, n)
    whole = SlatePosterior(n, 1)
    for item in range(n):
        whole.add(np.array([item], dtype=np.int32), 1, 1000, 1000 * rates[[item]], 0.0)
    whole.sample(400, rng)
    result = []
    for theirs in (rates, rates[::-1]):
        group = SlatePosterior(n, 1)
        group.begin_from(whole, (5.0, 7.5))
        for item in range(n):
            group.add(np.array([item], dtype=np.int32), 1, 1000, 1000 * theirs[[item]], 0.0)
        group.sample(400, rng)
        result.append(np.mean([chain.prior[SHRINKAGE] for chain in group._chains]))
    assert result[0] > 0.7
    assert result[1] < -0.2


def test_the_posterior_finds_who_it_was() -> None:
    """Random slates, yes or no only: the items that users want come out on top."""
    rng, posterior = np.random.default_rng(3), SlatePosterior(30, 3)
    appeals = np.full(30, 0.005)
    appeals[[4, 17, 22]] = 0.5, 0.4, 0.3
    for _ in range(60):
        slate = rng.choice(30, 3, replace=False).astype(np.int32)
        chance = 1 - math.exp(-appeals[slate].sum())
        posterior.add(slate, 3, 60, np.array([rng.binomial(60, chance) + rng.laplace()]), 1.0)
    posterior.sample(100, rng)
    assert set(posterior.best(16, 2).tolist()) == {4, 17, 22}
    kept = SlatePosterior(30, 3)
    kept.take(posterior.arrays())
    one, other = np.random.default_rng(4), np.random.default_rng(4)
    kept.sample(5, one)
    posterior.sample(5, other)
    np.testing.assert_array_equal(kept.best(8, 1), posterior.best(8, 1))
    leader = posterior.best(N_DRAWS, 2)
    for ahead in (16, N_DRAWS, 40):  # after thinning nothing is different
        kept.thin(ahead)
        assert len(kept.arrays()["draws.appeals"]) == max(N_CHAINS, N_DRAWS - ahead)
        if ahead == N_DRAWS:
            held, kept = kept.arrays(), SlatePosterior(30, 3)
            kept.take(held)
        for sweeps in (ahead // 2, ahead - ahead // 2):
            kept.sample(sweeps, one)
            posterior.sample(sweeps, other)
        np.testing.assert_array_equal(kept.best(8, 1), posterior.best(8, 1))
        np.testing.assert_array_equal(kept.challengers(leader, 7), posterior.challengers(leader, 7))
        np.testing.assert_array_equal(kept.chances(leader), posterior.chances(leader))
        for name, part in posterior.arrays().items():
            np.testing.assert_array_equal(kept.arrays()[name], part)
    kept.thin(N_DRAWS)
    assert kept.chances(leader).shape == (N_CHAINS, 3), "of those that are there"
    np.testing.assert_array_equal(kept.best(N_CHAINS, 1), posterior.best(N_CHAINS, 1))
