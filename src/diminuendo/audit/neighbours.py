"""Neighbours: pairs of worlds that should be hard for a learner to keep apart from each other's sight.

One person, the victim, comes first, so that everything later may depend on her; all others say nothing, so that hers is
the only voice, or say the same thing always. Worlds are tiny: the whole budget goes into a few draws or sums.

What she does is the worst we know. Where items are drawn by their scores, she wants one item alone, or all the others:
that moves one score up and the rest down. Where answers are added up, she gives all she can, or nothing. And she does
what nobody should: does not answer, answers again and again, says what is no number.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from diminuendo.audit.scripts import Answer, Neighbours, Reply, Script
from diminuendo.learners import Setting
from diminuendo.learners.epoch_greedy import first_epoch
from diminuendo.learners.slate_learner import FEW
from diminuendo.objectives import Oracle
from diminuendo.types import FeedbackKind, Slate

VICTIM = 0
"""The round in which the worlds differ: the first, so that everything later may depend on it."""

Shape = tuple[int, int, int]
"""Items, slots, rounds."""


def _first_epoch(epsilon: float) -> Shape:
    """Epoch greedy with one slot draws once, at rate epsilon / 2, when its first epoch is over."""
    return 6, 1, first_epoch(6, epsilon / 2) + 1


def _first_slate(epsilon: float) -> Shape:
    """Learners of slates publish first when the first slate was shown to enough people."""
    return 2, 1, math.ceil(FEW * (1 + 1 / epsilon)) + 1


SHAPES: dict[str, tuple[Shape | Callable[[float], Shape], ...]] = {
    "epoch-greedy": (_first_epoch,),
    "fi-dp": ((4, 1, 2),),
    "fi-dp-paper": ((4, 1, 2),),
    "fi-pure": ((2, 1, 4),),
    "fi-pure-paper": ((2, 1, 4),),
    "bandit-blocks": ((1, 1, 4),),
    "bandit-blocks-full": ((1, 1, 2),),
    "ranked-clicks": ((1, 1, 2),),
    "slate-totals": (_first_slate,),
    "slate-clicks": (_first_slate,),
}
"""The smallest worlds in which that learner spends its budget; of some it depends on epsilon how small."""

USUAL: dict[FeedbackKind, tuple[Shape, ...]] = {
    "full": ((2, 1, 2),),
    "bandit": ((3, 1, 2), (3, 1, 4)),
    "click": ((2, 1, 8),),
}
"""For learners that are not in the table."""

Said = tuple[Reply, ...]
"""What somebody says to her slate, one answer after the other; nothing: she does not answer."""


def candidates(learner: str, feedback: FeedbackKind, epsilon: float, delta: float) -> list[Neighbours]:
    """Pairs of worlds for that learner, those that should be worst first."""
    found = []
    for shape in SHAPES.get(learner, USUAL[feedback]):
        items, slots, rounds = shape(epsilon) if callable(shape) else shape
        setting = Setting(items, slots, rounds, feedback, epsilon, delta)
        found += [
            Neighbours(
                f"{about}; {items} items, {slots} shown, {rounds} rounds",
                setting,
                VICTIM,
                _world(setting, one, others),
                _world(setting, other, others),
            )
            for about, one, other, others in PEOPLE[feedback](items)
        ]
    return found


def _world(setting: Setting, victim: Said, others: Reply | None) -> Script:
    """The victim says her answers one round after the other, then over and over; the others at once, if at all."""
    answers = [
        Answer(VICTIM, min(VICTIM + turn, setting.rounds - 1), reply) for turn, reply in enumerate(victim)
    ]
    if others is not None:
        answers += [Answer(t, t, others) for t in range(setting.rounds) if t != VICTIM]
    return Script(setting.rounds, tuple(sorted(answers, key=lambda answer: (answer.at, answer.to))))


AGAIN = 8
"""How often somebody answers who answers again and again."""

Pair = tuple[str, Said, Said, Reply | None]
"""In words; what the victim says in the one world and in the other; what everybody else says."""


def full(items: int) -> list[Pair]:
    """People who tell their objective."""

    def says(worth: Callable[[frozenset[int]], float]) -> Reply:
        person = Oracle(worth, items)
        return lambda slate: person

    first = says(lambda s: float(0 in s))
    rest = says(lambda s: float(any(item != 0 for item in s)))
    everything = says(lambda s: float(len(s) > 0))
    huge = says(lambda s: 1e300 if 0 in s else -1e300)
    nonsense = says(lambda s: float("nan") if 0 in s else float("inf"))
    return [
        ("wants item 0 alone, or all others", (first,), (rest,), None),
        ("wants item 0, or does not answer", (first,), (), None),
        ("wants item 0, or does not answer, while all others want everything", (first,), (), everything),
        ("says so again and again, or says nothing", (first,) * AGAIN, (), None),
        ("says numbers beyond all bounds, or none", (huge,), (nonsense,), None),
    ]


def bandit(items: int) -> list[Pair]:
    """People who tell a payoff."""

    def says(payoff: float) -> Reply:
        return lambda slate: payoff

    return [
        ("is happy, or unhappy", (says(1.0),), (says(0.0),), None),
        ("is happy, or does not answer", (says(1.0),), (), None),
        ("is unhappy, or does not answer, while all others are happy", (says(0.0),), (), says(1.0)),
        ("says so again and again, or says nothing", (says(1.0),) * AGAIN, (), None),
        ("says a number beyond all bounds, or none", (says(1e300),), (says(float("nan")),), None),
    ]


def click(items: int) -> list[Pair]:
    """People who click a slot, or none."""

    def first(slate: Slate) -> int:
        return 0

    def last(slate: Slate) -> int:
        return len(slate) - 1

    def nowhere(slate: Slate) -> None:
        return None

    return [
        ("clicks, or clicks nothing", (first,), (nowhere,), None),
        ("clicks the first slot, or the last", (first,), (last,), None),
        ("clicks, or does not answer, while all others click nothing", (first,), (), nowhere),
        ("clicks again and again, or does not answer", (first,) * AGAIN, (), None),
    ]


PEOPLE: dict[FeedbackKind, Callable[[int], list[Pair]]] = {"full": full, "bandit": bandit, "click": click}
"""What victims do, by what they are asked."""
