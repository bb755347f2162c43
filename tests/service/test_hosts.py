"""Several hosts whose network is cut silently while users come: PostgreSQL on one, machines of a site on the others.

Nobody is told of a cut: packets go nowhere. The machine that is cut off shows fallback slates and acknowledges
nothing; a trainer of the other one leads; once healed, all that was acknowledged in time was counted, once.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest

from diminuendo.errors import StoreUnavailable
from diminuendo.service.front.tokens import Tokens
from diminuendo.service.keys import new_access_key, read_keys
from diminuendo.service.site import read_site
from diminuendo.service.store import open_store
from diminuendo.service.store.fencing import FencedWrite
from diminuendo.service.store.postgres import PostgresStore
from diminuendo.service.store.postgres.server import TIMEOUT, WATCHED, Db, WatchfulLoop
from diminuendo.service.store.sql import Store
from tests.kit import postgres
from tests.kit.hosts import SUBNET, Hosts, hosts
from tests.kit.postgres import Server
from tests.service.chaos import SETTLES, SITE
from tests.service.judge import Auditor, judged
from tests.service.store_contract import answered, begun, said
from tests.service.test_many_trainers import TAKEOVER, check, led_by, more_menus, wait_for
from tests.service.users import Asked, Door, Users

T = TypeVar("T")
MACHINES = ("anna", "ben")
USERS = 60_000
CUT, DEADLINE = 25.0, 4.0
"""Seconds."""
BOUND = 3 * TIMEOUT
"""Seconds that a call of the store takes at most when nothing comes: for a place, on a connection that was, for a new
one."""
PACE = 0.25
"""Seconds between two requests of somebody."""


def test_connections_over_a_network_are_watched() -> None:
    with socket.create_server(("127.0.0.1", 0)) as there:

        async def connect() -> list[int]:
            loop = asyncio.get_running_loop()
            transport, _ = await loop.create_connection(asyncio.Protocol, *there.getsockname())
            ours = transport.get_extra_info("socket")
            result = [ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)]
            result += [ours.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in known]
            transport.close()
            return result

        known = [name for name in WATCHED if hasattr(socket, name)]
        with asyncio.Runner(loop_factory=WatchfulLoop) as runner:
            assert runner.run(connect()) == [1, *(WATCHED[name] for name in known)]


@contextmanager
def served() -> Iterator[tuple[Hosts, Server]]:
    """Hosts, and PostgreSQL on one of them, which listens to the others alone."""
    with hosts("db", *MACHINES) as made:
        listens = f"listen_addresses={made.address('db')}"
        with postgres.running(listens, within=made.within("db")) as server:
            server.stop()
            server.allow(SUBNET)
            server.start()
            yield made, server


def on(made: Hosts, name: str, work: Callable[[], T]) -> Future[T]:
    """Something that is done on a host."""
    result = Future[T]()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:
            result.set_exception(error)

    made.thread(name, run).start()
    return result


def address(made: Hosts, database: str) -> str:
    return f"postgresql://owner@{made.address('db')}/{database}"


@pytest.mark.slow
@pytest.mark.parametrize("doing", ["thinking", "copying"])
def test_whoever_is_cut_off_in_the_midst_of_a_transaction_holds_nobody_up_for_long(doing: str) -> None:
    with served() as (made, server), ExitStack() as ending:
        database = server.database()

        def opened() -> PostgresStore:
            return PostgresStore(address(made, database))

        anna = on(made, "anna", opened).result(60)
        ben = on(made, "ben", opened).result(60)
        ending.callback(ben.close)
        ending.callback(anna.close)
        fencing_token, there = begun(anna), threading.Event()

        async def slowly() -> AsyncIterator[tuple[Any, ...]]:
            yield "x", 0.0, ""
            there.set()
            await asyncio.sleep(CUT)

        async def hold(db: Db) -> None:
            if doing == "copying":  # to the server this is not idle
                await db.copy_records_to_table("heartbeats", records=slowly(), schema_name="diminuendo")
            else:
                there.set()
                await asyncio.sleep(CUT)
                await db.execute("SELECT 1")

        held = on(made, "anna", lambda: anna._server.writing(hold, FencedWrite("users", fencing_token)))
        assert there.wait(10)
        time.sleep(0.5)  # what it sent has arrived
        made.cut("anna")
        began = time.monotonic()
        leading = on(
            made, "ben", lambda: until_it_goes(lambda: ben.acquire_leadership("users", "ben", fencing_token))
        )
        storing = on(made, "anna", lambda: anna.put(answered(1)))
        assert leading.result(TAKEOVER) > fencing_token
        took = time.monotonic() - began
        assert took < 2 * TIMEOUT
        with pytest.raises(StoreUnavailable):
            storing.result(BOUND)
        query = f"SELECT 1 FROM pg_stat_activity WHERE client_addr = '{made.address('anna')}'"
        wait_for(2 * TIMEOUT, lambda: "" if server.sql(database, query) else "all are gone")
        made.heal("anna")
        anna.put(answered(2))
        with pytest.raises(StoreUnavailable):
            held.result(CUT + BOUND)
        assert set(said(ben)) <= {1, 2}
        assert 2 in said(ben)


@pytest.mark.slow
def test_a_commit_whose_reply_is_lost_is_not_acknowledged_and_what_it_kept_is_kept_once() -> None:
    with served() as (made, server):
        database = server.database()
        anna = on(made, "anna", lambda: PostgresStore(address(made, database))).result(60)
        try:
            begun(anna)

            async def keep(db: Db) -> None:
                await db.execute(
                    "SELECT diminuendo.put('{1}', '{1}', '{x}', '{}', '{}', '{}', '{}', '{}', '{}')"
                )
                await asyncio.get_running_loop().run_in_executor(None, made.deafen, "anna", "db")

            with pytest.raises(StoreUnavailable):
                anna._server.writing(keep)
            with open_store(server.address(database)) as beside:
                assert said(beside) == {1: b"x"}, "it has arrived"
            made.undeafen("anna", "db")
            anna.put(answered(1, 2))
            assert said(anna) == {1: b"x", 2: b"said 2"}
        finally:
            anna.close()


def until_it_goes(work: Callable[[], T]) -> T:
    """As a trainer does it."""
    until = time.monotonic() + TAKEOVER
    while True:
        try:
            return work()
        except StoreUnavailable:
            assert time.monotonic() < until
            time.sleep(0.05)


class Machines(NamedTuple):
    """A site on several hosts, users who come, and the store, looked at from beside the network."""

    made: Hosts
    users: Users
    store: Store
    auditor: Auditor
    tokens: Tokens


@contextmanager
def site(folder: Path) -> Iterator[Machines]:
    with served() as (made, server), ExitStack() as ending:
        database, (key, hashed), port = server.database(), new_access_key(), 8080
        told = SITE.format(hashed=hashed, users=USERS, deadline=DEADLINE, store=address(made, database))
        for name in MACHINES:
            (folder / name).mkdir()
            path = folder / name / "site.toml"
            mine = told.replace("127.0.0.1:0", f"{made.address(name)}:{port}")
            path.write_text(f'trainers = 1\ntrainer_keys = "store"\nmachine = "{name}"\n{mine}')
            if name != MACHINES[0]:
                shutil.copytree(folder / MACHINES[0] / "keys", folder / name / "keys")
            command = [*made.within(name), sys.executable, "-m", "diminuendo"]
            if name == MACHINES[0]:
                subprocess.run(
                    [*command, "apply", str(path)], check=True, timeout=120, stdout=subprocess.DEVNULL
                )
            running = subprocess.Popen(
                [*command, "serve", str(path)], stdout=subprocess.DEVNULL, start_new_session=True
            )
            ending.callback(ended, running)
        store = open_store(server.address(database))
        ending.callback(store.close)
        doors = [Door(made.address(name), port, name, partial(made.thread, name)) for name in MACHINES]
        users = Users(doors, key, many=3, pace=PACE, timeout=2 * BOUND, retry_for=0.0)
        ending.callback(users.stop)
        users.start()
        keys = read_keys(read_site(folder / MACHINES[0] / "site.toml").keys)
        yield Machines(made, users, store, Auditor(store), Tokens(keys.tokens, 1))


def ended(running: subprocess.Popen[bytes]) -> None:
    """A machine's processes, which end with the one that started them."""
    running.send_signal(signal.SIGTERM)
    try:
        running.wait(30)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()


