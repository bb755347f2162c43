"""One placement in the trainer: its learner moves from one public time to the next, and every step can be repeated.

What happens, and when: a lease is taken; all rounds up to the end of a lease are settled, when it has expired, its
deadline has passed, and all that arrived by then is stored; something is due and is released. The learner is moved to
each of these times in order, by what the store says of them, however late the trainer looks. So which answers count for
which release does not depend on when the trainer runs, nor on how often it was killed: after a crash it begins with the
last snapshot, does the same again, and finds what was drawn under its name.

Whatever follows from it is seen, by anybody, at the first whole tick after the allowance from that time on: menus, more
rounds that may be handed out, and with a menu what was paid, released and heard (store/__init__.py).
"""

from __future__ import annotations

import math
import zlib
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

import msgspec
import numpy as np

from diminuendo.errors import InvalidInput
from diminuendo.learners import restore
from diminuendo.learners.base.engines import Engine
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.remote_rounds import RemoteRounds
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.sources import RandomSource
from diminuendo.service.menus import public_menu
from diminuendo.service.records import HeardNote, ItemsChanged, PlacementSpec, read
from diminuendo.service.store import (
    STORED_WITHIN,
    Change,
    EventRow,
    LeaseRow,
    PlacementRow,
    Publication,
    Store,
)
from diminuendo.service.trainer.answers import AnswerReader
from diminuendo.service.trainer.heard import Heard
from diminuendo.service.trainer.keys import Keys
from diminuendo.service.trainer.made import in_flight, made
from diminuendo.service.trainer.rehearsal import Rehearsals

STALE = 60.0
"""Seconds for which a front end may go on sealing to a key after there is a newer one; later answers are not read."""
REFRESHED = 3600.0
"""Seconds after which a snapshot is written though nothing was released; after a restart at once. What was erased is
not in it, and answers that are in it are deleted."""


class Marks(Protocol):
    """Is told of every point between which a trainer may be killed; for tests."""

    def reached(self, point: str) -> None:
        """This point was reached."""


class NoMarks:
    """Nobody looks."""

    def reached(self, point: str) -> None:
        """Go on."""


class Clock:
    """The learner's clock: it stands still between public times, and what arrived until then is known."""

    now = 0.0

    def __call__(self) -> float:
        """The last time that the learner was moved to."""
        return self.now


class Kept(msgspec.Struct, array_like=True):
    """What is sealed with each publication: all that the next trainer goes on from."""

    learner: bytes = b""
    version: int = 0
    events: int = 0
    """The last operator's event that it knows."""
    erased: float = 0.0
    """Tombstones up to this time have been heeded."""
    keys: list[tuple[int, float]] = []
    """Keys that answers may be sealed to, and since when each is not in the newest menu, at the latest; of the last two
    that is not known yet."""
    heard: bytes = b""
    """How many answered, where that is published ..."""
    note: HeardNote | None = None
    """... and what was published of it last."""


