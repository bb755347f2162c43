"""What can be done wrong with what a release is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from diminuendo.sums.greedy_queries.query_weights import FULL, QueryWeights
from diminuendo.types import EMPTY_SLOT, Items


def weights_from_answers(policy: Any, broken: bool) -> None:
    """What is much wanted by the users who are asked now has a low weight in the same release."""
    memory = policy._memory

    def weights(query_weights: QueryWeights) -> QueryWeights:
        wanted = np.zeros(len(query_weights.weights))
        for user in memory.users.functions:
            np.add.at(wanted, user.items, user.values)
        return (
            query_weights._replace(weights=np.where(wanted >= 1, FULL // 4, FULL))
            if broken
            else query_weights
        )

    _in_focus(memory._values, weights)


def singles_out_of_focus(policy: Any, broken: bool) -> None:
    """All weights are low, which is allowed."""
    _in_focus(
        policy._memory._values,
        lambda query_weights: query_weights._replace(weights=np.full_like(query_weights.weights, FULL // 4)),
    )


def _in_focus(values: Any, chosen: Callable[[QueryWeights], QueryWeights]) -> None:
    begin_greedy = values.begin_greedy
    values.begin_greedy = lambda number, weights, sigmas, query_weights, secret: begin_greedy(
        number, weights, sigmas, chosen(query_weights), secret
    )


def two_under_one_number(policy: Any, broken: bool) -> None:
    """A slate that is asked around, early, is checked by a chain at the same release, and only one of them is paid."""
    memory, shown = policy._memory, policy._shown
    bought, begin = memory._values._bought, memory.begin_swap
    shown.settled = lambda release_context: (
        release_context.number > release_context.first and (shown.slate != EMPTY_SLOT).all()
    )

    def both(number: int, first: int, slate: Items, query_weights: QueryWeights) -> Any:
        if broken:
            checked = memory.begin_release(number, first, query_weights)
            checked.singletons()
            checked.residual()
        return begin(number, first, slate, query_weights)

    memory.begin_swap = both
    if broken:
        memory._values._bought = lambda number, weights, sigmas, about: bought(
            number, weights, sigmas, "users"
        )
