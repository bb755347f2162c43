"""Users who are stored: those who come one by one lie in blocks as if they had come in a table, and say the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import diminuendo as dim
from diminuendo import NoisyOr, Oracle, SeededSource, Setting, Users
from diminuendo._sparse import SparseRows, stacked
from diminuendo.learners import make
from diminuendo.learners.base import users as user_store
from diminuendo.learners.base.users import UserStore
from diminuendo.objectives.user import User
from diminuendo.streams import taste_groups
from tests.kit.families import families
from tests.learners.test_engines import USERS, alone, crowd

BATCHES = (0, 0, 1, 1, 1, 2)
"""Of users who come one after the other; then from the start again."""


@pytest.fixture(params=[1, 2, 7, 256])
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many wait until they are gathered."""
    monkeypatch.setattr(user_store, "GATHER", request.param)


def everybody(store: UserStore) -> list[tuple[Any, ...]]:
    """Row by row what is known of each user, in the order in which they came."""
    result = []
    for block in store.blocks:
        for number in range(len(block)):
            user = User(block.family, block.n_items, block.table, block.first + number)
            spec = tuple(int(column[number]) for column in block.spec)
            result.append((block.family.name, user.gains(()).tolist(), user.gains([0]).tolist(), spec))
    return result


def scores(store: UserStore) -> list[Any]:
    """What the users of each batch say along a chain, all together."""
    walks, result = [store.score_walk(batch) for batch in range(3)], list[Any]()
    for item in range(min(3, store.n_items)):
        result += [walk.scores() for walk in walks]
        for walk in walks:
            walk.join(item)
    return result


@families
@pytest.mark.usefixtures("few")
def test_who_comes_alone_says_what_a_row_of_a_table_says(name: str) -> None:
    for users in crowd(name):
        one, table = UserStore(users.n_items), UserStore(users.n_items)
        for number in range(len(users)):
            batch = BATCHES[number % len(BATCHES)]
            one.add(alone(users, number), batch)
            table.add_rows(users.family, users.table, [number], batch)
        for _ in range(2):
            assert everybody(one) == everybody(table)
            np.testing.assert_equal(scores(one), scores(table))
            np.testing.assert_equal(one.written(), table.written())
            for store in (one, table):  # once more after that
                store.forget(1)
                assert set(store.batches) == {1, 2}
        one.add(alone(users, 0), 2)
        table.add_rows(users.family, users.table, [0], 2)
        assert everybody(one) == everybody(table)


@families
def test_everybody_who_is_a_row_survives_a_snapshot(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_store, "BLOCK", 5)
    for users in crowd(name):
        store, again = UserStore(users.n_items, 3), UserStore(users.n_items, 3)
        for number, user in enumerate(users):
            store.add(user, number % 4, number % 3, 100 + number)
        store.add(Oracle(lambda chosen: 0.1 * len(chosen), users.n_items))
        assert len(store) == len(users) + 1
        again.read(store.written())
        assert everybody(again) == everybody(store)
        assert len(again) == len(users), "functions cannot be written down"


def test_families_and_functions_are_told_apart() -> None:
    store, rng = UserStore(4), np.random.default_rng(1)
    for number in range(60):
        row = {int(item): 0.5 for item in rng.choice(4, 2, replace=False)}
        kinds: list[Any] = [dim.user(NoisyOr(), row, 4), dim.user(dim.BestMatch(), row, 4)]
        kinds.append(Oracle(lambda chosen, w=number / 100: w * len(chosen), 4))  # type: ignore[misc]
        store.add(kinds[0 if number < 20 else number % 3], number // 20)
    assert [name for name, *_ in everybody(store)[:20]] == ["noisy-or"] * 20
    assert len(store) == 60
    assert len(store.functions) == sum(number % 3 == 2 for number in range(20, 60))
    store.forget(1)
    assert len(store) == 40


def test_many_who_come_one_by_one_are_few_blocks() -> None:
    store = UserStore(12)
    for number in range(3_000):
        store.add(alone(USERS, number % 900), number // 1_500)
        assert len(store._waiting) < user_store.GATHER
    assert len(store.blocks) < 8
    assert len(store) == 3_000
    store.forget(1)
    assert sum(len(block.table.starts) - 1 for block in store.blocks) == 1_500, (
        "who is forgotten is in no table"
    )


def test_nothing_is_copied_of_a_table_until_somebody_is_erased() -> None:
    store = UserStore(12)
    for batch in range(3):
        rows = range(300 * batch, 300 * batch + 300)
        store.add_rows(USERS.family, USERS.table, rows, batch, rounds=np.arange(300) + 1_000 * batch)
    (block,) = store.blocks
    assert block.table is USERS.table
    store.forget(1)
    (block,) = store.blocks
    assert (block.table, len(block)) == (USERS.table, 600)
    before = everybody(store)
    store.erase(np.arange(1_100, 1_200))
    assert everybody(store) == before[:100] + before[200:]
    assert all(block.table is not USERS.table for block in store.blocks), (
        "rows of the erased are held no more"
    )
    store.erase(np.arange(3_000))
    assert len(store) == 0
    assert not store.blocks


@pytest.mark.parametrize("learner", ["overlap-greedy", "epoch-greedy"])
@pytest.mark.usefixtures("few")
def test_learners_do_the_same_with_users_who_come_alone(learner: str) -> None:
    users = taste_groups(300, 12, groups=4, items_per_group=5, seed=1)
    setting = Setting(12, 3, 600, "full", epsilon=8.0)
    one, table = (make(learner, setting, rng=SeededSource(2)) for _ in range(2))
    slates = table.replay(users)
    for number in range(len(users)):
        decision = one.choose()
        assert decision.slate == tuple(slates[number].tolist())
        one.observe(decision, alone(users, number))
    assert one.snapshot() == table.snapshot()


def test_rows_one_below_the_other_are_those_of_scipy() -> None:
    rng = np.random.default_rng(3)
    dense = (rng.random((20, 6)) < 0.3) * rng.random((20, 6))
    whole = Users(NoisyOr(), dense).family.rows(Users(NoisyOr(), dense).table, 6)[0]
    some = np.array([3, 3, 0, 19, 7])
    assert (whole.only(some).as_scipy().toarray() == dense[some]).all()
    assert whole.only(some[:0]).shape == (0, 6)
    parts: list[SparseRows] = [whole.between(0, 5), whole.between(5, 5), whole, whole.between(19, 20)]
    expected = np.concatenate([dense[:5], dense, dense[19:]])
    assert (stacked(parts).as_scipy().toarray() == expected).all()
