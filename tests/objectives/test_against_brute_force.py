"""Every family against its definition, and `check` against all pairs of sets."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import diminuendo as dim
from diminuendo.objectives import Oracle, check
from diminuendo.types import Floats, SlateLike
from tests.kit import brute, examples
from tests.kit.brute import KINDS, RELATIVE_ROUNDING, UNDERFLOW, USER_ROUNDING, Crowd, Set, crowds
from tests.kit.slow import mostly_slow

EVERY_KIND = pytest.mark.parametrize("kind", mostly_slow(KINDS, set(KINDS) - {"nested"}))
"""Mixtures of mixtures wait for the slow suite: a type of their own, for which all is compiled again."""
FEW, MANY = 5, 14
"""Items in objectives that are checked on every set, and on random chains."""


def assert_close(got: float, exact: Fraction, rounding: float, what: object) -> None:
    assert abs(Fraction(got) - exact) <= rounding, f"{what}: got {got!r}, by definition {float(exact)!r}"


@EVERY_KIND
@examples(40)
@given(data=st.data())
def test_values_and_gains_of_every_set_follow_the_definition(kind: str, data: st.DataObject) -> None:
    crowd: Crowd = data.draw(crowds(kind))
    user_number = data.draw(st.integers(0, len(crowd) - 1))
    user = crowd.users()[user_number]
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))

    def value(items: Set) -> Fraction:
        return crowd.value(user_number, items)

    for items in brute.subsets(crowd.n_items):
        slate = rng.permutation(
            np.array(items, dtype=np.int64)
        )  # a slate's worth does not depend on its order
        assert_close(user.value(slate), value(frozenset(items)), USER_ROUNDING, slate)
        got = user.gains([int(item) for item in slate])
        assert got.shape == (crowd.n_items,)
        for item, exact in enumerate(brute.gains(value, items, crowd.n_items)):
            assert_close(float(got[item]), exact, USER_ROUNDING, (slate, item))
        assert (got[list(items)] == 0).all()


@EVERY_KIND
@examples(60)
@given(data=st.data())
def test_first_gains_are_right_in_proportion_however_small(kind: str, data: st.DataObject) -> None:
    crowd: Crowd = data.draw(crowds(kind))
    for t, user in enumerate(crowd.users()):
        first = user.gains([])
        for item in range(crowd.n_items):
            exact = crowd.value(t, [item])
            assert_close(float(first[item]), exact, RELATIVE_ROUNDING * float(exact) + UNDERFLOW, item)


@EVERY_KIND
@examples(60)
@given(data=st.data())
def test_values_of_a_stream(kind: str, data: st.DataObject) -> None:
    crowd: Crowd = data.draw(crowds(kind))
    users = crowd.users()
    width = data.draw(st.integers(1, 5))
    slot = st.integers(-1, crowd.n_items - 1)  # -1 is an empty slot, and an item may stand there twice
    one = data.draw(st.tuples(*[slot] * width))
    each = data.draw(st.tuples(*[st.tuples(*[slot] * width)] * len(crowd)))
    for slates in (one, np.array(each, dtype=np.int32), np.array(each), [list(row) for row in each]):
        got = users.values(slates)  # type: ignore[arg-type]  # lists of lists are welcome too
        assert got.shape == (len(crowd),)
        for t in range(len(crowd)):
            slate = one if slates is one else each[t]
            assert_close(float(got[t]), crowd.value(t, set(slate) - {-1}), USER_ROUNDING, slate)
    assert (users.values([]) == 0).all()
    assert (users.values([-1, -1]) == 0).all()


@examples(30)
@given(crowd=crowds("noisy-or"), data=st.data())
def test_values_of_a_stream_of_functions(crowd: Crowd, data: st.DataObject) -> None:
    stream = dim.Functions([_as_function(crowd, t) for t in range(len(crowd))], crowd.n_items)
    shuffled = [data.draw(st.permutations(range(crowd.n_items))) for _ in range(len(crowd))]
    each = [[item if data.draw(st.booleans()) else -1 for item in row] for row in shuffled]
    for slates in (each[0], np.array(each)):
        got = stream.values(slates)
        for t in range(len(crowd)):
            slate = each[0] if slates is each[0] else each[t]
            assert_close(float(got[t]), crowd.value(t, set(slate) - {-1}), USER_ROUNDING, slate)


@EVERY_KIND
@examples(20)
@given(data=st.data())
def test_one_user_alone_feels_as_in_the_stream(kind: str, data: st.DataObject) -> None:
    crowd: Crowd = data.draw(crowds(kind))
    users = crowd.users()
    t = data.draw(st.integers(0, len(crowd) - 1))
    rows = [{a: weight for a, weight in enumerate(leaf.rows[t]) if weight} for leaf in crowd.leaves]
    alone = dim.user(crowd.family, rows[0] if len(rows) == 1 else rows, crowd.n_items)
    for items in brute.subsets(crowd.n_items):
        assert alone.value(items) == users[t].value(items)
        assert (alone.gains(items) == users[t].gains(items)).all()


@EVERY_KIND
@examples(15)
@given(data=st.data())
def test_every_family_keeps_its_promises_on_every_set(kind: str, data: st.DataObject) -> None:
    crowd: Crowd = data.draw(crowds(kind))
    for user in crowd.users():
        assert check(user) is None


@EVERY_KIND
@examples(5)
@given(data=st.data())
def test_every_family_keeps_its_promises_on_random_chains(kind: str, data: st.DataObject) -> None:
    crowd: Crowd = data.draw(crowds(kind, n_items=(13, 16), most_users=2))
    for user in crowd.users():
        assert check(user, tries=60, seed=data.draw(st.integers(0, 99))) is None


class Liar(Oracle):
    """Values as in the function; gains with a falsehood about one item."""

    __slots__ = ("falsehood",)

    def __init__(self, falsehood: float, n_items: int) -> None:
        super().__init__(lambda items: min(1.0, len(items) / 8), n_items)
        self.falsehood = falsehood

    def gains(self, prefix: SlateLike) -> Floats:
        told = super().gains(prefix)
        if 2 not in list(prefix):
            told[2] += self.falsehood
        return told


BROKEN: dict[str, tuple[str, Callable[[Set], float]]] = {
    "never 0": ("empty", lambda items: 0.25 + 0.05 * min(5, len(items))),
    "below 0 at first": ("empty", lambda items: -0.25 if not items else 0.5),
    "nothing is unknown": ("empty", lambda items: 0.5 if items else math.nan),
    "too much": ("range", lambda items: min(1.5, 0.5 * len(items))),
    "a little too much": ("range", lambda items: min(1.0 + 2.0**-30, 0.5 * len(items))),
    "unknown": ("range", lambda items: math.nan if 3 in items else min(1.0, 0.5 * len(items))),
    "unknown in threes": ("range", lambda items: math.nan if len(items) == 3 else len(items) / 20),
    "negative alone": ("range", lambda items: -1.0 if len(items) == 1 else len(items) / 20),
    "negative": ("range", lambda items: -0.01 * len(items)),
    "endless": ("range", lambda items: math.inf if len(items) > 1 else 0.5 * len(items)),
    "too many": (
        "monotone",
        lambda items: len(items) * (20 - 4 * len(items)) / 25 if len(items) < 6 else 0.0,
    ),
    "one item spoils it": ("monotone", lambda items: 0.5 if items and 3 not in items else 0.0),
    "one item spoils it a little": (
        "monotone",
        lambda items: 0.5 - (2.0**-30 if 3 in items and len(items) > 1 else 0.0) if items else 0.0,
    ),
    "ever more": ("submodular", lambda items: (len(items) / 20) ** 2),
    "two belong together": ("submodular", lambda items: 1.0 if {1, 3} <= items else 0.0),
    "slightly more": ("submodular", lambda items: 0.01 * len(items) + (2.0**-30 if len(items) > 2 else 0.0)),
}
"""Functions that break one rule. Some break another one as a consequence; the named one is found first."""


@pytest.mark.parametrize("n_items", [FEW, MANY])
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_promise_is_found(name: str, n_items: int) -> None:
    rule, function = BROKEN[name]
    violation = check(Oracle(function, n_items))
    assert violation is not None
    assert violation.rule == rule
    assert str(violation) == violation.words


@pytest.mark.parametrize("n_items", [FEW, MANY])
@pytest.mark.parametrize("falsehood", [0.05, -0.05, 2.0**-30, math.nan, math.inf])
def test_false_gains_are_found(falsehood: float, n_items: int) -> None:
    assert check(Liar(0.0, n_items)) is None
    violation = check(Liar(falsehood, n_items))
    assert violation is not None
    assert violation.rule == "gains"
    assert "item 2 " in violation.words


@pytest.mark.parametrize("n_items", [FEW, MANY])
def test_counterexamples_are_true(n_items: int) -> None:
    for name, (rule, function) in BROKEN.items():
        violation = check(Oracle(function, n_items))
        assert violation is not None
        sets = [
            frozenset(map(int, re.findall(r"\d+", inside)))
            for inside in re.findall(r"\[([\d, ]*)\](?!;)", violation.words.replace("[0, 1].", ""))
        ]
        item = int(result[1]) if (result := re.search(r"[iI]tem (\d+)", violation.words)) else -1
        if rule == "range":
            assert not 0 <= function(sets[0]) <= 1, name
        if rule == "monotone":
            assert function(sets[0] | {item}) < function(sets[0]), name
        if rule == "submodular":
            large, small = sets
            assert small < large
            assert item not in large
            early = function(small | {item}) - function(small)
            assert function(large | {item}) - function(large) > early, name


def _as_function(crowd: Crowd, user: int) -> Callable[[Set], float]:
    return lambda items: float(crowd.value(user, items))


@examples(150)
@given(data=st.data())
def test_check_agrees_with_all_pairs_of_sets(data: st.DataObject) -> None:
    """On functions with one or a few values changed: a fault is found if and only if there is one."""
    crowd: Crowd = data.draw(
        crowds(data.draw(st.sampled_from(("coverage", "best-match"))), rounding=False, n_items=(1, 4))
    )
    sets = [frozenset(items) for items in brute.subsets(crowd.n_items)]
    value = {items: crowd.value(0, items) for items in sets}
    for items in data.draw(st.lists(st.sampled_from(sets), max_size=2)):
        value[items] += Fraction(data.draw(st.sampled_from((-1, -1, 1, 1, 9))), 16)
    broken = brute.broken_promises(value.__getitem__, crowd.n_items)
    violation = check(Oracle(lambda items: float(value[items]), crowd.n_items))
    if violation is None:
        assert not broken
    else:
        assert violation.rule in broken
