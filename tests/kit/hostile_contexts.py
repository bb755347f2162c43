"""Hostile pairs in contexts: two versions of one user, and the most that she moves of all that is published of her.

A `Plan` is what follows from a common view: releases, each a chain for each type of users or an around, with shares
of its cost and a weight for the batch that she belongs to. A `Version` is what she is in one world: of a type, with
values, with gains that may be anything whenever she is asked, and absent from releases that were made before she
answered. Noise is left out, so that what is published is what she adds, and the squares of her shift over those of the
noise can be added up in fractions. `climb` changes a version as long as that moves more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from unittest import mock

import numpy as np

from diminuendo import SystemSource
from diminuendo.audit.subjects import remembering
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import NormalColumns
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness import SecretRandomness
from diminuendo.randomness import rounded_normal as normal
from diminuendo.streams.contexts import Contexts
from diminuendo.sums.clip import Clip
from diminuendo.sums.greedy_queries.cells import SharedQueryWeights, ValueColumn
from diminuendo.sums.greedy_queries.cost import UNIT
from diminuendo.sums.greedy_queries.query_weights import FULL, SHARES
from diminuendo.sums.schedule import Schedule
from diminuendo.types import EMPTY_SLOT, Floats, Ints
from tests.kit.stored import UsersByHand

BUDGET = Budget(1.0, 1e-6)
SIGMAS = (1e9, 7e8)
"""Of the plan: wide enough for any weights to be within the budget."""
CLIPS = [Clip(), Clip(bound=9.0), Clip(bound=2.0, ceiling=3.0, ticks=100), Clip(ceiling=0.3), Clip(ticks=3)]
SAID = (0.0, 1.0, 1.0, 1.0, 0.6, 0.3, 0.01)
LIES = (0.0, 0.0, 1.0, 1.0, 0.5, -2.0, 1e300, float("nan"), float("inf"))
BATCHES = 2
"""She is of the first or of the second; release b is made when batch b closes."""


@dataclass(frozen=True)
class Release:
    """What one release asks, by the view."""

    weights: tuple[int, ...]
    query_weights: SharedQueryWeights
    steps: tuple[tuple[int, ...], ...]
    """Of chains: the item that joins each type's chain, step by step; EMPTY_SLOT: none."""
    slate: tuple[int, ...] | None
    """Of arounds."""


@dataclass(frozen=True)
class Plan:
    """All that both versions have in common."""

    n_items: int
    contexts: Contexts
    clip: Clip
    batch: int
    releases: tuple[Release, ...]


@dataclass(frozen=True)
class Version:
    """What she is in one world."""

    kind: int
    values: tuple[float, ...]
    gains: tuple[Floats, ...]
    """For each release (questions, items): what she says when she is asked again. Anything."""
    asked: tuple[bool, ...]
    """Whether she is moved by each step; who is not says nothing new."""
    since: int
    """The first release that she has answered before."""


@contextmanager
def without_noise() -> Iterator[None]:
    """While this lasts, sums are published as they are."""
    bare = mock.patch.object(normal, "rounded_normal", lambda values, sigma, secret: values)
    with bare, remembering(), np.errstate(all="ignore"):
        yield


def columns_of(contexts: Contexts) -> list[ValueColumn]:
    """The columns of contexts as sums see them."""
    values = contexts.values_of(np.arange(contexts.n_types))
    return [ValueColumn(size, each.copy()) for size, each in zip(contexts.sizes, values.T, strict=True)]


Published = tuple[list[tuple[Ints, float]], Fraction]


def published(plan: Plan, her: Version) -> Published:
    """Everything that is published of her, with the deviation of its noise; and what her batch paid."""
    secret, ledger = SecretRandomness(SystemSource()), Ledger(BUDGET)
    users = UsersByHand(
        plan.n_items,
        schedule=Schedule((10, 20, 30, 40)),
        ledger=ledger,
        clip=plan.clip,
        columns=columns_of(plan.contexts),
    )
    result: list[tuple[Ints, float]] = []
    everything = np.arange(plan.n_items)
    for number, release in enumerate(plan.releases):
        if number == her.since:
            users.add(her.values, everything, batch=plan.batch, kind=her.kind)
        here, weights = number >= her.since, np.array(release.weights)
        said = her.gains[number]
        if release.slate is None:
            chain, cells = users.in_contexts(number, weights, SIGMAS, release.query_weights, secret)
            if release.query_weights.singletons:
                result.append((chain.singletons(secret), chain.sigmas[0]))
            for step, items in enumerate(release.steps):
                gains = said[step] if here else np.zeros(0)
                asked = np.array([her.asked[step]] if here else [], dtype=np.bool_)
                row = chain.losses_by_type(np.array(items), gains, secret, asked)
                result.append((row.ravel(), chain.sigmas[1]))
            result.append((chain.residual_by_type(secret).ravel(), chain.sigmas[1]))
        else:
            slate = list(release.slate)
            swap, cells = users.swap_in_contexts(
                number, weights, SIGMAS, slate, release.query_weights, secret
            )
            parts = iter([(0, said[: len(slate) + 1])] if here else [])
            result.append((swap.publish(parts, secret).ravel(), swap.sigma))
        for column in range(len(plan.contexts.columns)):
            for part, sigma in (
                (cells.cells(column, secret), cells.deviations.cells[column]),
                (cells.counts(column, secret), cells.deviations.counts[column]),
            ):
                if part is not None:
                    result.append((part.ravel(), sigma))
    paid = Fraction(0)
    for number in range(len(plan.releases)):
        event = ledger.cost_of(f"users-{number:06d}")
        assert isinstance(event, NormalColumns)
        paid += Fraction(event.squares[plan.batch]) if plan.batch < len(event.squares) else 0
    return result, paid


