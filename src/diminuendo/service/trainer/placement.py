"""One placement in the trainer: its learner moves from one public time to the next, and every step can be repeated.

What happens, and when: an ID block is taken; all rounds up to the end of an ID block are settled, when it has
expired, its
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from diminuendo.errors import InvalidInput
from diminuendo.learners import restore
from diminuendo.learners.base.engines import Engine
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.remote_rounds import RemoteRounds
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.sources import RandomSource
from diminuendo.service.log import Log
from diminuendo.service.menus import public_menu
from diminuendo.service.records import ItemsChanged, NoisyCount, PlacementSpec, read
from diminuendo.service.store import (
    STORED_WITHIN,
    Change,
    EventRow,
    IdBlockRow,
    PlacementRow,
    Publication,
    Store,
)
from diminuendo.service.trainer.answers import AnswerReader
from diminuendo.service.trainer.keys import Keys
from diminuendo.service.trainer.made import in_flight, made
from diminuendo.service.trainer.response_count import ResponseCount
from diminuendo.service.trainer.warm_up import WarmUps

STALE = 60.0
"""Seconds for which a front end may go on sealing to a key after there is a newer one; later answers are not read."""
REFRESHED = 3600.0
"""Seconds after which a snapshot is written though nothing was released; after a restart at once. What was erased is
not in it, and answers that are in it are deleted."""


class Clock:
    """The learner's clock: it stands still between public times, and what arrived until then is known."""

    now = 0.0

    def __call__(self) -> float:
        """The last time that the learner was moved to."""
        return self.now


class Checkpoint(msgspec.Struct, array_like=True):
    """What is encrypted with each publication: all that the next trainer goes on from."""

    learner: bytes = b""
    version: int = 0
    events: int = 0
    """The last operator's event that it knows."""
    erased: float = 0.0
    """Tombstones up to this time have been heeded."""
    keys: list[tuple[int, float]] = []
    """Keys that answers may be encrypted to, and since when each is not in the newest menu, at the latest; of
    the last two that is not known yet."""
    response_count: bytes = b""
    """How many answered, where that is published ..."""
    note: NoisyCount | None = None
    """... and what was published of it last."""


@dataclass(frozen=True)
class Parts:
    """What all populations of a trainer share."""

    store: Store
    folder: Path
    """Of keys and heads; not where the store is."""
    masters: dict[bytes, bytes] | None
    """Master keys, where private keys of keys are in the store."""
    due_at: dict[int, float]
    """By number of a placement, the time after which it is due."""
    rng: Callable[[], RandomSource | None]
    reached: Callable[[str], None]
    """Called at every point between which a trainer may be killed; for tests."""
    log: Log
    warm_ups: WarmUps
    written: Callable[[], float]
    """A time that is written down, before which nothing is written later."""
    engine: Engine | None = None
    """Where users are kept whom learners keep; None: in this process."""


