"""Cells of columns, and counts: all are published, once, and whoever she is she moves no more than was charged."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diminuendo import SystemSource
from diminuendo.errors import InvalidInput
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness import SecretRandomness
from diminuendo.streams.contexts import Contexts
from diminuendo.sums.clip import Clip
from diminuendo.sums.greedy_queries.cells import SharedQueryWeights, checked_shares, deviations
from diminuendo.sums.greedy_queries.cost import UNIT, cost_of_one, shared_deviations, squared_shifts
from diminuendo.sums.greedy_queries.query_weights import FULL, SHARES
from diminuendo.sums.greedy_queries.release import OtherSequence
from diminuendo.sums.private_sum import ROOM
from diminuendo.sums.schedule import Schedule
from diminuendo.types import EMPTY_SLOT
from tests.kit import hostile_contexts as hostile
from tests.kit.hostile_contexts import (
    BUDGET,
    CLIPS,
    SIGMAS,
    Plan,
    Release,
    Version,
    columns_of,
    without_noise,
)
from tests.kit.stored import UsersByHand

ITEMS = 3
KNOWN = Contexts(country=["DE", "FR", "IT"], hour=2)
"""(3 + 1) (2 + 1) = 12 types."""
TICKS = Clip().ticks
NOTHING = KNOWN.type_of(None)


def stored(ledger: Ledger | None = None, contexts: Contexts = KNOWN, **options: object) -> UsersByHand:
    columns = columns_of(contexts)
    made = {"schedule": Schedule((10, 20, 30)), "ledger": ledger or Ledger(BUDGET), "columns": columns}
    return UsersByHand(ITEMS, **(made | options))


def query_weights(
    cells: tuple[int, ...] = (100, 200), counts: tuple[int, ...] = (30, 40)
) -> SharedQueryWeights:
    left = SHARES - sum(cells) - sum(counts)
    return SharedQueryWeights(np.full(ITEMS, FULL), left // 2, left - left // 2, cells, counts)


@pytest.fixture
def secret() -> SecretRandomness:
    return SecretRandomness(SystemSource())


# What is published.


def test_a_user_is_in_one_cell_of_each_column_with_all_that_she_says(secret: SecretRandomness) -> None:
    users = stored()
    users.add([0.5, 0.25], [0, 2], batch=0, kind=KNOWN.type_of({"country": "FR", "hour": 1}))
    users.add([0.5], [1], batch=1, kind=KNOWN.type_of({"country": "IT"}))
    users.add([1.0], [1], batch=1)
    with without_noise():
        chain, cells = users.in_contexts(0, [3, 5], SIGMAS, query_weights(), secret)
        countries, hours = (cells.cells(column, secret) for column in range(2))
        counted = [cells.counts(column, secret) for column in range(2)]
        whole = chain.singletons(secret)
    assert countries is not None
    assert hours is not None
    half = TICKS // 2
    assert countries.tolist() == [[0, 0, 0], [3 * half, 0, 3 * half // 2], [0, 5 * half, 0]]
    assert hours.tolist() == [[0, 0, 0], [3 * half, 0, 3 * half // 2]]
    assert whole.tolist() == [3 * half, 5 * half + 5 * TICKS, 3 * half // 2], "everybody is in the whole"
    assert [None if part is None else part.tolist() for part in counted] == [
        [0, 3 * TICKS, 5 * TICKS],
        [0, 3 * TICKS],
    ], "in units of the bound, and who is not known is in none"


def test_cells_that_nobody_is_in_are_published_too(secret: SecretRandomness) -> None:
    _, cells = stored().in_contexts(0, [1], SIGMAS, query_weights(), secret)
    for column, size in enumerate(KNOWN.sizes):
        result, counted = cells.cells(column, secret), cells.counts(column, secret)
        assert result is not None
        assert counted is not None
        assert result.shape == (size, ITEMS)
        assert (result != 0).all(), "noise of 10^9 is hardly ever 0"
        assert (counted != 0).all()


def test_what_has_no_share_is_not_published(secret: SecretRandomness) -> None:
    _, cells = stored().in_contexts(0, [1], SIGMAS, query_weights((0, 200), (0, 0)), secret)
    assert cells.cells(0, secret) is None
    assert cells.counts(0, secret) is None
    assert cells.cells(1, secret) is not None
    chain, _ = stored().in_contexts(0, [1], SIGMAS, query_weights()._replace(singletons=0), secret)
    with pytest.raises(InvalidInput):
        chain.singletons(secret)


def test_users_of_each_type_have_a_chain_and_a_question_is_published_once(secret: SecretRandomness) -> None:
    """Types that part and come to the same set again are one question afterwards; who has no item is not asked."""
    one = Contexts(group=3)
    users = stored(contexts=one)
    for kind in range(4):
        users.add([0.25, 0.5, 0.125], batch=0, kind=kind)
    with without_noise():
        chain, _ = users.in_contexts(0, [1], SIGMAS, query_weights((50,), (0,)), secret)
        chain.singletons(secret)
        nothing = np.zeros(4 * ITEMS)
        keep = np.tile([0.25, 0.5, 0.125], 4)
        first = chain.losses_by_type(np.array([0, 0, 1, EMPTY_SLOT]), keep, secret)
        assert chain.joined[0].questions.tolist() == [0, 0, 1, -1]
        assert first.tolist() == [[2 * TICKS // 4, 0, 0], [0, TICKS // 2, 0]], "the item itself is lost"
        second = chain.losses_by_type(np.array([1, 1, 0, EMPTY_SLOT]), keep, secret)
        assert chain.joined[1].questions.tolist() == [0, 0, 1, -1], "the same set and another item are two"
        assert second.tolist() == [[0, 2 * TICKS // 2, 0], [TICKS // 4, 0, 0]]
        third = chain.losses_by_type(np.array([2, 2, 2, EMPTY_SLOT]), nothing, secret)
        assert chain.joined[2].questions.tolist() == [0, 0, 0, -1], "one set now"
        assert third.tolist() == [[0, 0, 3 * TICKS // 8]]
        whose, many = chain.sets.of_type, len(chain.sets.sets)
        assert (whose.tolist(), many) == ([0, 0, 0, 1], 2)
        assert chain.residual_by_type(secret).tolist() == [[0, 0, 0], [TICKS // 4, TICKS // 2, TICKS // 8]]


# What it costs.

shares = st.lists(st.integers(0, SHARES), min_size=6, max_size=6)


@settings(deadline=None, max_examples=300)
@given(shares, st.sampled_from(CLIPS), st.integers(1, 4), st.integers(1, 4), st.integers(1, 9))
def test_the_parts_never_cost_more_than_the_release(
    parts: list[int], clip: Clip, items: int, size: int, slots: int
) -> None:
    """In fractions, whatever the shares are; what is over is refused."""
    singletons, others, one, two, here, there = parts
    result = SharedQueryWeights(np.full(items, FULL), singletons, others, (one, two), (here, there))
    if sum(parts) > SHARES or others == 0:
        with pytest.raises(InvalidInput, match="add up"):
            checked_shares(result, items, 2)
        return
    checked_shares(result, items, 2)
    cost = cost_of_one(squared_shifts(items, clip), SIGMAS)
    swap = clip.sensitivity_squared((slots + 1) * items)
    most = min(clip.limit**2, items * clip.largest**2)
    for shift in (squared_shifts(items, clip)[1], swap):
        apart = deviations(result, cost, clip, [size, 2], shift)
        shifts = {
            "singletons": [min(2 * clip.limit**2, items * clip.largest**2)],
            "others": [shift],
            "cells": [min(2 * most, items * values * clip.largest**2) for values in (size, 2)],
            "counts": [2 * clip.limit**2] * 2,
        }
        spent = Fraction(0)
        for part, moved in shifts.items():
            given_ = getattr(apart, part)
            for sigma, square in zip(given_ if isinstance(given_, tuple) else [given_], moved, strict=True):
                spent += 0 if np.isinf(sigma) else square / Fraction(sigma) ** 2
        assert spent <= cost
        if clip.limit == clip.largest:  # else what a column can move is bounded with room to spare
            assert spent >= Fraction(sum(parts), SHARES) * cost * (1 - Fraction(1, 10**9)), "all is used"


def test_shares_that_are_too_much_are_refused_by_their_sum() -> None:
    with pytest.raises(InvalidInput, match="at most 1"):
        shared_deviations(Fraction(1), [(Fraction(2, 3), 1), (Fraction(1, 2), 1)])
    with pytest.raises(InvalidInput, match="not negative"):
        shared_deviations(Fraction(1), [(Fraction(3, 2), 1), (Fraction(-1, 2), 1)])
    with pytest.raises(InvalidInput, match="each of 2 columns"):
        checked_shares(query_weights((1,), (1,)), ITEMS, 2)
    with pytest.raises(InvalidInput, match="add up"):
        checked_shares(query_weights()._replace(singletons=0.5), ITEMS, 2)  # type: ignore[arg-type]


def test_the_charge_is_that_of_a_release_without_contexts(secret: SecretRandomness) -> None:
    plain = UsersByHand(ITEMS, schedule=Schedule((10, 20, 30)), ledger=Ledger(BUDGET))
    plain.release(0, [3, UNIT], SIGMAS)
    one, other = stored(), stored()
    one.in_contexts(0, [3, UNIT], SIGMAS, query_weights(), secret)
    other.swap_in_contexts(0, [3, UNIT], SIGMAS, [0, 2], query_weights()._replace(singletons=0), secret)
    costs = [users.ledger.cost_of("users-000000") for users in (plain, one, other)]
    assert costs[0] == costs[1] == costs[2]


# What users can move.


def one_item(kind: int, item: int, gain: float) -> Version:
    values = tuple(float(each == item) for each in range(2))
    return Version(kind, values, (np.full((3, 2), gain),), (True, True, True), 0)


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("private", [False, True])
def test_two_users_can_move_all_that_is_charged(private: bool, swap: bool) -> None:
    """The price is not idle: another item, and where contexts are private another value of the column."""
    contexts = Contexts(group=2, private=private)
    left, counts = SHARES - 300 - 100 * private, 100 * private
    singletons = 0 if swap else left // 3
    given_ = SharedQueryWeights(np.full(2, FULL), singletons, left - singletons, (300,), (counts,))
    asks = ((), (0,)) if swap else (((0, 0, 1),), None)
    plan = Plan(2, contexts, Clip(), 0, (Release((UNIT,), given_, *asks),))
    one, other = one_item(1, 0, float(swap)), one_item(2 if private else 1, 1, 1.0)
    with without_noise():
        result = hostile.ratio(*(hostile.published(plan, her) for her in (one, other)))
    assert 1 - 1e-9 < result <= 1


PAIRS = 300


@pytest.mark.parametrize(
    ("private", "plans", "tries"),
    [
        (False, 10, PAIRS // 20),
        (True, 10, PAIRS // 20),
        pytest.param(False, 330, 60, marks=pytest.mark.slow),
        pytest.param(True, 330, 60, marks=pytest.mark.slow),
    ],
)
def test_hostile_pairs_move_no_more_than_was_charged(private: bool, plans: int, tries: int) -> None:
    random = np.random.default_rng(2100 + private)
    with without_noise():
        result = [hostile.climb(random, tries, private=private) for _ in range(plans)]
    assert max(result) <= 1
    assert max(result) > 0.9, "or the climb found nothing"


def test_who_is_asked_along_two_chains_would_move_more() -> None:
    """The harness sees it: everybody's chain beside that of her type, both under one charge."""
    contexts = Contexts(group=2, private=True)
    given_ = SharedQueryWeights(np.full(2, FULL), 1, SHARES - 1, (0,), (0,))
    chain = Release((UNIT,), given_, ((0, 0, 1),), None)
    plan = Plan(2, contexts, Clip(), 0, (chain,))
    both = one_item(1, 0, 0.0), one_item(2, 1, 0.0)
    with without_noise():
        said = [hostile.published(plan, her) for her in both]
        common = replace(plan, releases=(replace(chain, steps=((0,) * 3, (1,) * 3)),))
        again = [hostile.published(common, her) for her in both]
        two = [(mine[0] + theirs[0][1:], mine[1]) for mine, theirs in zip(said, again, strict=True)]
    assert hostile.ratio(*said) <= 1
    assert hostile.ratio(two[0], two[1]) > 1.9


