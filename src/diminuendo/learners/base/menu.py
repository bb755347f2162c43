"""A menu: what is shown next, to which rounds and with what probability. Plain public data.

A menu can be stored and read back. A process that holds a menu and public coins chooses for the menu's rounds, slate
for slate as the learner would. Its `Chooser` holds tables that make draws fast, and what is left of a block.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from diminuendo import _snapshots
from diminuendo._numba import inline, kernel
from diminuendo.errors import InvalidInput
from diminuendo.experts.capped_simplex import ONE, draw_pivotal, running
from diminuendo.learners.base import propensity
from diminuendo.learners.base.rules.draw import draw_from_lists
from diminuendo.learners.base.rules.leave_out import leave_out
from diminuendo.learners.base.rules.lists import NO_ITEMS, Lists, all_items
from diminuendo.randomness.shares import GuideTable, guided
from diminuendo.randomness.words import UNFINISHED, PublicWords, begin, below, undo
from diminuendo.streams.contexts import NOBODY
from diminuendo.streams.exclusions import Exclusions
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items

NEAR = 1e-6
"""So far from the capped simplex floats may put an entry of a point of it."""


@dataclass(frozen=True, eq=False)
class Menu(ABC):
    """The public serving policy of some rounds: what is shown, to which rounds, with what probability.

    A process that holds a menu and public coins chooses as the learner would, slate for slate, and knows nothing of
    any feedback: menus are functions of releases and public facts.

    Parameters
    ----------
    n_items, slots : int
        Numbers of items and of slots.
    first : int
        The first round of the menu.
    end : int or None
        The round with which the next menu begins; None: it holds for all later rounds.
    words : int
        How many public words the learner had used when the menu began.
    lists : Lists, optional
        What each slot may show, if users may exclude items or slates are drawn from lists.

    """

    kind: ClassVar[str]
    n_items: int
    slots: int
    first: int
    end: int | None
    words: int
    lists: Lists | None = field(default=None, kw_only=True)

    @abstractmethod
    def chooser(self) -> Chooser:
        """Return what draws the slates of the menu's rounds, from the first on."""

    @property
    def backfill(self) -> tuple[Items, Items]:
        """Backfill for excluded items, the best first: by context id, of shape (n_types, any), and for all users."""
        return NO_ITEMS[None, :], NO_ITEMS

    def to_bytes(self) -> bytes:
        """Return the menu as bytes. Equal menus give equal bytes."""
        parts = {
            part.name: value
            for part in fields(self)
            if (value := getattr(self, part.name)) is not None or not part.kw_only
        }
        if (lists := parts.pop("lists", None)) is not None:
            parts |= {name: part for name, part in lists._asdict().items() if len(part) or name == "items"}
        arrays = {name: part for name, part in parts.items() if isinstance(part, np.ndarray)}
        spec = {name: part for name, part in parts.items() if name not in arrays}
        return _snapshots.packed({"menu": self.kind} | spec, arrays)

    @classmethod
    def from_parts(cls, spec: dict[str, Any], arrays: dict[str, Any]) -> Self:
        """Return the menu of facts and arrays that `to_bytes` packed. Raises InvalidInput if they do not fit."""
        lists = {name: arrays[name] for name in Lists._fields if name in arrays}
        parts = spec | {name: array for name, array in arrays.items() if name not in lists}
        try:
            return cls(**parts | ({"lists": Lists(**lists)} if lists else {}))
        except TypeError as error:
            raise InvalidInput(f"These bytes are not a menu of kind {cls.kind!r}: {error}") from error


