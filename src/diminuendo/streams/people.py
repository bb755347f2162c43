"""Streams: the people who arrive, in order, each with an objective.

`People` is a table of one family (scipy CSR underneath) that compiled code can walk. `Functions` is for arbitrary
Python functions, which nothing can compile.
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
from diminuendo.objectives.person import Person, largest_state
from diminuendo.objectives.rows import Matrix
from diminuendo.streams.clicks import MODELS, click_all, click_words_of, first_click
from diminuendo.streams.contexts import Contexts
from diminuendo.streams.was_read import WasRead
from diminuendo.types import Floats, Ints, Items, Objective, Slate, SlateLike, Words


class Stream(ABC):
    """What the simulator and the offline solvers need of a stream. Its people click by a cascade of seed 0."""

    name: str
    n_items: int
    family_name: str
    clicks: str = "cascade"
    """By which model people click (clicks.py)."""
    _click_words: Words | None = None
    contexts: Contexts | None = None
    """What is known of people when they come, if anything."""
    types: Ints | None = None
    """The type of each of them."""
    persons: Ints | None = None
    """Whose round each is, as numbers, where somebody may have several; None where everybody has one."""
    was_read: WasRead | None = None
    """What was read of the table that they come from."""
    again: Callable[[], People] | None = None
    """Reads these people again, where they are one piece of a large file (pieces.py)."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __getitem__(self, person: int) -> Objective: ...

    @abstractmethod
    def values(self, slates: SlateLike | NDArray[np.integer]) -> Floats:
        """f_t(slate) for every person; one slate for all, or one row of `slates` each (-1: empty slot)."""

    @property
    def click_words(self) -> Words:
        """A word for each person, which decides where she clicks (clicks.py)."""
        if self._click_words is None:
            self._click_words = click_words_of(len(self), 0)
        return self._click_words

    def clicking(self, model: str = "cascade", seed: int = 0) -> Self:
        """These people, clicking by another model or with other click words."""
        return self.clicking_by(model, click_words_of(len(self), seed))

    def clicking_by(self, model: str, words: Words) -> Self:
        """These people, clicking by another model and with these click words."""
        made = copy.copy(self)
        made.clicks = _validate.one_of(model, MODELS, "model")
        made._click_words = words
        return made

    def with_contexts(self, contexts: Contexts, table: Any) -> Self:
        """These people, and what is known of each: contexts, or (people, columns) numbers of values, -1 for unknown."""
        made = copy.copy(self)
        made.contexts, made.types = contexts, contexts.types_of(table, len(self))
        return made

    def with_columns(self, names: Sequence[str], *, private: bool = False) -> Self:
        """These people, with only these columns of what is known of them; without any, nothing is known."""
        made = copy.copy(self)
        if not names:
            made.contexts = made.types = None
            return made
        if self.contexts is None or self.types is None:
            raise InvalidInput(
                f"Nothing is known of the people of {self.name}: they have no {', '.join(names)}."
            )
        known = [column.name for column in self.contexts.columns]
        made.contexts = self.contexts.only(names, private=private)
        table = self.contexts.values_of(self.types)[:, [known.index(name) for name in names]]
        made.types = made.contexts.types_of(table, len(self))
        return made

    def types_in(self, contexts: Contexts) -> Ints:
        """The types of these people among `contexts`, whose columns must be those of the stream."""
        if self.types is None or self.contexts is None:
            raise InvalidInput(
                f"Nothing is known of the people of {self.name}; give replay(contexts=..), or "
                "people.with_contexts(..)."
            )
        if self.contexts.columns != contexts.columns:
            raise InvalidInput(f"The learner knows {contexts} of people, the stream {self.contexts}.")
        within = self.types.shape == (len(self),) and (self.types >= 0).all()
        if not within or self.types.dtype != np.int64 or (self.types >= contexts.n_types).any():
            raise InvalidInput(
                f"The types of {self.name} are none of these contexts; give people.with_contexts(..)."
            )
        return self.types

    def click(self, person: int, slate: Slate) -> int | None:
        """Which position of the slate that person clicks first, if any."""
        items = _validate.slate(slate, self.n_items)  # all of it: she may click before the end
        return first_click(self[person], items, int(self.click_words[person]), self.clicks)