# A crash.


def test_what_was_drawn_is_not_drawn_again(tmp_path: Path, secret: SecretRandomness) -> None:
    result = []
    for incarnation in range(2):  # other users, another focus: what was kept is what counts
        with Ledger.open(tmp_path / "people.ledger", BUDGET) as ledger:
            users = stored(ledger)
            if incarnation:
                users.add([1.0, 1.0, 1.0], batch=0, kind=5)
            given_ = query_weights() if incarnation == 0 else query_weights((300, 0), (0, 0))
            chain, cells = users.in_contexts(0, [UNIT], SIGMAS, given_, secret)
            result.append(
                (
                    cells.deviations,
                    cells.cells(0, secret),
                    cells.counts(1, secret),
                    chain.singletons(secret),
                    chain.losses_by_type(np.array([0] * 6 + [1] * 6), np.ones(len(chain.items)), secret),
                )
            )
            if incarnation == 0:
                assert cells.cells(1, secret) is not None
            else:
                assert not chain.goes_on(), "rows that were not drawn before are not drawn now"
                with pytest.raises(InvalidInput, match="interrupted"):
                    chain.residual_by_type(secret)
    one, other = result
    assert one[0] == other[0], "the kept focus decides"
    for mine, theirs in zip(one[1:], other[1:], strict=True):
        assert np.array_equal(mine, theirs)


