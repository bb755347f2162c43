"""Exact audits: the listed law is the law, and epsilon is the smallest that is true of two laws."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from diminuendo import Oracle
from diminuendo.audit.effort import EFFORTS
from diminuendo.audit.exact import exact, listing, smallest_epsilon
from diminuendo.audit.subjects import Subject, shipped
from diminuendo.audit.worlds import CROWDS, crowd, neighbours, wanting
from diminuendo.learners import Setting
from diminuendo.learners.hedge.fi_dp import FiDp
from tests.kit.enumeration import full_information_law, mask
from tests.kit.scripts import prompt
from tests.kit.slow import mostly_slow

QUICK = EFFORTS["quick"]
RATE = 0.5


@pytest.mark.parametrize(("n", "k", "rounds"), [(2, 1, 4), (2, 2, 3), (3, 2, 2)])
def test_the_listed_law_is_that_of_the_oracle(n: int, k: int, rounds: int) -> None:
    """An oracle that shares nothing with the package, its draws merged into what is shown of them."""
    random = np.random.default_rng(n * k)
    subject = Subject(
        "fi-dp",
        "full",
        lambda setting, rng: FiDp(n, k, horizon=rounds, rate=RATE, epsilon=60.0, delta=1e-6, rng=rng),
    )
    users = [(0.0, *random.uniform(-0.5, 1.5, size=(1 << n) - 1).tolist()) for _ in range(rounds)]
    script = prompt(
        [lambda slate, f=f: Oracle(lambda chosen: f[mask(chosen)], n) for f in users]  # type: ignore[misc]
    )
    result = listing(subject, Setting(n, k, rounds, "full", 60.0), script, 1, 10_000)
    known: dict[bytes, float] = {}
    for path, chance in full_information_law(tuple(users), n, k, RATE).items():
        rows = [[-1 if item in slate[:i] else item for i, item in enumerate(slate)] for slate in path]
        key = np.array(rows, dtype=np.int32).tobytes() + np.full((rounds, 2), -1, dtype=np.int32).tobytes()
        known[key] = known.get(key, 0.0) + chance
    length = len(next(iter(known)))  # slates and probes; what follows is the same for all
    seen = {key[:length]: chance for key, chance in result.chances.items()}
    assert len(seen) == len(result.chances)
    assert seen.keys() == known.keys()
    # Ticks are 2^-20 of a unit: per draw that moves a log-probability by less than rounds * rate * 2^-19.
    slack = math.expm1(k * rounds * rounds * RATE * 2.0**-19)
    assert all(seen[key] == pytest.approx(chance, rel=slack) for key, chance in known.items())


@pytest.mark.parametrize(
    "name",
    mostly_slow(
        ["bandit-dp", "bandit-dp:draw=direct", "bandit-dp:draw=presampled", "epoch-greedy"],
        ["bandit-dp", "bandit-dp:draw=presampled", "epoch-greedy"],
    ),
)
def test_listed_chances_add_up(name: str) -> None:
    subject = shipped(name)
    setting = Setting(2, 2, 4, subject.feedback)
    random = np.random.default_rng(1)
    for seed in range(3):
        others = crowd(setting, CROWDS[2], random)
        said = ((0, wanting(subject.feedback, 2, (0,))),)
        world = neighbours(setting, "", 0, said, said, others)
        result = listing(subject, setting, world.one, seed, 10_000)
        assert math.fsum(result.chances.values()) == pytest.approx(1.0, rel=1e-12)


def test_epsilon_is_the_smallest_that_is_true_of_every_set() -> None:
    random = np.random.default_rng(3)
    for case in range(40):
        p, q = (random.dirichlet(np.full(7, 0.4)) for _ in range(2))
        if case % 4 == 0:
            q[:2] = 0.0
        delta = float(random.choice([0.0, 1e-3, 0.05]))
        worst = 0.0
        for size in range(1, 8):
            for chosen in itertools.combinations(range(7), size):
                over, under = p[list(chosen)].sum() - delta, q[list(chosen)].sum()
                if over > 0:
                    worst = max(worst, math.log(over / under) if under > 0 else math.inf)
        one, other = ({bytes([j]): float(x) for j, x in enumerate(law) if x > 0} for law in (p, q))
        assert smallest_epsilon(one, other, delta) == pytest.approx(worst, rel=1e-12)


def test_what_is_known_of_epoch_greedy_is_found() -> None:
    """One item of two by one user: chances in proportion to exp(rate) and 1, the rate half of epsilon."""
    (result,) = exact(shipped("epoch-greedy"), 1.0, 1e-6, QUICK, 1)
    assert (result.delta, result.confidence) == (0.0, 1.0)
    assert result.claimed == pytest.approx(1.0)
    assert result.shown == pytest.approx(0.5, abs=1e-6)


def test_random_slates_show_nothing_and_noise_is_not_listed() -> None:
    (result,) = exact(shipped("random"), 1.0, 1e-6, QUICK, 1)
    assert (result.shown, result.claimed, result.violation) == (0.0, 0.0, False)
    assert exact(shipped("slate-totals"), 1.0, 1e-6, QUICK, 1) == []
    assert exact(shipped("fi-pure"), 1.0, 1e-6, QUICK, 1) == []


@pytest.mark.parametrize("name", mostly_slow(["fi-dp", "bandit-dp:draw=direct"], ["fi-dp"]))
def test_draws_are_cleared_and_show_something(name: str) -> None:
    for seed in (1, 2):
        (result,) = exact(shipped(name), 1.0, 1e-6, QUICK, seed)
        assert 0.1 < result.shown <= result.claimed
        assert not result.violation
