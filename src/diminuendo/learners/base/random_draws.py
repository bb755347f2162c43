"""Random slates, compiled: k distinct items, uniformly, in random order."""

from __future__ import annotations

from diminuendo._numba import inline, kernel
from diminuendo.randomness.words import UNFINISHED, PublicWords, begin, below, undo
from diminuendo.types import Items


@inline
def _distinct(n_items: int, row: Items, coins: PublicWords) -> bool:
    """k of n without replacement in random order (Floyd's sampling, then a shuffle)."""
    begin(coins)
    k = len(row)
    for i in range(k):
        item = below(n_items - k + i + 1, coins)
        if item == UNFINISHED:
            undo(coins)
            return False
        for j in range(i):
            if row[j] == item:
                item = n_items - k + i
                break
        row[i] = item
    for i in range(k - 1, 0, -1):
        j = below(i + 1, coins)
        if j == UNFINISHED:
            undo(coins)
            return False
        row[i], row[j] = row[j], row[i]
    return True


@kernel
def draw_random(n_items: int, row: Items, coins: PublicWords) -> bool:
    """One random slate; False, nothing used, to be resumed."""
    return _distinct(n_items, row, coins)


@kernel
def draw_random_slates(n_items: int, slates: Items, done: int, coins: PublicWords) -> int:
    """Random slates from `done` on; how far it came."""
    while done < slates.shape[0] and _distinct(n_items, slates[done], coins):
        done += 1
    return done
