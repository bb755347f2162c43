"""Arounds: when slates are asked around, what is swapped, what is known afterwards, and what hostile users move."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import diminuendo as dim
from diminuendo import SeededSource, SlateRules, Users
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.items import ItemAvailability
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.overlap import global_slate
from diminuendo.learners.overlap.global_slate import SEQUENCES
from diminuendo.learners.overlap.pick import SlatePicker
from diminuendo.learners.overlap.query_weights import NextQueryWeights, Standing
from diminuendo.learners.overlap.recipes import OverlapGreedy
from diminuendo.learners.overlap.running_means import Measured, RunningMeans
from diminuendo.learners.overlap.swap import LOCAL, SURE, SwapPosterior, swapped
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.ledger import Ledger
from diminuendo.sums.greedy_queries.query_weights import FULL, QueryWeights
from diminuendo.types import Floats, Ints, Items
from tests.kit.slow import mostly_slow
from tests.learners.test_overlap_greedy import (
    BUDGET,
    _erratic,
    hostile,
    memory_of,
    policy_of,
    published,
    shown_of,
)

WIDE = Budget(10.0, 1e-6, accountant="continuous-gaussian")
ITEMS, SLOTS = 8, 2
COVERS = ({1, 2, 3, 4}, {0, 1, 2}, {3, 4, 5})
"""Points of six that the first items cover: greedy takes the first, and then there is one point that nobody covers."""


def points(rounds: int, seed: int, *, items: tuple[int, int, int] = (0, 1, 2), worth: float = 1.0) -> Floats:
    """Users each of whom wants one point, or nothing, and each item that covers it."""
    random = np.random.default_rng(seed)
    wanted = random.integers(7, size=rounds)
    rows = np.zeros((rounds, ITEMS))
    for item, covered in zip(items, COVERS, strict=True):
        rows[:, item] = worth * np.isin(wanted, list(covered))
    return rows


def made(rounds: int, ledger: Ledger, **more: Any) -> Learner:
    options: dict[str, Any] = {
        "horizon": rounds,
        "epsilon": ledger.budget.epsilon,
        "delta": 1e-6,
        "ledger": ledger,
    }
    return OverlapGreedy(ITEMS, SLOTS, **(options | {"rng": SeededSource(1)} | more))


def kinds(learner: Learner, ledger: Ledger) -> list[bool | None]:
    """Of each release of the plan: whether it was around a slate; None: it was not made."""
    notes = [ledger.about(f"users-{number:06d}") for number in range(policy_of(learner).plan.releases)]
    return [None if note is None else note.startswith("around") for note in notes]


# What it earns.


def coverage(rounds: int) -> Users:
    """Everybody has points of her own, all six of them; items cover them as above, fillers none."""
    incidence = np.array([[int(point in covered) for point in range(6)] for covered in COVERS])
    fillers = np.zeros((ITEMS - 3, 6), dtype=np.int64)
    weights = np.random.default_rng(2).dirichlet(np.full(6, 20.0), size=rounds)
    return Users(dim.Coverage(np.vstack([incidence, fillers])), weights, ITEMS)


STREAMS = {
    "best-match": lambda: Users(dim.BestMatch(), points(3_000, 1)),
    "noisy-or": lambda: Users(dim.NoisyOr(), 0.9 * points(3_000, 1)),
    "coverage": lambda: coverage(3_000),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
def test_swaps_mend_where_greedy_went_wrong(name: str) -> None:
    """Greedy takes the item that covers most, and keeps it; around its slate both others are seen to be better."""
    users, ledger = STREAMS[name](), Ledger(WIDE)
    learner = made(len(users), ledger)
    slates = learner.replay(users)
    asked = kinds(learner, ledger)
    assert asked[:SEQUENCES] == [False] * SEQUENCES, "chains come first"
    assert True in asked
    first = asked.index(True)
    assert asked[first:] == [True] * len(asked[first:])
    greedy, best = dim.greedy(users, SLOTS), users.values(np.tile([1, 2], (len(users), 1))).mean()
    assert 0 in greedy.slate
    assert greedy.value < 0.95 * best
    assert set(slates[-1].tolist()) == {1, 2}
    assert (
        users.values(slates)[-1_000:].mean()
        > 0.999 * users.values(np.tile([1, 2], (len(users), 1)))[-1_000:].mean()
    )


@pytest.mark.slow
def test_where_users_want_next_to_nothing_slates_are_not_asked_around() -> None:
    """What the slate earns does not stand out from the noise; with ten times the wishes it does."""
    result = {}
    for worth in (0.02, 1.0):
        ledger = Ledger(BUDGET)
        learner = made(3_000, ledger)
        learner.replay(Users(dim.NoisyOr(), points(3_000, 1, worth=worth)))
        result[worth] = kinds(learner, ledger)
    assert True not in result[0.02]
    assert True in result[1.0]


def test_an_empty_slot_is_filled_before_anything_is_asked_around() -> None:
    ledger = Ledger(WIDE)
    learner = made(600, ledger, absent=range(1, ITEMS))
    learner.replay(Users(dim.NoisyOr(), points(600, 1)))
    assert True not in kinds(learner, ledger)


def test_someone_who_wants_nothing_may_come_at_any_time() -> None:
    """As a function, between users who want something; nobody is told by it that she was there."""
    rows = points(300, 3)
    rows[::3] = 0.0
    users, ledger = Users(dim.NoisyOr(), rows), Ledger(WIDE)
    functions = dim.Functions([lambda s, t=t: users[t].value(sorted(s)) for t in range(300)], ITEMS)  # type: ignore[misc]
    learner = made(300, ledger)
    dim.replay(learner, functions)
    assert True in kinds(learner, ledger)


# What one user can move.


@pytest.mark.parametrize("seed", mostly_slow(range(16), range(6)))
def test_hostile_users_move_no_more_than_is_charged_around_slates(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two streams that differ in one round, the same view, in which slates are asked around as soon as they can be."""
    monkeypatch.setattr(global_slate, "SETTLED", -np.inf)
    random = np.random.default_rng(seed)
    n, rounds = 4, 60
    others = [hostile(random, n) for _ in range(rounds)]
    target, pair = int(random.integers(20)), (hostile(random, n), hostile(random, n))
    script: list[tuple[Ints, float, Ints]] = []
    with np.errstate(all="ignore"):
        for which in (0, 1):
            with published(script, replayed=which == 1):
                ledger = Ledger(BUDGET)
                learner = OverlapGreedy(
                    n, 2, horizon=rounds, epsilon=1.0, delta=1e-6, rng=SeededSource(seed), ledger=ledger
                )
                for t in range(rounds):
                    decision = learner.choose()
                    user = pair[which] if t == target else others[t]
                    if user is not None and (t == target or not _erratic(user)):
                        learner.observe(decision, user)
    asked = kinds(learner, ledger)
    assert asked.count(True) > 3
    moved = sum(
        (
            Fraction(int((shift.astype(object) ** 2).sum())) / Fraction(sigma) ** 2
            for shift, sigma, _ in script
        ),
        Fraction(0),
    )
    assert moved <= BUDGET.limit


