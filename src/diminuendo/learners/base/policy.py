"""A policy: the algorithm of a learner, and nothing else.

A learner (learner.py) keeps the contract: locks, open decisions, visits, replay, snapshots. What it shows, and what it
makes of answers, is its policy's. There are two kinds.

*Policies with a menu.* Slates follow from what was published: a *menu* (menu.py) is public data that says what is
shown next, to which rounds and with what chance. Answers are added up or kept out of sight; a *release* is the one door
between the two sides: it is paid for, drawn once and durable before anybody sees it, and the next menu is a function of
releases and public facts alone.

*Policies that draw from secret scores*, as the paper's do: every slate passes through the door, and is paid for.

Where a policy says nothing else, it is replayed round by round, in Python; a snapshot holds its sums, and the menu that
it shows; and it promises what its sums cost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput, refuse_copies
from diminuendo.learners.base.feedback import Reader, said_to
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.menu import LASTING, Chooser, Menu, read_lasting
from diminuendo.learners.health import NOT_AVAILABLE, Health, Signal
from diminuendo.privacy.budget import Budget, Guarantee, no_privacy
from diminuendo.privacy.events import Composed, Event
from diminuendo.streams.people import People
from diminuendo.sums.snapshots import Kept, sums_as_extra, take_sums
from diminuendo.types import FEEDBACKS, Ints, Items


class Policy(ABC):
    """What an algorithm provides; it is given its frame, and its parts, when it is made."""

    frame: Frame
    reader: Reader
    """Which feedback it learns from, and how that is checked at the door."""
    budget: Budget | None = None
    """What was asked for; None where nothing is promised."""
    purpose: str = "everything that it lets out"
    """What its budget is spent on, in a few words."""
    proof: str = ""
    """Where it is proved that `events` are all that it costs."""
    sums: Mapping[str, Kept] = {}
    """What people are added to, by names of its own: a snapshot holds it."""
    signal: Signal | None = None
    """What was published of rewards, from which its health follows; None where no rewards are published."""
    options: Mapping[str, Any] = {}
    """What its recipe was told besides what the frame and the budget know: a snapshot holds it."""

    def __getstate__(self) -> dict[str, Any]:
        if self.frame.limited:
            refuse_copies(self)
        return self.__dict__

    # What is promised.

    @property
    def guarantee(self) -> Guarantee:
        """What is proved about everything that is let out: what its events cost; nothing where there is no budget."""
        frame, budget, events = self.frame, self.budget, self.events
        if budget is None:
            return no_privacy(frame.coins.secure)
        if events is None or not self.proof:
            raise InvalidInput(
                f"The policy of {frame.name!r} has a budget and does not say what it costs: give it `sums` that are "
                "paid for, or its own `events`; and `proof`, where that is proved."
            )
        epsilon, secure, view = budget.worth_of(events, frame.visits), frame.coins.secure, frame.unit.view
        return Guarantee(epsilon, budget.delta, str(frame.unit), self.proof, secure, view=view)

    @property
    def claim(self) -> Guarantee | None:
        """What the paper's own analysis says, where the algorithm is one of the paper's."""
        return None

    @property
    def events(self) -> Event | None:
        """What the whole run costs, which is what its sums cost; None where nobody is asked, or nothing is promised."""
        costs: list[Any] = [getattr(kept, "event", None) for kept in self.sums.values()]
        if self.budget is None or not costs or None in costs:
            return None
        found: Event = costs[0] if len(costs) == 1 else Composed(tuple(costs))
        return found

    @property
    def health(self) -> Health:
        """Whether what was published shows that anybody answers in time."""
        return NOT_AVAILABLE if self.signal is None else self.signal.health

    def warn(self) -> None:
        """Say once that what was published shows no signal, if it does."""
        if self.signal is not None:
            self.signal.warn(self.frame.name)

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

    def replay(self, people: People, slates: Items, done: int) -> int:
        """Play from round `done` on; returns how far it came before it must be resumed: a public fact.

        Here one round, as it is chosen and answered one by one: right for every policy, and slow. Others play many
        rounds at once, compiled.
        """
        frame, decisions = self.frame, self.frame.decisions
        row, probe = frame.blank()
        if not self.draw(row, probe):
            return done
        slates[done] = row
        if frame.heard is None or frame.heard[0]:
            decision = decisions.add(row, probe, coming=frame.coming)
            kind = next(kind for kind in FEEDBACKS if kind in self.reader.kinds)
            answer = self.reader(frame, decision, said_to(people, done, decision.slate, kind))
            decisions.close(place := decision.round % decisions.remembered)
            self.learn(place, answer)
            decisions.issued[0] -= 1  # whoever called counts the rounds that were played
        return done + 1

    # The items change.

    def appear(self, items: Iterable[int]) -> None:
        """These items are there from now on."""
        raise InvalidInput(f"{self.frame.name!r} has the same items from the first round to the last.")

    def retire(self, items: Iterable[int]) -> None:
        """These items are not shown any more."""
        raise InvalidInput(f"{self.frame.name!r} has the same items from the first round to the last.")

    # What a snapshot holds.

    def config(self) -> dict[str, Any]:
        """The arguments that it was made with, besides those of the frame: what was asked for, and its options."""
        asked = {} if self.budget is None else {"epsilon": self.budget.epsilon, "delta": self.budget.delta}
        if self.budget is not None and self.budget.accountant == "pure":
            del asked["delta"]
        return asked | dict(self.options)

    def parameters(self) -> dict[str, Any]:
        """The public numbers that it was made with, for people to read."""
        return self.config()

    def state(self) -> Any:
        """Arrays, and tuples of them, that make up what was learned; restored in place."""
        return ()

    def extra(self) -> dict[str, NDArray[Any]]:
        """Arrays of no fixed size that belong to what was learned, here its sums; restored by `take_extra`."""
        return sums_as_extra(self.sums)

    def take_extra(self, found: dict[str, NDArray[Any]]) -> None:
        """Read what `extra` wrote."""
        take_sums(self.sums, found)

    def restored(self) -> None:  # noqa: B027  of some nothing follows
        """Rebuild what follows from `state` after it was read from a snapshot."""


class MenuPolicy(Policy):
    """A policy whose slates follow from what was published: whoever holds its menu can choose."""

    elsewhere: ClassVar[bool] = False
    """Whether what was shown, to whom and what she said is all that it must be told of rounds chosen elsewhere."""
    _chooser: Chooser
    _shows: bool = False  # whether `show` says what is shown; then a snapshot holds it

    @property
    def remembers_from(self) -> int:
        """The round from which on it remembers: before that tastes have changed, as what was published says."""
        return 0

    @property
    def chooser(self) -> Chooser:
        """What draws the slates of the rounds that the present menu is for."""
        return self._chooser

    def show(self, kind: type[Menu], *parts: Any, end: int | None) -> None:
        """From now on slates are by a menu of that kind, until the rounds before `end` are published; None: for good.

            self.show(OneSlate, items, end=2_000)

        `parts`: what such a menu has besides sizes and rounds: of `OneSlate` the items, an int32 for each slot.
        """
        if kind not in LASTING:
            kinds = ", ".join(each.__name__ for each in LASTING)
            raise InvalidInput(
                f"show() takes a kind of menu that is the same in all its rounds: {kinds}; "
                f"got {kind!r}. For others keep a chooser, and what it has left, in the policy itself."
            )
        frame = self.frame
        with frame.guard.lock:
            last = None if end is None else frame.published_at(end)
            menu = kind(frame.n_items, frame.slots, frame.rounds, last, frame.public.passed, *parts)
            self._chooser, self._shows = menu.chooser(), True

    def extra(self) -> dict[str, NDArray[Any]]:
        """Its sums, and the menu that it shows."""
        menu = {"menu": np.frombuffer(self.menu.to_bytes(), dtype=np.uint8)} if self._shows else {}
        return sums_as_extra(self.sums) | menu

    def take_extra(self, found: dict[str, NDArray[Any]]) -> None:
        """Read what `extra` wrote."""
        if self._shows:
            self._chooser = read_lasting(
                found.pop("menu", None), self.frame.n_items, self.frame.slots
            ).chooser()
        take_sums(self.sums, found)

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
        """How far a replay that has come to `done` may go in one go: to the first of these rounds.

        With a public sample that many rounds of people who have one, and who comes between them.
        """
        frame = self.frame
        rounds = [mark - frame.rounds for mark in marks if mark is not None]
        if frame.sampled is not None:
            heads = np.flatnonzero(frame.sampled)
            rounds = [int(heads[many - 1]) + 1 for many in rounds if 0 < many <= len(heads)]
        return min([len(people), *(done + many for many in rounds)])

    def learn_all(self, places: Ints, answers: Sequence[Any] | People) -> None:
        """As `learn`, for several people at once; of a table, whose people said this."""
        for place, answer in zip(places.tolist(), answers, strict=True):
            self.learn(place, answer)

    def erase(self, rounds: Ints) -> None:
        """Nothing that is published later uses what single people said in these rounds, where people are kept."""

    def propensity(self, row: Items) -> float | None:
        """As the menu says; nothing where people may exclude items, since what she excludes has a part in it."""
        return None if self.frame.exclusions else self.chooser.propensity(self.frame.rounds, row)
