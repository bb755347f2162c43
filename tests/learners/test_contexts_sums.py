"""Overlap sums with contexts: what hostile people can move, what is kept, snapshots, late answers, what is shown."""

from __future__ import annotations

import gc
import weakref
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import diminuendo as dim
from diminuendo import Contexts, Objective, Oracle, People, SeededCoins
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.replay import loop
from diminuendo.learners.overlap.contexts import one_per_type
from diminuendo.learners.overlap.contexts.one_per_type import OnePerType
from diminuendo.learners.overlap.contexts.running import TypedSumsMemory
from diminuendo.learners.overlap.memory import Asks
from diminuendo.learners.overlap.recipes import OverlapGreedy, OverlapSums
from diminuendo.learners.overlap.running_means import Measured, RunningMeans
from diminuendo.privacy.budget import Budget, Unit
from diminuendo.privacy.ledger import Ledger
from diminuendo.sums.chains.cells import SharedFocus
from diminuendo.sums.chains.focus import Focus
from diminuendo.sums.chains.running_by_type import RunningByType
from diminuendo.types import EMPTY_SLOT, NEVER, Decision, Ints
from tests.kit.slow import mostly_slow
from tests.learners.test_overlap_greedy import BUDGET, _erratic, hostile, policy_of, published
from tests.learners.test_overlap_sums import Script, held, moved

MADE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
SEEN: dict[str, Any] = {"epsilon": 200.0, "delta": 1e-6}  # little noise: slates differ soon
GROUPS = 4


