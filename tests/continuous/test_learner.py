"""What both learners of points keep: rounds, feedback, snapshots, ledgers, and what they refuse."""

from __future__ import annotations

import contextlib
import copy
import math
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diminuendo.continuous import BoostedAscent, MetaFrankWolfe, PointDecision
from diminuendo.errors import InvalidInput, OverBudget, WrongFeedback
from diminuendo.privacy import Budget, Ledger, Unit
from diminuendo.privacy.events import ContinuousGaussian, Gaussian, Laplace
from diminuendo.randomness import SystemSource
from diminuendo.types import Floats
from tests.continuous.players import Says, boosted, frank_wolfe, users

Maker = Callable[..., Any]
PURE = {boosted: "laplace", frank_wolfe: "gamma"}
EITHER = pytest.mark.parametrize("make", PURE)
NOISE = pytest.mark.parametrize(
    ("make", "noise"), [(make, noise) for make, pure in PURE.items() for noise in ("gaussian", pure)]
)
KINDS: list[tuple[Maker, dict[str, Any]]] = [
    *((make, {}) for make in PURE),
    *((make, {"noise": "gaussian", "releases": 7}) for make in PURE),
    *((make, {"noise": "gaussian", "epsilon": 30.0}) for make in PURE),
    *((make, {"noise": pure, "releases": 7}) for make, pure in PURE.items()),
    (frank_wolfe, {"noise": "gamma", "calibration": "paper"}),
]
EVERY = pytest.mark.parametrize(("make", "how"), KINDS, ids=lambda part: getattr(part, "__name__", str(part)))


# Rounds and feedback.


@EVERY
def test_replay_is_the_loop_and_users_are_listened_to(make: Maker, how: dict[str, Any]) -> None:
    quick, slow = make(**how), make(**how)
    points = quick.replay(users())
    for t, user in enumerate(users()):
        decision = slow.choose()
        assert decision.round == t
        np.testing.assert_array_equal(decision.point, points[t])
        assert slow.domain.contains(decision.point)
        slow.observe(decision, user)
    assert quick.rounds == slow.rounds == 60
    assert quick.snapshot() == slow.snapshot()
    first = slow.plan.schedule.ends[0]
    other = make(**how).replay(users(seed=9))
    np.testing.assert_array_equal(points[:first], np.tile(points[0], (first, 1)))
    np.testing.assert_array_equal(points[:first], other[:first])  # nothing was released yet
    assert not np.array_equal(points, other)


@EVERY
def test_an_answer_counts_once_and_until_its_batch_closes(make: Maker, how: dict[str, Any]) -> None:
    made = make(**how)
    size, user = made.plan.schedule.ends[0], users()[0]
    decisions = [made.choose() for _ in range(size)]
    quiet = made.snapshot()
    made.observe(decisions[0], user)  # the last choose() of the batch was made, but no later one: in time
    answered = made.snapshot()
    assert answered != quiet
    made.observe(decisions[0], users(seed=5)[0])  # the second answer
    assert made.snapshot() == answered
    made.choose()  # closes the batch
    closed = made.snapshot()
    for late in decisions:
        made.observe(late, user)
    assert made.snapshot() == closed


@NOISE
def test_nothing_visible_depends_on_who_answered(make: Maker, noise: str) -> None:
    seen = []
    for share in (0.0, 0.5, 1.0):
        ledger = Ledger(Budget(1.0, 1e-6))
        made = make(noise=noise, releases=7, epsilon=0.1, ledger=ledger)
        for t, user in enumerate(users()):
            decision = made.choose()
            if t < share * 60:
                made.observe(decision, user)
        lines = [(charge.event, charge.note) for charge in ledger.charges]
        parts = made._parts.tolist() if make is boosted else None
        seen.append((lines, [drawn.name for drawn in ledger.drawn], made.rounds, parts))
    assert seen[0] == seen[1] == seen[2]
    assert len(seen[0][1]) == 7


def raising(points: Floats) -> Any:
    raise RuntimeError("no")


def meddling(points: Floats) -> Floats:
    points += 1.0
    return -points


NOTHING: list[Callable[[Floats], Any]] = [
    raising,
    meddling,
    lambda points: None,
    lambda points: "abc",
    lambda points: points[:1, :1],
    lambda points: np.full(points.shape, np.nan),
    lambda points: np.full(points.shape, -np.inf),
    lambda points: -np.ones(points.shape),
]


@EVERY
def test_nonsense_counts_as_nothing(make: Maker, how: dict[str, Any]) -> None:
    copies = {"copies": 2} if make is frank_wolfe and "calibration" not in how else {}
    ends = []
    for say in (lambda points: np.zeros(points.shape), *NOTHING):
        made = make(**how, **copies)
        for t, user in enumerate(users()):
            made.observe(made.choose(), Says(say) if t % 3 == 0 else user)
        ends.append(made._vertices)
    assert all(np.array_equal(end, ends[0]) for end in ends)
    heard = make(**how, **copies)
    heard.replay(users())
    assert not np.array_equal(ends[0], heard._vertices)


