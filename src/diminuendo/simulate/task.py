"""Tasks: the pieces of a sweep that can be done anywhere and in any order, each by itself.

A task holds everything that decides its outcome. Its key is a hash of all that: equal keys mean equal rows, whichever
worker ran the task and for whichever sweep.
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
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.replay import AT_ONCE, Delay, replay
from diminuendo.objectives import FAMILIES
from diminuendo.offline import ONE_MINUS_1_OVER_E, SlateRules
from diminuendo.randomness import SeededSource
from diminuendo.simulate.benchmarks import (
    RANDOM_RUNS,
    Benchmarks,
    benchmarks,
    expert_regrets,
)
from diminuendo.simulate.contexts import SEPARATE, entry_of, for_each_type, plain_name, replay_separately
from diminuendo.simulate.result import Result, cumulative, most_shown
from diminuendo.simulate.spending import spending
from diminuendo.streams.users import Stream, Users
from diminuendo.types import FeedbackKind, Items, Progress

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
    """The first `rounds` users of one of the streams of a sweep, of a task."""

    stream: int
    """The stream's number in the sweep."""
    rounds: int
    fingerprint: str
    """A hash of these users; "" for Python functions, which cannot be told from others."""
    user_ids: str = ""
    """A hash of the user of each round; "" where every user has one round."""

    def users(self, whole: Stream) -> Stream:
        """The users themselves, of the whole stream."""
        return whole[: self.rounds] if isinstance(whole, Users) and self.rounds < len(whole) else whole

    def key(self, *spec: object) -> str:
        """A name for everything that decides an outcome."""
        parts = (code_version(), self.fingerprint or self.stream, *spec)
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Run:
    """One learner with one seed against the whole stream."""

    stream_slice: StreamSlice
    learner: str
    seed: int
    setting: Setting
    clicks: str
    """Click model; "" if feedback is not clicks."""
    delay: Delay = AT_ONCE

    @property
    def key(self) -> str:
        """The name of the outcome, by which it is kept."""
        setting = self.setting
        # Some fields of a setting are not in its repr.
        more = setting.rules, setting.exclusions, setting.retention, setting.sample
        source = LEARNERS.fingerprint(played_by(self.learner, setting.feedback))  # of a plugin
        spec = self.learner, self.seed, setting, *more, self.clicks, self.delay, source
        return self.stream_slice.key("run", *spec, self.stream_slice.user_ids)

    @property
    def size(self) -> int:
        """Number of users."""
        return self.stream_slice.rounds

    def work(self, stream: Stream, progress: Progress | None = None) -> Result:
        """Run it; `measured` adds regrets."""
        setting, feedback = self.setting, self.setting.feedback
        _compile(self.learner, setting, stream)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoSignal)  # the result says so
            slates, learner, seconds = self._played(stream, progress)
        rewards, separate = stream.values(slates), self.learner.endswith(SEPARATE)
        promised, listens = learner.guarantee, uses_epsilon(self.learner, feedback)
        private = isfinite(promised.epsilon)
        return Result(
            learner=self.learner,
            played_by=entry_of(self.learner, setting).name,
            stream=stream.name,
            objective=stream.family_name,
            items=stream.n_items,
            slots=setting.slots,
            rounds=self.size,
            feedback=feedback,
            clicks=self.clicks,
            max_rounds_per_user=setting.max_rounds_per_user,
            delay=str(self.delay),
            response_rate=self.delay.response_rate,
            seed=self.seed,
            asked_epsilon=setting.epsilon if listens else None,
            asked_delta=setting.delta if listens else None,
            epsilon=promised.epsilon if private else None,
            delta=promised.delta if private else None,
            mean_reward=float(rewards.mean()),
            regret_to_greedy=nan,
            alpha_regret=nan,
            expert_regrets=expert_regrets(stream, slates).tolist(),
            seconds=seconds,
            guarantee=promised.as_json(),
            curve=cumulative(rewards),
            shown=most_shown(slates, stream.n_items),
            spending=spending(learner),
            health=learner.health.state,
            contexts=for_each_type(stream, slates, rewards, None if separate else learner),
        )

    def _played(self, stream: Stream, progress: Progress | None) -> tuple[Items, Learner, float]:
        """The slates of all users, the learner, and the seconds that the run took."""
        setting, feedback = self.setting, self.setting.feedback
        # Ratings are the same for every seed; clicks are drawn from the seed.
        met = stream.clicking(self.clicks, self.seed) if feedback == "click" else stream
        user_ids = (
            np.arange(len(stream))
            if setting.max_rounds_per_user > 1 and stream.user_ids is None
            else stream.user_ids
        )
        began = time.perf_counter()
        if isinstance(met, Users) and self.learner.endswith(SEPARATE):
            slates, learner = replay_separately(self.learner, setting, met, self.seed, progress, user_ids)
        else:
            learner = make(plain_name(self.learner), setting, rng=SeededSource(self.seed))
            delay = self.delay.drawn(len(stream), self.seed)
            slates = replay(learner, met, feedback, progress, user_ids=user_ids, delay=delay)
        return slates, learner, time.perf_counter() - began


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
        return self.stream_slice.key("baseline", self.slots, self.time_limit, self.rules)

    @property
    def size(self) -> int:
        """Number of users to whom random slates are shown."""
        return RANDOM_RUNS * self.stream_slice.rounds

    def work(self, stream: Stream, progress: Progress | None = None) -> Benchmarks:
        """Compute the baseline."""
        result = benchmarks(stream, self.slots, time_limit=self.time_limit, rules=self.rules)
        if progress:
            progress(self.size)
        return result


