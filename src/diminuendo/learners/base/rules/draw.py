"""Random slates by rules: slot by slot, each item that fits equally likely.

Words of public coins are used up to a number that follows from them and from public facts alone, and it always ends.
"""

from __future__ import annotations

from diminuendo._numba import kernel
from diminuendo.learners.base.rules.lists import Lists, bounds, enter, fits
from diminuendo.randomness.words import UNFINISHED, PublicWords, begin, below, undo
from diminuendo.types import EMPTY_SLOT, Ints, Items

TRIES = 64
"""Where there are caps: once this number of draws did not fit, the items that do are counted, and one of them drawn."""


@kernel
def draw_from_lists(lists: Lists, slates: Items, done: int, counts: Ints, rng: PublicWords) -> int:
    """Random slates from `done` on, slot by slot, by the rules; a slot for which nothing is left stays empty.

    Pinned items come first. `counts`: room for a number for each capped set.
    """
    items = lists.items
    while done < slates.shape[0]:
        begin(rng)
        row = slates[done]
        counts[:] = 0
        for slot in range(len(row)):
            row[slot] = lists.pinned[slot] if len(lists.pinned) else EMPTY_SLOT
            enter(lists, row[slot], 1, counts)
        for slot in range(len(row)):
            if row[slot] != EMPTY_SLOT:
                continue
            low, high = bounds(lists, slot)
            left, tries = high - low, 0
            if left <= slot:  # with more items than slots before, some are left, unless there are caps
                for j in range(low, high):
                    for earlier in range(slot):
                        left -= row[earlier] == items[j]
            while left > 0 and row[slot] == EMPTY_SLOT:
                exactly = len(counts) > 0 and tries == TRIES
                if exactly:
                    left = 0
                    for j in range(low, high):
                        left += fits(lists, row, items[j], counts)
                    if left == 0:
                        break
                place = below(left if exactly else high - low, rng)
                if place == UNFINISHED:
                    undo(rng)
                    return done
                if exactly:
                    for j in range(low, high):
                        if fits(lists, row, items[j], counts):
                            place -= 1
                            if place < 0:
                                row[slot] = items[j]
                                break
                elif fits(lists, row, items[low + place], counts):
                    row[slot] = items[low + place]
                tries += 1
            enter(lists, row[slot], 1, counts)
        done += 1
    return done
