"""Bandit libraries that choose one person's items after the other: obp and MABWiser, as their users call them.

Both know single items only. A slate of k is, for obp, `len_list=k`; for MABWiser, which picks one item, the k largest
of `predict_expectations`, which is cheaper than k calls of `predict` with items taken out in between. What a person
said is entered once for each item of her slate: for obp in one call with an array of items, which its sums allow and
which is up to four times cheaper than one call for each; for MABWiser in one `partial_fit` with k rows.

Importing obp.policy imports torch, which its context-free policies do not use. So obp is installed without what it
depends on, and only the folder of its policies is read.
"""

from __future__ import annotations

import heapq
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Protocol

from benchmarks.peers import installed
from diminuendo.types import Ints, SlateLike

EPSILON = 0.1
"""How often greedy policies try something else."""

HOW_TO_GET = {"obp": "pip install --no-deps obp==0.4.1", "mabwiser": "pip install mabwiser"}
"""The last obp that installs on Python 3.11 and later; its policies choose and learn as those of 0.5.7 do."""


class Peer(Protocol):
    """Chooses, and is told the payoff."""

    def choose(self) -> SlateLike:
        """k items."""
        ...

    def observe(self, slate: Any, payoff: float) -> None:
        """What the slate was worth."""
        ...

    def heard(self) -> tuple[int, float]:
        """How many times it was told about an item, and of how much altogether."""
        ...


class Obp:
    """A policy of obp."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy
        self.choose: Callable[[], Ints] = policy.select_action
        self.observe: Callable[[Ints, float], None] = policy.update_params

    def heard(self) -> tuple[int, float]:
        """By its own counts."""
        return int(self._policy.action_counts.sum()), float(self._policy.reward_counts.sum())


class MabWiser:
    """A learning policy of MABWiser."""

    def __init__(self, mab: Any, slots: int) -> None:
        self._mab, self._slots = mab, slots
        mab.fit([0], [0])  # it does not predict before
        self._before = self._counts()

    def choose(self) -> list[int]:
        """The k items of which it expects most."""
        expected = self._mab.predict_expectations()
        return heapq.nlargest(self._slots, expected, key=expected.__getitem__)

    def observe(self, slate: list[int], payoff: float) -> None:
        """One row for each item."""
        self._mab.partial_fit(slate, [payoff] * len(slate))

    def heard(self) -> tuple[int, float]:
        """By its own counts."""
        times, total = self._counts()
        return int(times - self._before[0]), float(total - self._before[1])

    def _counts(self) -> tuple[float, float]:
        inside = self._mab._imp
        if hasattr(inside, "arm_to_count"):
            return sum(inside.arm_to_count.values()), sum(inside.arm_to_sum.values())
        won, lost = sum(inside.arm_to_success_count.values()), sum(inside.arm_to_fail_count.values())
        return won + lost, won


def bandit_peers(n_items: int, slots: int) -> Iterator[tuple[str, Callable[[int], Peer], int]]:
    """Every installed one: its name, made for a lap, and for how many people, as time allows.

    A round costs a peer about the same early and late, and in proportion to the number of items.
    """
    if policies := _obp_policies():
        for name, kind, more in (
            ("obp, Thompson sampling", policies.BernoulliTS, {}),
            ("obp, epsilon-greedy", policies.EpsilonGreedy, {"epsilon": EPSILON}),
        ):
            yield name, _maker_of_obp(kind, n_items, slots, more), max(500, 1_000_000 // n_items)
    if installed("mabwiser"):
        mab: Any = importlib.import_module("mabwiser.mab")
        for name, policy in (
            ("MABWiser, Thompson sampling", mab.LearningPolicy.ThompsonSampling()),
            ("MABWiser, epsilon-greedy", mab.LearningPolicy.EpsilonGreedy(EPSILON)),
            ("MABWiser, UCB1", mab.LearningPolicy.UCB1()),
        ):
            yield name, _maker_of_mabwiser(mab.MAB, policy, n_items, slots), max(10, 50_000 // n_items)


def missing() -> list[str]:
    """Which are not here, and how to get them."""
    here = {"obp": _obp_policies() is not None, "mabwiser": installed("mabwiser")}
    return [f"missing: {name} ({HOW_TO_GET[name]})" for name, found in here.items() if not found]


def _maker_of_obp(kind: Any, n_items: int, slots: int, more: dict[str, Any]) -> Callable[[int], Peer]:
    return lambda lap: Obp(kind(n_actions=n_items, len_list=slots, random_state=lap + 1, **more))


def _maker_of_mabwiser(kind: Any, policy: Any, n_items: int, slots: int) -> Callable[[int], Peer]:
    return lambda lap: MabWiser(kind(list(range(n_items)), policy, seed=lap + 1), slots)


def _obp_policies() -> Any:
    """obp's module of context-free policies, without the rest of obp; None where it is not installed."""
    found = importlib.util.find_spec("obp")
    if found is None or not found.submodule_search_locations:
        return None
    name = "obp_policies_alone"
    if name not in sys.modules:
        folder = ModuleType(name)
        folder.__path__ = [f"{place}/policy" for place in found.submodule_search_locations]
        sys.modules[name] = folder
    try:
        return importlib.import_module(f"{name}.contextfree")
    except ImportError:  # such as of yaml
        return None
