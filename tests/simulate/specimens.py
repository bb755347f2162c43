"""A small simulation to look at, with names of items that try to be more than names."""

from __future__ import annotations

from functools import cache

from diminuendo.simulate import Simulation, simulate
from diminuendo.streams import taste_groups

HOSTILE = (
    "<script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 1">',
    "$\\frac{1$ & Co; 100 $",
    "]]></svg><b>&amp;",
    "\x00\x0b\ud800 control",
    "中文 Ωmega é",
    "a name that is so long that it cannot stand beside any figure whatever its size",
    "",
)
"""Names of the most popular items first, so that they are shown."""


@cache
def small() -> Simulation:
    """Several learners, two budgets, two seeds, hostile names."""
    users = taste_groups(1_500, 12, groups=3, items_per_group=4, seed=2)
    users.labels = tuple(HOSTILE[item % len(HOSTILE)] for item in range(12))
    users.name = "<i>../taste</i>"
    names = ["private", "nonprivate", "fi-dp", "paper", "random"]
    return simulate(users, slots=3, learners=names, epsilon=[1.0, 10.0], seeds=2)


@cache
def tiny(
    learners: tuple[str, ...] = ("fi-dp",), epsilons: tuple[float, ...] = (1.0,), seeds: int = 1
) -> Simulation:
    """As little as can be run."""
    users = taste_groups(300, 10, groups=3, items_per_group=4, seed=2)
    return simulate(users, slots=2, learners=learners, epsilon=epsilons, seeds=seeds)
