r"""Noise on whole numbers: discrete Laplace and discrete Gaussian.

    laplace    P(z) in proportion to exp(-|z| / scale)
    gaussian   P(z) in proportion to exp(-z^2 / (2 sigma^2))

With secure randomness they are drawn exactly (exact_discrete.py): the scale is the very float that is given, arithmetic
is of whole numbers, and the sum of value and noise saturates at the ends of 64 bits, which is post-processing. Words
that are left over are thrown away, so there is nothing that a fork could repeat. With seeded coins the same laws are
drawn from the seed, up to the rounding of floats: for simulation only, as everything seeded is.

Cost       docs/maths/sums.md, Theorems S1 (Gaussian: zCDP, since the mu-GDP curve understates discrete noise), S2.
Assumes    that the system's randomness is uniform and secret.
Excludes   timing: how long a sampler takes depends on what it drew.
References Canonne, Kamath & Steinke (2020), NeurIPS 33; Ghosh, Roughgarden & Sundararajan (2012), SICOMP 41.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.randomness.exact_discrete import Below, SecretNumbers, gaussian_number, laplace_number
from diminuendo.randomness.words import SecretRandomness, require_secret
from diminuendo.types import Floats, Ints

WIDEST = 2.0**50
"""Wider noise than this would leave no room in 64 bits."""
LEAST, MOST = -(1 << 63), (1 << 63) - 1
"""The ends of 64 bits."""
WORDS_EACH = 16
"""Words that a number takes, about."""


def laplace(values: Ints, scale: float, secret: SecretRandomness) -> Ints:
    """Each value plus discrete Laplace noise."""
    return _noisy(values, checked_scale(scale, "scale"), secret, laplace_number, _seeded_laplace)


def gaussian(values: Ints, sigma: float, secret: SecretRandomness) -> Ints:
    """Each value plus discrete Gaussian noise."""
    return _noisy(values, checked_scale(sigma, "sigma"), secret, gaussian_number, _seeded_gaussian)


def _noisy(
    values: Ints,
    scale: float,
    secret: SecretRandomness,
    exact: Callable[[Below, Fraction], int],
    seeded: Callable[[float, int, SecretRandomness], Ints],
) -> Ints:
    whole = whole_numbers(values, secret)
    if secret.secure:
        below, size = SecretNumbers(secret, WORDS_EACH * whole.size).below, Fraction(scale)
        found = [min(max(value + exact(below, size), LEAST), MOST) for value in whole.ravel().tolist()]
        return np.array(found, dtype=np.int64).reshape(whole.shape)
    return whole + seeded(scale, whole.size, secret).reshape(whole.shape)


def _seeded_laplace(scale: float, count: int, secret: SecretRandomness) -> Ints:
    """The difference of two geometric numbers."""
    waits = np.floor(-scale * np.log(_uniforms(2 * count, secret))).astype(np.int64)
    return np.asarray(waits[::2] - waits[1::2], dtype=np.int64)


def _seeded_gaussian(sigma: float, count: int, secret: SecretRandomness) -> Ints:
    """Discrete Laplace numbers of scale t, each kept with probability exp(-(|z| - sigma^2 / t)^2 / (2 sigma^2))."""
    t = math.floor(sigma) + 1
    kept = np.empty(0, dtype=np.int64)
    while len(kept) < count:
        lacking = count - len(kept)
        z = _seeded_laplace(t, lacking, secret)
        accept = np.exp(-((np.abs(z) - sigma**2 / t) ** 2) / (2 * sigma**2))
        kept = np.concatenate([kept, z[_uniforms(lacking, secret) < accept]])
    return kept


def _uniforms(count: int, secret: SecretRandomness) -> Floats:
    """Uniform in (0, 1), to 53 bits."""
    return np.asarray(((secret.take(count) >> np.uint64(11)) + 0.5) * 2.0**-53)


def whole_numbers(values: Ints, secret: SecretRandomness) -> Ints:
    """What noise may be added to, and randomness that it may be drawn with."""
    require_secret(secret)
    whole = np.ascontiguousarray(values)
    if not np.issubdtype(whole.dtype, np.signedinteger):
        raise InvalidInput(f"Noise is added to whole numbers (signed integers); got {whole.dtype}.")
    return whole


def checked_scale(value: float, name: str) -> float:
    """A scale that noise can have."""
    checked = _validate.positive_float(value, name)
    if checked > WIDEST:
        raise InvalidInput(f"{name} must be at most 2^50 so that sums fit into 64 bits; got {value:g}.")
    return checked
