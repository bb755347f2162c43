"""Kill -9, at random, of front ends, trainers and the database while users come: nothing acknowledged is lost.

A site whose noise is far below one (epsilon 100,000: nobody is protected here) publishes exact totals, and a judge
compares them with what clients were told (judge.py). Two trainers share it. On PostgreSQL, connections are ended and
processes of the server are killed as well. Run by itself it prints what it saw, and fails where something is wrong:

    python -m tests.service.chaos FOLDER KILLS PEOPLE [postgres]
"""

from __future__ import annotations

import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from diminuendo.errors import DiminuendoError, StoreUnavailable
from diminuendo.service.apply import apply_site
from diminuendo.service.front.tokens import Tokens
from diminuendo.service.keys import new_access_key, read_keys
from diminuendo.service.processes import Child, Processes
from diminuendo.service.site import STORE, Site, read_site
from diminuendo.service.store import open_store
from diminuendo.service.store.sql import Store
from tests.kit import postgres
from tests.service.database import Database, role
from tests.service.judge import Auditor, Verdict, judged
from tests.service.users import Door, Users

SETTLES = 22.0
"""Seconds, and the deadline, without a menu: then killed trainers are superseded, and everything is closed."""
LONGEST = 900.0
"""Seconds for which something is killed, at most."""
GOES_ON = 300.0
"""Seconds at most from the last kill until it is finished."""
ENOUGH = 16
"""Menus: then it has released several times."""
SITE = """
store = "{store}"
keys = "keys"
listen = "127.0.0.1:0"
front_ends = 2
[access]
client = ["{hashed}"]
[populations.everybody]
epsilon = 100000.0
delta = 0.0
[placements.home]
population = "everybody"
items = 12
slots = 2
feedback = "bandit"
users = {users}
epsilon = 100000.0
delta = 0.0
deadline = "{deadline} s"
publish_interval = 0.2
publish_delay = 0.2
per_second = 400
"""


@dataclass
class Playing:
    """A site that runs, users who come to it, and who looks at what it publishes."""

    site: Site
    processes: Processes
    users: Users
    store: Store
    auditor: Auditor
    door: Door
    key: str
    deadline: float
    database: Database | None
    killed: Counter[str] = field(default_factory=Counter)

    def watch(self, seconds: float) -> None:
        """For so long, start whoever is not there, and look at what is public."""
        until = time.monotonic() + seconds
        while True:
            self.processes.watch()
            with suppress(StoreUnavailable):
                self.auditor.look()
            if time.monotonic() >= until:
                return
            time.sleep(min(0.2, max(0.0, until - time.monotonic())))

    def menus(self) -> int:
        """How many there are; 0 where the store is away."""
        try:
            return len(self.store.menus(1))
        except StoreUnavailable:
            return 0

    def trainers(self) -> list[Child]:
        return [child for child in self.processes.children if child.name.startswith("trainer")]

    def verdict(self) -> Verdict:
        """Everything is compared."""
        tokens = Tokens(read_keys(self.site.keys).tokens, 1)
        writes = [] if self.database is None else self.database.writes()
        return judged(self.auditor.record(self.users.told, tokens, writes))


@contextmanager
def playing(
    folder: Path,
    users: int,
    deadline: float,
    trainers: int = 1,
    more: str = "",
    database: Database | None = None,
) -> Iterator[Playing]:
    """A site in that folder, with users who come from the beginning. `more`: further options, at the top."""
    key, hashed = new_access_key()
    path, address = folder / "site.toml", "site.db" if database is None else database.address()
    told = SITE.format(hashed=hashed, users=users, deadline=deadline, store=address)
    path.write_text(f"trainers = {trainers}\n{more}\n{told}")
    site = read_site(path)
    list(apply_site(site))
    processes = Processes(path, site.host, site.port, site.front_ends, lambda line: None, site.trainers)
    if database is not None:
        database.watch()
        for number, child in enumerate(processes.children[:trainers]):
            child.command = ["env", f"{STORE}={database.address(role(number))}", *child.command]
    door, kept = Door("127.0.0.1", processes.port), open_store(site.store)
    result = Playing(
        site, processes, Users([door], key), kept, Auditor(kept), door, key, deadline, database
    )  # fmt: skip
    try:
        processes.watch()
        result.users.start()
        yield result
    finally:
        result.users.stop(at_once=True)
        for child in processes.children:  # one that was stopped does not hear that it should end
            if child.process is not None and child.process.poll() is None:
                child.process.send_signal(signal.SIGCONT)
        processes.stop()
        kept.close()


