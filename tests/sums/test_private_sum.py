"""Private sums: hostile people move no release by more than was paid for; releases happen once, in order, on time."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diminuendo import SeededCoins
from diminuendo.errors import InvalidInput, OverBudget
from diminuendo.privacy import calibrate
from diminuendo.privacy.events import Gaussian, Laplace, Selections
from diminuendo.privacy.releases import Releases
from diminuendo.randomness import SecretRandomness, noise
from diminuendo.sums.clip import Clip
from diminuendo.sums.private_sum import PrivateSum
from diminuendo.sums.schedule import Schedule, equal, geometric
from diminuendo.sums.strategies import STRATEGIES
from diminuendo.types import Ints
from tests.sums.test_clip import HOSTILE

EVERY = pytest.mark.parametrize("strategy", STRATEGIES)
SIZE = 3
COSTS: list[Gaussian | Laplace] = [Gaussian(0.5), Laplace(1.0)]


def secret(seed: int = 0) -> SecretRandomness:
    return SecretRandomness(SeededCoins(seed))


def fresh(strategy: str, releases: int, cost: Gaussian | Laplace = COSTS[0], **options: Any) -> PrivateSum:
    return PrivateSum(SIZE, rounds=100, releases=releases, cost=cost, strategy=strategy, **options)


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> list[Ints]:
    """No noise: what is about to be covered by noise is written down instead."""
    seen: list[Ints] = []

    def record(values: Ints, scale: float, secret: SecretRandomness) -> Ints:
        seen.append(values.copy())
        return values

    monkeypatch.setattr(noise, "gaussian", record)
    monkeypatch.setattr(noise, "laplace", record)
    return seen


hostile = st.lists(st.sampled_from(HOSTILE) | st.floats(), min_size=SIZE, max_size=SIZE)


@pytest.fixture(scope="module", params=STRATEGIES)
def strategy(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@settings(deadline=None, max_examples=60)
@given(
    people=st.lists(hostile, min_size=4, max_size=9),
    place=st.integers(0, 3),
    other=hostile,
    releases=st.integers(1, 9),
    clip=st.sampled_from([Clip(), Clip(signed=True, ticks=50), Clip("l1", ticks=1 << 20), Clip(bound=9.0)]),
)
def test_hostile_people_move_the_releases_by_no_more_than_is_charged(
    strategy: str,
    people: list[list[float]],
    place: int,
    other: list[float],
    releases: int,
    clip: Clip,
) -> None:
    """All releases of a run, for two inputs that differ in one person: the exact shifts against the stated ones."""
    runs = []
    for stream in (people, [*people[:place], other, *people[place + 1 :]]):
        total = fresh(strategy, releases, clip=clip)
        rows = []
        for b in range(releases):
            for person in stream[b::releases]:
                total.add(person)
            rows.append(total._encoder.encode(total._take()))
        runs.append(np.concatenate(rows).astype(object))
    shift = runs[0] - runs[1]
    squares, sums = (shift**2).sum(), np.abs(shift).sum()
    assert squares <= clip.sensitivity_squared(SIZE) * total.strategy.square
    assert sums <= clip.sensitivity(SIZE) * total.strategy.total


@EVERY
def test_the_charge_is_attained(strategy: str) -> None:
    """The bound is no looser than it must be: the first person of all, wanting one thing or another."""
    runs = []
    for first in ([1.0, 0, 0], [0, 1.0, 0]):
        total = fresh(strategy, 16)
        total.add(first)
        runs.append(np.concatenate([total._encoder.encode(total._take()) for _ in range(16)]))
    squares = int(((runs[0] - runs[1]) ** 2).sum())
    bound = total.clip.sensitivity_squared(SIZE) * total.strategy.square
    assert bound * (1 - 1e-3 * (strategy == "blt")) <= squares <= bound


@EVERY
@pytest.mark.parametrize("cost", COSTS, ids=lambda cost: type(cost).__name__)
def test_the_event_is_what_was_asked_or_less(strategy: str, cost: Gaussian | Laplace) -> None:
    total = fresh(strategy, 12, cost)
    if isinstance(total.event, Gaussian):
        assert isinstance(cost, Gaussian)
        assert cost.rho * (1 - 1e-9) < total.event.rho <= cost.rho
        square = total.clip.sensitivity_squared(SIZE) * total.strategy.square
        assert total.scale == calibrate.gaussian_sigma(cost.rho, square)
    else:
        assert isinstance(cost, Laplace)
        assert cost.epsilon * (1 - 1e-9) < total.event.epsilon <= cost.epsilon
        assert total.scale == calibrate.laplace_scale(
            cost.epsilon, total.clip.sensitivity(SIZE) * total.strategy.total
        )


@EVERY
def test_without_noise_the_running_sum_comes_out(strategy: str, bare: list[Ints]) -> None:
    total, exact, rng = fresh(strategy, 10), np.zeros(SIZE), np.random.default_rng(1)
    for _ in range(10):
        for _ in range(rng.integers(0, 4)):
            person = rng.dirichlet(np.ones(SIZE))
            total.add(person)
            exact += np.floor(person * 1024) / 1024
        np.testing.assert_allclose(total.release(secret()), exact, atol=1e-3)
    assert len(bare) == 10


@EVERY
@pytest.mark.parametrize("cost", COSTS, ids=lambda cost: type(cost).__name__)
def test_the_noise_has_the_stated_deviation(strategy: str, cost: Gaussian | Laplace) -> None:
    """900 entries of nothing but noise after the last of 6 releases. The sum of squares over its mean has deviation
    at most sqrt(5 / 900) = .075 (Laplace, kurtosis 6); 5 deviations are a false alarm below 1e-6."""
    total = PrivateSum(900, rounds=1, releases=6, cost=cost, strategy=strategy, clip=Clip("l1"))
    source = secret(5)
    for _ in range(6):
        last = total.release(source)
    ratio = float((last**2).mean()) / total.deviation(6) ** 2
    assert abs(ratio - 1) < 5 * 0.075
    for wrong in (1.5, 1 / 1.5):
        assert abs(ratio * wrong**2 - 1) > 5 * 0.075


@EVERY
def test_empty_batches_are_released_and_nothing_after_the_last(strategy: str, bare: list[Ints]) -> None:
    total = fresh(strategy, 3)
    for b in range(3):
        assert total.batch == b
        assert total.release(secret()).shape == (SIZE,)
    assert [rows.shape[1] for rows in bare] == [SIZE] * 3
    assert total.left == 0
    with pytest.raises(OverBudget, match="All 3 releases"):
        total.release(secret())
    assert len(bare) == 3


def test_late_people_are_dropped_without_a_word(bare: list[Ints]) -> None:
    total = fresh("independent", 3)
    token = total.batch
    total.release(secret())
    total.add([1.0, 1.0, 1.0], batch=token)
    assert not total.release(secret()).any()
    with pytest.raises(InvalidInput, match="has not begun"):
        total.add([1.0, 1.0, 1.0], batch=7)


def test_a_release_is_drawn_once(tmp_path: Path) -> None:
    first = fresh("tree", 4, kept=Releases(tmp_path), name="clicks")
    first.add([1.0, 0.0, 0.0])
    published = [first.release(secret(1)), first.release(secret(2))]
    again = fresh("tree", 4, kept=Releases(tmp_path), name="clicks")  # from an old snapshot, with other noise
    again.add([0.0, 1.0, 0.0])
    np.testing.assert_array_equal(again.release(secret(8)), published[0])
    np.testing.assert_array_equal(again.release(secret(9)), published[1])
    other = PrivateSum(5, rounds=9, releases=4, cost=COSTS[0], kept=Releases(tmp_path), name="clicks")
    with pytest.raises(InvalidInput, match="another sum"):
        other.release(secret())


def test_a_disk_that_fails_loses_no_batch(bare: list[Ints], monkeypatch: pytest.MonkeyPatch) -> None:
    total = fresh("independent", 1)
    total.add([1.0, 0.0, 0.0])
    with monkeypatch.context() as patch:
        patch.setattr(total._kept, "once", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(OSError, match="full"):
            total.release(secret())
    assert total.release(secret()).tolist() == [1.0, 0.0, 0.0]


@EVERY
def test_two_machines_add_up(strategy: str, bare: list[Ints]) -> None:
    rng = np.random.default_rng(2)
    alone, first = fresh(strategy, 5), fresh(strategy, 5)
    second = first.collector()
    for _ in range(5):
        for machine in (first, second):
            person = rng.random(SIZE)
            machine.add(person)
            alone.add(person)
        first.merge(second)
        np.testing.assert_array_equal(first.release(secret()), alone.release(secret()))
        assert second.batch == first.batch
    with pytest.raises(InvalidInput, match="one kind and batch"):
        fresh(strategy, 5).merge(second)


@EVERY
def test_arrays_hold_everything(strategy: str, bare: list[Ints]) -> None:
    def flat(thing: Any) -> list[Any]:
        return [thing] if isinstance(thing, np.ndarray) else [leaf for part in thing for leaf in flat(part)]

    total, twin = fresh(strategy, 6), fresh(strategy, 6)
    for _ in range(3):
        total.add([0.5, 0.1, 0.0])
        total.release(secret())
    total.add([0.0, 0.0, 0.7])
    for old, new in zip(flat(twin.arrays), flat(total.arrays), strict=True):
        old[...] = new
    for _ in range(3):
        np.testing.assert_array_equal(total.release(secret()), twin.release(secret()))


def test_what_could_overflow_is_refused_beforehand() -> None:
    with pytest.raises(InvalidInput, match=r"Take at most [\d,]+ ticks"):
        PrivateSum(2, rounds=1 << 40, releases=1 << 20, cost=COSTS[0], strategy="blt")
    total = PrivateSum(2, rounds=2, releases=1, cost=COSTS[0])
    total.add([0.0, 0.0])
    total.add([0.0, 0.0])
    with pytest.raises(InvalidInput, match="More than the 2 contributions"):
        total.add([0.0, 0.0])


@pytest.mark.parametrize(
    ("cost", "options"),
    [
        (Selections(1, 0.1), {}),
        (Gaussian(0.0), {}),
        (Laplace(0.0), {}),
        (Gaussian(1.0), {"releases": 0}),
        (Gaussian(1.0), {"size": 0}),
        (Gaussian(1.0), {"rounds": 0}),
    ],
)
def test_bad_sums_are_refused(cost: Any, options: dict[str, int]) -> None:
    with pytest.raises(InvalidInput):
        PrivateSum(**({"size": 2, "rounds": 9, "releases": 2, "cost": cost} | options))


@pytest.mark.parametrize("rounds", [1, 7, 100, 32_711])
def test_schedules_cover_every_round_once(rounds: int) -> None:
    for schedule in (
        equal(rounds, min(rounds, 13)),
        geometric(rounds, 5, 1.5),
        geometric(rounds, 5, 1.01, longest=50),
    ):
        assert schedule.rounds == rounds
        assert sum(schedule.sizes) == rounds
        assert min(schedule.sizes) >= 1
        looked_at = range(0, rounds, max(1, rounds // 997))
        found = [schedule.batch_of(t) for t in looked_at]
        assert found == [
            int(np.searchsorted(schedule.ends, t, side="right"))
            for t in range(0, rounds, max(1, rounds // 997))
        ]
        assert schedule.closed_by(rounds) == len(schedule)
        assert schedule.closed_by(schedule.ends[0]) == 1
        assert schedule.closed_by(schedule.ends[0] - 1) == 0
    if rounds > 1:
        assert max(equal(rounds, 2).sizes) - min(equal(rounds, 2).sizes) <= 1


def test_bad_schedules_are_refused() -> None:
    for wrong in (
        lambda: Schedule(()),
        lambda: Schedule((0, 4)),
        lambda: Schedule((3, 3)),
        lambda: equal(3, 4),
        lambda: geometric(9, 1, 1.0),
        lambda: geometric(9, 0, 2.0),
        lambda: Schedule((4,)).batch_of(4),
    ):
        with pytest.raises(InvalidInput):
            wrong()
    assert math.isclose(geometric(10**6, 100, 1.5, longest=10**5).sizes[-2], 10**5)
