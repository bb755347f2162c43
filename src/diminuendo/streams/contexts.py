"""Contexts: what is known of a user when they arrive, as features whose categories are listed beforehand.

    Contexts(country=["DE", "FR", "other"], hour=24)

A *context id* (type) stands for what is known in all features together; id 0 is a user of whom nothing is known. "Not
known" is part of every feature and needs no category of its own.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.privacy.process_guard import call_untrusted, call_user
from diminuendo.types import Ints

Context: TypeAlias = Mapping[str, Any] | Sequence[Any] | str | int | None
"""What is known of one user: by the names of columns, or in their order; of a single column also the value alone."""

OTHER = "other"
"""The value that stands for all that are not listed, where a column has it."""
UNKNOWN = -1
"""In place of the number of a value: nothing is known."""
MOST_TYPES = 1 << 17
"""There is a slate for every type."""
MOST_VALUES = 1000
"""Values of a column that are listed from data; rarer ones become OTHER."""


@dataclass(frozen=True)
class Column:
    """One feature of contexts.

    Attributes
    ----------
    name : str
        Name of the feature.
    values : tuple of str
        Its categories. "Not known" is part of every feature and is not listed.
    symmetric : bool, default False
        Whether categories are the items, and a user's category is one of the items that they want, drawn at random,
        while the others are their feedback. Then "c is known, a is wanted" is as likely as "a is known, c is
        wanted".

    """

    name: str
    values: tuple[str, ...]
    symmetric: bool = False

    def __len__(self) -> int:
        return len(self.values)

    def number(self, value: Any) -> int | None:
        """Return the number of a category: -1 for None, None if it is not listed and the feature has no "other"."""
        if value is None:
            return UNKNOWN
        return self._numbers.get(str(value), self._numbers.get(OTHER))

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """Found at once, wherever a value stands: how long it takes tells nothing."""
        return {value: number for number, value in enumerate(self.values)}


@dataclass(frozen=True, init=False)
class Contexts:
    """What may be known of users when they arrive: features, whose categories are listed beforehand.

    Parameters
    ----------
    columns : mapping of str to categories, optional
        Categories of each feature: a list of names, or a number n for 0 to n - 1. Coarse features first.
    private : bool, default False
        Whether only the user may learn their context.
    symmetric : sequence of str, optional
        Features whose category is one of the wanted items, drawn at random (see `Column`).
    **more
        Features as keywords: `Contexts(country=["DE", "FR", "other"], hour=24)`.

    Attributes
    ----------
    columns : tuple of Column
        The features.
    private : bool
        As given.

    Raises
    ------
    InvalidInput
        If there is no feature, a category is listed twice, or there are more than 2**17 combinations.

    Notes
    -----
    With public contexts the relation is `replace`: contexts are known to all. With private contexts it is
    `replace-with-context`: what all *other* users see hides a user's context together with their feedback, while
    the user's own slate shows what their context was (joint differential privacy; Theorems X0 and X1 of
    docs/maths/contexts.md). A private context that cannot be read is never an error that others might see: it
    counts as "other" if that is listed, else as not known.

    Examples
    --------
    >>> import diminuendo as dim
    >>> contexts = dim.Contexts(country=["DE", "FR", "other"], hour=24)
    >>> contexts.n_types  # (3 + 1) * (24 + 1): "not known" is part of every feature
    100
    >>> contexts.said(contexts.type_of({"country": "PL", "hour": 8}))
    {'country': 'other', 'hour': '8'}

    """

    columns: tuple[Column, ...]
    private: bool

    def __init__(
        self,
        columns: Mapping[str, Any] | None = None,
        /,
        *,
        private: bool = False,
        symmetric: Sequence[str] = (),
        **more: Any,
    ) -> None:
        given, drawn = dict(columns or {}) | more, [symmetric] if isinstance(symmetric, str) else symmetric
        if not given:
            raise InvalidInput("Contexts have at least one column, such as country=['DE', 'FR', 'other'].")
        if strange := [name for name in drawn if name not in given]:
            raise InvalidInput(f"symmetric names columns, and there is none called {', '.join(strange)}.")
        result = tuple(
            replace(_column(name, values), symmetric=name in drawn) for name, values in given.items()
        )
        object.__setattr__(self, "columns", result)
        object.__setattr__(self, "private", bool(private))
        if self.n_types > MOST_TYPES:
            sizes = " x ".join(f"({len(column)} + 1)" for column in result)
            raise InvalidInput(
                f"There is a slate for every type, and {sizes} = {self.n_types:,} are too many; at most "
                f"{MOST_TYPES:,} are allowed. Join values of a column, or leave a column out."
            )

    def __repr__(self) -> str:
        parts = [f"{column.name}: {len(column)}" for column in self.columns]
        return f"<Contexts {', '.join(parts)}{'; private' if self.private else ''}>"

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of categories of each feature."""
        return tuple(len(column) for column in self.columns)

    @property
    def n_types(self) -> int:
        """The number of context ids, those with unknown features among them."""
        return math.prod(size + 1 for size in self.sizes)

    def type_of(self, context: Context) -> int:
        """Return the context id of one user.

        Parameters
        ----------
        context : mapping, sequence, value or None
            Categories by feature, or in the order of features; of a single feature also the category alone. None:
            nothing is known.

        Returns
        -------
        int
            From 0 (nothing is known) to `n_types` - 1.

        Raises
        ------
        InvalidInput
            If a public context is not listed. A private one never raises.
        """
        # Foreign objects may raise whatever they like.
        known = (call_untrusted if self.private else call_user)(lambda: self._by_column(context))
        given = known or [(column, None) for column in self.columns]
        result = [self._checked(column, value) for column, value in given]
        return int(np.ravel_multi_index([number + 1 for number in result], self._shape))

    def _by_column(self, context: Any) -> list[tuple[Column, Any]]:
        names = [column.name for column in self.columns]
        if context is None:
            values: list[Any] = [None] * len(names)
        elif isinstance(context, Mapping):
            if not (self.private or set(context) <= set(names)):
                strange = sorted(str(name) for name in set(context) - set(names))
                raise InvalidInput(
                    f"A context has the columns {', '.join(names)}; got {', '.join(strange)} besides."
                )
            values = [context.get(name) for name in names]
        elif isinstance(context, (str, bytes)) or not isinstance(context, (Sequence, np.ndarray)):
            values = [context]
        else:
            values = list(islice(context, len(names) + 1))
        if len(values) != len(names):
            if not self.private:
                raise InvalidInput(
                    f"A context has a value for each column ({', '.join(names)}); got {len(values)}."
                )
            values = [None] * len(names)
        return list(zip(self.columns, values, strict=True))

    def _checked(self, column: Column, value: Any) -> int:
        # Text of a whole number of thousands of digits is refused by Python, with an error.
        plain = value is None or type(value) is str or (type(value) is int and value.bit_length() < 64)
        result = column.number(value) if plain else call_untrusted(lambda: column.number(value))
        if result is None and not self.private:
            listed = ", ".join(column.values[:10]) + (", .." if len(column) > 10 else "")
            given = call_untrusted(lambda: repr(value))
            raise InvalidInput(
                f"{column.name} must be one of {listed}; got {given}. List {OTHER!r} among its values for all that "
                "is not listed, or leave it out where it is not known."
            )
        return UNKNOWN if result is None else result

    def types_of(self, table: Any, rounds: int) -> Ints:
        """Return the context ids of several users.

        Parameters
        ----------
        table : array of int, shape (rounds, n_features), or sequence of contexts
            Numbers of categories, -1 for not known; or contexts as `type_of` takes them.
        rounds : int
            Expected number of users.

        Returns
        -------
        ndarray of int, shape (rounds,)

        Raises
        ------
        InvalidInput
            If the shape does not fit, or a public context is not listed.
        """
        if isinstance(table, np.ndarray) and np.issubdtype(table.dtype, np.integer):
            numbers = table[:, None] if table.ndim == 1 else table
            if numbers.shape != (rounds, len(self.columns)):
                raise InvalidInput(
                    f"contexts must have a row for each of {rounds:,} users and a number for each of "
                    f"{len(self.columns)} columns; got shape {table.shape}."
                )
            listed = (numbers >= UNKNOWN) & (numbers < np.array(self.sizes))
            if not (self.private or listed.all()):
                row, column = np.argwhere(~listed)[0]
                raise InvalidInput(
                    f"The values of {self.columns[column].name} are numbered from 0 to {self.sizes[column] - 1}, and "
                    f"{UNKNOWN} is not known; got {numbers[row, column]} for user {row}."
                )
            digits = np.where(listed, numbers.astype(np.int64), UNKNOWN) + 1
            result: Ints = np.ravel_multi_index(tuple(digits.T), self._shape).astype(np.int64)
            return result
        if len(table) != rounds:
            raise InvalidInput(f"contexts must have one for each of {rounds:,} users; got {len(table)}.")
        return np.array([self.type_of(context) for context in table], dtype=np.int64)

    def values_of(self, types: Ints) -> Ints:
        """Return category numbers of shape (n_users, n_features), -1 where a feature is not known."""
        digits = np.unravel_index(np.asarray(types), self._shape)
        return np.stack(digits, axis=-1).astype(np.int64) - 1

    def said(self, number: int) -> dict[str, str]:
        """Return what a context id stands for, by feature, without unknown features."""
        values = self.values_of(np.array([number]))[0].tolist()
        return {
            column.name: column.values[value]
            for column, value in zip(self.columns, values, strict=True)
            if value != UNKNOWN
        }

    def only(self, names: Sequence[str], *, private: bool) -> Contexts:
        """Return these features alone, in this order; `private` as given."""
        known = {column.name: column for column in self.columns}
        missing = [name for name in names if name not in known]
        if missing:
            raise InvalidInput(
                f"Nothing called {', '.join(missing)} is known of these users; there is: {', '.join(known)}."
            )
        symmetric = [name for name in names if known[name].symmetric]
        return Contexts({name: known[name].values for name in names}, private=private, symmetric=symmetric)

    def config(self) -> dict[str, Any]:
        """Return the contexts as files hold them."""
        return {
            "columns": {column.name: list(column.values) for column in self.columns},
            "private": self.private,
            "symmetric": [column.name for column in self.columns if column.symmetric],
        }

    @property
    def _shape(self) -> tuple[int, ...]:
        return tuple(size + 1 for size in self.sizes)