def test_a_user_can_move_nearly_all_that_is_charged_around_slates(monkeypatch: pytest.MonkeyPatch) -> None:
    """The charge is not idle: she is of the first batch, and wants the item that is shown, or the other one."""
    monkeypatch.setattr(global_slate, "SETTLED", -np.inf)
    one, other = (dim.user(dim.NoisyOr(), {item: 1.0}, n_items=2) for item in (0, 1))
    script: list[tuple[Ints, float, Ints]] = []
    for which in (0, 1):
        with published(script, replayed=which == 1):
            ledger = Ledger(BUDGET)
            learner = OverlapGreedy(
                2, 1, horizon=400, epsilon=1.0, delta=1e-6, rng=SeededSource(1), ledger=ledger
            )
            for t in range(400):
                decision = learner.choose()
                learner.observe(decision, (one, other)[which] if t == 0 else one)
    assert kinds(learner, ledger).count(True) > 4
    moved = sum(float((shift.astype(float) ** 2).sum()) / sigma**2 for shift, sigma, _ in script)
    assert 0.9 * float(BUDGET.limit) < moved <= float(BUDGET.limit)


# Which items are swapped.

NONE = ItemAvailability(10, 3)


def swap(parts: dict[tuple[int, int], float], *, deviation: float = 1e-3) -> SwapPosterior:
    """Around the slate of 0, 1 and 2, each worth .3; `parts`: other numbers by part and item, part 0 the rest."""
    means = np.zeros((4, 10))
    means[1, 0] = means[2, 1] = means[3, 2] = 0.3
    for (part, item), mean in parts.items():
        means[part, item] = mean
    return SwapPosterior(np.array([0, 1, 2], dtype=np.int32), means, np.full(means.shape, deviation))


