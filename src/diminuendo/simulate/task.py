"""Tasks: the pieces of a sweep that can be done anywhere and in any order, each by itself.

A task knows everything that decides its outcome, and nothing else does. So its key names the outcome: the same key,
the same row, whichever worker made it, and whichever sweep asked for it.
"""

from __future__ import annotations

import hashlib
import time
import warnings
from dataclasses import dataclass, replace
from functools import cache
from math import isfinite, nan
from pathlib import Path
from typing import Any

import numpy as np

import diminuendo
from diminuendo.errors import NoSignal
from diminuendo.learners import LEARNERS, Setting, learner_class, make
from diminuendo.learners.base.kept.engines import Engine
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.replay import AT_ONCE, Lateness, replay
from diminuendo.objectives import FAMILIES
from diminuendo.offline import ONE_MINUS_1_OVER_E, SlateRules
from diminuendo.randomness import SeededCoins
from diminuendo.simulate.benchmarks import (
    RANDOM_RUNS,
    Benchmarks,
    ExpertRegrets,
    benchmarks,
    benchmarks_in_pieces,
)
from diminuendo.simulate.contexts import SEPARATE, for_each_type, plain_name, replay_separately
from diminuendo.simulate.result import Result, ShownSoFar, cumulative
from diminuendo.simulate.spending import spending
from diminuendo.streams.clicks import click_words_of
from diminuendo.streams.people import People, Stream
from diminuendo.streams.pieces import Pieces
from diminuendo.types import FeedbackKind, Floats, Items, Progress

Crowd = Stream | Pieces
"""The people of a simulation: all at once, or in pieces."""


PACKAGE = Path(diminuendo.__file__).parent
"""The package's own sources."""
NO_PART = ("cli", "service", "audit", "simulate/report", "simulate/figures")
"""Folders of the package whose code decides no outcome of a task."""


