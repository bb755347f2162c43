r"""How overlap greedy spends its budget: when it releases, with what weights, and what noise goes where.

Everything is a function of public facts: items, users to come, and the budget. With mu the budget as a Gaussian, one
user's singles (length at most 1) get noise of sigma = sqrt(2) / mu users; the largest of N such numbers is about
nu = sigma sqrt(2 log N). That is the unit of all times here: nothing can be learned from much fewer than nu users.

    first release   after 4 nu users, at least 10, at most a tenth of all
    then            after half as many again, each time; but at most 20 nu, and a quarter of all, between two.
                    If the number of users is not known, after half as many again for ever: the squares of weights
                    add up whatever comes
    weights         t_j / t_b for users of batch j in release b: squares add up to the same for every batch
    retention       R, where users are kept for R rounds: batches are at most R / 2 long, and a release asks a batch
                    only if that began no more than R rounds before. Weights are shared out over the releases in which a
                    batch is asked, so that it pays the same in the end
    noise           a twentieth of the budget for the reward of each batch (drift), the rest for singles and rows:
                    .95 for singles in the beginning, half and half later. That fixes the price of a release; how it
                    is shared out follows what was published by then (query_weights.py)

The numbers 4, 1.5, 20 and 1/20 were chosen once, on MSWeb, groceries, Uber and synthetic streams. They change results
little within factors of two. A learner never fits them to the stream that it protects.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from diminuendo.errors import InvalidInput
from diminuendo.learners.base.frame import LONGEST
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import ContinuousGaussian, NormalColumns
from diminuendo.sums.clip import Clip
from diminuendo.sums.greedy_queries.cost import UNIT, partition, release_cost, squared_shifts
from diminuendo.sums.schedule import Schedule
from diminuendo.types import Ints

DRIFT = 0.05
"""The share of the budget for one reward per batch."""
MOST_BATCHES = 1000
"""A retention that would take more batches is refused: what a release costs is written down batch by batch."""


@dataclass(frozen=True)
class OverlapPlan:
    """When an overlap learner releases, with what weights and what noise, and so at what cost. All public."""

    schedule: Schedule
    weights: Ints = field(repr=False)
    """(releases, batches) whole numbers."""
    sigmas: tuple[tuple[float, float], ...] = field(repr=False)
    """For each release the deviation of noise on singles and on rows, in ticks times weights."""
    shifts: tuple[int, int]
    """By how much one user of weight 1 moves singles, and all rows of a chain, squares added up, in ticks squared."""
    drift: ContinuousGaussian
    """The most that the rewards of all batches may cost."""
    nu: float
    """The largest of the noise in all singles, in users, about."""
    first_noise: float
    """The deviation of noise on singles at the first release, in users of weight 1; 0 where there is none."""
    begins: tuple[int, ...] = field(default=(), repr=False)
    """For each release, and for after the last, the first batch that it or a later one asks; empty: all are asked."""

    @property
    def releases(self) -> int:
        """The number of releases. After the last batch no user comes, so nothing is released."""
        return len(self.weights)

    def kept_from(self, number: int) -> int:
        """The first batch whose users release `number`, or a later one, asks: those before are forgotten by then."""
        return self.begins[number] if self.begins else 0

    @cached_property
    def costs(self) -> tuple[NormalColumns, ...]:
        """What each release is charged, batch by batch, as long as no user was forgotten; later, less."""
        users = partition("users", self.schedule)
        return tuple(
            release_cost(self.weights[number, : number + 1], self.shifts, both, users)
            for number, both in enumerate(self.sigmas)
        )


def overlap_plan(
    n_items: int, rounds: int | None, budget: Budget, clip: Clip, retention: int | None = None
) -> OverlapPlan:
    """The plan for `rounds` users, or for an unknown number (None); `retention`: for how many rounds each is kept."""
    mu = math.sqrt(budget.limit)
    sigma = math.sqrt(2) / mu
    nu = sigma * math.sqrt(2 * math.log(max(2, n_items)))
    ends = batch_ends(rounds, nu, None if retention is None else longest_batch(retention, rounds))
    schedule = Schedule(tuple(ends))
    releases = len(ends) - 1
    times = np.array(ends[:releases], dtype=np.float64)
    shares = np.tril(times[None, :] / times[:, None]) if releases else np.zeros((0, 0))
    begins: tuple[int, ...] = ()
    if retention is not None:
        begins = first_asked(ends, retention)
        shares *= np.arange(releases) >= np.array(begins[:releases], dtype=np.int64)[:, None]
    shares /= np.sqrt((shares**2).sum(axis=0, keepdims=True)) if releases else 1.0
    weights = np.floor(UNIT * shares).astype(np.int64)
    # Each batch pays at most this much over all releases, in squares, for weights of UNIT and sensitivity 2 ticks^2.
    square = (1 - DRIFT) * mu * mu * (1 - 2.0**-40)
    whole = math.sqrt(2) * clip.ticks * UNIT / math.sqrt(square)
    sigmas = []
    for time in times:
        singletons = 0.5 + 0.45 * min(1.0, 12 * nu / time)
        sigmas.append((whole / math.sqrt(singletons), whole / math.sqrt(1 - singletons)))
    drift = ContinuousGaussian(mu * math.sqrt(DRIFT) * (1 - 2.0**-40))
    first_noise = sigmas[0][0] / (clip.ticks * UNIT) if sigmas else 0.0
    shifts = squared_shifts(n_items, clip)
    return OverlapPlan(schedule, weights, tuple(sigmas), shifts, drift, nu, first_noise, begins)


def longest_batch(retention: int, rounds: int | None) -> int:
    """How long a batch may be, where users are kept for `retention` rounds: most users are then asked twice."""
    if rounds is None:
        raise InvalidInput(
            f"retention={retention} needs to know how many rounds there will be at most, since their batches are "
            "planned beforehand: say horizon=.., with room to spare. A horizon that is too long costs nothing here."
        )
    longest = max(1, retention // 2)
    if rounds > MOST_BATCHES * longest:
        least = 2 * math.ceil(rounds / MOST_BATCHES)
        raise InvalidInput(
            f"retention={retention:,} of {rounds:,} rounds would take more than {MOST_BATCHES:,} batches; keep users "
            f"for at least {least:,} rounds, or plan for fewer."
        )
    return longest


def first_asked(ends: list[int], retention: int) -> tuple[int, ...]:
    """For each release the first batch that began no more than `retention` rounds before; after the last, none is."""
    begun, batch, result = [0, *ends[:-1]], 0, []
    for end in ends[:-1]:
        while end - begun[batch] > retention:
            batch += 1
        result.append(batch)
    return (*result, len(ends))


def batch_ends(known: int | None, nu: float, longest: int | None = None) -> list[int]:
    """After how many users batches close, none longer than `longest`; the last is all users."""
    rounds = LONGEST if known is None else known
    first = max(1, int(min(max(10.0, 4 * nu), rounds / 10)))
    most = max(1, int(min(max(20 * nu, 0.05 * rounds), 0.25 * rounds))) if known is not None else rounds
    if longest is not None:
        first, most = min(first, longest), min(most, longest)
    ends = [min(first, rounds)]
    while ends[-1] < rounds:
        ends.append(min(rounds, ends[-1] + max(1, min(ends[-1] // 2, most))))
    return ends
