"""Private greedy: its exact law on tiny streams against every claim, what hostile users can do, and what it is worth.

Scores and rates are the library's own; sums over all slates and all neighbours are the test's.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import diminuendo as dim
from diminuendo.errors import InvalidInput, OverBudget
from diminuendo.objectives.recorded import record
from diminuendo.offline.private_greedy import (
    CALIBRATIONS,
    PrivateSlate,
    claims,
    private_greedy,
    rate_per_tick,
    telescoping_delta,
)
from diminuendo.offline.total import total
from diminuendo.privacy.accountants import ACCOUNTANTS
from diminuendo.privacy.budget import Budget, Unit
from diminuendo.privacy.events import Laplace, Selections
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.ticks import TICKS
from diminuendo.streams import synthetic
from diminuendo.streams.users import Stream
from diminuendo.streams.walks import ScoreWalk, Segment, segments_of
from diminuendo.types import Floats, Ints, Slate, SlateLike
from tests.kit import examples
from tests.kit.adaptive_range import COUNTED
from tests.kit.brute import KINDS, Crowd, crowds
from tests.kit.families import QUICK
from tests.kit.slow import mostly_slow
from tests.kit.statistics import ALPHA, assert_follows, assert_rejects

Set = frozenset[int]
Function = Callable[[Set], float]
PURE = Budget(1.0, 0.0, accountant="pure")
ZCDP = Budget(1.0, 1e-6)

ROUNDING = 1e-12
"""Laws of a few draws in floats: probabilities that differ by less are equal."""


def walked(users: Stream) -> ScoreWalk:
    return ScoreWalk(users.n_items, segments_of(users))


def given_slate(walk: ScoreWalk, chosen: Sequence[int]) -> Ints:
    """The scores after `chosen`, which has one item more than the last time."""
    if chosen:
        walk.join(chosen[-1])
    assert walk.chosen == list(chosen)
    return walk.scores()


def scores_along(functions: Sequence[Function], n: int, slate: Slate) -> Iterator[Ints]:
    """The secret scores before each pick of `slate`."""
    walk = walked(dim.Functions(functions, n))
    for slot in range(len(slate)):
        yield given_slate(walk, slate[:slot])


def law(functions: Sequence[Function], n: int, k: int, rate: float) -> Floats:
    """The probability of every ordered slate."""
    result = []
    for slate in itertools.permutations(range(n), k):
        chance = 1.0
        for slot, scores in enumerate(scores_along(functions, n, slate)):
            weights = np.exp(rate / TICKS * (scores - scores.max()).astype(float))
            weights[list(slate[:slot])] = 0.0
            chance *= weights[slate[slot]] / weights.sum()
        result.append(chance)
    assert abs(sum(result) - 1) < ROUNDING
    return np.array(result)


def table(values: Sequence[float]) -> Function:
    """f of each set, by bit mask."""
    return lambda items: values[sum(1 << item for item in items)]


@cache
def monotone(n: int) -> list[tuple[float, ...]]:
    """Every monotone 0/1 function, submodular or not."""
    return [
        (0.0, *f)
        for f in itertools.product((0.0, 1.0), repeat=(1 << n) - 1)
        if all((0.0, *f)[s] <= (0.0, *f)[s | 1 << a] for s in range(1 << n) for a in range(n))
    ]


@cache
def neighbours(n: int, k: int, users: int, rate: float) -> NDArray[np.float64]:
    """Laws of all streams of monotone functions that differ in one user: (pairs, 2, slates)."""
    choices = monotone(n)
    streams = list(itertools.product(range(len(choices)), repeat=users))
    laws = {s: law([table(choices[i]) for i in s], n, k, rate) for s in streams}
    pairs = [
        (laws[one], laws[(*one[:place], other, *one[place + 1 :])])
        for one in streams
        for place in range(users)
        for other in range(len(choices))
        if other != one[place]
    ]
    return np.array(pairs)


@cache
def hostile_neighbours(rate: float) -> NDArray[np.float64]:
    """Laws of three picks of three items: any 0/1 function whatever against any other, in a crowd that wants item 2."""
    crowd = [table([float(mask >> 2 & 1) for mask in range(8)])] * 3
    every = [(0.0, *f) for f in itertools.product((0.0, 1.0), repeat=7)]
    laws = [law([*crowd, table(f)], 3, 3, rate) for f in every]
    return np.array(list(itertools.permutations(laws, 2)))


def exact_delta(pairs: NDArray[np.float64], epsilon: float) -> float:
    return float(np.maximum(0, pairs[:, 0] - math.exp(epsilon) * pairs[:, 1]).sum(axis=1).max())


def exact_epsilon(pairs: NDArray[np.float64]) -> float:
    return float(np.log(pairs[:, 0] / pairs[:, 1]).max())


RATE = 0.8
CASES = [(2, 1, 2), (2, 2, 2), (3, 2, 1), (3, 2, 2), (3, 3, 1)]


def cases() -> Iterator[tuple[int, NDArray[np.float64]]]:
    for n, k, users in CASES:
        yield k, neighbours(n, k, users, RATE)
    yield 3, hostile_neighbours(RATE)


def test_no_claim_is_below_the_truth() -> None:
    nearest = {"pure": 0.0, "zcdp": 0.0, "telescoping": 0.0}
    for k, pairs in cases():
        draws, whole = Selections(k, 2 * RATE), Laplace((k + 1) * RATE)
        assert exact_epsilon(pairs) <= claims(k, RATE, 0.0)["pure"] + ROUNDING
        for epsilon in np.linspace(0, (k + 1) * RATE, 9)[:-1]:
            truth = exact_delta(pairs, epsilon)
            claimed = {
                "pure": ACCOUNTANTS["pure"].delta(whole, epsilon),
                "zcdp": ACCOUNTANTS["zcdp"].delta(draws, epsilon),
                "telescoping": telescoping_delta(RATE, epsilon),
            }
            if k == 1:  # where the theorem's own limit, many picks, is far away, one draw is
                assert truth <= COUNTED["adaptive-range"].delta(draws, epsilon) + ROUNDING
            for name, delta in claimed.items():
                assert truth <= delta + ROUNDING, (name, k, epsilon)
                nearest[name] = max(nearest[name], truth / delta)
                if truth > ROUNDING:
                    assert claims(k, RATE, truth)[name] >= epsilon * (1 - ROUNDING), (name, k, epsilon)
    assert nearest["telescoping"] > 0.95
    assert nearest["pure"] > 0.5


def test_half_the_price_would_be_noticed() -> None:
    _, pairs = next(cases())
    assert any(
        exact_delta(pairs, e) > ACCOUNTANTS["zcdp"].delta(Selections(1, RATE), e) for e in (0.5, 0.9, 1.2)
    )
    for _, pairs in cases():
        assert exact_delta(pairs, 0.0) > telescoping_delta(RATE / 2, 0.0)
    assert any(exact_epsilon(pairs) > (k + 1) * RATE / 2 for k, pairs in cases())


def test_renyi_divergences_are_within_zcdp() -> None:
    ratios = []
    for k, pairs in cases():
        for order in (1.001, 1.5, 2.0, 8.0, 64.0):
            p, q = pairs[:, 0], pairs[:, 1]
            divergence = np.log((p**order * q ** (1 - order)).sum(axis=1)).max() / (order - 1)
            ratios.append(divergence / (order * k * (2 * RATE) ** 2 / 8))
            assert ratios[-1] <= 1
    assert max(ratios) > 0.9


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_pure_price_is_attained(k: int) -> None:
    """A crowd wants the last item, and so does one user; another wants what is picked against all odds."""
    n, last = k + 1, k
    crowd: list[Function] = [lambda items: float(last in items)] * 40
    p = law([*crowd, lambda items: float(0 in items)], n, k, 1.0)
    q = law([*crowd, lambda items: float(last in items)], n, k, 1.0)
    against_all_odds = list(itertools.permutations(range(n), k)).index(tuple(range(k)))
    result = math.log(p[against_all_odds] / q[against_all_odds])
    assert result <= k + 1
    assert result == pytest.approx(k + 1, abs=1e-9)  # the odds are e^-39


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.1, 0.8, 2.0])
def test_the_telescoping_curve_is_attained_by_long_slates(rate: float) -> None:
    """One user wants item a, the other item b, and k of a great many other picks pass before either comes."""
    chance, k = 0.004, 4000  # both come sooner or later, and rarely
    rest, factor = 1 - 2 * chance, math.exp(rate)
    time = np.arange(k)
    first, later = np.meshgrid(time, time, indexing="ij")
    both = first < later  # which of the two comes first is `swapped` below
    wait, gap = first[both], (later - first)[both] - 1
    neither = chance * (factor + 1) + rest  # the same sum of weights for both users
    logs = []
    for wanted_comes_first in (True, False):
        one, other = (factor, 1.0) if wanted_comes_first else (1.0, factor)
        after = chance * other + rest
        logs.append(
            wait * math.log(rest / neither)
            + math.log(chance * one / neither)
            + gap * math.log(rest / after)
            + math.log(chance * other / after)
        )
    p, q = np.exp(np.concatenate(logs)), np.exp(np.concatenate(logs[::-1]))
    assert p.sum() > 0.999
    for epsilon in (0.0, rate, 4 * rate):
        truth = float(np.maximum(0, p - math.exp(epsilon) * q).sum())
        assert 0.95 * telescoping_delta(rate, epsilon) < truth <= telescoping_delta(rate, epsilon)


def test_draws_follow_the_law_of_their_scores() -> None:
    functions = [
        table(f) for f in ((0, 1, 0, 1, 1, 1, 1, 1), (0, 0, 1, 1, 0, 1, 1, 1), (0, 1, 0, 1, 0, 1, 0, 1))
    ]
    stream, slates = dim.Functions(functions, 3), list(itertools.permutations(range(3), 2))
    runs = [private_greedy(stream, 2, budget=PURE, rng=dim.SeededSource(seed)) for seed in range(3000)]
    assert runs[0].rate == pytest.approx(1 / 3, rel=1e-12)
    draws = [slates.index((run.slate[0], run.slate[1])) for run in runs]
    assert_follows(draws, law(functions, 3, 2, 1 / 3))
    assert_rejects(draws, law(functions, 3, 2, 2 / 3))


# Whoever they are, users add at most a unit.


class Erratic:
    """Answers otherwise every time."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, items: Set) -> float:
        self.asked += 1
        return float(self.asked * 7 % 3)