@cache
def code_version() -> str:
    """The version and a hash of the sources that decide outcomes, such as "0.1.0+5f0c9d2e8a41"."""
    digest = hashlib.sha256()
    for file in sorted(PACKAGE.rglob("*.py")):
        place = file.relative_to(PACKAGE).as_posix()
        if not place.startswith(tuple(f"{folder}/" for folder in NO_PART)):
            digest.update(f"{place} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return f"{diminuendo.__version__}+{digest.hexdigest()[:12]}"


@dataclass(frozen=True)
class StreamSlice:
    """The first `rounds` people of one of the streams of a sweep, on whom a task is done."""

    stream: int
    """The stream's number in the sweep."""
    rounds: int
    fingerprint: str
    """A hash of these people; "" for Python functions, which cannot be told from others."""
    known: str = ""
    """A hash of what is known of each of them, and of how; "" where nothing is."""
    whose: str = ""
    """A hash of whose round each is; "" where everybody has one."""
    in_pieces: bool = False
    """Whether they come in pieces."""

    def people(self, whole: Crowd) -> Crowd:
        """The people themselves, of the whole stream."""
        return whole[: self.rounds] if isinstance(whole, People) and self.rounds < len(whole) else whole

    def key(self, *facts: object) -> str:
        """A name for everything that decides an outcome."""
        said = (code_version(), self.fingerprint or self.stream, *facts)
        said += (self.known,) if self.known else ()
        return hashlib.sha256(repr(said).encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Run:
    """One learner with one seed against the whole stream."""

    stream_slice: StreamSlice
    learner: str
    seed: int
    setting: Setting
    clicks: str
    """By which model people click; "" where clicks are not the feedback."""
    lateness: Lateness = AT_ONCE
    engine: Engine | None = None
    """Where people are kept whom the learner keeps; it changes no outcome. None: in this process."""

    @property
    def key(self) -> str:
        """The name of the outcome, by which it is kept."""
        setting = self.setting
        facts: tuple[object, ...] = ("run", self.learner, self.seed, setting, self.clicks, self.lateness)
        if setting.rules is not None or setting.exclusions:  # which are not in what a setting says of itself
            facts += (setting.rules, setting.exclusions)
        if setting.retention is not None or setting.sample > 1:
            facts += ("kept", setting.retention, setting.sample)
        if self.stream_slice.whose:  # baselines are the same, whoever comes
            facts += (self.stream_slice.whose,)
        # What a plugin does, its source says.
        facts += tuple(filter(None, [LEARNERS.fingerprint(played_by(self.learner, setting.feedback))]))
        return self.stream_slice.key(*facts)

    @property
    def size(self) -> int:
        """How many people will pass by."""
        return self.stream_slice.rounds

    def work(self, stream: Crowd, progress: Progress | None = None) -> Result:
        """Let it run; its regrets are yet to be measured."""
        setting, feedback = self.setting, self.setting.feedback
        _compile(self.learner, setting, stream)
        seen = Seen(self.size, setting)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoSignal)  # the result says so
            if isinstance(stream, Pieces):
                learner, known = self._in_pieces(stream, seen, progress), dict[str, Any]()
            else:
                learner, known = self._at_once(stream, seen, progress)
        promised, listens = learner.guarantee, heeds_budget(self.learner, feedback)
        private = isfinite(promised.epsilon)
        return Result(
            learner=self.learner,
            played_by=learner.name,
            stream=stream.name,
            objective=stream.family_name,
            items=stream.n_items,
            slots=setting.slots,
            rounds=self.size,
            feedback=feedback,
            clicks=self.clicks,
            visits=setting.visits,
            late=str(self.lateness),
            answering=self.lateness.answering,
            seed=self.seed,
            asked_epsilon=setting.epsilon if listens else None,
            asked_delta=setting.delta if listens else None,
            epsilon=promised.epsilon if private else None,
            delta=promised.delta if private else None,
            mean_payoff=float(seen.payoffs.mean()),
            regret_to_greedy=nan,
            alpha_regret=nan,
            expert_regrets=seen.experts.per_round().tolist(),
            seconds=seen.seconds,
            guarantee=promised.as_json(),
            curve=cumulative(seen.payoffs),
            shown=seen.shown.most(),
            spending=spending(learner),
            health=learner.health.state,
            contexts=known,
        )

    def _at_once(
        self, stream: Stream, seen: Seen, progress: Progress | None
    ) -> tuple[Learner, dict[str, Any]]:
        """All people at once; the learner, and what is to be said of each type of them."""
        setting, feedback = self.setting, self.setting.feedback
        # People want the same for every seed, but click with other click words.
        met = stream.clicking(self.clicks, self.seed) if feedback == "click" else stream
        everybody = (
            np.arange(len(stream)) if setting.visits > 1 and stream.persons is None else stream.persons
        )
        separate = isinstance(met, People) and self.learner.endswith(SEPARATE)
        began = time.perf_counter()
        if isinstance(met, People) and separate:
            slates, learner = replay_separately(self.learner, setting, met, self.seed, progress, everybody)
        else:
            learner = make(plain_name(self.learner), setting, coins=SeededCoins(self.seed))
            late = self.lateness.drawn(len(stream), self.seed)
            slates = replay(learner, met, feedback, progress, persons=everybody, late=late)
        seen.add(stream, slates, time.perf_counter() - began)
        return learner, for_each_type(stream, slates, seen.payoffs, None if separate else learner)

    def _in_pieces(self, pieces: Pieces, seen: Seen, progress: Progress | None) -> Learner:
        """One piece after the other, of which only one is here at a time; the learner."""
        setting = self.setting
        learner = make(self.learner, setting, coins=SeededCoins(self.seed), engine=self.engine)
        words = click_words_of(pieces.people, self.seed) if self.clicks else None
        for people in pieces:
            rounds = slice(seen.people, seen.people + len(people))
            met = people if words is None else people.clicking_by(self.clicks, words[rounds])
            everybody = np.arange(rounds.start, rounds.stop) if setting.visits > 1 else None
            began = time.perf_counter()
            slates = learner.replay(met, progress, persons=everybody)
            seen.add(people, slates, time.perf_counter() - began)
        return learner


class Seen:
    """What is seen of a run as people come: payoffs, what experts missed, which items were shown when."""

    def __init__(self, rounds: int, setting: Setting) -> None:
        self.payoffs: Floats = np.empty(rounds)
        self.experts = ExpertRegrets(setting.slots, setting.n_items)
        self.shown = ShownSoFar(rounds, setting.slots, setting.n_items)
        self.people, self.seconds = 0, 0.0

    def __repr__(self) -> str:
        return f"<Seen, {self.people:,} people>"

    def add(self, people: Stream, slates: Items, seconds: float) -> None:
        """The next people, what they were shown, and how long that took the learner."""
        self.payoffs[self.people : self.people + len(people)] = people.values(slates)
        self.experts.add(people, slates)
        self.shown.add(slates)
        self.people += len(people)
        self.seconds += seconds


@dataclass(frozen=True)
class Baseline:
    """What hindsight and chance reach: the baseline that runs are compared with."""

    stream_slice: StreamSlice
    slots: int
    time_limit: float
    rules: SlateRules | None = None

    @property
    def key(self) -> str:
        """The name of the outcome, by which it is kept."""
        # Files on disk are named by this key, so the word in it stays.
        ruled = () if self.rules is None else (self.rules,)
        return self.stream_slice.key("look", self.slots, self.time_limit, *ruled)

    @property
    def size(self) -> int:
        """How many people will pass by: those to whom random slates are shown, or, in pieces, in all passes."""
        passes = self.slots + 2 if self.stream_slice.in_pieces else RANDOM_RUNS
        return passes * self.stream_slice.rounds

    def work(self, stream: Crowd, progress: Progress | None = None) -> Benchmarks:
        """Find the baseline."""
        if isinstance(stream, Pieces):
            return benchmarks_in_pieces(stream, self.slots, rules=self.rules, progress=progress)
        found = benchmarks(stream, self.slots, time_limit=self.time_limit, rules=self.rules)
        if progress:
            progress(self.size)
        return found


Task = Run | Baseline
Found = Result | Benchmarks


def heeds_budget(learner: str, feedback: FeedbackKind) -> bool:
    """Whether what it does depends on the epsilon asked for: if not, one run serves all of them."""
    return learner_class(plain_name(learner), feedback).heeds_budget


def played_by(learner: str, feedback: FeedbackKind) -> str:
    """The name of the learner itself, where a role was named, or what to compare it with."""
    return learner_class(plain_name(learner), feedback).name


def measured(result: Result, base: Benchmarks) -> Result:
    """The result with its regrets measured: the bounds on the optimum may be tighter than when it was kept."""
    return replace(
        result,
        regret_to_greedy=base.greedy.value - result.mean_payoff,
        alpha_regret=ONE_MINUS_1_OVER_E * base.optimum.upper - result.mean_payoff,
    )


def sliced(number: int, people: Crowd) -> StreamSlice:
    """The slice that is all of these people, of the stream of that number."""
    if isinstance(people, Pieces):
        return StreamSlice(number, people.people, people.fingerprint, in_pieces=True)
    return StreamSlice(number, len(people), fingerprint(people), known_of(people), whose(people))


def fingerprint(stream: Stream) -> str:
    """A hash of the stream's name and of all in it that decides an outcome; "" for Python functions."""
    if not isinstance(stream, People):
        return ""
    digest = hashlib.sha256(f"{stream.name} {stream.family_name} {stream.n_items} {len(stream)}".encode())
    _absorb(stream.table, digest)
    digest.update(FAMILIES.fingerprint(stream.family_name).encode())
    return digest.hexdigest()


def known_of(stream: Stream) -> str:
    """A hash of what is known of the stream's people, and of how; "" where nothing is."""
    if stream.contexts is None or stream.types is None:
        return ""
    digest = hashlib.sha256(repr(stream.contexts.config()).encode())
    digest.update(np.ascontiguousarray(stream.types).tobytes())
    return digest.hexdigest()


def whose(stream: Stream) -> str:
    """A hash of whose round each is; "" where everybody has one."""
    return "" if stream.persons is None else hashlib.sha256(stream.persons.tobytes()).hexdigest()


def _absorb(table: Any, digest: Any) -> None:
    """All of a table, public parameters included."""
    for part in table:
        if isinstance(part, tuple):
            _absorb(part, digest)
        else:
            digest.update(np.ascontiguousarray(part).tobytes())


_compiled: set[tuple[str, str, bool, bool]] = set()


def _compile(name: str, setting: Setting, stream: Crowd) -> None:
    """Meet one person first, once in every process, so that seconds are the learner's own."""
    known = (
        played_by(name, setting.feedback),
        stream.family_name,
        setting.visits > 1,
        setting.contexts is not None,
    )
    if isinstance(stream, (People, Pieces)) and known not in _compiled:
        some = stream if isinstance(stream, People) else next(iter(stream))
        replay(make(plain_name(name), setting, coins=SeededCoins(0)), some[:1], setting.feedback, persons=[0])
        _compiled.add(known)
