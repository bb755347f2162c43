"""Queries over blocks: any blocks, in this process, in threads or as Ray tasks: what is published is the same bit for
bit."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import diminuendo as dim
from diminuendo import Oracle, OverlapGreedy, SeededSource, Users
from diminuendo.errors import InvalidInput
from diminuendo.learners.base import engines
from diminuendo.learners.base import users as user_store
from diminuendo.learners.base.engines import OnRay, Threads, engine_called
from diminuendo.learners.base.users import UserStore
from diminuendo.learners.overlap.participants import StoredParticipants, Terms
from diminuendo.objectives.user import User
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.ledger import Ledger
from diminuendo.streams import taste_groups
from diminuendo.streams.walks import Segment, singletons
from diminuendo.sums.clip import Clip
from diminuendo.sums.greedy_queries.participants import Participants, Prefix
from diminuendo.types import EMPTY_SLOT, Floats, Ints
from tests.kit.fake_ray import FakeRay
from tests.kit.families import families, specimens

CLIP = Clip()
WEIGHTS = np.array([4096, 1000, 7])
BUDGET = Budget(8.0, 1e-6, accountant="continuous-gaussian")
USERS = taste_groups(900, 12, groups=4, items_per_group=5, seed=1)
CLUSTERS = [FakeRay(1), FakeRay(7), FakeRay(2, lost_in=(1, 3, 8)), FakeRay(3, forgets_every=2)]
"""Of one worker, of several, with workers that are lost, and with shares that come to other workers."""


def alone(users: Users, number: int) -> User:
    """One of them, in a table of their own."""
    rows = users.family.rows(users.table, users.n_items)
    table = users.family.table([part.between(number, number + 1) for part in rows], users.n_items)
    return User(users.family, users.n_items, table, 0)


def crowd(name: str, seed: int = 0) -> Iterator[Users]:
    for family, n_items, matrices in specimens(name):
        several = tuple(np.tile(np.asarray(matrix), (7, 1)) for matrix in matrices)
        rng = np.random.default_rng(seed)
        yield Users(family, tuple(part * (rng.random(part.shape) < 0.8) for part in several), n_items)


def value_of(user: User, chosen: frozenset[int]) -> float:
    return user.value(sorted(chosen))


def filled(users: Users, *, functions: bool = True) -> UserStore:
    """Some of a table, some in two other ways, some one by one, some who are functions."""
    store, third, kinds = UserStore(users.n_items, 2), len(users) // 3, np.arange(len(users)) % 2
    store.add_rows(users.family, users.table, range(third), 0, kinds[:third])
    some = np.arange(third, 2 * third)[::2]
    store.add_rows(users.family, users.table, some, 1, kinds[some])
    worth = singletons(Segment(users.family, users.table, range(len(users))), users.n_items)
    for number in range(2 * third, len(users)):
        user, row = alone(users, number), worth.between(number, number + 1)
        store.add(user, 2, int(kinds[number]))
        if functions and number % 4 == 0:
            order = np.argsort(row.indices)
            said = row.indices[order].astype(np.int64), row.data[order]
            function = Oracle(partial(value_of, user), users.n_items)
            store.add(function, 0, int(kinds[number]), said=said)
    return store


def terms_of(n_items: int, factors: Floats | None = None) -> Terms:
    """Item 1 is there for users of batch 2 alone."""
    first_batch = np.where(np.arange(n_items) == 1, 2, 0)
    return Terms(WEIGHTS, np.linspace(0.3, 1.0, n_items) if factors is None else factors, first_batch, CLIP)


def participants(store: UserStore, engine: Any = None, terms: Terms | None = None) -> StoredParticipants:
    return StoredParticipants(
        store.blocks, store.functions, terms or terms_of(store.n_items), engine or Threads()
    )


def queries(n_items: int) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """All queries that a release may have, in the order of a chain; some of them again."""
    everybody, apart = np.zeros(2, dtype=np.int64), np.array([0, 1])
    chain: Prefix = ()
    yield "sums", (chain, everybody, 1)
    yield "counts", (apart, 2, 1024)
    for items, questions, many in (
        ([0, 0], everybody, 1),
        ([min(2, n_items - 1), 1], apart, 2),
        ([EMPTY_SLOT, n_items - 1], np.array([-1, 0]), 1),
    ):
        joining = np.array(items)
        yield "losses", (chain, joining, questions, many)
        yield "losses", (chain, joining, questions, many)
        chain = (*chain, joining)
        yield "sums", (chain, apart, 2)
    yield "sums", ((), apart, 2)
    yield "swap", (np.array([1, EMPTY_SLOT, 0]),)


def results(asked: Participants, n_items: int) -> list[Ints]:
    return [getattr(asked, name)(*given) for name, given in queries(n_items)]


def on(ray: FakeRay, monkeypatch: pytest.MonkeyPatch) -> OnRay:
    monkeypatch.setattr(engines, "joined", lambda *_, **__: (ray, lambda: None))
    monkeypatch.setattr(engines, "_SENT", type(engines._SENT)())
    return OnRay()


@families
def test_any_blocks_on_any_engine_give_the_same_numbers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for users in crowd(name):
        expected = results(participants(filled(users)), users.n_items)
        assert all(part.any() for part in expected[:5])
        for most, gather in ((1, 1), (3, 2), (7, 7), (1 << 16, 1)):
            monkeypatch.setattr(user_store, "BLOCK", most)
            monkeypatch.setattr(user_store, "GATHER", gather)
            store = filled(users)
            assert max(map(len, store.blocks)) <= most
            for engine in (Threads(), Threads(3), *(on(ray, monkeypatch) for ray in CLUSTERS)):
                np.testing.assert_equal(results(participants(store, engine), users.n_items), expected)


@families
def test_a_query_is_a_function_of_a_block_and_public_spec(name: str) -> None:
    """Whether queries come along a chain, each to somebody who has not heard any other, or in another order."""
    for users in crowd(name):
        store, n_items = filled(users), users.n_items
        expected = results(participants(store), n_items)
        fresh = [getattr(participants(store), query)(*given) for query, given in queries(n_items)]
        np.testing.assert_equal(fresh, expected)
        asked, order = participants(store), np.random.default_rng(1).permutation(len(expected))
        listed = list(queries(n_items))
        for number in order.tolist():
            query, given = listed[number]
            np.testing.assert_array_equal(getattr(asked, query)(*given), expected[number])


def test_rows_are_what_users_lose_one_by_one() -> None:
    """Against Python, user by user: clipped singles, and the running minimum of what is left along a chain."""
    (users,) = crowd("noisy-or")
    store, n_items = filled(users, functions=False), users.n_items
    terms, chain = terms_of(n_items), (2, 0)
    expected = np.zeros((3, n_items), dtype=np.int64)
    for block in store.blocks:
        for place in range(len(block)):
            one = User(block.family, n_items, block.table, block.first + place)
            batch = int(block.spec.batches[place])
            worth = np.where(terms.first_batch <= batch, one.gains(()), 0.0)
            scale = 1024 / max(1.0, float(np.sqrt(((terms.factors * worth) ** 2).sum())))
            left = np.floor(scale * terms.factors * worth)
            assert (left**2).sum() <= 1024**2
            expected[0] += WEIGHTS[batch] * left.astype(np.int64)
            for step in (1, 2):
                gains = np.minimum(one.gains(chain[:step]), 1.0)
                after = np.minimum(left, np.floor(scale * (terms.factors * gains)))
                expected[step] += WEIGHTS[batch] * (left - after).astype(np.int64)
                left = after
    asked, everybody = participants(store), np.zeros(2, dtype=np.int64)
    joining = [np.array([item, item]) for item in chain]
    np.testing.assert_array_equal(asked.sums((), everybody, 1)[0], expected[0])
    np.testing.assert_array_equal(asked.losses((), joining[0], everybody, 1)[0], expected[1])
    np.testing.assert_array_equal(asked.losses((joining[0],), joining[1], everybody, 1)[0], expected[2])


def test_a_block_that_is_left_out_or_queried_twice_is_seen() -> None:
    (users,) = crowd("noisy-or")
    store, terms = filled(users), terms_of(users.n_items)
    expected = results(participants(store), users.n_items)
    for wrong in (store.blocks[1:], [*store.blocks, store.blocks[0]]):
        asked = StoredParticipants(wrong, store.functions, terms, Threads())
        assert any((a != b).any() for a, b in zip(results(asked, users.n_items), expected, strict=True))


def test_a_function_that_changes_its_mind_is_taken_at_its_first_word() -> None:
    """Else rows and rest of one release could add up to more than the singles that were charged."""
    rng = np.random.default_rng(1)

    class Erratic:
        n_items = 4

        def value(self, slate: Any) -> float:
            return 0.5

        def gains(self, slate: Any) -> Floats:
            return rng.random(4)

    store, chain, whose = UserStore(4), list[Ints](), np.zeros(1, dtype=np.int64)
    store.add(Erratic(), said=(np.arange(4), np.full(4, 0.5)))
    asked = StoredParticipants(
        store.blocks, store.functions, terms_of(4)._replace(first_batch=whose.repeat(4)), Threads()
    )
    singles_, rows = asked.sums((), whose, 1), list[Ints]()
    for item in (0, 1, 2):
        row = asked.losses(tuple(chain), np.array([item]), whose, 1)
        for prefix in ((), tuple(chain)):  # somewhere else meanwhile, and here again
            asked.sums(prefix, whose, 1)
        np.testing.assert_array_equal(asked.losses(tuple(chain), np.array([item]), whose, 1), row)
        chain.append(np.array([item]))
        rows.append(row)
    np.testing.assert_array_equal(sum(rows) + asked.sums(tuple(chain), whose, 1), singles_)


def test_a_block_goes_to_the_cluster_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ray, store = FakeRay(2), filled(USERS)
    engine = on(ray, monkeypatch)
    for _ in range(3):
        participants(store, engine)
    assert ray.puts == len(store.blocks) + 3, "and the terms of each release"


# Learners.


def noted(learner: Any) -> list[bytes]:
    """Everything that the learner publishes from now on."""
    books, drawn = learner.ledger._kept, list[bytes]()
    once = books.once

    def kept(*given: Any) -> Any:
        result = once(*given)
        drawn.append(np.asarray(result).tobytes())
        return result

    books.once = kept
    return drawn


def made(engine: Any, **more: Any) -> Any:
    given: dict[str, Any] = {"horizon": 900, "epsilon": 8.0, "delta": 1e-6, "rng": SeededSource(3)}
    return OverlapGreedy(12, 3, **given, ledger=Ledger(BUDGET), engine=engine, **more)


def played(engine: Any, users: Users = USERS, **more: Any) -> tuple[Any, list[bytes], Any]:
    """Slates, everything that was published, and the learner."""
    learner = made(engine, **more)
    drawn = noted(learner)
    return learner.replay(users), drawn, learner


@pytest.mark.parametrize("engine", ["threads", Threads(3), *CLUSTERS], ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("most", [5, 1 << 16])
def test_releases_are_the_same_whichever_engine(
    engine: Any, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    slates, drawn, learner = played(None)
    monkeypatch.setattr(user_store, "BLOCK", most)
    others, same, other = played(on(engine, monkeypatch) if isinstance(engine, FakeRay) else engine)
    np.testing.assert_array_equal(slates, others)
    assert len(drawn) > 20
    assert drawn == same
    assert learner.snapshot() == other.snapshot()


def test_types_have_chains_of_their_own_on_any_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    known = dim.Contexts({"group": ["a", "b", "c"]})
    users = USERS.with_contexts(known, np.arange(900)[:, None] % 3)
    slates, drawn, _ = played(None, users, contexts=known)
    monkeypatch.setattr(user_store, "BLOCK", 100)
    for engine in (Threads(7), on(FakeRay(3, lost_in=(2, 9)), monkeypatch)):
        others, same, _ = played(engine, users, contexts=known)
        np.testing.assert_array_equal(slates, others)
        assert drawn == same


def test_a_snapshot_goes_on_with_another_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_store, "BLOCK", 64)
    slates, _, _ = played(None)
    first = made(None)
    np.testing.assert_array_equal(first.replay(USERS[:400]), slates[:400])
    ledger, rng = first.ledger, first._frame.rng
    snapshot = first.snapshot()
    for engine in (Threads(2), on(FakeRay(2), monkeypatch)):
        again = OverlapGreedy.restore(snapshot, ledger=Ledger(BUDGET), rng=rng, engine=engine)
        assert again.snapshot() == snapshot
    assert ledger.charges


@pytest.mark.parametrize("engine", [Threads(), Threads(2), CLUSTERS[1]], ids=["one", "two", "ray"])
def test_who_answers_between_two_rows_is_in_neither(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frozen when a release begins: the rest is what rows left of the singles, to the last tick."""
    engine = on(engine, monkeypatch) if isinstance(engine, FakeRay) else engine
    store, whose, chain = UserStore(12), np.zeros(1, dtype=np.int64), list[Ints]()
    terms = Terms(np.array([4096]), np.ones(12), np.zeros(12, dtype=np.int64), CLIP)
    store.add_rows(USERS.family, USERS.table, range(300))
    asked = participants(store, engine, terms)
    left = asked.sums((), whose, 1)
    for number, item in enumerate((3, 5, 8)):
        left = left - asked.losses(tuple(chain), np.array([item]), whose, 1)
        chain.append(np.array([item]))
        low = 300 + 200 * number
        store.add_rows(USERS.family, USERS.table, range(low, low + 200), rounds=np.arange(low, low + 200))
        np.testing.assert_array_equal(asked.sums(tuple(chain), whose, 1), left)
        store.erase(np.arange(low, low + 100))
    assert (left >= 0).all()
    assert (participants(store, engine, terms).sums((), whose, 1) > asked.sums((), whose, 1)).all()


def test_what_is_no_engine_is_refused() -> None:
    assert engine_called("threads") == engine_called("threads")
    assert engine_called("ray://head:10001") == OnRay("ray://head:10001")
    for wrong in ("cluster", 3, Threads):
        with pytest.raises(InvalidInput, match="engine is"):
            engine_called(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="threads"):
        Threads(0)


def test_a_cluster_remote_rounds_must_want_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    with pytest.raises(InvalidInput, match="RAY_AUTH_MODE=token"):
        OnRay("ray://head:10001").over([], len)


def test_no_thread_outlives_a_release() -> None:
    before = set(threading.enumerate())
    learner = OverlapGreedy(
        12, 3, engine=Threads(4), horizon=1_000, epsilon=4.0, delta=1e-6, rng=SeededSource(1)
    )
    learner.replay(USERS)
    assert set(threading.enumerate()) <= before