HOSTILE: list[Function] = [
    lambda items: math.nan,
    lambda items: math.inf if items else -math.inf,
    lambda items: 1e308 * len(items),
    lambda items: -5.0 * len(items),
    lambda items: float(len(items)),
    lambda items: float(len(items) % 2),
    lambda items: float(len(items) >= 2),
    lambda items: sum(2.0**item for item in items),
    Erratic(),
]


@pytest.mark.parametrize("hostile", range(len(HOSTILE)))
def test_hostile_users_move_scores_by_a_unit_at_most(hostile: int) -> None:
    for slate in itertools.permutations(range(4), 4):
        spent = 0
        for slot, (one, other) in enumerate(
            zip(
                scores_along([lambda items: 0.3 * len(items), HOSTILE[hostile]], 4, slate),
                scores_along([lambda items: 0.3 * len(items)], 4, slate),
                strict=True,
            )
        ):
            moved = one - other
            assert moved.min() >= 0
            assert moved.max() + spent <= TICKS
            spent += int(moved[slate[slot]])


class Broken(Stream):
    """The last user says `last`, whatever that is, from pick `since` on, and a quarter of everything before."""

    n_items, name, family_name = 3, "broken", "none"

    def __init__(self, last: Callable[[SlateLike], object], since: int = 0, honest: int = 2) -> None:
        self._last, self._since, self._honest = last, since, honest

    def __len__(self) -> int:
        return self._honest + 1

    def __getitem__(self, user: int) -> Broken.Someone:
        return Broken.Someone(self, user == self._honest)

    def values(self, slates: SlateLike | NDArray[np.integer]) -> Floats:
        raise NotImplementedError

    class Someone:
        """Asked for gains only."""

        def __init__(self, stream: Broken, odd: bool) -> None:
            self.stream, self.odd, self.n_items = stream, odd, 3

        def value(self, slate: SlateLike) -> float:
            raise NotImplementedError

        def gains(self, prefix: SlateLike) -> Floats:
            if self.odd and len(prefix) >= self.stream._since:
                return self.stream._last(prefix)  # type: ignore[return-value]
            return np.array([0.25, 0.25, 0.25] if self.odd else [0.5, 0.25, 0.0])


