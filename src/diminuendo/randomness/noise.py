r"""Noise on whole numbers: discrete Laplace and discrete Gaussian.

    laplace    P(z) in proportion to exp(-|z| / scale)
    gaussian   P(z) in proportion to exp(-z^2 / (2 sigma^2))

They are drawn exactly (exact_discrete.py), from secure words and from seeded ones alike: the scale is the very float
that is given, and the sum of value and noise saturates at the ends of 64 bits, which is post-processing.

Cost       docs/maths/sums.md, Theorems S1 (Gaussian: zCDP, since the mu-GDP curve understates discrete noise), S2.
Assumes    that the system's randomness is uniform and secret.
Excludes   timing: how long a sampler takes depends on what it drew.
References Canonne, Kamath & Steinke (2020), NeurIPS 33; Ghosh, Roughgarden & Sundararajan (2012), SICOMP 41.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.randomness.exact_discrete import (
    LEAST,
    MOST,
    NextWord,
    fill,
    gaussian_number,
    laplace_number,
)
from diminuendo.randomness.words import SHORT, SecretRandomness, require_secret
from diminuendo.types import Ints

WIDEST = 2.0**50
"""Wider noise than this would leave no room in 64 bits."""
WORDS_EACH = 16
"""Words that a number takes, about."""


def laplace(values: Ints, scale: float, secret: SecretRandomness) -> Ints:
    """Each value plus discrete Laplace noise."""
    size = Fraction(checked_scale(scale, "scale"))
    law = size.numerator, size.denominator.bit_length() - 1, 0.0
    return _noisy(values, law, secret, lambda next_word: laplace_number(next_word, size))


def gaussian(values: Ints, sigma: float, secret: SecretRandomness) -> Ints:
    """Each value plus discrete Gaussian noise."""
    size = Fraction(checked_scale(sigma, "sigma"))
    law = int(size) + 1, 0, float(size)
    return _noisy(values, law, secret, lambda next_word: gaussian_number(next_word, size))


def _noisy(
    values: Ints,
    law: tuple[int, int, float],
    secret: SecretRandomness,
    exact: Callable[[NextWord], int],
) -> Ints:
    whole = whole_numbers(values, secret)
    given, done = whole.astype(np.int64).ravel(), 0
    noisy = np.empty_like(given)
    with secret.lock:
        while (done := int(fill(done, given, noisy, *law, secret.view))) < len(given):
            if secret.view.used[SHORT]:
                secret.resume(WORDS_EACH * (len(given) - done))
            else:  # floats could not decide
                number = exact(lambda: int(secret.take(1)[0]))
                noisy[done] = min(max(int(given[done]) + number, LEAST), MOST)
                done += 1
    return noisy.reshape(whole.shape)


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
