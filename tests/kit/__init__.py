"""What tests share: oracles by brute force, and how hard hypothesis should try."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

EFFORT = int(os.environ.get("DIMINUENDO_TEST_EFFORT", "0"))
"""0: the same examples every time. From 1 on: that many times as many, new ones in each run."""


def examples(count: int) -> settings:
    """Settings for a property tried on about `count` examples; the first call of a kernel compiles it."""
    return settings(
        max_examples=count * max(1, EFFORT),
        deadline=None,
        derandomize=EFFORT == 0,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