def raising(prefix: SlateLike) -> object:
    raise RuntimeError("0.123")


def meddling(prefix: SlateLike) -> object:
    prefix.append(2)  # type: ignore[union-attr]
    return np.ones(3)


def zeros(prefix: SlateLike) -> object:
    return np.zeros(3)


NOTHING: list[Callable[[SlateLike], object]] = [
    raising,
    meddling,  # what is chosen is not hers to change
    lambda prefix: np.array([0.123]),
    lambda prefix: np.ones((3, 1)),
    lambda prefix: np.ones(4),
    lambda prefix: None,
    lambda prefix: "abc",
    lambda prefix: [1.0, 1.0, [1.0]],
    lambda prefix: [1j, 1.0, 1.0],
    lambda prefix: np.full(3, np.nan),
]


@pytest.mark.parametrize("said", NOTHING, ids=range(len(NOTHING)))
@pytest.mark.parametrize("since", [0, 1, 2])
def test_who_fails_said_nothing(said: Callable[[SlateLike], object], since: int) -> None:
    """The same scores as from zeros, before every pick, whenever the trouble begins, and not a word about it."""
    for slate in itertools.permutations(range(3)):
        failing, silent = (walked(Broken(last, since)) for last in (said, zeros))
        for slot in range(3):
            chosen = list(slate[:slot])
            np.testing.assert_array_equal(given_slate(failing, chosen), given_slate(silent, chosen))
            assert chosen == list(slate[:slot])
    one, other = (
        private_greedy(Broken(last, since), 3, budget=PURE, rng=dim.SeededSource(1)) for last in (said, zeros)
    )
    assert one == other