Task = Run | Baseline
Outcome = Result | Benchmarks


def uses_epsilon(learner: str, feedback: FeedbackKind) -> bool:
    """Whether the learner depends on epsilon; if not, one run serves all budgets."""
    return learner_class(plain_name(learner), feedback).uses_epsilon


def played_by(learner: str, feedback: FeedbackKind) -> str:
    """The learner's own name, for a role such as "private" or a comparison such as "private-separate"."""
    return learner_class(plain_name(learner), feedback).name


def measured(result: Result, base: Benchmarks) -> Result:
    """The result with its regrets; bounds on the optimum may be tighter than when it was stored."""
    return replace(
        result,
        regret_to_greedy=base.greedy.value - result.mean_reward,
        alpha_regret=ONE_MINUS_1_OVER_E * base.optimum.upper - result.mean_reward,
    )


def sliced(number: int, users: Stream) -> StreamSlice:
    """The slice that is all of these users, of the stream of that number."""
    user_ids = "" if users.user_ids is None else hashlib.sha256(users.user_ids.tobytes()).hexdigest()
    return StreamSlice(number, len(users), fingerprint(users), user_ids)


def fingerprint(stream: Stream) -> str:
    """A hash of the stream's name, ratings and contexts; "" for Python functions."""
    if not isinstance(stream, Users):
        return ""
    digest = hashlib.sha256(f"{stream.name} {stream.family_name} {stream.n_items} {len(stream)}".encode())
    _absorb(stream.table, digest)
    digest.update(FAMILIES.fingerprint(stream.family_name).encode())
    if stream.contexts is not None and stream.types is not None:
        digest.update(repr(stream.contexts.config()).encode())
        digest.update(np.ascontiguousarray(stream.types).tobytes())
    return digest.hexdigest()


def _absorb(table: Any, digest: Any) -> None:
    """All of a table, public parameters included."""
    for part in table:
        if isinstance(part, tuple):
            _absorb(part, digest)
        else:
            digest.update(np.ascontiguousarray(part).data)  # without copying it


_compiled: set[tuple[str, str, bool, bool]] = set()


def _compile(name: str, setting: Setting, stream: Stream) -> None:
    """Compile kernels on one user, once in every process, so that `seconds` excludes compilation."""
    known = (
        played_by(name, setting.feedback),
        stream.family_name,
        setting.max_rounds_per_user > 1,
        setting.contexts is not None,
    )
    if isinstance(stream, Users) and known not in _compiled:
        replay(
            make(plain_name(name), setting, rng=SeededSource(0)), stream[:1], setting.feedback, user_ids=[0]
        )
        _compiled.add(known)
