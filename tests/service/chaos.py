"""Kill -9, at random, of front ends and trainer while people come: nothing acknowledged is lost, nothing counts twice.

A site whose noise is far below one (epsilon 100,000: nobody is protected here) publishes exact totals. Everybody who
answers says 1, so all that was published adds up to the number of answers that counted. It is compared with what
clients were told. On PostgreSQL, processes of the server are killed as well. Run by itself it prints what it saw:

    python -m tests.service.chaos FOLDER KILLS PEOPLE [postgres]
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import asyncpg
import msgspec
import numpy as np

from diminuendo.client import Client
from diminuendo.errors import DiminuendoError, StoreUnavailable
from diminuendo.privacy.ledger import Ledger
from diminuendo.service.front.tokens import Tokens
from diminuendo.service.keys import new_access_key, read_keys
from diminuendo.service.prepare import prepared
from diminuendo.service.processes import Child, Processes
from diminuendo.service.records import PublicMenu
from diminuendo.service.site import Site, read_site
from diminuendo.service.store import MenuRow, Store, open_store
from tests.kit import postgres
from tests.kit.postgres import Server

SETTLES = 15.0
"""Seconds after the last lease has expired, when all is settled and released."""
TICKS = 1 << 10
"""What one answer adds to a total that is published (learners/slates/totals.py)."""
SITE = """
store = "{store}"
keys = "keys"
listen = "127.0.0.1:0"
front_ends = 2
[access]
serve = ["{hashed}"]
[populations.everybody]
epsilon = 100000.0
delta = 0.0
[placements.home]
population = "everybody"
items = 12
slots = 2
feedback = "bandit"
people = {people}
epsilon = 100000.0
delta = 0.0
deadline = "{deadline} s"
tick = 0.2
allowance = 0.2
per_second = 400
"""


@dataclass
class Seen:
    """What clients were told, and what the store says afterwards."""

    kills: int = 0
    decisions: list[str] = field(default_factory=list)
    """Tokens."""
    acknowledged: list[tuple[str, bool]] = field(default_factory=list)
    """Tokens of answers that were acknowledged, and whether surely in time."""
    twice: int = 0
    """How many rounds were handed out twice."""
    in_time: int = 0
    """Acknowledged answers that count, surely in time."""
    late: int = 0
    """Those that were acknowledged too late to be sure."""
    published: float = 0.0
    """What all totals add up to."""
    releases: int = 0
    fillers: int = 0


class Load:
    """People who come, are shown something, and most of whom answer, some of them twice."""

    def __init__(self, address: str, key: str, threads: int = 6) -> None:
        self._address, self._key, self.seen = address, key, Seen()
        self.stopped, self._lock = threading.Event(), threading.Lock()
        self._threads = [threading.Thread(target=self._come, args=(each,)) for each in range(threads)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self.stopped.set()
        for thread in self._threads:
            thread.join()

    def _come(self, number: int) -> None:
        coins = random.Random(number)
        with Client(self._address, self._key, pause=0.0, timeout=2.0) as shop:
            while not self.stopped.is_set():
                try:
                    shown = shop.decide_many("home", 8)
                    with self._lock:
                        self.seen.decisions += [each.token for each in shown]
                    answering = [each for each in shown if coins.random() < 0.9]
                    if coins.random() < 0.2:
                        time.sleep(coins.random())
                    for each in [*answering, *answering[:1]]:
                        shop.answer(each.token, payoff=1.0)
                    shop.flush()
                    now = time.time()
                    with self._lock:
                        self.seen.acknowledged += [
                            (each.token, now <= each.answer_before) for each in answering
                        ]
                except DiminuendoError:
                    time.sleep(0.05)


class Playing(NamedTuple):
    """A site that runs, and people who come to it."""

    site: Site
    processes: Processes
    load: Load
    store: Store


@contextmanager
def playing(
    folder: Path, people: int, deadline: float, trainers: int = 1, more: str = "", store: str = "site.db"
) -> Iterator[Playing]:
    """A site in that folder, with people who come from the beginning. `more`: further options, at the top."""
    key, hashed = new_access_key()
    path = folder / "site.toml"
    told = SITE.format(hashed=hashed, people=people, deadline=deadline, store=store)
    path.write_text(f"trainers = {trainers}\n{more}\n{told}")
    site = read_site(path)
    list(prepared(site))
    processes = Processes(path, site.host, site.port, site.front_ends, lambda line: None, site.trainers)
    load = Load(f"http://127.0.0.1:{processes.port}", key)
    kept = open_store(site.store)
    try:
        processes.watch()
        load.start()
        yield Playing(site, processes, load, kept)
    finally:
        load.stopped.set()
        for child in processes.children:  # one that was stopped does not hear that it should end
            if child.process is not None and child.process.poll() is None:
                child.process.send_signal(signal.SIGCONT)
        processes.stop()
        kept.close()


def finished(playing: Playing, people: int) -> Seen:
    """Until the horizon; then everything is compared."""
    until = time.monotonic() + 600
    while not over(playing.store, people) and time.monotonic() < until:
        playing.processes.watch()
        time.sleep(0.2)
    playing.load.stop()
    compare(playing.load.seen, playing.store, Tokens(read_keys(playing.site.keys).tokens, 1))
    return playing.load.seen


def played(
    folder: Path,
    kills: int,
    people: int,
    *,
    pause: float,
    deadline: float,
    seed: int = 0,
    trainers: int = 1,
    more: str = "",
    store: str = "site.db",
    killers: Sequence[Callable[[random.Random], int]] = (),
) -> Seen:
    """A site in that folder, killed that many times; then it goes on until its horizon, and everything is compared.

    `killers`: who else kills something, and says how much.
    """
    coins = random.Random(seed)
    with playing(folder, people, deadline, trainers, more, store) as site:
        while site.load.seen.kills < kills:
            time.sleep(coins.uniform(0.2, 2 * pause))
            which = coins.randrange(len(killers) + len(site.processes.children))
            site.load.seen.kills += (
                killers[which](coins)
                if which < len(killers)
                else kill(site.processes.children[which - len(killers)])
            )
            site.processes.watch()
        return finished(site, people)


def kill(child: Child) -> int:
    """Kill -9, and let it be started again at once."""
    if child.process is None or child.process.poll() is not None:
        return 0
    child.process.send_signal(signal.SIGKILL)
    child.process.wait()
    child.process = None
    return 1


def killers_of(server: Server, database: str) -> list[Callable[[random.Random], int]]:
    """Who ends one connection, and who kills its process, after which all of them end and the server recovers."""

    def pick(coins: random.Random) -> int | None:
        query = (
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        found = sorted(pid for (pid,) in server.sql(database, query))
        return coins.choice(found) if found else None

    def end(coins: random.Random) -> int:
        try:
            which = pick(coins)
            return 0 if which is None else len(server.sql(database, f"SELECT pg_terminate_backend({which})"))
        except (OSError, asyncpg.PostgresError):
            return 0  # it recovers

    def crash(coins: random.Random) -> int:
        try:
            which = pick(coins)
            if which is None:
                return 0
            os.kill(which, signal.SIGKILL)
            return 1
        except (OSError, asyncpg.PostgresError):
            return 0

    return [end, crash]


def over(store: Store, people: int) -> bool:
    """Whether all rounds were handed out, and those of all blocks but the last are settled."""
    try:
        menus, leases = store.menus(1), store.leases(1, 0)
        handed_out = bool(leases) and leases[-1].end == people
        return (
            handed_out
            and store.now() > leases[-1].expires_at + SETTLES
            and leases[0].first >= first_of(menus[-1])
        )
    except StoreUnavailable:
        return False


def first_of(menu: MenuRow) -> int:
    """The round that a block begins with."""
    return msgspec.json.decode(menu.body, type=PublicMenu).first


def compare(seen: Seen, store: Store, tokens: Tokens) -> None:
    """Fill in what the store says, and what clients were told, of all blocks that were published."""
    books = store.books("everybody", 0)
    names = [drawn.name for drawn in Ledger.on(books).drawn]
    assert len(names) == len(set(names)), "a release was entered twice"
    totals = [name for name in names if ".plan" not in name]
    seen.releases = len(totals)
    published = [books.releases.once(name, lambda: np.zeros(0, dtype=np.int64)) for name in totals]
    seen.published = sum(int(each.sum()) for each in published) / TICKS
    blocks = sorted({first_of(menu) for menu in store.menus(1)})
    shown = [tokens.open(token) for token in seen.decisions]
    rounds = [each.round for each in shown if each.counts]
    seen.twice = len(rounds) - len(set(rounds))
    seen.fillers = len(shown) - len(rounds)
    for token, sure in seen.acknowledged:
        answered = tokens.open(token)
        if answered.counts and answered.round < blocks[len(totals)]:
            seen.in_time, seen.late = seen.in_time + sure, seen.late + (not sure)


def main() -> None:
    """Play, and print what was seen."""
    folder, kills, people = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    folder.mkdir(parents=True)
    began = time.monotonic()
    with ExitStack() as ending:
        store, killers = "site.db", list[Callable[[random.Random], int]]()
        if "postgres" in sys.argv:
            server = ending.enter_context(postgres.running())
            database = server.database()
            store, killers = server.address(database), killers_of(server, database)
        seen = played(folder, kills, people, pause=1.5, deadline=4.0, store=store, killers=killers)
    print(
        f"{seen.kills} kills in {time.monotonic() - began:.0f} s; {len(seen.decisions):,} decisions, of them "
        f"{seen.fillers:,} fillers; {seen.twice} rounds twice; {seen.in_time:,} answers acknowledged in time and "
        f"{seen.late:,} later; {seen.releases} releases, of {seen.published:,.3f} answers in all"
    )


if __name__ == "__main__":
    main()
