"""Sweeps: learners x budgets x slots x rounds x seeds x streams, each combination a run of its own.

Finished runs are stored in `out` at once, so that a sweep that was stopped goes on from there.
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
from diminuendo.learners.base.feedback_window import feedback_window_in
from diminuendo.learners.base.replay import Delay, as_delay
from diminuendo.offline.rules import SlateRules, as_rules
from diminuendo.randomness import SeededSource
from diminuendo.simulate.contexts import given, plain_name
from diminuendo.simulate.result import Simulation, Sweep
from diminuendo.simulate.store import ResultStore
from diminuendo.simulate.task import (
    Baseline,
    Run,
    StreamSlice,
    Task,
    measured,
    sliced,
    uses_epsilon,
)
from diminuendo.simulate.today import Today, today_on
from diminuendo.simulate.workers import (
    Done,
    how_many,
    on_cores,
    on_ray,
    one_by_one,
)
from diminuendo.streams.clicks import MODELS
from diminuendo.streams.users import Stream, Users
from diminuendo.types import FEEDBACKS, FeedbackKind, Floats, Progress

Tell = Callable[[str, int], Progress]
"""Called with a description of the work and its size; returns what is called as the work advances."""


@dataclass(frozen=True)
class Experiment:
    """Learners, budgets, slots, rounds, delays, streams and seeds; each combination is a run of its own.

    Attributes
    ----------
    streams : Stream, or a sequence of these
        Users, such as `Users`.
    slots : int or sequence of int
        Number of items in a slate.
    rounds : int or None, or a sequence of these, optional
        Number of users of every stream, from the first on; None: all.
    epsilon : float or sequence of float, default 1.0
        Budgets. Learners that ignore them are run once for all.
    learners : str or sequence of str, default ("nonprivate", "random")
        Names as in `diminuendo.make`. `private-no-contexts` and `private-separate` are compared with "private"
        where a stream has contexts.
    feedback : {"full", "bandit", "click"}, default "full"
        What users report.
    delta : float, default 1e-6
        0 for pure differential privacy.
    max_rounds_per_user : int, default 1
        How many rounds of one user count. Without `Users.user_ids` every user has one round.
    clicks : {"cascade", "independent"}, default "cascade"
        Click model.
    delay : int or str, or a sequence of these, default 0
        Feedback delay in rounds: a number, or "exponential:1000" for a mean.
    response_rate : float, default 1.0
        Share of users who respond.
    retention : int, optional
        For how many rounds private learners keep a user's data.
    sample : int, default 1
        Private learners learn from one in `sample` users.
    rules : SlateRules, optional
        What all slates satisfy, including random slates and those of hindsight.
    today : sequence of str or int, optional
        Names or numbers of the items that all users are shown now, to compare with.
    seeds : int, default 5
        Number of runs of each combination.
    time_limit : float, default 20.0
        Seconds for each exact optimum.

    Examples
    --------
    >>> from diminuendo.simulate import Experiment
    >>> from diminuendo.streams import taste_groups
    >>> result = Experiment(taste_groups(300, 20, groups=4), slots=[2, 3], learners="random", seeds=1).run(jobs=1)
    >>> [one.slots for one in result.simulations]
    [2, 3]
    """

    streams: Stream | Sequence[Stream]
    slots: int | Sequence[int]
    rounds: int | Sequence[int | None] | None = None
    epsilon: float | Sequence[float] | Floats = 1.0
    learners: str | Sequence[str] = ("nonprivate", "random")
    feedback: FeedbackKind = "full"
    delta: float = 1e-6
    max_rounds_per_user: int = 1
    clicks: str = "cascade"
    delay: str | int | Sequence[str | int] = 0
    response_rate: float = 1.0
    retention: int | None = None
    sample: int = 1
    rules: SlateRules | None = None
    today: Sequence[str | int] | None = None
    seeds: int = 5
    time_limit: float = 20.0

    def run(
        self,
        *,
        jobs: int = -1,
        ray: str | None = None,
        out: Path | str | None = None,
        progress: Tell | None = None,
    ) -> Sweep:
        """Run every learner with every budget and seed on every stream.

        Parameters
        ----------
        jobs : int, default -1
            Runs at the same time; -1: one per core.
        ray : str, optional
            Address of a Ray cluster that does the work; "local" starts one.
        out : str or Path, optional
            Folder in which finished runs are kept. A sweep that was stopped goes on from there.
        progress : callable, optional
            Called with a description and a number of rounds; returns what is called as they finish.

        Returns
        -------
        Sweep

        Raises
        ------
        UnknownName
            If there is no such learner for this feedback.
        InvalidInput
            If a setting does not fit.

        Notes
        -----
        Equal seeds give equal rows on any worker; only `seconds` differ, and `alpha_regret` if an optimum was not
        proven in time. Rewards and regrets are for evaluation and are not private.
        """
        how_many(jobs, 1)
        streams = _several(self.streams, "stream")
        cells = self._cells(streams)
        with ResultStore(out) as store:
            store.load(_longest_first(cells))
            left = [task for task in _longest_first(cells) if task not in store]
            _refuse_early(left)
            for done in _outcomes(
                left, streams, jobs, ray, progress or (lambda what, size: lambda done: None)
            ):
                store.add(done.task, done.outcome)
                for category, message in done.notes:
                    warnings.warn(message, category, stacklevel=2)
            result = [cell.simulation(store) for cell in cells]
            store.finalise(
                [run for cell in cells for run in cell.runs], [r for one in result for r in one.results]
            )
        return Sweep(result)

    def _cells(self, streams: list[Stream]) -> list[_Cell]:
        """The simulations of this experiment: one for each stream, number of slots and rounds, and delay."""
        _validate.one_of(self.feedback, FEEDBACKS, "feedback")
        _validate.one_of(self.clicks, MODELS, "clicks")
        _validate.positive_float(self.time_limit, "time_limit")
        _validate.positive_int(self.seeds, "seeds")
        delays = [as_delay(each, self.response_rate) for each in _several(self.delay, "delay")]
        if as_rules(self.rules) is not None and any(stream.contexts is not None for stream in streams):
            raise InvalidInput("Hindsight by type knows no rules; leave out contexts, or rules.")
        _several(self.epsilon, "epsilon")
        for name in _several(self.learners, "learner; see `diminuendo learners`"):
            learner_class(plain_name(name), self.feedback)  # a wrong name is refused before any work is done
        return [
            self._cell(number, _first(stream, rounds), slots, delay)
            for number, stream in enumerate(streams)
            for slots in _several(self.slots, "number of slots")
            for rounds in _several(self.rounds, "number of rounds")
            for delay in delays
        ]

    def _cell(self, number: int, users: Stream, slots: int, delay: Delay) -> _Cell:
        stream_slice, rules = sliced(number, users), as_rules(self.rules)
        runs = [
            run
            for name in _several(self.learners, "learner")
            for run in self._runs(name, users, stream_slice, slots, delay)
        ]
        baseline = Baseline(
            stream_slice, _validate.slots(slots, users.n_items), float(self.time_limit), rules
        )
        today = None if self.today is None else today_on(users, self.today, slots)
        return _Cell(describe(users), baseline, runs, today, rules, self.retention, self.sample)

    def _runs(
        self, name: str, users: Stream, stream_slice: StreamSlice, slots: int, delay: Delay
    ) -> Iterator[Run]:
        """The runs of one learner: one for each budget and seed. One that ignores budgets has the default budget."""
        budgets = [(Setting.epsilon, Setting.delta)]
        if uses_epsilon(name, self.feedback):
            budgets = [(epsilon, self.delta) for epsilon in _several(self.epsilon, "epsilon")]
        takes_sample = learner_class(plain_name(name), self.feedback).takes("sample")
        for epsilon, delta in budgets:
            setting = Setting(
                users.n_items,
                slots,
                stream_slice.rounds,
                self.feedback,
                epsilon,
                delta,
                self.max_rounds_per_user,
                feedback_window_in(delay.feedback_window, self.sample if takes_sample else 1),
                rules=as_rules(self.rules),
                retention=self.retention,
                sample=self.sample,
            )
            setting = given(name, setting, users.contexts)
            clicks = self.clicks if self.feedback == "click" else ""
            for seed in range(self.seeds):
                yield Run(stream_slice, name, seed, setting, clicks, delay)


def sweep(
    streams: Stream | Sequence[Stream],
    *,
    jobs: int = -1,
    ray: str | None = None,
    out: Path | str | None = None,
    progress: Tell | None = None,
    **settings: Any,
) -> Sweep:
    """Run an `Experiment` on these streams.

    Parameters
    ----------
    streams : Stream, or a sequence of these
        Users.
    jobs, ray, out, progress : optional
        As in `Experiment.run`.
    **settings : Any
        Fields of `Experiment`; `slots` is required.

    Returns
    -------
    Sweep

    Examples
    --------
    >>> from diminuendo.simulate import sweep
    >>> from diminuendo.streams import taste_groups
    >>> result = sweep(taste_groups(300, 20, groups=4), slots=3, rounds=[100, 300], learners="random", seeds=1, jobs=1)
    >>> [one.stream["rounds"] for one in result.simulations]
    [100, 300]
    """
    return Experiment(streams, **settings).run(jobs=jobs, ray=ray, out=out, progress=progress)


def simulate(
    stream: Stream,
    *,
    jobs: int = 1,
    out: Path | str | None = None,
    progress: Tell | None = None,
    **settings: Any,
) -> Simulation:
    """Run every learner with several seeds on one stream: a sweep of one simulation.

    Parameters
    ----------
    stream : Stream
        Users.
    jobs : int, default 1
        Runs at the same time; -1: one per core.
    out, progress : optional
        As in `Experiment.run`.
    **settings : Any
        Fields of `Experiment`, with one number of slots, of rounds, and one delay; `slots` is required.

    Returns
    -------
    Simulation

    Raises
    ------
    UnknownName, InvalidInput
        As `Experiment.run`.

    Examples
    --------
    >>> from diminuendo.simulate import simulate
    >>> from diminuendo.streams import taste_groups
    >>> result = simulate(taste_groups(300, 20, groups=4), slots=3, learners="random", seeds=2)
    >>> [run.seed for run in result.results], result.benchmarks.greedy.value > result.results[0].mean_reward
    ([0, 1], True)
    """
    (result,) = sweep([stream], jobs=jobs, out=out, progress=progress, **settings).simulations
    return result


def describe(stream: Stream) -> dict[str, Any]:
    """The stream in the file format of results."""
    result: dict[str, Any] = {
        "name": stream.name,
        "objective": stream.family_name,
        "rounds": len(stream),
        "items": stream.n_items,
    }
    if isinstance(stream, Users):
        if stream.labels is not None:
            result["labels"] = list(stream.labels)
        if stream.user_ids is not None:
            result["users"] = len(np.unique(stream.user_ids))
        if stream.was_read is not None:
            result["read"] = stream.was_read.as_json()
        rows = stream.family.rows(stream.table, stream.n_items)
        result["mean_nonzeros"] = sum(len(part.data) for part in rows) / max(1, len(stream))
    return result


@dataclass(frozen=True)
class _Cell:
    """The tasks that one simulation is made of."""

    stream: dict[str, Any]
    baseline: Baseline
    runs: list[Run]
    today: Today | None
    rules: SlateRules | None
    retention: int | None
    sample: int

    def simulation(self, store: ResultStore) -> Simulation:
        base = store[self.baseline]
        results = [measured(store[run], base) for run in self.runs]
        return Simulation(self.stream, base, results, self.today, self.rules, self.retention, self.sample)


def _outcomes(
    tasks: Sequence[Task], streams: Sequence[Stream], jobs: int, ray: str | None, tell: Tell
) -> Iterator[Done]:
    """Do the tasks; outcomes come in any order."""
    if not tasks:
        return iter(())
    runs, count = sum(isinstance(task, Run) for task in tasks), how_many(jobs, len(tasks))
    where = "Ray" if ray is not None else "1 core" if count == 1 else f"{count} cores"
    compared = "" if runs == len(tasks) else ", hindsight and random slates"
    tick = tell(
        f"{runs:,} {'run' if runs == 1 else 'runs'}{compared} on {where}, rounds",
        sum(task.size for task in tasks),
    )
    if ray is not None:
        return on_ray(tasks, streams, tick, count, ray)
    return one_by_one(tasks, streams, tick) if count == 1 else on_cores(tasks, streams, tick, count)


def _refuse_early(tasks: Sequence[Task]) -> None:
    """Make every learner once before any run: a setting that one of them refuses would stop the sweep later."""
    for name, setting in dict.fromkeys(
        (task.learner, task.setting) for task in tasks if isinstance(task, Run)
    ):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # repeated when the learner runs
                make(plain_name(name), setting, rng=SeededSource(0))
        except DiminuendoError as error:
            at = f" at epsilon {setting.epsilon:g}" if uses_epsilon(name, setting.feedback) else ""
            raise type(error)(f"{name}{at}: {error}") from error


def _longest_first(cells: Sequence[_Cell]) -> list[Task]:
    """Baselines and long runs first: begun last, they would keep one worker busy alone.

    Runs on the same users are adjacent, so that a worker has them loaded. Learners alternate, so that workers that
    begin at the same time do not compile the same one.
    """
    baselines = sorted((cell.baseline for cell in cells), key=lambda baseline: -baseline.size)
    runs = [run for cell in cells for run in cell.runs]
    runs.sort(
        key=lambda run: (-run.size, run.stream_slice.stream, run.setting.slots, run.seed, run.setting.epsilon)
    )
    return [*baselines, *dict.fromkeys(runs)]


def _first(stream: Stream, rounds: int | None) -> Stream:
    """The first users of a stream, as many as `rounds` says."""
    if len(stream) == 0:
        raise InvalidInput("The stream is empty: it has no users.")
    if stream.contexts is not None and not isinstance(stream, Users):
        raise InvalidInput(
            "Contexts of Python functions cannot be simulated; give users of a family instead."
        )
    if rounds is None or rounds == len(stream):
        return stream
    _validate.positive_int(rounds, "rounds")
    if rounds > len(stream):
        raise InvalidInput(f"The stream {stream.name} has {len(stream)} users; got rounds={rounds}.")
    if not isinstance(stream, Users):
        raise InvalidInput(
            "A stream of Python functions is used whole; pass fewer functions instead of rounds."
        )
    return stream[:rounds]


def _several(given: Any, what: str) -> list[Any]:
    """One value or several as a list without duplicates."""
    if isinstance(given, np.ndarray):
        given = given.tolist()
    listed = [given] if isinstance(given, str) or not isinstance(given, Sequence) else given
    if not listed:
        raise InvalidInput(f"Name at least one {what}.")
    return list(dict.fromkeys(listed))
