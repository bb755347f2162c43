"""What a simulation finds: results of single runs, and runs of one setting next to what hindsight reaches.

Payoffs, regrets and slates are for evaluation: they are made with everybody's wishes known, and are not private.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import diminuendo
from diminuendo.learners.base.replay import as_lateness
from diminuendo.learners.health import NOT_AVAILABLE, State
from diminuendo.offline import SlateRules
from diminuendo.simulate.benchmarks import Benchmarks
from diminuendo.simulate.contexts import ContextBenchmarks
from diminuendo.simulate.today import Today
from diminuendo.streams.per_day import PerDay
from diminuendo.types import EMPTY_SLOT, FeedbackKind, Floats, Items

NOTE = "Rewards and regret are for evaluation; they are not private."

CURVE_POINTS = 400
"""At how many rounds the payoff so far is kept."""

SHOWN_ITEMS = 15
SHOWN_STRETCHES = 60
"""For how many items (or two for each slot if that is more) it is kept how often they were shown, and in how many
stretches of rounds."""

LARGE = ("curve", "shown", "spending")
"""What is in the rows on disk but not in the numbers as JSON."""


@dataclass(frozen=True)
class Shown:
    """Which items were shown when: the most shown of a run, most shown first."""

    items: list[int]
    ends: list[int]
    """A stretch of rounds ends before each of these; the first begins at 0."""
    shares: list[list[float]]
    """For each of `items`, in each stretch: the share of people who were shown it."""


@dataclass(frozen=True)
class Result:
    """One learner, one seed, one stream. Per-round means."""

    learner: str
    """The name that was asked for, as "private"."""
    played_by: str
    """The learner's own name, as "overlap-greedy"."""
    stream: str
    objective: str
    items: int
    slots: int
    rounds: int
    feedback: FeedbackKind
    clicks: str
    """By which model people clicked; "" where feedback is not clicks."""
    visits: int
    late: str
    """How late people answered, as 1000 or exponential:1000 rounds."""
    answering: float
    """The share of people who answered."""
    seed: int
    asked_epsilon: float | None
    asked_delta: float | None
    """What the run was asked for; None where the learner does not listen to it, so that one run serves all budgets."""
    epsilon: float | None
    delta: float | None
    """What is proved; None where nothing is."""
    mean_payoff: float
    regret_to_greedy: float
    """Greedy's value in hindsight minus `mean_payoff`, per round; below 0 where the learner earned more."""
    alpha_regret: float
    """The regret of the theorems, alpha = 1 - 1/e: alpha times the best fixed slate's value minus `mean_payoff`, per
    round. Where that value is not proven, its upper bound (`optimum_upper`) stands for it: then the regret is at most
    this."""
    expert_regrets: list[float]
    seconds: float
    guarantee: dict[str, Any]
    curve: list[float] = field(repr=False)
    """Cumulative payoff at CURVE_POINTS evenly spaced rounds (`curve_rounds`)."""
    shown: Shown = field(repr=False)
    spending: list[dict[str, Any]] = field(repr=False)
    """Where the budget went (spending.py)."""
    health: State = NOT_AVAILABLE.state
    """Whether what the learner published shows that anybody answered in time."""
    contexts: dict[str, Any] = field(default_factory=dict, repr=False)
    """What each type was shown, and what it earned (contexts.py); nothing where nothing is known of people."""

    def as_json(self) -> dict[str, Any]:
        """The numbers, without what is large."""
        left_out = LARGE if self.contexts else (*LARGE, "contexts")
        return {name: value for name, value in vars(self).items() if name not in left_out}


@dataclass(frozen=True)
class Simulation:
    """Several runs of one stream, number of slots, number of rounds and kind of feedback."""

    stream: dict[str, Any]
    benchmarks: Benchmarks
    results: list[Result]
    today: Today | None = None
    """The slate that everybody is shown now; None where nobody said."""
    per_day: PerDay | None = None
    """How many people come in a day; None where nobody said."""
    rules: SlateRules | None = None
    """What slates had to keep to, hindsight's and random ones too; None: nothing."""
    retention: int | None = None
    """For how many rounds private learners kept people at most; None: as long as they liked."""
    sample: int = 1
    """Of how many people private learners learned from one."""

    @property
    def slots(self) -> int:
        """How many items each person was shown."""
        return self.results[0].slots

    @property
    def feedback(self) -> FeedbackKind:
        """What came back from people."""
        return self.results[0].feedback

    @property
    def contexts(self) -> ContextBenchmarks | None:
        """What contexts could be worth; None where nothing was known of people."""
        return self.benchmarks.contexts

    @property
    def waited(self) -> str:
        """How late people answered, and how many of them, in words; nothing where all did at once."""
        return as_lateness(self.results[0].late, self.results[0].answering).said()

    @property
    def epsilons(self) -> list[float]:
        """What was asked for, from the most private on."""
        return sorted({run.asked_epsilon for run in self.results if run.asked_epsilon is not None})

    @property
    def middle_epsilon(self) -> float | None:
        """The epsilon nearest to 1, by ratio, of those asked for; None where nobody was asked for any."""
        return min(self.epsilons, key=lambda epsilon: (abs(math.log(epsilon)), epsilon), default=None)

    def by_learner(self, epsilon: float | None = None) -> dict[str, list[Result]]:
        """Runs grouped by learner; only those that serve `epsilon`, if given."""
        groups: dict[str, list[Result]] = {}
        for run in self.results:
            if epsilon is None or run.asked_epsilon in (None, epsilon):
                groups.setdefault(run.learner, []).append(run)
        return groups

    def shares(self, runs: Sequence[Result]) -> Floats:
        """Payoffs of runs as shares of greedy's; where nobody wants anything, nothing is lost."""
        reference = self.benchmarks.greedy.value
        payoffs = np.array([run.mean_payoff for run in runs], dtype=np.float64)
        return payoffs / reference if reference > 0 else np.ones(len(runs))

    def as_json(self) -> dict[str, Any]:
        """The documented file format."""
        return Sweep([self]).as_json()


@dataclass(frozen=True)
class Sweep:
    """Simulations of several streams, slots and rounds."""

    simulations: list[Simulation]

    def as_json(self) -> dict[str, Any]:
        """The format of one simulation where there is one; otherwise a list of these."""
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
            | ({} if one.per_day is None else {"per_day": vars(one.per_day)})
            for one in self.simulations
        ]
        found = listed[0] if len(listed) == 1 else {"simulations": listed}
        return {"note": NOTE, "version": diminuendo.__version__} | found


def curve_rounds(rounds: int) -> list[int]:
    """After how many rounds the points of a curve were taken."""
    return [int(t) + 1 for t in np.unique(np.linspace(0, rounds - 1, CURVE_POINTS).astype(int))]


def cumulative(payoffs: Floats) -> list[float]:
    """The curve of a run: its payoff so far at each of `curve_rounds`."""
    return [float(x) for x in np.cumsum(payoffs)[np.array(curve_rounds(len(payoffs))) - 1]]


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
