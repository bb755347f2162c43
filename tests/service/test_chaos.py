"""Random kills of a whole site; `python -m tests.service.chaos FOLDER 200 200000 postgres` is the same for longer."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.kit.postgres import Server
from tests.service.chaos import played
from tests.service.database import Database
from tests.service.judge import Verdict

KILLS = 24


@pytest.mark.slow
@pytest.mark.parametrize("keys", ["folder", "store"])
def test_nothing_acknowledged_is_lost_or_counted_twice(keys: str, tmp_path: Path) -> None:
    more = f'trainer_keys = "{keys}"'
    check(*played(tmp_path, KILLS, 60_000, pause=2.5, deadline=3.0, more=more))


@pytest.mark.slow
def test_nor_where_processes_of_the_database_are_killed(tmp_path: Path, postgres_server: Server) -> None:
    more, database = 'trainer_keys = "store"', Database(postgres_server)
    result, killed = played(tmp_path, KILLS, 60_000, pause=2.5, deadline=3.0, more=more, database=database)
    check(result, killed)
    assert result.fencing_tokens > 2


def check(found: Verdict, killed: Counter[str]) -> None:
    """That all is as it was told, and that there was something to be told."""
    assert found.faults == []
    assert KILLS <= killed.total() - killed["connection ended"] <= KILLS + 1
    assert found.releases > 4
    assert found.in_time > 500
