"""docs/scaling.md says what was measured, and nothing that somebody typed."""

from __future__ import annotations

import json

from benchmarks.scaling import PAGE, RESULTS, reckoned, written


def test_the_page_says_what_was_measured() -> None:
    page = PAGE.read_text()
    result = json.loads(RESULTS.read_text())
    assert written(page, result) == page
    result["http"]["decision"] *= 2
    assert written(page, result) != page


def test_twice_as_many_users_take_twice_as_much() -> None:
    result = {
        "http": {"decision": 50.0, "answer": 50.0},
        "click": {"bytes": 100.0, "trainer": 10.0, "release, ms": 1.0},
        "full": {"bytes": 100.0, "trainer": 10.0, "release, ms": 1.0},
        "kept": {"bytes": 200.0, "replay": 10.0},
    }
    # 1e9 x 100 us are 1e5 seconds of a day of 86,400.
    assert "| front ends, a decision and an answer each | 1.2 | 5.8 |" in reckoned(result, 10**9)
    assert "| front ends, a decision and an answer each | 2.3 | 12 |" in reckoned(result, 2 * 10**9)
    assert "| 200 GB |" in reckoned(result, 10**9)
