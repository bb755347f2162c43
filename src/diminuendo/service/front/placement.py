"""What a front end knows of one placement: facts, menus and rounds; all of it public."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import Executor
from threading import Lock
from typing import Any

import msgspec

from diminuendo.service.front.backfill import Excluded
from diminuendo.service.front.choose import Chooser
from diminuendo.service.front.contexts import Types
from diminuendo.service.front.id_blocks import Rounds
from diminuendo.service.records import PlacementSpec, PublicMenu
from diminuendo.service.seal import Sealer
from diminuendo.service.store import IdBlock, MenuRow, PlacementRow, Store

KEPT = 4
"""Menus that are kept of those in effect, the last ones: for ID blocks that are still out, and for requests
that are sent again. Those to come are kept as well, and push out none."""
KNOWN_BY = 1.0
"""Seconds after which every front end has looked for menus: before that, a menu in effect is not shown but by
ID blocks, else who sees two front ends would see how shortly before its time it was published."""

FRESH = 30.0
"""Seconds after a look for menus for which answers are encrypted to the key that it found. Trainers keep a key
for longer
after there is a newer one (`STALE`, trainer/placement.py); a front end that was held up looks again before it seals."""


class Placement:
    """One placement at one front end. `refresh` may block; everything else is memory alone."""

    def __init__(
        self,
        store: Store,
        row: PlacementRow,
        pool: Executor,
        clock: Callable[[], float],
        failed: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        """`clock`: what the store's clock says, or a little less. `failed`: told of ID blocks that could not be had."""
        self.number, self.name, self.row = row.number, row.name, row
        self.spec = msgspec.json.decode(row.spec, type=PlacementSpec)
        self.items = {name: number for number, name in enumerate(self.spec.items)}
        self.types = Types(self.spec.contexts, self.spec.private_contexts)
        self.went_back = False
        """Whether the store was seen in an older state than before: it was restored, and nothing of it is shown."""
        self.before: Placement | None = None
        """The closed placement in whose place this one is: its last menu is shown until this one has its own."""
        self.decisions = self.fallbacks = self.outside = 0
        """How many there were; without a round that could be had; and outside of the public sample."""
        self._store, self._clock, self._lock = store, clock, Lock()
        self._menus: list[tuple[MenuRow, Chooser]] = []
        self._sealer: tuple[str, Sealer] | None = None
        self._highest, self._looked = 0, -math.inf
        types = bool(self.types) and not self.spec.private_contexts
        self.rounds = Rounds(store, row.number, self.spec.deadline, types, self._find, pool, failed)

    def refresh(self) -> None:
        """Look for new menus."""
        with self._lock:
            began = time.monotonic()
            for row in self._store.menus(self.number, self.version):
                menu = msgspec.json.decode(row.body, type=PublicMenu)
                if menu.seal and (self._sealer is None or self._sealer[0] != menu.seal):
                    number, key = menu.seal.split(":")
                    self._sealer = menu.seal, Sealer(bytes.fromhex(key), int(number))
                chooser = Chooser(menu, self.spec.items, self.spec.hidden, self.spec.sample > 1)
                self._menus = [*self._menus, (row, chooser)]
                old = [each for each in self._menus if each[0].effective_at <= self._clock()][:-KEPT]
                self._menus = self._menus[len(old) :]
            self._looked = began

    def looked(self, version: int, at: float) -> None:
        """The menus of all placements were read at that time: the last one here is of that version, if it
        could be new."""
        if version > self.version:
            self.refresh()
        else:
            self._looked = max(self._looked, at)

    @property
    def version(self) -> int:
        """Of the last menu that is known; 0 where there is none."""
        return self._menus[-1][0].version if self._menus else 0

    @property
    def ready(self) -> bool:
        """Whether there is something to show, and a key to seal answers to."""
        return bool(self._menus) and self._sealer is not None and not self.went_back

    @property
    def fresh(self) -> bool:
        """Whether the trainer surely still has the key that answers are encrypted to."""
        return time.monotonic() < self._looked + FRESH

    def in_effect(self) -> tuple[MenuRow, Chooser] | None:
        """The menu that is shown now. One that takes effect later is confidential: it tells how long the
        release took."""
        now = self._clock()
        effective = [each for each in self._menus if each[0].effective_at <= now]
        known = [each for each in effective if each[0].effective_at <= now - KNOWN_BY]
        return known[-1] if known else effective[0] if effective else None

    def fallback(self) -> Chooser | None:
        """What fallback slates are shown by."""
        result = self.in_effect()
        if result is None and self.before is not None:
            return self.before.fallback()
        return None if result is None else result[1]

    def covering(self, number: int) -> Chooser | None:
        """The latest menu in effect that has that round; None where it is not kept any more."""
        now = self._clock()
        for row, chooser in reversed(self._menus):
            end = chooser.menu.end
            if row.effective_at <= now and chooser.menu.first <= number and (end is None or number < end):
                return chooser
        return None

    def encrypted(self, said: bytes) -> bytes:
        """An answer, encrypted to the trainer."""
        assert self._sealer is not None
        return self._sealer[1].seal(said)

    def excluded(self, names: Any) -> Excluded:
        """What a user excludes, as far as it is items; nothing of it is ever refused but too long a list."""
        if not isinstance(names, list):
            return Excluded(())
        return Excluded({self.items[name] for name in names if isinstance(name, str) and name in self.items})

    def _find(self, id_block: IdBlock) -> Chooser | None:
        """What chooses by an ID block's menu. A store that hands out older menus than before was restored from
        a copy."""
        if id_block.version > self.version:
            self.refresh()
        self.went_back = self.went_back or id_block.version < self._highest
        self._highest = max(self._highest, id_block.version)
        result = [chooser for row, chooser in self._menus if row.version == id_block.version]
        return result[0] if result and not self.went_back else None
