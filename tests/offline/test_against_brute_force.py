"""Totals, greedy, bounds and the exact solvers against all slates of a few items."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import diminuendo as dim
from diminuendo.errors import InvalidInput
from diminuendo.offline import exact
from diminuendo.offline.total import Total, UsersTotal, total
from diminuendo.types import Floats, Slate
from tests.kit import brute, examples
from tests.kit.brute import KINDS, Crowd, Leaf, Set, crowds, tossed_crowds
from tests.kit.families import QUICK
from tests.kit.slow import mostly_slow

EVERY_KIND = pytest.mark.parametrize("kind", mostly_slow(KINDS, set(KINDS) - {"nested"}))
"""Mixtures of mixtures wait for the slow suite: a type of their own, for which all is compiled again."""
SOME_KINDS = pytest.mark.parametrize("kind", mostly_slow(KINDS, QUICK))
"""Kernels are compiled for each kind, which takes longer than the test: two in every run."""

SEARCH_ROUNDING = 1e-12
"""`optimum` calls two means equal that differ by less; `branch` may stop that far from the best."""

PROVEN_WITHIN = 2e-6
"""Bounds that are this close count as proven: twice the 1e-6 by which the solver may violate a constraint."""

TIME_LIMIT = 60.0
"""Seconds. Six items take milliseconds, a family's first call some seconds to compile; more has lost its way."""


def assert_close(got: float, exact: Fraction, rounding: float, what: object) -> None:
    assert math.isfinite(got), f"{what}: got {got!r}"
    assert abs(Fraction(got) - exact) <= rounding, f"{what}: got {got!r}, by definition {float(exact)!r}"


def assert_total_follows(summed: Total, crowd: Crowd, prefix: list[int]) -> None:
    """Value and gains of the sum over users, given the prefix that `summed` should have by now."""
    assert_close(summed.value(), crowd.total(prefix), crowd.rounding, prefix)
    exact = brute.gains(crowd.total, prefix, crowd.n_items)
    got = summed.gains()
    assert got.shape == (crowd.n_items,)
    assert (got[prefix] == 0).all()
    for item in range(crowd.n_items):
        assert_close(float(got[item]), exact[item], crowd.rounding, (prefix, item))


@SOME_KINDS
@examples(20)
@given(data=st.data())
def test_totals_are_sums_along_any_prefix(kind: str, data: st.DataObject) -> None:
    crowd: Crowd = data.draw(crowds(kind))
    for summed in (total(crowd.users()), total(functions(crowd))):
        for _ in range(2):  # the second time from the beginning again
            summed.begin()
            order = data.draw(st.permutations(range(crowd.n_items)))
            for depth in range(crowd.n_items + 1):
                assert_total_follows(summed, crowd, order[:depth])
                if depth < crowd.n_items:
                    summed.add(order[depth])


@SOME_KINDS
@examples(40)
@given(data=st.data())
def test_greedy_without_rounding_is_greedy_with_ties_to_the_smaller_item(
    kind: str, data: st.DataObject
) -> None:
    crowd: Crowd = data.draw(crowds(kind, rounding=False))
    slots = data.draw(st.integers(1, crowd.n_items))
    expected = brute.greedy(crowd.total, crowd.n_items, slots)
    for stream in (crowd.users(), functions(crowd)):
        assert dim.greedy(stream, slots).slate == expected


@SOME_KINDS
@examples(30)
@given(data=st.data())
def test_greedy_on_any_numbers(kind: str, data: st.DataObject) -> None:
    """Choices that are clearly best must be made; among those that rounding may confuse, any is right."""
    crowd: Crowd = data.draw(crowds(kind))
    slots = data.draw(st.integers(1, crowd.n_items))
    clear = brute.greedy_margin(crowd.total, crowd.n_items, slots) > 4 * crowd.rounding
    expected = brute.greedy(crowd.total, crowd.n_items, slots)
    for stream in (crowd.users(), functions(crowd)):
        result = dim.greedy(stream, slots)
        assert_is_a_slate_of(crowd, result, slots)
        assert brute.greedy_shortfall(crowd.total, crowd.n_items, result.slate) <= 4 * crowd.rounding
        if clear:
            assert result.slate == expected


