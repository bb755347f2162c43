"""What a simulation measures: single runs, and runs of one setting beside what hindsight reaches.

Rewards, regrets and slates are for evaluation: they are computed from all users' preferences, and are not private.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import diminuendo
from diminuendo.learners.base.replay import as_delay
from diminuendo.learners.health import NOT_AVAILABLE, State
from diminuendo.offline import SlateRules
from diminuendo.simulate.benchmarks import Benchmarks
from diminuendo.simulate.contexts import ContextBenchmarks
from diminuendo.simulate.today import Today
from diminuendo.types import EMPTY_SLOT, FeedbackKind, Floats, Items

NOTE = "Rewards and regret are for evaluation; they are not private."

CURVE_POINTS = 400
"""At how many rounds the reward so far is kept."""

SHOWN_ITEMS = 15
SHOWN_STRETCHES = 60
"""For how many items (or two for each slot if that is more) it is kept how often they were shown, and in how many
stretches of rounds."""

LARGE = ("curve", "shown", "spending")
"""What is in the rows on disk but not in the numbers as JSON."""


@dataclass(frozen=True)
class Shown:
    """Which items were shown when: the most shown items of a run, most shown first.

    Attributes
    ----------
    items : list of int
        The items.
    ends : list of int
        A stretch of rounds ends before each of these; the first begins at 0.
    shares : list of list of float
        For each item, in each stretch, the share of users who were shown it.

    """

    items: list[int]
    ends: list[int]
    shares: list[list[float]]


@dataclass(frozen=True)
class Result:
    """One run: one learner, one seed, one stream. Means are per round. For evaluation, not private.

    Attributes
    ----------
    learner : str
        The name that was asked for, as "private".
    played_by : str
        The learner's own name, as "overlap-greedy".
    stream, objective : str
        Names of the stream and of its family of objectives.
    items, slots, rounds : int
        Sizes.
    feedback : {"full", "bandit", "click"}
        What users reported.
    clicks : str
        Click model; "" if feedback is not clicks.
    max_rounds_per_user : int
        How many rounds of one user counted.
    delay : str
        Feedback delay in rounds, or "exponential:1000" for a mean.
    response_rate : float
        Share of users who responded.
    seed : int
        Seed of the run.
    asked_epsilon, asked_delta : float, optional
        Budget; None if the learner ignores it, so that one run serves all budgets.
    epsilon, delta : float, optional
        What is proved; None if nothing is.
    mean_reward : float
        Mean reward.
    regret_to_greedy : float
        Greedy's mean reward in hindsight minus `mean_reward`.
    alpha_regret : float
        (1 - 1/e) times the best fixed slate's mean reward minus `mean_reward`. If the optimum is not proven, its
        upper bound stands for it.
    expert_regrets : list of float
        Regret of each slot (`expert_regrets`).
    seconds : float
        How long the run took.
    guarantee : dict
        `Guarantee.as_json`.
    curve : list of float
        Cumulative reward at evenly spaced rounds.
    shown : Shown
        Which items were shown when.
    spending : list of dict
        Where the budget went.
    health : str
        `Health.state` at the end.
    contexts : dict
        What each context id was shown and what it earned; empty without contexts.

    """

    learner: str
    played_by: str
    stream: str
    objective: str
    items: int
    slots: int
    rounds: int
    feedback: FeedbackKind
    clicks: str
    max_rounds_per_user: int
    delay: str
    response_rate: float
    seed: int
    asked_epsilon: float | None
    asked_delta: float | None
    epsilon: float | None
    delta: float | None
    mean_reward: float
    regret_to_greedy: float
    alpha_regret: float
    expert_regrets: list[float]
    seconds: float
    guarantee: dict[str, Any]
    curve: list[float] = field(repr=False)
    shown: Shown = field(repr=False)
    spending: list[dict[str, Any]] = field(repr=False)
    health: State = NOT_AVAILABLE.state
    contexts: dict[str, Any] = field(default_factory=dict, repr=False)

    def as_json(self) -> dict[str, Any]:
        """Return the numbers as plain values, without curve, items shown and spending."""
        left_out = LARGE if self.contexts else (*LARGE, "contexts")
        return {name: value for name, value in vars(self).items() if name not in left_out}


@dataclass(frozen=True)
class Simulation:
    """Runs of one stream, number of slots, number of rounds and kind of feedback. For evaluation, not private.

    Attributes
    ----------
    stream : dict
        What the stream is.
    benchmarks : Benchmarks
        What hindsight and chance earn.
    results : list of Result
        One for each learner, budget and seed.
    today : Today, optional
        The slate that all users are shown now, if given.
    rules : SlateRules, optional
        What all slates satisfied.
    retention : int, optional
        For how many rounds private learners kept a user's data.
    sample : int, default 1
        Private learners learned from one in `sample` users.

    """

    stream: dict[str, Any]
    benchmarks: Benchmarks
    results: list[Result]
    today: Today | None = None
    rules: SlateRules | None = None
    retention: int | None = None
    sample: int = 1

    @property
    def slots(self) -> int:
        """The number of items in a slate."""
        return self.results[0].slots

    @property
    def feedback(self) -> FeedbackKind:
        """What users reported."""
        return self.results[0].feedback

    @property
    def contexts(self) -> ContextBenchmarks | None:
        """What contexts could be worth, or None."""
        return self.benchmarks.contexts

    @property
    def waited(self) -> str:
        """Feedback delay and response rate in words; empty if all users responded at once."""
        return as_delay(self.results[0].delay, self.results[0].response_rate).said()

    @property
    def epsilons(self) -> list[float]:
        """The budgets, in increasing order."""
        return sorted({run.asked_epsilon for run in self.results if run.asked_epsilon is not None})

    @property
    def middle_epsilon(self) -> float | None:
        """The budget nearest to 1 by ratio, or None."""
        return min(self.epsilons, key=lambda epsilon: (abs(math.log(epsilon)), epsilon), default=None)

    def by_learner(self, epsilon: float | None = None) -> dict[str, list[Result]]:
        """Return the runs grouped by learner.

        Parameters
        ----------
        epsilon : float, optional
            Only runs that serve this budget.

        Returns
        -------
        dict of str to list of Result
        """
        groups: dict[str, list[Result]] = {}
        for run in self.results:
            if epsilon is None or run.asked_epsilon in (None, epsilon):
                groups.setdefault(run.learner, []).append(run)
        return groups

    def shares(self, runs: Sequence[Result]) -> Floats:
        """Return the mean rewards of runs as shares of greedy's; 1 if no user wants anything."""
        reference = self.benchmarks.greedy.value
        rewards = np.array([run.mean_reward for run in runs], dtype=np.float64)
        return rewards / reference if reference > 0 else np.ones(len(runs))

    def as_json(self) -> dict[str, Any]:
        """Return the simulation in the documented file format."""
        return Sweep([self]).as_json()


