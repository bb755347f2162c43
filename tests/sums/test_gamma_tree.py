"""The tree with Gamma-norm noise: exact sums without noise, the right law of noise, and each step in few nodes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from diminuendo.errors import InvalidInput
from diminuendo.randomness import PublicSource, SecretRandomness, SeededSource
from diminuendo.sums.gamma_tree import GammaTree, node_scale
from tests.kit.statistics import ALPHA, assert_follows, assert_rejects


def secret(seed: int = 1, size: int = 1 << 12) -> SecretRandomness:
    return SecretRandomness(SeededSource(seed), size=size)


def test_without_noise_it_is_the_running_sum() -> None:
    random, tree, total = np.random.default_rng(0), GammaTree(2, 3, 37, 0.0), np.zeros((2, 3))
    for _ in range(37):
        vectors = random.normal(size=(2, 3))
        total += vectors
        np.testing.assert_allclose(tree.add(vectors, secret()), total, atol=1e-12)
    with pytest.raises(InvalidInput, match="All 37 steps"):
        tree.add(vectors, secret())


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 8, 31, 33])
def test_a_step_changes_at_most_one_node_per_level(steps: int) -> None:
    """What one step's vector moves, among all nodes that are ever published: the sensitivity of Theorem S5."""
    most = 0
    for changed in range(steps):
        nodes = []
        for value in (0.0, 1.0):
            tree, published = GammaTree(1, 1, steps, 0.0), []
            for t in range(steps):
                tree.add(np.full((1, 1), value if t == changed else 2.0), secret())
                top = ((t + 1) & -(t + 1)).bit_length() - 1
                published.append(tree.arrays[2][top, 0, 0])
            nodes.append(np.array(published))
        moved = np.abs(nodes[1] - nodes[0])
        assert set(moved) <= {0.0, 1.0}
        most = max(most, int(moved.sum()))
    assert most == steps.bit_length() == GammaTree(1, 1, steps, 0.0).levels


@pytest.mark.parametrize("size", [1, 2, 5, 33])
def test_the_length_of_noise_is_gamma_and_its_direction_uniform(size: int) -> None:
    tree, source, count = GammaTree(1, size, 20_000, 2.0), secret(7), 20_000
    noise = np.empty((count, size))
    for t in range(count):
        sums = tree.add(np.zeros((1, size)), source)[0]
        top = ((t + 1) & -(t + 1)).bit_length() - 1
        noise[t] = tree.arrays[2][top, 0]
        assert np.isfinite(sums).all()
    lengths = np.linalg.norm(noise, axis=1)
    cells = np.floor(20 * stats.gamma.cdf(lengths, size, scale=2.0)).astype(int)
    assert_follows(cells, np.full(20, 0.05))
    wrong = np.floor(20 * stats.gamma.cdf(lengths, size, scale=2.3)).astype(int)
    assert_rejects(wrong, np.full(20, 0.05))
    units = noise / lengths[:, None]
    half = stats.norm.isf(ALPHA / (4 * size)) / math.sqrt(count)
    assert np.abs(units.mean(axis=0)).max() < half, "no direction is preferred"
    signs = (units[:, 0] > 0).astype(int) + 2 * (units[:, -1] > 0).astype(int)
    assert_follows(signs, np.array([0.5, 0.0, 0.0, 0.5]) if size == 1 else np.full(4, 0.25))


def test_nodes_have_noise_of_their_own_and_keep_it() -> None:
    tree, source = GammaTree(1, 1, 8, 1.0), secret(3)
    sums = [float(tree.add(np.zeros((1, 1)), source)[0, 0]) for _ in range(7)]
    assert sums[4] - sums[3] != sums[2] - sums[1]
    assert len({round(value, 12) for value in sums}) == 7
    # 5 = 4 + 1 and 6 = 4 + 2 share the node of 4; 7 = 4 + 2 + 1 shares both of 6.
    published = tree.arrays[2][:, 0, 0]
    assert sums[6] == pytest.approx(published[0] + published[1] + published[2])
    assert sums[5] == pytest.approx(published[1] + published[2])
    assert sums[3] == pytest.approx(published[2])


def test_the_size_of_the_buffer_does_not_matter() -> None:
    runs = []
    for size in (1, 64, 1 << 14):
        tree, source = GammaTree(2, 9, 20, 1.0), secret(5, size)
        runs.append([tree.add(np.ones((2, 9)), source) for _ in range(20)])
    np.testing.assert_array_equal(runs[0], runs[1])
    np.testing.assert_array_equal(runs[0], runs[2])


def test_the_price_in_real_arithmetic_is_attained() -> None:
    """Density ratios of one number per node: exp(levels * D / scale) when all nodes fall on one side."""
    levels, distance, epsilon = 4, 1.5, 0.7
    scale = node_scale(levels, distance, epsilon)
    beyond = np.linspace(2, 9, 5)
    ratio = np.exp(-np.abs(beyond - distance) / scale + np.abs(beyond) / scale)
    assert np.log(ratio).max() * levels == pytest.approx(epsilon, rel=1e-12)


def test_doors() -> None:
    with pytest.raises(InvalidInput, match="scale"):
        GammaTree(1, 1, 5, math.nan)
    with pytest.raises(InvalidInput, match="copies"):
        GammaTree(0, 1, 5, 1.0)
    tree = GammaTree(2, 3, 5, 1.0)
    with pytest.raises(InvalidInput, match="copies, size"):
        tree.add(np.zeros(6), secret())
    with pytest.raises(InvalidInput, match="SecretRandomness"):
        tree.add(np.zeros((2, 3)), PublicSource(SeededSource(1)))  # type: ignore[arg-type]
    assert repr(tree) == "<GammaTree: 2 x 3 numbers, 0 of 5 steps>"