@pytest.mark.parametrize(
    ("private", "plans"),
    [
        (True, 8),
        pytest.param(False, 100, marks=pytest.mark.slow),
        pytest.param(True, 200, marks=pytest.mark.slow),
    ],
)
def test_hostile_pairs_move_no_more_across_a_crash(private: bool, plans: int) -> None:
    """Who says something else in the next life, and is of another type there."""
    random = np.random.default_rng(77)
    with without_noise():
        result = [hostile.climb_across_a_crash(random, 40, private=private) for _ in range(plans)]
    assert 0.5 < max(result) <= 1


def test_what_was_lost_before_a_crash_is_not_lost_again_after_it() -> None:
    """She loses everything at the first row, and says in the next life that she had lost nothing then."""
    given_ = SharedQueryWeights(np.full(4, FULL), 1, SHARES - 1, (0,), (0,))
    asks = Release((UNIT,), given_, ((1, 1, 2), (3, 3, 3)), None)
    plan = Plan(4, Contexts(group=2, private=True), Clip(), 0, (asks,))
    worlds = [
        [Version(kind, (1.0, 0.0, 0.0, 0.0), (np.full((5, 4), gain),), (True,) * 5, 0) for gain in (0.0, 1.0)]
        for kind in (1, 2)
    ]
    with without_noise():
        result = [
            hostile.ratio(*(hostile.across_a_crash(plan, incarnations, seed) for incarnations in worlds))
            for seed in range(40)
        ]
    assert 0.99 < max(result) <= 1