class Chooser(ABC):
    """Draws the slates of a menu's rounds, one after the other.

    Attributes
    ----------
    menu : Menu
        What it draws from.
    """

    menu: Menu

    @abstractmethod
    def draw(self, number: int, slates: Items, probes: Items, rng: PublicWords, types: Ints = NOBODY) -> int:
        """Draw the slates of several rounds in place.

        Parameters
        ----------
        number : int
            The first of the rounds.
        slates : ndarray of int32, shape (rounds, slots)
            Filled in; -1 is an empty slot.
        probes : ndarray of int32, shape (rounds, 3)
            Filled in where a round explores.
        rng : PublicSource
            The only source of chance.
        types : ndarray of int, optional
            Context ids of the users of these rounds, for menus with a slate per context.

        Returns
        -------
        int
            How many rounds were drawn before words ran out. Nothing of the next one has happened.
        """

    @abstractmethod
    def propensity(self, number: int, row: Items) -> float | None:
        """Return the probability of `row`, the slate drawn last, in round `number`; None if it is not public."""

    def without(self, slates: Items, excluded: Exclusions, types: Ints = NOBODY) -> None:
        """Replace excluded items in slates that were drawn, in place.

        The slot of an excluded item gets the best item that the rules leave: of the backfill of the user's context
        id, then of the common one, then by number. A slot for which none is left stays empty. No coins are used, so
        other users' slates do not depend on exclusions.

        Parameters
        ----------
        slates : ndarray of int32, shape (rounds, slots)
            Changed in place.
        excluded : Exclusions
            What each of these users excludes.
        types : ndarray of int, optional
            Context ids of these users.

        Raises
        ------
        InvalidInput
            If the menu was made without exclusions.
        """
        lists = self.menu.lists
        if lists is None:
            raise InvalidInput(
                "This menu does not say what else may be shown; make its learner with exclusions=True."
            )
        own, ranking = self.menu.backfill
        kinds = types if len(own) > 1 else np.zeros(len(slates), dtype=np.int64)
        leave_out(lists, own, ranking, kinds, excluded, self.room, slates)

    @cached_property
    def room(self) -> tuple[Ints, Items]:
        """For compiled code: a count for each capped set, and the items that left."""
        sets = 0 if self.menu.lists is None else len(self.menu.lists.most)
        return np.zeros(sets, dtype=np.int64), np.full(self.menu.slots, EMPTY_SLOT, dtype=np.int32)


@dataclass(frozen=True, eq=False)
class OneSlate(Menu):
    """Menu of one slate for all users.

    Parameters
    ----------
    slate : ndarray of int32, shape (slots,)
        Distinct items; -1 is an empty slot.
    ranking : ndarray of int32, optional
        Backfill for excluded items, the best first.
    n_items, slots, first, end, words, lists
        As of `Menu`. In a policy: `self.show(OneSlate, slate, end=...)`.

    Raises
    ------
    InvalidInput
        If the slate does not fit.

    """

    kind: ClassVar[str] = "one slate"
    slate: Items
    ranking: Items | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.slate.shape != (self.slots,) or not all_items(self.slate, self.n_items):
            raise InvalidInput(
                f"A menu of one slate holds {self.slots} items, one for each slot, -1 for an empty one."
            )

    def chooser(self) -> Chooser:
        """What shows the one slate."""
        return _Shows(self, self.slate[None, :])

    @property
    def backfill(self) -> tuple[Items, Items]:
        """The ranking, for all users."""
        return NO_ITEMS[None, :], NO_ITEMS if self.ranking is None else self.ranking


class _Shows(Chooser):
    def __init__(self, menu: Menu, slates: Items) -> None:
        self.menu, self._slates = menu, slates

    def draw(self, number: int, slates: Items, probes: Items, rng: PublicWords, types: Ints = NOBODY) -> int:
        """The slate of each user's context id; of id 0, nothing known, without contexts."""
        slates[:] = self._slates[types if len(types) and len(self._slates) > 1 else 0]
        return len(slates)

    def propensity(self, number: int, row: Items) -> float:
        """One: the slate is certain."""
        return 1.0


