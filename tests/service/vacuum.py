"""Whether PostgreSQL cleans up as fast as a busy site makes dirt: how large tables are, minute by minute.

Rounds are reserved, answers stored and a tenth of users counted at a steady rate; every few seconds a menu with a
snapshot is published, which deletes answers and ID blocks. The server is as PostgreSQL comes. Now and then it says by
table how many rows there are, and how many dead ones, its size with indexes, and how often it was vacuumed.

    python -m tests.service.vacuum [SECONDS] [ROWS A SECOND]
"""

from __future__ import annotations

import os
import random
import sys
import time
from dataclasses import replace

from diminuendo.service.records import Report
from diminuendo.service.store import AnswerRow, IdBlock, Store, UserRound, open_store
from tests.kit import postgres
from tests.kit.postgres import Server
from tests.service.store_contract import FIRST_MENU, begun

STEP, PUBLISHES, SAYS, REMEMBERS = 0.05, 5.0, 15.0, 20.0
"""Seconds: between two groups of answers, two menus, two lines; and after which answers are deleted."""
SEALED, SNAPSHOT = os.urandom(200), os.urandom(200_000)
USERS = 50_000
"""Who have names."""
SIZES = """
SELECT relname, n_live_tup, n_dead_tup, pg_total_relation_size(relid) / 1e6, autovacuum_count
FROM pg_stat_user_tables WHERE schemaname = 'diminuendo' ORDER BY 4 DESC, 1 LIMIT 6
"""


def main(seconds: float, rate: int) -> None:
    """Print a line for every table that has something to clean up."""
    with postgres.running() as server:
        database = server.database()
        with open_store(server.address(database)) as store:
            rows = busy(store, server, database, seconds, rate)
        print(f"{rows:,} answers in {seconds:.0f} s")


def busy(store: Store, server: Server, database: str, seconds: float, rate: int) -> int:
    """Play, and say every now and then how large tables are; how many answers there were."""
    fencing_token, rng, began = begun(store), random.Random(1), time.monotonic()
    done, version = 0, 1
    last: IdBlock | None = None
    marks, published, says = list[tuple[float, int]](), began, began + SAYS
    while (now := time.monotonic()) < began + seconds:
        many = int((now - began) * rate) - done
        numbers = range(done, done + many)
        named = [
            UserRound(1, rng.randrange(USERS).to_bytes(16), 10, number)
            for number in numbers
            if rng.random() < 0.1
        ]
        store.put([AnswerRow(1, number, SEALED) for number in numbers], named)
        done += many
        if last is None or last.end < done:
            report = None if last is None else Report(last.first, last.end - last.first)
            last = store.reserve_ids(1, 500, 1.5, report)
        if now > published + PUBLISHES:
            marks.append((now, done))
            before = max((number for at, number in marks if at < now - REMEMBERS), default=0)
            version, published = version + 1, now
            store.publish(
                fencing_token,
                replace(FIRST_MENU, version=version, snapshot=SNAPSHOT, gc_low_water_mark=before),
            )
            store.heartbeat("trainer", "well")
        if now > says:
            says += SAYS
            print(
                f"{now - began:.0f} s, {done / (now - began):,.0f} a second: {sizes(server, database)}",
                flush=True,
            )
        time.sleep(max(0.0, now + STEP - time.monotonic()))
    return done


def sizes(server: Server, database: str) -> str:
    """The largest tables."""
    return "; ".join(
        f"{name} {live:,}+{dead:,} rows, {size:.1f} MB, vacuumed {times} times"
        for name, live, dead, size, times in server.sql(database, SIZES)
    )


if __name__ == "__main__":
    given = [float(word) for word in sys.argv[1:]]
    main(given[0] if given else 180.0, int(given[1]) if len(given) > 1 else 3000)