class People(Stream):
    """People of one family, in the order in which they arrive.

    >>> from diminuendo.objectives import NoisyOr
    >>> people = People(NoisyOr(), [[0.5, 0.0, 1.0], [0.0, 0.25, 0.0]])
    >>> people.values([0, 1])
    array([0.5 , 0.25])
    """

    def __init__(
        self,
        family: Family,
        matrices: Matrix | Sequence[Matrix],
        n_items: int | None = None,
        *,
        name: str = "people",
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
        whose = "" if self.persons is None else f"rounds of {len(np.unique(self.persons)):,} "
        return (
            f"<People: {self.name}, {len(self):,} {whose}people, {self.n_items:,} items, {self.family_name}>"
        )

    def __iter__(self) -> Iterator[Person]:
        return (Person(self.family, self.n_items, self.table, t) for t in range(len(self)))

    @overload
    def __getitem__(self, person: int) -> Person: ...
    @overload
    def __getitem__(self, person: slice | NDArray[np.integer]) -> People: ...
    def __getitem__(self, person: int | slice | NDArray[np.integer]) -> Person | People:
        if isinstance(person, (int, np.integer)):
            if not -len(self) <= person < len(self):
                raise IndexError(f"There are {len(self)} people; got number {person}.")
            return Person(self.family, self.n_items, self.table, int(person) % len(self))
        if isinstance(person, slice) and person.step in (None, 1):
            first, last, _ = person.indices(len(self))
            rows = self.family.rows(self.table, self.n_items)
            some = self.with_rows(tuple(part.between(first, max(first, last)) for part in rows))
        else:
            some = self.with_rows(tuple(part[person] for part in self.matrices))
        some._click_words = self.click_words[person]
        some.types = None if self.types is None else self.types[person]
        some.persons = None if self.persons is None else self.persons[person]
        return some

    def check(self, first: int = 0, end: int | None = None) -> None:
        """Refuse people, or those from number `first` to before `end`, whom compiled code could not read."""
        end = max(len(self), self._length) if end is None else end
        fits = sound_table(self.family, self.table, self.n_items, first, end)
        if not fits or len(self.click_words) < end or self.click_words.dtype != np.uint64:
            raise InvalidInput(
                f"The table of {self.name} does not hold {end:,} people of {self.n_items:,} items. Make People by "
                "their constructor, and leave them as they are."
            )

    @property
    def matrices(self) -> tuple[Matrix, ...]:
        """The private rows as scipy CSR, one matrix per part of the family."""
        return self.family.matrices(self.table, self.n_items)

    @property
    def largest_state(self) -> int:
        """How many numbers the state of one person can take: what kernels need as scratch."""
        if self._state_of[0] is not self.table:
            self._state_of = self.table, int(largest_state(self.table, 0, self._length))
        return self._state_of[1]

    def values(self, slates: SlateLike | NDArray[np.integer]) -> Floats:
        """f_t(slate) for every person; one slate for all, or one row of `slates` each (-1: empty slot)."""
        self.check()
        rows = slate_rows(slates, len(self), self.n_items)
        out = np.empty(len(self))
        _values(self.table, 0, rows, np.empty(self.largest_state), out)
        return out

    def values_of(self, slates: Items, first: int = 0) -> Floats:
        """f_t(slate) for each of `slates`, of the people from number `first` on."""
        out = np.empty(len(slates))
        _values(self.table, first, slates, np.empty(self.largest_state), out)
        return out

    def permuted(self, order: NDArray[np.integer]) -> People:
        """These people, with item a renamed to order[a] (families whose columns are items)."""
        if not self.family.columns_are_items:
            raise InvalidInput(f"{self.family_name} people speak of topics; their items cannot be renamed.")
        inverse = np.argsort(order)
        moved = tuple(part[:, inverse] for part in self.matrices)
        for part in moved:
            part.sort_indices()
        return self.with_rows(moved, labels=None)

    def first_clicks(self, slates: Items, first: int = 0) -> Ints:
        """For each slate the position of the first click, or NO_CLICK; of the people from number `first` on."""
        out = np.empty(len(slates), dtype=np.int64)
        independent, state = self.clicks == "independent", np.empty(self.largest_state)
        click_all(self.table, first, slates, self.click_words, independent, state, out)
        return out

    def with_rows(self, parts: tuple[Matrix, ...], **changes: Any) -> People:
        """People of the same family and with the same click words who want something else."""
        kept = {"name": self.name, "labels": self.labels} | changes
        made = People(self.family, parts, self.n_items, **kept)
        made.clicks, made._click_words = self.clicks, self._click_words
        made.contexts, made.types = self.contexts, self.types
        made.persons, made.was_read = self.persons, self.was_read
        return made


class Functions(Stream):
    """People given as Python functions of a set, for objectives that no family covers."""

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
        return f"<Functions: {self.name}, {len(self):,} people, {self.n_items:,} items>"

    def __getitem__(self, person: int) -> Oracle:
        return self.objectives[person]

    def values(self, slates: SlateLike | NDArray[np.integer]) -> Floats:
        """f_t(slate) for every person; one slate for all, or one row of `slates` each (-1: empty slot)."""
        rows = np.broadcast_to(slate_rows(slates, len(self), self.n_items), (len(self), np.shape(slates)[-1]))
        return np.array(
            [f.value(np.unique(row[row >= 0])) for f, row in zip(self.objectives, rows, strict=True)]
        )


def slate_rows(slates: SlateLike | NDArray[np.integer], n_people: int, n_items: int) -> Items:
    """Slates as a checked array with one row, or one row per person."""
    rows = np.atleast_2d(np.asarray(slates))
    if rows.size == 0:
        return np.zeros((1, 0), dtype=np.int32)
    if rows.ndim != 2 or rows.shape[0] not in (1, n_people) or not np.issubdtype(rows.dtype, np.integer):
        raise InvalidInput(
            f"Expected one slate, or an array of {n_people} slates of whole numbers; got shape {np.shape(slates)}."
        )
    if rows.min() < -1 or rows.max() >= n_items:
        raise InvalidInput(f"Slates hold items from 0 to {n_items - 1}, or -1 for an empty slot.")
    return np.ascontiguousarray(rows, dtype=np.int32)


def _two_dimensional(part: Matrix) -> Matrix:
    found: Any = part if is_sparse(part) else np.atleast_2d(_validate.numbers(part, "Rows of people"))
    if len(found.shape) != 2:
        raise InvalidInput(f"Rows of people form a two-dimensional array; got shape {found.shape}.")
    return found


@inline
def shown_before(slate: Items, slot: int, item: int) -> bool:
    """Whether `item` is in a slot before `slot`."""
    for before in range(slot):
        if slate[before] == item:
            return True
    return False


@kernel
def _values(table: Table, first: int, slates: Items, state: Floats, out: Floats) -> None:
    one_for_all = slates.shape[0] == 1
    for person in range(first, first + len(out)):
        row = 0 if one_for_all else person - first
        start(table, person, state, 0)
        for i in range(slates.shape[1]):
            item = slates[row, i]
            if item >= 0 and not shown_before(slates[row], i, item):
                add(table, person, state, 0, item)
        out[person - first] = value(table, person, state, 0)
