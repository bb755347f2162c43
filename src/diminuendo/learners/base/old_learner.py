"""The contract every learner keeps, and what they share.

    decision = learner.choose()            # before we know what this person wants; choose("ada"): who she is
    ... show decision.slate ...
    learner.observe(decision, feedback)    # afterwards: what she told us; perhaps late, twice, or never

`observe` never makes anything visible happen: it returns None whether or not the answer still counted.
`replay` is the same loop, compiled: with the same coins, slate for slate the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from diminuendo import _snapshots, _validate
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.decisions import NO_PROBE, OpenDecisions
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.base.visits import Identity, VisitLimit, silenced
from diminuendo.privacy.budget import Guarantee
from diminuendo.privacy.process_guard import DeferInterrupt, ProcessGuard
from diminuendo.randomness.coins import Coins, SystemCoins, life_of
from diminuendo.randomness.words import PublicCoins, SecretRandomness
from diminuendo.streams.people import People
from diminuendo.types import EMPTY_SLOT, Decision, FeedbackKind, Items, Progress


class Learner(ABC):
    """Chooses slates for a stream of people and learns from what they say."""

    name: ClassVar[str]
    reads: ClassVar[frozenset[FeedbackKind]]
    """The kinds of feedback it can learn from."""
    summary: ClassVar[str]
    """One line: what it is and when to use it."""
    _visit_limit: VisitLimit | None = None
    """Counts people's rounds, where something is promised to them."""

    def __init__(
        self, n_items: int, slots: int, *, coins: Coins | None = None, patience: int = 10_000
    ) -> None:
        self.n_items = _validate.positive_int(n_items, "n_items")
        self.slots = _validate.slots(slots, self.n_items)
        self.coins = self._coins(coins)
        self._public = PublicCoins(self.coins)
        self._secret = SecretRandomness(self.coins)
        self._decisions = OpenDecisions(self.slots, patience, life_of(self.coins))
        self._guard = ProcessGuard()
        self._blank: Items = np.full(self.slots, EMPTY_SLOT, dtype=np.int32)
        self._no_probe: Items = np.full(3, NO_PROBE, dtype=np.int32)

    @staticmethod
    def _coins(coins: Coins | None) -> Coins:
        """The system's, unless others are asked for."""
        if coins is not None and not all(hasattr(coins, part) for part in ("public", "secret", "secure")):
            raise InvalidInput(f"coins must be SystemCoins() or SeededCoins(seed); got {coins!r}.")
        return SystemCoins() if coins is None else coins

    @classmethod
    def for_setting(cls, setting: Setting, *, coins: Coins | None = None) -> Self:
        """A learner with its defaults for what is known beforehand."""
        return cls(setting.n_items, setting.slots, coins=coins)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.slots} of {self.n_items} items, {self.rounds} rounds>"

    @property
    def rounds(self) -> int:
        """How many decisions were made so far."""
        return self._decisions.rounds

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What is proved about everything this learner lets out."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The public numbers that it was made with."""
        known = ("n_items", "slots", "patience")
        return {name: value for name, value in self._config().items() if name not in known}

    def choose(self, person: Identity | None = None) -> Decision:
        """The slate for the next person. `person`: who she is, a public fact; without it, somebody who comes once.

        Private learners are made for people who have up to `visits` rounds. In the rounds after those a slate is
        shown as ever, and her answer changes nothing.
        """
        quota = self._visit_limit
        with self._guard.lock:
            self._admit(1)
            self._release_due()
            counts = quota is None or quota.admits(person)
            with DeferInterrupt():  # drawn, counted and issued, or nothing of it
                row, probe = self._drawn()
                if person is not None and quota is not None:
                    quota.count(person)
                return self._decisions.add(row, probe, counts, self._propensity(row))

    def observe(self, decision: Decision, feedback: Any) -> None:
        """What the person said to `decision`. Late and second answers change nothing, and look the same."""
        if not isinstance(decision, Decision):
            raise InvalidInput(f"Answer with what choose() returned; got {type(decision).__name__}.")
        answer = self._read(decision, feedback)
        with self._guard.lock:
            place = self._decisions.find(decision)
            if place is not None:
                self._decisions.close(place)
                self._learn(place, answer)

    def _resume(self, rounds: int = 1) -> None:
        """Give an interrupted kernel what it lacked."""
        # About how many are wanted: the fewer returns, the less threads wait for each other.
        wanted = rounds * (2 * self.slots + 2)
        self._public.resume(wanted)
        self._secret.resume(wanted)

    def _admit(self, rounds: int) -> None:  # noqa: B027  most learners may go on for ever
        """Refuse, before anything is changed, more rounds than this learner was made for."""

    def _release_due(self) -> None:  # noqa: B027  most learners publish nothing but slates
        """Publish what is due before the next round. Where it fails nothing is lost: the next round tries again."""

    def _propensity(self, row: Items) -> float | None:
        """With what probability `row` was drawn just now, where that is a public fact."""
        return None

    def row_of(self, decision: Decision) -> Items:
        """The slots of a recent decision one by one, -1 where a slot is empty."""
        return self._decisions.row(decision)

    def _drawn(self) -> tuple[Items, Items]:
        """The next slate, drawn, and its probe."""
        row, probe = self._blank.copy(), self._no_probe.copy()
        while not self._draw(row, probe):
            self._resume()
        return row, probe

    @abstractmethod
    def _draw(self, row: Items, probe: Items) -> bool:
        """Fill in the next slate; False, with nothing changed, when it must be resumed."""

    @abstractmethod
    def _read(self, decision: Decision, feedback: Any) -> Any:
        """Check feedback at the door; raise before anything is changed."""

    @abstractmethod
    def _learn(self, place: int, answer: Any) -> None:
        """Learn from the answer to the decision at that place of the desk."""

    @abstractmethod
    def _replay(self, people: People, slates: Items, done: int) -> int:
        """Play from round `done` on; returns how far it came before it must be resumed."""

    def replay(
        self,
        people: People,
        progress: Progress | None = None,
        *,
        persons: Sequence[Identity] | NDArray[Any] | None = None,
    ) -> Items:
        """Choose and observe for all of `people` at once; returns the slates, (people, slots), -1 for an empty slot.

        `persons`: who each of them is, as in `choose`. Their rounds are counted before the first of them is played.
        """
        if people.n_items != self.n_items:
            raise InvalidInput(f"The learner has {self.n_items} items, the stream {people.n_items}.")
        slates = np.full((len(people), self.slots), EMPTY_SLOT, dtype=np.int32)
        if self._visit_limit is not None:
            with self._guard.lock:
                self._admit(len(people))
                people = silenced(people, self._visit_limit.count_all(persons, len(people)))
        done = 0
        while done < len(people):
            with self._guard.lock:
                self._admit(len(people) - done)  # each time: others may have chosen meanwhile
                self._release_due()
                before = done
                with self._guard.all_or_broken():
                    done = self._replay(people, slates, done)
                    self._decisions.pass_by(slates[before:done])
                if done < len(people):
                    self._resume(len(people) - done)
            if progress:
                progress(done - before)
        return slates

    # What a snapshot holds. Coins are never in it.

    def _config(self) -> dict[str, Any]:
        return {"n_items": self.n_items, "slots": self.slots, "patience": self._decisions.patience}

    def _state(self) -> Any:
        """Arrays, and tuples of them, that make up what was learned; restored in place."""
        return ()

    def _extra(self) -> dict[str, NDArray[Any]]:
        """Arrays of no fixed size that belong to what was learned; restored by `_take_extra`."""
        return {}

    def _take_extra(self, found: dict[str, NDArray[Any]]) -> None:
        """Read what `_extra` wrote; refuse what could not have been written."""
        if found:
            raise InvalidInput("The snapshot holds more than this learner keeps; it was altered.")

    def _restored(self) -> None:
        """Called when `_state` was read from a snapshot: check it and rebuild what follows from it.

        Compiled code does not check its indices, so nothing that it uses as one is taken from a snapshot unchecked.
        """
        self._decisions.check(self.n_items)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_guard"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._guard = ProcessGuard()

    def snapshot(self) -> bytes:
        """All that was learned, without any randomness. As private as what people said."""
        with self._guard.lock:
            return self._packed()

    def _facts(self) -> dict[str, Any]:
        """What the header of a snapshot says."""
        return {"learner": self.name, "config": self._config()}

    def _arrays(self) -> _snapshots.Arrays:
        """All arrays of fixed size."""
        return _snapshots.named("desk", self._decisions.arrays) | _snapshots.named("state", self._state())

    def _packed(self) -> bytes:
        more = {f"extra.{name}": array for name, array in self._extra().items()}
        if self._visit_limit is not None:
            more |= {f"quota.{name}": array for name, array in self._visit_limit.arrays().items()}
        return _snapshots.packed({"format": _snapshots.FORMAT} | self._facts(), self._arrays() | more)

    @classmethod
    def restore(cls, snapshot: bytes, *, coins: Coins | None = None, **more: Any) -> Self:
        """A learner that goes on from `snapshot`, with fresh coins; `more`: what no snapshot holds, as a ledger."""
        header, found = _snapshots.of_learner(snapshot, cls.name)
        if header.get("ledger") and more.get("ledger") is None:
            raise InvalidInput(
                "The learner of this snapshot was paid for on a ledger: restore(snapshot, ledger=...) with the same "
                "one. Without it nobody would know what was drawn since."
            )
        try:
            learner = cls(**header["config"], coins=coins, **more)
        except (TypeError, KeyError, ValueError, OverflowError, MemoryError, AttributeError) as error:
            raise InvalidInput(f"The snapshot's configuration does not fit this learner: {error}.") from error
        extra = _snapshots.taken(found, "extra")
        if learner._visit_limit is not None:
            learner._visit_limit.take(_snapshots.taken(found, "quota"))
        _snapshots.fill(learner._arrays(), found)
        try:
            learner._take_extra(extra)
            learner._restored()
        except (TypeError, ValueError, IndexError, OverflowError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(f"The snapshot cannot be read; it was altered: {error}.") from error
        return learner
