"""Private sums: hostile users move no release by more than was paid for; releases happen once, in order, on time."""

from __future__ import annotations

import math
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diminuendo import SeededSource, SystemSource
from diminuendo.errors import InvalidInput, LedgerDamaged, OverBudget
from diminuendo.privacy import calibrate
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import ContinuousGaussian, Gaussian, Laplace, Selections
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness import PublicSource, SecretRandomness, noise
from diminuendo.sums.clip import Clip
from diminuendo.sums.private_sum import PrivateSum
from diminuendo.sums.schedule import Schedule, equal, geometric
from diminuendo.sums.strategies import STRATEGIES
from diminuendo.sums.strategies.blt import UNIT_BITS, Blt
from diminuendo.types import Ints
from tests.sums.test_clip import HOSTILE

EVERY = pytest.mark.parametrize("strategy", STRATEGIES)
SIZE = 3
Cost = Gaussian | Laplace | ContinuousGaussian
COSTS: list[Cost] = [Gaussian(0.5), Laplace(1.0), ContinuousGaussian(1.0)]


def secret(seed: int = 0) -> SecretRandomness:
    return SecretRandomness(SeededSource(seed))


def ledger_for(cost: Cost) -> Ledger:
    if isinstance(cost, Laplace):
        return Ledger(Budget(1.0, 0.0, accountant="pure"))
    return Ledger(
        Budget(8.0, 1e-6, accountant="zcdp" if isinstance(cost, Gaussian) else "continuous-gaussian")
    )


def fresh(strategy: str, releases: int, cost: Cost = COSTS[0], **options: Any) -> PrivateSum:
    made: dict[str, Any] = {
        "schedule": equal(100, releases),
        "ledger": ledger_for(cost),
        "strategy": strategy,
        "cost": cost,
    }
    return PrivateSum(SIZE, **(made | options))


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
    users=st.lists(hostile, min_size=4, max_size=9),
    place=st.integers(0, 3),
    other=hostile,
    releases=st.integers(1, 9),
    clip=st.sampled_from([Clip(), Clip(signed=True, ticks=50), Clip("l1", ticks=1 << 20), Clip(bound=9.0)]),
)
def test_hostile_users_move_the_releases_by_no_more_than_is_charged(
    strategy: str,
    users: list[list[float]],
    place: int,
    other: list[float],
    releases: int,
    clip: Clip,
) -> None:
    """All releases of a run, for two inputs that differ in one user: the exact shifts against the stated ones."""
    runs = []
    for stream in (users, [*users[:place], other, *users[place + 1 :]]):
        total = fresh(strategy, releases, clip=clip)
        rows = []
        for b in range(releases):
            for number, user in enumerate(stream[b::releases]):
                if number % 3 == 0:
                    total.add(user)
                elif number % 3 == 1:
                    total.add(user, range(SIZE))
                else:
                    total.add_rows(np.array([user]))
            rows.append(total._encoder.encode(total._take()))
        runs.append(np.concatenate(rows).astype(object))
    shift = runs[0] - runs[1]
    squares, sums = (shift**2).sum(), np.abs(shift).sum()
    assert squares <= clip.sensitivity_squared(SIZE) * total.strategy.square
    assert sums <= clip.sensitivity(SIZE) * total.strategy.total


@EVERY
def test_the_charge_is_attained(strategy: str) -> None:
    """The bound is no looser than it must be: the first user of all, wanting one thing or another."""
    runs = []
    for first in ([1.0, 0, 0], [0, 1.0, 0]):
        total = fresh(strategy, 16)
        total.add(first)
        runs.append(np.concatenate([total._encoder.encode(total._take()) for _ in range(16)]))
    squares = int(((runs[0] - runs[1]) ** 2).sum())
    bound = total.clip.sensitivity_squared(SIZE) * total.strategy.square
    assert bound * (1 - 1e-3 * (strategy == "blt")) <= squares <= bound


