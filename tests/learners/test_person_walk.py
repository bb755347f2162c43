"""What compiled code says about one person is what her own methods say."""

from __future__ import annotations

import numpy as np
import pytest

from diminuendo import People
from diminuendo.learners.overlap.person_walk import PersonWalk
from diminuendo.objectives import FAMILIES
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items
from tests.kit.families import QUICK

SPECIMENS = [
    pytest.param(People(family, matrices, n_items), id=name, marks=[] if name in QUICK else pytest.mark.slow)
    for name, kind in FAMILIES.items()
    for family, n_items, matrices in [next(kind.specimens())]  # each further one would be compiled anew
]


def plainly(
    people: People, number: int, row: Items, since: Ints, batch: int
) -> tuple[list[int], Floats, float]:
    """By the methods of a person, with vectors as long as the list of items."""
    worth = people[number].gains(())
    worth[since > batch] = 0.0
    items = np.flatnonzero(worth > 0)
    payoff = people[number].value([int(item) for item in row if item != EMPTY_SLOT])
    return items.tolist(), worth[items], payoff


@pytest.mark.parametrize("people", SPECIMENS)
def test_it_is_what_a_person_says(people: People) -> None:
    """Everybody in turn with one walk, so that room must grow and must be left clean."""
    walk, rng = PersonWalk(people.n_items), np.random.default_rng(1)
    for number in [*range(len(people)), *reversed(range(len(people)))]:
        for batch in (0, 1, 2):
            row = rng.permutation(people.n_items)[:2].astype(np.int32)
            row[rng.integers(2)] = EMPTY_SLOT if batch == 1 else row[rng.integers(2)]
            row = row if len(set(row.tolist())) == 2 else row[:1]
            since = rng.integers(0, 3, people.n_items)
            items, worth, payoff = plainly(people, number, row, since, batch)
            found = walk.along(people[number], row, since, batch)
            assert found is not None
            assert found.items.tolist() == items
            np.testing.assert_array_equal(found.worth, worth)
            assert found.payoff == payoff


def test_nothing_is_shown_when_printed() -> None:
    people = SPECIMENS[0].values[0]
    assert isinstance(people, People)
    walk = PersonWalk(people.n_items)
    found = walk.along(people[0], np.array([0], dtype=np.int32), np.zeros(people.n_items, dtype=np.int64), 0)
    assert repr(found) == "<Answer>"
    assert repr(walk) == f"<PersonWalk, {people.n_items} items>"
