"""Intervals cover the truth as often as they say, at the one false-alarm rate; wrong ones are found out.

Users are fixed, and drift; only coins are tossed again. So the truth is known: what the policy earns with these very
users. How often an interval covers it is a binomial number; too few, and the check fails.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from diminuendo import SeededSource, Setting
from diminuendo.evaluate import Log, estimate, evaluate
from diminuendo.evaluate.estimate import Interval
from diminuendo.learners import LEARNERS, RandomSlates
from diminuendo.streams.synthetic import drift, taste_groups
from diminuendo.streams.users import Users
from diminuendo.types import FEEDBACKS, Floats, Slate
from tests.kit.slow import mostly_slow
from tests.kit.statistics import ALPHA

CONFIDENCE = 0.95
ITEMS, SLOTS = 3, 2
SLATES: list[Slate] = list(itertools.permutations(range(ITEMS), SLOTS))


def users_of(rounds: int) -> Users:
    """Three tastes, and twice everybody's tastes change."""
    return drift(taste_groups(rounds, ITEMS, groups=3, items_per_group=1, seed=3), changes=2)


def covers_often_enough(hits: int, runs: int) -> bool:
    """Not so rarely that somebody who covers as often as stated would with probability ALPHA."""
    return bool(stats.binom.cdf(hits, runs, CONFIDENCE) > ALPHA)


def hits(
    logs: list[Log], policy: object, truth: float, method: str, interval: Interval, half: bool = False
) -> int:
    """How many intervals cover the truth; with `half`, intervals of half the variance."""
    count = 0
    for log in logs:
        result = evaluate(log, policy, method=method, interval=interval, confidence=CONFIDENCE, most_weight=6)
        low, high = result.low, result.high
        if half:
            low, high = (result.value + (end - result.value) / np.sqrt(2) for end in (low, high))
        count += low <= truth <= high
    return count


@pytest.fixture(autouse=True)
def nobody_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs here are short on purpose, and now and then too short to be answered by a normal interval. They count, too:
    to leave out those that look bad would make coverage look better than it is."""
    monkeypatch.setattr(estimate, "_refuse_few_that_matter", lambda terms: None)


# Random slates: many runs at once.

ROUNDS, RUNS = 400, 700
SHOWN: Slate = (0, 2)
"""One of six slates: weights are 6, so little of what terms differ by is how users differ."""


@pytest.fixture(scope="module")
def random_logs() -> tuple[Users, list[Log]]:
    users, logs = users_of(ROUNDS), []
    for seed in range(RUNS):
        slates = RandomSlates(ITEMS, SLOTS, rng=SeededSource(seed)).replay(users)
        logs.append(Log.from_arrays(slates, np.full(ROUNDS, 1 / len(SLATES)), users.values(slates)))
    return users, logs


WAYS: list[tuple[str, Interval]] = [
    ("inverse-propensity", "normal"),
    ("self-normalised", "normal"),
    ("doubly-robust", "normal"),
    ("inverse-propensity", "always"),
    ("doubly-robust", "always"),
]


ONE_OF_EACH = [pytest.param(*way, marks=[] if way == WAYS[1] else [pytest.mark.slow]) for way in WAYS]
"""One way in every run, since each takes seconds; what is always right is held against exact laws in test_exact.py."""


@pytest.mark.parametrize(("method", "interval"), ONE_OF_EACH)
def test_after_random_slates(method: str, interval: Interval, random_logs: tuple[Users, list[Log]]) -> None:
    users, logs = random_logs
    truth = float(users.values(SHOWN).mean())
    result = hits(logs, SHOWN, truth, method, interval)
    assert covers_often_enough(result, RUNS)
    if interval == "normal":
        assert not covers_often_enough(hits(logs, SHOWN, truth, method, interval, half=True), RUNS), (
            "half the variance is found out"
        )


@pytest.mark.parametrize(
    "method", mostly_slow(["inverse-propensity", "doubly-robust"], ["inverse-propensity"])
)
def test_estimates_are_right_on_average(method: str, random_logs: tuple[Users, list[Log]]) -> None:
    users, logs = random_logs
    truth = float(users.values(SHOWN).mean())
    values = np.array([evaluate(log, SHOWN, method=method, interval="normal").value for log in logs])
    assert abs(values.mean() - truth) < stats.norm.isf(ALPHA / 2) * values.std(ddof=1) / np.sqrt(RUNS)


def wrong_chances(log: Log) -> Log:
    """Nearby wrong propensities: a quarter too small where the slate earned well, as if drawn by secret scores."""
    chances = np.where(log.rewards > np.median(log.rewards), 0.75, 1.0) * log.propensities
    return Log.from_arrays(log.slates, chances, log.rewards)


def certain(log: Log) -> Log:
    """Weights forgotten."""
    return Log.from_arrays(log.slates, np.ones(len(log)), log.rewards)


@pytest.mark.slow
@pytest.mark.parametrize("mistake", [wrong_chances, certain])
def test_wrong_propensities_are_found_out(
    mistake: Callable[[Log], Log], random_logs: tuple[Users, list[Log]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all slates are equally likely, weights are 1, and wrong ones are wrong by a quarter or a sixth."""
    users, logs = random_logs[0], random_logs[1][:200]
    everything = dict.fromkeys(SLATES, 1 / len(SLATES))
    truth = float(np.mean([users.values(slate).mean() for slate in SLATES]))
    method, interval = WAYS[0]
    assert covers_often_enough(hits(logs, everything, truth, method, interval), len(logs))
    monkeypatch.setattr(estimate, "_refuse_without_support", lambda weights: None)  # who would notice, too
    wrong = [mistake(log) for log in logs]
    assert not covers_often_enough(hits(wrong, everything, truth, method, interval), len(logs))


