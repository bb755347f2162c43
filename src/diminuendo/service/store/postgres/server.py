"""A PostgreSQL server that any number of processes of any number of machines write to, in whole transactions.

A process has a few connections, all of one thread that waits for them; callers wait for that thread. A connection
that was lost is opened again by the next caller; where a network is cut silently it is lost after some seconds, here
and at the server. Nothing that matters is kept in a session: each transaction says by itself how it is committed and
whom it may wait for, and holds its locks no longer than it lasts; so a pooler may stand between, also one that gives
each transaction another connection. What PostgreSQL complains of becomes `StoreUnavailable`, with fixed words: its own
may have values in them.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from diminuendo._extras import extra
from diminuendo.errors import DiminuendoError, InvalidInput, StoreUnavailable, refuse_copies
from diminuendo.service.store import reasons
from diminuendo.service.store.fencing import FencedWrite
from diminuendo.service.store.postgres.functions import STEPS
from diminuendo.service.store.postgres.rights import give_again
from diminuendo.service.store.postgres.schema import NO_PLACEMENT, SCHEMA

if TYPE_CHECKING:
    from diminuendo.service.store.sql import Script

with extra("postgres"):
    import asyncpg

T = TypeVar("T")


Db = Any
"""A connection of asyncpg, which has no types."""
Work = Callable[[Db], Awaitable[T]]

CONNECTIONS = 4
"""Connections of one process at most."""
TIMEOUT = 5.0
"""Seconds for which a connection is waited for, and on one for a sign that the other side received something; after as
long nothing is tried again. `join_writers` in functions.py waits as long for other writers."""
LONGEST = 60.0
"""Seconds that one statement may take."""
TRIES = 3
"""How often a transaction is tried that PostgreSQL has undone because of others."""
QUIET, ASKS_EVERY = 2, 1
"""Seconds without a word after which the other side is asked whether it is there, and between two such questions."""
WATCH = (
    f"SET tcp_keepalives_idle = {QUIET}; SET tcp_keepalives_interval = {ASKS_EVERY}; SET tcp_keepalives_count = 3; "
    f"SET tcp_user_timeout = '{TIMEOUT:.0f}s'"
)
"""The same for the server, which else keeps a connection that was cut off for hours. Behind a pooler it is
said of the pooler's own connections, where it is right as well; over a local socket it means nothing."""
WATCHED = {
    "TCP_KEEPIDLE": QUIET,
    "TCP_KEEPINTVL": ASKS_EVERY,
    "TCP_KEEPCNT": 3,
    "TCP_USER_TIMEOUT": int(1000 * TIMEOUT),
}
"""What is said of a socket here, as far as the system knows the words."""
BEGIN = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = '3s'; "
WRITE = f"{BEGIN}SELECT {SCHEMA}.join_writers()"
MAKE, CHANGE = "SELECT pg_advisory_xact_lock(1684630889, 2)", f"SELECT FROM {SCHEMA}.store FOR UPDATE"
"""One at a time makes tables, and changes them. Any role that may connect can hold an advisory lock: where there are
tables, no process waits for one."""

UNDONE = ("40001", "40P01")

OTHERS = """
SELECT count(*) FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE relkind IN ('r', 'p', 'm') AND nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
AND nspname NOT LIKE 'pg_temp%'
AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = pg_class.oid AND deptype = 'e')
"""
"""How many tables there are that no extension brought."""


class WatchfulLoop(asyncio.SelectorEventLoop):
    """A loop whose connections over a network end where the other side is silent: no message ends a connection
    that was cut."""

    async def create_connection(self, *given: Any, **more: Any) -> Any:
        """As asyncio does it; then the system is told to watch the socket."""
        transport, protocol = await super().create_connection(*given, **more)
        watched: socket.socket = transport.get_extra_info("socket")
        watched.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in WATCHED.items():
            if hasattr(socket, name):
                watched.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        return transport, protocol


class NoTables(InvalidInput):
    """The database has no tables of ours yet."""


