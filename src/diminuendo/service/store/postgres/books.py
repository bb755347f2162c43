"""Books in a PostgreSQL store: lines are unique by their number, releases by their name, and only who leads writes.

Two trainers may draw at the same time. One draw is kept, both read it back, and nobody has seen the other.
"""

from __future__ import annotations

from collections.abc import Callable

from diminuendo.errors import LedgerDamaged, LedgerInUse, refuse_copies
from diminuendo.privacy.books.releases import check_name, packed, unpacked
from diminuendo.service.store.led import Led
from diminuendo.service.store.postgres.server import BEGIN, Db, PostgresServer, check_leads
from diminuendo.types import Ints


class PostgresBooks:
    """The ledger of a population and its releases, for the trainer of that epoch; to be read only without one."""

    __getstate__ = refuse_copies

    def __init__(self, server: PostgresServer, population: str, led: Led | None) -> None:
        self.lines = PostgresLines(server, population, led)
        self.releases = PostgresReleases(server, population, led)

    def visits_of(self, learner: str) -> None:
        """The service counts them itself."""

    def close(self) -> None:
        """Write nothing any more; the store stays open."""
        self.lines.closed = True


class PostgresLines:
    """The lines of a ledger. One that somebody else has written at the same place is not written over."""

    __getstate__ = refuse_copies

    def __init__(self, server: PostgresServer, population: str, led: Led | None) -> None:
        self._server, self._population, self._led = server, population, led
        self._next, self.closed = 0, False
        self.path = f"{server.name} (population {population})"

    def read(self) -> bytes:
        """All of them, each with its newline; of those to be read only, all that are shown by now."""
        table = "shown_ledger" if self._led is None else "ledger"
        found = self._server.rows(
            f"SELECT seq, line FROM diminuendo.{table} WHERE population = $1 ORDER BY seq", self._population
        )
        self._next = found[-1][0] + 1 if found else 0
        return b"".join(line for _, line in found)

    def check(self) -> None:
        """Refuse unless this trainer may append."""
        if self._led is None:
            raise LedgerInUse(f"{self.path} was opened to be read only.")
        if self.closed:
            raise LedgerInUse(f"{self.path} is closed, or could not be written to before; open it again.")
        led = self._led
        self._server.run(lambda db: check_leads(db, led), BEGIN)

    def append(self, line: bytes) -> None:
        """One more line, after those that were read here."""
        self.check()
        self.closed = True  # until it is safe

        async def written(db: Db) -> str:
            return await db.execute(
                "INSERT INTO diminuendo.ledger VALUES ($1, $2, $3, diminuendo.instant()) ON CONFLICT DO NOTHING",
                *(self._population, self._next, line),
            )

        if self._server.writing(written, self._led) != "INSERT 0 1":
            raise LedgerInUse(
                f"{self.path} was written to by somebody else since it was read; open it again."
            )
        self._next, self.closed = self._next + 1, False

    def cut(self, size: int) -> None:
        """A line is there as a whole, or not at all."""
        if size != len(self.read()):
            raise LedgerDamaged(f"{self.path} has a line that breaks off. Restore it from a copy.")


class PostgresReleases:
    """What was published, by name."""

    __getstate__ = refuse_copies

    def __init__(self, server: PostgresServer, population: str, led: Led | None) -> None:
        self._server, self._population, self._led = server, population, led
        self._table = "diminuendo.shown_releases" if led is None else "diminuendo.releases"

    def check(self, name: str) -> None:
        """Refuse names that a release cannot have."""
        check_name(name)

    def has(self, name: str) -> bool:
        """Whether there is a release of that name."""
        return bool(self._find(name))

    def names(self) -> list[str]:
        """The names of all releases."""
        found = self._server.rows(f"SELECT name FROM {self._table} WHERE population = $1", self._population)
        return sorted(name for (name,) in found)

    def once(self, name: str, draw: Callable[[], Ints]) -> Ints:
        """The release of that name; `draw` is called only if there is none yet, and what is kept is returned."""
        check_name(name)
        if not (found := self._find(name)):
            if self._led is None:
                raise LedgerInUse("These books were opened to be read only.")
            drawn = packed(draw())

            async def kept(db: Db) -> None:
                await db.execute(
                    "INSERT INTO diminuendo.releases SELECT $1, $2, $3, coalesce(max(seq) + 1, 0) "  # the next line
                    "FROM diminuendo.ledger WHERE population = $1 ON CONFLICT DO NOTHING",
                    *(self._population, name, drawn),
                )

            self._server.writing(kept, self._led)
            found = self._find(name)
        return unpacked(found[0], f"{name} of population {self._population}")

    def _find(self, name: str) -> list[bytes]:
        query = f"SELECT body FROM {self._table} WHERE population = $1 AND name = $2"
        return [body for (body,) in self._server.rows(query, self._population, name)]