def test_what_is_left_of_a_user_survives_her_failures() -> None:
    """Asked three times: a quarter, nothing, and then three quarters of the unit that she wants."""
    said = iter([np.full(3, 0.25), None, np.ones(3)])
    walk = walked(Broken(lambda prefix: next(said), honest=0))
    for chosen, each in (([], 0.25), ([1], 0.0), ([1, 0], 0.75)):
        np.testing.assert_array_equal(given_slate(walk, chosen), np.full(3, each * TICKS))


def taped(function: Function, slate: Slate) -> ScoreWalk:
    """One hostile user, recorded along a slate, for kernels to read."""
    return ScoreWalk(4, [Segment(dim.NoisyOr(), record(dim.Oracle(function, 4), slate), [0])])


@pytest.mark.parametrize("hostile", range(len(HOSTILE) - 1))  # all but the erratic one
def test_compiled_scores_of_hostile_users_are_the_same(hostile: int) -> None:
    for slate in itertools.permutations(range(4)):
        compiled = taped(HOSTILE[hostile], slate)
        for slot, scores in enumerate(scores_along([HOSTILE[hostile]], 4, slate)):
            left = list(slate[slot:])
            np.testing.assert_array_equal(given_slate(compiled, slate[:slot])[left], scores[left])


class Loose(Stream):
    """Users one by one, so that nothing is compiled."""

    def __init__(self, users: dim.Users) -> None:
        self.users, self.n_items = users, users.n_items
        self.name, self.family_name = users.name, users.family_name

    def __len__(self) -> int:
        return len(self.users)

    def __getitem__(self, user: int) -> dim.User:
        return self.users[user]

    def values(self, slates: SlateLike | NDArray[np.integer]) -> Floats:
        return self.users.values(slates)


@pytest.mark.parametrize("kind", mostly_slow(KINDS, QUICK))
@examples(15)
@given(data=st.data())
def test_scores_of_every_family_are_whole_gains_added_up(kind: str, data: st.DataObject) -> None:
    crowd: Crowd = data.draw(crowds(kind))
    compiled, loose = walked(crowd.users()), walked(Loose(crowd.users()))
    order = data.draw(st.permutations(range(crowd.n_items)))
    for depth in range(crowd.n_items):
        scores, prefix = given_slate(compiled, order[:depth]), order[:depth]
        left = order[depth:]
        np.testing.assert_array_equal(scores[left], given_slate(loose, prefix)[left])
        for item in left:
            exact = sum(
                math.floor((crowd.value(t, [*prefix, item]) - crowd.value(t, prefix)) * TICKS)
                for t in range(len(crowd))
            )
            assert abs(int(scores[item]) - exact) <= len(crowd)  # a rounding may cost each user a tick


# What it is worth.


def keeps(k: int) -> float:
    return 1 - (1 - 1 / k) ** k


@pytest.mark.slow
def test_the_expected_value_is_what_the_theorem_says() -> None:
    """Exactly, over all slates, on small streams and at every rate; and a third of the allowance would not do."""
    rng, worst = np.random.default_rng(5), 0.0
    for k, trial in itertools.product((1, 2, 3), range(12)):
        n_users = int(rng.integers(1, 9))
        rows = np.eye(6)[np.zeros(n_users, dtype=int)] if trial < 6 else rng.random((n_users, 6)) ** 3
        users = dim.Users(dim.NoisyOr(), rows)
        rate = float(2.0 ** rng.uniform(-4, 3)) if trial >= 6 else 2.0 ** (trial - 3) / n_users
        functions = [lambda items, p=user: p.value(sorted(items)) for user in users]
        chances = law(functions, 6, k, rate)
        values = [users.values(slate).mean() for slate in itertools.permutations(range(6), k)]
        run = PrivateSlate(
            tuple(range(k)), dim.RandomSlates(6, k).guarantee, Laplace(0.0), "pure", rate, 6, n_users
        )
        lost = keeps(k) * max(values) - float(chances @ values)
        assert lost <= run.loss
        worst = max(worst, lost / run.loss)
    assert worst > 1 / 3


