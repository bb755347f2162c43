"""Hostile people: victims who say the worst that we know, and crowds around them, for audits that look inside.

A victim says something in the one world and something else, or nothing, in the other. What she says is made for the
learner's feedback: her objective, a payoff, a click. The first few victims are the ones that were the downfall of many
a learner; from there on they say anything whatever: huge, negative and missing numbers, wishes that grow with the
slate, answers that are never the same, late, or given twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from diminuendo.audit.scripts import Answer, Neighbours, Reply, Script
from diminuendo.errors import InvalidInput
from diminuendo.learners import Setting
from diminuendo.objectives import Oracle
from diminuendo.types import FeedbackKind, Slate

Said = tuple[tuple[int, Reply], ...]
"""Everything a victim says: how many rounds later, and what."""

WILD = (0.0, 1.0, 0.5, -3.0, 1e300, float("nan"), float("inf"))
"""Numbers that somebody may think of."""
SILENT: Said = ()


def wanting(feedback: FeedbackKind, n_items: int, items: Sequence[int]) -> Reply:
    """Somebody who is wholly happy with any of `items`, and looks at slots in order."""
    wanted = frozenset(items)
    person = Oracle(lambda chosen: float(bool(chosen & wanted)), n_items)

    def click(slate: Slate) -> int | None:
        return next((place for place, item in enumerate(slate) if item in wanted), None)

    if feedback == "full":
        return lambda slate: person
    return click if feedback == "click" else lambda slate: float(bool(wanted & set(slate)))


def wild(feedback: FeedbackKind, n_items: int, random: np.random.Generator) -> Reply:
    """Somebody who says anything; the same again, if she is asked again."""
    if feedback == "click":
        place = int(random.integers(n_items + 1))
        return lambda slate: place if place < len(slate) else None
    if feedback == "bandit":
        payoff = float(random.choice(WILD))
        return lambda slate: payoff
    kind = random.integers(3)
    worths = random.choice(WILD, size=1 << n_items)
    if kind == 1:  # little by itself, everything together
        worths = np.array([0.02 if chosen.bit_count() == 1 else 1.0 for chosen in range(1 << n_items)])
    if kind == 2:
        worths = np.where(random.random(1 << n_items) < 0.5, 1.0, 0.0)
    person = Oracle(lambda chosen: float(worths[sum(1 << item for item in chosen)]), n_items)
    return lambda slate: person


def erratic(feedback: FeedbackKind, n_items: int, random: np.random.Generator) -> Reply:
    """Somebody who says something else whenever she is asked; a victim: others say the same in both worlds."""
    if feedback == "full":
        person = Oracle(lambda chosen: float(random.choice(WILD)), n_items)
        return lambda slate: person
    if feedback == "bandit":
        return lambda slate: float(random.choice(WILD))
    return lambda slate: int(random.integers(len(slate))) if slate else None


def again(reply: Reply) -> Said:
    """The same answer, at once and in the next rounds."""
    return tuple((late, reply) for late in (0, 0, 1, 1, 2, 2))


def growing(setting: Setting) -> tuple[str, Said, Said]:
    """Somebody to whom items are worth next to nothing one by one, and everything together."""
    little = 1 / (4 * setting.n_items)
    person = Oracle(lambda chosen: 1.0 if len(chosen) > 1 else little * len(chosen), setting.n_items)
    return "has wishes that grow, or says nothing", ((0, lambda slate: person),), SILENT


def victims(setting: Setting, random: np.random.Generator, more: int = 0) -> list[tuple[str, Said, Said]]:
    """In words, and what she says in the one world and in the other; after the known ones so many `more`."""
    n, feedback = setting.n_items, setting.feedback

    def wants(*items: int) -> Reply:
        return wanting(feedback, n, items)

    first, rest, all_items = wants(0), wants(*range(1, n)), wants(*range(n))
    found: list[tuple[str, Said, Said]] = [
        ("wants one item, or all others", ((0, first),), ((0, rest),)),
        ("wants everything, or says nothing", ((0, all_items),), SILENT),
        ("says it again and again, or says nothing", again(all_items), SILENT),
        ("wants one item again and again, or all others", again(first), again(rest)),
        ("wants nothing, or says nothing", ((0, wants()),), SILENT),
        ("says it late, or says nothing", ((setting.rounds // 3, all_items),), SILENT),
        ("is pleased by one item, or never", ((0, first),), ((0, wants()),)),
    ]
    for number in range(more):
        makers: list[Callable[..., Reply]] = [wild, wild, erratic]
        said: list[Said] = []
        for _ in range(2):
            reply = makers[int(random.integers(3))](feedback, n, random)
            times = random.choice([0, 0, 0, 1, 3, setting.rounds], size=int(random.integers(1, 3)))
            said.append(tuple((int(late), reply) for late in np.sort(times)))
        found.append((f"says anything whatever ({number})", said[0], said[1]))
    return found


CROWDS = ("nobody else speaks", "all others want the same item", "all others say anything")


def crowd(setting: Setting, kind: str, random: np.random.Generator) -> list[Reply | None]:
    """What everybody says in both worlds, round by round."""
    n, feedback, rounds = setting.n_items, setting.feedback, setting.rounds
    if kind not in CROWDS:
        raise InvalidInput(f"There is no crowd {kind!r}. There are: {', '.join(CROWDS)}.")
    if kind == CROWDS[0]:
        return [None] * rounds
    if kind == CROWDS[1]:
        return [wanting(feedback, n, (0,))] * rounds
    return [None if random.random() < 0.2 else wild(feedback, n, random) for _ in range(rounds)]


def neighbours(
    setting: Setting, about: str, victim: int, one: Said, other: Said, others: Sequence[Any]
) -> Neighbours:
    """Two worlds: the victim says `one` or `other`, everybody else the same."""
    scripts = []
    for said in (one, other):
        answers = [Answer(t, t, reply) for t, reply in enumerate(others) if reply is not None and t != victim]
        answers += [Answer(victim, min(setting.rounds - 1, victim + late), reply) for late, reply in said]
        scripts.append(Script(setting.rounds, tuple(sorted(answers, key=lambda answer: answer.at))))
    return Neighbours(about, setting, victim, scripts[0], scripts[1])
