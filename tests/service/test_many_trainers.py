"""Several trainers as real processes: stopped, woken, killed while users come. One leads; totals are exactly right."""

from __future__ import annotations

import signal
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from diminuendo.errors import StoreUnavailable
from diminuendo.privacy.ledger import Ledger
from diminuendo.service.processes import Child
from diminuendo.service.store import INSTANCE, Store
from tests.service.chaos import Playing, finished, kill, playing
from tests.service.judge import Verdict

pytestmark = pytest.mark.slow

TAKEOVER = 15.0
"""Seconds, promised: from when a leader is gone until another one leads."""
USERS = 60_000


def leader(site: Playing) -> Child:
    """The process that leads."""
    name = wait_for(60.0, lambda: led_by(site.store))
    (child,) = [each for each in site.trainers() if each.name == f"trainer {name.rpartition('-')[2]}"]
    return child


def led_by(store: Store) -> str:
    """The name of the leader, without the suffix of its process; empty if there is none."""
    return store.leaders()["everybody"].name.partition(INSTANCE)[0] if "everybody" in store.leaders() else ""


def wait_for(seconds: float, what: Callable[[], str]) -> str:
    """What is not empty any more."""
    until = time.monotonic() + seconds
    while not (result := what()):
        assert time.monotonic() < until, "it never came about"
        time.sleep(0.05)
    return result


def more_menus(store: Store, than: int) -> str:
    return "there" if len(store.menus(1)) > than else ""


def check(found: Verdict) -> None:
    """Nothing acknowledged is lost or counts twice, and menus follow the ledger in one line."""
    assert found.faults == []
    assert found.releases > 4
    assert found.in_time > 500


def paused(site: Playing) -> Child:
    """The leader, stopped; not while it holds the lock of the file, as nobody could write until it goes on."""
    for _ in range(20):
        child = leader(site)
        assert child.process is not None
        child.process.send_signal(signal.SIGSTOP)
        try:
            site.store.heartbeat("somebody")
            return child
        except StoreUnavailable:
            child.process.send_signal(signal.SIGCONT)
            time.sleep(0.3)
    raise AssertionError("it always held the lock")


def test_a_leader_that_is_stopped_is_superseded_and_wakes_up_harmless(tmp_path: Path) -> None:
    """On PostgreSQL: test_split_brain.py."""
    with playing(tmp_path, USERS, 2.0, trainers=2) as site:
        wait_for(90.0, lambda: more_menus(site.store, 2))
        child, slot, before = paused(site), led_by(site.store), site.store.leaders()["everybody"]
        began = time.monotonic()
        name = wait_for(TAKEOVER, lambda: led_by(site.store).replace(slot, ""))
        assert name.startswith("trainer-")
        there = len(site.store.menus(1))
        wait_for(20.0, lambda: more_menus(site.store, there))  # it publishes while the other sleeps
        time.sleep(max(0.0, 20.0 - (time.monotonic() - began)))
        assert child.process is not None
        child.process.send_signal(signal.SIGCONT)
        time.sleep(5.0)
        assert child.process.poll() is None, "it goes on, and leads nothing"
        now = site.store.leaders()["everybody"]
        assert (led_by(site.store), now.fencing_token > before.fencing_token) == (name, True)
        check(finished(site))


def test_a_leader_that_is_killed_is_followed_by_another(tmp_path: Path) -> None:
    """Nobody starts it again, as on a machine that is gone."""
    with playing(tmp_path, USERS, 2.0, trainers=2, more='trainer_keys = "store"') as site:
        wait_for(90.0, lambda: more_menus(site.store, 2))
        child, before = leader(site), led_by(site.store)
        assert kill(child) == 1
        site.processes.children.remove(child)
        wait_for(TAKEOVER, lambda: led_by(site.store).replace(before, ""))
        there = len(site.store.menus(1))
        wait_for(20.0, lambda: more_menus(site.store, there))
        assert not list((tmp_path / "keys" / "trainer").glob("1-*.key")), (
            "the next one may be on another machine"
        )
        check(finished(site))


def test_a_store_of_before_is_put_back_while_front_ends_live_on(tmp_path: Path) -> None:
    """What the trainer noted in its folder is lost as well: without a high-water mark nothing is drawn."""
    with playing(tmp_path, USERS, 2.0, trainers=1, more='trainer_keys = "store"') as site:
        wait_for(90.0, lambda: more_menus(site.store, 3))
        live, old = sqlite3.connect(tmp_path / "site.db"), sqlite3.connect(tmp_path / "old.db")
        live.backup(old)
        there = len(site.store.menus(1))
        wait_for(60.0, lambda: more_menus(site.store, there + 4))
        time.sleep(6.0)  # front ends show them
        trainer = site.processes.children[0]
        assert kill(trainer) == 1
        old.backup(live)
        for path in (tmp_path / "keys" / "trainer").iterdir():
            if path.name != "master.key":
                path.unlink()
        known = len(site.store.menus(1))
        assert known < there + 4
        drawn = [each.name for each in Ledger.on(site.store.books("everybody", None)).drawn]
        site.processes.watch()
        time.sleep(
            15.0
        )  # it is started again and again, and refuses: a history, and no mark of how far it came
        assert [each.name for each in Ledger.on(site.store.books("everybody", None)).drawn] == drawn
        assert len(site.store.menus(1)) == known
        site.users.stop(at_once=True)
        for each in (live, old):
            each.close()
