r"""Noise on whole numbers: discrete Laplace and discrete Gaussian.

    laplace    P(z) in proportion to exp(-|z| / scale)
    gaussian   P(z) in proportion to exp(-z^2 / (2 sigma^2))

With secure randomness these are OpenDP's samplers, which are exact: the scale is the very float that is given,
arithmetic is rational, and the sum of value and noise saturates at the ends of 64 bits, which is post-processing. They
take their bits from OpenSSL, which reseeds in a forked process; nothing drawn here is kept for later calls, so there is
nothing that a fork could repeat. With seeded coins the same laws are drawn from the seed, up to the rounding of floats:
for simulation only, as everything seeded is.

Cost       docs/maths/sums.md, Theorems S1 (Gaussian: zCDP, since the mu-GDP curve understates discrete noise), S2.
Assumes    that OpenDP's samplers and OpenSSL's randomness are what they are said to be.
Excludes   timing: how long a sampler takes depends on what it drew.
References Canonne, Kamath & Steinke (2020), NeurIPS 33; Ghosh, Roughgarden & Sundararajan (2012), SICOMP 41.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.randomness.words import SecretRandomness, require_secret
from diminuendo.types import Floats, Ints

WIDEST = 2.0**50
"""Wider noise than this would leave no room in 64 bits."""


def laplace(values: Ints, scale: float, secret: SecretRandomness) -> Ints:
    """Each value plus discrete Laplace noise."""
    return _noisy(values, checked_scale(scale, "scale"), secret, "make_laplace", _seeded_laplace)


def gaussian(values: Ints, sigma: float, secret: SecretRandomness) -> Ints:
    """Each value plus discrete Gaussian noise."""
    return _noisy(values, checked_scale(sigma, "sigma"), secret, "make_gaussian", _seeded_gaussian)


def _noisy(
    values: Ints,
    scale: float,
    secret: SecretRandomness,
    vetted: str,
    seeded: Callable[[float, int, SecretRandomness], Ints],
) -> Ints:
    whole = whole_numbers(values, secret)
    if secret.secure:
        drawn = _measurement(vetted, scale)(whole.ravel().astype(np.int64, copy=False))
        return np.array(drawn, dtype=np.int64).reshape(whole.shape)
    return whole + seeded(scale, whole.size, secret).reshape(whole.shape)


@cache
def _measurement(maker: str, scale: float) -> Any:
    """OpenDP's mechanism; imported on first use, since most simulations never need it."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    metric = dp.l1_distance(T="i64") if maker == "make_laplace" else dp.l2_distance(T="f64")
    return getattr(dp.m, maker)(dp.vector_domain(dp.atom_domain(T="i64")), metric, scale=scale)


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
