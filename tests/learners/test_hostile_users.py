"""Users whose own code fails or answers nonsense: they have said nothing, and nobody else sees anything of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from diminuendo import LEARNERS, Learner, Oracle, SeededSource, Setting
from diminuendo.continuous import BoostedAscent, Box
from diminuendo.errors import OutOfRange
from diminuendo.offline import private_greedy
from diminuendo.privacy.budget import Budget
from diminuendo.streams import Functions, taste_groups
from tests.kit.slow import MECHANISMS, mostly_slow

N, K, ROUNDS = 6, 2, 90
USERS = taste_groups(ROUNDS, N, groups=2, items_per_group=2, seed=1)
FULL = [name for name, entry in LEARNERS.items() if entry.private and "full" in entry.reads]

HUGE = np.longdouble("1e4000")


class Foreign:
    """A user whose methods return what is said here, or raise it."""

    n_items = N

    def __init__(self, gains: Callable[[], Any], value: Callable[[], Any]) -> None:
        self._gains, self._value = gains, value

    def gains(self, prefix: Any) -> Any:
        return self._gains()

    def value(self, slate: Any) -> Any:
        return self._value()


def raising(error: BaseException) -> Callable[[], Any]:
    def throw() -> Any:
        raise error

    return throw


NONSENSE: dict[str, Foreign | Oracle] = {
    "complex": Foreign(lambda: np.full(N, 1j), lambda: np.complex128(0.5 + 1j)),
    "complex gains": Foreign(lambda: [1j] * N, lambda: 0.5),
    "complex objects": Foreign(lambda: np.full(N, np.complex128(1j), dtype=object), lambda: 0.5),
    "long doubles": Foreign(lambda: np.full(N, HUGE), lambda: HUGE),
    "text": Foreign(lambda: ["much"] * N, lambda: "much"),
    "infinite": Foreign(lambda: np.full(N, np.inf), lambda: -np.inf),
    "a complex function": Oracle(lambda items: np.complex128(len(items) * 1j), N),  # type: ignore[arg-type,return-value]
    "a huge function": Oracle(lambda items: HUGE * len(items), N),  # type: ignore[arg-type,return-value]
    "RuntimeError": Foreign(raising(RuntimeError()), raising(RuntimeError())),
    "MemoryError": Foreign(raising(MemoryError()), raising(MemoryError())),
}


class Later:
    """A user who behaves when she answers, and no more when she is asked again."""

    n_items = N

    def __init__(self, then: Foreign | Oracle) -> None:
        self._asked, self._then = 0, then

    def gains(self, prefix: Any) -> Any:
        self._asked += 1
        return np.full(N, 0.1) if self._asked < 2 else self._then.gains(prefix)

    def value(self, slate: Any) -> float:
        return 0.2


def made(name: str) -> Learner:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutOfRange)
        return LEARNERS[name].for_setting(Setting(N, K, ROUNDS, "full", 1.0), rng=SeededSource(1))


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("what", NONSENSE)
@pytest.mark.parametrize("name", mostly_slow(FULL, MECHANISMS))
def test_nobody_sees_what_one_user_did(name: str, what: str, later: bool) -> None:
    """Neither when she answers nor when others are shown a slate is there a warning or an error."""
    learner = made(name)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for number in range(ROUNDS):
            decision = learner.choose()
            one = NONSENSE[what]
            learner.observe(decision, USERS[number] if number % 7 else Later(one) if later else one)
    assert learner.rounds == ROUNDS
    assert not seen


@pytest.mark.parametrize("what", NONSENSE)
def test_nor_where_points_are_played(what: str) -> None:
    class Slopes:
        def gradients(self, points: Any) -> Any:
            said = NONSENSE[what].gains(())
            return np.broadcast_to(np.asarray(said), np.shape(points))

    learner = BoostedAscent(Box([1.0] * N), 40, gradient_bound=1.0, noise="gaussian", rng=SeededSource(1))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(40):
            learner.observe(learner.choose(), Slopes())  # type: ignore[arg-type]
    assert learner.rounds == 40
    assert not seen


@pytest.mark.parametrize("said", [raising(RuntimeError()), lambda: np.complex128(1j), lambda: HUGE])
def test_nor_in_private_greedy(said: Callable[[], Any]) -> None:
    crowd = Functions([lambda items: float(0 in items), lambda items: said() if items else 0.0], N)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert len(private_greedy(crowd, K, budget=Budget(1.0, 1e-6), rng=SeededSource(1)).slate) == K
    assert not seen
