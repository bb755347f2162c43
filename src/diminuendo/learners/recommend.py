"""The catalogue: what each learner promises, what is proved of its regret, what it keeps, and when to take it.

Said in a few words each, for people who choose. What exactly is promised and proved stands in the learner's own module.

Which learner `private` is: a rule over public facts, read from the top; the first that fits is taken.

Where no rule fits, and where a bound is wanted that holds whatever people want, the planner takes the learner with the
least proved regret instead (plan/planner.py).
"""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import dataclass

from diminuendo.learners.base.setting import Setting
from diminuendo.types import FeedbackKind

NOT_FOR_USE = "to reproduce the paper; not for use"

READ_SO = (
    "Privacy: what is proved of everything it shows. Regret: the order of what is proved, to (1 - 1/e) of the best "
    "slate (½: to half of it), whatever people want. Scores: one secret number for each slot and item. Sums and "
    "counts: over people, published with noise."
)
"""How to read the entries."""


@dataclass(frozen=True)
class Entry:
    """One learner, in a few words each."""

    guarantee: str
    """What is proved about everything it lets out."""
    bound: str
    """The order of its proved regret to (1 - 1/e) of the best slate, whatever people want."""
    memory: str
    """What it keeps of people between rounds."""
    when: str
    """When to take it."""
    keeps_people: bool = False
    """Whether what single people said is kept, not only sums over them."""


CATALOGUE: dict[str, Entry] = {
    "random": Entry("perfect", "-", "nothing", "as the floor that learners must clear"),
    "hedge": Entry("none", "k√(T log N)", "scores", "as the yardstick: what can be learned without privacy"),
    "hedge-bandit": Entry("none", "T^(2/3)", "scores", "as the yardstick where only payoffs come back"),
    "fi-dp": Entry("(ε, δ)", "√T / ε", "scores", "for the paper's Algorithm 2 at its best"),
    "fi-dp-paper": Entry("below ε", "√T / ε", "scores", NOT_FOR_USE),
    "fi-pure": Entry("(ε, 0) in reals", "√(NT/ε)", "sums", "to study pure privacy; far more noise"),
    "fi-pure-paper": Entry("(ε, 0) in reals", "√(NT/ε)", "sums", NOT_FOR_USE),
    "bandit-dp": Entry("(ε, δ)", "T^(2/3)", "scores", "where only payoffs come back, and millions come"),
    "bandit-dp-paper": Entry("below ε", "T^(2/3)", "scores", NOT_FOR_USE),
    "bandit-direct": Entry("(ε, δ)", "T^(3/4)", "scores", "to see why Algorithm 3 redraws so rarely"),
    "bandit-direct-paper": Entry("below ε", "T^(3/4)", "scores", NOT_FOR_USE),
    "bandit-presampled": Entry("(ε, δ)", "T^(2/3)", "scores", "to study exploring rounds drawn beforehand"),
    "bandit-presampled-paper": Entry("below ε", "T^(2/3)", "scores", NOT_FOR_USE),
    "streeter-golovin": Entry("none", "√(kT log N)", "scores", "as what the paper builds on"),
    "streeter-golovin-bandit": Entry("none", "T^(2/3)", "scores", "as what the paper builds on"),
    "overlap-greedy": Entry(
        "(ε, δ)",
        "-",
        "people",
        "first: loses least where tastes are steady or rarely change",
        keeps_people=True,
    ),
    "overlap-sums": Entry("(ε, δ)", "-", "sums", "where single people must not be kept"),
    "epoch-greedy": Entry(
        "(ε, 0)",
        "-",
        "an epoch's people",
        "where delta is 0, or people want very many things",
        keeps_people=True,
    ),
    "boosted": Entry(
        "(ε, δ)", "k√(T√N / ε)", "sums", "where a bound is wanted, and people may react to slates"
    ),
    "bandit-blocks": Entry("(ε, δ)", "T^(2/3)", "sums", "where only payoffs come back and a bound is wanted"),
    "bandit-blocks-open": Entry("none", "T^(2/3)", "sums", "as what bandit blocks could learn without noise"),
    "bandit-blocks-full": Entry("(ε, 0)", "½: T^(2/3)", "sums", "as bandit blocks, but no slate is short"),
    "bandit-blocks-full-open": Entry("none", "½: T^(2/3)", "sums", "as the same without noise"),
    "ranked-clicks": Entry("(ε, δ)", "T^(2/3)", "sums", "where clicks come back and a bound is wanted"),
    "ranked-clicks-open": Entry("none", "T^(2/3)", "sums", "as what ranked clicks could learn without noise"),
    "cascade-thompson": Entry("none", "-", "counts", "as the yardstick where clicks come back"),
    "slate-totals": Entry("(ε, 0)", "-", "counts", "first, where only payoffs come back"),
    "slate-totals-open": Entry("none", "-", "counts", "as what slate totals could learn without noise"),
    "slate-clicks": Entry("(ε, 0)", "-", "counts", "first, where clicks come back"),
    "slate-clicks-open": Entry("none", "-", "counts", "as what slate clicks could learn without noise"),
    "noisy-hedge": Entry("(ε, δ)", "√(kT log N)", "sums", "where a bound is wanted, and people do not react"),
}
"""By the name users type. Every registered learner has an entry."""


@dataclass(frozen=True)
class Rule:
    """Take `learner` where its feedback and its delta are what was asked for, and what it keeps is allowed."""

    learner: str
    feedback: FeedbackKind
    pure: bool
    """Whether it is private with delta 0; others need more."""
    why: str
    """Two sentences: what it does better than the others, and what it does not do."""
    many_wishes: bool = False
    """Only where a person is known to want very many items."""


RULES = (
    Rule(
        "epoch-greedy",
        "full",
        True,
        "A person wants so many things that noise for all of them would be larger than noise for drawing a slate: this "
        "learner pays for her largest wish only, once, when her epoch ends. It keeps people until then, is slow to "
        "notice that tastes have changed, and nothing is proved for people who work against it.",
        many_wishes=True,
    ),
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
    available: Container[str],
    *,
    store_people: bool = True,
    cares_about: float | None = None,
) -> Rule | None:
    """The first rule that fits, of learners that are `available`; None where none does."""
    for rule in RULES:
        if (
            rule.learner in available
            and rule.feedback == setting.feedback
            and (rule.pure or setting.delta > 0)
            and (store_people or not CATALOGUE[rule.learner].keeps_people)
            and (not rule.many_wishes or wants_many(cares_about, setting.slots))
        ):
            return rule
    return None


def wants_many(cares_about: float | None, slots: int) -> bool:
    """Whether noise for all wishes of a person is larger than noise for drawing slates.

    Sums of people who want m items each move by up to sqrt(2 m) when one person changes, and noise is in proportion to
    that; a slate of k items that is drawn costs (k + 1) times the rate (docs/maths/private-greedy.md).
    """
    return cares_about is not None and math.sqrt(2 * cares_about) > slots + 1
