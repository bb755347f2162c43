"""Engines: where queries over blocks of users run. In this process, in several threads, or as Ray tasks.

    OverlapGreedy(..., engine="threads")             # as many threads as there are cores
    OverlapGreedy(..., engine=Threads(3))            # three threads
    OverlapGreedy(..., engine="ray")                 # a Ray cluster on this machine
    OverlapGreedy(..., engine="ray://head:10001")    # that cluster

A query is a function of one block and public facts, and results are whole numbers that are added up. So the same is
published, bit for bit, whatever the engine and however users are split into blocks, and a query may run again: a Ray
worker that is lost costs nothing but its time. Noise, ledger and choice stay with the learner.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import uuid4
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from diminuendo import _validate
from diminuendo._cluster import LOCAL, cores, joined
from diminuendo._extras import extra
from diminuendo._plugins import Carried
from diminuendo.errors import DiminuendoError, InvalidInput
from diminuendo.learners.base.users import Block, Spec, block_of
from diminuendo.types import Ints

ADDRESS = "ray://"
"""How the address of a Ray cluster elsewhere begins."""
RETRIES = 20
"""How often a query runs again whose worker was lost."""
REMEMBERED = 2
"""Of how many shares of blocks a worker remembers how far users have come."""

Begin = Callable[[Block], Any]
"""From a block to an object whose methods add the block's part to a total, their last argument."""


class Totals(Protocol):
    """Queries of one release over the blocks that were there when it began."""

    def total(self, query: str, shape: tuple[int, ...], *given: Any) -> Ints:
        """What the method `query` adds up over all blocks, beginning with zeros of that shape."""
        ...


class Engine(Protocol):
    """Where queries run."""

    def over(self, blocks: Sequence[Block], begin: Begin) -> Totals:
        """Queries over these blocks; `begin`: a pure function that can be pickled."""
        ...


@dataclass(frozen=True)
class Threads:
    """In this process, in so many threads. Kernels let go of Python's lock."""

    threads: int = 1

    def __post_init__(self) -> None:
        _validate.positive_int(self.threads, "threads")

    def over(self, blocks: Sequence[Block], begin: Begin) -> Totals:
        """Queries in this process."""
        return _Here([begin(block) for block in blocks], self.threads)


class _Here:
    def __init__(self, walks: list[Any], threads: int) -> None:
        self._shares = [walks[number::threads] for number in range(min(threads, len(walks)))]

    def total(self, query: str, shape: tuple[int, ...], *given: Any) -> Ints:
        def share(walks: list[Any]) -> Ints:
            return added_up(walks, query, shape, given)

        if len(self._shares) <= 1:
            return share([walk for walks in self._shares for walk in walks])
        with ThreadPoolExecutor(
            len(self._shares)
        ) as pool:  # a release is rare: no thread waits for the next one
            return _summed(shape, pool.map(share, self._shares))


def added_up(walks: Sequence[Any], query: str, shape: tuple[int, ...], given: Sequence[Any]) -> Ints:
    """What a query adds up over some blocks."""
    total = np.zeros(shape, dtype=np.int64)
    for walk in walks:
        getattr(walk, query)(*given, total)
    return total


def _summed(shape: tuple[int, ...], parts: Iterable[Ints]) -> Ints:
    total = np.zeros(shape, dtype=np.int64)
    for part in parts:
        total += part
    return total


@dataclass(frozen=True)
class OnRay:
    """As tasks of the Ray cluster at `address`; "local" starts one here, which ends with this process.

    A block goes to the cluster once, as an object, and Ray runs the task of a lost worker again. Rows are as private as
    what users said: workers, and all who reach the cluster, belong to the trusted computing base.
    """

    address: str = LOCAL

    def over(self, blocks: Sequence[Block], begin: Begin) -> Totals:
        """Queries as tasks."""
        ray, _ = joined(self.address, cores(), users=True)
        return _OnRay(ray, blocks, begin)


_SENT: WeakKeyDictionary[Block, Any] = WeakKeyDictionary()
"""Blocks that are objects of the cluster, as long as they are stored."""


class _OnRay:
    def __init__(self, ray: Any, blocks: Sequence[Block], begin: Begin) -> None:
        self._ray, many = ray, min(len(blocks), max(1, int(ray.cluster_resources().get("CPU", 1))))
        self._begin = ray.put(_packed((Carried.packed(), _dumps(begin))))
        for block in blocks:
            if block not in _SENT:
                _SENT[block] = ray.put(_packed((block.family, block.rows, block.n_items, block.spec)))
        self._shares = [[_SENT[block] for block in blocks[number::many]] for number in range(many)]
        self._release = uuid4().hex
        self._task: Any = ray.remote(num_cpus=1, max_retries=RETRIES)(answer)

    def total(self, query: str, shape: tuple[int, ...], *given: Any) -> Ints:
        query_bytes = _dumps((query, shape, given))
        waiting = [
            self._task.remote((self._release, number), query_bytes, self._begin, *blocks)
            for number, blocks in enumerate(self._shares)
        ]
        try:
            parts: list[Ints] = self._ray.get(waiting)
        except self._ray.exceptions.RayTaskError as error:
            raise error.as_instanceof_cause() from None
        except self._ray.exceptions.RayError:  # its message names processes and machines
            raise DiminuendoError("The Ray cluster could not answer a query over stored users.") from None
        return _summed(shape, parts)


_REMEMBERED: OrderedDict[Any, list[Any]] = OrderedDict()


def answer(share: Any, query_bytes: bytes, begin: NDArray[np.uint8], *blocks: NDArray[np.uint8]) -> Ints:
    """In a worker: what a query adds up over some blocks. How far users have come is a memo, and nothing else."""
    if share not in _REMEMBERED:
        plugins, pickled = pickle.loads(begin.tobytes())
        plugins.unpack()
        first = pickle.loads(pickled)
        while len(_REMEMBERED) >= REMEMBERED:
            _REMEMBERED.popitem(last=False)
        _REMEMBERED[share] = [first(_unpacked(block)) for block in blocks]
    query, shape, given = pickle.loads(query_bytes)
    return added_up(_REMEMBERED[share], query, shape, given)


def _dumps(value: Any) -> bytes:
    with extra("simulate"):
        import cloudpickle
    pickled: bytes = cloudpickle.dumps(value)
    return pickled


def _packed(value: Any) -> NDArray[np.uint8]:
    return np.frombuffer(_dumps(value), dtype=np.uint8)


def _unpacked(block: NDArray[np.uint8]) -> Block:
    family, rows, n_items, spec = pickle.loads(block.tobytes())
    return block_of(family, family.table(rows, n_items), n_items, rows, Spec(*spec))


def engine_called(said: str | Engine | None) -> Engine:
    """The engine of that name, or an engine itself; None: this process. The address of a cluster is one of Ray."""
    if said is None or said == "here":
        return Threads()
    if said == "threads":
        return Threads(cores())
    if said == "ray":
        return OnRay()
    if isinstance(said, str) and said.startswith(ADDRESS):
        return OnRay(said)
    if isinstance(said, (str, type)) or not hasattr(said, "over"):
        raise InvalidInput(
            f"engine is 'here', 'threads', 'ray', 'ray://host:port', Threads(..) or OnRay(..); got {said!r}."
        )
    return said
