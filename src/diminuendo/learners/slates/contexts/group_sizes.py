"""What was published of a block, understood: of how many users it is, and how sure that is. Public.

Where contexts are public, users were counted as they came. Where they are private, how many of a group came is known
from noisy numbers alone: the rounds of its deck times the share of its users, corrected by what the cells of a slate
add up to, which is a noisy number of users who answered.
"""

from __future__ import annotations

import numpy as np

from diminuendo.learners.base.frame import Frame
from diminuendo.learners.slates.contexts.blocks import GroupBlock, OpenGroupBlock
from diminuendo.learners.slates.contexts.segments import SegmentShares
from diminuendo.types import Floats, Ints


def estimate_group_sizes(
    opened: OpenGroupBlock,
    published: list[Floats],
    users: Ints,
    noisy: Floats,
    segment_shares: SegmentShares,
    frame: Frame,
) -> tuple[list[Floats], Floats, Floats, Floats]:
    """What was published of each slate and part; of how many users, how sure that is; and the scale of noise.

    `users`: as counted when they came, where contexts are public. `noisy`: the scale of each slate's noise. What is
    learned of how many users come goes to `coming`.
    """
    plan, response_rate = opened.plan, frame.feedback_window.response_rate
    counted = users.reshape(len(plan.is_split), plan.n_parts).astype(np.float64)
    unsure = np.zeros_like(counted)
    if not segment_shares.private:
        return published, np.where(plan.is_split[:, None], counted, 0) + _whole(plan, counted), unsure, noisy
    rounds, shares = opened.rounds_of(frame.silent_rounds(opened.first, opened.end)), segment_shares.shares()
    part_shares = np.bincount(plan.parts[plan.parts >= 0], shares[plan.parts >= 0], plan.n_parts)
    counted[:] = 0.0
    for row, numbers in enumerate(published):
        if not plan.hidden[row]:
            counted[row, 0] = rounds[row]
            continue
        of_part = part_shares if plan.is_split[row] else part_shares.sum()[None]
        expected = of_part * rounds[row]
        said = numbers.sum(axis=1) / response_rate
        noise = 2 * numbers.shape[1] * noisy[row] ** 2 / response_rate**2
        spread = expected * (1 + expected / max(1.0, rounds[row]))
        trust = spread / (spread + noise) if noise else np.ones_like(spread)
        counted[row, : len(said)] = np.maximum(expected + trust * (said - expected), 1.0)
        unsure[row, : len(said)] = spread * (1 - trust)
        for part in range(len(said)):
            whose = np.flatnonzero(plan.parts == part)
            if len(whose) == 1 and (plan.is_split[row] or plan.n_parts == 1):
                segment_shares.published(int(whose[0]), float(said[part]), float(rounds[row]), noise)
    spoken = [
        numbers[:, :-1] if hidden else numbers for numbers, hidden in zip(published, plan.hidden, strict=True)
    ]
    return spoken, counted, unsure, noisy


def _whole(plan: GroupBlock, counted: Floats) -> Floats:
    """Where a slate does not tell parts apart, all users are of the first."""
    result = np.zeros_like(counted)
    result[~plan.is_split, 0] = counted[~plan.is_split].sum(axis=1)
    return result