def test_rounded_buffers_never_shift_by_more_than_a_rounded_up_unit() -> None:
    """Theorem S3, entry by entry, over many histories at once; and the bound is reached, so no smaller one would do."""
    blt, rng, many = Blt(1000), np.random.default_rng(3), 60_000
    assert blt.guard > UNIT_BITS  # or the last step of all would round nothing
    shift = rng.integers(-3, 4, many)
    one, other = blt.encoder(many), blt.encoder(many)
    for _ in range(5):
        before = rng.integers(0, 50, many)
        one.encode(before)
        other.encode(before)
    reached = 0
    for lag in range(40):
        batch = rng.integers(0, 50, many)
        moved = one.encode(batch + (shift if lag == 0 else 0)) - other.encode(batch)
        assert (np.abs(moved[0]) <= blt.weights[lag] * np.abs(shift)).all()
        reached += lag > 0 and bool(
            (np.abs(moved[0])[shift != 0] == (blt.weights[lag] * np.abs(shift))[shift != 0]).any()
        )
    assert reached > 5


@EVERY
@pytest.mark.parametrize("cost", COSTS, ids=lambda cost: type(cost).__name__)
def test_the_event_is_what_was_asked_or_less(strategy: str, cost: Cost) -> None:
    total = fresh(strategy, 12, cost)
    if isinstance(total.event, ContinuousGaussian):
        assert isinstance(cost, ContinuousGaussian)
        assert cost.mu * (1 - 1e-9) < total.event.mu <= cost.mu
        square = total.clip.sensitivity_squared(SIZE) * total.strategy.square
        assert Fraction(square) / Fraction(total.scale) ** 2 <= Fraction(total.event.mu) ** 2
        return
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
            user = rng.dirichlet(np.ones(SIZE))
            total.add(user)
            exact += np.floor(user * 1024) / 1024
        np.testing.assert_allclose(total.release(secret()), exact, atol=1e-3)
    assert len(bare) == 10


@EVERY
@pytest.mark.parametrize("cost", COSTS, ids=lambda cost: type(cost).__name__)
def test_the_noise_has_the_stated_deviation(strategy: str, cost: Gaussian | Laplace) -> None:
    """900 entries of nothing but noise after the last of 6 releases. The sum of squares over its mean has deviation
    at most sqrt(5 / 900) = .075 (Laplace, kurtosis 6); 5 deviations are a false alarm below 1e-6."""
    held = ledger_for(cost)
    total = PrivateSum(900, schedule=equal(6, 6), cost=cost, strategy=strategy, clip=Clip("l1"), ledger=held)
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


def test_late_users_are_dropped_without_a_word(bare: list[Ints]) -> None:
    total = fresh("independent", 3)
    token = total.batch
    total.release(secret())
    total.add([1.0, 1.0, 1.0], batch=token)
    assert not total.release(secret()).any()
    for wrong in (7, -1, "0", 1.5, True):
        with pytest.raises(InvalidInput, match="batch must be"):
            total.add([1.0, 1.0, 1.0], batch=wrong)  # type: ignore[arg-type]
    total.release(secret())
    total.add([1.0, 1.0, 1.0])  # after the last release: late as well
    assert not total._cells.entries().any()


def durable(tmp_path: Path, size: int = SIZE) -> tuple[PrivateSum, Ledger]:
    held = Ledger.open(tmp_path / "ledger", Budget(1.0, 1e-6))
    cost = held.budget.share(0.5)
    return PrivateSum(
        size, schedule=equal(40, 4), cost=cost, ledger=held, strategy="sqrt-toeplitz", name="clicks"
    ), held


def system() -> SecretRandomness:
    return SecretRandomness(SystemSource())


