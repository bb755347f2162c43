"""A policy: the algorithm of a learner, and nothing else.

A learner (learner.py) keeps the contract: locks, open decisions, visits, replay, snapshots. What it shows, and what it
makes of answers, is its policy's. There are two kinds.

*Policies with a menu.* Slates follow from what was published: a *menu* (menu.py) is public data that says what is
shown next, to which rounds and with what chance. Answers are added up or kept out of sight; a *release* is the one door
between the two sides: it is paid for, drawn once and durable before anybody sees it, and the next menu is a function of
releases and public facts alone.

*Policies that draw from secret scores*, as the paper's do: every slate passes through the door, and is paid for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput, refuse_copies
from diminuendo.learners.base.feedback import Reader
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.menu import Chooser, Menu
from diminuendo.privacy.budget import Budget, Guarantee
from diminuendo.privacy.events import Event
from diminuendo.streams.people import People
from diminuendo.types import Ints, Items


class Policy(ABC):
    """What an algorithm provides; it is given its frame, and its parts, when it is made."""

    frame: Frame
    reader: Reader
    """Which feedback it learns from, and how that is checked at the door."""
    budget: Budget | None = None
    """What was asked for; None where nothing is promised."""
    purpose: str = "everything that it lets out"
    """What its budget is spent on, in a few words."""

    def __getstate__(self) -> dict[str, Any]:
        if self.frame.limited:
            refuse_copies(self)
        return self.__dict__

    # What is promised.

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What is proved about everything that is let out."""

    @property
    def claim(self) -> Guarantee | None:
        """What the paper's own analysis says, where the algorithm is one of the paper's."""
        return None

    @property
    def events(self) -> Event | None:
        """What the whole run costs; None where nobody is asked, or nothing is promised."""
        return None

    def purposes(self) -> dict[str, Event]:
        """What the budget is spent on, and the cost of each; all together they cost `events`."""
        return {} if self.events is None else {self.purpose: self.events}

    def charged_until(self) -> list[int]:
        """The rounds up to which rounds are charged alike: the ends of batches, or the horizon alone."""
        return [] if self.frame.horizon is None else [self.frame.horizon]

    def regret_bound(self, rounds: int | None = None) -> float | None:
        """What is proved of the expected regret to (1 - 1/e) of the best slate, if anything.

        Of the whole run; or of `rounds` rounds, which must be said of learners that are made for ever.
        """
        return None

    # Choosing.

    def due(self) -> bool:
        """Whether something is to be published before the next round."""
        return False

    def release(self) -> None:  # noqa: B027  some publish nothing but slates
        """Publish what is due. Where it fails nothing is lost: the next round tries again.

        Where a ledger's file has failed, that ledger is closed: the next try is by a learner that is restored from a
        snapshot on the ledger as opened again.

        Others may choose and answer meanwhile: what is private is frozen under `frame.guard.answers`, and what is shown
        is changed under `frame.guard.lock`.
        """

    def fill(self, row: Items) -> bool:
        """Fill in the next slate where none is ready without a release, in a round that does not count; else False."""
        return False

    @abstractmethod
    def draw(self, row: Items, probe: Items) -> bool:
        """Fill in the next slate; False, with nothing changed, when it must be resumed."""

    def came(self, first: int, types: Ints, counts: NDArray[np.bool_]) -> None:  # noqa: B027  few count
        """People of these types came, from round `first` on; for each, whether her answer counts.

        Called where there are contexts, of which some need to know how many there are of each.
        """

    def propensity(self, row: Items) -> float | None:
        """With what probability `row` was drawn just now, where that is a public fact."""
        return None

    def resume(self, rounds: int = 1) -> None:
        """Give an interrupted kernel what it lacked for about `rounds` rounds."""
        self.frame.resume(rounds)

    # Learning.

    @abstractmethod
    def learn(self, place: int, answer: Any) -> None:
        """Learn from the answer to the decision at that place of the open decisions."""

    @abstractmethod
    def replay(self, people: People, slates: Items, done: int) -> int:
        """Play from round `done` on, compiled; returns how far it came before it must be resumed: a public fact."""

    # The items change.

    def appear(self, items: Iterable[int]) -> None:
        """These items are there from now on."""
        raise InvalidInput(f"{self.frame.name!r} has the same items from the first round to the last.")

    def retire(self, items: Iterable[int]) -> None:
        """These items are not shown any more."""
        raise InvalidInput(f"{self.frame.name!r} has the same items from the first round to the last.")

    # What a snapshot holds.

    def config(self) -> dict[str, Any]:
        """The arguments that it was made with, besides those of the frame."""
        return {}

    def parameters(self) -> dict[str, Any]:
        """The public numbers that it was made with, for people to read."""
        return self.config()

    def state(self) -> Any:
        """Arrays, and tuples of them, that make up what was learned; restored in place."""
        return ()

    def extra(self) -> dict[str, NDArray[Any]]:
        """Arrays of no fixed size that belong to what was learned; restored by `take_extra`."""
        return {}

    def take_extra(self, found: dict[str, NDArray[Any]]) -> None:
        """Read what `extra` wrote; refuse what could not have been written."""
        if found:
            raise InvalidInput("The snapshot holds more than this learner keeps; it was altered.")

    def restored(self) -> None:  # noqa: B027  some have nothing to check
        """Check `state` after it was read from a snapshot, and rebuild what follows from it.

        Compiled code does not check its indices, so nothing that it uses as one is taken from a snapshot unchecked.
        """


class MenuPolicy(Policy):
    """A policy whose slates follow from what was published: whoever holds its menu can choose."""

    @property
    @abstractmethod
    def chooser(self) -> Chooser:
        """What draws the slates of the rounds that the present menu is for."""

    @property
    def menu(self) -> Menu:
        """What is shown next, to which rounds and with what chance: public data."""
        return self.chooser.menu

    def draw(self, row: Items, probe: Items) -> bool:
        """One slate of the menu."""
        return self.draw_rows(row[None, :], probe[None, :]) == 1

    def draw_rows(self, slates: Items, probes: Items | None = None) -> int:
        """The slates of the next rounds, all of one menu, and their probes; how many, before it must be resumed."""
        probes = np.empty((len(slates), 3), dtype=np.int32) if probes is None else probes
        frame, types = self.frame, self.frame.coming[: len(slates)]
        drawn = self.chooser.draw(frame.rounds, slates, probes, frame.public.view, types)
        self.leave_out(slates[:drawn], types)  # after all coins: what others are shown does not depend on it
        return drawn

    def leave_out(self, slates: Items, types: Ints) -> None:
        """Change the slates of the people who are chosen for now, so that nobody is shown what she excludes."""
        frame = self.frame
        if len(frame.excluding.items):
            self.chooser.without(slates, frame.excluding, types)
            frame.excluding = frame.excluding.since(len(slates))

    def stop(self, people: People, done: int, *marks: int | None) -> int:
        """How far a replay that has come to `done` may go in one go: to the first of these rounds."""
        return min(len(people), *(done + mark - self.frame.rounds for mark in marks if mark is not None))

    def propensity(self, row: Items) -> float | None:
        """As the menu says; nothing where people may exclude items, since what she excludes has a part in it."""
        return None if self.frame.exclusions else self.chooser.propensity(self.frame.rounds, row)
