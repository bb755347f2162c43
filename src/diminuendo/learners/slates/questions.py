"""What users are asked about the slates they are shown: the part in which totals and clicks differ.

A question is decided with its slate, by public facts. An answer becomes ticks in a cell of the slate: rewards are
clipped in totals.py, clicks are ticks of 0 or 1 in clicks.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from diminuendo.learners.base.feedback import Reader
from diminuendo.learners.base.items import ItemAvailability
from diminuendo.learners.base.setting import Prior
from diminuendo.learners.slates.blocks import sensitivity_of
from diminuendo.learners.slates.posterior import SlatePosterior
from diminuendo.streams.users import Users
from diminuendo.types import Ints, Items


@dataclass(frozen=True)
class Noise:
    """How noisy what is published is: public numbers."""

    epsilon: float
    """What one round costs."""
    scales: Mapping[int, float]
    """The scale of the noise in numbers of each sensitivity, in units: slates and questions are planned by it."""
    published: bool
    """Whether what is published has this noise, or none."""

    def of(self, question: int) -> float:
        """The scale of the noise on what is published in answer to that question, in units."""
        return self.scales[int(sensitivity_of(question))] if self.published else 0.0


@dataclass(frozen=True)
class KnownBeforehand:
    """What is known before the first user arrives: of items, and of how many users come. All public."""

    items: ItemAvailability
    prior: Prior | None
    """Which share of users each item pleases."""
    horizon: bool
    """Whether the number of rounds is known."""

    def config(self) -> dict[str, Any]:
        """As a snapshot holds it; nothing where nothing was said."""
        result: dict[str, Any] = self.items.config()
        if self.prior is not None:
            result |= {"prior": self.prior.scores.tolist(), "prior_users": self.prior.users}
        return result if self.horizon else result | {"horizon": None}


class Questions(ABC):
    """Which questions are asked, and what their answers count as."""

    reader: Reader
    ticks: int
    """Whole numbers to one unit of an answer."""
    enough_for_chance: int
    """How many users tell a good item from a bad one at first, were there no noise."""
    sensitivities: tuple[int, ...]
    """How much one answer moves what is published, in units, for each kind of question that may be asked."""

    # Public: made of what was published.

    @abstractmethod
    def ask(self, slate: Items, users: int, posterior: SlatePosterior, noise: Noise) -> tuple[Items, int]:
        """In what order to show a slate to `users` users, and what to ask them."""

    @abstractmethod
    def retests(
        self, leader: Items, users: int, few: int, rounds: int, posterior: SlatePosterior
    ) -> list[tuple[Items, int]]:
        """Slates that give items another chance which were given up, and how many users each is shown to.

        `users`: to how many an exploring slate is shown; `few`: the least that teach anything; `rounds`: how many
        users come in all.
        """

    # Private: what users said, on its way into cells.

    @abstractmethod
    def answers(self, users: Users, first: int, slates: Items) -> NDArray[Any]:
        """What users from number `first` on say to these slates."""

    @abstractmethod
    def ticks_of(self, questions: Ints, answers: NDArray[Any]) -> tuple[Ints, Ints]:
        """For each answer, by its question, to which of the cells of the slate it adds, and the ticks."""

    @abstractmethod
    def count_one(self, question: int, start: int, answer: Any) -> tuple[int, int]:
        """The cell that one answer adds to, and the ticks, in plain numbers: arrays would take ten times as long."""
