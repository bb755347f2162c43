"""The whole law of tiny runs with balanced blocks: two items, one slot, all coins and all noise, against the claim.

The law is written down once more here, from docs/maths/blocks.md: what is published is not part of the view, so noise
is summed over. Of noise only the difference between the two cells matters. Sums are cut where less than CUT is beyond.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

from diminuendo import NoisyOr, People, SeededCoins
from diminuendo.learners.probing import variants
from diminuendo.learners.probing.schedule import Plan
from diminuendo.learners.probing.variants import BanditBlocks, BanditBlocksFull, RankedClicks
from diminuendo.types import Floats
from tests.kit.enumeration import Law, Person, Stream, all_people, unit, worst
from tests.kit.slow import mostly_slow
from tests.kit.statistics import assert_follows, assert_rejects
from tests.learners.test_blocks import planned_as

WIDE = 50
"""Differences are kept from -WIDE to WIDE."""
CUT = 1e-12
"""More than the chance that a run leaves that range, and than the rounding of sums of so many floats."""
LENGTH, RATE = 3, 4.0


@cache
def noise_law(epsilon: float) -> tuple[float, ...]:
    """The difference of two discrete Laplace numbers with ratio e^-epsilon."""
    each = np.exp(-epsilon * np.abs(np.arange(-2 * WIDE, 2 * WIDE + 1)))
    both = np.convolve(each, each) / each.sum() ** 2
    middle = len(both) // 2
    return tuple(both[middle - WIDE : middle + WIDE + 1])


def moved(law: Floats, by: int, epsilon: float) -> Floats:
    """The law of the difference after one more block: shifted by what people said, with fresh noise."""
    noisy = np.convolve(law, np.array(noise_law(epsilon)))[WIDE:-WIDE]
    out = np.roll(noisy, by)
    assert noisy[:2].sum() + noisy[-2:].sum() < CUT, "nothing is rolled over the edge"
    return out


def run_law(stream: Stream, epsilon: float, mistake: str = "none", probes_seen: bool = True) -> Law:
    """What is seen, round by round: the item shown, and whether a coin had chosen it."""
    last, zero = (len(stream) - 1) // LENGTH, np.zeros(2 * WIDE + 1)
    zero[WIDE] = 1.0
    liking = 1 / (1 + np.exp(-RATE * np.arange(-WIDE, WIDE + 1)))  # item 0
    branches: list[tuple[Any, ...]] = [
        ((), zero, (), (0, 0), False)
    ]  # view, law, probes to come, cells, answered
    for t, person in enumerate(stream):
        grown = []
        for seen, law, left, cells, answered in branches:
            if t % LENGTH == 0:
                if t and not (mistake == "published if answered" and not answered):
                    law = moved(
                        law, cells[0] - cells[1], epsilon / (0.5 if mistake == "half the noise" else 1)
                    )
                left, cells, answered = (0, 1) if t // LENGTH < last else (), (0, 0), False
            to_come = LENGTH - t % LENGTH if left else 1
            for item in left:
                value = math.floor(unit(person[1 << item])) if person is not None else 0
                more = (cells[0] + value * (item == 0), cells[1] + value * (item == 1))
                kept = tuple(other for other in left if other != item)
                if mistake == "asked again" and person is None and to_come > len(left):
                    kept = left
                view = (*seen, (item, True) if probes_seen else item)
                grown.append((view, law / to_come, kept, more, answered or person is not None))
            for item, share in ((0, liking), (1, 1 - liking)):
                view = (*seen, (item, False) if probes_seen else item)
                if to_come > len(left):
                    grown.append((view, law * share * (1 - len(left) / to_come), left, cells, answered))
        branches = grown
    found: Law = {}
    for seen, law, *_ in branches:
        found[seen] = found.get(seen, 0.0) + float(law.sum())
    return found


def neighbours_of(blocks: int) -> list[list[Person]]:
    """Everybody of ones and zeros, and nobody, in one round of each block but the last."""
    everybody: list[Person] = [None, *all_people(2)]
    others: list[Person] = [(0.0, 1.0, 0.0, 1.0), (0.0, 0.0, 1.0, 1.0), None]
    choices = [[others[t % 3]] for t in range(blocks * LENGTH)]
    for block in range(blocks - 1):
        choices[block * LENGTH + block] = everybody if block == 0 else everybody[:3]
    return choices


@pytest.mark.parametrize("blocks", [2, 3])
@pytest.mark.parametrize("epsilon", mostly_slow([1.0, 2.0], [1.0]))
def test_the_whole_law_is_private(blocks: int, epsilon: float) -> None:
    found = worst(lambda stream: run_law(stream, epsilon), neighbours_of(blocks), [epsilon, epsilon / 2])
    assert found.epsilon <= epsilon + CUT
    assert found.delta[epsilon] <= CUT
    assert found.delta[epsilon / 2] > 0.01, "people matter"


@pytest.mark.parametrize(
    "mistake", mostly_slow(["half the noise", "published if answered", "asked again"], ["half the noise"])
)
def test_what_is_not_private_is_noticed(mistake: str) -> None:
    choices = neighbours_of(3)
    choices[1] = choices[2] = [None]  # so that it is up to her whether anybody answered
    found = worst(lambda stream: run_law(stream, 1.0, mistake), choices, [1.0])
    assert found.epsilon > 1.0 + CUT
    right = worst(lambda stream: run_law(stream, 1.0), choices, [1.0])
    assert right.epsilon <= 1.0 + CUT


@pytest.mark.parametrize("kind", mostly_slow([BanditBlocks, BanditBlocksFull, RankedClicks], [BanditBlocks]))
def test_learners_follow_that_law(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Item by item, through replay: three people a block, who want items 0, 1, or both."""
    monkeypatch.setattr(variants, "PAYOFF_TICKS", 1)
    wants, blocks, runs, coins = [(1.0, 0.0), (1.0, 0.0), (1.0, 1.0)], 2, 2_000, SeededCoins(5)
    stream: Stream = tuple((0.0, a, b, max(a, b)) for a, b in wants * blocks)
    people, found = People(NoisyOr(), np.array(wants * blocks)), []
    law = run_law(stream, 1.0, probes_seen=False)
    names = list(law)
    with planned_as(Plan(2, 1, blocks * LENGTH, LENGTH, 1, RATE, "laplace")):
        for _ in range(runs):
            learner = kind(2, 1, horizon=blocks * LENGTH, epsilon=1.0, delta=0.0, coins=coins)
            found.append(names.index(tuple(learner.replay(people)[:, 0].tolist())))
    assert_follows(found, np.array([law[name] for name in names]))
    nearby = run_law(stream, 2.0, probes_seen=False)
    assert_rejects(found, np.array([nearby[name] for name in names]))
