"""Workers on a Ray cluster: the same tasks, further away. Needs `pip install 'diminuendo[ray]'`.

A task whose worker dies is given to another one. Since a task decides its outcome by itself, nobody can tell.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

from diminuendo.errors import InvalidInput
from diminuendo.simulate.task import Place, Task
from diminuendo.simulate.workers import Outcome, do, packed
from diminuendo.streams.people import Stream
from diminuendo.types import Progress

RETRIES = 20
"""So often a task is given to another worker; one that always kills its worker must come to an end."""

IN_FLIGHT = 4
"""Tasks handed out for each core of the cluster, so that none waits for the next one."""


def on_ray(
    tasks: Sequence[Task], streams: Sequence[Stream], tick: Progress, count: int, address: str
) -> Iterator[Outcome]:
    """On the cluster at `address`; "local" starts one of `count` workers here, and ends it."""
    ray = _ray()
    ours = not ray.is_initialized()
    if ours:
        local = {"num_cpus": count, "include_dashboard": False} if address == "local" else {}
        try:
            ray.init(address=address, log_to_driver=False, logging_level="error", **local)
        except (ConnectionError, ValueError) as error:
            raise InvalidInput(f"There is no Ray cluster at {address!r}: {error}") from error
    try:
        sent = [ray.put(stream) for stream in packed(streams)]
        there = ray.remote(num_cpus=1, max_retries=RETRIES)(_do_there)
        left = iter(tasks)
        room = IN_FLIGHT * max(1, int(ray.cluster_resources().get("CPU", 1)))
        waiting = [there.remote(task, sent[task.place.stream]) for task in islice(left, room)]
        while waiting:
            ready, waiting = ray.wait(waiting)
            outcome: Outcome = ray.get(ready[0])
            waiting += [there.remote(task, sent[task.place.stream]) for task in islice(left, 1)]
            tick(outcome.task.size)
            yield outcome
    finally:
        if ours:
            ray.shutdown()


def _ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody is told that this was run
    try:
        import ray  # here, because few have it
    except ImportError as error:
        raise InvalidInput("Ray is not installed; try `pip install 'diminuendo[ray]'`.") from error
    return ray


def _do_there(task: Task, stream: bytes) -> Outcome:
    """In a worker of the cluster."""
    return do(task, _people(task.place, stream))


@lru_cache(maxsize=2)
def _unpacked(stream: bytes) -> Stream:
    # Ray would share the arrays of a stream, but read-only, for which kernels would have to be compiled anew.
    found: Stream = pickle.loads(stream)
    return found


@lru_cache(maxsize=4)
def _people(place: Place, stream: bytes) -> Stream:
    return place.people(_unpacked(stream))
