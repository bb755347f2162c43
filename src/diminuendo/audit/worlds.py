"""Neighbouring datasets ("worlds") that differ in the feedback of one user, for the audit to play.

A world is a complete script: the feedback to each round, when it arrives, and its value. Feedback may arrive late,
twice or never, and may have any value. `Neighbours` are two worlds that differ in the feedback to one round, the
target's; an observer of all that is shown should hardly be able to tell them apart. With private contexts or exclusions
the worlds differ in these too, and the observer does not see what the target is shown.

In attacks from outside (`candidates`) the target comes first, so that everything later may depend on it. All others
give no feedback, or always the same. Worlds are tiny: the whole budget goes into a few draws or sums. Targets are the
worst that we know. If items are drawn by their scores, the target wants one item alone, or all the others: that moves
one score up and the rest down. If feedback is added up, the target contributes the maximum, or nothing. Targets also
misbehave: they do not respond, respond repeatedly, or send values that are not numbers.

Audits with instrumented mechanisms use more targets (`targets`) among other users (`crowd`). Feedback fits the learner:
an objective, a reward, a click. The first few targets are the ones that broke learners before; the others respond at
random: with huge, negative and missing numbers, rewards that grow with the slate, and feedback that varies, is late, or
comes twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from diminuendo.audit.known import NOTHING_KNOWN, Known
from diminuendo.errors import InvalidInput
from diminuendo.learners import LEARNERS, Setting
from diminuendo.learners.base.entry import Shape
from diminuendo.objectives import Oracle
from diminuendo.streams.contexts import Context
from diminuendo.types import FeedbackKind, Slate

Reply: TypeAlias = Callable[[Slate], Any]
"""The feedback to a slate: an objective, a reward, a clicked slot; or an invalid value."""


@dataclass(frozen=True)
class Answer:
    """Feedback to the slate of round `to`, which arrives once the slate of round `at` has been shown."""

    to: int
    at: int
    reply: Reply


@dataclass(frozen=True)
class Script:
    """All answers of one world, in the order in which they come."""

    rounds: int
    answers: tuple[Answer, ...]
    known: Known = NOTHING_KNOWN
    """Contexts and exclusions, round by round."""

    def __post_init__(self) -> None:
        for answer in self.answers:
            if not 0 <= answer.to <= answer.at < self.rounds:
                raise InvalidInput(
                    f"An answer comes to a slate that was shown: got round {answer.to} answered after round "
                    f"{answer.at} of {self.rounds}."
                )

    def context_of(self, number: int) -> Context:
        """The context of the user of that round."""
        return self.known.contexts[number] if self.known.contexts else None

    def excluded_by(self, number: int) -> tuple[int, ...] | None:
        """The items that the user of that round excludes."""
        return self.known.excluded[number] if self.known.excluded else None

    def after(self, number: int) -> list[Answer]:
        """The feedback that arrives once the slate of that round has been shown."""
        return [answer for answer in self.answers if answer.at == number]


@dataclass(frozen=True)
class Neighbours:
    """Two worlds that differ in the answers to one round."""

    about: str
    """In words: who differs, and how."""
    setting: Setting
    target: int
    """The round in which they differ."""
    one: Script
    other: Script
    target_hidden: bool = False
    """Whether the target's context or exclusions differ too; then the target's own slate is not in the view."""

    def __post_init__(self) -> None:
        others = [
            [answer for answer in script.answers if answer.to != self.target]
            for script in (self.one, self.other)
        ]
        known = [
            script.known.but_of(self.target) if self.target_hidden else script.known
            for script in (self.one, self.other)
        ]
        if self.one.rounds != self.other.rounds or others[0] != others[1] or known[0] != known[1]:
            raise InvalidInput(f"Neighbours differ in the answers to round {self.target} only; these do not.")


TARGET = 0
"""The round in which the worlds differ: the first, so that everything later may depend on it."""

USUAL: dict[FeedbackKind, tuple[Shape, ...]] = {
    "full": ((2, 1, 2),),
    "bandit": ((3, 1, 2), (3, 1, 4)),
    "click": ((2, 1, 8),),
}
"""Small worlds, as numbers of items, slots and rounds, for learners whose entry names none."""

Replies = tuple[Reply, ...]
"""The feedback to one slate, one answer after the other; empty: no response."""


def candidates(
    learner: str,
    feedback: FeedbackKind,
    epsilon: float,
    delta: float,
    knows: Callable[[Setting, int], tuple[Known, Known]] = lambda *_: (NOTHING_KNOWN, NOTHING_KNOWN),
) -> list[Neighbours]:
    """Pairs of worlds for that learner, those that should be worst first; `knows`: what is known of users in both."""
    result = []
    own = LEARNERS[learner].audited_on if learner in LEARNERS else ()
    for shape in own or USUAL[feedback]:
        items, slots, rounds = shape(epsilon) if callable(shape) else shape
        setting = Setting(items, slots, rounds, feedback, epsilon, delta)
        for about, one, other, others in USERS[feedback](items):  # answers come one round after the other
            said = tuple(enumerate(one)), tuple(enumerate(other))
            about = f"{about}; {size_in_words(setting)}"
            known = knows(setting, TARGET)
            result.append(neighbours(setting, about, TARGET, *said, [others] * rounds, known))
    return result


def size_in_words(setting: Setting) -> str:
    """How large a world is."""
    return f"{setting.n_items} items, {setting.slots} shown, {setting.rounds} rounds"


AGAIN = 8
"""How often a target responds that responds repeatedly."""

Pair = tuple[str, Replies, Replies, Reply | None]
"""In words; the target's feedback in the one world and in the other; the feedback of all others."""