# Logs that learn: chances depend on what users said.


def greedy_log(users: Floats, rng: np.random.Generator) -> Log:
    """Shows what earned best lately with probability .6, else anything; quick to change its mind."""
    log, recent = Log(SLOTS), np.full(len(SLATES), 0.5)
    for t, worth in enumerate(users):
        chances = np.full(len(SLATES), 0.4 / len(SLATES))
        chances[int(recent.argmax())] += 0.6
        shown = int(rng.choice(len(SLATES), p=chances))
        log._append(t, SLATES[shown], float(chances[shown]), float(worth[shown]))
        recent[shown] = 0.7 * recent[shown] + 0.3 * worth[shown]
    return log


@pytest.fixture(scope="module")
def reacting_logs() -> tuple[Floats, list[Log]]:
    users = users_of(ROUNDS)
    worths = np.column_stack([users.values(slate) for slate in SLATES])
    return worths, [greedy_log(worths, np.random.default_rng(seed)) for seed in range(150)]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "interval"), WAYS[:4])
def test_after_a_log_that_reacts_fast(
    method: str, interval: Interval, reacting_logs: tuple[Floats, list[Log]]
) -> None:
    worths, logs = reacting_logs
    target = {SLATES[1]: 0.5, SLATES[4]: 0.5}
    truth = float(worths[:, [1, 4]].mean())
    assert covers_often_enough(hits(logs, target, truth, method, interval), len(logs))


def learner_log(name: str, users: Users, seed: int) -> Log:
    """Chosen, answered and logged one by one."""
    made = LEARNERS[name]
    feedback = next(kind for kind in FEEDBACKS if kind in made.reads)
    setting = Setting(ITEMS, SLOTS, len(users), feedback, epsilon=4.0)
    learner, log = made.for_setting(setting, rng=SeededSource(seed)), Log(SLOTS)
    for t, user in enumerate(users):
        decision = learner.choose()
        click = users.click(t, decision.slate) if feedback == "click" else None
        reward = float(click is not None) if feedback == "click" else user.value(decision.slate)
        learner.observe(decision, {"full": user, "bandit": reward, "click": click}[feedback])
        log.add(decision, reward)
    return log


def truth_of(name: str, users: Users, slate: Slate) -> float:
    """What the slate would have earned; where users click, with the luck that each of them has."""
    if "click" in LEARNERS[name].reads and name != "random":
        return float(np.mean([users.click(t, slate) is not None for t in range(len(users))]))
    return float(users.values(slate).mean())


LOGGING = ("random", "slate-totals", "slate-clicks")


@pytest.mark.slow
@pytest.mark.parametrize("name", LOGGING)
def test_after_learners(name: str) -> None:
    """`always` holds for any learner; if all slates keep a fair chance, normal intervals hold too."""
    users = users_of(ROUNDS)
    logs = [learner_log(name, users, seed) for seed in range(150)]
    for slate in SLATES:
        truth = truth_of(name, users, slate)
        result = hits(logs, slate, truth, "inverse-propensity", "always")
        assert covers_often_enough(result, len(logs)), slate
    if name == "random":
        policy = dict.fromkeys(SLATES, 1 / len(SLATES))
        truth = float(np.mean([truth_of(name, users, slate) for slate in SLATES]))
        for method, interval in WAYS[:4]:
            assert covers_often_enough(hits(logs, policy, truth, method, interval), len(logs)), method