@SOME_KINDS
@examples(25)
@given(data=st.data())
def test_data_bound_is_the_smallest_bound_along_the_chain(kind: str, data: st.DataObject) -> None:
    crowd: Crowd = data.draw(crowds(kind))
    slots = data.draw(st.integers(1, crowd.n_items))
    chain = tuple(data.draw(st.permutations(range(crowd.n_items))))
    chain = chain[: data.draw(st.integers(0, crowd.n_items))]
    best = brute.best_value(crowd.mean, crowd.n_items, slots)
    exact = brute.bound(crowd.mean, crowd.n_items, chain, slots)
    assert exact >= best - Fraction(crowd.rounding)  # 60 digits are not all
    rounding = (1 + slots) * crowd.rounding  # a total and as many gains as there are slots
    for stream in (crowd.users(), functions(crowd)):
        got = dim.data_bound(stream, chain, slots)
        assert_close(got, exact, rounding, chain)
        assert got >= best - Fraction(rounding)


@SOME_KINDS
@examples(25)
@given(data=st.data())
def test_optimum_is_the_best_of_all_slates(kind: str, data: st.DataObject) -> None:
    crowd: Crowd = data.draw(crowds(kind))
    slots = data.draw(st.integers(1, crowd.n_items))
    for method in ("milp", "branch"):
        result = dim.optimum(crowd.users(), slots, method=method, time_limit=TIME_LIMIT)
        assert result.method == method
        assert_brackets_the_best(crowd, slots, result)
    assert dim.optimum(crowd.users(), slots).method == "branch"  # few slates: look at them all


@SOME_KINDS
@examples(15)
@given(data=st.data())
def test_optimum_of_functions_is_the_best_of_all_slates(kind: str, data: st.DataObject) -> None:
    crowd: Crowd = data.draw(crowds(kind, n_items=(1, 5), most_users=3))
    slots = data.draw(st.integers(1, crowd.n_items))
    stream = functions(crowd)
    for method in ("branch", "auto"):
        result = dim.optimum(stream, slots, method=method, time_limit=TIME_LIMIT)
        assert result.method == "branch"
        assert_brackets_the_best(crowd, slots, result)


def test_milp_needs_users() -> None:
    """Unless greedy and the data already agree, when there is nothing left to solve."""
    tangled = dim.Functions(
        [lambda items: len({(a + shift) % 4 for a in items for shift in (0, 1)}) / 4], n_items=4
    )
    assert dim.optimum(tangled, 2, method="branch").lower == 1.0
    pairs = ({0, 1, 2}, {0, 3}, {1, 4}, {2, 5})  # greedy takes the first; the others together are better
    cover = dim.Functions([lambda items: len(set().union(*(pairs[a] for a in items))) / 6], n_items=4)
    with pytest.raises(InvalidInput, match="branch"):
        dim.optimum(cover, 3, method="milp")