@dataclass(frozen=True)
class Sweep:
    """Simulations of several streams, slots and rounds.

    Attributes
    ----------
    simulations : list of Simulation
        In the order of streams, slots, rounds and delays.
    """

    simulations: list[Simulation]

    def as_json(self) -> dict[str, Any]:
        """Return the format of one simulation if there is one, else a list of these."""
        listed: list[dict[str, Any]] = [
            {
                "stream": one.stream,
                "benchmarks": one.benchmarks.as_json(),
                "results": [result.as_json() for result in one.results],
            }
            | ({} if one.contexts is None else {"contexts": one.contexts.as_json()})
            | ({} if one.rules is None else {"rules": one.rules.config()})
            | ({} if one.retention is None else {"retention": one.retention})
            | ({} if one.sample == 1 else {"sample": one.sample})
            | ({} if one.today is None else {"today": vars(one.today)})
            for one in self.simulations
        ]
        content = listed[0] if len(listed) == 1 else {"simulations": listed}
        return {"note": NOTE, "version": diminuendo.__version__} | content


def curve_rounds(rounds: int) -> list[int]:
    """After how many rounds the points of a curve were taken."""
    return [int(t) + 1 for t in np.unique(np.linspace(0, rounds - 1, CURVE_POINTS).astype(int))]


def cumulative(rewards: Floats) -> list[float]:
    """The curve of a run: its reward so far at each of `curve_rounds`."""
    return [float(x) for x in np.cumsum(rewards)[np.array(curve_rounds(len(rewards))) - 1]]


def items_kept(slots: int) -> int:
    """For how many items it is kept when they were shown."""
    return max(SHOWN_ITEMS, 2 * slots)


def most_shown(slates: Items, n_items: int) -> Shown:
    """The items that were shown most, and in which stretches of rounds; ties go to the smaller item number."""
    rounds, slots = slates.shape
    marks = np.unique(np.linspace(0, rounds, SHOWN_STRETCHES + 1).astype(int))
    whole = np.bincount(slates[slates != EMPTY_SLOT], minlength=n_items)
    most = np.argsort(-whole, kind="stable")[: items_kept(slots)]
    most, shares = most[whole[most] > 0], list[Floats]()
    for low, high in itertools.pairwise(marks.tolist()):
        part = slates[low:high]
        counts = np.bincount(part[part != EMPTY_SLOT], minlength=n_items)
        shares.append(counts[most] / (high - low))
    return Shown(most.tolist(), marks[1:].tolist(), np.array(shares).T.tolist())
