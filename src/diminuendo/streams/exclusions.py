"""Exclusions: items that a user may not be shown, because they have them already or do not want them.

For each user the numbers of some items, as `[[3, 4], [], [7]]`, or yes and no for all of them, one row per user, as
an array or a scipy matrix. Names of items are no numbers, and are left out. Exclusions of a user change the slate of
this user and nothing else, and no other user may learn them (docs/maths/rules.md). So no exclusion is ever an error,
which others might see: what is no item is left out.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from diminuendo.errors import InvalidInput
from diminuendo.privacy.process_guard import call_untrusted
from diminuendo.types import Ints, Items

READ = 16
"""Of what one user excludes as much is read as all items would be, each said this often; what follows is left out."""


class Exclusions(NamedTuple):
    """What some users exclude, for compiled code."""

    starts: Ints
    """Where the items of each user begin, and, last, where they all end."""
    items: Items
    """Rising, for each user, none twice."""

    def __repr__(self) -> str:
        return "<Exclusions>"

    def since(self, user: int) -> Exclusions:
        """Of the users from that one on."""
        return Exclusions(self.starts[user:], self.items) if len(self.items) else NONE

    def of(self, user: int) -> list[int]:
        """What one user excludes."""
        result: list[int] = self.items[self.starts[user] : self.starts[user + 1]].tolist()
        return result


NONE = Exclusions(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32))
"""Where there are no exclusions."""


def exclusions_of(given: Any, users: int, n_items: int) -> Exclusions:
    """The exclusions of each of `users`: a list each, None, or an array or a scipy matrix of yes and no."""
    if given is None:
        return NONE
    if hasattr(given, "tocsr") or (isinstance(given, np.ndarray) and given.dtype == np.bool_):
        return _of_matrix(given, users, n_items)
    if not hasattr(given, "__len__") or len(given) != users:
        many = len(given) if hasattr(given, "__len__") else type(given).__name__
        raise InvalidInput(f"exclude must have items for each of {users:,} users; got {many}.")
    rows = [_items(each, n_items) for each in given]
    starts = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return Exclusions(starts, np.concatenate([*rows, NONE.items]))


def _of_matrix(given: Any, users: int, n_items: int) -> Exclusions:
    if given.shape != (users, n_items):
        raise InvalidInput(
            f"exclude must have a row for each of {users:,} users and a column for each of {n_items:,} items; "
            f"got shape {given.shape}."
        )
    if isinstance(given, np.ndarray):
        whose, items = np.nonzero(given)
        return Exclusions(np.searchsorted(whose, np.arange(users + 1)), items.astype(np.int32))
    rows = given.tocsr(copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    rows.sort_indices()
    return Exclusions(rows.indptr.astype(np.int64), rows.indices.astype(np.int32))


def _items(given: Any, n_items: int) -> Items:
    """What one user excludes, as far as it is items. Nothing is refused: foreign objects may raise what they like."""
    result = set[int]()

    def read() -> None:
        if isinstance(given, np.ndarray):
            mask = given.dtype == np.bool_ and given.shape == (n_items,)
            many = np.flatnonzero(given).tolist() if mask else given.ravel().tolist()
        else:
            many = [given] if isinstance(given, (int, float, np.integer, np.floating)) else given
        for item in islice(many, READ + READ * n_items):
            number = isinstance(item, (int, float, np.integer, np.floating)) and not isinstance(item, bool)
            if number and 0 <= item < n_items and item == int(item):
                result.add(int(f"{int(item)}"))  # a plain number, whatever else it can do

    call_untrusted(read)
    return np.array(sorted(item for item in result if item < n_items), dtype=np.int32)
