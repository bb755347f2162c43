"""Where people are kept and asked: in this process, in several threads, or on Ray actors (on_ray.py).

    OverlapGreedy(..., engine="threads")             # as many parts as there are cores, asked at the same time
    OverlapGreedy(..., engine=Here(parts=7))         # seven parts, one after the other
    OverlapGreedy(..., engine=OnRay(4))              # four actors, each of which keeps its people
    OverlapGreedy(..., engine="ray://head:10001")    # as many as that cluster has cores

A release asks a chain of questions. Each part of the people answers with whole numbers, which are added up before noise
is; so what is published is the same, bit for bit, however people are parted. Noise, ledger and choice stay with the
learner.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from diminuendo import _validate
from diminuendo._cluster import LOCAL, cores, joined
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.kept.one_place import Arrived, Kept
from diminuendo.sums.chains.people.entries import Entries
from diminuendo.sums.chains.people.frozen import AskedPeople
from diminuendo.sums.clip import Clip
from diminuendo.types import Floats, Ints, Objective

ADDRESS = "ray://"
"""How the address of a Ray cluster elsewhere begins."""


class KeptPeople(Protocol):
    """People who are kept somewhere, and can be asked there."""

    def __len__(self) -> int:
        """How many: as private as whether somebody answered."""
        ...

    def keep(self, person: Objective, items: Ints, worth: Floats, batch: int, kind: int = 0) -> None:
        """One person, and what items are worth to her by themselves, in rising order."""
        ...

    def keep_rows(self, came: Arrived) -> None:
        """Several people of one table and one batch."""
        ...

    def mark(self, rounds: Sequence[int] | Ints) -> None:
        """Those who were kept last came in these rounds."""
        ...

    def erase(self, rounds: Ints) -> None:
        """Drop everybody who came in these rounds."""
        ...

    def forget(self, before: int) -> None:
        """Drop everybody of batches before that one."""
        ...

    def begin(self, weights: Ints, factors: Floats) -> AskedPeople:
        """The people of a release as they are now, with the weights of their batches; `factors`: of items."""
        ...

    def written(self) -> tuple[list[NDArray[Any]], dict[str, NDArray[Any]]]:
        """What a snapshot holds of them."""
        ...

    def read(self, entries: Sequence[NDArray[Any]], rows: dict[str, NDArray[Any]]) -> None:
        """Keep everybody of a snapshot again."""
        ...


class Engine(Protocol):
    """A place for people, by the options of whoever asks for it."""

    def room(self, n_items: int, clip: Clip, entries: Entries) -> KeptPeople:
        """Room for people who are clipped so; `entries`: where those who are kept here are to lie."""
        ...


@dataclass(frozen=True)
class Here:
    """In this process: people are asked in `parts`, by `threads` at the same time. Kernels let go of Python's lock."""

    parts: int = 1
    threads: int = 1

    def __post_init__(self) -> None:
        _validate.positive_int(self.parts, "parts")
        _validate.positive_int(self.threads, "threads")

    def room(self, n_items: int, clip: Clip, entries: Entries) -> KeptPeople:
        """Room for people in this process."""
        return Kept(n_items, clip, entries, parts=self.parts, threads=self.threads)


@dataclass(frozen=True)
class OnRay:
    """On `actors` of the Ray cluster at `address`; "local" starts one here, and ends it with the learner.

    `actors`: how many; None, as many as the cluster has cores.

    `remembers`: whether people are given again to an actor that takes the place of one that was lost; what they came in
    is held until they are forgotten. Else a lost actor ends the learner: go on from a snapshot.
    """

    actors: int | None = 2
    address: str = LOCAL
    remembers: bool = True

    def __post_init__(self) -> None:
        if self.actors is not None:
            _validate.positive_int(self.actors, "actors")

    def room(self, n_items: int, clip: Clip, entries: Entries) -> KeptPeople:
        """Room for people on actors."""
        from diminuendo.learners.base.kept.on_ray import KeptOnRay  # here, because few have it

        return KeptOnRay(self, n_items, clip, entries.n_types)


def engine_called(said: str | Engine | None) -> Engine:
    """What was asked for, by name or as an engine; without it, this process. The address of a cluster is one of Ray."""
    if said is None or said == "here":
        return Here()
    if said == "threads":
        return Here(cores(), cores())
    if said == "ray":
        return OnRay()
    if isinstance(said, str) and said.startswith(ADDRESS):
        return OnRay(None, said)
    if isinstance(said, (str, type)) or not hasattr(said, "room"):
        raise InvalidInput(
            f"engine is 'here', 'threads', 'ray', 'ray://host:port', Here(..) or OnRay(..); got {said!r}."
        )
    return said


@contextmanager
def held(engine: Engine) -> Iterator[None]:
    """Stay on the cluster of an engine, while learners come and go; else it would end with the first that joined it."""
    leave = (
        joined(engine.address, engine.actors or cores(), people=True)[1]
        if isinstance(engine, OnRay)
        else None
    )
    try:
        yield
    finally:
        if leave is not None:
            leave()
