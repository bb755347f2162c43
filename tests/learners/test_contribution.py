"""What people add to a batch, compiled, is what the slow way makes of them: row by row, clipped, added."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from diminuendo import Coverage, NoisyOr, People, SeededCoins
from diminuendo.learners.released.contribution import NARROW
from diminuendo.learners.released.variants import Boosted, NoisyHedge
from diminuendo.objectives.rows import Matrix
from diminuendo.randomness.words import PublicCoins
from diminuendo.sums.batch import OpenBatch
from diminuendo.types import Ints, Items
from tests.kit.families import families, specimens
from tests.kit.slow_rows import boosted_rows, hedge_rows

KINDS: list[Any] = [Boosted, NoisyHedge]
ROUNDS = 60


def somebody(name: str) -> list[People]:
    """A family; people who care about more than there is room for at first; items that come in no order."""
    found = [
        People(specimen, tuple(np.tile(np.asarray(m), (ROUNDS, 1))[:ROUNDS] for m in matrices), n)
        for specimen, n, matrices in specimens(name)
    ]
    random, n = np.random.default_rng(1), 3 * NARROW
    wide = random.random((ROUNDS, n))  # every second: those before them have few items
    wide *= random.random((ROUNDS, n)) < np.where(np.arange(ROUNDS)[:, None] % 2, 1.0, 0.01)
    covers = sparse.csr_array(random.random((n, 12)) < 0.3, dtype=float)
    topics = random.random((ROUNDS, 12)) * (random.random((ROUNDS, 12)) < 0.4) / 12
    eager = np.zeros((ROUNDS, n))  # too long together, all slots of them, though one slot is not
    for row in eager:
        row[random.choice(n, 4, replace=False)] = 0.99
    return [*found, People(NoisyOr(), wide), People(NoisyOr(), eager), People(Coverage(covers), topics, n)]


def slow_rows(learner: Any, people: People, slates: Items, words: Ints) -> Matrix:
    leaves = people.family.leaves
    if learner.name == "boosted":
        return boosted_rows(people.table, 0, len(people), leaves, learner.menu.ends, words)
    return hedge_rows(people.table, 0, len(people), leaves, slates, learner.n_items)


def drawn(learner: Any, rounds: int) -> tuple[Items, Ints]:
    """Slates by the first menu, and a public word each."""
    policy, done = learner.policy, 0
    slates, words = np.zeros((rounds, learner.slots), dtype=np.int32), np.zeros(rounds, dtype=np.int64)
    while done < rounds:
        count = policy.draw_rows(slates[done:])
        words[done : done + count] = policy.chooser.words[:count]
        done += count
        policy.resume()
    return slates, words


@pytest.mark.parametrize("clip", [None, 0.7, 3.0])
@pytest.mark.parametrize("kind", KINDS)
@families
def test_what_is_added_is_gathered_and_clipped(name: str, kind: Any, clip: float | None) -> None:
    cared, seen = False, 0
    for people in somebody(name):
        slots = min(3, people.n_items)
        learner = kind(people.n_items, slots, horizon=8 * ROUNDS, epsilon=0.01, delta=1e-6, clip=clip)
        learner._frame.public = PublicCoins(SeededCoins(people.n_items))
        slates, words = drawn(learner, ROUNDS)
        released = learner.policy.released
        released.add_people(people, 0, slates, words, 0, learner.policy._laws[-1][1])
        slow = OpenBatch(released.size, released.clip, released.sum.schedule)
        slow.add_rows(slow_rows(learner, people, slates, words))
        np.testing.assert_array_equal(
            released.sum._cells.entries(), slow._cells.entries(), err_msg=repr(people)
        )
        assert released.sum._marks.tolist() == slow._marks.tolist()
        assert slow._cells.entries().any()
        seen += len(people)
        cared |= bool((people.values(slates) > 0).any())
    assert cared, "some people are shown what they care about"
    assert seen > 3 * ROUNDS
