"""What can be done wrong where users exclude items; planted into overlap greedy (`PLANTED`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from diminuendo.types import Items


def stand_ins_by_public_rng(policy: Any, broken: bool) -> None:
    """Whoever excludes something is shown her slate in an order that is drawn with public coins, which others need."""
    draw, frame = policy.draw, policy.frame

    def drawn(row: Items, probe: Items) -> bool:
        excludes = len(frame.excluding.items) > 0
        done = bool(draw(row, probe))
        if done and excludes and broken:
            row[:] = np.roll(row, int(frame.public.take(1)[0] % len(row)))
        return done

    policy.draw = drawn


def refunded_rounds(policy: Any, broken: bool) -> None:
    """A round in which something was excluded is given back: it does not bring the end of a batch nearer."""
    draw, frame, schedule, given_back = policy.draw, policy.frame, policy.plan.schedule, [0]

    def drawn(row: Items, probe: Items) -> bool:
        excludes = len(frame.excluding.items) > 0
        done = bool(draw(row, probe))
        given_back[0] += done and excludes and broken
        return done

    def due() -> bool:
        closed = schedule.closed_by(max(0, frame.closed - given_back[0]))
        return bool(policy._position.made < min(policy.plan.releases, closed))

    policy.draw, policy.due = drawn, due
