"""Ledgers in a store: entries are unique by their number, releases by their name, and only the leader writes.

Two trainers may draw at the same time. One draw is stored, both read it back, and the other one was never
visible. A trainer
that has read or written an entry writes nothing where that entry is missing: then the store was rolled back, and has
forgotten what was drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from diminuendo.errors import LedgerDamaged, LedgerInUse, refuse_copies
from diminuendo.privacy.books.releases import check_name, packed, unpacked
from diminuendo.service.store.fencing import FencedWrite
from diminuendo.types import Ints

if TYPE_CHECKING:
    from diminuendo.service.store.sql import Script, Store


class StoreBooks:
    """The ledger of a population and its releases, for its leader; to be read only without a fence."""

    __getstate__ = refuse_copies

    def __init__(self, store: Store, population: str, fence: FencedWrite | None) -> None:
        self.lines = StoreLines(store, population, fence)
        self.releases = StoreReleases(store, population, self.lines)

    def visits_of(self, learner: str) -> None:
        """The service counts them itself."""

    def close(self) -> None:
        """Write nothing any more; the store stays open."""
        self.lines.closed = True


class StoreLines:
    """The entries of a ledger. An entry of another trainer at the same place is not overwritten."""

    __getstate__ = refuse_copies

    def __init__(self, store: Store, population: str, fence: FencedWrite | None) -> None:
        self._store, self._population, self._fence, self.closed = store, population, fence, False
        self.path = f"{store.place} (population {population})"

    @property
    def fence(self) -> FencedWrite:
        """What may be written now; refused if the ledger was opened to be read only."""
        if self._fence is None:
            raise LedgerInUse(f"{self.path} was opened to be read only.")
        return self._fence

    @property
    def read_only(self) -> bool:
        """Whether there is no fence, and only what is visible by now is read."""
        return self._fence is None

    def read(self) -> bytes:
        """All of them, each with its newline."""
        if self._fence is None:
            return b"".join(self._store.ledger(self._population))
        query = "SELECT line FROM diminuendo.ledger WHERE population = $1 ORDER BY seq"
        result = [line for (line,) in self._store.rows(query, self._population)]
        self._fence = self._fence.knows(len(result), result[-1] if result else b"")
        return b"".join(result)

    def check(self) -> None:
        """Refuse unless this trainer may append."""
        fence = self.fence
        if self.closed:
            raise LedgerInUse(f"{self.path} is closed, or could not be written to before; open it again.")
        self._store.check_fence(fence)

    def append(self, line: bytes) -> None:
        """One more entry, after those that were read here."""
        self.check()
        fence, self.closed = self.fence, True  # until it is durable

        def add() -> Script[bool]:
            result = yield (
                "INSERT INTO diminuendo.ledger VALUES ($1, $2, $3, diminuendo.instant()) ON CONFLICT DO NOTHING "
                "RETURNING seq",
                (self._population, fence.lines, line),
            )
            return bool(result)

        if not self._store.transact(add, fence):
            raise LedgerInUse(
                f"{self.path} was written to by another trainer since it was read; open it again."
            )
        self._fence, self.closed = fence.knows(fence.lines + 1, line), False

    def cut(self, size: int) -> None:
        """An entry is there as a whole, or not at all."""
        if size != len(self.read()):
            raise LedgerDamaged(f"{self.path} has a line that breaks off. Restore it from a copy.")


class StoreReleases:
    """What was published, by name."""

    __getstate__ = refuse_copies

    def __init__(self, store: Store, population: str, lines: StoreLines) -> None:
        self._store, self._population, self._lines = store, population, lines

    def check(self, name: str) -> None:
        """Refuse names that a release cannot have."""
        check_name(name)

    def has(self, name: str) -> bool:
        """Whether there is a release of that name."""
        return bool(self._read(name))

    def names(self) -> list[str]:
        """The names of all releases."""
        if self._lines.read_only:
            return sorted(name for name, _ in self._store.visible_releases(self._population, None))
        query = "SELECT name FROM diminuendo.releases WHERE population = $1"
        return sorted(name for (name,) in self._store.rows(query, self._population))

    def once(self, name: str, draw: Callable[[], Ints]) -> Ints:
        """The release of that name; `draw` is called only if there is none yet, and what is stored is returned."""
        check_name(name)
        if not (result := self._read(name)):
            fence = self._lines.fence
            self._add(name, packed(draw()), fence)
            result = self._read(name)
        return unpacked(result[0][1], f"{name} of {self._lines.path}")

    def _read(self, name: str) -> list[tuple[str, bytes]]:
        if self._lines.read_only:
            return self._store.visible_releases(self._population, name)
        query = "SELECT name, body FROM diminuendo.releases WHERE population = $1 AND name = $2"
        return self._store.rows(query, self._population, name)

    def _add(self, name: str, body: bytes, fence: FencedWrite) -> None:
        """Write a release that is entered in the next line, unless there is one of that name."""

        def add() -> Script[None]:
            yield (
                "INSERT INTO diminuendo.releases SELECT $1, $2, $3, coalesce(max(seq) + 1, 0) "
                "FROM diminuendo.ledger WHERE population = $1 ON CONFLICT DO NOTHING",
                (self._population, name, body),
            )

        self._store.transact(add, fence)