def test_an_objective_cannot_answer_twice_from_within() -> None:
    made = frank_wolfe()
    decision = made.choose()

    def answering(points: Floats) -> Floats:
        points += 1.0
        made.observe(decision, users()[0])
        return np.ones(points.shape)

    probes = made._probes.copy()
    made.observe(decision, Says(answering))
    np.testing.assert_array_equal(made._probes, probes)
    alone = frank_wolfe()
    alone.observe(alone.choose(), users()[0])
    assert made.snapshot() == alone.snapshot()


@EVERY
def test_what_is_refused_changes_nothing(make: Maker, how: dict[str, Any]) -> None:
    made = make(rounds=10, **(how | ({"releases": 3} if "releases" in how else {})))
    made.replay(users(8))
    before = made.snapshot()
    with pytest.raises(InvalidInput, match="made for 10 rounds"):
        made.replay(users(3))
    assert made.snapshot() == before
    decision = made.choose()
    before = made.snapshot()
    with pytest.raises(InvalidInput, match="never chosen"):
        made.observe(PointDecision(99, decision.point), users()[0])
    with pytest.raises(InvalidInput, match="another point"):
        made.observe(PointDecision(decision.round, decision.point + 0.1), users()[0])
    with pytest.raises(WrongFeedback, match="gradients"):
        made.observe(decision, 0.5)
    with pytest.raises(ValueError, match="read-only"):
        decision.point[0] = 1.0
    assert made.snapshot() == before
    made.choose()
    with pytest.raises(InvalidInput, match="made for 10 rounds"):
        made.choose()


@EITHER
def test_it_is_not_copied_not_printed_and_threads_take_turns(make: Maker) -> None:
    made = make(noise="gaussian")
    assert "gaussian noise, 0 of 60" in repr(made)
    assert repr(made._sums) == f"<{type(made._sums).__name__}>"
    for copied in (copy.deepcopy, pickle.dumps):
        with pytest.raises(InvalidInput, match="not copied"):
            copied(made)
    seen: list[int] = []

    def work() -> None:
        with contextlib.suppress(InvalidInput):
            while True:
                seen.append(made.choose().round)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(60))


# Snapshots and ledgers.


@EVERY
def test_a_restored_learner_goes_on_in_the_same_way(make: Maker, how: dict[str, Any]) -> None:
    made, other = make(**how), make(seed=8, **how)
    made.replay(users()[:33])
    decision = made.choose()
    saved = made.snapshot()
    other.restore(saved)
    assert other.snapshot() == saved
    for each in (made, other):  # randomness of an open round is in the snapshot
        each.observe(decision, users()[33])
        answered = each.snapshot()
        each.observe(decision, users(seed=4)[0])
        assert each.snapshot() == answered
    assert other.snapshot() == made.snapshot() != saved
    np.testing.assert_array_equal(other._point, made._point)
    if make is frank_wolfe and not how:  # it draws nothing at all
        np.testing.assert_array_equal(other.replay(users()[34:]), made.replay(users()[34:]))
    for bad in (b"", b"abc", make(n=4, **how).snapshot(), make(rounds=61, **how).snapshot()):
        with pytest.raises(InvalidInput):
            made.restore(bad)


@EITHER
def test_a_snapshot_of_another_noise_is_refused(make: Maker) -> None:
    with pytest.raises(InvalidInput):
        make(noise="gaussian", releases=7).restore(make(noise=PURE[make], releases=7).snapshot())
    with pytest.raises(InvalidInput):
        frank_wolfe().restore(frank_wolfe(copies=2).snapshot())


@NOISE
def test_with_the_same_ledger_nothing_is_drawn_again(make: Maker, noise: str, tmp_path: Path) -> None:
    """After a crash, what was published since the snapshot is published again, though new noise would differ."""
    path = tmp_path / "population.ledger"
    budget = Budget(2.0, 1e-6) if noise == "gaussian" else Budget(2.0, 0.0, accountant="pure")
    how: dict[str, Any] = {"rounds": 20, "noise": noise, "releases": 4, "epsilon": 2.0, "rng": SystemSource()}
    how |= {"copies": 3} if make is frank_wolfe else {}
    with Ledger.open(path, budget) as ledger:
        first = make(ledger=ledger, **how)
        first.replay(users(6))
        saved = first.snapshot()
        points = first.replay(users(20)[6:16])
    with Ledger.open(path, budget) as ledger:
        second = make(ledger=ledger, **how)
        second.restore(saved)
        np.testing.assert_array_equal(second.replay(users(20)[6:16]), points)
        assert len(ledger.charges) == 1
        second.replay(users(4))
        assert len(ledger.drawn) == 4
    elsewhere = make(ledger=Ledger(budget), **how)
    elsewhere.restore(saved)
    assert np.abs(elsewhere.replay(users(20)[6:16])[-1] - points[-1]).max() > 0