def test_where_nothing_is_better_nothing_is_swapped() -> None:
    assert swapped(swap({(0, 5): 0.2, (1, 6): 0.29}), NONE).tolist() == [0, 1, 2]


def test_local_swaps_are_made_together() -> None:
    """They serve whom the old ones served, so they do not come into each other's way."""
    result = swapped(swap({(1, 3): 0.5, (2, 4): 0.4, (3, 5): 0.45}), NONE)
    assert result.tolist() == [3, 4, 5]


def test_of_swaps_that_are_not_local_the_best_is_made_alone() -> None:
    """Both would be good in the place of any; whether of both is not known."""
    result = swapped(swap({(0, 3): 0.5, (0, 4): 0.45}), NONE).tolist()
    assert result.count(3) == 1
    assert 4 not in result
    assert len(set(result) & {0, 1, 2}) == 2
    mixed = swapped(swap({(0, 3): 0.5, (0, 4): 0.45, (2, 5): 0.4}), NONE).tolist()
    assert 3 in mixed
    assert mixed[1] in (3, 5), "a local one besides, where its slot is free"


def test_an_item_is_swapped_in_once_and_a_slot_is_swapped_once() -> None:
    result = swapped(swap({(1, 3): 0.4, (2, 3): 0.5, (1, 4): 0.35}), NONE)
    assert result.tolist() == [4, 3, 2], "3 where it is best, 4 where 3 would have been second best"


@pytest.mark.parametrize(("deviation", "expected"), [(0.01, [3, 1, 2]), (0.2, [0, 1, 2])])
def test_only_what_is_surely_better_is_swapped_in(deviation: float, expected: list[int]) -> None:
    assert swapped(swap({(1, 3): 0.5}, deviation=deviation), NONE).tolist() == expected


def test_items_are_swapped_in_where_they_may_be_shown() -> None:
    better = swap({(0, 3): 0.5, (0, 4): 0.4})
    items = ItemAvailability(10, 3, [3], SlateRules(eligible=[[0, 3, 5], [1, 3, 5], [2, 3, 4, 5]]))
    assert swapped(better, items).tolist() == [0, 1, 4]
    items.retire([4], 0)
    assert swapped(better, items).tolist() == [0, 1, 2]
    items.appear([3], 0)
    assert 3 in swapped(better, items)


@pytest.mark.parametrize("seed", range(20))
def test_swaps_keep_their_rules_whatever_is_believed(seed: int) -> None:
    random = np.random.default_rng(seed)
    means, deviations = random.random((4, 10)) ** 4, 10 ** random.uniform(-3, 0, size=(4, 10))
    slate = random.permutation(10)[:3].astype(np.int32)
    eligible = random.random((3, 10)) < 0.7
    eligible[:, 0] = True
    rules = SlateRules(eligible=eligible, may_be_empty=True)
    items = ItemAvailability(10, 3, random.permutation(10)[:2].tolist(), rules)
    posterior = SwapPosterior(slate, means, deviations)
    result = swapped(posterior, items)
    assert len(set(result.tolist())) == 3
    remote_rounds, best = 0, (-np.inf, -1, -1)
    for slot in range(3):
        worth, variance = (
            posterior.residual.mean + posterior.contributions[slot].mean,
            posterior.residual.variance + posterior.contributions[slot].variance,
        )
        old, old_variance = (
            posterior.contributions[slot].mean[slate[slot]],
            posterior.contributions[slot].variance[slate[slot]],
        )
        sure = worth - old > SURE * np.sqrt(variance + old_variance)
        may = items.available & eligible[slot] & ~np.isin(np.arange(10), slate)
        for x in np.flatnonzero(sure & may).tolist():
            best = max(best, (float(worth[x] - old), slot, x))
        if (x := int(result[slot])) != slate[slot]:
            assert sure[x]
            assert may[x]
            remote_rounds += posterior.contributions[slot].mean[x] < LOCAL * worth[x]
    assert remote_rounds <= 1
    assert (result == slate).all() == (best[1] < 0)
    if best[1] >= 0:
        assert result[best[1]] == best[2], "the best comes first"


