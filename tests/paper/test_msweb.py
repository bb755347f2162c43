"""The paper's constants on a real stream: near chance. The same algorithm calibrated tightly: not."""

from __future__ import annotations

import numpy as np
from scipy import stats

from diminuendo import RandomSlates, SeededSource, msweb, paper
from diminuendo.offline import greedy
from diminuendo.types import Floats
from tests.kit.statistics import ALPHA

SEEDS = 10


def interval(values: Floats) -> tuple[float, float]:
    """Where the mean lies, at the one false-alarm rate."""
    half = float(stats.t.isf(ALPHA / 2, len(values) - 1)) * float(values.std(ddof=1)) / len(values) ** 0.5
    return float(values.mean()) - half, float(values.mean()) + half


def test_the_papers_constants_are_near_chance_and_tight_ones_are_not() -> None:
    users = msweb()
    best = greedy(users, 5).value
    result: dict[str, list[float]] = {"paper": [], "tight": [], "random": []}
    for seed in range(SEEDS):
        for calibration in ("paper", "tight"):
            learner = paper.fi_dp(
                users.n_items,
                5,
                len(users),
                1.0,
                1e-6,
                calibration=calibration,
                rng=SeededSource(seed),
            )
            result[calibration].append(float(users.values(learner.replay(users)).mean()) / best)
        chance = RandomSlates(users.n_items, 5, rng=SeededSource(seed))
        result["random"].append(float(users.values(chance.replay(users)).mean()) / best)
    low, high = interval(np.array(result["paper"]) - np.array(result["random"]))
    assert high < 0.03, "within .03 of random choice"
    assert low > -0.03
    assert interval(np.array(result["tight"]) - 3 * np.array(result["paper"]))[0] > 0, (
        "more than three times as much"
    )
