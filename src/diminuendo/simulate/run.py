"""Simulate: learners against a stream, several seeds each, with everything known afterwards.

Finished runs are kept in `out/results.jsonl` as they come, so that an interrupted simulation goes on where it
stopped. Payoffs and regrets are for evaluation and are not private.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

import diminuendo
from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.learners import Setting, learner_class, make, replay
from diminuendo.offline import ONE_MINUS_1_OVER_E
from diminuendo.randomness import SeededCoins
from diminuendo.simulate.benchmarks import Benchmarks, benchmarks
from diminuendo.simulate.regret import expert_regrets
from diminuendo.streams.clicks import MODELS
from diminuendo.streams.people import People, Stream
from diminuendo.types import FeedbackKind, Progress

NOTE = "Payoffs and regret are for evaluation; they are not private."
CURVE_POINTS = 400


@dataclass(frozen=True)
class Result:
    """One learner, one seed. Per-round means."""

    learner: str
    feedback: FeedbackKind
    epsilon: float | None
    delta: float | None
    seed: int
    rounds: int
    mean_payoff: float
    regret: float
    """To hindsight greedy."""
    regret_to_optimum: float
    """To (1 - 1/e) of the optimum (its upper bound): the regret of the theorems."""
    expert_regrets: list[float]
    seconds: float
    guarantee: dict[str, Any]
    curve: list[float] = field(repr=False)
    """Cumulative payoff at CURVE_POINTS evenly spaced rounds."""

    def as_json(self) -> dict[str, Any]:
        """Everything but the curve."""
        return {name: value for name, value in vars(self).items() if name != "curve"}


@dataclass(frozen=True)
class Simulation:
    """What a simulation found."""

    stream: dict[str, Any]
    benchmarks: Benchmarks
    results: list[Result]

    def as_json(self) -> dict[str, Any]:
        """The documented file format."""
        return {
            "note": NOTE,
            "version": diminuendo.__version__,
            "stream": self.stream,
            "benchmarks": self.benchmarks.as_json(),
            "results": [result.as_json() for result in self.results],
        }


@dataclass(frozen=True)
class Job:
    """One run to be made."""

    name: str
    seed: int
    setting: Setting
    clicks: str
    """By which model people click, where clicks are the feedback."""

    def meets(self, stream: Stream) -> Stream:
        """The people of this run: of the same wishes for every seed, but clicking with other luck."""
        return stream.clicking(self.clicks, self.seed) if self.setting.feedback == "click" else stream


def simulate(
    stream: Stream,
    *,
    slots: int,
    learners: str | Sequence[str] = ("nonprivate", "random"),
    feedback: FeedbackKind = "full",
    epsilon: float = 1.0,
    delta: float = 1e-6,
    visits: int = 1,
    clicks: str = "cascade",
    seeds: int = 5,
    rounds: int | None = None,
    jobs: int = 1,
    out: Path | None = None,
    time_limit: float = 20.0,
    progress: Callable[[str, int], Progress] | None = None,
) -> Simulation:
    """Run every learner with every seed on the first `rounds` people of `stream`.

    `visits`: what private learners are made for. In the stream itself everybody comes once. `clicks`: by which model
    they click (streams/clicks.py), where feedback is "click".
    """
    _validate.one_of(clicks, MODELS, "clicks")
    stream = _first(stream, rounds)
    k = _validate.slots(slots, stream.n_items)
    _validate.positive_int(seeds, "seeds")
    setting = Setting(stream.n_items, k, len(stream), feedback, epsilon, delta, visits)
    learners = list(dict.fromkeys([learners] if isinstance(learners, str) else learners))
    if not learners:
        raise InvalidInput("Name at least one learner; see `diminuendo learners`.")
    if jobs == 0:
        raise InvalidInput("jobs must be a number of runs at the same time, or -1 for one per core; got 0.")
    for name in learners:
        learner_class(name, feedback)  # a wrong name is refused before any work is done
    told = progress or (lambda what, size: lambda done: None)
    todo = [Job(name, seed, setting, clicks) for name in learners for seed in range(seeds)]
    kept = _Kept(out, stream)
    left = [job for job in todo if job not in kept]
    hindsight = told("hindsight: greedy, optimum, random", 1)
    base = benchmarks(stream, k, time_limit=time_limit)
    hindsight(1)
    if isinstance(stream, People):
        for name in {job.name for job in left}:  # compile first, so that seconds are the learner's own
            replay(make(name, setting, coins=SeededCoins(0)), stream[:1], feedback, persons=[0])
    tick = told("learning", len(left) * len(stream))
    runner = Parallel(n_jobs=jobs, prefer="threads", return_as="generator")  # kernels run without the GIL
    for job, result in zip(left, runner(delayed(run)(job, stream, tick) for job in left), strict=True):
        kept.keep(job, result)
    return Simulation(describe(stream), base, [_against(base, kept[job]) for job in todo])


def run(job: Job, stream: Stream, progress: Progress | None = None) -> Result:
    """One learner with one seed against the whole stream; its regrets are yet to be measured."""
    learner = make(job.name, job.setting, coins=SeededCoins(job.seed))
    began = time.perf_counter()
    everybody = np.arange(len(stream)) if job.setting.visits > 1 else None
    slates = replay(learner, job.meets(stream), job.setting.feedback, progress, persons=everybody)
    seconds = time.perf_counter() - began
    payoffs = stream.values(slates)
    earned = np.cumsum(payoffs)
    points = np.unique(np.linspace(0, len(stream) - 1, CURVE_POINTS).astype(int))
    mean = float(payoffs.mean())
    promised = learner.guarantee
    private = np.isfinite(promised.epsilon)
    return Result(
        learner=job.name,
        feedback=job.setting.feedback,
        epsilon=promised.epsilon if private else None,
        delta=promised.delta if private else None,
        seed=job.seed,
        rounds=len(stream),
        mean_payoff=mean,
        regret=nan,
        regret_to_optimum=nan,
        expert_regrets=[float(regret) for regret in expert_regrets(stream, slates)],
        seconds=seconds,
        guarantee=promised.as_json(),
        curve=[float(x) for x in earned[points]],
    )


def _against(base: Benchmarks, result: Result) -> Result:
    """The result with its regrets measured anew: the bounds on the optimum may be tighter than when it was kept."""
    return replace(
        result,
        regret=base.greedy.value - result.mean_payoff,
        regret_to_optimum=ONE_MINUS_1_OVER_E * base.optimum.upper - result.mean_payoff,
    )


def describe(stream: Stream) -> dict[str, Any]:
    """What the stream is, for the record."""
    found: dict[str, Any] = {
        "name": stream.name,
        "objective": stream.family_name,
        "rounds": len(stream),
        "items": stream.n_items,
    }
    if isinstance(stream, People):
        if stream.labels is not None:
            found["labels"] = list(stream.labels)
        found["mean_nonzeros"] = sum(matrix.nnz for matrix in stream.matrices) / max(1, len(stream))
    return found


def _first(stream: Stream, rounds: int | None) -> Stream:
    if len(stream) == 0:
        raise InvalidInput("The stream is empty; there is nobody to choose for.")
    if rounds is None or rounds == len(stream):
        return stream
    _validate.positive_int(rounds, "rounds")
    if rounds > len(stream):
        raise InvalidInput(f"The stream has {len(stream)} people; got rounds={rounds}.")
    if not isinstance(stream, People):
        raise InvalidInput(
            "A stream of Python functions is used whole; pass fewer functions instead of rounds."
        )
    return stream[:rounds]


class _Kept:
    """Finished runs; on disk where `out` is given and the stream can be told from every other."""

    def __init__(self, out: Path | None, stream: Stream) -> None:
        self._found: dict[str, Result] = {}
        self._stream = _fingerprint(stream) if isinstance(stream, People) else None
        self._file = None if out is None or self._stream is None else out / "results.jsonl"
        self._lines: dict[str, dict[str, Any]] = {}
        if self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._lines = dict(_kept_lines(self._file))

    def _key(self, job: Job) -> str:
        how = job.clicks if job.setting.feedback == "click" else ""
        facts = (diminuendo.__version__, self._stream, job.name, job.seed, repr(job.setting), how)
        return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]

    def __contains__(self, job: Job) -> bool:
        key = self._key(job)
        if key in self._lines:
            self._found[key] = Result(**self._lines[key])
        return key in self._found

    def __getitem__(self, job: Job) -> Result:
        return self._found[self._key(job)]

    def keep(self, job: Job, result: Result) -> None:
        self._found[self._key(job)] = result
        if self._file is not None:
            line = json.dumps({"job": self._key(job), "result": vars(result)})
            with self._file.open("a") as file:
                file.write("\n" + line + "\n")  # on a line of its own even after one that was cut short


def _kept_lines(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Runs in the file; a line that an interruption cut short is passed over, and its run is made again."""
    for line in file.read_text().splitlines() if file.exists() else ():
        with suppress(json.JSONDecodeError):
            record = json.loads(line)
            yield record["job"], record["result"]


def _fingerprint(people: People) -> str:
    digest = hashlib.sha256(f"{people.name} {people.family_name} {people.n_items} {len(people)}".encode())
    _absorb(people.table, digest)
    return digest.hexdigest()


def _absorb(table: Any, digest: Any) -> None:
    """All of a table, public parameters included."""
    for part in table:
        if isinstance(part, tuple):
            _absorb(part, digest)
        else:
            digest.update(np.ascontiguousarray(part).tobytes())
