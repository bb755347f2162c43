"""Events: what a release costs, as data.

A mechanism says what it does as events; an accountant, which knows no mechanism, turns events into a guarantee. An
event holds public facts only and never changes its meaning: ledgers keep events for years.

Costs are floats, rounded up by whoever made the event; sums of them are taken exactly (fractions), not in floats.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from diminuendo import _validate
from diminuendo.errors import InvalidInput, UnknownEvent


@dataclass(frozen=True)
class Selections:
    """`count` draws by the exponential mechanism, the log-ratios of each within an interval of length `span`.

    Draw with weights exp(rate * score): if one person moves score differences by at most D, then span = rate * D.
    """

    count: int
    span: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", _validate.whole(self.count, 0, None, "count"))
        object.__setattr__(self, "span", _cost(self.span, "span"))


@dataclass(frozen=True)
class Gaussian:
    """Releases with discrete Gaussian noise that together are rho-zCDP."""

    rho: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", _cost(self.rho, "rho"))


@dataclass(frozen=True)
class ContinuousGaussian:
    """Releases with Gaussian noise, real or rounded to whole numbers: total sensitivity over deviation at most `mu`."""

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", _cost(self.mu, "mu"))


@dataclass(frozen=True)
class Laplace:
    """Releases that together are (epsilon, 0)-private: discrete Laplace noise, or anything else that is purely so."""

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _cost(self.epsilon, "epsilon"))


@dataclass(frozen=True)
class Columns:
    """A Gaussian release that people of different batches enter with different weights.

    A person of batch first + i pays rhos[i]; everybody else nothing. What a run costs is the largest sum over one
    batch, not the sum of each release's largest. `partition` names the way in which people were put into batches:
    batches of two partitions have nothing to do with each other, so there the largest sums are added.
    """

    first: int
    rhos: tuple[float, ...]
    partition: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", _validate.whole(self.first, 0, None, "first"))
        object.__setattr__(self, "rhos", tuple(_cost(rho, "rhos") for rho in _several(self.rhos, "rhos")))
        if not isinstance(self.partition, str):
            raise InvalidInput(f"partition of an event must be a name; got {self.partition!r}.")


@dataclass(frozen=True)
class NormalColumns:
    """As `Columns`, with Gaussian noise that is rounded to whole numbers (randomness/rounded_normal.py).

    A person of batch first + i pays squares[i]: squared shifts over squared deviations.
    """

    first: int
    squares: tuple[float, ...]
    partition: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", _validate.whole(self.first, 0, None, "first"))
        squares = tuple(_cost(square, "squares") for square in _several(self.squares, "squares"))
        object.__setattr__(self, "squares", squares)
        if not isinstance(self.partition, str):
            raise InvalidInput(f"partition of an event must be a name; got {self.partition!r}.")


@dataclass(frozen=True)
class Composed:
    """One after the other on the same people: each may depend on what those before it let out."""

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", _parts(self.events))


@dataclass(frozen=True)
class Parallel:
    """On different people: each person-round enters at most one of them, decided by public facts."""

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", _parts(self.events))


@dataclass(frozen=True)
class Repeated:
    """One cost, `times` over, on the same people."""

    event: Event
    times: int

    def __post_init__(self) -> None:
        _part(self.event)
        object.__setattr__(self, "times", _validate.whole(self.times, 0, None, "times"))


Event = (
    Selections
    | Gaussian
    | ContinuousGaussian
    | Laplace
    | Columns
    | NormalColumns
    | Composed
    | Parallel
    | Repeated
)
"""Anything that has a cost."""

NAMES: dict[str, type[Any]] = {
    "selections": Selections,
    "gaussian": Gaussian,
    "continuous-gaussian": ContinuousGaussian,
    "laplace": Laplace,
    "columns": Columns,
    "normal-columns": NormalColumns,
    "composed": Composed,
    "parallel": Parallel,
    "repeated": Repeated,
}
"""Names in files -> classes. A name is never given another meaning."""


def to_json(event: Event) -> dict[str, Any]:
    """A plain record, exact: Python writes the shortest decimal that reads back as the same float."""
    for name, kind in NAMES.items():
        if type(event) is kind:
            fields = {field.name: getattr(event, field.name) for field in dataclasses.fields(kind)}
            return {"kind": name} | {key: _plain(value) for key, value in fields.items()}
    raise UnknownEvent(f"Not an event: {type(event).__name__}. Known: {', '.join(NAMES)}.")


def from_json(record: Any) -> Event:
    """The event of a record; a name or a field that is not known is refused."""
    name = record.get("kind") if isinstance(record, dict) else None
    if name not in NAMES:
        raise UnknownEvent(f"Unknown event {name!r}; this version knows {', '.join(NAMES)}.")
    fields = {key: _lively(value) for key, value in record.items() if key != "kind"}
    try:
        event: Event = NAMES[name](**fields)
    except TypeError as error:
        raise UnknownEvent(f"The event {name!r} does not have these fields: {sorted(fields)}.") from error
    return event


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return to_json(value) if type(value) in NAMES.values() else value


def _lively(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_lively(part) for part in value)
    return from_json(value) if isinstance(value, dict) else value


def _parts(events: tuple[Event, ...]) -> tuple[Event, ...]:
    return tuple(_part(event) for event in _several(events, "events"))


def _part(event: Event) -> Event:
    if type(event) not in NAMES.values():
        raise UnknownEvent(f"Not an event: {type(event).__name__}. Known: {', '.join(NAMES)}.")
    return event


def _several(values: Iterable[Any], name: str) -> Iterable[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidInput(f"{name} of an event must be several, as a tuple; got {values!r}.")
    return values


def _cost(value: float, name: str) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float, np.integer, np.floating))
        or not 0 <= value < math.inf
    ):
        raise InvalidInput(f"{name} of an event must be a number from 0 on, not infinite; got {value!r}.")
    return float(value)
