"""Two trainers that both believe that they lead, as real processes on PostgreSQL: only one of them is ever heard.

The leader sleeps for a minute, is cut off from its connections, or is frozen in the midst of what it publishes; another
one leads, and then it wakes up. The database notes who has written what while who led, and the judge reads it. In one
process and at once, on both stores: `test_who_led_before_is_refused_also_in_the_midst_of_something` and its neighbours.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from diminuendo.service.processes import Child
from tests.kit.postgres import Server
from tests.service.chaos import Playing, finished, playing
from tests.service.database import Database, Moment, role_of
from tests.service.test_many_trainers import TAKEOVER, USERS, check, leader, led_by, more_menus, wait_for

pytestmark = pytest.mark.slow

MINUTE = 60.0
FROZEN: list[tuple[str, Moment]] = [
    ("menu", "within"),  # nothing of the publication is there
    ("menu", "at commit"),  # it is there, and nobody was told
    ("release", "at commit"),  # drawn and kept, not yet entered
    ("line", "at commit"),  # entered, not yet published; or charged for, not yet drawn
]


def test_a_leader_that_sleeps_for_a_minute_wakes_up_harmless(tmp_path: Path, postgres_server: Server) -> None:
    database = Database(postgres_server)
    with playing(tmp_path, USERS, 2.0, 2, 'trainer_keys = "store"', database) as site:
        wait_for(90.0, lambda: more_menus(site.store, 2))
        child = leader(site)
        stop(child)
        began = time.monotonic()
        follows(site, child)
        site.watch(max(0.0, began + MINUTE - time.monotonic()))
        wakes_up(site, child)
        check(finished(site))


def test_a_leader_whose_connections_are_ended_goes_on_or_is_followed(
    tmp_path: Path, postgres_server: Server
) -> None:
    """Again and again while it is awake; then once while it sleeps, so that it wakes up with none."""
    database = Database(postgres_server)
    with playing(tmp_path, USERS, 2.0, 2, 'trainer_keys = "store"', database) as site:
        wait_for(90.0, lambda: more_menus(site.store, 2))
        ended = 0
        for _ in range(20):
            ended += database.end(role_of(led_by(site.store)))
            site.watch(0.5)
        assert ended > 20
        child = leader(site)
        stop(child)
        assert database.end(role_of(led_by(site.store)))
        follows(site, child)
        wakes_up(site, child)
        check(finished(site))


def test_a_leader_that_is_frozen_in_the_midst_of_a_publication_is_superseded(
    tmp_path: Path, postgres_server: Server
) -> None:
    database = Database(postgres_server)
    with playing(tmp_path, USERS, 2.0, 2, 'trainer_keys = "store"', database) as site:
        for kind, moment in FROZEN:
            there = site.menus()
            wait_for(90.0, lambda there=there: more_menus(site.store, there + 1))  # type: ignore[misc]
            with database.holding(kind, moment):
                who = wait_for(60.0, database.held)
                child = leader(site)
                assert role_of(led_by(site.store)) == who
                stop(child)
                assert database.held() == who, "it is stopped in the midst of it"
            follows(site, child)
            wakes_up(site, child)
        check(finished(site))


def stop(child: Child) -> None:
    assert child.process is not None
    child.process.send_signal(signal.SIGSTOP)


def follows(site: Playing, child: Child) -> None:
    """The other one leads in time, and publishes while the first one sleeps."""
    before, began = led_by(site.store), time.monotonic()
    name = wait_for(TAKEOVER, lambda: led_by(site.store).replace(before, ""))
    print(f"{child.name} is followed by {name} after {time.monotonic() - began:.1f} s")
    there = site.menus()
    wait_for(30.0, lambda: more_menus(site.store, there))


def wakes_up(site: Playing, child: Child) -> None:
    """It goes on, and leads nothing."""
    now = site.store.leaders()["everybody"]
    assert child.process is not None
    child.process.send_signal(signal.SIGCONT)
    site.watch(5.0)
    assert child.process.poll() is None, "it goes on"
    assert site.store.leaders()["everybody"] == now, "and leads nothing"