@NOISE
def test_a_release_that_failed_is_not_drawn_again(
    make: Maker, noise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(Budget(1.0, 1e-6) if noise == "gaussian" else Budget(1.0, 0.0, accountant="pure"))
    made = make(noise=noise, releases=7, ledger=ledger)
    saved = made.snapshot()
    with monkeypatch.context() as patched:
        patched.setattr(ledger._kept, "once", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(OSError, match="full"):
            made.replay(users())
    with pytest.raises(InvalidInput, match="restore"):
        made.choose()
    assert not ledger.drawn
    again = make(noise=noise, releases=7, ledger=Ledger(ledger.budget))
    again.restore(saved)
    assert len(again.replay(users())) == 60


@EITHER
def test_the_ledger_is_charged_at_once_and_refuses(make: Maker) -> None:
    ledger = Ledger(Budget(1.0, 1e-6))
    make(noise="gaussian", epsilon=0.9, ledger=ledger)
    with pytest.raises(OverBudget):
        make(noise="gaussian", epsilon=0.9, ledger=ledger, name="again")
    assert len(ledger.charges) == 1


# Guarantees. What is released is held against them in test_privacy.py.


@EITHER
def test_guarantees(make: Maker) -> None:
    assert math.isinf(make().guarantee.epsilon)
    assert make().event is None
    pure = make(noise=PURE[make], epsilon=0.5)
    assert isinstance(pure.event, Laplace)
    assert 0.5 * (1 - 1e-9) <= pure.guarantee.epsilon <= 0.5
    assert pure.guarantee.delta == 0.0
    assert pure.guarantee.exact == (make is boosted) == ("in real arithmetic" not in str(pure.guarantee))
    gauss = make(noise="gaussian", epsilon=0.5, ledger=Ledger(Budget(0.5, 1e-6)))
    assert isinstance(gauss.event, Gaussian)
    assert 0.5 * (1 - 1e-6) <= gauss.guarantee.epsilon <= 0.5
    assert gauss.guarantee.exact
    assert not gauss.guarantee.secure_rng
    assert make(noise="gaussian", rng=SystemSource()).guarantee.secure_rng


def test_a_learner_with_a_ledger_of_its_own_counts_rounded_gaussians() -> None:
    for made in (
        boosted(noise="gaussian"),
        boosted(noise="gaussian", ledger=Ledger(Budget(1.0, 1e-6, accountant="continuous-gaussian"))),
    ):
        assert isinstance(made.event, ContinuousGaussian)
        assert 1 - 1e-6 <= made.guarantee.epsilon <= 1.0


@NOISE
def test_a_user_of_several_rounds_costs_more_noise(make: Maker, noise: str) -> None:
    accountant = "pure" if noise != "gaussian" else "continuous-gaussian" if make is boosted else "zcdp"
    budget = Budget(1.0, 0.0 if accountant == "pure" else 1e-6, Unit(rounds=3), accountant)  # type: ignore[arg-type]
    how: dict[str, Any] = {"noise": noise} | ({"copies": 2, "releases": 7} if make is frank_wolfe else {})
    alone, three = make(**how), make(ledger=Ledger(budget), **how)
    if make is boosted:
        ratio = math.sqrt(three.plan.square / alone.plan.square)
    else:
        ratio = three.plan.noise / alone.plan.noise
    assert ratio == pytest.approx(3.0, rel=1e-5)
    assert three.guarantee.epsilon <= 1.0
    assert "3 rounds" in three.guarantee.neighbours


# What is refused when a learner is made.


@pytest.mark.parametrize(
    ("make", "how", "said"),
    [
        *(
            (make, *one)
            for make in PURE
            for one in (
                ({"noise": PURE[frank_wolfe if make is boosted else boosted]}, "noise must be one of"),
                ({"releases": 3}, "Without noise"),
                ({"noise": "gaussian", "releases": 60}, "releases must be"),
                ({"noise": "gaussian", "delta": 0.0}, "delta"),
                ({"noise": "gaussian", "epsilon": -1.0}, "epsilon"),
                ({"rounds": 1}, "at least 2"),
                *(({"gradient_bound": steep}, "gradient_bound") for steep in (0.0, np.nan, 1e-101, 1e101)),
            )
        ),
        (boosted, {"noise": "laplace", "epsilon": 1e-30}, "scale"),
        (frank_wolfe, {"calibration": "best"}, "calibration"),
        (frank_wolfe, {"calibration": "paper"}, "as printed"),
        (frank_wolfe, {"noise": "gamma", "calibration": "paper", "copies": 3}, "as printed"),
        (frank_wolfe, {"noise": "gaussian", "copies": 0}, "copies"),
        (frank_wolfe, {"copies": -1}, "copies"),
        (frank_wolfe, {"smoothness": np.inf}, "smoothness"),
    ],
)
def test_wrong_arguments(make: Maker, how: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        make(**how)


def test_a_domain_is_a_domain() -> None:
    with pytest.raises(InvalidInput, match="Domain"):
        BoostedAscent([1.0], 5, gradient_bound=1.0)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="Domain"):
        MetaFrankWolfe([1.0], 5, gradient_bound=1.0, smoothness=0.0)  # type: ignore[arg-type]
