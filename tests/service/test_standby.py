"""Another database takes the place of the one that a site runs on: a standby that is promoted, or a dump put back.

One that lags has forgotten what users were shown. Nothing more is released on it: trainers know by their notes that it
is older, and where these are lost, front ends know. Decisions go on, with fallback slates, and the operator is
told what to do. One that is synchronous has everything, and all goes on.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from diminuendo.privacy.ledger import Ledger
from diminuendo.service.front.tokens import Tokens
from diminuendo.service.keys import read_keys
from diminuendo.service.trainer.high_water_marks import STOPPED
from tests.kit import postgres
from tests.kit.postgres import Server
from tests.service.chaos import Playing, finished, kill, playing
from tests.service.database import Database
from tests.service.test_many_trainers import USERS, more_menus, wait_for
from tests.service.users import asked

pytestmark = pytest.mark.slow


@contextmanager
def followed(folder: Path) -> Iterator[tuple[Playing, Server, Server]]:
    """A site that has published something, its server, and a standby that has all of it."""
    with postgres.running() as server:
        database = Database(server)
        with playing(folder, USERS, 2.0, 2, 'trainer_keys = "store"', database) as site:
            standby = server.standby()
            try:
                wait_for(90.0, lambda: more_menus(site.store, 2))
                wait_for(10.0, lambda: "it does" if standby.follows(server) else "")
                yield site, server, standby
            finally:
                site.users.stop(at_once=True)
                standby.remove()


@pytest.mark.parametrize("notes", ["kept", "lost"])
def test_a_standby_that_lags_is_not_released_on(
    notes: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with followed(tmp_path) as (site, server, standby):
        standby.cut()
        releases_and_shows_more(site)
        standby.take_over(server)
        refuses(site, notes, capfd)


def test_a_standby_that_lags_by_one_release_draws_it_not_again(tmp_path: Path) -> None:
    """Whoever leads lives on, and what is lost is hardly older than its last beat."""
    with followed(tmp_path) as (site, server, standby):
        assert site.database is not None
        with site.database.holding("release", "at commit"):
            wait_for(60.0, site.database.held)
            standby.cut()
        site.auditor.look()
        seen = site.auditor.versions()
        while site.auditor.versions() == seen:
            site.auditor.look()
        standby.take_over(server)
        began = time.monotonic()
        wait_for(30.0, lambda: "it is back" if site.menus() else "")
        known = site.menus()
        assert known < site.auditor.versions(), "a menu is lost that was there"
        site.watch(40.0)
        site.auditor.look(again=True)
        assert site.menus() == known, "nothing more is released"
        assert not site.auditor.changed()
        print(f"nothing in {time.monotonic() - began:.0f} s")


def test_a_dump_that_is_put_back_is_not_released_on(
    tmp_path: Path, postgres_server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    database = Database(postgres_server)
    with playing(tmp_path, USERS, 2.0, 2, 'trainer_keys = "store"', database) as site:
        try:
            wait_for(90.0, lambda: more_menus(site.store, 2))
            old = postgres_server.dump(database.name)
            releases_and_shows_more(site)
            postgres_server.rolled_back(old, database.name)
            refuses(site, "kept", capfd)
        finally:
            site.users.stop(at_once=True)


def test_a_synchronous_standby_takes_over_and_all_goes_on(tmp_path: Path) -> None:
    with followed(tmp_path) as (site, server, standby):
        synchronous = "ALTER SYSTEM SET synchronous_standby_names = '*'"
        server.sql("postgres", synchronous, "SELECT pg_reload_conf()")
        wait_for(10.0, lambda: "" if lags(server) else "it waits for it")
        there = site.menus()
        wait_for(60.0, lambda: more_menus(site.store, there + 2))
        standby.take_over(server)
        began = time.monotonic()
        wait_for(30.0, lambda: more_menus(site.store, there + 3))
        print(f"a menu more after {time.monotonic() - began:.1f} s")
        result = finished(site)
        print(result)
        assert result.faults == []
        assert result.releases > 4
        assert result.in_time > 500


def lags(server: Server) -> bool:
    """Whether it waits for nobody."""
    return not server.sql("postgres", "SELECT FROM pg_stat_replication WHERE sync_state = 'sync'")


def releases_and_shows_more(site: Playing) -> None:
    there = site.menus()
    wait_for(60.0, lambda: more_menus(site.store, there + 3))
    site.watch(5.0)  # front ends show them, and say so


def refuses(site: Playing, notes: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing is drawn and no menu published; who runs it is told why and what to do; users are shown fallback
    slates."""
    home, known_tokens = site.site.keys.parent, Tokens(read_keys(site.site.keys).tokens, 1)
    if notes == "lost":  # with the machine that the trainers were on
        assert kill(*site.trainers()) == 2
        for path in (home / "keys" / "trainer").iterdir():
            if path.name != "master.key":
                path.unlink()
    wait_for(30.0, lambda: "it is back" if site.menus() else "")
    capfd.readouterr()
    known, drawn = site.menus(), names(site)
    if notes == "lost":
        wait_until(site, lambda: site.store.heartbeats().get("population everybody", (0.0, ""))[1] == STOPPED)
    site.watch(25.0)
    assert (site.menus(), names(site)) == (known, drawn), "nothing more is released"
    said = capfd.readouterr().err
    if notes == "kept":
        assert "The store is older than what" in said
        assert "Put the newest one back; or begin new populations" in said
        command = [sys.executable, "-m", "diminuendo", "apply", str(home / "site.toml")]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode
        assert "The store is older than what" in " ".join(done.stderr.split())
    else:
        assert '"happened":"rolled back"' in said
    for _ in range(20):  # at all front ends
        status, content = asked(site.door, site.key, "placements/home/decisions", {"count": 3})
        assert status == 201, "decisions go on"
        tokens = [each["token"] for each in json.loads(content)["decisions"]]
        assert not any(known_tokens.open(token).counts for token in tokens), "with fallback slates"
        answers = [{"token": token, "reward": 1.0} for token in tokens]
        assert asked(site.door, site.key, "feedback", answers)[0] == 503, "nothing is acknowledged"
        assert asked(site.door, site.key, "readyz")[0] == 503, "and it is not ready"


def names(site: Playing) -> list[str]:
    """What was drawn."""
    return [each.name for each in Ledger.on(site.store.books("everybody", None)).drawn]


def wait_until(site: Playing, what: Callable[[], bool]) -> None:
    """As long as it takes, within a minute; whoever is not there is started."""
    until = time.monotonic() + 60.0
    while not what():
        assert time.monotonic() < until, "it never came about"
        site.watch(0.2)
