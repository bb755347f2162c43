"""Every strategy is a matrix: its columns, its decoder and its variances against dense ones.

A strategy is read as a matrix by what it does, not by how it is written: batch b is the b-th unit vector, so
the rows that come out are the rows of the matrix; unit rows pushed through a decoder give its coefficients.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from diminuendo.sums.strategies import STRATEGIES
from tests.kit import oracles

Matrix = NDArray[np.int64]

NAMES = ["independent", "sqrt-toeplitz"]
RELEASES = [1, 2, 3, 5, 8, 16, 17, 64, 100, 300]
every = pytest.mark.parametrize(
    ("name", "releases"), [(name, n) for name in NAMES for n in RELEASES], ids=lambda x: str(x)
)


def published(strategy: Any, releases: int) -> list[Matrix]:
    """The rows of each release, one column for each batch."""
    encoder = strategy.encoder(releases)
    return [encoder.encode(unit) for unit in np.eye(releases, dtype=np.int64)]


def decoded(strategy: Any, rows: list[Matrix]) -> NDArray[np.float64]:
    """The estimate after each release as coefficients of all rows that are ever published."""
    counts = [len(some) for some in rows]
    units = np.split(np.eye(sum(counts), dtype=np.int64), np.cumsum(counts)[:-1])
    decoder = strategy.decoder(sum(counts))
    return np.array([decoder.decode(some) for some in units])


def test_all_strategies_are_here() -> None:
    assert set(STRATEGIES) == set(NAMES)


@every
def test_columns_cost_what_is_said(name: str, releases: int) -> None:
    strategy = STRATEGIES[name](releases)
    rows = published(strategy, releases)
    assert all(some.dtype == np.int64 for some in rows)
    matrix = np.concatenate(rows).astype(object)  # whole numbers without a largest one
    square, total = max((matrix**2).sum(axis=0)), max(abs(matrix).sum(axis=0))
    assert (square, total) == (strategy.square, strategy.total)


@every
def test_matrices(name: str, releases: int) -> None:
    strategy = STRATEGIES[name](releases)
    rows = published(strategy, releases)
    matrix = np.concatenate(rows)
    for release, some in enumerate(rows, start=1):
        assert not some[:, release:].any(), "a release must not know the future"
    if name == "independent":
        np.testing.assert_array_equal(matrix, np.eye(releases))
        assert strategy.unit == 1
    else:
        assert (np.diag(matrix) == matrix[0, 0]).all()
        assert matrix[0, 0] == strategy.unit
    if name == "sqrt-toeplitz":
        wanted = strategy.unit * oracles.sqrt_toeplitz(releases)
        for batch in range(releases):
            assert abs(matrix[batch:, batch] - wanted[: releases - batch]).max() <= 1


@every
def test_one_user_moves_the_releases_by_no_more_than_is_charged(name: str, releases: int) -> None:
    """Also where rounding makes releases no linear function of the batches: 500 histories, side by side."""
    strategy, rng = STRATEGIES[name](releases), np.random.default_rng(releases)
    batches = rng.integers(-1000, 1000, (releases, 500))
    for batch in {0, releases // 2, releases - 1}:
        moved = rng.choice([-300, -7, -1, 1, 2, 1000], 500)
        one, other = strategy.encoder(500), strategy.encoder(500)
        shifts = []
        for b, users in enumerate(batches):
            shifts.append(one.encode(users) - other.encode(users + moved * (b == batch)))
        shift = np.concatenate(shifts).astype(object)
        assert ((shift**2).sum(axis=0) <= moved.astype(object) ** 2 * strategy.square).all()
        assert (abs(shift).sum(axis=0) <= abs(moved.astype(object)) * strategy.total).all()


@every
def test_without_noise_the_running_sum_comes_out(name: str, releases: int) -> None:
    strategy = STRATEGIES[name](releases)
    encoder, decoder = strategy.encoder(4), strategy.decoder(4)
    batches = np.random.default_rng(releases).integers(-(10**6), 10**6, (releases, 4))
    sums = np.cumsum(batches, axis=0)
    result = np.array([decoder.decode(encoder.encode(batch)) for batch in batches])
    assert result.dtype == np.float64
    error = abs(result - sums).max() / abs(sums).max()
    assert error <= 1e-9


@every
def test_decoders_are_linear_and_as_noisy_as_said(name: str, releases: int) -> None:
    strategy = STRATEGIES[name](releases)
    rows = published(strategy, releases)
    matrix, coefficients = np.concatenate(rows), decoded(strategy, rows)
    np.testing.assert_allclose(coefficients @ matrix, np.tri(releases), atol=1e-9)
    noise = np.random.default_rng(7).integers(-(2**30), 2**30, (len(matrix), 3))
    parts = np.split(noise, np.cumsum([len(some) for some in rows])[:-1])
    decoder = strategy.decoder(3)
    np.testing.assert_allclose(
        [decoder.decode(part) for part in parts], coefficients @ noise, rtol=1e-9, atol=1e-9 * 2**30
    )
    said = [strategy.variance(release) for release in range(1, releases + 1)]
    np.testing.assert_allclose((coefficients**2).sum(axis=1), said, rtol=1e-9)


@every
def test_no_decoder_without_bias_could_be_less_noisy(name: str, releases: int) -> None:
    """The best unbiased estimate from what was published so far: for a square matrix, its inverse."""
    strategy = STRATEGIES[name](releases)
    rows = published(strategy, releases)
    for release in {1, 2, 3, releases // 2, releases - 1, releases} & set(range(1, releases + 1)):
        best = oracles.best_variance(np.concatenate(rows[:release]), release)
        assert strategy.variance(release) == pytest.approx(best, rel=1e-9)


# Published tables: releases, sum of r_j^2, square-root Toeplitz.

TABLE = [
    (16, 1.94388, 3.77866),
    (64, 2.38885, 5.70660),
    (256, 2.83105, 8.01484),
    (1024, 3.27255, 10.7096),
    (4096, 3.71388, 13.7929),
    (65536, 4.59644, 21.1273),
    (10**6, 5.46389, 29.8541),
]


def test_coefficients_of_the_square_root() -> None:
    assert oracles.sqrt_toeplitz(6).tolist() == [1, 0.5, 0.375, 0.3125, 0.2734375, 0.24609375]
    assert oracles.sqrt_toeplitz(40)[39] == pytest.approx(math.comb(78, 39) / 4**39, rel=1e-14)
    np.testing.assert_allclose(oracles.prefix_row(oracles.sqrt_toeplitz(300)), oracles.sqrt_toeplitz(300))


@pytest.mark.parametrize(("releases", "squares", "root"), TABLE)
def test_published_oracles(releases: int, squares: float, root: float) -> None:
    """Six digits are given."""
    norm = (oracles.sqrt_toeplitz(releases) ** 2).sum()
    assert norm == pytest.approx(squares, abs=5.1e-6)
    assert norm**2 == pytest.approx(root, rel=5e-6)


@pytest.mark.parametrize(("releases", "squares", "root"), TABLE[:5])
def test_published_strategies(releases: int, squares: float, root: float) -> None:
    """Six digits are given. The weights of the square root are rounded to 1/4096: errors of either
    sign, about 1/14000 each, of which a sum of up to 4096 squares, about 3 in all, keeps less than 1e-4.
    Longer ones take the square of the length to invert."""
    toeplitz = STRATEGIES["sqrt-toeplitz"](releases)
    assert toeplitz.square / toeplitz.unit**2 == pytest.approx(squares, rel=1e-4)
    assert toeplitz.square * toeplitz.variance(releases) == pytest.approx(root, rel=1e-4)
