"""Random kills of a whole site; `python -m tests.service.chaos FOLDER 200 60000` is the same for longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.service.chaos import played


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_or_counted_twice(tmp_path: Path) -> None:
    seen = played(tmp_path, kills=30, people=12_000, pause=1.0, deadline=4.0)
    assert seen.kills == 30
    assert seen.twice == 0, "rounds were handed out twice"
    assert seen.releases > 5
    assert seen.in_time > 3_000
    assert seen.in_time <= seen.published <= seen.in_time + seen.late