@SOME_KINDS
def test_optimum_where_greedy_is_misled(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Greedy and its bound often settle small cases; here the searches have to work, each by itself."""
    branched: list[str] = []
    run = exact._Branch.run

    def counted(self: exact._Branch, lower: float, upper: float, slate: Slate) -> tuple[float, float, Slate]:
        branched.append(method)
        return run(self, lower, upper, slate)

    monkeypatch.setattr(exact._Branch, "run", counted)
    searched, misled = 0, 0
    for crowd in itertools.islice(tossed_crowds(kind), 16):
        for slots in (2, 3):
            for method in ("milp", "branch"):
                result = dim.optimum(crowd.users(), slots, method=method, time_limit=TIME_LIMIT)
                assert_brackets_the_best(crowd, slots, result)
            chain = brute.greedy(crowd.mean, crowd.n_items, slots)
            best = brute.best_value(crowd.mean, crowd.n_items, slots)
            searched += brute.bound(crowd.mean, crowd.n_items, chain, slots) > best + Fraction(PROVEN_WITHIN)
            misled += crowd.mean(chain) < best - Fraction(PROVEN_WITHIN)
    assert searched >= 10
    assert misled >= 2
    assert branched.count("branch") >= searched
    assert branched.count("milp") <= 1  # where the solver gives up, which it should not make a habit of


@pytest.mark.parametrize("tiny", [1e-4, 1e-12, 1e-30, 1e-100, 5e-324])
def test_optimum_with_weights_of_very_different_size(tiny: float) -> None:
    """Square roots are steep near 0, so that tangents there have slopes no solver likes."""
    steep = (
        crowd for crowd in tossed_crowds("concave", tiny=tiny) if crowd.family == dim.Concave("sqrt", 1.0)
    )
    for crowd in itertools.islice(steep, 12):
        result = dim.optimum(crowd.users(), 2, method="milp", time_limit=TIME_LIMIT)
        assert_brackets_the_best(crowd, 2, result)


SQUARE_ROOTS: dict[str, tuple[int, list[dict[int, float]]]] = {
    "the relaxation returns x slightly below 0": (
        6,
        [
            {0: 0.4, 2: 0.8, 4: 0.3},
            {4: 0.3},
            {4: 0.7},
            {2: 0.6},
            {3: 0.1},
            {},
            {},
            {},
            {5: 0.9},
            {1: 0.7, 3: 0.8},
            {0: 0.7, 1: 0.4, 2: 0.4},
            {1: 0.8, 2: 0.6, 4: 0.5},
            {0: 0.2},
        ],
    ),
    "steep enough to mislead the solver": (
        4,
        [{0: 1e-30, 1: 1e-30, 2: 1.0, 3: 1e-30}, {1: 0.4}, {0: 0.6, 2: 0.1}, {0: 0.5, 1: 0.7}],
    ),
    "too small to multiply": (
        5,
        [
            {1: 0.1, 2: 0.9, 4: 0.3},
            {0: 0.8, 1: 0.2},
            {3: 0.7, 4: 0.6},
            {0: 0.3, 1: 0.6, 3: 0.5},
            {4: 5e-324},
        ],
    ),
}
"""Number of items, and weights of users, for which two items are to be found."""


@pytest.mark.parametrize("name", SQUARE_ROOTS)
def test_optimum_of_square_roots(name: str) -> None:
    n_items, weights = SQUARE_ROOTS[name]
    rows = tuple(tuple(row.get(item, 0.0) for item in range(n_items)) for row in weights)
    leaf = Leaf(Fraction(1), partial(brute.concave, "sqrt", 1.0), rows)
    crowd = Crowd(dim.Concave("sqrt"), n_items, (leaf,), "dense")
    for method in ("milp", "branch"):
        result = dim.optimum(crowd.users(), 2, method=method, time_limit=TIME_LIMIT)
        assert_brackets_the_best(crowd, 2, result)


def test_rounding_on_the_way_decides_no_tie() -> None:
    """Tenths are never exact: sums that were taken along differ in their last digits from sums made anew."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        users = dim.Users(dim.BestMatch(), rng.integers(0, 8, (40, 6)) / 10)
        summed, added = UsersTotal(users), list[float]()
        for _ in range(6):  # every item is evaluated anew in every step
            gains = summed.gains()
            gains[summed.prefix] = -np.inf
            added.append(float(gains.max()) / 40)
            summed.add(int(gains.argmax()))
        assert dim.greedy(users, 6) == dim.offline.Hindsight(
            tuple(summed.prefix), summed.value() / 40, tuple(added)
        )


@SOME_KINDS
@examples(30)
@given(data=st.data())
def test_gains_go_along_with_the_prefix(kind: str, data: st.DataObject) -> None:
    crowd: Crowd = data.draw(crowds(kind))
    summed, along = UsersTotal(crowd.users()), UsersTotal(crowd.users())
    gains, prefix = along.gains(), list[int]()
    for item in data.draw(st.permutations(range(crowd.n_items))):
        before = crowd.total(prefix)
        prefix.append(item)
        summed.add(item)
        assert_close(along.move(item, gains), crowd.total(prefix) - before, 2 * crowd.rounding, prefix)
        gains[prefix] = 0.0
        np.testing.assert_allclose(gains, summed.gains(), rtol=0, atol=2 * len(prefix) * crowd.rounding)


@EVERY_KIND
@examples(20)
@given(data=st.data())
def test_ceilings_lie_above_every_set_and_touch_their_own(kind: str, data: st.DataObject) -> None:
    crowd: Crowd = data.draw(crowds(kind))
    n_items, summed = crowd.n_items, UsersTotal(crowd.users())
    points = [np.array(data.draw(st.tuples(*[brute.numbers] * n_items))) for _ in range(4)]
    points.append(np.full(n_items, data.draw(st.integers(1, n_items)) / n_items))
    for x in points:
        assert_is_a_ceiling(crowd, *summed.ceiling(x), x)
    for items in brute.subsets(n_items):
        x = indicator(items, n_items)
        height, slope = summed.ceiling(x)
        assert_is_a_ceiling(crowd, height, slope, x)
        assert_close(height + float(slope @ x), crowd.total(items), 2 * crowd.rounding, ("touches", items))


@EVERY_KIND
def test_ceilings_at_what_solvers_return(kind: str) -> None:
    """Amid crowds without extremes, and at points that are in [0, 1] only up to a tolerance."""
    for seed, crowd in enumerate(itertools.islice(tossed_crowds(kind, n_items=5, n_users=3), 8)):
        rng, summed = np.random.default_rng(seed), UsersTotal(crowd.users())
        for slack in (0.0, 1e-17, 1e-12):
            x = np.where(rng.random(5) < 0.5, rng.random(5), rng.choice([-slack, 1 + slack], 5))
            height, slope = summed.ceiling(x)
            assert_is_a_ceiling(crowd, height, slope, x, slack=5 * slack * len(crowd))


@pytest.mark.parametrize("curve", brute.CURVES)
@pytest.mark.parametrize("tiny", [1e-30, 1e-300, 5e-324])
def test_ceilings_over_weights_of_very_different_size(curve: str, tiny: float) -> None:
    rows = ((tiny, 0.0, 0.25), (tiny, tiny, 1.0))
    leaf = Leaf(Fraction(1), partial(brute.concave, curve, 1.0), rows)
    crowd = Crowd(dim.Concave(curve), 3, (leaf,), "dense")
    for level in (1.0, 0.5, 0.3, 1e-30, 5e-324, -5e-324, -1e-17):
        for x in ([level, 0.0, 0.0], [level, level, 0.0], [0.0, level, level]):
            assert_is_a_ceiling(crowd, *UsersTotal(crowd.users()).ceiling(np.array(x)), x)


def functions(crowd: Crowd) -> dim.Functions:
    """The crowd as a stream of Python functions."""

    def function(user: int) -> Callable[[Set], float]:
        return lambda items: float(crowd.value(user, items))

    return dim.Functions([function(t) for t in range(len(crowd))], crowd.n_items)


def indicator(items: tuple[int, ...], n_items: int) -> Floats:
    """The corner of [0, 1]^n that stands for a set."""
    x = np.zeros(n_items)
    x[list(items)] = 1.0
    return x


def assert_is_a_ceiling(crowd: Crowd, height: float, slope: Floats, x: object, slack: float = 0.0) -> None:
    """F(S) <= height + the slopes of S, for every set S, with no slope steeper than the item is worth alone."""
    assert math.isfinite(height)
    for item in range(crowd.n_items):
        assert -slack <= slope[item], (x, item)
        assert slope[item] <= float(crowd.total([item])) + crowd.rounding, (x, item)
    for items in brute.subsets(crowd.n_items):
        above = height + float(slope[list(items)].sum())  # either may be off by rounding
        assert above >= crowd.total(items) - Fraction(2 * crowd.rounding + slack), (x, items)


def assert_is_a_slate_of(crowd: Crowd, result: dim.offline.Hindsight, slots: int) -> None:
    """Distinct items, and the truth about their worth and about what each of them added."""
    assert len(result.slate) == len(set(result.slate)) == len(result.gains) == slots
    assert set(result.slate) <= set(range(crowd.n_items))
    assert_close(result.value, crowd.mean(result.slate), crowd.rounding, result.slate)
    for depth, gain in enumerate(result.gains):
        added = crowd.mean(result.slate[: depth + 1]) - crowd.mean(result.slate[:depth])
        assert_close(gain, added, crowd.rounding, result.slate[: depth + 1])


def assert_brackets_the_best(crowd: Crowd, slots: int, result: dim.offline.Bracket) -> None:
    """The slate is worth `lower`, no slate is worth more than `upper`, and the two meet."""
    rounding = SEARCH_ROUNDING + crowd.rounding
    best = brute.best_value(crowd.mean, crowd.n_items, slots)
    assert len(set(result.slate)) == len(result.slate) == slots
    assert set(result.slate) <= set(range(crowd.n_items))
    assert_close(result.lower, crowd.mean(result.slate), crowd.rounding, result.slate)
    assert Fraction(result.lower) <= best + Fraction(rounding)
    assert Fraction(result.upper) >= best - Fraction(rounding)
    assert result.lower <= result.upper
    assert result.proven
    assert_close(result.lower, best, PROVEN_WITHIN + rounding, "lower")
    assert_close(result.upper, best, PROVEN_WITHIN + rounding, "upper")
    if result.method == "branch":
        assert_close(result.lower, best, rounding, "branch searches to the end")
