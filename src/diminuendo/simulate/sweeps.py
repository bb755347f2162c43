"""Sweeps: learners x budgets x slots x rounds x seeds x streams, each combination a run of its own.

What is finished is kept in `out` at once, so that a sweep that was stopped, killed or interrupted goes on where it was.
The same seeds give the same rows, whoever does the work; only `seconds` differ, and `alpha_regret` where the
optimum was not proven within its time limit. Payoffs and regrets are for evaluation and are not private.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diminuendo import _validate
from diminuendo.errors import DiminuendoError, InvalidInput
from diminuendo.learners import Setting, learner_class, make
from diminuendo.learners.base.kept.engines import Engine, OnRay, engine_called
from diminuendo.learners.base.patience import Patience, patience_in
from diminuendo.learners.base.replay import AT_ONCE, Lateness, as_lateness
from diminuendo.offline.rules import SlateRules, as_rules
from diminuendo.randomness import SeededCoins
from diminuendo.simulate.contexts import entry_of, given, plain_name
from diminuendo.simulate.result import Simulation, Sweep
from diminuendo.simulate.store import ResultStore
from diminuendo.simulate.task import (
    Baseline,
    Crowd,
    Run,
    Task,
    heeds_budget,
    measured,
    sliced,
)
from diminuendo.simulate.today import Today, today_on
from diminuendo.simulate.workers import (
    Outcome,
    how_many,
    on_cores,
    on_ray,
    one_by_one,
    with_people_on_ray,
)
from diminuendo.streams.clicks import MODELS
from diminuendo.streams.contexts import Contexts
from diminuendo.streams.people import People
from diminuendo.streams.per_day import PerDay
from diminuendo.streams.pieces import Pieces
from diminuendo.types import FEEDBACKS, FeedbackKind, Floats, Progress

Tell = Callable[[str, int], Progress]
"""Called with what will be done and how much of it; gives what is called as it is being done."""


def sweep(
    streams: Crowd | Sequence[Crowd],
    *,
    slots: int | Sequence[int],
    rounds: int | Sequence[int | None] | None = None,
    epsilons: float | Sequence[float] | Floats = 1.0,
    learners: str | Sequence[str] = ("nonprivate", "random"),
    feedback: FeedbackKind = "full",
    delta: float = 1e-6,
    visits: int = 1,
    clicks: str = "cascade",
    late: str | int | Sequence[str | int] = 0,
    answering: float = 1.0,
    retention: int | None = None,
    sample: int = 1,
    rules: SlateRules | None = None,
    today: Sequence[str | int] | None = None,
    per_day: PerDay | float | None = None,
    seeds: int = 5,
    jobs: int = -1,
    ray: str | None = None,
    out: Path | str | None = None,
    time_limit: float = 20.0,
    progress: Tell | None = None,
) -> Sweep:
    """Run every learner with every budget and seed on the first `rounds` people of every stream.

    `slots`: how many items each person is shown. `visits`: of how many rounds of one person private learners learn;
    where a stream does not say whose a round is (`people.persons`), everybody comes once. `clicks`: by which model they
    click (streams/clicks.py), where feedback is "click". `late`: by how many rounds people answer late, as 1000, or
    exponential:1000 where that is the mean and chance decides; `answering`: the share of people who answer.
    `retention`: for how many rounds private learners keep people; `sample`: of how many people they learn from one, by
    a public coin. `rules`: what slates must keep to, those of hindsight and chance too. `today`:
    names or numbers of the items that everybody is shown now, to compare with; `per_day`: how many people come in a
    day, for hits a day; neither changes any run. `jobs`: runs at the same time, -1 for one per core. `ray`: the address
    of a Ray cluster to do the work instead; "local" starts one. `time_limit`: seconds for each exact optimum. Learners
    that do not listen to epsilon are run once for all of them.

    A stream may be a file that is read in pieces, `streams.Pieces`: results are the same, and of the optimum there are
    bounds only. Then runs come one after the other unless more `jobs` are asked for, and on the cluster at `ray` are
    the people whom learners keep, on as many actors as it has cores.

    Where something is known of the people of a stream, learners that take contexts are given them;
    `private-no-contexts` and `private-separate` are learners to compare them with (contexts.py).
    """
    _validate.one_of(feedback, FEEDBACKS, "feedback")
    _validate.one_of(clicks, MODELS, "clicks")
    how = clicks if feedback == "click" else ""
    limit = _validate.positive_float(time_limit, "time_limit")
    numbers = range(_validate.positive_int(seeds, "seeds"))
    crowds = _several(streams, "stream")
    names = _several(learners, "learner; see `diminuendo learners`")
    budgets = _several(epsilons, "epsilon")
    waits = [as_lateness(said, answering) for said in _several(late, "lateness")]
    day = per_day if per_day is None or isinstance(per_day, PerDay) else PerDay(per_day)
    ruled = as_rules(rules)
    pieces = any(isinstance(stream, Pieces) for stream in crowds)
    if pieces:
        _refuse_in_pieces(crowds, waits, _several(rounds, "number of rounds"), jobs, ray)
    if ruled is not None and any(contexts_of(stream) is not None for stream in crowds):
        raise InvalidInput("Hindsight by type knows no rules; leave out contexts, or rules.")
    how_many(jobs, 1)
    for name in names:
        learner_class(plain_name(name), feedback)  # a wrong name is refused before any work is done

    def patience_for(name: str, lateness: Lateness) -> Patience:
        takes = learner_class(plain_name(name), feedback).takes_sample
        return patience_in(lateness.patience, sample if takes else 1)

    def engine_for(name: str, setting: Setting) -> Engine | None:
        if not (pieces and entry_of(name, setting).takes_engine):
            return None
        return engine_called("threads") if ray is None else OnRay(None, ray)

    def cell(number: int, people: Crowd, k: int, lateness: Lateness) -> _Cell:
        runs: list[Run] = []
        stream_slice = sliced(number, people)
        for name in names:
            # One that does not listen to budgets is asked for the default one, whatever budgets others are asked for.
            heeds = heeds_budget(name, feedback)
            asked = [(e, delta) for e in budgets] if heeds else [(Setting.epsilon, Setting.delta)]
            for e, d in asked:
                sizes = people.n_items, k, stream_slice.rounds
                setting = given(
                    name,
                    Setting(
                        *sizes,
                        feedback,
                        e,
                        d,
                        visits,
                        patience_for(name, lateness),
                        rules=ruled,
                        retention=retention,
                        sample=sample,
                    ),
                    contexts_of(people),
                )
                where = engine_for(name, setting)
                runs += [Run(stream_slice, name, seed, setting, how, lateness, where) for seed in numbers]
        baseline = Baseline(stream_slice, _validate.slots(k, people.n_items), limit, ruled)
        now = None if today is None else today_on(people, today, k)
        return _Cell(describe(people), baseline, runs, now, day, ruled, retention, sample)

    cells = [
        cell(number, _first(stream, wanted), k, lateness)
        for number, stream in enumerate(crowds)
        for k in _several(slots, "number of slots")
        for wanted in _several(rounds, "number of rounds")
        for lateness in waits
    ]
    with ResultStore(out) as store:
        store.load(_longest_first(cells))
        left = [task for task in _longest_first(cells) if task not in store]
        _refuse_early(left)
        for outcome in _outcomes(left, crowds, jobs, ray, progress or (lambda what, size: lambda done: None)):
            store.add(outcome.task, outcome.found)
            for category, message in outcome.notes:
                warnings.warn(message, category, stacklevel=2)
        found = [cell.simulation(store) for cell in cells]
        store.finalise(
            [run for cell in cells for run in cell.runs], [r for one in found for r in one.results]
        )
    return Sweep(found)


def simulate(
    stream: Crowd,
    *,
    slots: int,
    learners: str | Sequence[str] = ("nonprivate", "random"),
    feedback: FeedbackKind = "full",
    epsilon: float | Sequence[float] = 1.0,
    delta: float = 1e-6,
    visits: int = 1,
    clicks: str = "cascade",
    late: str | int = 0,
    answering: float = 1.0,
    retention: int | None = None,
    sample: int = 1,
    rules: SlateRules | None = None,
    today: Sequence[str | int] | None = None,
    per_day: PerDay | float | None = None,
    seeds: int = 5,
    rounds: int | None = None,
    jobs: int = 1,
    out: Path | str | None = None,
    time_limit: float = 20.0,
    progress: Tell | None = None,
) -> Simulation:
    """Run every learner with several seeds on the first `rounds` people of one stream: a sweep of one simulation.

    Everything is as in `sweep`, but one run at a time unless more `jobs` are asked for.
    """
    found = sweep(
        [stream],
        slots=[slots],
        rounds=[rounds],
        epsilons=epsilon,
        learners=learners,
        feedback=feedback,
        delta=delta,
        visits=visits,
        clicks=clicks,
        late=[late],
        answering=answering,
        retention=retention,
        sample=sample,
        rules=rules,
        today=today,
        per_day=per_day,
        seeds=seeds,
        jobs=jobs,
        out=out,
        time_limit=time_limit,
        progress=progress,
    )
    return found.simulations[0]


def describe(stream: Crowd) -> dict[str, Any]:
    """What the stream is, for the record."""
    found: dict[str, Any] = {
        "name": stream.name,
        "objective": stream.family_name,
        "rounds": stream.people if isinstance(stream, Pieces) else len(stream),
        "items": stream.n_items,
    }
    if isinstance(stream, Pieces):
        found |= {"labels": list(stream.labels)} if stream.labels is not None else {}
        found["mean_nonzeros"] = stream.rows / stream.people
    if isinstance(stream, People):
        if stream.labels is not None:
            found["labels"] = list(stream.labels)
        if stream.persons is not None:
            found["people"] = len(np.unique(stream.persons))
        if stream.was_read is not None:
            found["read"] = stream.was_read.as_json()
        found["mean_nonzeros"] = sum(matrix.nnz for matrix in stream.matrices) / max(1, len(stream))
    return found


@dataclass(frozen=True)
class _Cell:
    """The tasks that one simulation is made of."""

    stream: dict[str, Any]
    baseline: Baseline
    runs: list[Run]
    today: Today | None
    per_day: PerDay | None
    rules: SlateRules | None
    retention: int | None
    sample: int

    def simulation(self, store: ResultStore) -> Simulation:
        base = store[self.baseline]
        results = [measured(store[run], base) for run in self.runs]
        return Simulation(
            self.stream, base, results, self.today, self.per_day, self.rules, self.retention, self.sample
        )


def _outcomes(
    tasks: Sequence[Task], streams: Sequence[Crowd], jobs: int, ray: str | None, tell: Tell
) -> Iterator[Outcome]:
    """What comes of the tasks, in whatever order."""
    if not tasks:
        return iter(())
    pieces = any(task.stream_slice.in_pieces for task in tasks)
    # In pieces, one run at a time has all cores: several would need several times the memory.
    runs, count = sum(isinstance(task, Run) for task in tasks), how_many(jobs, len(tasks))
    count = 1 if pieces and jobs < 0 else count
    where = "Ray" if ray is not None else "1 core" if count == 1 else f"{count} cores"
    compared = "" if runs == len(tasks) else ", hindsight and random slates"
    told = f"{runs:,} {'run' if runs == 1 else 'runs'}{compared} on {where}, rounds"
    tick = tell(told, sum(task.size for task in tasks))
    if ray is not None:
        if pieces:
            return with_people_on_ray(tasks, streams, tick, ray)
        return on_ray(tasks, streams, tick, count, ray)
    return one_by_one(tasks, streams, tick) if count == 1 else on_cores(tasks, streams, tick, count)


def _refuse_early(tasks: Sequence[Task]) -> None:
    """Make every learner once before any work is done: one that refuses its setting would stop all others later."""
    for name, setting in dict.fromkeys(
        (task.learner, task.setting) for task in tasks if isinstance(task, Run)
    ):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # they are heard when the learner runs
                make(plain_name(name), setting, coins=SeededCoins(0))
        except DiminuendoError as error:
            asked = f" at epsilon {setting.epsilon:g}" if heeds_budget(name, setting.feedback) else ""
            raise type(error)(f"{name}{asked}: {error}") from error


def _longest_first(cells: Sequence[_Cell]) -> list[Task]:
    """Hindsight takes its time, and long runs take long: begun last, they would keep one worker up alone.

    Runs on the same people come together, so that a worker has them at hand. Learners take turns, so that workers who
    begin at the same time do not compile the same one.
    """
    baselines = sorted((cell.baseline for cell in cells), key=lambda baseline: -baseline.size)
    runs = [run for cell in cells for run in cell.runs]
    runs.sort(
        key=lambda run: (-run.size, run.stream_slice.stream, run.setting.slots, run.seed, run.setting.epsilon)
    )
    return [*baselines, *dict.fromkeys(runs)]


def contexts_of(stream: Crowd) -> Contexts | None:
    """What is known of people; of those who come in pieces, nothing."""
    return None if isinstance(stream, Pieces) else stream.contexts


def _refuse_in_pieces(
    crowds: Sequence[Crowd],
    waits: Sequence[Lateness],
    rounds: Sequence[int | None],
    jobs: int,
    ray: str | None,
) -> None:
    """Say what people in pieces cannot have."""
    if not all(isinstance(stream, Pieces) for stream in crowds):
        raise InvalidInput("Some streams are read in pieces, others whole; simulate them one by one.")
    if any(lateness != AT_ONCE for lateness in waits):
        raise InvalidInput(
            "People who come in pieces answer at once; leave out late and answering, or read the file whole."
        )
    if any(each is not None for each in rounds):
        raise InvalidInput(
            "A file that is read in pieces is used whole; leave out rounds, or write the first people to a file."
        )
    if ray is not None and jobs > 1:
        raise InvalidInput(
            f"With people in pieces on a cluster there is one run at a time; leave out jobs={jobs}."
        )


def _first(stream: Crowd, rounds: int | None) -> Crowd:
    """The first people of a stream, as many as `rounds` says."""
    if isinstance(stream, Pieces):
        return stream
    if len(stream) == 0:
        raise InvalidInput("The stream is empty; there is nobody to choose for.")
    if stream.contexts is not None and not isinstance(stream, People):
        raise InvalidInput(
            "Contexts of Python functions cannot be simulated; give people of a family instead."
        )
    if rounds is None or rounds == len(stream):
        return stream
    _validate.positive_int(rounds, "rounds")
    if rounds > len(stream):
        raise InvalidInput(f"The stream {stream.name} has {len(stream)} people; got rounds={rounds}.")
    if not isinstance(stream, People):
        raise InvalidInput(
            "A stream of Python functions is used whole; pass fewer functions instead of rounds."
        )
    return stream[:rounds]


def _several(given: Any, what: str) -> list[Any]:
    """What was given as a list, each thing once, whether it was one thing or several."""
    if isinstance(given, np.ndarray):
        given = given.tolist()
    listed = [given] if isinstance(given, str) or not isinstance(given, Sequence) else given
    if not listed:
        raise InvalidInput(f"Name at least one {what}.")
    return list(dict.fromkeys(listed))
