"""What can be done wrong with what a release is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from diminuendo.sums.chains.focus import FULL, Focus
from diminuendo.types import EMPTY_SLOT, Items


def weights_from_answers(policy: Any, broken: bool) -> None:
    """What is much wanted by the users who are asked now has a low weight in the same release."""
    memory = policy._memory

    def weights(focus: Focus) -> Focus:
        wanted = np.zeros(len(focus.weights))
        for user in memory.users.functions:
            np.add.at(wanted, user.items, user.values)
        return focus._replace(weights=np.where(wanted >= 1, FULL // 4, FULL)) if broken else focus

    _in_focus(memory._values, weights)


def singles_out_of_focus(policy: Any, broken: bool) -> None:
    """All weights are low, which is allowed."""
    _in_focus(
        policy._memory._values, lambda focus: focus._replace(weights=np.full_like(focus.weights, FULL // 4))
    )


def _in_focus(values: Any, chosen: Callable[[Focus], Focus]) -> None:
    focused = values.focused
    values.focused = lambda number, weights, sigmas, focus, secret: focused(
        number, weights, sigmas, chosen(focus), secret
    )


def two_under_one_number(policy: Any, broken: bool) -> None:
    """A slate that is asked around, early, is checked by a chain at the same release, and only one of them is paid."""
    memory, shown = policy._memory, policy._shown
    bought, begin = memory._values._bought, memory.begin_around
    shown.settled = lambda occasion: occasion.number > occasion.first and (shown.slate != EMPTY_SLOT).all()

    def both(number: int, first: int, slate: Items, focus: Focus) -> Any:
        if broken:
            checked = memory.begin_release(number, first, focus)
            checked.singles()
            checked.rest()
        return begin(number, first, slate, focus)

    memory.begin_around = both
    if broken:
        memory._values._bought = lambda number, weights, sigmas, about: bought(
            number, weights, sigmas, "users"
        )
