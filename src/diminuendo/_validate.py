"""Argument checks. Each says what was given, unless a user said it, what was expected, and what to do."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from numbers import Real
from typing import Any, TypeGuard, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from diminuendo.errors import InvalidInput, UnknownName
from diminuendo.types import Floats, Slate, SlateLike

Value = TypeVar("Value")


def positive_int(value: object, name: str) -> int:
    """`value` as an int of at least 1."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InvalidInput(f"{name} must be a whole number of at least 1; got {value!r}.")
    return int(value)


def whole(value: object, low: int, high: int | None, name: str) -> int:
    """`value` as an int from `low` to `high`, both included."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        number = int(value)
        if low <= number and (high is None or number <= high):
            return number
    upto = "on" if high is None else f"to {high}"
    raise InvalidInput(f"{name} must be a whole number from {low} {upto}; got {value!r}.")


def slots(value: object, n_items: int) -> int:
    """`value` as a number of slots: at least 1 and at most the number of items."""
    count = positive_int(value, "slots")
    if count > n_items:
        raise InvalidInput(
            f"slots must be at most the number of items: got {count} slots for {n_items} items. "
            "Show fewer, or add items."
        )
    return count


def as_floats(values: object) -> Floats:
    """Numbers at the door; which numbers does not matter, as long as they are real. NumPy warns of none of them."""
    with suppress(Exception), np.errstate(all="ignore"):  # of long doubles that no float can hold
        result = np.asarray(values)
        if result.dtype == object:
            result = np.array([as_float(entry) for entry in result.flat]).reshape(result.shape)
        if result.dtype.kind in "biuf":
            return np.ascontiguousarray(result, dtype=np.float64)
    raise InvalidInput(f"Expected real numbers; got {type(values).__name__}.")


def as_float(value: object) -> float:
    """One number at the door; which one does not matter, as long as it is real."""
    with suppress(Exception), np.errstate(all="ignore"):
        if isinstance(value, (Real, np.bool_)) or np.asarray(value).dtype.kind in "biuf":
            return float(value)  # type: ignore[arg-type]  # what is none raises
    raise InvalidInput(f"Expected a real number; got {type(value).__name__}.")


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a real number, Python's or numpy's; a bool is none."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def positive_float(value: object, name: str) -> float:
    """`value` as a finite float above 0."""
    if not is_number(value):
        raise InvalidInput(f"{name} must be a number above 0; got {value!r}.")
    try:
        result = float(value)
    except OverflowError:  # a whole number too large for a float
        result = math.inf
    if not (math.isfinite(result) and result > 0):
        raise InvalidInput(f"{name} must be finite and above 0; got {value!r}.")
    return result


def numbers(values: object, what: str, kind: DTypeLike | None = np.float64) -> NDArray[Any]:
    """What users said, as an array. The error has nothing of it, nor is there one behind it that does."""
    with suppress(Exception):  # foreign objects may raise whatever they like
        return np.asarray(values, dtype=kind)
    raise InvalidInput(f"{what} must be numbers; got {type(values).__name__}.")


def delta(value: object) -> float:
    """`value` as a delta: at least 0 and below 1."""
    if not (is_number(value) and 0 <= value < 1):
        raise InvalidInput(f"delta must be at least 0 and below 1; got {value!r}.")
    return float(value)


def one_of(value: Value, allowed: Iterable[Value], name: str) -> Value:
    """`value` if it is one of `allowed`."""
    choices = list(allowed)
    if value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise InvalidInput(f"{name} must be one of {listed}; got {value!r}.")
    return value


def lookup(table: Mapping[str, Value], key: str, kind: str) -> Value:
    """`table[key]`, or an error that lists the names there are."""
    if key not in table:
        raise UnknownName(f"There is no {kind} called {key!r}. There are: {', '.join(table)}.")
    return table[key]


def slate(items: SlateLike, n_items: int, name: str = "slate") -> Slate:
    """`items` as a tuple of distinct items."""
    array = np.asarray(items)
    if array.size == 0:
        return ()
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise InvalidInput(f"A {name} is a sequence of whole numbers; got {items!r}.")
    if array.min() < 0 or array.max() >= n_items:
        bad = next(int(item) for item in array if not 0 <= item < n_items)
        raise InvalidInput(f"A {name} holds items from 0 to {n_items - 1}; got item {bad}.")
    chosen = tuple(int(item) for item in array)
    if len(set(chosen)) < len(chosen):
        bad = next(item for position, item in enumerate(chosen) if item in chosen[:position])
        raise InvalidInput(f"A {name} holds each item at most once; item {bad} is there twice.")
    return chosen
