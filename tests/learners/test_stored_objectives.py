"""People who are kept: those who come one by one lie in a table as if they had come in one, and say the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import diminuendo as dim
from diminuendo import Coverage, NoisyOr, Oracle, People, SeededCoins, Setting
from diminuendo._sparse import SparseRows, stacked
from diminuendo.learners import make
from diminuendo.learners.base import stored_objectives
from diminuendo.learners.base.stored_objectives import StoredObjectives
from diminuendo.objectives.family import Family
from diminuendo.objectives.person import Person
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.ledger import Ledger
from diminuendo.streams import taste_groups
from diminuendo.sums.chains.people import entries
from diminuendo.sums.schedule import Schedule
from tests.kit.families import families, specimens
from tests.kit.gains import gains_after
from tests.kit.stored import PeopleByHand

BATCHES = (0, 0, 1, 1, 1, 2)
"""Of people who come one after the other; then from the start again."""


@pytest.fixture(params=[1, 2, 7, 256])
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many wait until they are gathered, however many came before."""
    for module in (stored_objectives, entries):
        monkeypatch.setattr(module, "FEWEST", request.param)


def alone(people: People, number: int) -> Person:
    """One of them, in a table of her own."""
    rows = people.family.rows(people.table, people.n_items)
    table = people.family.table([part.between(number, number + 1) for part in rows], people.n_items)
    return Person(people.family, people.n_items, table, 0)


def crowds(name: str) -> Iterator[People]:
    for family, n_items, matrices in specimens(name):
        several = tuple(np.tile(np.asarray(matrix), (5, 1)) for matrix in matrices)
        yield People(family, several, n_items)


def along(kept: StoredObjectives) -> list[Any]:
    """What everybody says along a chain, person by person and all together."""
    scores = [kept.score_walk(batch) for batch in range(3)]
    found: list[Any] = []
    for item in range(min(3, kept.n_items)):
        found += [each.scores() for each in scores]
        for each in scores:
            each.join(item)
        found.append(gains_after(kept.n_items, kept.frozen(), range(item + 1)))
    return found


@families
@pytest.mark.usefixtures("few")
def test_who_comes_alone_says_what_she_says_in_a_table(name: str) -> None:
    for people in crowds(name):
        one, table = StoredObjectives(people.n_items), StoredObjectives(people.n_items)
        for number in range(len(people)):
            batch = BATCHES[number % len(BATCHES)]
            one.add(alone(people, number), batch)
            table.add_rows(people.family, people.table, [number], batch)
        for _ in range(2):
            np.testing.assert_equal(along(one), along(table))
            (who, mine), (_, theirs) = one.written(), table.written()
            assert who.all()
            assert mine.keys() == theirs.keys()
            for key in mine:
                assert mine[key].dtype == theirs[key].dtype
                np.testing.assert_array_equal(mine[key], theirs[key], key)
            for kept in (one, table):  # once more after that
                kept.forget(1)
                assert set(kept.batches) == {1, 2}
        one.add(alone(people, 0), 2)
        table.add_rows(people.family, people.table, [0], 2)
        np.testing.assert_equal(along(one), along(table))


@pytest.mark.usefixtures("few")
def test_functions_and_other_families_keep_their_places() -> None:
    n_items, kept, everybody = 4, StoredObjectives(4), list[Any]()
    rng = np.random.default_rng(1)
    for number in range(60):
        row = {int(item): 0.5 for item in rng.choice(n_items, 2, replace=False)}
        kinds: list[Any] = [dim.person(NoisyOr(), row, n_items), dim.person(dim.BestMatch(), row, n_items)]
        kinds.append(Oracle(lambda chosen, w=number / 100: w * len(chosen), n_items))  # type: ignore[misc]
        person: Any = kinds[0 if number < 20 else rng.integers(3)]
        everybody.append(person)
        kept.add(person, number // 20)
    found = gains_after(n_items, kept.frozen(), [2])
    for person, gains in zip(everybody, found, strict=True):
        np.testing.assert_allclose(gains[[0, 1, 3]], person.gains([2])[[0, 1, 3]], rtol=0, atol=1e-15)
    assert kept.written()[0].tolist() == [isinstance(person, Person) for person in everybody]


def shared() -> Family:
    return NoisyOr()


def made_anew() -> Family:
    return Coverage(np.array([[1, 0], [0, 1], [1, 1]]))


@pytest.mark.parametrize("family", [shared, made_anew])
def test_a_thousand_people_are_one_table(family: Any) -> None:
    """Each of them was a segment, walked from Python."""
    kept = StoredObjectives(3)
    for number in range(1000):
        kept.add(dim.person(family(), {number % 2: 0.5}, 3), number // 500)
        assert len(kept._segments) <= 1
        assert len(kept._waiting) < stored_objectives.FEWEST
    (people,) = kept.segments
    assert people.rows == range(1000)
    kept.forget(1)
    (people,) = kept.segments
    assert len(people.table.starts) == 501, "who is forgotten is in no table any more"


def test_ticks_of_people_who_come_alone_do_not_wait_for_a_release() -> None:
    ticks = PeopleByHand(3, schedule=Schedule((2000, 2001)), ledger=Ledger(Budget(1.0, 1e-6)))
    for number in range(1000):
        ticks.add([0.5], [number % 3], batch=0)
        assert len(ticks.entries._waiting) < entries.FEWEST


@pytest.mark.parametrize("learner", ["overlap-greedy", "epoch-greedy"])
@pytest.mark.usefixtures("few")
def test_learners_do_the_same_with_people_who_come_alone(learner: str) -> None:
    people = taste_groups(300, 12, groups=4, items_per_group=5, seed=1)
    setting = Setting(12, 3, 600, "full", epsilon=8.0)
    one, table = (make(learner, setting, coins=SeededCoins(2)) for _ in range(2))
    slates = table.replay(people)
    for number in range(len(people)):
        decision = one.choose()
        assert decision.slate == tuple(slates[number].tolist())
        one.observe(decision, alone(people, number))
    assert one.snapshot() == table.snapshot()


def test_rows_one_below_the_other_are_those_of_scipy() -> None:
    rng = np.random.default_rng(3)
    dense = (rng.random((20, 6)) < 0.3) * rng.random((20, 6))
    whole = People(NoisyOr(), dense).family.rows(People(NoisyOr(), dense).table, 6)[0]
    some = np.array([3, 3, 0, 19, 7])
    assert (whole.only(some).as_scipy().toarray() == dense[some]).all()
    assert whole.only(some[:0]).shape == (0, 6)
    parts: list[SparseRows] = [whole.between(0, 5), whole.between(5, 5), whole, whole.between(19, 20)]
    expected = np.concatenate([dense[:5], dense, dense[19:]])
    assert (stacked(parts).as_scipy().toarray() == expected).all()