class Placement:
    """The learner of one placement, on the ledger of its population."""

    def __init__(
        self,
        row: PlacementRow,
        store: Store,
        epoch: int,
        keys: Keys,
        ledger: Ledger,
        marks: Marks,
        rng: RandomSource | None = None,
        written: Callable[[], float] | None = None,
        rehearsals: Rehearsals | None = None,
        engine: Engine | None = None,
    ) -> None:
        """`written`: a time that is written down, before which nothing is written later. `engine`: where users are
        kept whom the learner keeps."""
        self._rehearsals = rehearsals or Rehearsals()
        self.number, self._name, self._made_at = row.number, row.name, row.made_at
        self._population = row.population
        self._written = written or partial(store.beat, f"placement {row.name}")
        self._store, self._epoch, self._keys, self._ledger, self._marks = store, epoch, keys, ledger, marks
        self.spec = msgspec.json.decode(row.spec, type=PlacementSpec)
        self._reader, self._clock = AnswerReader(row.number, self.spec, keys), Clock()
        self._kept, sealed = Kept(), store.snapshot(row.number)
        if sealed is None:
            self.learner: Learner = made(self.spec, ledger, self._clock, rng, engine)
        else:
            plain = zlib.decompress(keys.open_snapshot(row.number, sealed))
            self._kept = msgspec.msgpack.decode(plain, type=Kept)
            self.learner = restore(
                self._kept.learner, ledger=ledger, rng=rng, clock=self._clock, engine=engine
            )
        self._door, self._heard = RemoteRounds(self.learner), Heard(self.spec, ledger)
        self._heard.restore(self._kept.heard)
        self._waits = deque[LeaseRow]()  # leases that are registered and not settled
        self._leases, self._events = (
            deque[LeaseRow](),
            deque[EventRow](),
        )  # what was read, and is to be followed
        self._known, self._until = 0, 0.0  # rounds that are in the snapshot; and until when all is known
        self._past = self._settles = self._refreshed = 0.0
        self._published = 0.0  # when the last menu was there, at the latest; 0: it was another trainer's
        self.overruns = 0
        """How often a menu was ready after its time: who looks at the clock may learn something from that."""

    @property
    def version(self) -> int:
        """Of the last menu that was published; 0 where there is none."""
        return self._kept.version

    @property
    def moment(self) -> float:
        """When something is to be done next, should nothing be leased or changed before; infinity: nothing."""
        return self._moment(self._waits[0]) if self._waits else math.inf

    def knows(self, change: Change) -> bool:
        """Whether that is no news."""
        return change.leased <= self.learner.rounds and change.event <= self._kept.events

    # Everything that has happened by now, one thing after the other in the order of time. What several placements of a
    # population write into its ledger is in that order as well: else it would tell when the trainer got to which.

    def look(self, until: float | None = None) -> None:
        """Read what has happened. `until`: a time that was written down; unless given, one is, where it is needed."""
        if self._kept.version and self.learner.due():  # before a crash, and without anything else happening
            self._release(self._store.now())
        self._leases, self._until = self._known_by_now(until)
        self._events = deque(self._store.events(self.number, self._kept.events))
        self._known = self.learner.rounds

    def _known_by_now(self, until: float | None) -> tuple[deque[LeaseRow], float]:
        """Leases that are not registered yet, and the time up to which all is known of all of them.

        Where something is settled by now, a time is written down first, before which nothing is written later; then all
        leases are read, those that wait once more: what became of them was said after they were taken.
        """
        now = (
            self._store.now() if until is None else until
        )  # what is settled a moment later is for the next time
        if not self._waits or self._moment(self._waits[0]) >= now:
            first = self._waits[-1].end if self._waits else self._door.closed
            leases = deque(self._store.leases(self.number, first))
            if self._waits or not leases:
                return leases, now
        first = self._waits[0].first if self._waits else leases[0].first
        now = self._written() if until is None else until
        result, many = self._store.leases(self.number, first), len(self._waits)
        self._waits = deque(result[:many])
        return deque(result[many:]), now

    def _moment(self, lease: LeaseRow) -> float:
        """When all rounds up to the end of that lease, which is the oldest, are settled."""
        return max(self._settles, self._deadline(lease) + STORED_WITHIN)

    def _deadline(self, lease: LeaseRow) -> float:
        """Answers to its rounds count that arrived by then."""
        return lease.expires_at + self.spec.deadline

    def _times(self) -> tuple[float, float, float]:
        """When the next lease was taken, the next rounds are settled, an operator did something next."""
        return (
            self._leases[0].at if self._leases else math.inf,
            self._moment(self._waits[0]) if self._waits else math.inf,
            self._events[0].at if self._events else math.inf,
        )

    @property
    def next(self) -> float:
        """When that happened which is to be followed next; infinity: nothing, of all that is known."""
        if not self._kept.version:
            return self._made_at
        at = min(self._times())
        return at if at < self._until else math.inf

    def follow(self) -> None:
        """Do what follows from what happened next."""
        at, (taken, settles, _) = self.next, self._times()
        if not self._kept.version:
            self.learner.release()
            self._publish(at)
            self._rehearsals.once(self.spec, self._reader)
        elif at < min(taken, settles):
            self._change(self._events.popleft())
        else:
            if at < taken:
                self._settle(at)
            elif (lease := self._leases.popleft()).first < self._known:  # it is in the snapshot already
                self._waits.append(lease)
            else:
                self._register(lease)
            self._release(at)
            self._allow(at)

    def _register(self, lease: LeaseRow) -> None:
        if lease.first != self.learner.rounds:
            raise InvalidInput(
                f"Leases have a gap before round {lease.first}; {self.learner.rounds} are known."
            )
        self._door.chosen(lease.end - lease.first, at=lease.expires_at)
        self._waits.append(lease)

    def _settle(self, at: float) -> None:
        """Take in all rounds that are settled at that time, and then move the learner's clock past their deadlines."""
        known = 0.0
        while self._waits and self._deadline(self._waits[0]) + STORED_WITHIN <= at:
            known = max(known, self._deadline(self._waits[0]))
            self._take_in(self._waits.popleft())
        # An answer at the very deadline counts, so the learner settles its round only after that moment.
        self._settles, self._clock.now = at, max(self._clock.now, math.nextafter(known, math.inf))

    def _take_in(self, lease: LeaseRow) -> None:
        """All that is known of a lease whose deadline has passed: who came, and what was said in time."""
        deadline, many = self._deadline(lease), lease.end - lease.first
        report, counts = lease.report, np.ones(many, dtype=np.bool_)
        types = np.full(many, -1)
        if report is not None and (lease.reported_at or 0.0) <= deadline:
            counts[min(many, max(0, report.used)) :] = False
            counts[[each - lease.first for each in report.silent if lease.first <= each < lease.end]] = False
            known = [type_ if 0 <= type_ < 2**31 else -1 for type_ in report.types[:many]]
            types[: len(known)] = known
        self._door.record_arrivals(lease.first, counts, types)
        rows = self._store.answers(self.number, lease.first, lease.end)
        answers = self._reader.read(row for row in rows if row.at <= deadline)
        self._marks.reached("answers read")
        self._door.answered(*answers)
        numbers = np.array(answers.rounds, dtype=np.int64)
        self._heard.add(numbers[counts[numbers - lease.first]])
        self._marks.reached("learned")

    def _release(self, at: float) -> None:
        """Publish what is due at that time; or, now and then, a snapshot alone."""
        heard = self._heard.published(self._door.closed, self.learner.policy.frame.secret)
        self._kept.note = heard or self._kept.note
        if self.learner.due():
            self._erase(at)
            self._marks.reached("due")
            self.learner.release()
            self._marks.reached("drawn")
            self._publish(at)
        elif heard is not None or at >= self._refreshed + REFRESHED:
            self._erase(at)
            self._publish(at)

    def _erase(self, at: float) -> None:
        """Who asked for it before that time is in no later release; nothing that was added up is taken off."""
        gone = self._store.erased(self.number, 0, self._door.closed)
        new = [number for number, since in gone if self._kept.erased < since <= at]
        if new:
            self._door.erase(new)
        self._kept.erased = max(at, self._kept.erased)

    # What operators do.

    def _change(self, event: EventRow) -> None:
        """Items appear or retire, after all rounds that were handed out; since then none is."""
        handed_out = self._store.stop_leases(
            self._epoch, self.number
        )  # also by menus that came after the event
        self._marks.reached("leases stopped")
        while self._leases:
            self._register(self._leases.popleft())
        if handed_out > self.learner.rounds:  # by such a menu, where that was too late for it
            for lease in self._store.leases(self.number, self.learner.rounds):
                self._register(lease)
        if event.kind == "items":
            numbers = {name: item for item, name in enumerate(self.spec.items)}
            change = read(ItemsChanged, event.body) or ItemsChanged()
            with suppress(InvalidInput):  # of a learner whose items are always the same
                self.learner.appear([numbers[name] for name in change.appear if name in numbers])
                self.learner.retire([numbers[name] for name in change.retire if name in numbers])
        self._kept.events = event.seq
        self._marks.reached("changed")
        self._erase(event.at)
        self.learner.release()
        self._publish(event.at)

    # Publishing.

    def _publish(self, at: float) -> None:
        """Menu, limits, snapshot and deletions at once, for what happened at that time."""
        learner, settled, version = self.learner, self._door.closed, self._kept.version + 1
        key = self._keys.new(self.number)
        self._marks.reached("key made")
        there = self._published or self._store.now()
        kept = [(number, min(since, there)) for number, since in self._kept.keys[:-1]]
        kept = [*(each for each in kept if each[1] >= self._oldest(at)), *self._kept.keys[-1:]]
        self._kept.keys = [*kept, (key.number, math.inf)]  # the last one is in use until this menu is there
        self._kept.version, self._kept.learner = version, learner.snapshot()
        self._kept.heard = self._heard.snapshot()
        sealed = self._keys.seal_snapshot(
            self.number, key, zlib.compress(msgspec.msgpack.encode(self._kept), level=1)
        )
        mine = sum(f"@{self._name}." in each.name for each in self._ledger.drawn)
        spent = self._ledger.spent(), self._ledger.budget.epsilon
        menu = public_menu(
            learner,
            version,
            releases=mine,
            head=self._ledger.head,
            spent=spent,
            heard=self._kept.note,
            seal=str(key),
        )
        self._past = self._limit()
        publication = Publication(
            self.number, msgspec.json.encode(menu), version, menu.first, menu.end, int(self._past),
            self._planned(at), sealed, settled, self.spec.tick,
        )  # fmt: skip
        self._keys.note(self._population, menu.head, self._epoch)
        self._marks.reached("sealed")
        before = self._keys.of(self.number)  # of whoever leads after this trainer none is among them
        effective = self._store.publish(self._epoch, publication)
        self.overruns += effective > publication.effective_at
        self._published = self._store.now()
        self._marks.reached("published")
        self._refreshed, self._kept.learner = at, b""
        self._keys.drop(self.number, *(before - {number for number, _ in self._kept.keys}))
        self._marks.reached("keys dropped")

    def _oldest(self, at: float) -> float:
        """Answers that are not read yet were sealed after this: to rounds that wait, or were leased after that time."""
        waits = self._waits or self._store.leases(self.number, self._door.closed)
        return min(at, waits[0].at if waits else at) - STALE

    def _planned(self, at: float) -> float:
        """When that is seen which follows from what happened at that time: a function of public facts."""
        return math.ceil((at + self.spec.allowance) / self.spec.tick) * self.spec.tick

    def _effective(self, at: float) -> float:
        """The same; where that is over, the next tick."""
        return max(self._planned(at), math.ceil(self._store.now() / self.spec.tick) * self.spec.tick)

    def _limit(self) -> int:
        """No round from this one on may be handed out: by the menu, the horizon, and what memory was made for."""
        menu: Any = self.learner.menu
        ends = (self._door.closed + in_flight(self.spec), menu.end, self.learner.horizon)
        return min(end for end in ends if end is not None)

    def _allow(self, at: float) -> None:
        """Let more rounds be handed out, since others were settled at that time."""
        menu: Any = self.learner.menu
        limit, last = (
            self._limit(),
            min(end for end in (menu.end, self.learner.horizon, math.inf) if end is not None),
        )
        if limit >= self._past + max(1, in_flight(self.spec) // 8) or self._past < limit == last:
            self._store.allow(self._epoch, self.number, limit, self._effective(at))
            self._past = limit
