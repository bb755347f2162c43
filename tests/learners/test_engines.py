"""People in parts: one process, threads or actors, any number of them: what is published is the same bit for bit."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import diminuendo as dim
from diminuendo import Oracle, OverlapGreedy, People, SeededCoins
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.kept import on_ray
from diminuendo.learners.base.kept.engines import Here, OnRay, engine_called
from diminuendo.learners.base.kept.one_place import Arrived, Kept
from diminuendo.objectives.person import Person
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.ledger import Ledger
from diminuendo.streams import taste_groups
from diminuendo.streams.walks import Segment, singles
from diminuendo.sums.chains.people.entries import Entries
from diminuendo.sums.chains.people.frozen import AskedPeople, PeopleLost
from diminuendo.sums.chains.people.parted import PartedPeople
from diminuendo.sums.clip import Clip
from diminuendo.types import EMPTY_SLOT, Ints
from tests.kit.fake_ray import FakeRay
from tests.kit.families import families, specimens
from tests.learners.test_stored_objectives import alone

CLIP = Clip()
WEIGHTS = np.array([4096, 1000, 7])
BUDGET = Budget(8.0, 1e-6, accountant="continuous-gaussian")


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    """Actors of this process."""
    fake = FakeRay()
    monkeypatch.setattr(on_ray, "joined", lambda *_, **__: (fake, lambda: None))
    return fake


def crowd(name: str, seed: int = 0) -> Iterator[People]:
    for family, n_items, matrices in specimens(name):
        several = tuple(np.tile(np.asarray(matrix), (7, 1)) for matrix in matrices)
        rng = np.random.default_rng(seed)
        kept = tuple(part * (rng.random(part.shape) < 0.8) for part in several)
        yield People(family, kept, n_items)


def fill(kept: Any, people: People, *, functions: bool = True) -> None:
    """Some of a table, some one by one, some who are functions; some items were missing for some of them."""
    n_items, third = people.n_items, len(people) // 3
    nothing, missing = np.zeros(n_items, dtype=np.bool_), np.arange(n_items) == 1
    kinds = np.arange(len(people)) % 2
    kept.keep_rows(Arrived(people.family, people.table, range(third), 0, kinds[:third], nothing))
    some = np.arange(third, 2 * third)[::2]
    kept.keep_rows(Arrived(people.family, people.table, some, 1, kinds[some], missing))
    worth = singles(Segment(people.family, people.table, range(len(people))), n_items)
    for number in range(2 * third, len(people)):
        person = alone(people, number)
        row = worth.between(number, number + 1)
        order = np.argsort(row.indices)
        said = row.indices[order].astype(np.int64), row.data[order]
        kept.keep(person, *said, 2, int(kinds[number]))
        if functions and number % 4 == 0:
            kept.keep(
                Oracle(partial(value_of, person), n_items),
                *said,
                0,
                int(kinds[number]),
            )


def value_of(person: Person, chosen: frozenset[int]) -> float:
    return person.value(sorted(chosen))


def told(asked: AskedPeople, n_items: int) -> list[Ints]:
    """All questions that a release may have."""
    everybody, apart = np.zeros(2, dtype=np.int64), np.array([0, 1])
    found = [asked.singles(everybody, 1), asked.counts(apart, 2, 1024)]
    for items, questions, many in (
        ([0, 0], everybody, 1),
        ([min(2, n_items - 1), 1], apart, 2),
        ([EMPTY_SLOT, n_items - 1], np.array([-1, 0]), 1),
    ):
        joining = np.array(items)
        found += [asked.row(joining, questions, many), asked.row(joining, questions, many)]
        asked.take(joining)
        found += [asked.sums(apart, 2), asked.singles(apart, 2)]
    found.append(asked.around(np.array([1, EMPTY_SLOT, 0])))
    return found


def one_place(n_items: int) -> Kept:
    return Kept(n_items, CLIP, Entries(n_items, 2, CLIP.ceiling))


@families
def test_any_partition_gives_the_same_numbers(name: str, ray: FakeRay) -> None:
    for people in crowd(name):
        whole, n_items = one_place(people.n_items), people.n_items
        fill(whole, people)
        factors = np.linspace(0.3, 1.0, n_items)
        expected = told(whole.begin(WEIGHTS, factors), n_items)
        assert expected[0].any()
        for parts in (1, 2, 7):
            asked = PartedPeople(whole.frozen(WEIGHTS, factors, parts))
            np.testing.assert_equal(told(asked, n_items), expected)
            there = OnRay(parts).room(n_items, CLIP, Entries(n_items, 2, CLIP.ceiling))
            fill(there, people)
            assert len(there) == len(whole)
            np.testing.assert_equal(told(there.begin(WEIGHTS, factors), n_items), expected)
        for engine in (Here(7, threads=3), Here(2, threads=2)):
            threads = engine.room(n_items, CLIP, Entries(n_items, 2, CLIP.ceiling))
            fill(threads, people)
            np.testing.assert_equal(told(threads.begin(WEIGHTS, factors), n_items), expected)


def test_a_part_that_is_left_out_or_asked_twice_is_seen() -> None:
    (people,) = crowd("noisy-or")
    whole = one_place(people.n_items)
    fill(whole, people)
    factors = np.ones(people.n_items)
    parts = whole.frozen(WEIGHTS, factors, 7)
    expected = told(whole.begin(WEIGHTS, factors), people.n_items)
    for wrong in (parts[1:], [*parts, parts[3]]):
        assert any(
            (a != b).any() for a, b in zip(told(PartedPeople(wrong), people.n_items), expected, strict=True)
        )


def test_what_rows_say_is_kept_once() -> None:
    """Of people of a table nothing is copied; of those who came one by one, nothing once they lie in a table."""
    people = taste_groups(900, 12, groups=4, items_per_group=5, seed=1)
    kept = Kept(12, CLIP, Entries(12, 1, CLIP.ceiling))
    nobody = np.zeros(900, dtype=np.int64), np.zeros(12, dtype=np.bool_)
    kept.keep_rows(Arrived(people.family, people.table, range(300), 0, *nobody))
    kept.keep_rows(Arrived(people.family, people.table, range(300, 600), 1, *nobody))
    (chunk,) = kept.entries.chunks
    assert chunk.items is people.table.columns
    assert chunk.values is people.table.values
    for number in range(600, 900):
        row = people.family.rows(people.table, 12)[0].between(number, number + 1)
        kept.keep(alone(people, number), row.indices.astype(np.int64), row.data, 2)
    before = kept.begin(WEIGHTS, np.ones(12)).singles(np.zeros(1, dtype=np.int64), 1)
    gathered = kept.people.segments[-1].table
    assert [chunk.items for chunk in kept.entries.chunks][-1] is gathered.columns
    assert len(kept.entries.chunks) == 2
    after = kept.begin(WEIGHTS, np.ones(12)).singles(np.zeros(1, dtype=np.int64), 1)
    np.testing.assert_array_equal(before, after)


def test_what_rows_do_not_say_is_kept_besides() -> None:
    """Who says less of an item, because it was not there for her, is not read from her row."""
    people = taste_groups(600, 12, groups=4, items_per_group=5, seed=1)
    kept = Kept(12, CLIP, Entries(12, 1, CLIP.ceiling))
    kept.keep_rows(
        Arrived(people.family, people.table, range(600), 0, np.zeros(600, dtype=np.int64), np.arange(12) == 3)
    )
    found = kept.begin(WEIGHTS, np.ones(12)).singles(np.zeros(1, dtype=np.int64), 1)
    assert found[0, 3] == 0
    assert (np.delete(found[0], 3) > 0).all()
    *_, items, values = kept.entries.arrays()
    assert not values[items == 3].any()


PEOPLE = taste_groups(900, 12, groups=4, items_per_group=5, seed=1)


def noted(learner: Any) -> list[bytes]:
    """Everything that the learner publishes from now on."""
    books, drawn = learner.ledger._kept, list[bytes]()
    once = books.once

    def kept(*given: Any) -> Any:
        found = once(*given)
        drawn.append(np.asarray(found).tobytes())
        return found

    books.once = kept
    return drawn


def made(engine: Any, **more: Any) -> Any:
    given: dict[str, Any] = {"horizon": 900, "epsilon": 8.0, "delta": 1e-6, "coins": SeededCoins(3)}
    return OverlapGreedy(12, 3, **given, ledger=Ledger(BUDGET), engine=engine, **more)


def played(engine: Any, people: People = PEOPLE, **more: Any) -> tuple[Any, list[bytes], Any]:
    """Slates, everything that was published, and the learner."""
    learner = made(engine, **more)
    drawn = noted(learner)
    return learner.replay(people), drawn, learner


@pytest.mark.parametrize(
    "engine", ["threads", Here(2), Here(7), Here(7, 3), OnRay(1), OnRay(2), OnRay(7)], ids=repr
)
def test_releases_are_the_same_whichever_engine(engine: Any, ray: FakeRay) -> None:
    slates, drawn, learner = played(None)
    others, same, other = played(engine)
    np.testing.assert_array_equal(slates, others)
    assert len(drawn) > 20
    assert drawn == same
    if isinstance(engine, Here):
        assert learner.snapshot() == other.snapshot()


def test_snapshots_go_from_one_engine_to_another(ray: FakeRay) -> None:
    _, _, learner = played(OnRay(3), PEOPLE[:400])
    there = learner.policy._memory._kept
    here = Kept(12, CLIP, Entries(12, 1, CLIP.ceiling))
    here.read(*there.written())
    back = OnRay(2).room(12, CLIP, Entries(12, 1, CLIP.ceiling))
    back.read(*here.written())
    assert len(here) == len(back) == 400
    assert [actor.there.size() for actor in ray.actors[3:]] == [200, 200], "spread over all actors"
    whose, found = np.zeros(1, dtype=np.int64), []
    for kept in (there, here, back):
        asked = kept.begin(np.full(20, 5), np.ones(12))
        found.append([asked.singles(whose, 1), asked.row(np.array([3]), whose, 1)])
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    entries, rows = here.written()
    for wrong in (
        {"batches": rows["batches"][:-1]},
        {"0.0.indptr": rows["0.0.indptr"][:-1]},
        {"families": rows["batches"]},
    ):
        with pytest.raises(InvalidInput, match="snapshot"):
            OnRay(2).room(12, CLIP, Entries(12, 1, CLIP.ceiling)).read(entries, rows | wrong)


def test_who_is_erased_or_forgotten_is_on_no_actor(ray: FakeRay) -> None:
    kinds, nothing = np.zeros(900, dtype=np.int64), np.zeros(12, dtype=np.bool_)
    whose = np.zeros(1, dtype=np.int64)
    found = []
    for place in (Here(), OnRay(3)):
        kept = place.room(12, CLIP, Entries(12, 1, CLIP.ceiling))
        for batch in range(3):
            rows = range(300 * batch, 300 * batch + 300)
            kept.keep_rows(Arrived(PEOPLE.family, PEOPLE.table, rows, batch, kinds[:300], nothing))
            kept.mark(np.arange(1000 * batch, 1000 * batch + 300))
        said = [kept.begin(np.full(3, 9), np.ones(12)).singles(whose, 1)]
        kept.erase(np.arange(1100, 1200))
        assert len(kept) == 800
        said.append(kept.begin(np.full(3, 9), np.ones(12)).singles(whose, 1))
        kept.forget(1)
        assert len(kept) == 500
        said.append(kept.begin(np.full(3, 9), np.ones(12)).singles(whose, 1))
        found.append(said)
    np.testing.assert_array_equal(found[0], found[1])
    ray.actors[-1].lost = True
    np.testing.assert_array_equal(kept.begin(np.full(3, 9), np.ones(12)).singles(whose, 1), said[-1])
    assert len(kept) == 500


@pytest.mark.parametrize(
    ("when", "since"), [("begin", 600), ("singles", 0), ("around", 600), ("keep_rows", 600)]
)
def test_a_lost_actor_comes_back_with_its_people(when: str, since: int, ray: FakeRay) -> None:
    """Between releases, and before anything of one is published, nobody can tell."""
    expected, learner = played(None)[1], made(OnRay(3))
    drawn = noted(learner)
    learner.replay(PEOPLE[:since])
    ray.actors[1].dies_at = when, 1
    learner.replay(PEOPLE[since:])
    assert len(ray.actors) == 4
    assert drawn == expected


def test_a_chain_that_loses_somebody_ends_as_after_a_crash(ray: FakeRay) -> None:
    """Rows that were published stay, no further one is drawn, and what is left is singles without them."""
    learner = made(OnRay(3))
    memory = learner.policy._memory
    memory.keep_rows(PEOPLE, 0, 300, 0, np.zeros(0, dtype=np.int64))
    whole = Here().room(12, CLIP, Entries(12, 1, CLIP.ceiling))
    nobody = np.zeros(300, dtype=np.int64), np.zeros(12, dtype=np.bool_)
    whole.keep_rows(Arrived(PEOPLE.family, PEOPLE.table, range(300), 0, *nobody))
    drawn = noted(learner)
    asked = memory.begin_release(0, 0, learner.policy._shown.focus.of_chain(300))
    asked.begin()
    asked.singles()
    assert asked.row(4) is not None
    ray.actors[1].lost = True
    assert asked.row(5) is None
    assert asked.row(6) is None, "nor does it go on with whoever took her place"
    assert len(drawn) == 3, "a focus, singles and one row"
    assert asked.rest() is not None
    names = [entry.name for entry in learner.ledger.drawn]
    assert sum("row" in name for name in names) == 1
    assert len(memory._kept) == 300, "she is back for the next release"


def test_a_learner_whose_actor_is_lost_in_a_chain_goes_on(ray: FakeRay) -> None:
    learner = made(OnRay(2))
    ray.actors[1].dies_at = "row", 3
    assert learner.replay(PEOPLE).shape == (900, 3)
    assert len(ray.actors) == 3
    learner.ledger.spent()


def test_who_does_not_remember_says_so(ray: FakeRay) -> None:
    learner = made(OnRay(2, remembers=False))
    learner.replay(PEOPLE[:300])
    ray.actors[0].lost = True
    with pytest.raises(PeopleLost, match="snapshot"):
        learner.replay(PEOPLE[300:])


@pytest.mark.parametrize("engine", [Here(), Here(7, 2), OnRay(2)], ids=repr)
def test_who_answers_between_two_rows_is_in_neither(engine: Any, ray: FakeRay) -> None:
    """Frozen when a release begins: the rest is what rows left of the singles, to the last tick."""
    kept = engine.room(12, CLIP, Entries(12, 1, CLIP.ceiling))
    nobody, whose = np.zeros(12, dtype=np.bool_), np.zeros(1, dtype=np.int64)
    kinds = np.zeros(300, dtype=np.int64)
    kept.keep_rows(Arrived(PEOPLE.family, PEOPLE.table, range(300), 0, kinds, nobody))
    asked = kept.begin(np.array([4096]), np.ones(12))
    left = asked.singles(whose, 1)
    for number, item in enumerate((3, 5, 8)):
        left = left - asked.row(np.array([item]), whose, 1)
        asked.take(np.array([item]))
        low = 300 + 200 * number
        kept.keep_rows(Arrived(PEOPLE.family, PEOPLE.table, range(low, low + 200), 0, kinds[:200], nobody))
        kept.mark(np.arange(low, low + 200))
        np.testing.assert_array_equal(asked.sums(whose, 1), left)
        kept.erase(np.arange(low, low + 100))
    assert (left >= 0).all()
    before = asked.singles(whose, 1)
    assert (kept.begin(np.array([4096]), np.ones(12)).singles(whose, 1) > before).all()
    if isinstance(engine, OnRay):  # actors know one release at a time, and say nothing of others in its name
        with pytest.raises(PeopleLost):
            asked.row(np.array([1]), whose, 1)


def test_types_have_chains_of_their_own_on_any_engine(ray: FakeRay) -> None:
    known = dim.Contexts({"group": ["a", "b", "c"]})
    people = PEOPLE.with_contexts(known, np.arange(900)[:, None] % 3)
    slates, drawn, _ = played(None, people, contexts=known)
    for engine in (Here(7), OnRay(3)):
        others, same, _ = played(engine, people, contexts=known)
        np.testing.assert_array_equal(slates, others)
        assert drawn == same


def test_what_is_no_engine_is_refused() -> None:
    assert engine_called("threads") == engine_called("threads")
    for wrong in ("cluster", 3, Here):
        with pytest.raises(InvalidInput, match="engine is"):
            engine_called(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="parts"):
        Here(0)


def test_a_cluster_elsewhere_must_want_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    with pytest.raises(InvalidInput, match="RAY_AUTH_MODE=token"):
        OnRay(2, address="ray://head:10001").room(3, CLIP, Entries(3, 1, 1.0))


def test_no_thread_outlives_a_release() -> None:
    people = taste_groups(300, 12, groups=3, items_per_group=5, seed=1)
    before = set(threading.enumerate())
    options: dict[str, Any] = {"horizon": 400, "epsilon": 4.0, "delta": 1e-6, "coins": SeededCoins(1)}
    learner = OverlapGreedy(12, 3, engine=Here(4, 4), **options)
    learner.replay(people)
    assert set(threading.enumerate()) <= before