class Placement:
    """The learner of one placement, on the ledger of its population."""

    def __init__(
        self, row: PlacementRow, parts: Parts, fencing_token: int, keys: Keys, ledger: Ledger
    ) -> None:
        self.number, self._name, self._made_at = row.number, row.name, row.made_at
        self._population, self._parts, self._store = row.population, parts, parts.store
        self._fencing_token, self._keys, self._ledger, self._reached = (
            fencing_token,
            keys,
            ledger,
            parts.reached,
        )
        self.spec = msgspec.json.decode(row.spec, type=PlacementSpec)
        self._reader, self._clock = AnswerReader(row.number, self.spec, keys), Clock()
        rng = parts.rng()
        self._kept, encrypted = Checkpoint(), self._store.snapshot(row.number)
        if encrypted is None:
            self.learner: Learner = made(self.spec, ledger, self._clock, rng, parts.engine)
        else:
            plain = zlib.decompress(keys.open_snapshot(row.number, encrypted))
            self._kept = msgspec.msgpack.decode(plain, type=Checkpoint)
            self.learner = restore(
                self._kept.learner, ledger=ledger, rng=rng, clock=self._clock, engine=parts.engine
            )
        self._door, self._response_count = RemoteRounds(self.learner), ResponseCount(self.spec, ledger)
        self._response_count.restore(self._kept.response_count)
        self._waits = deque[IdBlockRow]()  # ID blocks that are registered and not settled
        self._id_blocks, self._events = (
            deque[IdBlockRow](),
            deque[EventRow](),
        )  # what was read, and is to be followed
        self._known, self._until = 0, 0.0  # rounds that are in the snapshot; and until when all is known
        self._past = self._settles = self._refreshed = 0.0
        self._published = 0.0  # when the last menu was there, at the latest; 0: it was another trainer's
        self.missed_deadlines = 0
        """How often a menu was ready after its time: who looks at the clock may learn something from that."""

    @property
    def version(self) -> int:
        """Of the last menu that was published; 0 where there is none."""
        return self._kept.version

    @property
    def moment(self) -> float:
        """When something is to be done next, should nothing be reserved or changed before; infinity: nothing."""
        return self._moment(self._waits[0]) if self._waits else math.inf

    def knows(self, change: Change) -> bool:
        """Whether that is no news."""
        return change.reserved <= self.learner.rounds and change.event <= self._kept.events

    # Everything that has happened by now, one thing after the other in the order of time. What several placements of a
    # population write into its ledger is in that order as well: else it would tell when the trainer got to which.

    def look(self, until: float | None = None) -> None:
        """Read what has happened. `until`: a time that was written down; unless given, one is, where it is needed."""
        if self._kept.version and self.learner.due():  # before a crash, and without anything else happening
            self._release(self._store.now())
        self._id_blocks, self._until = self._known_by_now(until)
        self._events = deque(self._store.events(self.number, self._kept.events))
        self._known = self.learner.rounds

    def _known_by_now(self, until: float | None) -> tuple[deque[IdBlockRow], float]:
        """ID blocks that are not registered yet, and the time up to which all is known of all of them.

        Where something is settled by now, a time is written down first, before which nothing is written later; then all
        ID blocks are read, those that wait once more: what became of them was said after they were taken.
        """
        now = (
            self._store.now() if until is None else until
        )  # what is settled a moment later is for the next time
        if not self._waits or self._moment(self._waits[0]) >= now:
            first = self._waits[-1].end if self._waits else self._door.closed
            id_blocks = deque(self._store.id_blocks(self.number, first))
            if self._waits or not id_blocks:
                return id_blocks, now
        first = self._waits[0].first if self._waits else id_blocks[0].first
        now = self._parts.written() if until is None else until
        result, many = self._store.id_blocks(self.number, first), len(self._waits)
        self._waits = deque(result[:many])
        return deque(result[many:]), now

    def _moment(self, id_block: IdBlockRow) -> float:
        """When all rounds up to the end of that ID block, which is the oldest, are settled."""
        return max(self._settles, self._deadline(id_block) + STORED_WITHIN)

    def _deadline(self, id_block: IdBlockRow) -> float:
        """Answers to its rounds count that arrived by then."""
        return id_block.expires_at + self.spec.deadline

    def _times(self) -> tuple[float, float, float]:
        """When the next ID block was taken, the next rounds are settled, an operator did something next."""
        return (
            self._id_blocks[0].at if self._id_blocks else math.inf,
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
            self._parts.warm_ups.once(self.spec, self._reader)
        elif at < min(taken, settles):
            self._change(self._events.popleft())
        else:
            if at < taken:
                self._settle(at)
            elif (id_block := self._id_blocks.popleft()).first < self._known:  # it is in the snapshot already
                self._waits.append(id_block)
            else:
                self._register(id_block)
            self._release(at)
            self._allow(at)

    def _register(self, id_block: IdBlockRow) -> None:
        if id_block.first != self.learner.rounds:
            raise InvalidInput(
                f"ID blocks have a gap before round {id_block.first}; {self.learner.rounds} are known."
            )
        self._door.chosen(id_block.end - id_block.first, at=id_block.expires_at)
        self._waits.append(id_block)

    def _settle(self, at: float) -> None:
        """Take in all rounds that are settled at that time, and then move the learner's clock past their deadlines."""
        known = 0.0
        while self._waits and self._deadline(self._waits[0]) + STORED_WITHIN <= at:
            known = max(known, self._deadline(self._waits[0]))
            self._take_in(self._waits.popleft())
        # An answer at the very deadline counts, so the learner settles its round only after that moment.
        self._settles, self._clock.now = at, max(self._clock.now, math.nextafter(known, math.inf))

    def _take_in(self, id_block: IdBlockRow) -> None:
        """All that is known of an ID block whose deadline has passed: who came, and what was said in time."""
        deadline, many = self._deadline(id_block), id_block.end - id_block.first
        report, counts = id_block.report, np.ones(many, dtype=np.bool_)
        types = np.full(many, -1)
        if report is not None and (id_block.reported_at or 0.0) <= deadline:
            counts[min(many, max(0, report.used)) :] = False
            counts[
                [each - id_block.first for each in report.silent if id_block.first <= each < id_block.end]
            ] = False
            known = [type_ if 0 <= type_ < 2**31 else -1 for type_ in report.types[:many]]
            types[: len(known)] = known
        self._door.record_arrivals(id_block.first, counts, types)
        rows = self._store.answers(self.number, id_block.first, id_block.end)
        answers = self._reader.read(row for row in rows if row.at <= deadline)
        self._reached("answers read")
        self._door.answered(*answers)
        numbers = np.array(answers.rounds, dtype=np.int64)
        self._response_count.add(numbers[counts[numbers - id_block.first]])
        self._reached("learned")

    def _release(self, at: float) -> None:
        """Publish what is due at that time; or, now and then, a snapshot alone."""
        response_count = self._response_count.published(self._door.closed, self.learner.policy.frame.secret)
        self._kept.note = response_count or self._kept.note
        if self.learner.due():
            self._erase(at)
            self._reached("due")
            self.learner.release()
            self._reached("drawn")
            self._publish(at)
        elif response_count is not None or at >= self._refreshed + REFRESHED:
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
        handed_out = self._store.stop_id_blocks(
            self._fencing_token, self.number
        )  # also by menus that came after the event
        self._reached("ID blocks stopped")
        while self._id_blocks:
            self._register(self._id_blocks.popleft())
        if handed_out > self.learner.rounds:  # by such a menu, where that was too late for it
            for id_block in self._store.id_blocks(self.number, self.learner.rounds):
                self._register(id_block)
        if event.kind == "items":
            numbers = {name: item for item, name in enumerate(self.spec.items)}
            change = read(ItemsChanged, event.body) or ItemsChanged()
            with suppress(InvalidInput):  # of a learner whose items are always the same
                self.learner.appear([numbers[name] for name in change.appear if name in numbers])
                self.learner.retire([numbers[name] for name in change.retire if name in numbers])
        self._kept.events = event.seq
        self._reached("changed")
        self._erase(event.at)
        self.learner.release()
        self._publish(event.at)

    # Publishing.

    def _publish(self, at: float) -> None:
        """Menu, limits, snapshot and deletions at once, for what happened at that time."""
        learner, settled, version = self.learner, self._door.closed, self._kept.version + 1
        key = self._keys.new(self.number)
        self._reached("key made")
        there = self._published or self._store.now()
        kept = [(number, min(since, there)) for number, since in self._kept.keys[:-1]]
        kept = [*(each for each in kept if each[1] >= self._oldest(at)), *self._kept.keys[-1:]]
        self._kept.keys = [*kept, (key.number, math.inf)]  # the last one is in use until this menu is there
        self._kept.version, self._kept.learner = version, learner.snapshot()
        self._kept.response_count = self._response_count.snapshot()
        encrypted = self._keys.encrypt_snapshot(
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
            response_count=self._kept.note,
            seal=str(key),
        )
        self._past = self._limit()
        publication = Publication(
            self.number, msgspec.json.encode(menu), version, menu.first, menu.end, int(self._past),
            self._planned(at), encrypted, settled, self.spec.publish_interval,
        )  # fmt: skip
        self._keys.note(self._population, menu.head, self._fencing_token)
        self._reached("encrypted")
        before = self._keys.of(self.number)  # none of a later leader is among them
        effective = self._store.publish(self._fencing_token, publication)
        self.missed_deadlines += effective > publication.effective_at
        self._published = self._store.now()
        self._reached("published")
        self._refreshed, self._kept.learner = at, b""
        self._keys.drop(self.number, *(before - {number for number, _ in self._kept.keys}))
        self._reached("keys dropped")

    def _oldest(self, at: float) -> float:
        """Answers that are not read yet were encrypted after this: to rounds that wait, or were reserved after
        that time."""
        waits = self._waits or self._store.id_blocks(self.number, self._door.closed)
        return min(at, waits[0].at if waits else at) - STALE

    def _planned(self, at: float) -> float:
        """When that is seen which follows from what happened at that time: a function of public facts."""
        return (
            math.ceil((at + self.spec.publish_delay) / self.spec.publish_interval)
            * self.spec.publish_interval
        )

    def _effective(self, at: float) -> float:
        """The same; where that is over, the next tick."""
        return max(
            self._planned(at),
            math.ceil(self._store.now() / self.spec.publish_interval) * self.spec.publish_interval,
        )

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
            self._store.allow(self._fencing_token, self.number, limit, self._effective(at))
            self._past = limit
