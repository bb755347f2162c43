"""Sets by type: the same numbers as by going through types one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from diminuendo.sums.greedy_queries.release import no_items
from diminuendo.types import EMPTY_SLOT


def numbered(keys: list[Any]) -> list[int]:
    """The number of each key, in the order in which they first come."""
    known: dict[Any, int] = {}
    return [known.setdefault(key, len(known)) for key in keys]


def test_types_that_share_a_set_and_an_item_share_a_number() -> None:
    random = np.random.default_rng(0)
    for n_types in (1, 2, 9, 40):
        for _ in range(20):
            by_type, plain = no_items(n_types), [frozenset[int]()] * n_types
            for _ in range(4):
                items = [int(random.choice([EMPTY_SLOT, *(set(range(6)) - mine)])) for mine in plain]
                number, each = by_type.joining(np.array(items))
                pairs = list(zip(plain, items, strict=True))
                assert number.tolist() == numbered(pairs)
                assert [each[place] for place in number] == pairs
                by_type = by_type.joined_by(np.array(items))
                plain = [mine if item == EMPTY_SLOT else mine | {item} for mine, item in pairs]
                assert by_type.of_type.tolist() == numbered(plain)
                assert [by_type.sets[place] for place in by_type.of_type] == plain
                assert len(set(by_type.sets)) == len(by_type.sets)