def test_a_release_is_drawn_once_and_paid_for_once(tmp_path: Path) -> None:
    first, held = durable(tmp_path)
    first.add([1.0, 0.0, 0.0])
    early = first.snapshot()
    published = [first.release(system()), first.release(system())]
    spent = held.spent()
    held.close()
    again, held = durable(tmp_path)  # from an old snapshot
    assert held.spent() == spent
    again.restore(early)
    again.add([0.0, 1.0, 0.0])
    np.testing.assert_array_equal(again.release(system()), published[0])
    np.testing.assert_array_equal(again.release(system()), published[1])
    assert [drawn.name for drawn in held.drawn] == ["clicks.000000", "clicks.000001"]
    again.release(system())
    held.close()
    assert len(held.drawn) == 3
    with pytest.raises(InvalidInput, match="something else"):
        durable(tmp_path, size=5)


@pytest.mark.parametrize("how", ["lost", "other", "folder"])
def test_what_was_published_and_is_lost_is_not_drawn_again(tmp_path: Path, how: str) -> None:
    first, held = durable(tmp_path)
    first.release(system())
    held.close()
    (kept,) = (tmp_path / "ledger.releases").glob("*.npy")
    if how == "other":
        np.save(kept, np.load(kept) + 1)
    else:
        kept.unlink()
    if how == "folder":
        kept.parent.rmdir()
    again, held = durable(tmp_path)
    with pytest.raises(
        LedgerDamaged, match="not what was published" if how == "other" else "not drawn again"
    ):
        again.release(system())
    assert len(list((tmp_path / "ledger.releases").glob("*"))) == (how == "other")
    held.close()


def test_one_name_one_sum() -> None:
    held = Ledger(Budget(8.0, 1e-6))
    fresh("sqrt-toeplitz", 2, ledger=held)
    with pytest.raises(InvalidInput, match="in use"):
        fresh("sqrt-toeplitz", 2, ledger=held)
    fresh("sqrt-toeplitz", 2, ledger=held, name="other")
    with pytest.raises(InvalidInput, match="Names are"):
        fresh("sqrt-toeplitz", 2, ledger=held, name="my sum")


def test_nothing_is_made_that_is_not_paid_for() -> None:
    held = Ledger(Budget(1.0, 1e-6))
    with pytest.raises(OverBudget):
        fresh("sqrt-toeplitz", 2, ledger=held, cost=Gaussian(0.1))
    assert held.charges == []
    fresh("sqrt-toeplitz", 2, ledger=held, cost=held.budget.share())  # and the name is still free


def test_seeded_noise_is_worth_nothing_and_says_so(tmp_path: Path) -> None:
    total, held = durable(tmp_path)
    with pytest.raises(InvalidInput, match="seeded randomness protects no one"):
        total.release(secret())
    total.release(system())
    assert held.guarantee().secure_rng
    held.close()
    simulated = ledger_for(COSTS[0])
    fresh("sqrt-toeplitz", 2, ledger=simulated).release(secret())
    assert not simulated.guarantee().secure_rng
    assert "simulation only" in str(simulated.guarantee())
    for wrong in (PublicSource(SystemSource()), SystemSource(), None):
        with pytest.raises(InvalidInput, match="SecretRandomness"):
            fresh("sqrt-toeplitz", 2).release(wrong)  # type: ignore[arg-type]