def leader(store: Store) -> str:
    """The machine whose trainer leads."""
    return wait_for(60.0, lambda: led_by(store)).split("-")[1]


def cut_off(machines: Machines, cut: Callable[[str], None], heal: Callable[[str], None]) -> None:
    """Cut off the machine whose trainer leads; another one leads in time, and nothing is acknowledged there."""
    store, before = machines.store, machines.store.leaders()["everybody"]
    lost, slot = leader(store), led_by(store)
    (other,) = set(MACHINES) - {lost}
    cut(lost)
    began = time.monotonic()
    try:
        assert wait_for(TAKEOVER, lambda: led_by(store).replace(slot, "")).split("-")[1] == other
        took = time.monotonic() - began
        there = len(store.menus(1))
        wait_for(20.0, lambda: more_menus(store, there))
        time.sleep(max(0.0, CUT - (time.monotonic() - began)))
    finally:
        until = time.monotonic()
        heal(lost)
    decided = machines.users.during(lost, began + 0.5, until, "decisions")
    refused = machines.users.during(lost, began + 0.5, until, "feedback")
    print(
        f"{lost} was cut off, {other} led after {took:.1f} s; {len(decided)} decisions, "
        f"in at most {longest(decided):.2f} s; {len(refused)} refused, "
        f"in at most {longest(refused):.2f} s"
    )
    assert len(decided) > 5
    assert {each.status for each in decided} == {201}, "decisions go on"
    assert longest(decided) < TIMEOUT, "and wait for no connection"
    assert refused
    assert {each.status for each in refused} == {503}
    assert {each.status for each in machines.users.during(other, began, until, "decisions")} == {201}
    healed = time.monotonic()
    wait_for(60.0, lambda: "taken" if taken(machines, lost, healed) else "")  # answers are taken again
    now = store.leaders()["everybody"]
    assert (now.name.split("-")[1], now.fencing_token > before.fencing_token) == (other, True), (
        "who led lets go"
    )


