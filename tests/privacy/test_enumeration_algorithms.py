"""Whole algorithms by enumeration: what the learners do is the oracle's law, and the oracle's law keeps their claims.

The oracle (tests/kit/enumeration.py) shares nothing with the package. First the learners, driven through their own
`choose` and `observe` along every path, must have its law; then worst cases are taken from the oracle alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from diminuendo import Oracle
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.hedge.bandit_dp import BanditDp, delta_over_draws
from diminuendo.learners.hedge.fi_dp import FiDp
from diminuendo.privacy.accountants import ACCOUNTANTS
from diminuendo.privacy.events import Selections
from diminuendo.randomness.score_classes import probabilities
from diminuendo.types import EMPTY_SLOT, Words
from tests.kit.adaptive_range import COUNTED
from tests.kit.enumeration import (
    Law,
    Resample,
    Stream,
    User,
    all_users,
    bandit_law,
    covering_users,
    full_information_law,
    mask,
    presampled_law,
    worst,
)
from tests.kit.inside import inside
from tests.kit.slow import mostly_slow

RATE = 0.5
HUGE: dict[str, Any] = {"epsilon": 60.0, "delta": 1e-6}


class Scripted:
    """Public coins that fall as told; secret randomness from a generator."""

    secure = False

    def __init__(self) -> None:
        self.script: list[int] = []
        self._random = np.random.Philox(7)

    def public(self, count: int) -> Words:
        words = [*self.script, *[0] * count][:count]
        return np.array(words, dtype=np.uint64)

    def secret(self, count: int) -> Words:
        return self._random.random_raw(count)


def random_users(count: int, n: int, seed: int) -> list[User]:
    """Any functions at all, some values out of range or missing, and somebody who does not answer."""
    random = np.random.default_rng(seed)
    users: list[User] = [None]
    for _ in range(count - 1):
        f = random.uniform(-0.5, 1.5, size=1 << n)
        f[random.random(1 << n) < 0.1] = np.nan
        f[0] = 0.0
        users.append(tuple(float(value) for value in f))
    return users


def arrays_of(learner: Learner) -> list[Any]:
    """Everything that changes from round to round."""
    decisions = learner._frame.decisions
    result = [decisions.issued, decisions.rows, decisions.probes, decisions.waiting]
    experts = inside(learner)._experts
    result += [*(part for part in experts.classes if isinstance(part, np.ndarray)), experts.best, experts.own]
    return result + list(getattr(learner.policy, "_exploring", ()))


def answer_full(learner: Learner, decision: Any, user: User, n: int) -> None:
    if user is not None:
        learner.observe(decision, Oracle(lambda s: user[mask(s)], n))


def full_law_of(learner: Learner, stream: Stream) -> Law:
    """The law of Algorithm 2 as the learner has it, along every path."""
    n, k, law = learner.n_items, learner.slots, {}
    fresh = [array.copy() for array in arrays_of(learner)]
    for path in itertools.product(itertools.product(range(n), repeat=k), repeat=len(stream)):
        for array, saved in zip(arrays_of(learner), fresh, strict=True):
            array[...] = saved
        chance = 1.0
        for slate, user in zip(path, stream, strict=True):
            for slot, item in enumerate(slate):
                chance *= float(probabilities(inside(learner)._experts.classes, slot)[item])
            row = np.array([EMPTY_SLOT if a in slate[:i] else a for i, a in enumerate(slate)], dtype=np.int32)
            answer_full(learner, learner._frame.decisions.add(row, np.full(3, -1, dtype=np.int32)), user, n)
        law[path] = chance
    return law


@pytest.mark.parametrize(("n", "k", "rounds"), [(2, 1, 4), (2, 2, 3), (3, 1, 3), (3, 2, 2)])
def test_algorithm_2_has_the_law_of_the_oracle(n: int, k: int, rounds: int) -> None:
    for seed in range(4):
        users = random_users(rounds, n, seed)
        learner = FiDp(n, k, horizon=rounds, rate=RATE, **HUGE)
        result, known = full_law_of(learner, tuple(users)), full_information_law(tuple(users), n, k, RATE)
        assert result.keys() == known.keys()
        # Ticks are 2^-20 of a unit: per draw that moves a log-probability by less than rounds * rate * 2^-19.
        slack = math.expm1(k * rounds * rounds * RATE * 2.0**-19)
        for seen, chance in known.items():
            assert result[seen] == pytest.approx(chance, rel=slack)


def bandit_law_of(learner: Any, stream: Stream, share: float, schedule: tuple[int, ...] | None) -> Law:
    """The law of Algorithm 3 as the learner has it: coins are scripted, draws repeated until they fall as wanted."""
    n, k, rng = learner.n_items, learner.slots, learner.rng
    law: Law = {}

    def go(t: int, seen: tuple[Any, ...], chance: float) -> None:
        if t == len(stream):
            law[seen] = law.get(seen, 0.0) + chance
            return
        saved = [array.copy() for array in arrays_of(learner)]
        due, held = int(inside(learner)._exploring.due[0]), tuple(inside(learner)._exploring.current)
        choices = [range(n) if due in (-2, slot) else [held[slot]] for slot in range(k)]
        laws = [probabilities(inside(learner)._experts.classes, slot) for slot in range(k)]
        explores = share if schedule is None else float(t in schedule)
        tosses = [(1 - explores, None)] + [
            (explores / (k * n), (slot, item)) for slot in range(k) for item in range(n)
        ]
        for slate in itertools.product(*choices):
            drawn = math.prod(float(laws[s][slate[s]]) for s in range(k) if due in (-2, s))
            for toss, probe in tosses:
                if toss == 0:
                    continue
                while True:  # the draw is the learner's own; until it is the one whose branch this is
                    for array, old in zip(arrays_of(learner), saved, strict=True):
                        array[...] = old
                    rng.script = [(1 << 53) - 1] if probe is None else [0, *probe]
                    learner._frame.public.empty()
                    decision = learner.choose()
                    if tuple(inside(learner)._exploring.current) == slate:
                        break
                user = stream[t]
                if user is not None:
                    shown = (
                        slate if decision.probe is None else (*slate[: decision.probe[0]], decision.probe[1])
                    )
                    learner.observe(decision, float(user[mask(shown)]))
                go(t + 1, (*seen, (slate, decision.probe)), chance * drawn * toss)

    go(0, (), 1.0)
    return law


@pytest.mark.parametrize("cap", mostly_slow([None, 1], [1]))
@pytest.mark.parametrize("resample", ["all", "own", "every"])
def test_algorithm_3_has_the_law_of_the_oracle(resample: Resample, cap: int | None) -> None:
    for (n, k, rounds), seed in [((2, 2, 2), 0), ((2, 2, 2), 1), ((3, 1, 2), 2), ((2, 1, 3), 3)]:
        stream = tuple(random_users(rounds, n, seed))[::-1]
        learner = BanditDp(
            n,
            k,
            exploring=0.5,
            cap=cap,
            resample=resample,
            horizon=rounds,
            rate=RATE,
            rng=Scripted(),
            **HUGE,
        )
        result = bandit_law_of(learner, stream, 0.5, None)
        known = bandit_law(stream, n, k, RATE, 0.5, resample, cap)
        assert {seen for seen, chance in known.items() if chance > 0} == result.keys()
        for seen, chance in result.items():
            assert chance == pytest.approx(known[seen], rel=math.expm1(k * rounds * rounds * RATE * 2.0**-19))


def test_presampled_rounds_have_the_law_of_the_oracle() -> None:
    stream = tuple(random_users(3, 2, 5))[::-1]
    learner = BanditDp(
        2, 1, exploring=0.0, cap=None, explore_at=[0, 2], horizon=3, rate=RATE, rng=Scripted(), **HUGE
    )
    result = bandit_law_of(learner, stream, 0.0, (0, 2))
    known = presampled_law(stream, 2, 1, RATE, (0, 2), "all")
    assert {seen for seen, chance in known.items() if chance > 0} == result.keys()
    for seen, chance in result.items():
        assert chance == pytest.approx(known[seen], rel=math.expm1(9 * RATE * 2.0**-19))


EPSILONS = (0.0, 0.25, 0.5, 1.0)


@pytest.mark.parametrize(
    ("n", "k", "rounds", "values", "known"),
    [
        (2, 1, 2, (0.0, 1.0), {0.0: 0.244919, 0.125: 0.194650, 0.5: 0.0}),
        pytest.param(
            *(2, 1, 4, (0.0, 0.5, 1.0), {0.0: 0.360032, 0.375: 0.239986, 1.5: 0.034923}),
            marks=pytest.mark.slow,
        ),
        (2, 2, 3, (0.0, 1.0), {0.0: 0.310532, 0.5: 0.161575, 1.0: 0.063167}),
        (3, 1, 3, (0.0, 1.0), {1.0: 0.056991}),
    ],
)
def test_algorithm_2_reproduces_the_known_deltas(
    n: int, k: int, rounds: int, values: tuple[float, ...], known: dict[float, float]
) -> None:
    users = all_users(n, values, k)
    if k > 1:  # as in the known values: monotone users
        users = [
            f for f in users if f and all(f[s] <= f[s | 1 << a] for s in range(1 << n) for a in range(n))
        ]
    choices = [users] * (rounds - 1) + [users[:1]]
    result = worst(lambda stream: full_information_law(stream, n, k, RATE), choices, tuple(known))
    for epsilon, delta in known.items():
        assert result.delta[epsilon] == pytest.approx(delta, abs=1e-6)
    event = FiDp(n, k, horizon=rounds, rate=RATE, **HUGE).events
    assert isinstance(event, Selections)
    for name in ("zcdp", "pure", "adaptive-range"):
        assert all(result.delta[e] <= COUNTED[name].delta(event, e) + 1e-12 for e in known)
    assert result.ratio(event.count * event.span**2 / 8) <= 1


CASES = [
    # n, k, rounds, rate, exploring, users, first slate
    (2, 1, 3, 0.5, 1.0, all_users(2, (0.0, 1.0), 1), "uniform"),
    (2, 1, 4, 1.0, 1.0, all_users(2, (0.0, 1.0), 1), "uniform"),
    (2, 2, 3, 0.5, 0.5, all_users(2, (0.0, 1.0), 2), "uniform"),
    (2, 2, 3, 1.0, 1.0, all_users(2, (0.0, 1.0), 2), "uniform"),
    (3, 1, 3, 0.5, 0.5, all_users(3, (0.0, 1.0), 1), "uniform"),
]


def bandit_event(
    n: int, k: int, rounds: int, rate: float, share: float, resample: Any, cap: int | None
) -> Any:
    made = BanditDp(n, k, exploring=share, cap=cap, resample=resample, horizon=rounds, rate=rate, **HUGE)
    return made.events


WAYS: list[tuple[Resample, int | None]] = [
    *itertools.product(("all", "own"), (None, 1, 2)),  # type: ignore[list-item]
    ("every", None),  # a cap would not change what this costs
]


@pytest.mark.parametrize(("resample", "cap"), WAYS)
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case,
            id=f"N={case[0]},k={case[1]},T={case[2]},rate={case[3]}",
            marks=[] if case[:3] == (2, 1, 3) else [pytest.mark.slow],
        )
        for case in CASES
    ],
)
def test_algorithm_3_keeps_its_claim(case: Any, resample: Resample, cap: int | None) -> None:
    n, k, rounds, rate, share, users, first = case
    choices = [[None, *users]] * (rounds - 1) + [users[:1]]
    if len(users) > 5:
        choices = [users] * (rounds - 1) + [users[:1]]  # who does not answer is like whom nothing pleases
    law: Callable[[Stream], Law] = lambda stream: bandit_law(stream, n, k, rate, share, resample, cap, first)  # noqa: E731
    result = worst(law, choices, EPSILONS)
    event = bandit_event(n, k, rounds, rate, share, resample, cap)
    assert event.count == (rounds - 1 if cap is None or resample == "every" else min(cap, rounds - 1))
    for epsilon in EPSILONS:
        for name in ("zcdp", "pure", "adaptive-range"):
            assert result.delta[epsilon] <= COUNTED[name].delta(event, epsilon) + 1e-12
    ratio = result.ratio(event.count * event.span**2 / 8)
    assert ratio <= 1
    assert result.epsilon <= event.count * event.span
    if share == 1.0 and k == 1 and cap is None:
        assert ratio > 0.95, "with one slot that always explores the price is nearly what it must be"
    if cap is None and resample != "every":
        again = share / k if resample == "own" else share
        for epsilon in EPSILONS:
            assert result.delta[epsilon] <= delta_over_draws(rounds - 2, share, again, rate, epsilon) + 1e-12


def test_who_does_not_answer_is_like_whom_nothing_pleases() -> None:
    nothing = (0.0,) * 4
    for resample, cap in itertools.product(("all", "own", "every"), (None, 1)):
        laws = [
            bandit_law((one, (0.0, 1.0, 0.0, 1.0), nothing), 2, 2, RATE, 0.5, resample, cap)  # type: ignore[arg-type]
            for one in (None, nothing)
        ]
        assert laws[0].keys() == laws[1].keys()
        assert all(laws[0][seen] == pytest.approx(laws[1][seen], rel=1e-12) for seen in laws[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mistake", "setting"),
    [
        ("redraw on arrival", (3, 2, 2, 1.0, "all", None, "uniform")),
        ("redraw on arrival", (2, 2, 3, 0.5, "own", None, "uniform")),
        ("cap counts answers", (2, 1, 3, 1.0, "all", 1, "uniform")),
        ("exploiting teaches", (2, 2, 3, (0.0, 1.0, 0.0), "all", 1, "uniform")),
        ("one cap", (2, 2, 3, 1.0, "own", 1, (0, 1))),
    ],
)
def test_what_must_not_be_done_is_noticed(mistake: Any, setting: Any) -> None:
    """The same claims, the same checks, on algorithms that are wrong in one place."""
    n, k, rounds, share, resample, cap, first = setting
    users = [None, *covering_users(n)]
    event = bandit_event(n, k, rounds, RATE, 0.5, resample, cap)

    def broken(mistake: Any) -> bool:
        law = lambda stream: bandit_law(stream, n, k, RATE, share, resample, cap, first, mistake)  # noqa: E731
        result = worst(law, [users] * (rounds - 1) + [users[:1]], EPSILONS)
        return (
            any(result.delta[e] > ACCOUNTANTS["zcdp"].delta(event, e) + 1e-12 for e in EPSILONS)
            or result.epsilon > event.count * event.span
            or result.ratio(event.count * event.span**2 / 8) > 1
        )

    assert broken(mistake)
    assert not broken("none")
