"""What publishes, pays or draws in secret is in one process once: no copy of it, shallow or deep, and no pickle."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from diminuendo import SeededSource, SystemSource, paper
from diminuendo.continuous.domains import Box
from diminuendo.errors import InvalidInput
from diminuendo.learners import LEARNERS
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.draw_budget import DrawBudget
from diminuendo.privacy.events import Gaussian, Laplace
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness import SecretRandomness
from diminuendo.sums.batch import OpenBatch
from diminuendo.sums.clip import Clip
from diminuendo.sums.gamma_tree import GammaTree
from diminuendo.sums.private_counts import PrivateCounts
from diminuendo.sums.private_sum import PrivateSum
from diminuendo.sums.schedule import equal
from tests.kit.stored import UsersByHand

ZCDP, NORMAL = Budget(1.0, 1e-6), Budget(1.0, 1e-6, accountant="continuous-gaussian")
PURE = Budget(1.0, 0.0, accountant="pure")
PLAN = equal(20, 4)
COPIES: dict[str, Any] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{
        f"pickle {old}": lambda one, old=old: pickle.dumps(one, old)
        for old in (0, 2, pickle.HIGHEST_PROTOCOL)
    },
}


def stored() -> UsersByHand:
    return UsersByHand(3, schedule=PLAN, ledger=Ledger(ZCDP))


ALL: dict[str, Callable[[], Any]] = {
    "Ledger": lambda: Ledger(ZCDP),
    "Paid": lambda: Ledger(ZCDP).buy(Gaussian(1e-3), "sum", ""),
    "Releases": lambda: Ledger(ZCDP)._kept,
    "DrawBudget": lambda: DrawBudget(5, 1, 0.1, None),
    "SecretRandomness": lambda: SecretRandomness(SystemSource()),
    "SecretRandomness, seeded": lambda: SecretRandomness(SeededSource(1)),
    "PrivateSum": lambda: PrivateSum(2, schedule=PLAN, cost=ZCDP.share(), ledger=Ledger(ZCDP)),
    "OpenBatch": lambda: OpenBatch(2, Clip(), PLAN),
    "PrivateCounts": lambda: PrivateCounts(cost=Laplace(1.0), ticks=1, ledger=Ledger(PURE)),
    "StoredUsers": stored,
    "GreedyRelease": lambda: stored().release(0, [1, 1, 1, 1], (1e4, 1e4)),
    "GammaTree": lambda: GammaTree(1, 2, 4, 1.0),
    "GammaSums": lambda: paper.continuous(Box([1.0, 1.0]), 20, 1.0, gradient_bound=1.0, smoothness=1.0)._sums,
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("what", ALL)
def test_it_is_not_copied(what: str, how: str) -> None:
    with pytest.raises(InvalidInput, match="private and is not copied"):
        COPIES[how](ALL[what]())


@pytest.mark.parametrize("how", COPIES)
def test_a_ledger_in_a_file_is_not_copied(how: str, tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "people.ledger", ZCDP) as held:
        for part in (held, held._books, held._books.lines if held._books else None):
            with pytest.raises(InvalidInput, match="private and is not copied"):
                COPIES[how](part)


@pytest.mark.parametrize("name", ["random", "hedge"])
def test_a_learner_that_promises_nothing_and_knows_no_horizon_is_copied(name: str) -> None:
    learner = LEARNERS[name](6, 2, rng=SeededSource(1))
    learner.choose()
    for twin in (copy.copy(learner), copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))):
        assert twin.choose().round == 1