def groups_of_taste(rounds: int, n_items: int = 12, seed: int = 1) -> tuple[People, Ints]:
    """People of group g want items 3 g, 3 g + 1 and 3 g + 2, about; and the group of each of them."""
    random = np.random.default_rng(seed)
    group = random.integers(GROUPS, size=rounds)
    likely = np.full((rounds, n_items), 0.02)
    for item in range(n_items):
        likely[group == item // 3, item] = 0.5
    wanted = scipy.sparse.csr_array((random.random(likely.shape) < likely).astype(float))
    return People(dim.NoisyOr(), wanted), group[:, None]


def made(people: int, *, slots: int = 2, private: bool = False, **more: Any) -> Learner:
    contexts = Contexts(group=GROUPS, private=private)
    settings = SEEN | {"coins": SeededCoins(4), "contexts": contexts} | more
    return OverlapSums(12, slots, horizon=people, **settings)


def memory_of(learner: Learner) -> TypedSumsMemory:
    memory = policy_of(learner)._memory
    assert isinstance(memory, TypedSumsMemory)
    return memory


def sums_of(learner: Learner) -> RunningByType:
    return memory_of(learner)._sums


def slates_of(learner: Learner) -> OnePerType:
    shown = policy_of(learner)._shown
    assert isinstance(shown, OnePerType)
    return shown


def assert_same(one: Learner, other: Learner) -> None:
    """All that is kept of people, and all that follows from what was published."""
    mine, theirs = memory_of(one).extra(), memory_of(other).extra()
    assert mine.keys() == theirs.keys()
    for name, part in mine.items():
        np.testing.assert_array_equal(part, theirs[name], name)
    for mine_too, theirs_too in zip(memory_of(one).arrays, memory_of(other).arrays, strict=True):
        np.testing.assert_array_equal(mine_too, theirs_too)
    np.testing.assert_array_equal(slates_of(one).slates, slates_of(other).slates)


# What one person can move, along a common view.


def chains_and_shares(patch: pytest.MonkeyPatch, seed: int, types: int, n: int, private: bool) -> None:
    """Public choices that a learner might make: in every batch each type has any chain, and all parts are published."""
    original, split = TypedSumsMemory.ask_about, np.random.default_rng(seed).dirichlet(np.ones(6))

    def ask_about(memory: TypedSumsMemory, asks: Asks, batch: int) -> None:
        random = np.random.default_rng([seed, batch])
        chains = np.array([random.permutation(n)[:2] for _ in range(types)])
        chains[random.random(types) < 0.2, 1] = EMPTY_SLOT
        original(memory, asks._replace(by_type=chains), batch)

    def shared(weights: Ints, *_: Any, **__: Any) -> SharedFocus:
        singles, others, *each = (1 + int(1000 * share) for share in split)
        return SharedFocus(weights, singles, others, tuple(each[:2]), tuple(each[2:]) if private else (0, 0))

    patch.setattr(TypedSumsMemory, "ask_about", ask_about)
    patch.setattr(one_per_type, "shared_focus", shared)


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("seed", mostly_slow(range(200), range(3)))
def test_hostile_people_move_no_more_than_is_charged(
    seed: int, private: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two streams that differ in one round, the same view of all others. Where contexts are private she has another
    context too; some answer late, she at another time in either; items come and go."""
    random = np.random.default_rng(seed)
    n, rounds = 4, 60
    chains_and_shares(monkeypatch, seed, 16, n, private)
    others = [hostile(random, n) for _ in range(rounds)]
    context = random.integers(-1, 3, size=(rounds, 2))
    late = random.choice([0, 0, 0, 7, 20], size=rounds)
    victim, pair = int(random.integers(rounds - 1)), (hostile(random, n), hostile(random, n))
    hers = random.integers(-1, 3, size=(2, 2)) if private else context[[victim, victim]]
    delays, script, shown = random.choice([0, 0, 9, 25], size=2), Script(), [list[Any](), list[Any]()]
    with np.errstate(all="ignore"):
        for which in (0, 1):
            with published(script, replayed=which == 1):
                learner = OverlapSums(
                    n, 3, horizon=rounds, absent=[3], coins=SeededCoins(seed), **MADE,
                    contexts=Contexts(country=3, hour=3, private=private),
                )  # fmt: skip
                waiting: dict[int, list[tuple[Decision, Objective]]] = defaultdict(list)
                for t in range(rounds):
                    if t == 17:
                        learner.appear([3])
                    if t == 31:
                        learner.retire([0])
                    known = hers[which] if t == victim else context[t]
                    decision = learner.choose(context=[None if c < 0 else c for c in known.tolist()])
                    if t != victim:
                        shown[which].append(list(decision.slate))
                    person = pair[which] if t == victim else others[t]
                    if person is not None and (t == victim or not _erratic(person)):
                        waiting[t + int(delays[which] if t == victim else late[t])].append((decision, person))
                    for earlier, answer in waiting.pop(t, []):
                        learner.observe(earlier, answer)
    assert shown[0] == shown[1], "what others see is the same along the same view"
    assert len(script) > 20
    assert max(len(asked.chains) for asked in sums_of(learner)._asked.values()) > 5
    assert moved(script) <= BUDGET.limit
    often = int(sums_of(learner)._often[policy_of(learner).plan.schedule.batch_of(victim)])
    for shift, _, _ in script:
        if shift.size > 1:  # singles, a column's cells or counts, or all questions: payoffs are one number
            assert int((shift.astype(object) ** 2).sum()) <= 2 * (1024 * often) ** 2


@pytest.mark.parametrize("private", [False, True])
def test_a_person_can_move_nearly_all_that_is_charged(private: bool) -> None:
    """The charge is not idle. A prior keeps the chain the same. She is of the first batch, wants one item or another,
    and, where contexts are private, has one value or another: what a release spends on singles, cells, rows and counts
    is all moved. Payoffs, a twentieth, are not, and whole numbers take off a little."""
    n, rounds = 6, 400
    one, other = (dim.person(dim.NoisyOr(), {item: 1.0}, n_items=n) for item in (0, 5))
    script = Script()
    for which in (0, 1):
        with published(script, replayed=which == 1):
            learner = OverlapSums(
                n, 2, horizon=rounds, prior=[1.0] + [0.0] * 5, prior_people=10**9, coins=SeededCoins(1), **MADE,
                contexts=Contexts(group=2, private=private),
            )  # fmt: skip
            for t in range(rounds):
                decision = learner.choose(context=int(private and t == 0 and which))
                learner.observe(decision, (one, other)[which] if t == 0 else one)
    assert 0.97 * 0.95 * float(BUDGET.limit) < moved(script) <= float(BUDGET.limit)


def test_charges_are_those_of_a_run_without_contexts() -> None:
    """The same plan; where published payoffs tell of drift, less is charged, and that is up to the noise."""
    people, group = groups_of_taste(600)
    planned, charged = [], []
    for contexts, columns in ((None, None), (Contexts(group=GROUPS), group)):
        ledger = Ledger(Budget(200.0, 1e-6, accountant="continuous-gaussian"))
        learner = made(600, contexts=contexts, ledger=ledger)
        learner.replay(people, contexts=columns)
        assert learner.events is not None
        planned.append(ledger.budget.worth_of(learner.events))
        charged.append([charge.event for charge in ledger.charges][:4])
        assert 199.0 < ledger.spent() <= planned[-1] <= 200.0
    assert planned[0] == planned[1]
    assert charged[0] == charged[1], "before a drift test has anything to compare with"


# The same as the loop; late answers; who is not heard.


@pytest.mark.parametrize("private", mostly_slow([False, True], [True]))
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"prior": [0.3] * 6 + [0.2] * 6},
        {"eligible": [range(6), range(6, 12)]},
        {"absent": [0, 1, 2]},
        {"slots": 1},
    ],
)
def test_replay_is_the_loop(more: dict[str, Any], private: bool) -> None:
    people, group = groups_of_taste(500)
    one, other = (made(500, private=private, **more) for _ in range(2))
    for part in (slice(205), slice(205, None)):
        shown = one.replay(people[part], contexts=group[part])
        np.testing.assert_array_equal(shown, loop(other, people[part], contexts=group[part]))
        for learner in (one, other):
            learner.appear([1, 2])
            learner.retire([5])
    assert_same(one, other)
    assert len(np.unique(slates_of(one).slates, axis=0)) > 1


@pytest.mark.parametrize("private", [False, True])
def test_late_answers_and_silent_people_are_the_same_in_a_replay(private: bool) -> None:
    """Who answers in time counts for her batch; who does not, or had all her visits, is in no sum and no count."""
    people, group = groups_of_taste(500)
    random = np.random.default_rng(2)
    late = random.choice([0, 3, 19, 40, NEVER], size=500)
    persons = random.integers(300, size=500)
    one, other = (made(500, private=private, patience=20, visits=2) for _ in range(2))
    shown = one.replay(people, contexts=group, late=late, persons=persons)
    np.testing.assert_array_equal(shown, loop(other, people, contexts=group, late=late, persons=persons))
    assert_same(one, other)
    assert sums_of(one)._added.sum() < 400


def test_rounds_beyond_her_visits_are_not_counted_where_people_are_kept_either() -> None:
    people, group = groups_of_taste(300)
    contexts, persons = Contexts(group=GROUPS, private=True), np.zeros(300, dtype=np.int64)
    learner = OverlapGreedy(12, 2, horizon=300, contexts=contexts, coins=SeededCoins(1), **SEEN)
    learner.replay(people, contexts=group, persons=persons)
    assert len(policy_of(learner)._memory._values.entries) == 1  # type: ignore[attr-defined]


def test_a_late_answer_counts_for_the_chain_of_her_own_batch_and_type() -> None:
    """All answers of one round in four come much later: sums over all batches are those of answers in time."""
    people, group = groups_of_taste(500)
    in_time, behind = (made(500) for _ in range(2))
    ends = policy_of(in_time).plan.schedule.ends
    waiting = list[tuple[Decision, Any]]()
    for t in range(ends[0] + 3):
        for learner in (in_time, behind):
            decision = learner.choose(context=int(group[t, 0]))
            if learner is behind and t % 4 == 0:
                waiting.append((decision, people[t]))
            else:
                learner.observe(decision, people[t])
    assert (sums_of(in_time)._sums.rows != sums_of(behind)._sums.rows).any()
    for answer in waiting:
        behind.observe(*answer)
    for mine, theirs in zip(
        (sums_of(in_time)._sums.rows, *sums_of(in_time)._apart[1]),
        (sums_of(behind)._sums.rows, *sums_of(behind)._apart[1]),
        strict=True,
    ):
        if mine.shape == theirs.shape:  # the chains that follow may be others
            np.testing.assert_array_equal(mine, theirs)


def test_a_release_for_everybody_publishes_nothing_of_columns() -> None:
    people, group = groups_of_taste(20)
    learner = made(500)
    first = policy_of(learner).plan.schedule.ends[0]
    learner.replay(people[:first], contexts=group[:first])
    script = Script()
    with published(script, replayed=False):
        found = memory_of(learner).begin_release(0, 0, Focus(np.full(12, 256), 512))
    assert [shift.shape for shift, _, _ in script] == [(12,), (0, 12)], (
        "singles, and no chains in the first batch"
    )
    np.testing.assert_array_equal(found.singles().sums, script[0][2])
    assert not found.told


# Snapshots and ledgers.


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("after", mostly_slow([30, 310], [310]))
def test_a_snapshot_goes_on_as_it_was(after: int, private: bool, tmp_path: Path) -> None:
    """With a ledger on disk: what was published after the snapshot is published again, not drawn again."""
    people, group = groups_of_taste(500)
    unit = Unit(relation="replace-with-context") if private else Unit()
    budget = Budget(200.0, 1e-6, unit=unit, accountant="continuous-gaussian")
    with Ledger.open(tmp_path / "ledger", budget) as ledger:
        learner = made(500, private=private, ledger=ledger, coins=None)
        learner.replay(people[:after], contexts=group[:after])
        kept = learner.snapshot()
        shown = learner.replay(people[after:450], contexts=group[after:450])
        spent = ledger.spent()
    with Ledger.open(tmp_path / "ledger") as again:
        second = OverlapSums.restore(kept, ledger=again)
        np.testing.assert_array_equal(second.replay(people[after:450], contexts=group[after:450]), shown)
        assert again.spent() == spent
        assert_same(learner, second)
        second.replay(people[450:], contexts=group[450:])
        assert again.spent() <= 200.0


def test_an_altered_snapshot_is_refused() -> None:
    people, group = groups_of_taste(310)
    learner = made(500, private=True)
    learner.replay(people, contexts=group)
    sums = sums_of(learner)
    last = max(sums._asked)
    arrays: list[Any] = [sums._sums.rows, sums._sums.asked, sums._sums.counts, sums._asked[last].chains]
    arrays += [sums._sums.there, sums._sums.within, *sums._apart[sums.open_batch], sums._asked[last].of_type]
    for array in arrays:
        before = array.copy()
        array[...] = True if array.dtype == np.bool_ else 1 << 60 if array.dtype == np.int64 else 10**9
        with pytest.raises(InvalidInput, match="altered"):
            OverlapSums.restore(learner.snapshot())
        array[...] = before
    sums._apart[99] = sums._apart[sums.open_batch]
    with pytest.raises(InvalidInput, match="altered"):
        OverlapSums.restore(learner.snapshot())
    del sums._apart[99]
    OverlapSums.restore(learner.snapshot())


def test_a_release_that_failed_is_made_at_the_next_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full each time that one more part is to be kept: nobody is added twice."""
    people, group = groups_of_taste(200)
    learner, twin = (made(200, private=True) for _ in range(2))
    kept, failed = sums_of(learner).ledger._kept, set[str]()
    original = kept.once

    def once(name: str, draw: Any) -> Any:
        if name.startswith("people") and name not in failed:
            failed.add(name)
            raise OSError("disk full")
        return original(name, draw)

    monkeypatch.setattr(kept, "once", once)
    whole = loop(twin, people, contexts=group)
    for t in range(200):
        decision = None
        while decision is None:
            try:
                decision = learner.choose(context=int(group[t, 0]))
            except OSError:
                assert learner.rounds == t, "nobody was shown anything"
        assert list(decision.slate) == whole[t].tolist()
        learner.observe(decision, people[t])
    assert len(failed) > 5
    assert_same(learner, twin)
    assert sums_of(learner).ledger.spent() == sums_of(twin).ledger.spent()


# Nobody is kept.


def test_nobody_is_kept_and_nothing_in_memory_grows_with_people() -> None:
    """But for what was published: the ledger keeps that."""

    class Wish:
        def __call__(self, chosen: frozenset[int]) -> float:
            return float(3 in chosen)

    people, group = groups_of_taste(9_000)
    learner = made(10_000, patience=10)
    gone = list[weakref.ref[Any]]()
    for t in range(30):
        wish = Wish()
        gone.append(weakref.ref(wish))
        learner.observe(learner.choose(context=t % GROUPS), Oracle(wish, 12))
        del wish
    gc.collect()
    assert not any(one() is not None for one in gone)
    policy = policy_of(learner)
    end, then = policy.plan.schedule.ends[14:16]
    learner.replay(people[: end - 10], contexts=group[: end - 10])
    before, batch = held(learner), policy._position.made
    learner.replay(people[end - 10 : then - 30], contexts=group[end - 10 : then - 30])
    assert policy._position.made == batch == 15, "nothing was published meanwhile"
    assert held(learner) == before


# What is shown.


@pytest.mark.parametrize("private", [False, True])
def test_types_that_want_other_things_are_shown_other_slates(private: bool) -> None:
    people, group = groups_of_taste(3_000)
    learner = made(3_000, private=private, epsilon=3.0)
    shown = learner.replay(people, contexts=group)
    for number in range(GROUPS):
        assert set(shown[2_000:][group[2_000:, 0] == number].ravel() // 3) == {number}
    asked, slates = sums_of(learner)._asked[max(sums_of(learner)._asked)], slates_of(learner).slates
    for kind, slate in enumerate(slates.tolist()):
        assert asked.chains[asked.of_type[kind]][0] in slate, (
            "people are asked along what was picked for them"
        )
    best = people.values(np.tile(dim.greedy(people, 2).slate, (3_000, 1))).mean()
    assert people.values(shown).mean() > 1.3 * best


def test_where_contexts_say_nothing_all_are_shown_the_same() -> None:
    people, group = groups_of_taste(3_000)
    mixed = np.random.default_rng(5).permutation(group)
    learner = made(3_000, epsilon=3.0)
    plain = made(3_000, epsilon=3.0, contexts=None)
    shown = learner.replay(people, contexts=mixed)
    assert len(np.unique(slates_of(learner).slates, axis=0)) == 1
    assert people.values(shown).mean() > 0.95 * people.values(plain.replay(people)).mean()


def test_when_tastes_change_it_starts_again() -> None:
    """Halfway every group comes to want what another wanted."""
    before, group = groups_of_taste(3_000)
    after, other = groups_of_taste(3_000, seed=2)
    people = People(dim.NoisyOr(), scipy.sparse.vstack([before.matrices[0], after.matrices[0]]).tocsr())
    learner = made(6_000, epsilon=3.0)
    shown = learner.replay(people, contexts=np.concatenate([group, (other + 1) % GROUPS]))
    begins = policy_of(learner)._position.memory_begins
    assert begins > 0
    assert np.flatnonzero(sums_of(learner)._sums.there)[0] == begins
    assert min(sums_of(learner)._asked) >= begins
    earned = people.values(shown)
    assert earned[5_000:].mean() > 0.9 * earned[2_000:3_000].mean()


def test_too_many_types_are_refused_before_anything_is_paid() -> None:
    ledger = Ledger(Budget(200.0, 1e-6, accountant="continuous-gaussian"))
    with pytest.raises(InvalidInput, match="Join values of a column, or leave a column out"):
        OverlapSums(2_000, 10, horizon=500, contexts=Contexts(city=50_000), ledger=ledger, **SEEN)
    assert not ledger.charges


def test_rows_after_other_sets_are_the_same_for_many_keys_at_once() -> None:
    random, rows = np.random.default_rng(1), RunningMeans(12, 4, 3)
    for key in ([0], [1, 2, 0], [1], [1, 0], [3, 1], [0, 1]):
        rows.add(key, Measured(100 * random.random(3), np.array([100.0, 50.0, 0.0]), 10.0))
    keys = [[0], [2, 0], [1, 2], [1], [1, 0], [0, 3, 1], [2, 1, 0]]
    mean, deviation = rows.with_others_each(keys, rows.would_be_each(keys, None))
    for number, key in enumerate(keys):
        (expected,), (apart,) = rows.with_others(key, rows.get(key))
        np.testing.assert_allclose(mean[number], expected)
        np.testing.assert_allclose(deviation[number], apart)