# What is known afterwards.


def true_parts(users: Users, slate: list[int]) -> Floats:
    """R and every D_i, on average over users, from values of sets alone."""

    def value(items: list[int]) -> float:
        return (
            float(users.values(np.tile(np.array(items, dtype=np.int32), (len(users), 1))).mean())
            if items
            else 0.0
        )

    def adds(item: int, to: list[int]) -> float:
        return value([*to, item]) - value(to)

    n, result = users.n_items, np.zeros((len(slate) + 1, users.n_items))
    for x in set(range(n)) - set(slate):
        result[0, x] = adds(x, slate)
        for slot, item in enumerate(slate):
            result[1 + slot, x] = adds(x, [other for other in slate if other != item]) - result[0, x]
    for slot, item in enumerate(slate):
        result[1 + slot, item] = adds(item, [other for other in slate if other != item])
    return result


def test_what_is_carried_over_is_within_its_deviation() -> None:
    """Most items have nothing to do with the one that left. Of that one, and of the new one, nothing is known."""
    off = []
    for seed in range(12):
        random = np.random.default_rng(seed)
        users = Users(dim.NoisyOr(), np.where(random.random((60, 9)) < 0.4, random.random((60, 9)), 0.0))
        before, after = [0, 1, 2], [0, 5, 2]
        deviations = np.full((4, 9), 0.002)
        known = SwapPosterior(np.array(before, dtype=np.int32), true_parts(users, before), deviations)
        carried = known.carried(np.array(after, dtype=np.int32))
        finite = np.isfinite(carried.deviations)
        assert not finite[2].any(), "what the new item keeps from others"
        assert not finite[:, [1, 5]].any(), "the item that left, and the new one"
        assert finite[[0, 1, 3]][:, [0, 2, 3, 4, 6, 7, 8]].all()
        assert (carried.deviations >= deviations).all()
        truth = true_parts(users, after)
        off.append(((carried.means - truth) / carried.deviations)[finite])
    result = np.concatenate(off)
    assert (np.abs(result) < 2).mean() > 0.95, "not more is said to be known than is"
    assert 0.3 < np.sqrt((result**2).mean()) < 1, "nor much less"


def test_what_is_known_of_a_slate_counts_as_a_measurement() -> None:
    means = RunningMeans(1, 2, 3, parts=2)
    means.put([4, 5], np.array([[0.5, 0.2, 0.0], [0.1] * 3]), np.array([[0.1, np.inf, 0.1], [0.1] * 3]))
    result, deviations = means.preview([4, 5])
    np.testing.assert_allclose(result, [[0.5, 0.0, 0.0], [0.1] * 3])
    np.testing.assert_allclose(deviations, [[0.1, np.inf, 0.1], [0.1] * 3])
    measured = Measured(np.array([[7, 8, 2], [1, 1, 1]]), np.full(3, 10.0), 1.0)
    result, deviations = means.preview([4, 5], measured)
    np.testing.assert_allclose(result, [[0.6, 0.8, 0.1], [0.1] * 3])
    np.testing.assert_allclose(deviations[0], [0.1 / np.sqrt(2), 0.1, 0.1 / np.sqrt(2)])
    result, deviations = means.preview([5, 4])
    assert np.isinf(deviations).all(), "another slate"


class Asked:
    """A release around a slate that was published already."""

    def __init__(self, slate: list[int], parts: Floats) -> None:
        self.slate: Items = np.array(slate, dtype=np.int32)
        self._parts = parts

    def answers(self) -> Measured:
        return Measured(np.rint(1e6 * self._parts).astype(np.int64), np.full(self._parts.shape[1], 1e6), 1e3)


def test_after_a_swap_the_next_release_joins_what_was_known() -> None:
    picker: Any = SlatePicker(ItemAvailability(6, 2))
    parts = np.zeros((3, 6))
    parts[1, 0], parts[2, 1], parts[1, 3], parts[2, 4] = 0.3, 0.3, 0.5, 0.1
    picked = picker.improved(Asked([0, 1], parts))
    assert picked.slate.tolist() == [3, 1]
    assert np.isinf(picker._swaps.preview([0, 1])[1]).all(), "nothing is changed before it is taken"
    picker.take(picked)
    means, deviations = picker._swaps.preview([3, 1])
    assert means[2, 1] == pytest.approx(0.3, abs=1e-3)
    assert means[2, 4] == pytest.approx(0.1, abs=1e-3)
    assert 0.02 < deviations[2, 4] < 0.05
    assert np.isinf(deviations[1]).all()
    again = picker.improved(Asked([3, 1], np.where(np.arange(6) == 4, parts / 2, parts)))
    picker.take(again)
    assert means[2, 4] / 2 < picker._swaps.preview([3, 1])[0][2, 4] < means[2, 4]


