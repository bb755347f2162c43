"""One user's slate without what they exclude: a function of the slate, the exclusions and public facts.

No coins are used. If a substitute were drawn with public coins, all later users would be shown another slate when this
one excludes something, and no noise would hide that (docs/maths/rules.md).
"""

from __future__ import annotations

from diminuendo._numba import inline, kernel
from diminuendo.learners.base.rules.lists import Lists, bounds, enter, fits, has
from diminuendo.streams.exclusions import Exclusions
from diminuendo.types import EMPTY_SLOT, Ints, Items


@inline
def _may_stand_in(
    lists: Lists, row: Items, slot: int, item: int, excluded: Exclusions, user: int, counts: Ints
) -> bool:
    low, high = bounds(lists, slot)
    starts, items = excluded
    return (
        item != EMPTY_SLOT
        and has(lists.items, low, high, item)
        and not has(items, starts[user], starts[user + 1], item)
        and fits(lists, row, item, counts)
    )


@kernel
def leave_out(
    lists: Lists,
    own: Items,
    ranking: Items,
    types: Ints,
    excluded: Exclusions,
    room: tuple[Ints, Items],
    slates: Items,
) -> None:
    """Each slate without what its user excludes, and with stand-ins in the slots that become free (`without`)."""
    counts, gone = room
    for user in range(slates.shape[0]):
        first, last = excluded.starts[user], excluded.starts[user + 1]
        if first == last:
            continue
        row = slates[user]
        counts[:] = 0
        for slot in range(len(row)):
            gone[slot] = EMPTY_SLOT
            if has(excluded.items, first, last, row[slot]):
                gone[slot], row[slot] = row[slot], EMPTY_SLOT
            enter(lists, row[slot], 1, counts)
        for slot in range(len(row)):
            if gone[slot] == EMPTY_SLOT:
                continue
            for item in own[types[user]]:
                if row[slot] == EMPTY_SLOT and _may_stand_in(lists, row, slot, item, excluded, user, counts):
                    row[slot] = item
            for item in ranking:
                if row[slot] != EMPTY_SLOT:
                    break
                if _may_stand_in(lists, row, slot, item, excluded, user, counts):
                    row[slot] = item
            low, high = bounds(lists, slot)
            for lap in range(2):  # items behind the one that left, then those before it
                for j in range(low, high):
                    if row[slot] != EMPTY_SLOT:
                        break
                    behind = lists.items[j] > gone[slot]
                    if behind == (lap == 0) and _may_stand_in(
                        lists, row, slot, lists.items[j], excluded, user, counts
                    ):
                        row[slot] = lists.items[j]
            enter(lists, row[slot], 1, counts)
