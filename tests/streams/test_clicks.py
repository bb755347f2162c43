"""Users click as streams/clicks.py says: by exact laws, with luck that is theirs and nobody else's."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from diminuendo import Functions, Users
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.contribution_bound import silenced
from diminuendo.learners.base.decisions import shown
from diminuendo.objectives import FAMILIES
from diminuendo.streams import taste_groups
from diminuendo.streams.clicks import MODELS, NO_CLICK, click_words_of, mixed, uniform
from diminuendo.types import EMPTY_SLOT, Floats, Items
from tests.kit.brute import KINDS, Crowd, tossed_crowds
from tests.kit.families import QUICK
from tests.kit.slow import mostly_slow
from tests.kit.statistics import ALPHA, assert_follows, assert_rejects

COPIES = 20_000
"""How often one user comes. The chi-square test then tells laws apart that differ by DISTANCE in total variation:
its statistic is at least 4 * COPIES * DISTANCE^2 = 200 above its degrees of freedom, and ALPHA is at 31."""
DISTANCE = 0.05
SLOTS = 3
CROWD = taste_groups(COPIES, 12, groups=4, items_per_group=5, seed=1)


# Laws by definition: the chance of each slot, and last of no click at all.


def cascade(crowd: Crowd, slate: tuple[int, ...]) -> list[Fraction]:
    within = [crowd.value(0, slate[:i]) for i in range(len(slate) + 1)]
    return [*(after - before for before, after in itertools.pairwise(within)), 1 - within[-1]]


def independent(crowd: Crowd, slate: tuple[int, ...]) -> list[Fraction]:
    law, nobody = [], Fraction(1)
    for item in slate:
        law.append(nobody * crowd.value(0, (item,)))
        nobody *= 1 - crowd.value(0, (item,))
    return [*law, nobody]


def by_itself(crowd: Crowd, slate: tuple[int, ...]) -> list[Fraction]:
    """Wrong: a slot is clicked for what its item is worth, as far as there is room, whatever stands before it."""
    law, left = [], Fraction(1)
    for item in slate:
        law.append(min(left, crowd.value(0, (item,))))
        left -= law[-1]
    return [*law, left]


LAWS = {"cascade": cascade, "independent": independent}


def distance(one: list[Fraction], other: list[Fraction]) -> Fraction:
    return sum((abs(p - q) for p, q in zip(one, other, strict=True)), start=Fraction(0)) / 2


def numbers(law: list[Fraction]) -> Floats:
    return np.array([float(chance) for chance in law])


def telling_case(kind: str, model: str) -> tuple[Crowd, tuple[int, ...], list[list[Fraction]]]:
    """The first user and slate for whom wrong laws are far enough from the right one to be told apart."""
    for crowd in itertools.islice(tossed_crowds(kind, n_users=1), 50):
        for slate in itertools.permutations(range(crowd.n_items), SLOTS):
            right = LAWS[model](crowd, slate)
            wrong = [by_itself(crowd, slate)]
            if kind != "noisy-or":  # for whom both models are one
                wrong += [law(crowd, slate) for name, law in LAWS.items() if name != model]
            if all(distance(right, law) > DISTANCE for law in wrong):
                return crowd, slate, wrong
    raise AssertionError("nobody can tell these laws apart")


def repeated(crowd: Crowd) -> Users:
    """The one user of the crowd, again and again."""
    return crowd.users()[np.zeros(COPIES, dtype=np.int64)]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", mostly_slow(KINDS, QUICK))
def test_clicks_follow_their_law(kind: str, model: str) -> None:
    crowd, slate, wrong = telling_case(kind, model)
    users = repeated(crowd).clicking(model, seed=9)
    row = [slate[0], EMPTY_SLOT, *slate[1:]]  # empty slots have no position
    result = users.first_clicks(np.tile(np.array(row, dtype=np.int32), (COPIES, 1)))
    places = np.where(result == NO_CLICK, SLOTS, result)
    assert_follows(places, numbers(LAWS[model](crowd, slate)))
    for law in wrong:
        assert_rejects(places, numbers(law))


def test_for_noisy_or_both_models_are_one_law() -> None:
    crowd = next(tossed_crowds("noisy-or", n_users=1))
    for slate in itertools.permutations(range(crowd.n_items), SLOTS):
        assert cascade(crowd, slate) == independent(crowd, slate)


def test_a_cascade_clicks_within_the_first_slots_as_often_as_they_are_worth() -> None:
    """Over users who all differ: how many do, against the sum of f(S_i), in normal deviations."""
    far = stats.norm.isf(ALPHA / 2)
    slate = np.array([0, 3, 7, 1], dtype=np.int32)
    result = CROWD.first_clicks(np.tile(slate, (len(CROWD), 1)))
    clicked = result != NO_CLICK
    alone = np.cumsum([CROWD.values([item]) for item in slate], axis=0)
    for i in range(1, len(slate) + 1):
        chances = CROWD.values(slate[:i])
        deviation = math.sqrt((chances * (1 - chances)).sum())
        within = (clicked & (result < i)).sum()
        assert abs(within - chances.sum()) < far * deviation
        if i > 1:
            assert abs(within - np.minimum(alone[i - 1], 1).sum()) > far * deviation


def test_whether_a_cascade_clicks_at_all_does_not_depend_on_the_order() -> None:
    rows = np.array(list(itertools.permutations([2, 5, 9])), dtype=np.int32)
    result = [CROWD.first_clicks(np.tile(row, (len(CROWD), 1))) != NO_CLICK for row in rows]
    for other in result[1:]:
        np.testing.assert_array_equal(other, result[0])
    assert result[0].any()
    assert not result[0].all()


def test_items_attract_independently_of_each_other_and_of_what_else_is_shown() -> None:
    crowd = next(tossed_crowds("noisy-or", n_users=1))
    one, other = sorted(range(crowd.n_items), key=lambda item: abs(crowd.value(0, [item]) - Fraction(1, 2)))[
        :2
    ]
    users = repeated(crowd).clicking("independent", seed=4)

    def clicks(*slate: int) -> Items:
        return users.first_clicks(np.tile(np.array(slate, dtype=np.int32), (COPIES, 1))).astype(np.int32)

    first, second = clicks(one) == 0, clicks(other) == 0
    np.testing.assert_array_equal(clicks(one, other), np.where(first, 0, np.where(second, 1, NO_CLICK)))
    p, q = (float(crowd.value(0, [item])) for item in (one, other))
    both = 2 * first + second
    assert_follows(both, np.array([(1 - p) * (1 - q), (1 - p) * q, p * (1 - q), p * q]))
    shared = np.array([1 - max(p, q), max(0.0, q - p), max(0.0, p - q), min(p, q)])
    assert_rejects(both, shared)  # as if one number decided both


# The same clicks, however they are asked for.


def some_rows(count: int, n_items: int, seed: int) -> Items:
    """Distinct items, here and there an empty slot."""
    rng = np.random.default_rng(seed)
    rows = np.array([rng.permutation(n_items)[: min(4, n_items)] for _ in range(count)], dtype=np.int32)
    rows[rng.random(rows.shape) < 0.2] = EMPTY_SLOT
    return rows


def one_by_one(users: Users | Functions, rows: Items, first: int = 0) -> list[int]:
    result = [users.click(first + j, shown(row)) for j, row in enumerate(rows)]
    return [NO_CLICK if position is None else position for position in result]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("family", mostly_slow(FAMILIES, QUICK))
def test_compiled_clicks_are_those_one_by_one(family: str, model: str) -> None:
    seen = set()
    for specimen, n_items, matrices in FAMILIES[family].specimens():
        users = Users(specimen, tuple(np.tile(np.asarray(part), (30, 1)) for part in matrices), n_items)
        users = users.clicking(model, seed=3)
        rows = some_rows(len(users), n_items, seed=1)
        result = users.first_clicks(rows)
        assert result.tolist() == one_by_one(users, rows)
        assert users.first_clicks(rows[20:], 20).tolist() == one_by_one(users, rows[20:], 20)
        assert result[20:].tolist() == users.first_clicks(rows[20:], 20).tolist()
        seen |= set(result.tolist())
    assert {NO_CLICK, 0, 1} <= seen


@pytest.mark.parametrize("model", MODELS)
def test_functions_click_as_the_users_they_stand_for(model: str) -> None:
    few = CROWD[:60].clicking(model, seed=2)
    same = Functions([lambda s, t=t: few[t].value(sorted(s)) for t in range(60)], few.n_items)  # type: ignore[misc]
    rows = some_rows(60, few.n_items, seed=8)
    assert one_by_one(same.clicking(model, seed=2), rows) == few.first_clicks(rows).tolist()


# Luck.


def test_words_of_items_are_those_of_splitmix() -> None:
    """The first numbers of the published generator (Steele, Lea & Flood 2014) from seed 0."""
    known = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert [int(mixed(np.uint64(0), item)) for item in range(3)] == known


def test_all_but_eleven_bits_of_luck_decide() -> None:
    words = [0, (1 << 11) - 1, 1 << 11, 1 << 63, (1 << 64) - 1]
    assert [uniform(np.uint64(word)) for word in words] == [0.0, 0.0, 2.0**-53, 0.5, 1 - 2.0**-53]


def test_luck_is_uniform_and_follows_from_the_seed() -> None:
    luck = click_words_of(COPIES, 1)
    np.testing.assert_array_equal(luck[:100], click_words_of(100, 1))  # whoever comes later changes nothing
    assert not np.isin(luck, click_words_of(COPIES, 2)).any()
    law = np.full(64, 1 / 64)
    for bits in (58, 11):  # the highest that decide, and the lowest
        places = (luck >> np.uint64(bits)).astype(np.int64) % 64
        assert_follows(places, law)
        assert_rejects(places, np.linspace(0.8, 1.2, 64) / 64)


@pytest.mark.parametrize("model", MODELS)
def test_luck_goes_with_the_user(model: str) -> None:
    users = CROWD.clicking(model, seed=6)
    rows = some_rows(len(users), users.n_items, seed=2)
    result = users.first_clicks(rows)
    assert (result != CROWD.clicking(model, seed=7).first_clicks(rows)).any()
    some = np.random.default_rng(0).permutation(len(users))[:300]
    for part in (slice(100, 400), slice(None, None, -3), some):
        np.testing.assert_array_equal(users[part].first_clicks(rows[part]), result[part])
    np.testing.assert_array_equal(users[some][::2].first_clicks(rows[some][::2]), result[some][::2])


def test_luck_goes_with_the_user_where_items_are_renamed() -> None:
    users = CROWD.clicking("cascade", seed=6)
    order = np.random.default_rng(1).permutation(users.n_items).astype(np.int32)
    rows = some_rows(len(users), users.n_items, seed=2)
    renamed = np.where(rows == EMPTY_SLOT, EMPTY_SLOT, order[rows])
    np.testing.assert_array_equal(users.permuted(order).first_clicks(renamed), users.first_clicks(rows))
    assert users.clicking("independent").permuted(order).clicks == "independent"


@pytest.mark.parametrize("model", MODELS)
def test_the_silenced_click_nothing_and_the_others_as_before(model: str) -> None:
    users = CROWD.clicking(model, seed=6)
    counts = np.random.default_rng(3).random(len(users)) < 0.7
    rows = some_rows(len(users), users.n_items, seed=2)
    result = users.first_clicks(rows)
    np.testing.assert_array_equal(
        silenced(users, counts).first_clicks(rows), np.where(counts, result, NO_CLICK)
    )


def test_asking_for_other_luck_leaves_users_as_they_were() -> None:
    users = taste_groups(200, 12, groups=4, items_per_group=5, seed=1)
    rows = some_rows(200, 12, seed=2)
    before = users.first_clicks(rows)
    assert (users.clicking("independent", seed=8).first_clicks(rows) != before).any()
    np.testing.assert_array_equal(users.first_clicks(rows), before)
    np.testing.assert_array_equal(users.clicking().first_clicks(rows), before)  # a cascade of seed 0


# At the door.


def test_wrong_models_seeds_and_slates_are_refused() -> None:
    for users in (CROWD, Functions([lambda s: 0.5], 12)):
        with pytest.raises(InvalidInput, match=r"model must be one of 'cascade', 'independent'; got 'top'"):
            users.clicking("top")
        for seed in (-1, 0.5, True, "1"):
            with pytest.raises(InvalidInput, match="seed"):
                users.clicking(seed=seed)  # type: ignore[arg-type]
        with pytest.raises(IndexError):
            users.click(len(users), (0,))
        for slate in ((12,), (0, 0), (-1,)):
            with pytest.raises(InvalidInput, match="slate"):
                users.click(0, slate)
