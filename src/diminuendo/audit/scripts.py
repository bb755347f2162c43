"""Scripts: two worlds that differ in what one person says, round by round, for the audit to play.

A world is scripted to the last answer: who answers which round, when, and what. An answer may come late, twice or
never, and may be anything at all. `Neighbours` are two worlds that differ in the answers to one round; whoever sees
everything that is shown should hardly be able to tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from diminuendo.errors import InvalidInput
from diminuendo.learners import Setting
from diminuendo.types import Slate

Reply: TypeAlias = Callable[[Slate], Any]
"""What somebody says to a slate: an objective, a payoff, a clicked slot; or what nobody should ever say."""


@dataclass(frozen=True)
class Answer:
    """What is said to the slate of round `to`, once the slate of round `at` has been shown."""

    to: int
    at: int
    reply: Reply


@dataclass(frozen=True)
class Script:
    """All answers of one world, in the order in which they come."""

    rounds: int
    answers: tuple[Answer, ...]

    def __post_init__(self) -> None:
        for answer in self.answers:
            if not 0 <= answer.to <= answer.at < self.rounds:
                raise InvalidInput(
                    f"An answer comes to a slate that was shown: got round {answer.to} answered after round "
                    f"{answer.at} of {self.rounds}."
                )

    def after(self, number: int) -> list[Answer]:
        """What is said once the slate of that round has been shown."""
        return [answer for answer in self.answers if answer.at == number]


@dataclass(frozen=True)
class Neighbours:
    """Two worlds that differ in the answers to one round."""

    about: str
    """In words: who differs, and how."""
    setting: Setting
    victim: int
    """The round in which they differ."""
    one: Script
    other: Script

    def __post_init__(self) -> None:
        others = [
            [answer for answer in script.answers if answer.to != self.victim]
            for script in (self.one, self.other)
        ]
        if self.one.rounds != self.other.rounds or others[0] != others[1]:
            raise InvalidInput(f"Neighbours differ in the answers to round {self.victim} only; these do not.")


def prompt(replies: Iterable[Reply | None]) -> Script:
    """Everybody answers at once, once; None: says nothing."""
    said = list(replies)
    answers = tuple(Answer(t, t, reply) for t, reply in enumerate(said) if reply is not None)
    return Script(len(said), answers)
