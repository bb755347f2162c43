"""What to recommend when: which learner `private` is, by a rule over public facts.

Rules are read from the top, and the first that fits is taken. Where none fits, and where a bound is wanted that holds
whatever users want, the planner takes the learner with the least proved regret instead (plan/planner.py). What is to
be known about each learner beforehand is the advice of its entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from diminuendo.learners.base.entry import AnyEntry
from diminuendo.learners.base.setting import Setting

READ_SO = (
    "Privacy: the proved guarantee of everything the learner shows. Regret: the order of the proved bound against "
    "(1 - 1/e) of the best slate. Scores: one secret number for each slot and item. Sums and counts: over users, "
    "published with noise."
)
"""How to read the advice of entries."""


class Rule(NamedTuple):
    """Take `learner` if it fits the setting, and stores no users unless that is allowed."""

    learner: str
    why: str
    """What it does better than the others, and what it does not do."""


RULES = (
    Rule(
        "overlap-greedy",
        "It stores users' preferences and runs a noisy greedy selection over all of them at a few dozen releases. "
        "Where tastes are steady or drift now and then, it loses less to privacy than any other learner here. "
        "No regret bound is proved.",
    ),
    Rule(
        "epoch-greedy",
        "Its delta is 0: it stores the users of one epoch, queries them once at its end, and deletes them. "
        "With a delta above 0 less would be lost. No regret bound is proved.",
    ),
    Rule(
        "slate-totals",
        "It releases one noisy total of rewards per slate, each user in one of them, and infers from overlaps "
        "which items are liked. Where tastes are steady, it earns far more than the learners with a regret bound. It "
        "stores no single user and its delta is 0. No regret bound is proved.",
    ),
    Rule(
        "slate-clicks",
        "It releases a small noisy histogram of clicks per slate, each user in one of them, and infers which items are "
        "liked. Where tastes are steady, it earns far more than the learners with a regret bound. It stores no single "
        "user and its delta is 0. No regret bound is proved.",
    ),
)
"""For each kind of feedback, from the best to the most frugal."""


def preferred(
    setting: Setting,
    available: Mapping[str, AnyEntry],
    *,
    store_users: bool = True,
) -> Rule | None:
    """The first rule that fits, of learners that are `available`; None where none does."""
    for rule in RULES:
        if (entry := available.get(rule.learner)) is None or setting.feedback not in entry.reads:
            continue
        if (entry.pure or setting.delta > 0) and (store_users or not entry.advice.keeps_users):
            return rule
    return None