def finished(site: Playing) -> Verdict:
    """Until two more menus are there, and some in all, and all is settled; then everything is compared."""
    wanted, until = max(ENOUGH, site.menus() + 2), time.monotonic() + GOES_ON
    while site.menus() < wanted and not over(site):
        assert time.monotonic() < until, "it does not go on"
        site.watch(0.2)
    site.users.stopped.set()
    there, since = site.menus(), time.monotonic()
    while time.monotonic() < since + site.deadline + SETTLES:
        site.watch(0.2)
        if site.menus() > there:
            there, since = site.menus(), time.monotonic()
    site.users.stop()
    return site.verdict()


def over(site: Playing) -> bool:
    """Whether all rounds were handed out."""
    try:
        id_blocks = site.store.id_blocks(1, 0)
    except StoreUnavailable:
        return False
    rounds = site.site.placements["home"].rounds
    return bool(id_blocks) and id_blocks[-1].end == rounds


def played(
    folder: Path,
    kills: int,
    users: int,
    *,
    pause: float,
    deadline: float,
    seed: int = 0,
    trainers: int = 2,
    more: str = "",
    database: Database | None = None,
    longest: float = LONGEST,
) -> tuple[Verdict, Counter[str]]:
    """A site in that folder, killed that many times, or for as long; then it goes on, and everything is compared."""
    rng, began = random.Random(seed), time.monotonic()
    with playing(folder, users, deadline, trainers, more, database) as site:
        ways = killers(site)
        while (many := site.killed.total() - site.killed["connection ended"]) < kills:
            if time.monotonic() > began + longest:
                break
            site.watch(rng.uniform(0.2, 2 * pause))
            name = rng.choice(sorted(ways))
            if many + 1 < kills or name != "trainers at once":
                site.killed[name] += ways[name](rng)
        return finished(site), site.killed


def killers(site: Playing) -> dict[str, Callable[[random.Random], int]]:
    """Who kills something, and says how much it was."""
    trainers = site.trainers()
    fronts = [child for child in site.processes.children if child not in trainers]
    result: dict[str, Callable[[random.Random], int]] = {
        "front end": lambda rng: kill(rng.choice(fronts)),
        "trainer": lambda rng: kill(rng.choice(trainers)),
    }
    if len(trainers) > 1:
        result["trainers at once"] = lambda rng: kill(*trainers)
    if site.database is not None:
        result["connection ended"] = site.database.end_one
        result["process of the database"] = site.database.kill_one
    return result


def kill(*children: Child) -> int:
    """Kill -9 of all of them at once, and let them be started again; how many there were."""
    there = [child for child in children if child.process is not None and child.process.poll() is None]
    for child in there:
        assert child.process is not None
        child.process.send_signal(signal.SIGKILL)
    for child in there:
        assert child.process is not None
        child.process.wait()
        child.process = None
    return len(there)


def main() -> None:
    """Play, and print what was seen."""
    folder, kills, users = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    folder.mkdir(parents=True)
    began = time.monotonic()
    with ExitStack() as ending:
        database = None
        if "postgres" in sys.argv:
            database = Database(ending.enter_context(postgres.running()))
        seed = random.randrange(2**32)
        print(f"seed {seed}", flush=True)
        more = 'trainer_keys = "store"'
        result, killed = played(
            folder, kills, users, pause=2.5, deadline=3.0, seed=seed, more=more, database=database
        )
    print(", ".join(f"{name}: {many}" for name, many in sorted(killed.items())))
    print(f"{time.monotonic() - began:.0f} s; {result}")
    if result.faults:
        raise DiminuendoError("What was told and what was published do not fit together.")


if __name__ == "__main__":
    main()
