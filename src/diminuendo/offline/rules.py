"""Rules of slates: eligible slots, pinned items, and caps on sets of items. All public.

    SlateRules(pinned=[7], caps=[([0, 1, 2, 3], 2), ([0, 1], 1)], eligible=[range(10), range(20), range(20)])

Capped sets form a laminar family: two of a brand, three of all brands of one maker. Rules are set without looking at
feedback, so keeping them costs no privacy (docs/maths/rules.md, Lemma Y1). What a slate that grows may still take is in
fitting.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.types import EMPTY_SLOT, Ints

Cap: TypeAlias = tuple[tuple[int, ...], int]
"""Some items, and how many of them are shown at most."""

LARGEST = (1 << 31) - 1
"""No item has a larger number."""
OUTSIDE = -1
"""In place of the number of a capped set: there is none."""


class CapTree(NamedTuple):
    """Capped sets, each before the one that it is inside of."""

    inside: Ints
    """For each item the smallest set that it is in, or OUTSIDE."""
    parents: Ints
    """For each set the smallest one around it, or OUTSIDE."""
    most: Ints
    """For each set how many of its items are shown at most."""


@dataclass(frozen=True, init=False)
class SlateRules:
    """Public rules that every slate satisfies. Immutable.

    Parameters
    ----------
    eligible : sequence of items, optional
        For each slot the items that it may show, as numbers or as booleans over all items. By default all items
        everywhere.
    pinned : sequence of int or mapping of int to int, optional
        Items that are always shown: for the first slots in order, or by slot.
    caps : sequence of (items, int), optional
        Sets of items and how many of each are shown at most. Any two sets are disjoint, or one contains the other.
    may_be_empty : bool, default False
        Whether slots may stay empty if rules leave too few items; by default such rules are refused.

    Attributes
    ----------
    eligible : tuple of tuple of int, optional
        As given, sorted.
    pinned : tuple of (int, int)
        (slot, item) pairs in the order of slots.
    caps : tuple of (tuple of int, int)
        As given, sorted.

    Raises
    ------
    InvalidInput
        If rules contradict each other, or capped sets overlap without nesting.

    Notes
    -----
    Rules cost no privacy if they are set without looking at users' feedback (Lemma Y1 of docs/maths/rules.md).
    Greedy keeps at least 1/2 of the best value under the same rules, 1 - 1/e with pinned items alone, and 1/3 with
    both caps and eligible slots (Lemma Y2).

    Examples
    --------
    >>> import diminuendo as dim
    >>> rules = dim.SlateRules(pinned=[7], caps=[([0, 1, 2, 3], 2), ([0, 1], 1)])
    >>> dim.greedy(dim.msweb(), slots=4, rules=rules).slate
    (7, 8, 4, 34)

    """

    eligible: tuple[tuple[int, ...], ...] | None
    pinned: tuple[tuple[int, int], ...]
    caps: tuple[Cap, ...]
    may_be_empty: bool

    def __init__(
        self,
        *,
        eligible: Iterable[Any] | None = None,
        pinned: Mapping[int, int] | Sequence[int] = (),
        caps: Iterable[tuple[Iterable[int], int]] = (),
        may_be_empty: bool = False,
    ) -> None:
        rows = None if eligible is None else tuple(_row(row, slot) for slot, row in enumerate(eligible))
        for name, value in {
            "eligible": rows,
            "pinned": _pinned(pinned),
            "caps": tuple(_cap(cap, number) for number, cap in enumerate(caps)),
            "may_be_empty": bool(may_be_empty),
        }.items():
            object.__setattr__(self, name, value)
        self._agree()

    def __bool__(self) -> bool:
        """Whether there is any rule."""
        return self.eligible is not None or bool(self.pinned) or bool(self.caps)

    def _agree(self) -> None:
        """Refuse rules that contradict each other."""
        shown = [item for _, item in self.pinned]
        if len(set(shown)) < len(shown):
            raise InvalidInput(f"An item is pinned to one slot only; got {shown}.")
        tree = self.tree(1 + max((item for items, _ in self.caps for item in items), default=-1))
        counts = counted(tree, np.array(shown, dtype=np.int64))
        if (over := np.flatnonzero(counts > tree.most)).size:
            raise InvalidInput(
                f"{int(counts[over[0]])} pinned items are in one capped set, of which at most "
                f"{int(tree.most[over[0]])} may be shown. Pin fewer of them, or raise the cap."
            )
        for slot, item in self.pinned:
            if self.eligible is not None and slot < len(self.eligible) and item not in self.eligible[slot]:
                raise InvalidInput(
                    f"Item {item} is pinned to slot {slot}, which may not show it. Make it eligible there, or pin it "
                    "elsewhere."
                )

    def tree(self, n_items: int) -> CapTree:
        """Return the capped sets as a tree, small ones first.

        Raises
        ------
        InvalidInput
            If two of them overlap and neither contains the other.
        """
        order = sorted(range(len(self.caps)), key=lambda number: -len(self.caps[number][0]))
        inside = np.full(n_items, OUTSIDE, dtype=np.int64)
        parents, most = np.full(len(order), OUTSIDE, dtype=np.int64), np.zeros(len(order), dtype=np.int64)
        for place, number in zip(range(len(order) - 1, -1, -1), order, strict=True):
            items, limit = np.array(self.caps[number][0], dtype=np.int64), self.caps[number][1]
            around = inside[items]
            if (around != around[0]).any():
                other = next(order[len(order) - 1 - each] for each in around.tolist() if each != OUTSIDE)
                raise InvalidInput(
                    f"Of any two capped sets one must be inside the other, or they have nothing in common; caps "
                    f"{min(number, other)} and {max(number, other)} overlap. Split them."
                )
            parents[place], most[place], inside[items] = around[0], limit, place
        return CapTree(inside, parents, most)

    def check(self, n_items: int, slots: int) -> None:
        """Raise InvalidInput if rules do not fit these numbers of items and slots, or leave too few items."""
        if self.eligible is not None and len(self.eligible) != slots:
            raise InvalidInput(
                f"eligible must say for each of {slots} slots which items it shows; got {len(self.eligible)} rows."
            )
        named = {
            "eligible item": [row[-1] for row in self.eligible or ()],
            "pinned item": [item for _, item in self.pinned],
            "item of a cap": [items[-1] for items, _ in self.caps],
        }
        for name, items in named.items():
            for item in items:
                _validate.whole(item, 0, n_items - 1, name)
        for slot, _ in self.pinned:
            _validate.whole(slot, 0, slots - 1, "pinned slot")
        if not self.may_be_empty and (full := self._fillable(n_items, slots)) < slots:
            raise InvalidInput(
                f"By these rules at most {full} of {slots} slots can show something. Loosen them, or say "
                "may_be_empty=True: slots for which nothing is left then stay empty."
            )

    def _fillable(self, n_items: int, slots: int) -> int:
        """How many slots can be filled: the largest flow from slots to items, and through the sets that they are in."""
        if self.eligible is None and not self.caps:
            return min(slots, n_items)
        from scipy import sparse  # here: they take their time to load, and choosing slates does without

        tree, sets, pinned = self.tree(n_items), len(self.caps), dict(self.pinned)
        first_item, first_set = 2 + slots, 2 + slots + n_items  # after the source, 0, and the end, 1
        everything = np.arange(n_items)
        edges = list[tuple[Any, Any, Any]]()
        others = np.setdiff1d(everything, list(pinned.values()))
        hub = first_set + sets  # what all slots without items of their own share
        for slot in range(slots):
            edges.append((0, 2 + slot, 1))
            if slot in pinned:
                edges.append((2 + slot, first_item + pinned[slot], 1))
            elif self.eligible is None:
                edges.append((2 + slot, hub, 1))
            else:
                own = np.intersect1d(self.eligible[slot], others)
                edges.append((np.full(len(own), 2 + slot), first_item + own, 1))
        edges.append((np.full(len(others), hub), first_item + others, 1))
        for below, above, most in (
            (first_item + everything, tree.inside, np.ones_like(everything)),
            (first_set + np.arange(sets), tree.parents, np.minimum(tree.most, slots)),
        ):
            edges.append((below, np.where(above == OUTSIDE, 1, first_set + above), most))
        rows, columns, most = (
            np.concatenate([np.broadcast_to(edge[part], np.shape(edge[0]) or 1) for edge in edges])
            for part in range(3)
        )
        size = hub + 1
        flow = sparse.csr_array((most.astype(np.int32), (rows, columns)), shape=(size, size))
        return int(sparse.csgraph.maximum_flow(flow, 0, 1).flow_value)

    def config(self) -> dict[str, Any]:
        """Return the rules as files hold them."""
        return {
            "eligible": None if self.eligible is None else [list(row) for row in self.eligible],
            "pinned": [list(pair) for pair in self.pinned],
            "caps": [[list(items), most] for items, most in self.caps],
            "may_be_empty": self.may_be_empty,
        }


def as_rules(given: Any) -> SlateRules | None:
    """Rules at the door: themselves, or as files hold them; None where there are none."""
    if isinstance(given, Mapping) and set(given) == {"eligible", "pinned", "caps", "may_be_empty"}:
        given = SlateRules(**{**given, "pinned": dict(given["pinned"])})
    if given is None or isinstance(given, SlateRules):
        return given or None
    raise InvalidInput(f"rules must be SlateRules(pinned=.., caps=.., eligible=..); got {given!r}.")


def counted(tree: CapTree, items: Ints) -> Ints:
    """How many of the items are in each capped set."""
    counts = np.zeros(len(tree.most), dtype=np.int64)
    known = items[(items != EMPTY_SLOT) & (items < len(tree.inside))]
    sets = tree.inside[known]
    while len(sets := sets[sets != OUTSIDE]):
        counts += np.bincount(sets, minlength=len(counts))
        sets = tree.parents[sets]
    return counts


def _row(row: Any, slot: int) -> tuple[int, ...]:
    """The items of a slot, rising: their numbers, or yes and no for every item."""
    entries = row if isinstance(row, np.ndarray) else list(row)
    if isinstance(entries, np.ndarray) and entries.dtype == np.bool_ and entries.ndim == 1:
        result = np.flatnonzero(entries).tolist()
    else:
        result = sorted({_validate.whole(item, 0, LARGEST, "eligible item") for item in entries})
    if not result:
        raise InvalidInput(f"Slot {slot} has no eligible item; leave the slot out instead.")
    return tuple(result)


def _pinned(given: Any) -> tuple[tuple[int, int], ...]:
    try:
        pairs = list(given.items() if isinstance(given, Mapping) else enumerate(given))
    except TypeError:
        raise InvalidInput(
            f"pinned must be items for the first slots, or {{slot: item}}; got {given!r}."
        ) from None
    result = [
        (
            _validate.whole(slot, 0, LARGEST, "pinned slot"),
            _validate.whole(item, 0, LARGEST, "pinned item"),
        )
        for slot, item in pairs
    ]
    return tuple(sorted(result))


def _cap(given: Any, number: int) -> Cap:
    try:
        items, most = given
        result = sorted({_validate.whole(item, 0, LARGEST, "item of a cap") for item in items})
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            f"A cap is some items and how many of them are shown at most, as ([3, 4, 5], 2); cap {number} is {given!r}."
        ) from None
    if not result:
        raise InvalidInput(f"Cap {number} names no item; leave it out.")
    return tuple(result), _validate.whole(most, 0, LARGEST, f"the most of cap {number}")
