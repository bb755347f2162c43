"""What can be done wrong in what surrounds a learner: noise, clipping, and what is left of wishes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np

from diminuendo.randomness import noise
from diminuendo.randomness import rounded_normal as normal
from diminuendo.sums.greedy_queries import participants as chain
from diminuendo.sums.greedy_queries.query_weights import clip_weighted
from diminuendo.types import Floats


@contextmanager
def halved() -> Iterator[None]:
    """All noise has half the scale that was paid for."""

    def half(real: Callable[..., Any]) -> Callable[..., Any]:
        return lambda values, scale, secret: real(values, scale / 2, secret)

    with (
        mock.patch.object(noise, "laplace", half(noise.laplace)),
        mock.patch.object(normal, "rounded_normal", half(normal.rounded_normal)),
    ):
        yield


@contextmanager
def unclipped() -> Iterator[None]:
    """Wishes may be longer than those that noise is made for."""
    real = clip_weighted

    def clip(rule: Any, *rest: Any) -> None:
        kind, bound, ceiling, ticks, limit, signed = rule
        real((kind, 8 * bound, ceiling, ticks, 8 * limit, signed), *rest)

    with mock.patch.object(chain, "clip_weighted", clip):
        yield


@contextmanager
def without_minimum() -> Iterator[None]:
    """Rows are what items lose when one joins, also where they gain: nothing keeps them within the singles."""
    with _falling(lambda factors: factors):
        yield


@contextmanager
def rising_weights() -> Iterator[None]:
    """Rows are in full focus, whatever singles were in, and nothing keeps them within those."""
    with _falling(np.ones_like):
        yield


@contextmanager
def _falling(weighed: Callable[[Floats], Floats]) -> Iterator[None]:
    """What is left after an item joined is not compared with what there was; `weighed`: what becomes of its factors."""

    def fall(
        starts: Any,
        items: Any,
        scales: Any,
        gains: Any,
        factors: Floats,
        ceiling: float,
        joined: Any,
        left: Any,
        after: Any,
    ) -> None:
        said = weighed(factors)[items] * np.minimum(gains, ceiling)
        for user in range(len(starts) - 1):
            for j in range(starts[user], starts[user + 1]):
                here = items[j] != joined[user] and gains[j] > 0
                after[j] = int(scales[user] * said[j]) if here else 0

    with mock.patch.object(chain, "fall", fall):
        yield
