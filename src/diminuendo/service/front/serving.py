"""Serving: decisions out, answers in. What is public it knows, and what is said passes through encrypted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from random import SystemRandom
from typing import Any

import msgspec

from diminuendo.errors import StoreUnavailable
from diminuendo.service.front.backfill import Excluded
from diminuendo.service.front.choose import FEW, Chooser, Slate
from diminuendo.service.front.id_blocks import TIMEOUT
from diminuendo.service.front.names import Names
from diminuendo.service.front.placement import Placement
from diminuendo.service.front.tokens import NO_ROUND, Tokens
from diminuendo.service.front.writer import Writer
from diminuendo.service.records import Said, Shown
from diminuendo.service.store import NO_PLACEMENT, AnswerRow, UserRound, reasons

PADDED = 128
"""Bytes: what is encrypted is as long as a multiple of this. Less than 256, so that one byte says how much is added."""


class Decision(msgspec.Struct, frozen=True):
    """One decision, as the shop receives it."""

    slate: msgspec.Raw
    """The shop's names of the items, by slot."""
    propensity: float | None
    token: str
    expires_at: str


_system = SystemRandom()


def in_sample(one_in: int) -> bool:
    """A public coin, thrown for a decision before anything else of it happens: whether it has a round.

    It is fresh for every request, and depends on nothing: not on who asks, nor on what she is or said before.
    """
    return one_in == 1 or _system.randrange(one_in) == 0


class NotReady(Exception):
    """There is no menu yet: the trainer has not made one."""