def test_a_disk_that_fails_loses_no_batch(bare: list[Ints], monkeypatch: pytest.MonkeyPatch) -> None:
    held = ledger_for(COSTS[0])
    total = fresh("independent", 1, ledger=held)
    total.add([1.0, 0.0, 0.0])
    with monkeypatch.context() as patch:
        patch.setattr(held._kept, "once", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(OSError, match="full"):
            total.release(secret())
        assert total.left == 1
        twin = fresh("independent", 1)
        twin.restore(total.snapshot())
        assert twin.left == 1
    assert total.left == 1
    assert total.release(secret()).tolist() == [1.0, 0.0, 0.0]
    assert total.left == 0


def test_contributions_to_later_batches_wait_for_their_batch() -> None:
    total = fresh("independent", 3)
    total.add([0.5, 0.0, 0.0])
    total.add([0.0, 0.5, 0.0], batch=1)
    again = fresh("independent", 3)
    again.restore(total.snapshot())
    for kept in (total, again):
        kept.add([0.0, 0.0, 0.5], batch=1)
        assert kept._marks.tolist() == [0, 3]
        assert kept._take().tolist() == [512, 0, 0]
        assert kept._take().tolist() == [0, 512, 512]


def test_threads_add_up() -> None:
    total = PrivateSum(2, schedule=equal(800, 1), cost=COSTS[0], ledger=ledger_for(COSTS[0]))

    def work(user: list[float]) -> None:
        for _ in range(200):
            total.add(user)
            total.add(user, [0, 1])

    threads = [threading.Thread(target=work, args=(user,)) for user in ([1.0, 0.0], [0.0, 1.0])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert total._cells.entries().tolist() == [400 * 1024, 400 * 1024]


def test_going_back_forgets_a_release_under_way(bare: list[Ints], monkeypatch: pytest.MonkeyPatch) -> None:
    held = ledger_for(COSTS[0])
    total = fresh("independent", 2, ledger=held)
    early = total.snapshot()
    total.add([1.0, 0.0, 0.0])
    with monkeypatch.context() as patch:
        patch.setattr(held._kept, "once", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(OSError, match="full"):
            total.release(secret())
    total.restore(early)
    assert total.release(secret()).tolist() == [0.0, 0.0, 0.0]
    assert [drawn.name for drawn in held.drawn] == ["sum.000000"]


@EVERY
def test_a_snapshot_holds_everything(strategy: str, bare: list[Ints]) -> None:
    total, twin = fresh(strategy, 6), fresh(strategy, 6)
    for _ in range(3):
        total.add([0.5, 0.1, 0.0])
        total.release(secret())
    total.add([0.0, 0.0, 0.7])
    twin.restore(total.snapshot())
    for _ in range(3):
        np.testing.assert_array_equal(total.release(secret()), twin.release(secret()))
    for wrong in (b"", b"nonsense", total.snapshot()[:-30], fresh(strategy, 5).snapshot()):
        with pytest.raises(InvalidInput, match="snapshot"):
            twin.restore(wrong)


def test_what_could_overflow_is_refused_beforehand() -> None:
    with pytest.raises(InvalidInput, match="too much by a factor of"):
        fresh("blt", 2, schedule=Schedule((1, 1 << 50)))
    for users, fits in ((1 << 50, True), ((1 << 50) + 1, False)):  # at most 2^61 inside: 2 * 1024 ticks each
        assert (2 * users * 1024 <= 1 << 61) == fits
        if fits:
            fresh("independent", 1, schedule=Schedule((users,)))
        else:
            with pytest.raises(InvalidInput, match="too much by a factor of"):
                fresh("independent", 1, schedule=Schedule((users,)))
    total = fresh("sqrt-toeplitz", 1, schedule=equal(2, 1))
    total.add([0.0] * SIZE)
    total.add([0.0] * SIZE)
    with pytest.raises(InvalidInput, match="More than the 2 contributions"):
        total.add([0.0] * SIZE)


@pytest.mark.parametrize(
    "wrong",
    [
        {"cost": Selections(1, 0.1)},
        {"cost": Gaussian(0.0)},
        {"cost": Laplace(0.0)},
        {"cost": Gaussian(1e-40)},
        {"schedule": 4},
        {"ledger": None},
        {"clip": 1.0},
        {"name": 7},
    ],
)
def test_bad_sums_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        fresh("sqrt-toeplitz", 2, **wrong)
    for release in (0, 3, -1):
        with pytest.raises(InvalidInput, match="release"):
            fresh("sqrt-toeplitz", 2).deviation(release)


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
        result = [schedule.batch_of(t) for t in looked_at]
        assert result == [
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
        lambda: Schedule((1.7, 2.5)),  # type: ignore[arg-type]
        lambda: equal(3, 4),
        lambda: geometric(9, 1, 1.0),
        lambda: geometric(9, 0, 2.0),
        lambda: Schedule((4,)).batch_of(4),
    ):
        with pytest.raises(InvalidInput):
            wrong()
    assert math.isclose(geometric(10**6, 100, 1.5, longest=10**5).sizes[-2], 10**5)
