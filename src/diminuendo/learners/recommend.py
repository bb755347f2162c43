"""What to recommend when: which learner `private` is, by a rule over public facts.

Rules are read from the top, and the first that fits is taken. Where none fits, and where a bound is wanted that holds
whatever people want, the planner takes the learner with the least proved regret instead (plan/planner.py). What is to
be known about each learner beforehand is the advice of its entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from diminuendo.learners.base.entry import AnyEntry
from diminuendo.learners.base.setting import Setting
from diminuendo.types import FeedbackKind

READ_SO = (
    "Privacy: what is proved of everything it shows. Regret: the order of what is proved, to (1 - 1/e) of the best "
    "slate (½: to half of it), whatever people want. Scores: one secret number for each slot and item. Sums and "
    "counts: over people, published with noise."
)
"""How to read the advice of entries."""


@dataclass(frozen=True)
class Rule:
    """Take `learner` where its feedback and its delta are what was asked for, and what it keeps is allowed."""

    learner: str
    feedback: FeedbackKind
    pure: bool
    """Whether it is private with delta 0; others need more."""
    why: str
    """Two sentences: what it does better than the others, and what it does not do."""


RULES = (
    Rule(
        "overlap-greedy",
        "full",
        False,
        "It asks everybody again, with noise, a few dozen times, and loses less to privacy than any other learner here "
        "where tastes are steady or change now and then. For that it keeps people in memory, and nothing is proved "
        "for people who work against it.",
    ),
    Rule(
        "overlap-sums",
        "full",
        False,
        "It forgets each person as soon as she is added to a sum, and publishes these sums with noise a few dozen "
        "times. Keeping people would lose less to privacy, and nothing is proved for people who work against it.",
    ),
    Rule(
        "epoch-greedy",
        "full",
        True,
        "Its delta is 0: people are asked once, when their epoch ends, and then forgotten. With a delta above 0 less "
        "would be lost, and nothing is proved for people who work against it.",
    ),
    Rule(
        "slate-totals",
        "bandit",
        True,
        "It publishes one noisy total per slate, each person in one of them, and works out from slates that overlap "
        "which items are liked: where tastes are steady this earns far more than the learners that have a bound. It "
        "keeps no single person and its delta is 0, but nothing is proved for people who work against it.",
    ),
    Rule(
        "slate-clicks",
        "click",
        True,
        "It asks each person one question, whether or where she clicked, publishes noisy counts per slate, and works "
        "out which items are liked: where tastes are steady this earns far more than the learners that have a bound. "
        "It keeps no single person and its delta is 0, but nothing is proved for people who work against it.",
    ),
)
"""For each feedback from the best to the most frugal."""


def preferred(
    setting: Setting,
    available: Mapping[str, AnyEntry],
    *,
    store_people: bool = True,
) -> Rule | None:
    """The first rule that fits, of learners that are `available`; None where none does."""
    for rule in RULES:
        if (
            rule.learner in available
            and rule.feedback == setting.feedback
            and (rule.pure or setting.delta > 0)
            and (store_people or not available[rule.learner].advice.keeps_people)
        ):
            return rule
    return None