@dataclass(frozen=True, eq=False)
class SlateByType(Menu):
    """Menu of one slate for each context id.

    Parameters
    ----------
    slates : ndarray of int32, shape (n_types, slots)
        -1 is an empty slot.
    own : ndarray of int32, shape (n_types, any), optional
        Backfill of each context id, the best first; -1 behind the last.
    ranking : ndarray of int32, optional
        Backfill for all, where that is not enough.
    n_items, slots, first, end, words, lists
        As of `Menu`.

    Raises
    ------
    InvalidInput
        If shapes or items do not fit.

    """

    kind: ClassVar[str] = "one slate for each type"
    slates: Items
    own: Items | None = field(default=None, kw_only=True)
    ranking: Items | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        slates, own = self.slates, self.own
        fits = slates.ndim == 2 and slates.shape[1] == self.slots and len(slates) > 0
        if not (fits and all_items(slates, self.n_items) and (own is None or len(own) == len(slates))):
            raise InvalidInput(
                f"A menu of a slate for each type holds rows of {self.slots} items, -1 for an empty slot."
            )

    def chooser(self) -> Chooser:
        """What looks up the slate of a type."""
        return _Shows(self, self.slates)

    @property
    def backfill(self) -> tuple[Items, Items]:
        """By context id, then for all users."""
        none = np.zeros((len(self.slates), 0), dtype=np.int32)
        return none if self.own is None else self.own, NO_ITEMS if self.ranking is None else self.ranking


@dataclass(frozen=True, eq=False)
class RandomSlates(Menu):
    """Menu of k distinct items, uniformly at random.

    Parameters
    ----------
    n_items, slots, first, end, words, lists
        As of `Menu`. In a policy: `self.show(RandomSlates, end=...)`.
    """

    kind: ClassVar[str] = "random slates"

    def chooser(self) -> Chooser:
        """What draws random slates."""
        return _DrawsAtRandom(self)


class _DrawsAtRandom(Chooser):
    def __init__(self, menu: RandomSlates) -> None:
        self.menu: RandomSlates = menu

    def draw(self, number: int, slates: Items, probes: Items, rng: PublicWords, types: Ints = NOBODY) -> int:
        """Uniformly, without replacement."""
        return int(draw_random_slates(self.menu.n_items, slates, 0, rng))

    def propensity(self, number: int, row: Items) -> float:
        """One among all ordered choices."""
        return 1 / math.perm(self.menu.n_items, self.menu.slots)


@dataclass(frozen=True, eq=False)
class RandomFromLists(Menu):
    """Menu of random distinct items, slot by slot from the slot's own list.

    For where some items are not there, or slots have items of their own.
    """

    kind: ClassVar[str] = "random slates from lists"

    def chooser(self) -> Chooser:
        """What draws each slot from its list."""
        return _DrawsFromLists(self)


class _DrawsFromLists(Chooser):
    def __init__(self, menu: RandomFromLists) -> None:
        assert menu.lists is not None
        self.menu, self._lists = menu, menu.lists

    def draw(self, number: int, slates: Items, probes: Items, rng: PublicWords, types: Ints = NOBODY) -> int:
        """Each item that is left to a slot equally likely."""
        return int(draw_from_lists(self._lists, slates, 0, self.room[0], rng))

    def propensity(self, number: int, row: Items) -> None:
        """Is not said."""


def point_ends(point: Floats, slots: int) -> Ints:
    """Round a point of the capped simplex to units of 2^-40, as `SlatesFromPoint` takes it.

    Parameters
    ----------
    point : array of shape (n_items,)
        For each item how likely it is shown: numbers in [0, 1] that add up to `slots`.
    slots : int
        Items of a slate.

    Returns
    -------
    array of shape (n_items + 1,)
        Running sums of the point in units of 2^-40, from 0 to exactly `slots` * 2^40.

    Raises
    ------
    InvalidInput
        If the point is further from the capped simplex than floats err.

    Examples
    --------
    >>> point_ends(np.array([0.5, 1.0, 0.5]), 2) / ONE
    array([0. , 0.5, 1.5, 2. ])
    """
    x = np.asarray(point, dtype=np.float64)
    near = x.ndim == 1 and ((x >= -NEAR) & (x <= 1 + NEAR)).all() and abs(x.sum() - slots) <= NEAR * len(x)
    if not near:
        raise InvalidInput(f"A point to draw slates from holds numbers in [0, 1] that add up to {slots}.")
    return running(x, slots)