def longest(asked: list[Asked]) -> float:
    """Seconds."""
    return max((each.ended - each.began for each in asked), default=0.0)


def taken(machines: Machines, machine: str, since: float) -> bool:
    asked = machines.users.during(machine, since, time.monotonic(), "feedback")
    return any(0 < each.status < 300 for each in asked)


@pytest.mark.slow
def test_machines_that_are_cut_off_lose_nothing_that_they_acknowledged(tmp_path: Path) -> None:
    with site(tmp_path) as machines:
        made, store, users = machines.made, machines.store, machines.users
        wait_for(120.0, lambda: more_menus(store, 2) if "everybody" in store.populations() else "")
        for name in MACHINES:
            wait_for(60.0, lambda name=name: "taken" if taken(machines, name, 0.0) else "")  # type: ignore[misc]
        began = time.monotonic()
        cut_off(machines, made.cut, made.heal)
        cut_off(machines, made.cut, made.heal)
        cut_off(machines, lambda name: made.deafen(name, "db"), lambda name: made.undeafen(name, "db"))
        machines.auditor.look()
        there = len(store.menus(1))
        wait_for(60.0, lambda: more_menus(store, there + 1))
        users.stop()
        time.sleep(DEADLINE + SETTLES)
        told = {each.status for each in users.told.asked if each.began > began}
        assert told == {201, 202, 503}, "everybody was told something"
        result = judged(machines.auditor.record(users.told, machines.tokens, []))
        print(result)
        assert result.unknown < result.in_time / 20
        check(result)
