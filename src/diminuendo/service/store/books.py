"""Books in a store: lines are unique by their number, releases by their name, and only who leads writes.

Two trainers may draw at the same time. One draw is kept, both read it back, and nobody has seen the other. Whoever has
read or written a line writes nothing where that line is missing: the store was put back, and has forgotten what was
drawn. How rows are read and written is each store's own (`Rows`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from diminuendo.errors import LedgerDamaged, LedgerInUse, refuse_copies
from diminuendo.privacy.books.releases import check_name, packed, unpacked
from diminuendo.service.store.led import Led
from diminuendo.types import Ints


class Rows(Protocol):
    """The rows of one population's books; of those to be read only, all that are shown by now.

    What is written is refused, in its transaction, unless it is led (`Led`).
    """

    place: str
    """Where they are, for users to read."""

    def lines(self) -> list[bytes]:
        """All lines, in order."""
        ...

    def check(self, led: Led) -> None:
        """Refuse unless it is led."""

    def add_line(self, led: Led, line: bytes) -> bool:
        """One more line after those that are known; whether nobody else had written one there."""
        ...

    def releases(self) -> list[str]:
        """The names of all releases, in any order."""
        ...

    def release(self, name: str) -> bytes | None:
        """The release of that name; None where there is none."""
        ...

    def add_release(self, led: Led, name: str, body: bytes) -> None:
        """Keep a release that is entered in the next line, unless there is one of that name."""


class StoreBooks:
    """The ledger of a population and its releases, for whoever leads it; to be read only where nobody does."""

    __getstate__ = refuse_copies

    def __init__(self, rows: Rows, led: Led | None) -> None:
        self.lines = StoreLines(rows, led)
        self.releases = StoreReleases(rows, self.lines)

    def contributions_of(self, learner: str) -> None:
        """The service counts them itself."""

    def close(self) -> None:
        """Write nothing any more; the store stays open."""
        self.lines.closed = True


class StoreLines:
    """The lines of a ledger. One that somebody else has written at the same place is not written over."""

    __getstate__ = refuse_copies

    def __init__(self, rows: Rows, led: Led | None) -> None:
        self._rows, self._led, self.closed = rows, led, False
        self.path = rows.place

    @property
    def led(self) -> Led:
        """What may be written now; refused where they are read only."""
        if self._led is None:
            raise LedgerInUse(f"{self.path} was opened to be read only.")
        return self._led

    def read(self) -> bytes:
        """All of them, each with its newline."""
        result = self._rows.lines()
        if self._led is not None:
            self._led = self._led.knows(len(result), result[-1] if result else b"")
        return b"".join(result)

    def check(self) -> None:
        """Refuse unless this trainer may append."""
        led = self.led
        if self.closed:
            raise LedgerInUse(f"{self.path} is closed, or could not be written to before; open it again.")
        self._rows.check(led)

    def append(self, line: bytes) -> None:
        """One more line, after those that were read here."""
        self.check()
        led, self.closed = self.led, True  # until it is safe
        if not self._rows.add_line(led, line):
            raise LedgerInUse(
                f"{self.path} was written to by somebody else since it was read; open it again."
            )
        self._led, self.closed = led.knows(led.lines + 1, line), False

    def cut(self, size: int) -> None:
        """A line is there as a whole, or not at all."""
        if size != len(self.read()):
            raise LedgerDamaged(f"{self.path} has a line that breaks off. Restore it from a copy.")


class StoreReleases:
    """What was published, by name."""

    __getstate__ = refuse_copies

    def __init__(self, rows: Rows, lines: StoreLines) -> None:
        self._rows, self._lines = rows, lines

    def check(self, name: str) -> None:
        """Refuse names that a release cannot have."""
        check_name(name)

    def has(self, name: str) -> bool:
        """Whether there is a release of that name."""
        return self._rows.release(name) is not None

    def names(self) -> list[str]:
        """The names of all releases."""
        return sorted(self._rows.releases())

    def once(self, name: str, draw: Callable[[], Ints]) -> Ints:
        """The release of that name; `draw` is called only if there is none yet, and what is kept is returned."""
        check_name(name)
        if (result := self._rows.release(name)) is None:
            led = self._lines.led
            self._rows.add_release(led, name, packed(draw()))
            result = self._rows.release(name)
            assert result is not None  # releases are never deleted
        return unpacked(result, f"{name} of {self._lines.path}")
