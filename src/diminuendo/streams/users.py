"""Streams: the users who arrive, in order, each with an objective.

`Users` is a table of one family, as sparse rows that compiled code reads. `Functions` is for arbitrary Python
functions.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from diminuendo import _validate
from diminuendo._numba import inline, kernel
from diminuendo._sparse import is_sparse
from diminuendo.errors import InvalidInput
from diminuendo.objectives.family import Family, Table, add, sound_table, start, value
from diminuendo.objectives.oracle import Oracle
from diminuendo.objectives.rows import Matrix
from diminuendo.objectives.user import User, largest_state
from diminuendo.streams.clicks import MODELS, click_all, click_words_of, first_click
from diminuendo.streams.contexts import Contexts
from diminuendo.streams.was_read import WasRead
from diminuendo.types import Floats, Ints, Items, Objective, Slate, SlateLike, Words


class Stream(ABC):
    """Base class of streams: the users who arrive, in order, each with an objective.

    Attributes
    ----------
    name : str
        Shown in reports.
    n_items : int
        Number of items.
    family_name : str
        Name of the family of objectives, or "oracle".
    clicks : {"cascade", "independent"}
        Model by which users click. The default is a cascade with seed 0.
    contexts : Contexts, optional
        What is known of users when they arrive.
    types : ndarray of int, optional
        Context id of each round.
    users : ndarray of int, optional
        User of each round, where a user may own several. None if every round is another user's.
    was_read : WasRead, optional
        What was read of the table that the stream comes from.
    again : callable, optional
        Reads these users again, if they are one piece of a large file.

    """

    name: str
    n_items: int
    family_name: str
    clicks: str = "cascade"
    _click_words: Words | None = None
    contexts: Contexts | None = None
    types: Ints | None = None
    user_ids: Ints | None = None
    was_read: WasRead | None = None

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __getitem__(self, user: int) -> Objective: ...

    @abstractmethod
    def values(self, slates: SlateLike | NDArray[np.integer]) -> Floats:
        """Return f_t(slate) for every user t.

        Parameters
        ----------
        slates : sequence of int, or array of shape (n_users, slots)
            One slate for all users, or one row for each; -1 is an empty slot.

        Returns
        -------
        ndarray of float, shape (n_users,)

        Raises
        ------
        InvalidInput
            If the shape or an item is out of range.
        """

    @property
    def click_words(self) -> Words:
        """One 64-bit word for each user, which decides where they click. They follow from the click seed."""
        if self._click_words is None:
            self._click_words = click_words_of(len(self), 0)
        return self._click_words

    def clicking(self, model: str = "cascade", seed: int = 0) -> Self:
        """Return these users with another click model or other click words.

        Parameters
        ----------
        model : {"cascade", "independent"}, default "cascade"
            "cascade": the first i slots hold the first click with probability f(first i items). "independent": item a
            attracts with probability f({a}) by itself, and the first that does is clicked.
        seed : int, default 0
            Seed of the click words.

        Returns
        -------
        Stream
            A copy that shares the rows.

        Raises
        ------
        InvalidInput
            If the model is unknown.
        """
        return self.clicking_by(model, click_words_of(len(self), seed))

    def clicking_by(self, model: str, words: Words) -> Self:
        """Return these users with this click model and these click words, one for each."""
        changed = copy.copy(self)
        changed.clicks = _validate.one_of(model, MODELS, "model")
        changed._click_words = words
        return changed

    def with_contexts(self, contexts: Contexts, table: Any) -> Self:
        """Return these users, with what is known of each when they arrive.

        Parameters
        ----------
        contexts : Contexts
            The features and their categories.
        table : array of int, shape (n_users, n_features), or sequence of contexts
            Numbers of categories, -1 for unknown; or one context for each user, as `Contexts.type_of` takes it.

        Returns
        -------
        Stream
            A copy that shares the rows.

        Raises
        ------
        InvalidInput
            If the shape does not fit, or a public context is not listed.

        Examples
        --------
        >>> import diminuendo as dim
        >>> users = dim.Users(dim.NoisyOr(), [[1.0, 0.0], [0.0, 1.0]])
        >>> users.with_contexts(dim.Contexts(country=["DE", "FR"]), [{"country": "FR"}, None]).types.tolist()
        [2, 0]
        """
        changed = copy.copy(self)
        changed.contexts, changed.types = contexts, contexts.types_of(table, len(self))
        return changed

    def with_columns(self, names: Sequence[str], *, private: bool = False) -> Self:
        """Return these users with only these features of their contexts; without names, with no contexts.

        Parameters
        ----------
        names : sequence of str
            Features to keep.
        private : bool, default False
            Whether contexts are private from now on.

        Returns
        -------
        Stream

        Raises
        ------
        InvalidInput
            If the stream has no such feature.
        """
        changed = copy.copy(self)
        if not names:
            changed.contexts = changed.types = None
            return changed
        if self.contexts is None or self.types is None:
            raise InvalidInput(
                f"Nothing is known of the users of {self.name}: they have no {', '.join(names)}."
            )
        known = [column.name for column in self.contexts.columns]
        changed.contexts = self.contexts.only(names, private=private)
        table = self.contexts.values_of(self.types)[:, [known.index(name) for name in names]]
        changed.types = changed.contexts.types_of(table, len(self))
        return changed

    def types_in(self, contexts: Contexts) -> Ints:
        """Return the context ids of these users, whose features must be those of `contexts`."""
        if self.types is None or self.contexts is None:
            raise InvalidInput(
                f"Nothing is known of the users of {self.name}; give replay(contexts=..), or "
                "users.with_contexts(..)."
            )
        if self.contexts.columns != contexts.columns:
            raise InvalidInput(f"The learner knows {contexts} of users, the stream {self.contexts}.")
        within = self.types.shape == (len(self),) and (self.types >= 0).all()
        if not within or self.types.dtype != np.int64 or (self.types >= contexts.n_types).any():
            raise InvalidInput(
                f"The types of {self.name} are none of these contexts; give users.with_contexts(..)."
            )
        return self.types

    def click(self, user: int, slate: Slate) -> int | None:
        """Return which position of the slate this user clicks first, if any.

        Parameters
        ----------
        user : int
            Index of the user.
        slate : tuple of int
            Distinct items in slot order.

        Returns
        -------
        int or None
            A position from 0, or None if the user clicks nothing.
        """
        items = _validate.slate(slate, self.n_items)  # all of it, though the click may come before the end
        return first_click(self[user], items, int(self.click_words[user]), self.clicks)


class Users(Stream):
    """A stream of users of one family of objectives, in the order in which they arrive.

    Rows are stored as sparse matrices that compiled code reads, so a stream of millions of users is practical.

    Parameters
    ----------
    family : Family
        Form of the objectives, such as `NoisyOr()`.
    matrices : array or scipy sparse array, or a tuple of them
        Row t describes user t. Families of several parts (mixtures) take one matrix for each.
    n_items : int, optional
        Number of items. By default the number of columns, or what the family fixes.
    name : str, default "users"
        Shown in reports.
    labels : sequence of str, optional
        Names of the items.

    Attributes
    ----------
    family : Family
        As given.
    labels : tuple of str, optional
        Names of the items.

    Raises
    ------
    InvalidInput
        If values are not in [0, 1], or shapes do not fit. Messages name row and column, never a value.

    Notes
    -----
    An index gives a user's objective (`User`); a slice or an array of indices gives a stream. Iteration yields
    the objectives in order.

    Examples
    --------
    >>> from diminuendo.objectives import NoisyOr
    >>> users = Users(NoisyOr(), [[0.5, 0.0, 1.0], [0.0, 0.25, 0.0]])
    >>> users.values([0, 1])
    array([0.5 , 0.25])
    >>> users[0].gains(()).tolist(), len(users[1:])
    ([0.5, 0.0, 1.0], 1)
    """

    def __init__(
        self,
        family: Family,
        matrices: Matrix | Sequence[Matrix],
        n_items: int | None = None,
        *,
        name: str = "users",
        labels: Sequence[str] | None = None,
    ) -> None:
        if not isinstance(family, Family):
            raise InvalidInput(f"Expected a family of objectives such as NoisyOr(); got {family!r}.")
        several = family.leaves > 1 or isinstance(matrices, tuple)
        parts = tuple(_two_dimensional(part) for part in (matrices if several else (matrices,)))
        if len(parts) != family.leaves:
            raise InvalidInput(f"{family.name} needs {family.leaves} matrices; got {len(parts)}.")
        self.family = family
        known = family.n_items if n_items is None else _validate.positive_int(n_items, "n_items")
        self.n_items = int(parts[0].shape[1]) if known is None else known
        self.table: Table = family.table(parts, self.n_items)
        self.name = name
        self.family_name = family.name
        if labels is not None and len(labels) != self.n_items:
            raise InvalidInput(f"Expected one label per item, {self.n_items}; got {len(labels)}.")
        self.labels = None if labels is None else tuple(labels)
        self._length = int(parts[0].shape[0])
        self._state_of: tuple[Table, int] = (None, 0)

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        whose = "" if self.user_ids is None else f"rounds of {len(np.unique(self.user_ids)):,} "
        return f"<Users: {self.name}, {len(self):,} {whose}users, {self.n_items:,} items, {self.family_name}>"

    def __iter__(self) -> Iterator[User]:
        return (User(self.family, self.n_items, self.table, t) for t in range(len(self)))

    @overload
    def __getitem__(self, user: int) -> User: ...
    @overload
    def __getitem__(self, user: slice | NDArray[np.integer]) -> Users: ...
    def __getitem__(self, user: int | slice | NDArray[np.integer]) -> User | Users:
        if isinstance(user, (int, np.integer)):
            if not -len(self) <= user < len(self):
                raise IndexError(f"There are {len(self)} users; got number {user}.")
            return User(self.family, self.n_items, self.table, int(user) % len(self))
        if isinstance(user, slice) and user.step in (None, 1):
            first, last, _ = user.indices(len(self))
            rows = self.family.rows(self.table, self.n_items)
            some = self.with_rows(tuple(part.between(first, max(first, last)) for part in rows))
        else:
            places, rows = np.arange(len(self))[user], self.family.rows(self.table, self.n_items)
            some = self.with_rows(tuple(part.only(places) for part in rows))
        some._click_words = self.click_words[user]
        some.types = None if self.types is None else self.types[user]
        some.user_ids = None if self.user_ids is None else self.user_ids[user]
        return some

    def check(self, first: int = 0, end: int | None = None) -> None:
        """Raise InvalidInput if compiled code could not read these users, for instance because the table was altered.

        Parameters
        ----------
        first : int, default 0
            First user to check.
        end : int, optional
            One past the last user to check. By default all.
        """
        end = max(len(self), self._length) if end is None else end
        fits = sound_table(self.family, self.table, self.n_items, first, end)
        if not fits or len(self.click_words) < end or self.click_words.dtype != np.uint64:
            raise InvalidInput(
                f"The table of {self.name} does not hold {end:,} users of {self.n_items:,} items. Make Users by "
                "their constructor, and leave them as they are."
            )

    @property
    def matrices(self) -> tuple[Matrix, ...]:
        """The private rows as scipy sparse arrays, one for each part of the family."""
        return self.family.matrices(self.table, self.n_items)

    @property
    def largest_state(self) -> int:
        """The largest number of floats that the state of one user takes: scratch space for compiled code."""
        if self._state_of[0] is not self.table:
            self._state_of = self.table, int(largest_state(self.table, 0, self._length))
        return self._state_of[1]

    def values(self, slates: SlateLike | NDArray[np.integer]) -> Floats:
        """Return f_t(slate) for every user t.

        Parameters
        ----------
        slates : sequence of int, or array of shape (n_users, slots)
            One slate for all users, or one row for each; -1 is an empty slot.

        Returns
        -------
        ndarray of float, shape (n_users,)

        Raises
        ------
        InvalidInput
            If the shape or an item is out of range.
        """
        self.check()
        rows = slate_rows(slates, len(self), self.n_items)
        out = np.empty(len(self))
        _values(self.table, 0, rows, np.empty(self.largest_state), out)
        return out

    def values_of(self, slates: Items, first: int = 0) -> Floats:
        """Return f_t(slates[t - first]) of the users from index `first` on, without checks."""
        out = np.empty(len(slates))
        _values(self.table, first, slates, np.empty(self.largest_state), out)
        return out

    def permuted(self, order: NDArray[np.integer]) -> Users:
        """Return these users, with item a renamed to order[a].

        Parameters
        ----------
        order : array of int, shape (n_items,)
            A permutation.

        Returns
        -------
        Users

        Raises
        ------
        InvalidInput
            If columns of the family are not items (coverage).
        """
        if not self.family.columns_are_items:
            raise InvalidInput(f"{self.family_name} users speak of topics; their items cannot be renamed.")
        inverse = np.argsort(order)
        moved = tuple(part[:, inverse] for part in self.matrices)
        for part in moved:
            part.sort_indices()
        return self.with_rows(moved, labels=None)

    def first_clicks(self, slates: Items, first: int = 0) -> Ints:
        """Return the position of each first click, -1 without one, of the users from index `first` on."""
        out = np.empty(len(slates), dtype=np.int64)
        independent, state = self.clicks == "independent", np.empty(self.largest_state)
        click_all(self.table, first, slates, self.click_words, independent, state, out)
        return out

    def with_rows(self, parts: tuple[Matrix, ...], **changes: Any) -> Users:
        """Return users of the same family with other rows, and the same click words and contexts."""
        options = {"name": self.name, "labels": self.labels} | changes
        changed = Users(self.family, parts, self.n_items, **options)
        changed.clicks, changed._click_words = self.clicks, self._click_words
        changed.contexts, changed.types = self.contexts, self.types
        changed.user_ids, changed.was_read = self.user_ids, self.was_read
        return changed


class Functions(Stream):
    """A stream of users given as Python functions of a set of items, for objectives that no family covers.

    Parameters
    ----------
    functions : sequence of callable
        One for each user; takes a frozenset of items and returns a number in [0, 1].
    n_items : int
        Number of items.
    name : str, default "functions"
        Shown in reports.

    Notes
    -----
    Nothing is compiled: every gain is a call. `diminuendo.check` tests each function for submodularity.

    Examples
    --------
    >>> import diminuendo as dim
    >>> users = dim.Functions([lambda items: float(2 in items), lambda items: len(items) / 3], n_items=3)
    >>> users.values((0, 2)).round(2).tolist()
    [1.0, 0.67]
    """

    def __init__(
        self, functions: Sequence[Callable[[frozenset[int]], float]], n_items: int, *, name: str = "functions"
    ) -> None:
        self.objectives = [Oracle(function, n_items) for function in functions]
        self.n_items = _validate.positive_int(n_items, "n_items")
        self.name = name
        self.family_name = "oracle"

    def __len__(self) -> int:
        return len(self.objectives)

    def __repr__(self) -> str:
        return f"<Functions: {self.name}, {len(self):,} users, {self.n_items:,} items>"

    def __getitem__(self, user: int) -> Oracle:
        return self.objectives[user]

    def values(self, slates: SlateLike | NDArray[np.integer]) -> Floats:
        """Return f_t(slate) for every user t.

        Parameters
        ----------
        slates : sequence of int, or array of shape (n_users, slots)
            One slate for all users, or one row for each; -1 is an empty slot.

        Returns
        -------
        ndarray of float, shape (n_users,)
        """
        rows = np.broadcast_to(slate_rows(slates, len(self), self.n_items), (len(self), np.shape(slates)[-1]))
        return np.array(
            [f.value(np.unique(row[row >= 0])) for f, row in zip(self.objectives, rows, strict=True)]
        )


def slate_rows(slates: SlateLike | NDArray[np.integer], n_users: int, n_items: int) -> Items:
    """Slates as a checked array with one row, or one row per user."""
    rows = np.atleast_2d(np.asarray(slates))
    if rows.size == 0:
        return np.zeros((1, 0), dtype=np.int32)
    if rows.ndim != 2 or rows.shape[0] not in (1, n_users) or not np.issubdtype(rows.dtype, np.integer):
        raise InvalidInput(
            f"Expected one slate, or an array of {n_users} slates of whole numbers; got shape {np.shape(slates)}."
        )
    if rows.min() < -1 or rows.max() >= n_items:
        raise InvalidInput(f"Slates hold items from 0 to {n_items - 1}, or -1 for an empty slot.")
    return np.ascontiguousarray(rows, dtype=np.int32)


def _two_dimensional(part: Matrix) -> Matrix:
    result: Any = part if is_sparse(part) else np.atleast_2d(_validate.numbers(part, "Rows of users"))
    if len(result.shape) != 2:
        raise InvalidInput(f"Rows of users form a two-dimensional array; got shape {result.shape}.")
    return result


@inline
def shown_before(slate: Items, slot: int, item: int) -> bool:
    """Whether `item` is in a slot before `slot`."""
    for before in range(slot):
        if slate[before] == item:
            return True
    return False


@kernel
def _values(table: Table, first: int, slates: Items, state: Floats, out: Floats) -> None:
    global_slate = slates.shape[0] == 1
    for user in range(first, first + len(out)):
        row = 0 if global_slate else user - first
        start(table, user, state, 0)
        for i in range(slates.shape[1]):
            item = slates[row, i]
            if item >= 0 and not shown_before(slates[row], i, item):
                add(table, user, state, 0, item)
        out[user - first] = value(table, user, state, 0)