def test_after_a_crash_another_chain_of_any_type_is_refused(tmp_path: Path, secret: SecretRandomness) -> None:
    for items in (np.array([0] * 12), np.array([0] * 11 + [1]), np.array([0] * 11 + [EMPTY_SLOT])):
        with Ledger.open(tmp_path / "people.ledger", BUDGET) as ledger:
            chain, _ = stored(ledger).in_contexts(0, [UNIT], SIGMAS, query_weights(), secret)
            chain.singletons(secret)
            if (items == 0).all():
                chain.losses_by_type(items, [], secret)
            else:
                with pytest.raises(OtherSequence):
                    chain.losses_by_type(items, [], secret)


def test_what_was_bought_with_other_columns_or_as_an_around_is_refused(
    tmp_path: Path, secret: SecretRandomness
) -> None:
    with Ledger.open(tmp_path / "people.ledger", BUDGET) as ledger:
        stored(ledger).in_contexts(0, [UNIT], SIGMAS, query_weights(), secret)
    with Ledger.open(tmp_path / "people.ledger", BUDGET) as ledger:
        users = stored(ledger)
        with pytest.raises(InvalidInput, match="something else"):
            users.swap_in_contexts(0, [UNIT], SIGMAS, [0, 1], query_weights()._replace(singletons=0), secret)
    with Ledger.open(tmp_path / "people.ledger", BUDGET) as ledger:
        users = stored(ledger, Contexts(country=["DE", "FR"]))
        with pytest.raises(InvalidInput, match="something else"):
            users.in_contexts(0, [UNIT], SIGMAS, query_weights((100,), (30,)), secret)


def test_who_is_kept_has_their_type_after_others_are_forgotten(secret: SecretRandomness) -> None:
    users = stored()
    for batch, kind in ((0, 11), (1, 4), (1, 7)):
        users.add([1.0], [batch], batch=batch, kind=kind)
    users.forget(1)
    with without_noise():
        _, cells = users.in_contexts(1, [1, 1], SIGMAS, query_weights(), secret)
        counted = cells.counts(0, secret)
    values = KNOWN.values_of(np.array([4, 7]))[:, 0]
    assert counted is not None
    assert counted.tolist() == [TICKS * int((values == value).sum()) for value in range(3)]


def test_with_contexts_users_could_overflow_sooner() -> None:
    wide = Clip(bound=64.0)
    most = ROOM // (wide.largest * UNIT)
    assert UsersByHand(1, schedule=Schedule((most,)), ledger=Ledger(BUDGET), clip=wide).n_types == 1
    with pytest.raises(InvalidInput, match="overflow"):  # counts are in units of the whole bound
        stored(schedule=Schedule((most,)), clip=wide)