def as_contexts(given: Any) -> Contexts | None:
    """Contexts at the door: themselves, or as files hold them."""
    if given is None or isinstance(given, Contexts):
        return given
    if isinstance(given, Mapping) and set(given) == {"columns", "private", "symmetric"}:
        return Contexts(given["columns"], private=given["private"], symmetric=given["symmetric"])
    raise InvalidInput(f"contexts must be Contexts(country=[..], hour=24, ..); got {given!r}.")


def _column(name: str, values: Any) -> Column:
    if isinstance(values, (int, np.integer)) and not isinstance(values, bool):
        listed = [str(value) for value in range(_validate.positive_int(values, name))]
    elif isinstance(values, str) or not isinstance(values, (Sequence, np.ndarray)):
        raise InvalidInput(
            f"{name} must list its values, as ['DE', 'FR', 'other'], or say how many there are; got {values!r}."
        )
    else:
        listed = [str(value) for value in values]
    if not listed or len(set(listed)) < len(listed):
        raise InvalidInput(f"{name} must have at least one value, each once; got {listed!r}.")
    return Column(str(name), tuple(listed))


def names_of(context: str | Sequence[str] | None) -> list[str]:
    """The contexts that were asked for, as `country,time:hour` or one by one."""
    given = context.split(",") if isinstance(context, str) else context or ()
    names = [str(name).strip() for name in given]
    if not all(names) or len(set(names)) < len(names):
        raise InvalidInput(
            f"context names columns, each once, as 'country,device' or ['country', 'time:hour']; got {context!r}."
        )
    return names