class PostgresServer:
    """The database of that address, with tables of ours; made if there are none.

    `filling`: opened by who moves another store to it, and else refused as long as that is not done.
    """

    __getstate__ = refuse_copies

    def __init__(self, address: str, *, filling: bool = False, make: bool = True) -> None:
        """`make`: create or update the tables; otherwise `NoTables` if there are none."""
        self.name, self._address = shown(address), address
        self._owner, self._closed, self._make = os.getpid(), False, make
        self._loop = WatchfulLoop()
        self._idle: list[Db] = []
        self._places = asyncio.Semaphore(CONNECTIONS)
        self._thread = threading.Thread(target=self._loop.run_forever, name="postgres", daemon=True)
        self._thread.start()
        try:
            self.run(self._prepare, begin=None)
            self._check(filling)
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"<PostgresServer {self.name}>"

    def close(self) -> None:
        """Close the connections, when all writers of this process have ended."""
        if self._closed or os.getpid() != self._owner:
            return
        self._closed = True
        asyncio.run_coroutine_threadsafe(self._leave(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _leave(self) -> None:
        for _ in range(CONNECTIONS):  # no other caller has a place, then
            await self._places.acquire()
        await asyncio.gather(*(_closed(db) for db in self._idle))
        self._idle.clear()

    # Asking and writing.

    def rows(self, query: str, *values: Any, again: bool = True) -> list[Any]:
        """What a query finds; asked once more where its connection was lost meanwhile, unless that would be wrong."""

        async def ask(db: Db) -> list[Any]:
            return [tuple(row) for row in await db.fetch(query, *values)]

        return self.run(ask, begin=None, again=again)

    def writing(self, work: Work[T], fence: FencedWrite | None = None) -> T:
        """One transaction; where it is led, refused unless its trainer still leads, and as long as it lasts."""

        async def fenced(db: Db) -> T:
            if fence is not None:
                await check_fence(db, fence)
            return await work(db)

        return self.run(fenced)

    def run(self, work: Work[T], begin: str | None = WRITE, *, again: bool = False) -> T:
        """Something that is done with a connection, in a transaction that begins so; the caller waits."""
        if os.getpid() != self._owner:
            raise StoreUnavailable(
                f"{self.name} was opened before this process was forked; open it here.", reasons.FORKED
            )
        if self._closed:
            raise StoreUnavailable(f"The store {self.name} is not available: it is closed.", reasons.CLOSED)
        result, words, wrong = asyncio.run_coroutine_threadsafe(
            self._attempts(work, begin, again), self._loop
        ).result()
        if wrong is not None:
            raise wrong
        if words is not None:  # here nothing of the error is left that it came from
            why = words if words in reasons.REASONS else reasons.UNLISTED  # some end with a code
            raise StoreUnavailable(f"The store {self.name} is not available: {words}.", why)
        return result  # type: ignore[return-value]  # it is T where nothing was wrong

    async def _attempts(
        self, work: Work[T], begin: str | None, again: bool
    ) -> tuple[T | None, str | None, DiminuendoError | None]:
        """What was found; or what to say of why not; or what was refused."""
        until = self._loop.time() + TIMEOUT
        for nth in range(TRIES):
            begun, left = [begin is None], nth < TRIES - 1
            try:
                return await self._attempt(work, begin, begun), None, None
            except DiminuendoError as error:
                return None, None, error
            except asyncpg.PostgresError as error:
                code = error.sqlstate or ""
                if code == NO_PLACEMENT:
                    return None, None, InvalidInput("There is no placement of that number.")
                lost = code.startswith(("57P", "08")) and self._loop.time() < until
                if left and (code in UNDONE or (lost and (again or not begun[0]))):
                    continue
                known = [words for begins, words in reasons.POSTGRES.items() if code.startswith(begins)]
                return None, known[0] if known else f"it failed with code {code or 'unknown'}", None
            except (asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError) as error:
                if isinstance(error, ValueError) and not isinstance(error, asyncpg.ClientConfigurationError):
                    return None, reasons.POSTGRES["22"], None
                if not (left and self._loop.time() < until and (again or not begun[0])):
                    return None, reasons.POSTGRES["08"], None
        raise AssertionError

    async def _attempt(self, work: Work[T], begin: str | None, begun: list[bool]) -> T:
        """`begun`: becomes whether something may have happened."""
        async with self._connection() as db:
            if begin is None:
                return await work(db)
            await db.execute(begin)
            begun[0] = True
            result = await work(db)
            await db.execute("COMMIT")
            return result

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Db]:
        """A connection for a while. One that is in the midst of something afterwards is not used again."""
        async with asyncio.timeout(TIMEOUT):  # all of them may hang
            await self._places.acquire()
        try:
            db = None
            while db is None or db.is_closed():
                db = self._idle.pop() if self._idle else await self._connected()
            try:
                yield db
            except (DiminuendoError, asyncpg.PostgresError):
                if db.is_in_transaction() and not db.is_closed():
                    await db.execute("ROLLBACK")
                self._keep(db)
                raise
            except BaseException:  # it waited too long, say, and what it asked for is still being done
                db.terminate()
                raise
            self._keep(db)
        finally:
            self._places.release()

    def _keep(self, db: Db) -> None:
        if db.is_closed() or db.is_in_transaction():
            db.terminate()
        else:
            self._idle.append(db)

    async def _connected(self) -> Db:
        db: Db = await asyncpg.connect(
            self._address, timeout=TIMEOUT, command_timeout=LONGEST, statement_cache_size=0
        )
        try:
            await db.execute(WATCH)
        except BaseException:
            db.terminate()
            raise
        return db

    # Tables.

    async def _prepare(self, db: Db) -> None:
        """Make the tables, or bring them up to date; refuse what others have made, and who may lose what is written."""
        for setting in ("synchronous_commit", "fsync", "full_page_writes"):
            if await db.fetchval(f"SHOW {setting}") == "off":
                raise InvalidInput(
                    f"{self.name} has {setting} off: what was acknowledged, and what was paid for, could be lost. Set "
                    "it to on, for the server, the database and the role."
                )
        if (level := await db.fetchval("SHOW transaction_isolation")) != "read committed":
            raise InvalidInput(
                f"{self.name} begins transactions as {level}: a transaction that has waited for others would not see "
                "what they wrote. Set default_transaction_isolation to read committed, for the database and the role."
            )
        version = await self._version(db)
        if version == len(STEPS):
            return
        if not self._make:
            if version:
                raise InvalidInput(
                    f"{self.name} has tables of version {version}, and this diminuendo needs {len(STEPS)}: `diminuendo "
                    "apply` updates them."
                )
            raise NoTables(f"{self.name} has no tables of diminuendo yet.")
        await db.execute(BEGIN + (CHANGE if version else MAKE))
        version = await self._version(db)  # another process may have been faster
        if not version and await db.fetchval(OTHERS):
            raise InvalidInput(
                f"{self.name} is a database with tables of others; give the store a database of its own."
            )
        try:
            for step in STEPS[version:]:
                await db.execute(step)
            await db.execute(f"UPDATE {SCHEMA}.store SET version = {len(STEPS)}")
            await give_again(db)
        except asyncpg.InsufficientPrivilegeError:
            raise InvalidInput(
                f"{self.name} has tables of version {version}, this diminuendo needs {len(STEPS)}, and this role may "
                "not make them. Open it once as who owns the database: `diminuendo apply`."
            ) from None
        await db.execute("COMMIT")

    async def _version(self, db: Db) -> int:
        """How many steps were taken; refused are more than are known here."""
        there = await db.fetchval(
            "SELECT count(*) FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace "
            "WHERE nspname = $1 AND relname = 'store'",
            SCHEMA,
        )
        version = int(await db.fetchval(f"SELECT version FROM {SCHEMA}.store")) if there else 0
        if version > len(STEPS):
            raise InvalidInput(
                f"{self.name} was written by a newer diminuendo (tables of version {version}); this one knows "
                f"{len(STEPS)}. Install that version."
            )
        return version

    def _check(self, filling: bool) -> None:
        ((result,),) = self.rows(f"SELECT filling FROM {SCHEMA}.store")
        if result and not filling:
            raise InvalidInput(
                f"Another store is being moved to {self.name}, and is not there as a whole: run that `diminuendo move` "
                "again."
            )


async def check_fence(db: Db, fence: FencedWrite) -> None:
    """Refuse where another trainer leads, or the ledger lacks what this one knows; if not, no other trainer leads until
    this transaction is over."""
    result = await db.fetch(
        "SELECT fencing_token, (SELECT line FROM diminuendo.ledger WHERE population = $1 AND seq = $2) "
        "FROM diminuendo.trainers WHERE population = $1 FOR SHARE OF trainers",
        *(fence.population, fence.lines - 1),
    )
    fence.check(*result[0] if result else (0, None))


async def run(db: Db, script: Script[T]) -> T:
    """Run a script in a transaction; its result."""
    try:
        statement, values = next(script)
        while True:
            statement, values = script.send([tuple(row) for row in await db.fetch(statement, *values)])
    except StopIteration as over:
        result: T = over.value
        return result


def shown(address: str) -> str:
    """An address as it may be shown: without a password, a user, or whatever else it says."""
    try:
        parts = urlsplit(address)
        host = f"{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"
        whole = not parts.fragment and "@" not in parts.path + parts.query
    except ValueError:
        whole = False
    if not whole:  # a password with a / in it, say
        raise InvalidInput(
            "The address of a PostgreSQL store is postgresql://user@host:port/database, and this one cannot be read. "
            "In a password write / as %2F, @ as %40, # as %23, ? as %3F and % as %25; or keep it in ~/.pgpass."
        )
    return f"postgresql://{host}{parts.path}"


async def _closed(db: Db) -> None:
    try:
        await db.close(timeout=TIMEOUT)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
        db.terminate()