@dataclass(frozen=True, eq=False)
class SlatesFromPoint(Menu):
    """Menu of slates rounded from a point: item a with probability `point[a]`, k items in all.

    In a policy: `self.show(SlatesFromPoint, point_ends(point, slots), end=...)`.

    Parameters
    ----------
    ends : ndarray of int, shape (n_items + 1,)
        Running sums of the point in units of 2**-40, from `point_ends`.
    n_items, slots, first, end, words, lists
        As of `Menu`.

    Raises
    ------
    InvalidInput
        If the running sums are not those of a point of the capped simplex.

    Notes
    -----
    Pivotal rounding of the items in order, by exact draws. The mean reward of a user with a submodular objective is
    at least its multilinear extension at the point (Lemma J3 of docs/maths/osm.md).

    References
    ----------
    Deville & Tille (1998), Unequal probability sampling without replacement through a splitting method, Biometrika
    85.

    """

    kind: ClassVar[str] = "slates from a point"
    ends: Ints

    def __post_init__(self) -> None:
        ends = self.ends
        sound = (
            ends.dtype == np.int64
            and ends.shape == (self.n_items + 1,)
            and (ends[0], ends[-1]) == (0, self.slots * ONE)
            and ((np.diff(ends) >= 0) & (np.diff(ends) <= ONE)).all()
        )
        if not sound:
            raise InvalidInput("These running sums are not those of a point of the capped simplex.")

    @cached_property
    def point(self) -> Floats:
        """The point, an array of shape (n_items,): how likely each item is shown."""
        return np.diff(self.ends) / ONE

    def chooser(self) -> Chooser:
        """What rounds slates from the point."""
        return _RoundsPoint(self)


class _RoundsPoint(Chooser):
    def __init__(self, menu: SlatesFromPoint) -> None:
        self.menu: SlatesFromPoint = menu
        self._guide = guided(menu.ends[:, None])

    def draw(self, number: int, slates: Items, probes: Items, rng: PublicWords, types: Ints = NOBODY) -> int:
        """Pivotal rounding, slate by slate."""
        return int(_round_slates(self._guide, slates, rng))

    def propensity(self, number: int, row: Items) -> float:
        """The chance of that row by pivotal rounding."""
        return float(propensity.pivotal(self.menu.ends, row))


@kernel
def _round_slates(guide: GuideTable, slates: Items, rng: PublicWords) -> int:
    for done in range(len(slates)):
        begin(rng)
        if not draw_pivotal(guide, slates[done], rng):
            undo(rng)
            return done
    return len(slates)


LASTING: tuple[type[Menu], ...] = (OneSlate, SlateByType, RandomSlates, RandomFromLists, SlatesFromPoint)
"""Kinds of menus that are the same in all their rounds: reading one back loses nothing."""


def read_lasting(written: NDArray[np.uint8]) -> Menu:
    """The menu of a lasting kind that `to_bytes` wrote, as an array of bytes."""
    spec, arrays = _snapshots.unpacked(written.tobytes(), "a menu")
    name = spec.pop("menu", None)
    (kind,) = (each for each in LASTING if each.kind == name)
    return kind.from_parts(spec, arrays)


@inline
def _distinct(n_items: int, row: Items, rng: PublicWords) -> bool:
    """k of n without replacement in random order (Floyd's sampling, then a shuffle)."""
    begin(rng)
    k = len(row)
    for i in range(k):
        item = below(n_items - k + i + 1, rng)
        if item == UNFINISHED:
            undo(rng)
            return False
        for j in range(i):
            if row[j] == item:
                item = n_items - k + i
                break
        row[i] = item
    for i in range(k - 1, 0, -1):
        j = below(i + 1, rng)
        if j == UNFINISHED:
            undo(rng)
            return False
        row[i], row[j] = row[j], row[i]
    return True


@kernel
def draw_random_slates(n_items: int, slates: Items, done: int, rng: PublicWords) -> int:
    """Random slates from `done` on; how far it came."""
    while done < slates.shape[0] and _distinct(n_items, slates[done], rng):
        done += 1
    return done