class Serving:
    """Decides for users and takes what they say."""

    def __init__(self, tokens: Tokens, names: Names, writer: Writer) -> None:
        self._tokens, self._names, self.writer = tokens, names, writer
        self.placements: dict[int, Placement] = {}
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="exclusions")

    async def decide(
        self, place: Placement, type_: int, excluded: Collection[int], wanted: int = 1
    ) -> Decision:
        """For a user without a name. No call of the store, but for one ID block in hundreds of decisions."""
        if not in_sample(place.spec.sample):
            return await self._outside(place, type_, excluded)
        taken = place.rounds.current() or await place.rounds.wait(wanted)
        if taken is None:
            return await self._fallback(place, type_, excluded)
        number, chooser = taken.take(type_), taken.chooser
        place.decisions += 1
        slate = await self._slate(chooser, chooser.slate, number, type_, excluded)
        shown = Shown(place.number, number, chooser.menu.version, True, slate, type_)
        chance = taken.bag.chance(number, type_)
        return Decision(chooser.written(slate), chance, self._tokens.seal(shown), taken.feedback_until)

    async def decide_for(
        self, place: Placement, user_id: str, key: str, type_: int, excluded: Collection[int]
    ) -> Decision:
        """For a user with a name: the round is counted, durably, before a slate is returned. If the store does not do
        that soon, the user is shown a fallback slate, since the store may wait much longer for a dead connection.

        A request that is repeated with its key gets its earlier round, with the deadline that it had, and the new round
        is shown to no user. If that deadline is not known here, the user is shown a fallback slate. With a public
        sample a repeated request is sampled anew; if it is outside this time, the earlier round has no response.
        """
        if not in_sample(place.spec.sample):
            return await self._outside(place, type_, excluded)
        taken = place.rounds.current() or await place.rounds.wait()
        if taken is None:
            return await self._fallback(place, type_, excluded)
        number, chooser = taken.take(type_), taken.chooser
        chance = taken.bag.chance(number, type_)
        visit = UserRound(
            place.number,
            self._names.of(user_id),
            place.spec.max_rounds_per_user,
            number,
            self._names.request(key),
        )
        taken.waiting += 1
        try:
            async with asyncio.timeout(TIMEOUT):
                (counted,) = await self.writer.keep((), (visit,))
        except (
            StoreUnavailable,
            TimeoutError,
        ):  # the round may be counted, and get a response yet: it is not silent
            return await self._fallback(place, type_, excluded)
        finally:
            taken.waiting -= 1
        if counted.round != number or not counted.counts:
            taken.silence(number)
        until = taken.feedback_until
        if counted.round != number:
            before, deadline = place.covering(counted.round), place.rounds.feedback_until(counted.round)
            if before is None or deadline is None:
                return await self._fallback(place, type_, excluded)
            chooser, chance, until = before, None, deadline
        place.decisions += 1
        slate = await self._slate(chooser, chooser.slate, counted.round, type_, excluded)
        shown = Shown(place.number, counted.round, chooser.menu.version, counted.counts, slate, type_)
        return Decision(chooser.written(slate), chance, self._tokens.seal(shown), until)

    async def _fallback(self, place: Placement, type_: int, excluded: Collection[int]) -> Decision:
        """If no round is left: the leading slate, with a token that counts for nothing."""
        chooser = self._chooser(place)
        place.fallbacks += 1
        slate = await self._slate(chooser, chooser.fallback, type_, excluded)
        return self._without_a_round(place, chooser, slate, type_, None)

    async def _outside(self, place: Placement, type_: int, excluded: Collection[int]) -> Decision:
        """Outside of the public sample: by the menu that is in effect, with a token that counts for nothing."""
        chooser = self._chooser(place)
        place.outside += 1
        slate = await self._slate(chooser, chooser.outside, type_, excluded)
        return self._without_a_round(place, chooser, slate, type_, chooser.certain())

    def _chooser(self, place: Placement) -> Chooser:
        if (chooser := place.fallback()) is None:
            raise NotReady
        return chooser

    async def _slate(self, chooser: Chooser, choose: Callable[..., Slate], *given: Any) -> Slate:
        """A slate without what is excluded; found beside the loop where that may take a while, so that no feedback
        waits for it and is late. In one thread: there is at most one that takes turns with the loop."""
        if not chooser.takes_long(given[-1]):
            return choose(*given)
        return await asyncio.get_running_loop().run_in_executor(self._beside, choose, *given)

    async def excluded(self, place: Placement, names: Any) -> Excluded:
        """What a request excludes; read beside the loop where it is much."""
        if not isinstance(names, list) or len(names) <= FEW:
            return place.excluded(names)
        return await asyncio.get_running_loop().run_in_executor(self._beside, place.excluded, names)

    def close(self) -> None:
        """No more of that."""
        self._beside.shutdown(wait=False, cancel_futures=True)

    def _without_a_round(
        self, place: Placement, chooser: Chooser, slate: Slate, type_: int, chance: float | None
    ) -> Decision:
        place.decisions += 1
        shown = Shown(place.number, NO_ROUND, chooser.menu.version, False, slate, type_)
        until = datetime.fromtimestamp(time.time() + place.spec.deadline, UTC).isoformat(
            timespec="milliseconds"
        )
        return Decision(chooser.written(slate), chance, self._tokens.seal(shown), until)

    def shown(self, token: str) -> tuple[Placement, Shown]:
        """What a token is about; refused before anything is looked up, unless a key of ours encrypted it.
        Where one did,
        another front end may know a placement that this one has not seen yet: the client tries again."""
        shown = self._tokens.open(token)
        place = self.placements.get(shown.placement)
        if place is None:
            raise StoreUnavailable(
                "The placement that showed this is not known here yet.", reasons.NO_PLACEMENT
            )
        return place, shown

    def row(self, place: Placement, said: Said, arrived: float) -> list[AnswerRow]:
        """An answer, encrypted, to be kept; one of no placement where it counts for nothing: the store writes
        as much, so that how long it takes tells nothing."""
        shown = said.shown
        if not (place.ready and place.fresh) and not shown.counts and place.before is not None:
            place = (
                place.before
            )  # a fallback slate's of before there was a menu: it is encrypted as others are, and not kept
        if not (place.ready and place.fresh):
            raise StoreUnavailable("There is no key to seal answers to.", reasons.NO_KEY)
        encrypted = place.encrypted(padded(said))
        number = place.number if shown.counts else NO_PLACEMENT
        return [AnswerRow(number, max(0, shown.round), encrypted, arrived)]

    def user_id(self, name: str) -> bytes:
        """What stands for a user in the store."""
        return self._names.of(name)


def padded(said: Said) -> bytes:
    """An answer as it is encrypted: as long as many others, whatever it says. The padding is its last field."""
    plain = msgspec.msgpack.encode(said)
    assert plain[-2:] == b"\xc4\x00"  # no bytes so far
    missing = -len(plain) % PADDED
    return plain[:-1] + bytes([missing]) + bytes(missing)