def test_on_many_users_it_is_nearly_greedy() -> None:
    users = synthetic.taste_groups(40_000, 60, seed=3)
    k, n = 5, len(users)
    best = dim.greedy(users, k).value  # no more than the best
    for budget, seed in itertools.product((PURE, ZCDP, Budget(0.2, 1e-6)), range(10)):
        run = private_greedy(users, k, budget=budget, rng=dim.SeededSource(seed))
        allowance = k * ((math.log(60) + math.log(k / ALPHA)) / (run.rate * n) + 1 / TICKS)
        assert users.values(run.slate).mean() >= keeps(k) * (best - allowance)
        assert 0 < run.loss < allowance
    unliked = np.argsort(total(users).gains())[:k]
    assert users.values(unliked).mean() < keeps(k) * (best - allowance)


def test_with_a_huge_epsilon_it_is_greedy() -> None:
    users = synthetic.taste_groups(500, 30, seed=1)
    plain, summed = dim.greedy(users, 6), total(users)
    for item in plain.slate:
        gains = np.sort(summed.gains())
        assert gains[-1] - gains[-2] > 2 * len(users) / TICKS  # the best is the best in ticks, too
        summed.add(item)
    budget = Budget(1e12, 0.0, accountant="pure")
    for stream in (users, Loose(users)):
        assert private_greedy(stream, 6, budget=budget).slate == plain.slate


def test_all_items_and_nobody() -> None:
    nobody = dim.Users(dim.NoisyOr(), np.zeros((0, 4)))
    assert sorted(private_greedy(nobody, 4, budget=PURE).slate) == [0, 1, 2, 3]
    assert sorted(private_greedy(dim.Functions([], 3), 3, budget=ZCDP).slate) == [0, 1, 2]


# Budgets, guarantees, ledgers.


@pytest.mark.parametrize("rounds", [1, 3, 7])
@pytest.mark.parametrize("k", [1, 2, 5, 40])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-9), (5.0, 1e-3)])
def test_rates_are_the_highest_that_fit(epsilon: float, delta: float, k: int, rounds: int) -> None:
    budget = Budget(epsilon, delta, Unit(rounds))
    for name in CALIBRATIONS:
        rate = rate_per_tick(budget, k, name) * TICKS
        assert claims(k, rate, delta, rounds)[name] <= epsilon * (1 + 1e-9)
        assert claims(k, rate * (1 + 1e-6), delta, rounds)[name] > epsilon


def test_the_best_way_of_counting_is_taken() -> None:
    users = dim.Functions([lambda items: 0.0], 60)
    for k, best in ((5, "pure"), (50, "telescoping")):
        run = private_greedy(users, k, budget=ZCDP)
        rates = {name: rate_per_tick(ZCDP, k, name) * TICKS for name in CALIBRATIONS}
        assert (run.calibration, run.rate) == (best, max(rates.values()))
        assert run.guarantee.delta == (0.0 if best == "pure" else 1e-6)
        assert CALIBRATIONS[best] in run.guarantee.proof
        assert (
            run.epsilons(1e-6)[best] <= 1.0 < min(run.epsilons(1e-6)[name] for name in ("basic", "advanced"))
        )
        for name in CALIBRATIONS:
            asked = private_greedy(users, k, budget=ZCDP, calibration=name)
            assert (asked.calibration, asked.rate) == (name, rates[name])
    assert private_greedy(users, 50, budget=PURE).calibration == "pure"
    assert claims(5, 0.1, 0.0)["zcdp"] == claims(5, 0.1, 0.0)["telescoping"] == math.inf


def test_seeded_rng_protect_nobody() -> None:
    users = dim.Functions([lambda items: 0.0], 3)
    seeded = [private_greedy(users, 2, budget=PURE, rng=dim.SeededSource(4)) for _ in range(2)]
    assert seeded[0] == seeded[1]
    assert not seeded[0].guarantee.secure_rng
    assert private_greedy(users, 2, budget=PURE).guarantee.secure_rng


