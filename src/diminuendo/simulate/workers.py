"""Workers that run the tasks of a sweep: this process, processes on all cores (joblib), or a Ray cluster.

Each worker takes a task, loads its users and runs it. Outcomes come back in any order, and the caller alone stores
them. Streams are pickled; nothing else is shared. Processes on this machine read them from a folder that only its
owner may read. Pipes would block for ever if a reader were killed before it emptied them.

On a Ray cluster (`pip install 'diminuendo[ray]'`) a task whose worker dies runs again on another one, with the same
outcome.
"""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

from cloudpickle import dumps
from joblib import Parallel, delayed, effective_n_jobs

from diminuendo._cluster import joined
from diminuendo._compile_progress import report_to, reported_by_workers
from diminuendo._plugins import Carried
from diminuendo.errors import DiminuendoError, InvalidInput
from diminuendo.simulate.task import Outcome, StreamSlice, Task
from diminuendo.streams.users import Stream
from diminuendo.types import Progress

IDLE_SECONDS = 30
"""A worker ends after waiting for this many seconds."""
RETRIES = 20
"""How often a task is given to another worker; one that always kills its worker must come to an end."""

IN_FLIGHT = 4
"""Tasks handed out for each core of the cluster, so that none waits for the next one."""


@dataclass(frozen=True)
class Done:
    """A finished task."""

    task: Task
    outcome: Outcome
    notes: list[tuple[type[Warning], str]]
    """Warnings, which the caller repeats: a worker has no screen."""


def do(task: Task, stream: Stream, progress: Progress | None = None) -> Done:
    """Do one task, and note the warnings on the way."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = task.work(stream, progress)
    notes = dict.fromkeys((warning.category, str(warning.message)) for warning in caught)
    return Done(task, result, list(notes))


def how_many(jobs: int, tasks: int) -> int:
    """How many workers there will be; -1 asks for one on each core."""
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs == 0:
        raise InvalidInput(
            f"jobs must be a number of runs at the same time, or -1 for one per core; got {jobs!r}."
        )
    return max(1, min(int(effective_n_jobs(jobs)), tasks))


def packed(streams: Sequence[Stream]) -> list[bytes]:
    """Streams ready to travel."""
    try:
        return [dumps(stream) for stream in streams]
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise InvalidInput(
            f"These users cannot be sent to other processes ({error}); simulate them with jobs=1."
        ) from error


def one_by_one(tasks: Sequence[Task], streams: Sequence[Stream], tick: Progress) -> Iterator[Done]:
    """In this process, with progress within a run."""
    cut = lru_cache(maxsize=1)(lambda stream_slice: stream_slice.users(streams[stream_slice.stream]))
    for task in tasks:
        yield do(task, cut(task.stream_slice), tick)


def on_cores(tasks: Sequence[Task], streams: Sequence[Stream], tick: Progress, count: int) -> Iterator[Done]:
    """In `count` processes on this machine."""
    with tempfile.TemporaryDirectory(prefix="diminuendo-") as folder:
        for number, stream in enumerate(packed(streams)):
            Path(folder, str(number)).write_bytes(stream)
        with reported_by_workers() as compiling:
            yield from _in_pool(tasks, tick, count, folder, compiling)


def _in_pool(
    tasks: Sequence[Task], tick: Progress, count: int, folder: str, compiling: Path
) -> Iterator[Done]:
    """Do the tasks in `count` processes that read the streams from `folder`."""
    pool = Parallel(
        n_jobs=count,
        backend="loky",
        return_as="generator_unordered",
        batch_size=1,  # what is finished is to be written down at once
        initializer=_begin,
        initargs=(os.getpid(), folder, compiling),
        idle_worker_timeout=IDLE_SECONDS,
    )
    plugins, finished = Carried.packed(), None
    try:  # a worker may be gone as early as tasks are handed out
        finished = pool(
            delayed(_do_there)(task, Path(folder, str(task.stream_slice.stream)), plugins) for task in tasks
        )
        for done in finished:
            tick(done.task.size)
            yield done
    except BrokenProcessPool as error:
        raise DiminuendoError(
            "A worker was killed, perhaps because memory ran out. What was finished before is kept where `out` is "
            "given, and the same call goes on from there; fewer jobs at once need less memory."
        ) from error
    finally:
        if finished is not None:
            finished.close()  # interrupted: workers are ended, not waited for


def _begin(parent: int, folder: str, compiling: Path) -> None:
    """In a process: Ctrl-C is for the parent, who ends its workers; if it no longer can, they end by themselves."""
    report_to(compiling)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent, folder), daemon=True).start()


def _end_with(parent: int, folder: str) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    shutil.rmtree(folder, ignore_errors=True)  # users' ratings must not stay on disk
    os._exit(1)


def on_ray(
    tasks: Sequence[Task], streams: Sequence[Stream], tick: Progress, count: int, address: str
) -> Iterator[Done]:
    """On the cluster at `address`; "local" starts one of `count` workers here, and ends it."""
    ray, leave = joined(address, count)
    try:
        sent = [ray.put(stream) for stream in packed(streams)]
        there = ray.remote(num_cpus=1, max_retries=RETRIES)(_do_there)
        plugins = Carried.packed()
        left = iter(tasks)
        room = IN_FLIGHT * max(1, int(ray.cluster_resources().get("CPU", 1)))
        waiting = [there.remote(task, sent[task.stream_slice.stream], plugins) for task in islice(left, room)]
        while waiting:
            ready, waiting = ray.wait(waiting)
            done: Done = ray.get(ready[0])
            waiting += [
                there.remote(task, sent[task.stream_slice.stream], plugins) for task in islice(left, 1)
            ]
            tick(done.task.size)
            yield done
    finally:
        leave()


def _do_there(task: Task, stream: bytes | Path, plugins: Carried) -> Done:
    """Do a task in a worker: `stream` is packed, or a file that holds it."""
    plugins.unpack()
    return do(task, _users(task.stream_slice, stream))


@lru_cache(maxsize=2)
def _unpacked(stream: bytes | Path) -> Stream:
    # Ray would share the arrays of a stream, but read-only, for which kernels would have to be compiled again.
    result: Stream = pickle.loads(stream.read_bytes() if isinstance(stream, Path) else stream)
    return result


@lru_cache(maxsize=4)
def _users(stream_slice: StreamSlice, stream: bytes | Path) -> Stream:
    return stream_slice.users(_unpacked(stream))
