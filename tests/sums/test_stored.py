"""Stored users: all questions of a chain together move by no more than the singles; each release is one chain."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diminuendo import SeededSource, SystemSource
from diminuendo.errors import InvalidInput, LedgerDamaged, OverBudget
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import NormalColumns
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness import SecretRandomness
from diminuendo.randomness import rounded_normal as normal
from diminuendo.sums.clip import Clip
from diminuendo.sums.greedy_queries.cost import UNIT, squared_shifts
from diminuendo.sums.greedy_queries.query_weights import FULL, QueryWeights
from diminuendo.sums.schedule import Schedule, equal
from diminuendo.types import Ints
from tests.kit.stored import UsersByHand
from tests.sums.test_clip import HOSTILE

ITEMS = 4
WIDE = (1e9, 1e9)
numbers = st.sampled_from(HOSTILE) | st.floats()
vectors = st.lists(numbers, min_size=ITEMS, max_size=ITEMS)


def stored(rounds: int = 9, batches: int = 3, **options: Any) -> UsersByHand:
    made: dict[str, Any] = {"schedule": equal(rounds, batches), "ledger": Ledger(Budget(1.0, 1e-6))}
    return UsersByHand(options.pop("n_items", ITEMS), **(made | options))


def secret(seed: int = 0) -> SecretRandomness:
    return SecretRandomness(SeededSource(seed))


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normal, "rounded_normal", lambda values, sigma, secret: values)


def answers(
    clip: Clip, user: list[float], later: list[list[float]], chain: list[int], weight: int
) -> tuple[list[Ints], UsersByHand]:
    """Everything that is released about one user, without noise."""
    users = stored(clip=clip)
    users.add(user, np.arange(ITEMS), batch=0)
    opened = users.release(0, [weight], WIDE)
    rows = [opened.losses(item, gains, secret()) for item, gains in zip(chain, later, strict=True)]
    rows.append(opened.residual(secret()))
    return [users.release(1, [weight], WIDE).singletons(secret()), *rows], users


@settings(deadline=None, max_examples=200)
@given(
    one=st.tuples(vectors, st.lists(vectors, min_size=3, max_size=3)),
    other=st.tuples(vectors, st.lists(vectors, min_size=3, max_size=3)),
    chain=st.permutations(range(ITEMS)).map(lambda order: list(order[:3])),
    weight=st.integers(0, UNIT),
    clip=st.sampled_from(
        [Clip(), Clip(bound=9.0), Clip(bound=9.0, ceiling=3.0, ticks=100), Clip(ceiling=0.3)]
    ),
)
def test_hostile_users_move_a_whole_chain_by_no_more_than_is_charged(
    one: Any, other: Any, chain: list[int], weight: int, clip: Clip
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(normal, "rounded_normal", lambda values, sigma, secret: values)
        result = [answers(clip, user, later, chain, weight) for user, later in (one, other)]
    for released, _ in result:
        for row in released:
            assert row.min() >= 0
        assert sum(int((row.astype(object) ** 2).sum()) for row in released[1:]) <= (weight * clip.limit) ** 2
    shifts = [(a - b).astype(object) for a, b in zip(result[0][0], result[1][0], strict=True)]
    # What was charged for the release, at deviations of 10^9 each, is the squared shift that it allows for.
    (charged,) = {charge.event.squares[0] for charge in result[0][1].ledger.charges}  # type: ignore[union-attr]
    moved = (shifts[0] ** 2).sum() + sum((shift**2).sum() for shift in shifts[1:])
    assert moved / 1e18 <= charged
    squares = squared_shifts(result[0][1].n_items, clip)
    assert (shifts[0] ** 2).sum() <= weight**2 * squares[0]
    assert sum((shift**2).sum() for shift in shifts[1:]) <= weight**2 * squares[1]


def test_two_users_may_lose_at_different_steps(bare: None) -> None:
    """Why rows are charged for twice the square of an entry although entries are not negative."""
    clip = Clip(bound=9.0)
    now = [1.0] * ITEMS
    for chain in ([0, 1],):
        one, users = answers(clip, now, [[0.0] * ITEMS, [0.0] * ITEMS], chain, 1)
        other, _ = answers(clip, now, [now, [0.0] * ITEMS], chain, 1)
    moved = sum(((a - b) ** 2).sum() for a, b in zip(one[1:], other[1:], strict=True))
    assert moved == 2 * 3 * 1024**2  # all entries but the first item, which joins at once
    assert moved > users.clip.sensitivity_squared(ITEMS) * 3 / 4
    assert moved <= squared_shifts(users.n_items, users.clip)[1]


def test_without_the_running_minimum_a_chain_could_say_too_much(bare: None) -> None:
    """f = 1 from two items on is worth nothing in singles; its gains after the first item are all 1."""
    released, _ = answers(Clip(), [0.0] * ITEMS, [[1.0] * ITEMS] * 3, [0, 1, 2], UNIT)
    assert not any(row.any() for row in released)


@pytest.mark.parametrize("ceiling", [1.0, 3.0])
def test_a_chain_of_gains_is_what_it_should_be(bare: None, ceiling: float) -> None:
    """Two users with overlapping wants: singles minus rows are the weighted gains after the chain."""
    users = stored(2, 2, clip=Clip(bound=30.0, ceiling=ceiling))
    users.add(ceiling * np.array([0.5, 0.0, 0.25, 0.0]), batch=0)
    users.add([0.5 * ceiling, ceiling], [1, 2], batch=1)
    chain, unit = users.release(0, [2, 3], WIDE), 1024 * ceiling
    singletons = chain.singletons(secret())
    np.testing.assert_array_equal(singletons, unit * np.array([1.0, 1.5, 0.5 + 3.0, 0.0]))
    assert chain.items.tolist() == [0, 2, 1, 2]
    after = ceiling * np.array([0.125, 0.0, 0.25, 0.0])  # item 2 joins
    row = chain.losses(2, after, secret())
    np.testing.assert_array_equal(singletons - row, unit * np.array([0.25, 0.75, 0.0, 0.0]))
    second = chain.losses(
        0, ceiling * np.array([0.5, 0.5, 0.25, 1.0]), secret()
    )  # gains that rise are not believed
    np.testing.assert_array_equal(singletons - row - second, unit * np.array([0.0, 0.75, 0.0, 0.0]))


def test_each_batch_pays_for_itself_before_anything_is_drawn() -> None:
    users = stored()
    weights = np.array([[UNIT, 0], [0, UNIT]])
    sigmas = users.sigmas(weights, users.ledger.budget.share(), singletons=0.3)  # type: ignore[arg-type]
    users.release(0, [UNIT], sigmas)
    (charge,) = users.ledger.charges
    exact = sum(Fraction(2 * 1024**2 * UNIT**2) / Fraction(sigma) ** 2 for sigma in sigmas)
    assert isinstance(charge.event, NormalColumns)
    assert float(exact) * (1 + 1e-12) > charge.event.squares[0] >= exact
    assert exact / 2 > 0.999999 * users.ledger.budget.limit, "zCDP is half the square"
    with pytest.raises(OverBudget):
        users.release(1, [1, UNIT], sigmas)
    begun = users.release(1, [0, UNIT], sigmas)
    again = users.release(
        1, [0, UNIT], sigmas
    )  # as after a failure: charged for once, and one of them goes on
    assert len(users.ledger.charges) == 2
    with pytest.raises(InvalidInput, match="begun again"):
        begun.singletons(secret())
    again.singletons(secret())


def test_batches_of_other_schedules_are_other_users(tmp_path: Path) -> None:
    """One user is in another batch of each: what she pays adds up, in one process and after it."""
    apart = [Schedule((end, 4)) for end in (1, 2, 3)]
    first = stored(schedule=apart[0], ledger=Ledger.open(tmp_path / "ledger", Budget(1.0, 1e-6)))
    sigmas = first.sigmas(np.array([[UNIT, UNIT]]), first.ledger.budget.share(0.6))  # type: ignore[arg-type]
    first.release(0, [UNIT], sigmas)
    with pytest.raises(InvalidInput, match="in use"):
        stored(schedule=apart[1], ledger=first.ledger)
    with pytest.raises(OverBudget):
        stored(schedule=apart[1], ledger=first.ledger, name="others").release(1, [0, UNIT], sigmas)
    first.ledger.close()
    with Ledger.open(tmp_path / "ledger") as ledger, pytest.raises(OverBudget):
        stored(schedule=apart[1], ledger=ledger).release(1, [0, UNIT], sigmas)
    with Ledger.open(tmp_path / "ledger") as ledger:
        stored(schedule=apart[0], ledger=ledger).release(1, [0, UNIT], sigmas)


def test_two_stores_on_one_ledger_pay_side_by_side() -> None:
    """A round in batch 0 of one may be in batch 1 of the other."""
    first = stored(name="clicks")
    second = stored(name="wishes", ledger=first.ledger)
    sigmas = first.sigmas(np.array([[UNIT, UNIT]]), first.ledger.budget.share(0.6))  # type: ignore[arg-type]
    first.release(0, [UNIT, 0], sigmas)
    with pytest.raises(OverBudget):
        second.release(0, [0, UNIT], sigmas)


def test_a_chain_goes_on_after_a_crash_as_it_began(tmp_path: Path) -> None:
    source = SecretRandomness(SystemSource())

    def begin() -> tuple[Any, UsersByHand]:
        users = stored(ledger=Ledger.open(tmp_path / "ledger", Budget(1.0, 1e-6)))
        users.add([0.5, 0.2, 0.1, 0.0], batch=0)
        return users.release(3, [UNIT], WIDE), users

    chain, users = begin()
    drawn = chain.singletons(source), chain.losses(0, np.zeros(3), source)
    spent = users.ledger.spent()
    users.ledger.close()
    again, users = begin()
    assert users.ledger.spent() == spent
    np.testing.assert_array_equal(again.singletons(source), drawn[0])
    np.testing.assert_array_equal(again.losses(0, np.ones(3), source), drawn[1])
    with pytest.raises(InvalidInput, match="interrupted"):  # what was lost before is not known any more
        again.losses(1, np.ones(3), source)
    users.ledger.close()
    other, users = begin()
    with pytest.raises(InvalidInput, match="one release is one sequence"):
        other.losses(1, np.zeros(3), source)
    users.ledger.close()
    for kept in (tmp_path / "ledger.releases").glob("*"):
        kept.unlink()
    lost, users = begin()
    with pytest.raises(LedgerDamaged, match="not drawn again"):
        lost.singletons(source)
    users.ledger.close()
    with pytest.raises(InvalidInput, match="something else"):
        stored(ledger=Ledger.open(tmp_path / "ledger")).release(3, [UNIT - 1], WIDE)


def test_the_rest_is_what_rows_left_and_comes_last(bare: None) -> None:
    """Singles are the rows and the rest; nothing is asked after it, and it is asked once."""
    users = stored()
    users.add([0.5, 0.3, 0.2, 0.1], np.arange(ITEMS), batch=0)
    chain = users.release(0, [UNIT], WIDE)
    singletons = chain.singletons(secret())
    rows = [
        chain.losses(item, gains, secret())
        for item, gains in ((0, [0, 0.3, 0.1, 0.05]), (2, [0, 0.1, 0, 0.05]))
    ]
    rest = chain.residual(secret())
    np.testing.assert_array_equal(singletons, rows[0] + rows[1] + rest)
    assert not chain.goes_on()
    assert not chain.goes_on(residual=True)
    with pytest.raises(InvalidInput, match="is over"):
        chain.residual(secret())
    with pytest.raises(InvalidInput, match="is over"):
        chain.losses(1, np.zeros(ITEMS), secret())


def test_a_chain_that_is_known_in_part_says_no_more(tmp_path: Path) -> None:
    """What was drawn before a crash and is not asked for again was drawn all the same: what would have to agree with
    it is not drawn. Rows and a rest that do not know of each other could add up to more than the singles.
    """
    source = SecretRandomness(SystemSource())

    def begin(number: int) -> tuple[Any, UsersByHand]:
        users = stored(ledger=Ledger.open(tmp_path / "ledger", Budget(1.0, 1e-6)))
        users.add([0.5, 0.2, 0.1, 0.0], batch=0)
        return users.release(number, [UNIT], WIDE), users

    for number, drawn, wanted in ((0, "row", "rest"), (1, "rest", "row")):
        ask = {
            "row": lambda chain: chain.losses(0, np.zeros(3), source),
            "rest": lambda chain: chain.residual(source),
        }
        chain, users = begin(number)
        ask[drawn](chain)
        users.ledger.close()
        again, users = begin(number)
        assert not again.goes_on(residual=wanted == "rest")
        with pytest.raises(InvalidInput, match="interrupted"):
            ask[wanted](again)
        assert again.goes_on(residual=drawn == "rest")
        users.ledger.close()


def test_users_of_later_batches_are_not_in_an_earlier_release(bare: None) -> None:
    users = stored(n_items=2)
    users.add([1.0, 0.0], batch=0)
    users.add([0.0, 1.0], batch=1)
    assert users.release(0, [UNIT], WIDE).singletons(secret()).tolist() == [1024 * UNIT, 0]
    users.add([1.0, 0.0], batch=0)  # late, but to its own batch
    users.add_rows(np.array([[0.0, 0.5], [0.0, 0.0]]), batch=2)
    assert users.release(1, [UNIT], WIDE).singletons(secret()).tolist() == [2048 * UNIT, 0]
    assert users.release(2, [1, 10, 100], WIDE).singletons(secret()).tolist() == [2048, 10_240 + 51_200]
    users.forget(before=1)
    assert users.release(3, [1, 10, 100], WIDE).singletons(secret()).tolist() == [0, 10_240 + 51_200]
    empty = stored(n_items=2).release(0, [UNIT], WIDE)
    assert empty.singletons(secret()).tolist() == [0, 0]


def begin(users: UsersByHand, number: Any, weights: Any, sigmas: tuple[float, float] = WIDE) -> Any:
    return users.begin_greedy(number, weights, sigmas, QueryWeights(np.full(ITEMS, FULL), 512), secret())


@pytest.mark.parametrize(
    "wrong",
    [
        lambda users: users.admit(1, -1),
        lambda users: users.admit(1, 3),
        lambda users: users.admit(1, 0.5),
        lambda users: users.admit(10, 0),
        lambda users: begin(users, 0, [UNIT + 1]),
        lambda users: begin(users, 0, [-1]),
        lambda users: begin(users, 0, [1.5]),
        lambda users: begin(users, 0, [float("nan")]),
        lambda users: begin(users, 0, []),
        lambda users: begin(users, -1, [1]),
        lambda users: begin(users, "a", [1]),
        lambda users: begin(users, 0, [1], (0.0, 1.0)),
        lambda users: stored(schedule=Schedule((1 << 55,))),
        lambda users: stored(clip=Clip("l1")),
    ],
)
def test_bad_input_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidInput):
        wrong(stored())
