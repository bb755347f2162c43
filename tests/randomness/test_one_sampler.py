"""There is one sampler: the same words give the same noise, draws and releases, whether they are seeded or secure.

So what is simulated, audited and tried by contracts with seeded words is what protects users with words of the system.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from diminuendo import LEARNERS, Contexts, Setting
from diminuendo.continuous import BoostedAscent, BudgetAllocation, CappedSimplex, MetaFrankWolfe
from diminuendo.evaluate import Log, evaluate_privately
from diminuendo.learners import replay
from diminuendo.learners.base import frame
from diminuendo.offline import private_greedy
from diminuendo.privacy import Budget, Ledger
from diminuendo.randomness import SecretRandomness, SeededSource, exponential, noise
from diminuendo.randomness.rounded_normal import rounded_normal
from diminuendo.streams import taste_groups
from diminuendo.sums.gamma_tree import GammaTree
from diminuendo.types import FeedbackKind
from tests.frozen.record import ROUNDS, cases, ledger_for, made, seen, streams
from tests.kit.slow import MECHANISMS

SEED = 7


class SecureTwin(SeededSource):
    """Seeded words, handed out as secure ones."""

    secure = True


def twins() -> tuple[SeededSource, SecureTwin]:
    """Sources of the same words, one of them secure."""
    return SeededSource(SEED), SecureTwin(SEED)


@pytest.fixture(autouse=True)
def one_incarnation(monkeypatch: pytest.MonkeyPatch) -> None:
    """A secure life takes a public word, a seeded one is the seed: nothing else may differ."""
    monkeypatch.setattr(frame, "incarnation_of", lambda rng: SEED)


MANY = np.zeros(700, dtype=np.int64)
MECHANISMS_OF_NOISE: dict[str, Callable[[SecretRandomness], Any]] = {
    "laplace": lambda secret: noise.laplace(MANY, 3.7, secret),
    "a wide laplace": lambda secret: noise.laplace(MANY, 1e9 / 3, secret),
    "gaussian": lambda secret: noise.gaussian(MANY, 3.7, secret),
    "rounded normal": lambda secret: rounded_normal(MANY, 3.7, secret),
    "select": lambda secret: [exponential.select(np.arange(9) % 4, 0.3, secret) for _ in range(50)],
    "survives": lambda secret: [exponential.survives(0.3, -2, secret) for _ in range(50)],
    "gamma tree": lambda secret: GammaTree(2, 5, 3, 1.5).add(np.ones((2, 5)), secret),
}


def functions_called(run: Callable[[], Any]) -> tuple[Any, set[str]]:
    """What comes out, and the functions of randomness that it came through."""
    folder, called = str(Path(noise.__file__).parent), set[str]()

    def note(at: FrameType, event: str, _: object) -> None:
        code = at.f_code
        if event == "call" and code.co_filename.startswith(folder):
            called.add(f"{Path(code.co_filename).name}:{code.co_qualname}")

    sys.setprofile(note)
    try:
        return run(), called
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("name", MECHANISMS_OF_NOISE)
def test_the_same_words_go_through_the_same_functions(name: str) -> None:
    mechanism = MECHANISMS_OF_NOISE[name]
    mechanism(SecretRandomness(SeededSource(1)))  # compiled
    secrets = [SecretRandomness(rng) for rng in twins()]
    (seeded, theirs), (secure, ours) = (functions_called(partial(mechanism, secret)) for secret in secrets)
    np.testing.assert_array_equal(seeded, secure)
    assert theirs == ours
    np.testing.assert_array_equal(secrets[0].take(3), secrets[1].take(3))
    np.testing.assert_array_equal(secrets[0].digits.take(3), secrets[1].digits.take(3))


def quick(name: str) -> list[pytest.MarkDecorator]:
    return [] if name in (*MECHANISMS, "slate-totals") else [pytest.mark.slow]


@pytest.mark.parametrize(
    ("name", "feedback"), [pytest.param(*case, marks=quick(case[0])) for case in cases()]
)
def test_every_learner_shows_and_releases_the_same(name: str, feedback: FeedbackKind) -> None:
    """The same slates, propensities, snapshots and releases, bit for bit."""
    users = streams()["noisy-or"]
    setting = Setting(users.n_items, 3, ROUNDS, feedback)
    result = []
    for rng in twins():
        ledger = ledger_for(name, setting)
        more = {} if ledger is None else {"ledger": ledger}
        result.append(seen(made(name, setting, rng, **more), feedback, users))
        if ledger is not None:
            result[-1] |= {drawn.name: drawn.digest for drawn in ledger.drawn}
    assert result[0] == result[1]


@pytest.mark.parametrize("feedback", ["full", "bandit", "click"])
@pytest.mark.parametrize("private", [False, True])
def test_with_contexts_as_well(feedback: FeedbackKind, private: bool) -> None:
    users = taste_groups(400, 12, groups=3, items_per_group=5, seed=1)
    known = Contexts(group=3, private=private)
    users = users.with_contexts(known, (np.arange(400) % 3)[:, None])
    name = {"full": "overlap-greedy", "bandit": "slate-totals", "click": "slate-clicks"}[feedback]
    setting = Setting(12, 3, len(users), feedback, 4.0, 1e-6, contexts=known)
    seeded, secure = (
        replay(LEARNERS[name].for_setting(setting, rng=rng), users, feedback) for rng in twins()
    )
    np.testing.assert_array_equal(seeded, secure)


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        (BoostedAscent, {"noise": "gaussian"}),
        (BoostedAscent, {"noise": "laplace"}),
        (MetaFrankWolfe, {"noise": "gaussian", "smoothness": 2.0}),
        (MetaFrankWolfe, {"noise": "gamma", "smoothness": 2.0}),
    ],
)
def test_continuous_learners_play_the_same(kind: Any, how: dict[str, Any]) -> None:
    users = [BudgetAllocation(np.full((4, 1), 0.1 * (1 + t % 5))) for t in range(120)]
    seeded, secure = (
        kind(CappedSimplex(4, total=2.0), len(users), gradient_bound=2.0, rng=rng, **how).replay(users)
        for rng in twins()
    )
    np.testing.assert_array_equal(seeded, secure)


def test_private_estimates_and_slates_are_the_same() -> None:
    log = Log.from_arrays(np.arange(40)[:, None] % 3, np.full(40, 1 / 3), np.arange(40) % 2)
    users = streams()["noisy-or"]
    result = [
        (
            evaluate_privately(
                log,
                {(1,): 1.0},
                epsilon=1.0,
                ledger=Ledger(Budget(1.0, 0.0, accountant="pure")),
                secret=SecretRandomness(rng),
            ).value,
            private_greedy(users, 3, budget=Budget(1.0, 1e-6), rng=rng).slate,
        )
        for rng in twins()
    ]
    assert result[0] == result[1]
