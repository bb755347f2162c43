"""Focus: whatever is weighed by it, two users move a release by no more than was charged; and it is kept with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diminuendo import SystemSource
from diminuendo.errors import InvalidInput
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import NormalColumns
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness import SecretRandomness
from diminuendo.randomness import rounded_normal as normal
from diminuendo.sums.clip import Clip
from diminuendo.sums.greedy_queries.cost import (
    UNIT,
    cost_of_one,
    deviation_for,
    split_deviations,
    squared_shifts,
)
from diminuendo.sums.greedy_queries.query_weights import FULL, SHARES, QueryWeights
from diminuendo.types import Ints
from tests.kit.stored import HandSequence, UsersByHand
from tests.sums.test_stored import ITEMS, WIDE, secret, stored, vectors

BUDGET = Budget(1.0, 1e-6)
CLIPS = [Clip(), Clip(bound=9.0), Clip(bound=9.0, ceiling=3.0, ticks=100), Clip(ceiling=0.3)]
UNEVEN = (1e9, 3e8)
"""Deviations of a plan by which singles have a twelfth of the cost."""
weighings = st.lists(
    st.sampled_from([1, 2, 77, 128, 255, FULL]) | st.integers(1, FULL), min_size=ITEMS, max_size=ITEMS
)
all_query_weights = st.builds(
    lambda weights, singletons: QueryWeights(np.array(weights), singletons),
    weighings,
    st.sampled_from([1, 512, SHARES - 1]) | st.integers(1, SHARES - 1),
)


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normal, "rounded_normal", lambda values, sigma, secret: values)


def full(n_items: int = ITEMS, singletons: int = SHARES // 2) -> QueryWeights:
    return QueryWeights(np.full(n_items, FULL), singletons)


def squared(shift: Ints, sigma: float) -> Fraction:
    """The squares of a shift over the squared deviation of its noise."""
    return Fraction(int((shift.astype(object) ** 2).sum())) / Fraction(sigma) ** 2


def charged(ledger: Ledger, name: str, batch: int = 0) -> Fraction:
    """What users of a batch pay for what was bought under a name, as squares."""
    event = ledger.cost_of(name)
    assert isinstance(event, NormalColumns)
    return Fraction(event.squares[batch])


def along(release: HandSequence, chain: Iterable[int], later: Iterable[Any]) -> list[tuple[Ints, float]]:
    """Everything that a release publishes along a chain, each with the deviation of its noise."""
    singletons = release.singletons(secret())
    rows = [release.losses(item, gains, secret()) for item, gains in zip(chain, later, strict=True)]
    return [
        (singletons, release.sigmas[0]),
        *((part, release.sigmas[1]) for part in (*rows, release.residual(secret()))),
    ]


def moved(one: Iterable[tuple[Ints, float]], other: Iterable[tuple[Ints, float]]) -> Fraction:
    """By how much two users move the same publications."""
    pairs = list(zip(one, other, strict=True))
    assert all(sigma == same for (_, sigma), (_, same) in pairs)
    return sum((squared(a - b, sigma) for (a, sigma), (b, _) in pairs), Fraction(0))


# What users can move.


@settings(deadline=None, max_examples=200)
@given(
    one=st.tuples(vectors, st.lists(vectors, min_size=3, max_size=3)),
    other=st.tuples(vectors, st.lists(vectors, min_size=3, max_size=3)),
    chain=st.permutations(range(ITEMS)).map(lambda order: list(order[:3])),
    weight=st.integers(0, UNIT),
    clip=st.sampled_from(CLIPS),
    query_weights=all_query_weights,
    planned=st.sampled_from([WIDE, UNEVEN]),
)
def test_hostile_users_move_a_release_in_any_focus_by_no_more_than_is_charged(
    one: Any,
    other: Any,
    chain: list[int],
    weight: int,
    clip: Clip,
    query_weights: QueryWeights,
    planned: tuple[float, float],
) -> None:
    result = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(normal, "rounded_normal", lambda values, sigma, secret: values)
        for user, later in (one, other):
            users = stored(clip=clip)
            users.add(user, np.arange(ITEMS), batch=0)
            release = users.begin_greedy(0, [weight], planned, query_weights, secret())
            result.append(along(release, chain, later))
    shifts = squared_shifts(ITEMS, clip)
    assert moved(*result) <= weight**2 * cost_of_one(shifts, planned) <= charged(users.ledger, "users-000000")
    for published in result:
        assert min(part.min() for part, _ in published) >= 0
        assert (
            sum(int((part.astype(object) ** 2).sum()) for part, _ in published[1:])
            <= (weight * clip.limit) ** 2
        )
    (singletons, before), *rows = ((a - b, sigma) for (a, sigma), (b, _) in zip(*result, strict=True))
    share = query_weights.share * weight**2 * cost_of_one(shifts, planned)
    assert squared(singletons, before) <= share
    assert (
        sum((squared(*row) for row in rows), Fraction(0)) <= weight**2 * cost_of_one(shifts, planned) - share
    )


def test_two_users_can_move_all_that_is_charged_whatever_the_share(bare: None) -> None:
    """The price is not idle: she wants an item in focus, which is lost at the first row, or another one to the end."""
    for singletons in (1, 300, SHARES - 1):
        result = []
        for item, later in ((0, 0.0), (1, 1.0)):
            users = stored()
            users.add([1.0], [item], batch=0)
            query_weights = QueryWeights(np.array([FULL, FULL, 1, 1]), singletons)
            result.append(along(users.begin_greedy(0, [UNIT], WIDE, query_weights, secret()), [2], [[later]]))
        paid = charged(users.ledger, "users-000000")
        assert (1 - Fraction(1, 10**12)) * paid < moved(*result) <= paid


@settings(deadline=None, max_examples=60)
@given(
    user_ids=st.lists(vectors, min_size=1, max_size=4),
    later=st.lists(st.lists(vectors, min_size=4, max_size=4), min_size=3, max_size=3),
    chain=st.permutations(range(ITEMS)).map(lambda order: list(order[:3])),
    clip=st.sampled_from(CLIPS),
)
def test_full_focus_says_what_a_release_without_focus_says(
    user_ids: list[list[float]], later: list[list[list[float]]], chain: list[int], clip: Clip
) -> None:
    """Bit for bit, at the planned share: half and half, where both parts move alike, have equal deviations."""
    result = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(normal, "rounded_normal", lambda values, sigma, secret: values)
        for begin_greedy in (False, True):
            users = stored(clip=clip)
            for number, user in enumerate(user_ids):
                users.add(user, np.arange(ITEMS), batch=number % 2)
            one, other = squared_shifts(ITEMS, clip)
            rows = deviation_for(cost_of_one([one], [1e9]), other)
            gains = [[gain for user in said[: len(user_ids)] for gain in user] for said in later]
            if begin_greedy:
                release = users.begin_greedy(0, [3, 2], (1e9, rows), full(), secret())
            else:
                release = users.release(0, [3, 2], (1e9, rows))
            result.append(along(release, chain, gains))
    for (numbers, sigma), (same, split) in zip(*result, strict=True):
        np.testing.assert_array_equal(numbers, same)
        assert split == pytest.approx(sigma, rel=1e-15)


def test_what_is_in_focus_counts_more(bare: None) -> None:
    """She wants everything, and would be clipped: what is out of focus makes room for what is in it."""
    users = stored()
    users.add([1.0] * ITEMS, batch=0)
    wide = users.begin_greedy(0, [1], WIDE, full(), secret()).singletons(secret())
    narrow = users.begin_greedy(
        1, [1], WIDE, QueryWeights(np.array([FULL, 1, 1, 1]), 512), secret()
    ).singletons(secret())
    assert wide.tolist() == [512] * ITEMS
    assert narrow.tolist() == [1023, 3, 3, 3]


def test_rows_are_in_the_focus_of_the_release(bare: None) -> None:
    """What is left of an item is what it would still add, times its weight."""
    users = stored(clip=Clip(bound=30.0))
    users.add([0.5, 1.0, 0.25, 0.75], batch=0)
    weights = np.array([FULL, 128, 64, 32])
    chain = users.begin_greedy(0, [2], WIDE, QueryWeights(weights, 512), secret())
    singletons = chain.singletons(secret())
    np.testing.assert_array_equal(singletons, 8 * weights * [0.5, 1.0, 0.25, 0.75])
    row = chain.losses(0, [0.25, 0.5, 0.25, 0.5], secret())
    np.testing.assert_array_equal(singletons - row, 8 * weights * [0.0, 0.5, 0.25, 0.5])
    np.testing.assert_array_equal(chain.residual(secret()), singletons - row)


# What is kept.


def opened(path: Path) -> UsersByHand:
    """As after a crash: the same users, on the ledger of the file."""
    users = stored(ledger=Ledger.open(path / "ledger", BUDGET))
    users.add([0.5, 0.2, 0.1, 0.0], batch=0)
    return users


FIRST, OTHER = QueryWeights(np.array([FULL, 128, 64, 1]), 700), QueryWeights(np.array([1, FULL, 2, 3]), 20)


@pytest.mark.parametrize("drawn", [True, False])
def test_after_a_crash_the_focus_is_the_one_that_was_kept(tmp_path: Path, drawn: bool) -> None:
    """Also where the crash came between keeping it and the first draw; whatever is given then."""
    source = SecretRandomness(SystemSource())
    users = opened(tmp_path)
    before = users.begin_greedy(0, [UNIT], WIDE, FIRST, source)
    singletons = before.singletons(source) if drawn else None
    users.ledger.close()
    users = opened(tmp_path)
    again = users.begin_greedy(0, [UNIT], WIDE, OTHER, source)
    np.testing.assert_array_equal(again.factors, FIRST.factors)
    assert again.sigmas == before.sigmas
    if singletons is not None:
        np.testing.assert_array_equal(again.singletons(source), singletons)
    assert len(users.ledger.charges) == 1
    assert [entry.name for entry in users.ledger.drawn] == ["users-000000.focus", "users-000000.singles"][
        : 1 + drawn
    ]
    users.ledger.close()


# What it costs.


@settings(deadline=None, max_examples=300)
@given(
    n_items=st.integers(1, 10**6),
    clip=st.sampled_from(CLIPS),
    sigmas=st.tuples(*[st.floats(1e3, 1e12)] * 2),
    parts=st.integers(1, SHARES - 1),
)
def test_sharing_a_price_out_anew_costs_no_more_and_wastes_next_to_nothing(
    n_items: int, clip: Clip, sigmas: tuple[float, float], parts: int
) -> None:
    shifts, share = squared_shifts(n_items, clip), Fraction(parts, SHARES)
    price, split = cost_of_one(shifts, sigmas), split_deviations(shifts, sigmas, share)
    for sigma, shift, most in zip(split, shifts, (share * price, (1 - share) * price), strict=True):
        cost = Fraction(shift) / Fraction(sigma) ** 2
        assert (1 - Fraction(1, 10**12)) * most < cost <= most
    assert (1 - Fraction(1, 10**12)) * price < cost_of_one(shifts, split) <= price


# Doors.


BAD = [
    QueryWeights(np.array([0, 1, 1, 1]), 512),
    QueryWeights(np.array([FULL + 1, 1, 1, 1]), 512),
    QueryWeights(np.array([-1, 1, 1, 1]), 512),
    QueryWeights(np.full(ITEMS - 1, FULL), 512),
    QueryWeights(np.full(ITEMS + 1, FULL), 512),
    QueryWeights(np.full((1, ITEMS), FULL), 512),
    QueryWeights(np.full(ITEMS, 1.0), 512),
    QueryWeights(np.full(ITEMS, np.nan), 512),
    QueryWeights(np.full(ITEMS, FULL), 0),
    QueryWeights(np.full(ITEMS, FULL), SHARES),
    QueryWeights(np.full(ITEMS, FULL), 0.5),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("query_weights", BAD, ids=str)
def test_a_bad_focus_is_refused_before_anything_is_paid(query_weights: QueryWeights) -> None:
    users = stored()
    with pytest.raises(InvalidInput):
        users.begin_greedy(0, [1], WIDE, query_weights, secret())
    with pytest.raises(InvalidInput):
        users.swap(0, [1], WIDE, [0, 1], query_weights, secret())
    assert not users.ledger.charges


@pytest.mark.parametrize("first", ["chain", "around"])
def test_what_was_bought_as_a_chain_is_no_around_and_the_other_way_round(first: str) -> None:
    users = stored()
    begin: dict[str, Callable[[int], Any]] = {
        "chain": lambda number: users.begin_greedy(number, [UNIT], WIDE, full(), secret()),
        "around": lambda number: users.swap(number, [UNIT], WIDE, [0, 1], full(), secret()),
        "longer around": lambda number: users.swap(number, [UNIT], WIDE, [0, 1, 2], full(), secret()),
    }
    begin[first](0)
    others = {"chain": ["around"], "around": ["chain", "longer around"]}[first]
    for other in others:
        with pytest.raises(InvalidInput, match="bought for something else"):
            begin[other](0)
    begin[others[0]](1)
    assert len(users.ledger.charges) == 2
