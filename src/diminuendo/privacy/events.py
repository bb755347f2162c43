"""Events: what a release costs, as data.

A mechanism reports events, and an accountant, which knows no mechanism, turns events into a guarantee. An event holds
public facts only, and its meaning never changes: ledgers keep events for years. Costs are floats, rounded up by whoever
made the event; sums of them are exact fractions.
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
    """Cost of `count` draws by the exponential mechanism.

    Parameters
    ----------
    count : int
        Number of draws, at least 0. Each may depend on the results of those before it.
    span : float
        Length of an interval that contains the log-ratio of the two laws of one draw, for adjacent inputs.
        Weights exp(rate * score) give span = rate * D if one round moves differences of scores by at most D.

    Notes
    -----
    One draw has bounded range `span`. It is (span, 0)-DP and, by Theorem A1 of docs/maths/accounting.md,
    (span**2 / 8)-zCDP, a quarter of what a pure mechanism of the same epsilon costs. That draws have this range is
    Theorem E2 of docs/maths/exponential.md.

    References
    ----------
    Dong, Durfee & Rogers (2020), Optimal differential privacy composition for exponential mechanisms, ICML.

    Examples
    --------
    >>> from diminuendo.privacy import ACCOUNTANTS, Selections
    >>> draws = Selections(count=800, span=0.0625)  # 800 * 0.0625**2 / 8 = 0.39-zCDP
    >>> round(ACCOUNTANTS["zcdp"].epsilon(draws, delta=1e-6), 3)
    4.544
    >>> ACCOUNTANTS["pure"].epsilon(draws, delta=0.0)  # 800 * 0.0625
    50.0
    """

    count: int
    span: float


@dataclass(frozen=True)
class Gaussian(_Checked):
    """Cost of releases with discrete Gaussian noise.

    Parameters
    ----------
    rho : float
        All releases of this event together are rho-zCDP: sensitivity**2 / (2 sigma**2) for one vector of integers.

    Notes
    -----
    Counted by `zcdp` alone. The exact curve of continuous Gaussian noise (Theorem A3 of docs/maths/accounting.md)
    is too small for discrete noise, so `continuous-gaussian` refuses this event.

    References
    ----------
    Canonne, Kamath & Steinke (2020), The discrete Gaussian for differential privacy, NeurIPS 33.

    Examples
    --------
    >>> from diminuendo.privacy import ACCOUNTANTS, Gaussian
    >>> sensitivity, sigma = 3, 10.0
    >>> noise = Gaussian(rho=sensitivity**2 / (2 * sigma**2))
    >>> round(ACCOUNTANTS["zcdp"].epsilon(noise, delta=1e-6), 3)
    1.39
    """

    rho: float


@dataclass(frozen=True)
class ContinuousGaussian(_Checked):
    """Cost of releases with Gaussian noise, real-valued or rounded to integers.

    Parameters
    ----------
    mu : float
        L2 sensitivity over standard deviation, for all releases of this event together.

    Notes
    -----
    `continuous-gaussian` prices it exactly (Theorems A3 and A8 of docs/maths/accounting.md); `zcdp` prices it as
    (mu**2 / 2)-zCDP, which needs about 7 percent more noise at (1, 1e-6). Rounding the noisy sum is
    post-processing.

    Examples
    --------
    >>> from diminuendo.privacy import ACCOUNTANTS, ContinuousGaussian
    >>> noise = ContinuousGaussian(mu=0.25)
    >>> [round(ACCOUNTANTS[name].epsilon(noise, delta=1e-6), 3) for name in ("continuous-gaussian", "zcdp")]
    [1.061, 1.143]
    """

    mu: float


@dataclass(frozen=True)
class Laplace(_Checked):
    """Cost of releases that together are (epsilon, 0)-DP.

    Parameters
    ----------
    epsilon : float
        L1 sensitivity over scale for discrete Laplace noise, or the epsilon of any other pure mechanism.

    Notes
    -----
    `pure` adds epsilons. `zcdp` counts (epsilon**2 / 2)-zCDP, which holds for every (epsilon, 0)-DP mechanism
    (Theorem A1 of docs/maths/accounting.md).

    Examples
    --------
    >>> from diminuendo.privacy import ACCOUNTANTS, Laplace, Repeated
    >>> ACCOUNTANTS["pure"].epsilon(Repeated(Laplace(0.5), 4), delta=0.0)
    2.0
    """

    epsilon: float


@dataclass(frozen=True)
class NormalColumns(_Checked):
    """A release with Gaussian noise that users of different batches enter with different weights.

    Parameters
    ----------
    first : int
        Index of the first batch that enters.
    squares : tuple of float
        A user of batch `first + i` pays `squares[i]`: squared sensitivity over squared deviation. All others pay 0.
    partition : str, default ""
        Name of the partition of rounds into batches. Batches of two partitions are unrelated.

    Notes
    -----
    The noise is that of randomness/rounded_normal.py. A run costs the largest sum over one batch, not the sum of
    the largest costs of each release; the largest sums of different partitions are added (Theorem A7 of
    docs/maths/accounting.md, "Columns").

    Examples
    --------
    >>> from diminuendo.privacy import ACCOUNTANTS, Composed
    >>> from diminuendo.privacy.events import NormalColumns
    >>> run = Composed((NormalColumns(0, (0.04,)), NormalColumns(0, (0.01, 0.04)), NormalColumns(1, (0.02,))))
    >>> round(float(ACCOUNTANTS["continuous-gaussian"].tally(run).total), 6)  # batch 1 pays most: 0.04 + 0.02
    0.06
    """

    first: int
    squares: tuple[float, ...]
    partition: str = ""


@dataclass(frozen=True)
class Composed(_Checked):
    """Cost of releases one after the other on the same users.

    Parameters
    ----------
    events : tuple of Event
        Each may be chosen in the light of what the releases before it published.

    Notes
    -----
    Adaptive composition is Theorem A7 of docs/maths/accounting.md: costs add up along every path, and a ledger that
    refuses the event that would exceed its budget is a privacy filter.

    References
    ----------
    Rogers, Roth, Ullman & Vadhan (2016), Privacy odometers and filters, NIPS 29. Feldman & Zrnic (2021), Individual
    privacy accounting via a Renyi filter, NeurIPS 34.

    Examples
    --------
    >>> from diminuendo.privacy import ACCOUNTANTS, Composed, Laplace, Selections
    >>> run = Composed((Laplace(0.25), Selections(count=4, span=0.125)))
    >>> ACCOUNTANTS["pure"].epsilon(run, delta=0.0)  # 0.25 + 4 * 0.125
    0.75
    """

    events: tuple[Event, ...]


@dataclass(frozen=True)
class Parallel(_Checked):
    """Cost of releases on disjoint sets of rounds: the largest of its parts.

    Parameters
    ----------
    events : tuple of Event
        Each round enters at most one of them, and public facts decide which.

    Notes
    -----
    Theorem A7 of docs/maths/accounting.md, "Parallel". If the part that a round enters depended on what its user
    answered, the costs would have to be added instead.

    Examples
    --------
    >>> from diminuendo.privacy import ACCOUNTANTS, Laplace, Parallel
    >>> ACCOUNTANTS["pure"].epsilon(Parallel((Laplace(0.5), Laplace(0.25))), delta=0.0)
    0.5
    """

    events: tuple[Event, ...]


@dataclass(frozen=True)
class Repeated(_Checked):
    """Cost of one event, `times` over, on the same users.

    Parameters
    ----------
    event : Event
        Cost of one repetition.
    times : int
        Number of repetitions, at least 0.

    Examples
    --------
    >>> from diminuendo.privacy import ACCOUNTANTS, Gaussian, Repeated
    >>> ACCOUNTANTS["zcdp"].tally(Repeated(Gaussian(rho=0.125), times=4)).total
    Fraction(1, 2)
    """

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
    """Return an event as a plain record.

    Parameters
    ----------
    event : Event
        Any event.

    Returns
    -------
    dict
        JSON types only. Floats survive exactly: Python writes the shortest decimal that reads back as the same
        float.

    Examples
    --------
    >>> from diminuendo.privacy import Laplace
    >>> from diminuendo.privacy.events import from_json, to_json
    >>> to_json(Laplace(0.1))
    {'kind': 'laplace', 'epsilon': 0.1}
    >>> from_json(to_json(Laplace(0.1)))
    Laplace(epsilon=0.1)
    """
    _event(event, "event")
    name = next(name for name, kind in NAMES.items() if type(event) is kind)
    return {"kind": name} | {key: _plain(value) for key, value in vars(event).items()}


def from_json(record: Any) -> Event:
    """Return the event of a record that `to_json` wrote.

    Parameters
    ----------
    record : dict
        With the key `kind` and the fields of that kind.

    Returns
    -------
    Event

    Raises
    ------
    UnknownEvent
        If the kind or a field is unknown. An event is refused rather than guessed.
    """
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
