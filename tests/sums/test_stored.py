"""Stored people: all questions of a chain together move by no more than the singles; each release is one chain."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diminuendo import SeededCoins
from diminuendo.errors import InvalidInput, OverBudget
from diminuendo.privacy import curves
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import Columns
from diminuendo.privacy.ledger import Ledger
from diminuendo.privacy.releases import Releases
from diminuendo.randomness import SecretRandomness, noise
from diminuendo.sums.clip import Clip
from diminuendo.sums.schedule import equal, geometric
from diminuendo.sums.stored import UNIT, StoredPeople, gls, power_weights
from diminuendo.types import Ints
from tests.sums.test_clip import HOSTILE

ITEMS = 4
WIDE = (1e9, 1e9)
numbers = st.sampled_from(HOSTILE) | st.floats()
vectors = st.lists(numbers, min_size=ITEMS, max_size=ITEMS)


def ledger() -> Ledger:
    return Ledger(Budget(1.0, 1e-6))


def secret(seed: int = 0) -> SecretRandomness:
    return SecretRandomness(SeededCoins(seed))


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "gaussian", lambda values, sigma, secret: values)


def answers(person: list[float], later: list[list[float]], chain: list[int], weight: int) -> list[Ints]:
    """Everything that is released about one person, without noise."""
    people = StoredPeople(ITEMS, rounds=1)
    people.add(person, np.arange(ITEMS), batch=0)
    opened = people.release(0, [weight], WIDE, ledger())
    return [opened.singles(secret())] + [
        opened.row(item, gains, secret()) for item, gains in zip(chain, later, strict=True)
    ]


@settings(deadline=None, max_examples=200)
@given(
    one=st.tuples(vectors, st.lists(vectors, min_size=3, max_size=3)),
    other=st.tuples(vectors, st.lists(vectors, min_size=3, max_size=3)),
    chain=st.permutations(range(ITEMS)).map(lambda order: list(order[:3])),
    weight=st.integers(0, UNIT),
)
def test_hostile_people_move_a_whole_chain_by_no_more_than_is_charged(
    one: Any, other: Any, chain: list[int], weight: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noise, "gaussian", lambda values, sigma, secret: values)
        found = [answers(person, later, chain, weight) for person, later in (one, other)]
    limit = Clip().limit
    for released in found:
        for row in released:
            assert row.min() >= 0
        assert sum(int((row.astype(object) ** 2).sum()) for row in released[1:]) <= (weight * limit) ** 2
    shifts = [(a - b).astype(object) for a, b in zip(*found, strict=True)]
    assert (shifts[0] ** 2).sum() <= 2 * (weight * limit) ** 2
    assert sum((shift**2).sum() for shift in shifts[1:]) <= 2 * (weight * limit) ** 2


def test_without_the_running_minimum_a_chain_could_say_too_much(bare: None) -> None:
    """f = 1 from two items on is worth nothing in singles; its gains after the first item are all 1."""
    released = answers([0.0] * ITEMS, [[1.0] * ITEMS] * 3, [0, 1, 2], UNIT)
    assert not any(row.any() for row in released)


def test_a_chain_of_gains_is_what_it_should_be(bare: None) -> None:
    """Two people with overlapping wants: singles minus rows are the weighted gains after the chain."""
    people = StoredPeople(ITEMS, rounds=2, clip=Clip(bound=10.0))
    people.add([0.5, 0.0, 0.25, 0.0], batch=0)
    people.add([0.5, 1.0], [1, 2], batch=1)
    chain = people.release(0, [2, 3], WIDE, ledger())
    singles = chain.singles(secret())
    np.testing.assert_array_equal(singles, 1024 * np.array([1.0, 1.5, 0.5 + 3.0, 0.0]))
    assert chain.items.tolist() == [0, 2, 1, 2]
    after = np.array([0.125, 0.0, 0.25, 0.0])  # item 2 joins
    row = chain.row(2, after, secret())
    np.testing.assert_array_equal(singles - row, 1024 * np.array([0.25, 0.75, 0.0, 0.0]))
    second = chain.row(0, np.array([0.5, 0.5, 0.25, 1.0]), secret())  # gains that rise are not believed
    np.testing.assert_array_equal(singles - row - second, 1024 * np.array([0.0, 0.75, 0.0, 0.0]))


def test_each_batch_pays_for_itself_before_anything_is_drawn() -> None:
    rho = curves.zcdp_rho(1.0, 1e-6)
    people, held = StoredPeople(ITEMS, rounds=10), ledger()
    sigma = float(np.sqrt(2 * 1024**2 * UNIT**2 / rho)) * (1 + 1e-12)
    people.release(0, [UNIT], (sigma, sigma), held)
    (entry,) = held.entries
    exact = 2 * Fraction(1024**2 * UNIT**2) / Fraction(sigma) ** 2
    assert isinstance(entry.event, Columns)
    assert entry.event.rhos[0] == pytest.approx(float(exact), rel=1e-12)
    assert Fraction(entry.event.rhos[0]) >= exact
    with pytest.raises(OverBudget):
        people.release(1, [1, UNIT], (sigma, sigma), held)
    people.release(1, [0, UNIT], (sigma, sigma), held)
    assert held.spent() <= 1.0


def test_a_chain_goes_on_after_a_crash_as_it_began(tmp_path: Path) -> None:
    def begin(seed: int) -> tuple[Any, Ledger]:
        people = StoredPeople(ITEMS, rounds=5, kept=Releases(tmp_path / "kept"))
        people.add([0.5, 0.2, 0.1, 0.0], batch=0)
        held = Ledger.open(tmp_path / "ledger", Budget(1.0, 1e-6))
        return people.release(3, [UNIT], WIDE, held), held

    chain, held = begin(1)
    drawn = chain.singles(secret(1)), chain.row(0, np.zeros(3), secret(2))
    spent = held.spent()
    held.close()
    again, held = begin(2)
    assert held.spent() == spent
    np.testing.assert_array_equal(again.singles(secret(8)), drawn[0])
    np.testing.assert_array_equal(again.row(0, np.ones(3), secret(9)), drawn[1])
    held.close()
    other, held = begin(3)
    with pytest.raises(InvalidInput, match="one release is one chain"):
        other.row(1, np.zeros(3), secret(4))
    with pytest.raises(InvalidInput, match="other weights"):
        StoredPeople(ITEMS, rounds=5).release(3, [UNIT - 1], WIDE, held)
    held.close()


def test_people_of_later_batches_are_not_in_an_earlier_release(bare: None) -> None:
    people = StoredPeople(2, rounds=9)
    people.add([1.0, 0.0], batch=0)
    people.add([0.0, 1.0], batch=1)
    assert people.release(0, [UNIT], WIDE, ledger()).singles(secret()).tolist() == [1024 * UNIT, 0]
    people.add([1.0, 0.0], batch=0)  # late, but to its own batch
    assert people.release(1, [UNIT], WIDE, ledger()).singles(secret()).tolist() == [2048 * UNIT, 0]
    empty = StoredPeople(2, rounds=1).release(0, [UNIT], WIDE, ledger())
    assert empty.singles(secret()).tolist() == [0, 0]


@pytest.mark.parametrize(
    "schedule", [equal(1000, 7), geometric(10_000, 20, 1.5), geometric(10_000, 20, 1.5, 900)]
)
def test_power_weights_are_whole_and_bounded(schedule: Any) -> None:
    weights = power_weights(schedule)
    assert weights.shape == (len(schedule), len(schedule))
    assert (np.triu(weights, 1) == 0).all()
    columns = (weights.astype(object) ** 2).sum(axis=0)
    assert max(columns) <= UNIT**2
    assert min(columns) > 0.99 * UNIT**2
    ends = np.array(schedule.ends)
    for j in range(len(ends)):  # in proportion to 1 / t_b, but for rounding down to whole numbers
        for b in range(j, len(ends)):
            assert abs(weights[b, j] * ends[b] - weights[j, j] * ends[j]) <= ends[b] + ends[j]


def test_gls_weighs_by_precision() -> None:
    mean, deviation = gls([np.array([1.0, 4.0]), np.array([2.0, 0.0])], [1.0, 2.0])
    np.testing.assert_allclose(mean, [1.2, 3.2])
    assert deviation == pytest.approx((1 + 1 / 4) ** -0.5)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda people: people.add([1.0], batch=0),
        lambda people: people.add([1.0] * ITEMS, batch=-1),
        lambda people: people.add([1.0] * ITEMS, batch=0.5),
        lambda people: people.add([1.0, 1.0], [2, 2], batch=0),
        lambda people: people.release(0, [UNIT + 1], WIDE, ledger()),
        lambda people: people.release(0, [-1], WIDE, ledger()),
        lambda people: people.release(0, [], WIDE, ledger()),
        lambda people: people.release(0, [1], (0.0, 1.0), ledger()),
        lambda people: people.release(0, [1], WIDE, ledger()).row(9, [], secret()),
        lambda people: people.release(0, [1], WIDE, ledger()).row(0, [1.0], secret()),
        lambda people: StoredPeople(2, rounds=1 << 55),
        lambda people: StoredPeople(2, rounds=1, clip=Clip("l1")),
        lambda people: [people.add([1.0] * ITEMS, batch=0) for _ in range(4)],
    ],
)
def test_bad_input_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidInput):
        wrong(StoredPeople(ITEMS, rounds=3))
