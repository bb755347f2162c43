"""Noise follows its exact law, from secure randomness and from a seed alike; forked children repeat nothing."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from scipy import stats

from diminuendo import SeededSource, SystemSource
from diminuendo.errors import InvalidInput
from diminuendo.randomness import SecretRandomness, noise
from diminuendo.types import Floats, Ints
from tests.kit.slow import mostly_slow
from tests.kit.statistics import ALPHA, assert_follows, assert_rejects

Sampler = Callable[[Ints, float, SecretRandomness], Ints]

COUNT = 40_000
SOURCES = pytest.mark.parametrize("rng", [SystemSource(), SeededSource(11)], ids=repr)


def law(sampler: Sampler, scale: float, reach: int) -> Floats:
    """P(z) for z from -reach to reach, the rest at the ends; in high precision, summed over far more."""
    with mpmath.workdps(30):
        size = mpmath.mpf(scale)
        if sampler is noise.laplace:
            weights = [mpmath.exp(-abs(z) / size) for z in range(-reach, reach + 1)]
            whole = 1 + 2 * mpmath.exp(-1 / size) / (1 - mpmath.exp(-1 / size))
        else:
            weights = [mpmath.exp(-(mpmath.mpf(z) ** 2) / (2 * size**2)) for z in range(-reach, reach + 1)]
            whole = mpmath.nsum(lambda z: mpmath.exp(-(z**2) / (2 * size**2)), [-mpmath.inf, mpmath.inf])
        inner = [float(weight / whole) for weight in weights]
    rest = max(0.0, 1 - sum(inner)) / 2
    return np.array([rest, *inner, rest])


def cells(noisy: Ints, reach: int) -> Ints:
    return np.clip(noisy, -reach - 1, reach + 1) + reach + 1


@SOURCES
@pytest.mark.parametrize("sampler", [noise.laplace, noise.gaussian])
@pytest.mark.parametrize("scale", mostly_slow([0.4, 1.0, 3.7], [1.0]))
def test_small_scales_follow_the_exact_law(
    sampler: Sampler, scale: float, rng: SystemSource | SeededSource
) -> None:
    result = sampler(np.zeros(COUNT, dtype=np.int64), scale, SecretRandomness(rng))
    reach = math.ceil(4 * scale)
    assert_follows(cells(result, reach), law(sampler, scale, reach))
    assert_rejects(cells(result, reach), law(sampler, 1.1 * scale, reach))


@SOURCES
@pytest.mark.parametrize("scale", mostly_slow([1e3, 3.9e7, 1e12], [3.9e7]))
def test_large_scales_have_the_right_shape(scale: float, rng: SystemSource | SeededSource) -> None:
    """Kolmogorov-Smirnov against the continuous law, from which the discrete one differs by at most 1/scale."""
    for sampler, shape in ((noise.laplace, stats.laplace), (noise.gaussian, stats.norm)):
        result = sampler(np.zeros(COUNT, dtype=np.int64), scale, SecretRandomness(rng))
        spread = np.random.default_rng(0).random(COUNT) - 0.5  # rounding undone
        assert stats.kstest((result + spread) / scale, shape.cdf).pvalue > ALPHA
        assert stats.kstest((result + spread) / scale, shape(scale=1.1).cdf).pvalue < ALPHA
        assert len(np.unique(result)) > COUNT / 20


@SOURCES
@pytest.mark.parametrize("sampler", [noise.laplace, noise.gaussian])
def test_noise_is_added_to_what_is_there(sampler: Sampler, rng: SystemSource | SeededSource) -> None:
    values = np.arange(6, dtype=np.int64).reshape(2, 3) * 10**9
    result = sampler(values, 2.0, SecretRandomness(rng))
    assert result.shape == (2, 3)
    assert result.dtype == np.int64
    assert np.abs(result - values).max() < 200  # e^-100


def test_a_seed_repeats_itself_whatever_the_buffer() -> None:
    for sampler in (noise.laplace, noise.gaussian):
        one = sampler(np.zeros(500, dtype=np.int64), 5.0, SecretRandomness(SeededSource(2)))
        same = sampler(np.zeros(500, dtype=np.int64), 5.0, SecretRandomness(SeededSource(2), size=3))
        np.testing.assert_array_equal(one, same)
    secure = SecretRandomness(SystemSource())
    first, second = (noise.gaussian(np.zeros(50, dtype=np.int64), 1e6, secure) for _ in range(2))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, 2.0**51])
def test_bad_scales_are_refused(scale: float) -> None:
    secret = SecretRandomness(SeededSource(0))
    for sampler in (noise.laplace, noise.gaussian):
        with pytest.raises(InvalidInput, match=r"scale|sigma"):
            sampler(np.zeros(2, dtype=np.int64), scale, secret)


def test_noise_belongs_on_whole_numbers() -> None:
    for wrong in (np.zeros(2), np.zeros(2, dtype=np.uint64)):
        with pytest.raises(InvalidInput, match="whole numbers"):
            noise.laplace(wrong, 1.0, SecretRandomness(SeededSource(0)))  # type: ignore[arg-type]


FORK = """
import os, sys
import numpy as np
from diminuendo import SystemSource
from diminuendo.randomness import SecretRandomness, noise
secret = SecretRandomness(SystemSource())
def some():
    zeros = np.zeros(4, dtype=np.int64)
    return [part(zeros, 1e9, secret).tolist() for part in (noise.laplace, noise.gaussian)]
some()  # so that whatever is buffered is buffered before the fork
ends = [os.pipe() for _ in range(3)]
for ours, theirs in ends:
    if os.fork() == 0:
        os.write(theirs, repr(some()).encode())
        os._exit(0)
    os.wait()
print(repr(some()))
for ours, theirs in ends:
    print(os.read(ours, 1000).decode())
"""


def test_forked_children_repeat_no_noise() -> None:
    ran = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True)
    drawn = [number for line in ran.stdout.splitlines() for kind in eval(line) for number in kind]
    assert len(drawn) == 4 * 2 * 4
    assert len(set(drawn)) == len(drawn)  # two alike by chance: 500 pairs, 3e-10 each