def ratio(one: Published, other: Published) -> float:
    """What the two versions move, as a share of what was paid. More than 1 is a hole, and is never rounded to 1."""
    (first, paid), (second, same_price), moved = one, other, Fraction(0)
    assert paid == same_price
    for (here, sigma), (there, same) in zip(first, second, strict=True):
        assert sigma == same
        assert here.shape == there.shape
        moved += Fraction(sum(int(apart) ** 2 for apart in here - there)) / Fraction(sigma) ** 2
    if paid == 0:
        assert moved == 0
        return 0.0
    share = moved / paid
    return float(share) if share <= 1 else max(float(share), 1.0 + 2.0**-52)


def _shares(random: np.random.Generator, columns: int, swap: bool, counts: bool) -> list[int]:
    """Random shares that add up to SHARES, now and then all in one part."""
    parts = 2 + 2 * columns
    worth = random.random(parts) ** int(random.choice([1, 4]))
    worth[0] *= not swap
    worth[2 + columns :] *= counts
    worth[random.random(parts) < 0.2] = 0.0
    worth[1] += 1e-3
    if not swap:
        worth[0] += 1e-3
    result = [int(share) for share in SHARES * worth / worth.sum()]
    if not swap:
        result[0] = max(1, result[0])
    result[1] = max(1, result[1])
    result[int(np.argmax(result))] += SHARES - sum(result)
    return result


