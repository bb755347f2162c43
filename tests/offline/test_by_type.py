"""A slate for each type in hindsight: greedy on the users of each, and labels that say nothing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from diminuendo import NoisyOr, Users
from diminuendo.errors import InvalidInput
from diminuendo.offline import greedy, greedy_by_type, shuffled
from diminuendo.streams import taste_groups
from diminuendo.streams.contexts import Contexts


def test_each_type_has_greedys_slate_for_its_users() -> None:
    rows = np.array([[1, 0, 0], [0, 0.5, 0], [0, 0, 1], [1, 0, 0], [0, 0.25, 0.1]])
    users = Users(NoisyOr(), rows).with_contexts(Contexts(x=["a", "b"]), np.array([0, 1, 1, 0, -1]))
    result = greedy_by_type(users, 1)
    assert {kind: hindsight.slate for kind, hindsight in result.slates.items()} == {0: (1,), 1: (0,), 2: (2,)}
    assert result.users == {0: 1, 1: 2, 2: 2}
    assert result.value == pytest.approx((0.25 + 1 + 1 + 0 + 1) / 5)


def test_no_slates_by_type_are_better_where_one_item_is_shown() -> None:
    """With one slot greedy is best: all ways to give each type a slate are tried."""
    users = taste_groups(60, 5, groups=3, items_per_group=2, right=0.7).with_columns(["group"])
    assert users.types is not None
    kinds = np.unique(users.types)
    best = max(
        users.values(np.array(items)[np.searchsorted(kinds, users.types)][:, None]).mean()
        for items in itertools.product(range(5), repeat=len(kinds))
    )
    assert greedy_by_type(users, 1).value == pytest.approx(best)


def test_shuffled_labels_keep_sizes_and_know_nothing() -> None:
    users = taste_groups(4_000, 30, groups=5, items_per_group=5, right=1.0).with_columns(["group"])
    assert users.types is not None
    dealt = shuffled(users.types)
    assert np.array_equal(np.sort(dealt), np.sort(users.types))
    assert np.array_equal(dealt, shuffled(users.types)), "the same every time"
    one, own = greedy(users, 3).value, greedy_by_type(users, 3).value
    chance = greedy_by_type(users, 3, dealt).value
    assert own > 1.3 * one
    assert one <= chance < 1.02 * one, "and they cannot lose in hindsight"


def test_types_must_be_known() -> None:
    with pytest.raises(InvalidInput, match="Nothing is known of the users of taste-groups"):
        greedy_by_type(taste_groups(10), 2)
    with pytest.raises(InvalidInput, match="one for each of 10 users; got 3"):
        greedy_by_type(taste_groups(10), 2, np.zeros(3, dtype=np.int64))
