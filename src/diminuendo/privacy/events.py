"""Events: what a release costs, as data.

A mechanism says what it does as events; an accountant, which knows no mechanism, turns events into a guarantee. An
event holds public facts only and never changes its meaning: ledgers keep events for years.

Costs are floats, rounded up by whoever made the event; sums of them are taken exactly (fractions), not in floats.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, cast

from diminuendo import _validate
from diminuendo.errors import InvalidInput, UnknownEvent


class _Checked:
    """What all events are: each field is checked by its name (FIELDS) when an event is made, also from a file."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(cast(Any, self)):
            checked = FIELDS[field.name](getattr(self, field.name), field.name)
            object.__setattr__(self, field.name, checked)


@dataclass(frozen=True)
class Selections(_Checked):
    """`count` draws by the exponential mechanism, the log-ratios of each within an interval of length `span`.

    Draw with weights exp(rate * score): if one person moves score differences by at most D, then span = rate * D.
    """

    count: int
    span: float


@dataclass(frozen=True)
class Gaussian(_Checked):
    """Releases with discrete Gaussian noise that together are rho-zCDP."""

    rho: float


@dataclass(frozen=True)
class ContinuousGaussian(_Checked):
    """Releases with Gaussian noise, real or rounded to whole numbers: total sensitivity over deviation at most `mu`."""

    mu: float


@dataclass(frozen=True)
class Laplace(_Checked):
    """Releases that together are (epsilon, 0)-private: discrete Laplace noise, or anything else that is purely so."""

    epsilon: float


@dataclass(frozen=True)
class NormalColumns(_Checked):
    """A release with Gaussian noise, rounded to whole numbers, that users of different batches enter with weights.

    The noise is that of randomness/rounded_normal.py. A user of batch first + i pays squares[i], squared shifts over
    squared deviations; other users pay nothing. A run costs the largest sum over one batch, not the sum of each
    release's largest. `partition` names the way in which rounds were put into batches. Batches of two partitions have
    nothing to do with each other, so the largest sums of partitions are added.
    """

    first: int
    squares: tuple[float, ...]
    partition: str = ""


@dataclass(frozen=True)
class Composed(_Checked):
    """One after the other on the same people: each may depend on what those before it let out."""

    events: tuple[Event, ...]


@dataclass(frozen=True)
class Parallel(_Checked):
    """On different people: each person-round enters at most one of them, decided by public facts."""

    events: tuple[Event, ...]


@dataclass(frozen=True)
class Repeated(_Checked):
    """One cost, `times` over, on the same people."""

    event: Event
    times: int


Event = Selections | Gaussian | ContinuousGaussian | Laplace | NormalColumns | Composed | Parallel | Repeated
"""Anything that has a cost."""

NAMES: dict[str, type[Any]] = {
    "selections": Selections,
    "gaussian": Gaussian,
    "continuous-gaussian": ContinuousGaussian,
    "laplace": Laplace,
    "normal-columns": NormalColumns,
    "composed": Composed,
    "parallel": Parallel,
    "repeated": Repeated,
}
"""Names in files -> classes. A name is never given another meaning."""


def to_json(event: Event) -> dict[str, Any]:
    """A plain record, exact: Python writes the shortest decimal that reads back as the same float."""
    _event(event, "event")
    name = next(name for name, kind in NAMES.items() if type(event) is kind)
    return {"kind": name} | {key: _plain(value) for key, value in vars(event).items()}


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


def renamed(event: Event, name: Callable[[str], str]) -> Event:
    """The same cost, its partitions under other names."""
    if isinstance(event, NormalColumns):
        return dataclasses.replace(event, partition=name(event.partition))
    if isinstance(event, (Composed, Parallel)):
        return dataclasses.replace(event, events=tuple(renamed(part, name) for part in event.events))
    return (
        dataclasses.replace(event, event=renamed(event.event, name)) if isinstance(event, Repeated) else event
    )


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return to_json(value) if type(value) in NAMES.values() else value


def _lively(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_lively(part) for part in value)
    return from_json(value) if isinstance(value, dict) else value


def _whole(value: Any, name: str) -> int:
    return _validate.whole(value, 0, None, name)


def _cost(value: Any, name: str) -> float:
    if not (_validate.is_number(value) and 0 <= value < math.inf):
        raise InvalidInput(f"{name} of an event must be a number from 0 on, not infinite; got {value!r}.")
    return float(value)


def _costs(values: Any, name: str) -> tuple[float, ...]:
    return tuple(_cost(value, name) for value in _several(values, name))


def _partition(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{name} of an event must be a name; got {value!r}.")
    return value


def _event(value: Any, name: str) -> Event:
    if type(value) not in NAMES.values():
        raise UnknownEvent(f"Not an event: {type(value).__name__}. Known: {', '.join(NAMES)}.")
    return cast(Event, value)


def _events(values: Any, name: str) -> tuple[Event, ...]:
    return tuple(_event(value, name) for value in _several(values, name))


def _several(values: Any, name: str) -> Iterable[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidInput(f"{name} of an event must be several, as a tuple; got {values!r}.")
    return values


FIELDS: dict[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(("count", "first", "times"), _whole),
    **dict.fromkeys(("span", "rho", "mu", "epsilon"), _cost),
    **dict.fromkeys(("squares",), _costs),
    "partition": _partition,
    "event": _event,
    "events": _events,
}
"""Names of fields -> what checks them, and returns them as they are kept."""
