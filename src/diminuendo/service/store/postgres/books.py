"""The rows of books in a PostgreSQL store."""

from __future__ import annotations

from diminuendo.errors import refuse_copies
from diminuendo.service.store.led import Led
from diminuendo.service.store.postgres.server import BEGIN, Db, PostgresServer, check_leads


class PostgresRows:
    """Rows of one population's books; `shown`: those that are shown by now alone."""

    __getstate__ = refuse_copies

    def __init__(self, server: PostgresServer, population: str, *, shown: bool) -> None:
        self._server, self._population = server, population
        self._ledger, self._releases = "diminuendo.ledger_shown($1, 0)", "diminuendo.releases_shown($1)"
        if not shown:
            which = "WHERE population = $1"
            self._ledger, self._releases = f"diminuendo.ledger {which}", f"diminuendo.releases {which}"
        self.place = f"{server.name} (population {population})"

    def lines(self) -> list[bytes]:
        """All lines, in order."""
        query = f"SELECT line FROM {self._ledger} ORDER BY seq"
        return [line for (line,) in self._server.rows(query, self._population)]

    def check(self, led: Led) -> None:
        """Refuse unless it is led."""
        self._server.run(lambda db: check_leads(db, led), BEGIN)

    def add_line(self, led: Led, line: bytes) -> bool:
        """One more line after those that are known; whether nobody else had written one there."""

        async def add(db: Db) -> str:
            return await db.execute(
                "INSERT INTO diminuendo.ledger VALUES ($1, $2, $3, diminuendo.instant()) ON CONFLICT DO NOTHING",
                *(self._population, led.lines, line),
            )

        return self._server.writing(add, led) == "INSERT 0 1"

    def releases(self) -> list[str]:
        """The names of all releases."""
        query = f"SELECT name FROM {self._releases}"
        return [name for (name,) in self._server.rows(query, self._population)]

    def release(self, name: str) -> bytes | None:
        """The release of that name; None where there is none."""
        query = f"SELECT body FROM (SELECT name, body FROM {self._releases}) AS found WHERE name = $2"
        result = self._server.rows(query, self._population, name)
        return result[0][0] if result else None

    def add_release(self, led: Led, name: str, body: bytes) -> None:
        """Keep a release that is entered in the next line, unless there is one of that name."""

        async def add(db: Db) -> None:
            await db.execute(
                "INSERT INTO diminuendo.releases SELECT $1, $2, $3, coalesce(max(seq) + 1, 0) "
                "FROM diminuendo.ledger WHERE population = $1 ON CONFLICT DO NOTHING",
                *(self._population, name, body),
            )

        self._server.writing(add, led)
