"""What blocks of slates say of health: the rewards that were published of each, and what they should be. Public."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from diminuendo.learners.base.frame import Frame
from diminuendo.learners.health import EARLY, EXPLORED, LEARNED, LEAST, LaplaceNoise, Signal, floor_for
from diminuendo.learners.slates.blocks import WHICH_SLOT, numbers_per_slate, sensitivity_of
from diminuendo.learners.slates.planner import FIRST_SHARE, SlatePlanner
from diminuendo.sums.private_counts import Counts
from diminuendo.types import Floats, Ints


def new_signal(planner: SlatePlanner, known_horizon: bool) -> Signal:
    """The floor is what a part of all rounds tells from silence, if each slate is asked about one number."""
    if not known_horizon:
        return Signal(LEAST)
    few = planner.users_at_first
    at_first = min(math.ceil(planner.n_items / planner.slots) * few, FIRST_SHARE * planner.horizon)
    slates = (planner.horizon / EARLY - planner.ahead - at_first) / few
    answers, variance = slates * few * planner.response_rate, slates * 2 * planner.noise.of(1) ** 2
    return Signal(floor_for([(answers, variance)] if slates > 0 else [], EXPLORED))


def take_stock(
    signal: Signal, counts: Counts, frame: Frame, first: int, questions: Ints, answers: Any, total: float,
    rounds: int, *, often: Any = 1, hidden: Any = False, drifted: bool, at_random: bool = False,
) -> None:  # fmt: skip
    """A block was published that began with round `first`: rewards of its `rounds`, noise included, were `total`.

    `answers`: of each slate, how many are expected. `often`: how often each slate's numbers are published, and `hidden`
    whether with the noise of hidden cells. A slate of which less than the whole is asked should earn less; and so
    should random slates: those that were planned before anything was published since the last drift, and
    others that are known to be `at_random`.
    """
    slots, learned = frame.slots, signal.array[LEARNED]
    at_random |= bool(learned < 0 or first < learned)
    asked: Floats = np.where(questions == WHICH_SLOT, slots, questions) / slots
    expected = float((np.asarray(answers) * asked).sum()) * (slots / frame.n_items if at_random else 1.0)
    moved = np.where(hidden, 2, sensitivity_of(questions))
    numbers = numbers_per_slate(questions, slots) * often
    kinds = (1, 2)
    scales = [counts.scale(each) if counts.noisy else 0.0 for each in kinds]
    noise = LaplaceNoise(scales, [numbers[moved == each].sum() for each in kinds], counts.ticks)
    signal.add(total, expected, rounds, noise, drifted=drifted)
    signal.array[LEARNED] = -1 if drifted else frame.rounds if learned < 0 else learned