def random_plan(random: np.random.Generator, *, private: bool) -> Plan:
    """Some releases of one kind or the other; chains part, join again, stop and go on, as the view has it."""
    n_items = int(random.integers(1, 5))
    sizes = random.integers(1, 4, size=int(random.integers(1, 3))).tolist()
    contexts = Contexts({f"c{number}": size for number, size in enumerate(sizes)}, private=private)
    batch, releases = int(random.integers(BATCHES)), list[Release]()
    for number in range(int(random.integers(1, 4))):
        swap = bool(random.random() < 0.3)
        shares = _shares(random, len(sizes), swap, private or bool(random.random() < 0.2))
        weights = random.choice([1, 77, 128, FULL, FULL, FULL], size=n_items).astype(np.int64)
        columns = len(sizes)
        split = tuple(shares[2 : 2 + columns]), tuple(shares[2 + columns :])
        query_weights = SharedQueryWeights(weights, shares[0], shares[1], *split)
        slate = None
        steps = list[tuple[int, ...]]()
        if swap:
            many = int(random.integers(1, n_items + 1))
            slate = tuple(random.permutation(n_items)[:many].tolist())
        else:
            sets = [set[int]() for _ in range(contexts.n_types)]
            order = random.permutation(n_items).tolist()
            for _ in range(int(random.integers(0, n_items + 1))):
                own = random.random() < 0.7  # else everybody has the same next item, if she may
                step = []
                for so_far in sets:
                    left = [item for item in order if item not in so_far]
                    item = left[int(random.integers(len(left))) if own else 0] if left else EMPTY_SLOT
                    item = EMPTY_SLOT if random.random() < 0.15 else item
                    step.append(item)
                    so_far |= {item} - {EMPTY_SLOT}
                steps.append(tuple(step))
        batches = random.choice([0, 1, 5, UNIT // 2, UNIT, UNIT], size=number + 1)
        releases.append(Release(tuple(batches.tolist()), query_weights, tuple(steps), slate))
    clip = CLIPS[int(random.integers(len(CLIPS)))]
    return Plan(n_items, contexts, clip, batch, tuple(releases))


def random_version(random: np.random.Generator, plan: Plan) -> Version:
    """Anybody."""
    values = random.choice(SAID, size=plan.n_items) * plan.clip.ceiling
    if random.random() < 0.5:  # all that she has on one item
        values = np.where(np.arange(plan.n_items) == random.integers(plan.n_items), plan.clip.ceiling, 0.0)
    gains = tuple(random.choice(LIES, size=(plan.n_items + 1, plan.n_items)) for _ in plan.releases)
    asked = tuple((random.random(plan.n_items + 1) < 0.8).tolist())
    delay = 0 if random.random() < 0.7 else int(random.integers(len(plan.releases) + 1))
    return Version(int(random.integers(plan.contexts.n_types)), tuple(values.tolist()), gains, asked, delay)


def changed(random: np.random.Generator, plan: Plan, her: Version, *, private: bool) -> Version:
    """One thing about her is another one."""
    what, other = int(random.integers(6)), random_version(random, plan)
    if what == 0 and private:
        return replace(her, kind=other.kind)
    if what == 1:
        return replace(her, values=other.values)
    if what == 2:
        return replace(her, since=other.since)
    if what == 3:
        return replace(her, asked=other.asked)
    values, gains = np.array(her.values), [part.copy() for part in her.gains]
    if what == 4:
        values[random.integers(plan.n_items)] = random.choice(SAID) * plan.clip.ceiling
        return replace(her, values=tuple(values.tolist()))
    part = gains[int(random.integers(len(gains)))]
    part[random.random(part.shape) < 0.3] = random.choice(LIES)
    return replace(her, gains=tuple(gains))


def climb(random: np.random.Generator, tries: int, *, private: bool) -> float:
    """The worst of `tries` pairs along one random plan, found by changing the worst so far."""
    plan = random_plan(random, private=private)
    pair = [random_version(random, plan), random_version(random, plan)]
    if not private:
        pair[1] = replace(pair[1], kind=pair[0].kind)
    said = [published(plan, version) for version in pair]
    best = ratio(*said)
    for _ in range(tries - 1):
        which = int(random.integers(2))
        tried = changed(random, plan, pair[which], private=private)
        says = published(plan, tried)
        result = ratio(says, said[1 - which])
        if result >= best:
            best, pair[which], said[which] = result, tried, says
    return best


def across_a_crash(plan: Plan, incarnations: list[Version], seed: int) -> Published:
    """All that is drawn of the first release, a chain, in two lives of a process, and what her batch paid.

    In the second life she says something else, and is of another type; what is drawn when is by the view (`seed`).
    """
    rng, drawn = np.random.default_rng(seed), list[tuple[Ints, float]]()
    release, ledger = plan.releases[0], Ledger(BUDGET)
    users = UsersByHand(
        plan.n_items,
        schedule=Schedule((10, 20, 30, 40)),
        ledger=ledger,
        clip=plan.clip,
        columns=columns_of(plan.contexts),
    )

    def draw(values: Ints, sigma: float, secret: SecretRandomness) -> Ints:
        drawn.append((np.array(values).ravel(), sigma))
        return values

    secret = SecretRandomness(SystemSource())
    with mock.patch.object(normal, "rounded_normal", draw):
        for incarnation, her in enumerate(incarnations):
            users.forget(1)
            users.add(her.values, np.arange(plan.n_items), batch=0, kind=her.kind)
            chain, cells = users.in_contexts(
                0, np.array(release.weights), SIGMAS, release.query_weights, secret
            )
            stop = incarnation == 0
            if rng.random() < 0.8:
                chain.singletons(secret)
            for column in range(len(plan.contexts.columns)):
                if rng.random() < 0.6:
                    cells.cells(column, secret)
                if rng.random() < 0.6:
                    cells.counts(column, secret)
            for step, items in enumerate(release.steps):
                if not chain.goes_on() or (stop and rng.random() < 0.3):
                    break
                chain.losses_by_type(np.array(items), her.gains[0][step], secret, np.array([her.asked[step]]))
            else:
                if chain.goes_on(residual=True) and not (stop and rng.random() < 0.5):
                    chain.residual_by_type(secret)
    event = ledger.cost_of("users-000000")
    assert isinstance(event, NormalColumns)
    return drawn, Fraction(event.squares[0])


def climb_across_a_crash(random: np.random.Generator, tries: int, *, private: bool) -> float:
    """As `climb`, for one chain that a crash interrupts."""
    plan = random_plan(random, private=private)
    while plan.releases[0].slate is not None or plan.releases[0].weights[0] == 0:
        plan = random_plan(random, private=private)
    plan, seed = replace(plan, batch=0, releases=plan.releases[:1]), int(random.integers(2**32))
    pair = [[random_version(random, plan) for _ in range(2)] for _ in range(2)]
    if not private:
        pair = [[replace(her, kind=pair[0][0].kind) for her in incarnations] for incarnations in pair]
    said = [across_a_crash(plan, incarnations, seed) for incarnations in pair]
    best = ratio(*said)
    for _ in range(tries - 1):
        which, incarnation, tried = (
            int(random.integers(2)),
            int(random.integers(2)),
            [list(incarnations) for incarnations in pair],
        )
        tried[which][incarnation] = changed(random, plan, tried[which][incarnation], private=private)
        says = across_a_crash(plan, tried[which], seed)
        result = ratio(says, said[1 - which])
        if result >= best:
            best, pair, said[which] = result, tried, says
    return best