def full(items: int) -> list[Pair]:
    """Targets with full feedback."""

    def says(worth: Callable[[frozenset[int]], float]) -> Reply:
        user = Oracle(worth, items)
        return lambda slate: user

    first, rest, everything = (
        wanting("full", items, wanted) for wanted in ((0,), range(1, items), range(items))
    )
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
    """Targets with bandit feedback."""

    def says(reward: float) -> Reply:
        return lambda slate: reward

    return [
        ("is happy, or unhappy", (says(1.0),), (says(0.0),), None),
        ("is happy, or does not answer", (says(1.0),), (), None),
        ("is unhappy, or does not answer, while all others are happy", (says(0.0),), (), says(1.0)),
        ("says so again and again, or says nothing", (says(1.0),) * AGAIN, (), None),
        ("says a number beyond all bounds, or none", (says(1e300),), (says(float("nan")),), None),
    ]


def click(items: int) -> list[Pair]:
    """Targets with click feedback."""

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


USERS: dict[FeedbackKind, Callable[[int], list[Pair]]] = {"full": full, "bandit": bandit, "click": click}
"""Targets by kind of feedback."""


Said = tuple[tuple[int, Reply], ...]
"""All feedback of a target: how many rounds later, and what."""

WILD = (0.0, 1.0, 0.5, -3.0, 1e300, float("nan"), float("inf"))
"""Rewards that a client may send."""
SILENT: Said = ()


def wanting(feedback: FeedbackKind, n_items: int, items: Sequence[int]) -> Reply:
    """A user with reward 1 for any of `items`, who looks at slots in order."""
    wanted = frozenset(items)
    user = Oracle(lambda chosen: float(bool(chosen & wanted)), n_items)

    def click(slate: Slate) -> int | None:
        return next((place for place, item in enumerate(slate) if item in wanted), None)

    if feedback == "full":
        return lambda slate: user
    return click if feedback == "click" else lambda slate: float(bool(wanted & set(slate)))