def listed(name: str, codes: Ints, values: Sequence[str]) -> tuple[list[str], Ints]:
    """The values of a column that occur, in order, and the number of each user's value; UNKNOWN stays what it is.

    `codes` are numbers of `values`. For simulations, where nothing is protected; a service lists
    values before the first user arrives. Beyond MOST_VALUES the rarest become OTHER.
    """
    known = codes[codes != UNKNOWN]
    if not len(known):
        raise InvalidInput(f"{name} is missing for all users; leave it out.")
    counts = np.bincount(known, minlength=len(values))
    common = np.flatnonzero(counts)
    if len(common) > MOST_VALUES:
        rare = len(common) - (MOST_VALUES - 1)
        common = np.argsort(-counts, kind="stable")[: MOST_VALUES - 1]
        warnings.warn(
            f"{name} has more than {MOST_VALUES:,} values; the {rare:,} rarest of them became {OTHER!r}.",
            stacklevel=2,
        )
    result = sorted({values[code] for code in common.tolist()} - {OTHER}, key=_as_number)
    if len(common) < np.count_nonzero(counts) or any(values[code] == OTHER for code in common.tolist()):
        result.append(OTHER)
    place = {value: number for number, value in enumerate(result)}
    numbers = np.array([place.get(value, place.get(OTHER, UNKNOWN)) for value in values], dtype=np.int64)
    return result, np.where(codes == UNKNOWN, UNKNOWN, numbers[codes])


def _as_number(value: str) -> tuple[bool, int, str]:
    """Whole numbers by their size and first, then words."""
    whole = value.removeprefix("-").isdecimal()
    return not whole, int(value) if whole else 0, value


NOBODY: Ints = np.zeros(0, dtype=np.int64)
"""The context ids where there are no contexts."""
