"""A policy: the algorithm of a learner, and nothing else.

A learner (learner.py) adds locks, open decisions, contribution bounding, replay and snapshots. There are two kinds of
policies.

*Policies with a menu.* Slates follow from what was published: a *menu* (menu.py) is public data that defines what is
shown next, to which rounds and with what probability. Feedback is added up or stored in private. A *release* is the
only way from private to public: it is charged, drawn once, and durable before it is shown. The next menu is a
function of releases and public facts alone.

*Policies that draw from secret scores*, as the paper's do: every slate is a private draw, and is charged.

Defaults: a policy is replayed round by round, in Python; a snapshot holds its sums, and its menu; and its guarantee is
the cost of its sums.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput, refuse_copies
from diminuendo.learners.base.feedback import Reader, simulate_feedback
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.menu import LASTING, Chooser, Menu, read_lasting
from diminuendo.learners.health import NOT_AVAILABLE, Health, Signal
from diminuendo.privacy.budget import Budget, Guarantee, no_privacy
from diminuendo.privacy.events import Composed, Event
from diminuendo.streams.users import Users
from diminuendo.sums.snapshots import Kept, sums_as_extra, take_sums
from diminuendo.types import FEEDBACKS, Ints, Items


class Policy(ABC):
    """The algorithm of a learner: what it shows, and what it learns from feedback.

    `Learner` adds locks, open decisions, contribution bounding, replay and snapshots. Subclass `MenuPolicy` if
    slates follow from releases, and this class if slates are drawn from secret scores.

    Attributes
    ----------
    frame : Frame
        Sizes, randomness, open decisions and the ledger. Set it in `__init__`.
    reader : Reader
        Which feedback it learns from, and how feedback is validated.
    budget : Budget, optional
        None if nothing is promised.
    purpose : str
        What the budget is spent on, in a few words.
    proof : str
        Where it is proved that `events` are all that it costs.
    sums : mapping of str to PrivateSum or PrivateCounts
        Private sums by name. Snapshots hold them, and their costs are the default of `events`.
    signal : Signal, optional
        Published totals of rewards, from which `health` follows.
    options : mapping
        What the recipe was given beyond what frame and budget know. Snapshots hold it.

    See Also
    --------
    MenuPolicy : for learners that publish.

    """

    frame: Frame
    reader: Reader
    budget: Budget | None = None
    purpose: str = "everything that it lets out"
    proof: str = ""
    sums: Mapping[str, Kept] = {}
    signal: Signal | None = None
    options: Mapping[str, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        if self.frame.limited:
            refuse_copies(self)
        return self.__dict__

    # What is promised.

    @property
    def guarantee(self) -> Guarantee:
        """What is proved: the cost of `events` under the budget's accountant; nothing without a budget."""
        frame, budget, events = self.frame, self.budget, self.events
        if budget is None:
            return no_privacy(frame.rng.secure)
        if events is None or not self.proof:
            raise InvalidInput(
                f"The policy of {frame.name!r} has a budget and does not say what it costs: give it `sums` that are "
                "paid for, or its own `events`; and `proof`, where that is proved."
            )
        epsilon, secure, view = (
            budget.worth_of(events, frame.max_rounds_per_user),
            frame.rng.secure,
            frame.unit.view,
        )
        return Guarantee(epsilon, budget.delta, str(frame.unit), self.proof, secure, view=view)

    @property
    def claim(self) -> Guarantee | None:
        """What the paper's own analysis says, where the algorithm is one of the paper's."""
        return None

    @property
    def events(self) -> Event | None:
        """The cost of the whole run; by default what its sums cost."""
        costs: list[Any] = [getattr(each, "event", None) for each in self.sums.values()]
        if self.budget is None or not costs or None in costs:
            return None
        result: Event = costs[0] if len(costs) == 1 else Composed(tuple(costs))
        return result

    @property
    def health(self) -> Health:
        """Whether releases show that feedback arrives in time."""
        return NOT_AVAILABLE if self.signal is None else self.signal.health

    def warn(self) -> None:
        """Say once that what was published shows no signal, if it does."""
        if self.signal is not None:
            self.signal.warn(self.frame.name)

    def purposes(self) -> dict[str, Event]:
        """Return what the budget is spent on, and the cost of each; together they cost `events`."""
        return {} if self.events is None else {self.purpose: self.events}

    def charged_until(self) -> list[int]:
        """Return the ends of batches, within which all rounds are charged alike; by default the horizon alone."""
        return [] if self.frame.horizon is None else [self.frame.horizon]

    def regret_bound(self, rounds: int | None = None) -> float | None:
        """Return the proved bound on expected regret against (1 - 1/e) of the best slate, or None."""
        return None

    # Choosing.

    def due(self) -> bool:
        """Return whether something is to be published before the next round: a function of public facts."""
        return False

    def release(self) -> None:  # noqa: B027  some publish nothing but slates
        """Publish what is due: charge, draw once, store, and only then change what is shown.

        If it fails nothing is lost, and the next round tries again. Other threads may choose and report feedback
        meanwhile: freeze what is private under `frame.guard.answers`, and change what is shown under
        `frame.guard.lock`.
        """

    def fill(self, row: Items) -> bool:
        """Fill in the next slate where none is ready without a release, in a round that does not count; else False."""
        return False

    @abstractmethod
    def draw(self, row: Items, probe: Items) -> bool:
        """Fill in the next slate.

        Parameters
        ----------
        row : ndarray of int32, shape (slots,)
            Filled in; -1 is an empty slot.
        probe : ndarray of int32, shape (3,)
            Filled in if the round explores.

        Returns
        -------
        bool
            False, with nothing changed, if words ran out and `resume` must be called.
        """

    def record_arrivals(self, first: int, types: Ints, counts: NDArray[np.bool_]) -> None:  # noqa: B027  few count
        """Record users of these context ids in rounds from `first` on, and whether their feedback counts.

        Called with contexts, for policies that count users of each.
        """

    def propensity(self, row: Items) -> float | None:
        """Return the probability with which `row` was drawn just now if that is public, else None."""
        return None

    def resume(self, rounds: int = 1) -> None:
        """Give an interrupted kernel what it lacked for about `rounds` rounds."""
        self.frame.resume(rounds)

    # Learning.

    @abstractmethod
    def learn(self, place: int, answer: Any) -> None:
        """Learn from feedback.

        Parameters
        ----------
        place : int
            Position of the decision among the open decisions.
        answer : object
            What `reader` made of the feedback.
        """

    def replay(self, users: Users, slates: Items, done: int) -> int:
        """Play rounds from `done` on, and return how far it came before it must be resumed, which must be public.

        The default plays one round, as it is chosen and answered: right for every policy, and slow. Override it
        with compiled code that plays many.
        """
        frame, decisions = self.frame, self.frame.decisions
        row, probe = frame.blank()
        if not self.draw(row, probe):
            return done
        slates[done] = row
        if frame.response_mask is None or frame.response_mask[0]:
            decision = decisions.add(row, probe, coming=frame.coming)
            kind = next(kind for kind in FEEDBACKS if kind in self.reader.kinds)
            answer = self.reader(frame, decision, simulate_feedback(users, done, decision.slate, kind))
            decisions.close(place := decision.round % decisions.remembered)
            self.learn(place, answer)
            decisions.issued[0] -= 1  # the caller counts the rounds that were played
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
        budget = {} if self.budget is None else {"epsilon": self.budget.epsilon, "delta": self.budget.delta}
        if self.budget is not None and self.budget.accountant == "pure":
            del budget["delta"]
        return budget | dict(self.options)

    def parameters(self) -> dict[str, Any]:
        """The public numbers that it was made with, for users to read."""
        return self.config()

    def state(self) -> Any:
        """Arrays, and tuples of them, that make up what was learned; restored in place."""
        return ()

    def extra(self) -> dict[str, NDArray[Any]]:
        """Arrays of no fixed size that belong to what was learned, here its sums; restored by `take_extra`."""
        return sums_as_extra(self.sums)

    def take_extra(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Read what `extra` wrote."""
        take_sums(self.sums, arrays)

    def restored(self) -> None:  # noqa: B027  of some nothing follows
        """Rebuild what follows from `state` after it was read from a snapshot."""


class MenuPolicy(Policy):
    """A policy whose slates follow from what was published: any process that holds its menu can choose.

    Implement `due`, `release` and `learn`, and call `show` with the first menu in `__init__` and with a new one in
    `release`. By Theorem A7 of docs/maths/accounting.md and post-processing, menus cost nothing beyond releases. A
    whole private learner is in docs/how-to/your-own-learner.md.

    Attributes
    ----------
    remote_rounds : bool
        Whether rounds may be chosen by other processes that hold the menu.

    Examples
    --------
    >>> import numpy as np
    >>> from diminuendo.extend import Anything, Frame, Learner, MenuPolicy, OneSlate
    >>> class FirstItems(MenuPolicy):
    ...     reader = Anything()
    ...     def __init__(self, frame):
    ...         self.frame = frame
    ...         self.show(OneSlate, np.arange(frame.slots, dtype=np.int32), end=None)
    ...     def learn(self, place, answer):
    ...         pass
    >>> Learner(FirstItems(Frame("first-items", n_items=10, slots=3))).choose().slate
    (0, 1, 2)
    """

    remote_rounds: ClassVar[bool] = False
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
        """Show slates of a menu from now on.

        Parameters
        ----------
        kind : type
            Kind of menu: OneSlate, SlateByType, RandomSlates or SlatesFromPoint.
        *parts
            What such a menu has besides sizes and rounds; of OneSlate the slate, an int32 array.
        end : int or None
            The menu holds until the rounds before `end` are published; None: for good.

        Raises
        ------
        InvalidInput
            If the kind is not the same in all its rounds, or the parts do not fit.
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

    def take_extra(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Read what `extra` wrote."""
        if self._shows:
            self._chooser = read_lasting(arrays.pop("menu")).chooser()
        take_sums(self.sums, arrays)

    @property
    def menu(self) -> Menu:
        """What is shown next: public data."""
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
        """Replace items that the users who are chosen for now exclude."""
        frame = self.frame
        if len(frame.excluding.items):
            self.chooser.without(slates, frame.excluding, types)
            frame.excluding = frame.excluding.since(len(slates))

    def stop(self, users: Users, done: int, *marks: int | None) -> int:
        """How far a replay that has come to `done` may go in one go: to the first of these rounds.

        With a public sample that many rounds of users who have one, and who comes between them.
        """
        frame = self.frame
        rounds = [mark - frame.rounds for mark in marks if mark is not None]
        if frame.sampled is not None:
            heads = np.flatnonzero(frame.sampled)
            rounds = [int(heads[many - 1]) + 1 for many in rounds if 0 < many <= len(heads)]
        return min([len(users), *(done + many for many in rounds)])

    def learn_all(self, places: Ints, answers: Sequence[Any] | Users) -> None:
        """As `learn`, for several users at once; of a table, whose users said this."""
        for place, answer in zip(places.tolist(), answers, strict=True):
            self.learn(place, answer)

    def erase(self, rounds: Ints) -> None:
        """Take users' data of these rounds out of all later releases, if single users' data is kept."""

    def propensity(self, row: Items) -> float | None:
        """As the menu says; nothing where users may exclude items, since exclusions have a part in it."""
        return None if self.frame.exclusions else self.chooser.propensity(self.frame.rounds, row)