@pytest.mark.parametrize("unit", [Unit(), Unit(3)])
@pytest.mark.parametrize("accountant", ["pure", "zcdp"])
def test_a_ledger_is_charged_before_anybody_is_asked(accountant: str, unit: Unit) -> None:
    budget = Budget(1.0, 0.0 if accountant == "pure" else 1e-6, unit, accountant)  # type: ignore[arg-type]
    ledger, charged = Ledger(budget), []

    def watching(items: Set) -> float:
        charged.append(len(ledger.charges))
        return 0.0

    users = dim.Functions([watching], 3)
    run = private_greedy(users, 2, budget=budget, ledger=ledger, rng=dim.SeededSource(0))
    assert set(charged) == {1}
    assert ledger.charges[0].event == run.event
    if isinstance(run.event, Laplace):
        assert run.event.epsilon == pytest.approx(3 * run.rate, rel=1e-15)
    else:
        assert run.event == Selections(2, 2 * run.rate)
    assert run.calibration == accountant
    assert 1 - 1e-9 < ledger.spent() <= 1
    assert not ledger.guarantee().secure_rng
    charged.clear()
    for name in ("slate", "another"):
        with pytest.raises(InvalidInput if name == "slate" else OverBudget):
            private_greedy(users, 2, budget=budget, ledger=ledger, name=name)
    assert not charged


def test_after_a_crash_the_same_slate_comes_back(tmp_path: Path) -> None:
    users = dim.Functions([lambda items: 0.0], 50)
    slates = []
    for _ in range(2):
        with Ledger.open(tmp_path / "people.ledger", ZCDP) as ledger:
            slates.append(private_greedy(users, 5, budget=ZCDP, ledger=ledger).slate)
            assert len(ledger.charges) == 1
    assert slates[0] == slates[1]
    with Ledger.open(tmp_path / "other.ledger", ZCDP) as ledger, pytest.raises(InvalidInput, match="seeded"):
        private_greedy(users, 5, budget=ZCDP, ledger=ledger, rng=dim.SeededSource(0))


@pytest.mark.parametrize(
    "wrong",
    [
        {"slots": 0},
        {"slots": 4},
        {"slots": 1.5},
        {"budget": 1.0},
        {"calibration": "gupta"},
        {"calibration": "zcdp"},  # with a pure budget
        {"calibration": "telescoping"},
        {"ledger": "people.ledger"},
        {"ledger": Ledger(ZCDP)},  # counted otherwise than the budget
        {"budget": ZCDP, "ledger": Ledger(ZCDP), "calibration": "telescoping"},
        {"ledger": Ledger(PURE), "name": "no/name"},
    ],
    ids=str,
)
def test_bad_input_is_refused_before_anybody_is_asked(wrong: dict[str, object]) -> None:
    asked = []

    def watching(items: Set) -> float:
        asked.append(items)
        return 0.0

    given = {"slots": 2, "budget": PURE} | wrong
    with pytest.raises(InvalidInput):
        private_greedy(dim.Functions([watching], 3), **given)  # type: ignore[arg-type]
    assert not asked


def test_bad_claims_are_refused() -> None:
    for wrong in ((0, 1.0, 1e-6, 1), (2, -1.0, 1e-6, 1), (2, 1.0, 1.0, 1), (2, 1.0, 1e-6, 0)):
        with pytest.raises(InvalidInput):
            claims(*wrong)


def test_nothing_secret_is_shown() -> None:
    """The result holds the slate and public facts; two crowds that led to the same slate cannot be told apart."""
    assert {field.name for field in dataclasses.fields(PrivateSlate)} == {
        *("slate", "guarantee", "event", "calibration", "rate", "n_items", "users")
    }
    sure = Budget(1e12, 0.0, accountant="pure")
    one, other = (
        private_greedy(dim.Users(dim.NoisyOr(), [[share, 0.0]]), 1, budget=sure) for share in (0.123, 0.987)
    )
    assert one == other
    assert repr(one) == repr(other)
    for walk in (walked(dim.msweb()), walked(dim.Functions([lambda items: 0.123], 2))):
        walk.scores()
        assert "array" not in repr(walk)


def test_ticks_and_rates_are_exact() -> None:
    """Charged to a ledger, nothing may be above the budget by a rounding."""
    for k in range(1, 60):
        rate = rate_per_tick(Budget(1.0, 0.0, Unit(3), "pure"), k, "pure")
        assert 3 * (k + 1) * Fraction(rate) * TICKS <= 1