def wild(feedback: FeedbackKind, n_items: int, random: np.random.Generator) -> Reply:
    """A user with arbitrary feedback; the same if it is evaluated again."""
    if feedback == "click":
        place = int(random.integers(n_items + 1))
        return lambda slate: place if place < len(slate) else None
    if feedback == "bandit":
        reward = float(random.choice(WILD))
        return lambda slate: reward
    kind = random.integers(3)
    worths = random.choice(WILD, size=1 << n_items)
    if kind == 1:  # little by itself, everything together
        worths = np.array([0.02 if chosen.bit_count() == 1 else 1.0 for chosen in range(1 << n_items)])
    if kind == 2:
        worths = np.where(random.random(1 << n_items) < 0.5, 1.0, 0.0)
    user = Oracle(lambda chosen: float(worths[sum(1 << item for item in chosen)]), n_items)
    return lambda slate: user


def erratic(feedback: FeedbackKind, n_items: int, random: np.random.Generator) -> Reply:
    """A target whose feedback differs at each evaluation; others respond the same in both worlds."""
    if feedback == "full":
        user = Oracle(lambda chosen: float(random.choice(WILD)), n_items)
        return lambda slate: user
    if feedback == "bandit":
        return lambda slate: float(random.choice(WILD))
    return lambda slate: int(random.integers(len(slate))) if slate else None


def again(reply: Reply) -> Said:
    """One answer, given at once and again in the next rounds."""
    return tuple((delay, reply) for delay in (0, 0, 1, 1, 2, 2))


def growing(setting: Setting) -> tuple[str, Said, Said]:
    """A user with nearly no reward for single items, and full reward for several."""
    little = 1 / (4 * setting.n_items)
    user = Oracle(lambda chosen: 1.0 if len(chosen) > 1 else little * len(chosen), setting.n_items)
    return "has wishes that grow, or says nothing", ((0, lambda slate: user),), SILENT


def targets(setting: Setting, random: np.random.Generator, more: int = 0) -> list[tuple[str, Said, Said]]:
    """Targets in words, with their feedback in both worlds; `more` random targets after the known ones."""
    n, feedback = setting.n_items, setting.feedback

    def wants(*items: int) -> Reply:
        return wanting(feedback, n, items)

    first, rest, all_items = wants(0), wants(*range(1, n)), wants(*range(n))
    result: list[tuple[str, Said, Said]] = [
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
            said.append(tuple((int(delay), reply) for delay in np.sort(times)))
        result.append((f"says anything whatever ({number})", said[0], said[1]))
    return result


CROWDS = ("no other user responds", "all others want the same item", "all others respond at random")


def crowd(setting: Setting, kind: str, random: np.random.Generator) -> list[Reply | None]:
    """The feedback of all other users in both worlds, round by round."""
    n, feedback, rounds = setting.n_items, setting.feedback, setting.rounds
    if kind not in CROWDS:
        raise InvalidInput(f"There is no crowd {kind!r}. There are: {', '.join(CROWDS)}.")
    if kind == CROWDS[0]:
        return [None] * rounds
    if kind == CROWDS[1]:
        return [wanting(feedback, n, (0,))] * rounds
    return [None if random.random() < 0.2 else wild(feedback, n, random) for _ in range(rounds)]


def neighbours(
    setting: Setting,
    about: str,
    target: int,
    one: Said,
    other: Said,
    others: Sequence[Any],
    known: tuple[Known, Known] = (NOTHING_KNOWN, NOTHING_KNOWN),
) -> Neighbours:
    """Two worlds: the target responds with `one` or `other`; all other users are the same."""
    scripts = []
    for said, theirs in zip((one, other), known, strict=True):
        answers = [Answer(target, min(setting.rounds - 1, target + delay), reply) for delay, reply in said]
        answers += [
            Answer(t, t, reply) for t, reply in enumerate(others) if reply is not None and t != target
        ]
        in_order = tuple(sorted(answers, key=lambda answer: answer.at))
        scripts.append(Script(setting.rounds, in_order, theirs))
    return Neighbours(about, setting, target, scripts[0], scripts[1], known[0] != known[1])
