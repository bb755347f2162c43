"""Random kills of a whole site; `python -m tests.service.chaos FOLDER 200 60000` is the same for longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.postgres import Server
from tests.service.chaos import Seen, killers_of, played

pytestmark = pytest.mark.slow


def test_nothing_acknowledged_is_lost_or_counted_twice(tmp_path: Path) -> None:
    check(played(tmp_path, kills=30, people=12_000, pause=1.0, deadline=4.0))


def test_nor_where_processes_of_the_database_are_killed(tmp_path: Path, postgres_server: Server) -> None:
    database = postgres_server.database()
    store, killers = postgres_server.address(database), killers_of(postgres_server, database)
    check(played(tmp_path, kills=30, people=12_000, pause=1.0, deadline=4.0, store=store, killers=killers))


def check(seen: Seen) -> None:
    """That all is as it was told."""
    assert seen.kills == 30
    assert seen.twice == 0, "rounds were handed out twice"
    assert seen.releases > 5
    assert seen.in_time > 3_000
    assert seen.in_time <= seen.published <= seen.in_time + seen.late