# Failures, crashes, processes.


def fails_at(part: str, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """As on a full disk, while that part of a release is kept."""
    once = ledger._kept.once

    def full(name: str, draw: Any) -> Any:
        if name.endswith(f".{part}"):
            raise OSError("disk full")
        return once(name, draw)

    monkeypatch.setattr(ledger._kept, "once", full)
    return monkeypatch


def begun_arounds(ledger: Ledger, rounds: int = 600, **more: Any) -> tuple[Learner, Users, int]:
    """A learner at the end of a batch that is to be asked around a slate; and the round it has come to."""
    users = Users(dim.NoisyOr(), points(rounds, 1))
    learner = made(rounds, ledger, **more)
    ends = policy_of(learner).plan.schedule.ends
    learner.replay(users[: ends[7]])
    assert kinds(learner, ledger)[6]
    return learner, users, ends[7]


@pytest.mark.parametrize("part", ["focus", "around"])
def test_an_around_that_failed_is_made_at_the_next_round(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(WIDE)
    learner, users, at = begun_arounds(ledger)
    with monkeypatch.context() as patch:
        fails_at(part, ledger, patch)
        for _ in range(2):
            with pytest.raises(OSError, match="disk full"):
                learner.choose()
    policy = policy_of(learner)
    assert learner.rounds == at, "nobody was shown anything"
    assert policy._position.releases == 7
    learner.replay(users[at:])
    assert policy._rewards.published == policy._position.releases == policy.plan.releases
    names = [charge.note.partition(":")[0] for charge in ledger.charges]
    assert len(set(names)) == len(names), "charged for once"
    assert kinds(learner, ledger)[7]


def test_an_item_that_retires_while_an_around_is_unfinished_is_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger = Ledger(WIDE)
    learner, users, at = begun_arounds(ledger)
    with monkeypatch.context() as patch:
        fails_at("around", ledger, patch)
        with pytest.raises(OSError, match="disk full"):
            learner.choose()
    gone = int(shown_of(learner).slate[0])
    learner.retire([gone])
    slates = learner.replay(users[at:])
    assert gone not in slates
    assert (slates >= 0).all()


def test_a_snapshot_among_arounds_goes_on_slate_for_slate(tmp_path: Path) -> None:
    users = Users(dim.NoisyOr(), eager(600, 1))
    with Ledger.open(tmp_path / "ledger", WIDE) as ledger:
        first = OverlapGreedy(MANY, SLOTS, horizon=600, epsilon=10.0, delta=1e-6, ledger=ledger)
        first.replay(users[:120])
        weights = shown_of(first).query_weights.weights.copy()
        assert weights.min() < FULL
        kept, charges = first.snapshot(), len(ledger.charges)
        after = first.replay(users[120:400])
        asked, spent = kinds(first, ledger), ledger.spent()
        assert asked.count(True) > 4
        assert len(ledger.charges) > charges
    with Ledger.open(tmp_path / "ledger") as again:
        second = OverlapGreedy.restore(kept, ledger=again)
        np.testing.assert_array_equal(shown_of(second).query_weights.weights, weights)
        np.testing.assert_array_equal(second.replay(users[120:400]), after, "as published, not drawn again")
        assert again.spent() == spent
        assert kinds(second, again) == asked
        np.testing.assert_array_equal(
            shown_of(second).query_weights.weights, shown_of(first).query_weights.weights
        )
        for one, other in zip(
            shown_of(second).picker._swaps.arrays, shown_of(first).picker._swaps.arrays, strict=True
        ):
            np.testing.assert_array_equal(one, other)
        second.replay(users[400:])
        assert again.spent() <= WIDE.epsilon
    with pytest.raises(InvalidInput, match="paid for on a ledger"):
        OverlapGreedy.restore(kept)


def test_what_was_begun_as_an_around_before_a_crash_is_one_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Charged and not drawn; though by then it would have been a chain."""
    users = Users(dim.NoisyOr(), points(600, 1))
    with Ledger.open(tmp_path / "ledger", WIDE) as ledger:
        first = made(600, ledger, rng=None)
        ends = policy_of(first).plan.schedule.ends
        first.replay(users[: ends[7]])
        kept = first.snapshot()
        fails_at("around", ledger, monkeypatch)
        with pytest.raises(OSError, match="disk full"):
            first.choose()
        assert kinds(first, ledger)[7]
    monkeypatch.setattr(global_slate, "SETTLED", np.inf)
    with Ledger.open(tmp_path / "ledger") as again:
        second = OverlapGreedy.restore(kept, ledger=again)
        second.replay(users[ends[7] :])
        assert kinds(second, again)[7:10] == [True, False, False]


@pytest.mark.parametrize("appears", [False, True])
def test_one_by_one_or_all_at_once_the_same_is_published(appears: bool) -> None:
    """Also where an item of the slate was not there when some users came."""
    users, published = Users(dim.NoisyOr(), points(500, 1)), []
    for at_once in (True, False):
        learner = made(500, Ledger(WIDE), absent=[2] if appears else [])
        for low, high in ((0, 200), (200, 500)):
            if low and appears:
                learner.appear([2])
            if at_once:
                learner.replay(users[low:high])
            else:
                for t in range(low, high):
                    learner.observe(learner.choose(), users[t])
        assert set(shown_of(learner).slate.tolist()) == {1, 2}
        published.append(shown_of(learner).picker._swaps.arrays[1])
    np.testing.assert_array_equal(published[0], published[1])


# Focus, from release to release.


class Watched:
    """The foci of all releases of a learner, by number."""

    def __init__(self, learner: Learner, monkeypatch: pytest.MonkeyPatch) -> None:
        self.chains: dict[int, QueryWeights] = {}
        self.swaps: dict[int, QueryWeights] = {}
        values = memory_of(learner)._values
        begin_greedy, swap = values.begin_greedy, values.swap

        def chain(number: int, weights: Any, sigmas: Any, query_weights: QueryWeights, *rest: Any) -> Any:
            self.chains[number] = query_weights
            return begin_greedy(number, weights, sigmas, query_weights, *rest)

        def asked(
            number: int, weights: Any, sigmas: Any, slate: Any, query_weights: QueryWeights, *rest: Any
        ) -> Any:
            self.swaps[number] = query_weights
            return swap(number, weights, sigmas, slate, query_weights, *rest)

        monkeypatch.setattr(values, "begin_greedy", chain)
        monkeypatch.setattr(values, "swap", asked)


MANY = 40


def eager(rounds: int, seed: int, low: int = 0, high: int = MANY) -> Floats:
    """Users who want a third of the items from `low` to `high`, all nearly alike: they are clipped, and focus pays."""
    random, chances = np.random.default_rng(seed), np.zeros(MANY)
    chances[low:high] = np.linspace(0.4, 0.25, high - low)
    return np.where(random.random((rounds, MANY)) < chances, 0.5, 0.0)


def watched_run(monkeypatch: pytest.MonkeyPatch, ledger: Ledger, **more: Any) -> tuple[Learner, Watched]:
    options: dict[str, Any] = {"horizon": 3_000, "epsilon": 10.0, "delta": 1e-6, "rng": SeededSource(5)}
    learner = OverlapGreedy(MANY, 2, ledger=ledger, **options, **more)
    return learner, Watched(learner, monkeypatch)


def narrowest(query_weights: QueryWeights) -> float:
    return float(query_weights.weights.min() / query_weights.weights.max())


def test_a_change_of_tastes_widens_the_focus_and_chains_come_first_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All users of the first batch after it have the new tastes, so its chain has a slate that earns at once."""
    ledger, first = Ledger(WIDE), 17
    learner, watched = watched_run(monkeypatch, ledger)
    policy = policy_of(learner)
    change = policy.plan.schedule.ends[first - 1]
    rows = np.vstack([eager(change, 1, 0, 20), eager(3_000 - change, 2, 20, 40)])
    learner.replay(Users(dim.NoisyOr(), rows))
    assert policy._position.memory_begins == first
    asked = kinds(learner, ledger)
    assert asked[first - 1], "around a slate until then"
    assert narrowest(watched.swaps[first - 1]) < 0.7
    assert asked[first : first + SEQUENCES] == [False] * SEQUENCES
    assert asked[-1]
    assert (watched.chains[first].weights == FULL).all()
    assert narrowest(watched.chains[first + 1]) < 0.7
    assert sorted([*watched.chains, *watched.swaps]) == list(range(policy.plan.releases))


def appearing(learner: Learner, batch: int) -> Users:
    """Items are learned about until the middle of that batch, when item 30 appears; who comes after that."""
    ends, users = policy_of(learner).plan.schedule.ends, Users(dim.NoisyOr(), eager(3_000, 1))
    middle = (ends[batch - 1] + ends[batch]) // 2
    learner.replay(users[:middle])
    learner.appear([30])
    return users[middle:]


def test_an_item_that_appears_or_comes_back_is_in_full_focus(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, watched = watched_run(monkeypatch, Ledger(WIDE), absent=[30])
    appearing(learner, 5)
    weights = shown_of(learner).query_weights.weights
    assert all(query_weights.weights[30] == FULL for query_weights in watched.chains.values())
    assert weights.min() < 0.7 * FULL
    assert weights[30] == FULL
    gone = int(np.argmin(weights))
    learner.retire([gone])
    assert weights[gone] < FULL
    learner.appear([gone])
    assert weights[gone] == FULL


@pytest.mark.parametrize("batch", [2, 10])
def test_an_item_that_appears_is_in_full_focus_until_somebody_was_asked_about_it(
    batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of a batch: from the next one on users are asked about it."""
    learner, watched = watched_run(monkeypatch, Ledger(WIDE), absent=[30])
    learner.replay(appearing(learner, batch))
    assert int(policy_of(learner).items.first_batch[30]) == batch + 1
    asked = watched.chains | watched.swaps
    for number in range(batch + 2):
        assert asked[number].weights[30] == max(asked[number].weights)


def test_a_focus_widens_for_some_items_or_for_all() -> None:
    query_weights = NextQueryWeights(6, 2, 1.0)
    query_weights.follow(Standing(np.arange(1.0, 7.0), np.ones(6), 1.0, 6.0), elapsed=1000.0)
    assert query_weights.weights[-1] < FULL
    query_weights.widen(np.array([5]))
    assert query_weights.weights.tolist()[-1] == FULL
    assert query_weights.weights[4] < FULL
    query_weights.widen()
    assert (query_weights.weights == FULL).all()


def test_weights_stay_within_their_bounds() -> None:
    """The first in full focus, none below 1/sqrt(wishes) or the floor; where users want one thing all are in full."""
    places = np.arange(1.0, 101.0)
    for wishes, least in ((1.0, FULL), (2.0, FULL / 2), (100.0, 0.3 * FULL)):
        query_weights = NextQueryWeights(100, 2, 1.0)
        query_weights.follow(Standing(places, np.ones(100), 1.0, wishes), elapsed=1e6)
        assert (query_weights.weights[:3] == FULL).all()
        assert query_weights.weights.min() == round(least)
        assert (np.diff(query_weights.weights) <= 0).all()
        for users in (1, 100, 10**6):
            chain, asked = query_weights.for_sequence(users), query_weights.for_swap(users)
            assert 512 <= chain.singletons <= 1023
            assert (asked.weights >= chain.weights // 2 - 1).all()
            assert (asked.weights <= chain.weights).all()


def test_slates_are_of_items(monkeypatch: pytest.MonkeyPatch) -> None:
    """With slots that have items of their own, and items that come and go, among arounds."""
    users, ledger = Users(dim.NoisyOr(), points(900, 1)), Ledger(WIDE)
    eligible = [[0, 1, 3, 4], [0, 2, 5, 6]]
    learner = made(900, ledger, eligible=eligible, absent=[1])
    seen: list[Items] = [learner.replay(users[:300])]
    learner.appear([1])
    seen.append(learner.replay(users[300:600]))
    learner.retire([2])
    seen.append(learner.replay(users[600:]))
    assert kinds(learner, ledger).count(True) > 5
    for slates, away in zip(seen, (1, None, 2), strict=True):
        assert away not in slates
        for slot in range(SLOTS):
            assert set(slates[:, slot].tolist()) <= set(eligible[slot])
    assert set(seen[1][-1].tolist()) == {1, 2}
