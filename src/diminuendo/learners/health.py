"""Health: whether the releases of a learner show that feedback arrives in time.

A learner that no answer reaches in time shows random slates for ever, and nothing else tells: who answers is private.
But a total of rewards is published of each batch or block, with noise of a known law. Health is computed from these
totals, their laws and public counts alone, so it is post-processing and costs no privacy. It draws no random words.

Two bets are made on each total, at odds that are fair, or worse, if what they bet against is true; each gains on
average as fast as such a bet can if the other side is true. The first bets against a *healthy* learner, whose chosen
slates earn at least `floor` per answer; where it has multiplied its stake by a thousand, and the second has not tripled
its own, there is no signal. The second bets against silence; where it has, there is one. By Ville's inequality either
happens wrongly with probability 1/1000 at most over a whole run, whenever it is read (docs/maths/health.md, Theorems H2
and H3).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import NoSignal
from diminuendo.types import Floats

State = Literal["ok", "too early to tell", "no signal", "drift", "not available"]

SURE = math.log(1000)
"""The logarithm of what one over the probability of a false alarm is, over a whole run."""
HINT = math.log(3)
"""There is no alarm while bets against silence have gained more than this: rare rewards are below the floor too."""
LEAST, LED, EXPLORED = 0.01, 0.1, 0.05
"""The floor is at least LEAST, one reward in a hundred answers. It is at most LED where all users are shown the best
slate that is known, since one that pleases less than one in ten is hardly worth choosing; and half of that where a part
of them is shown slates in order to learn."""
EARLY = 10
"""The floor is the least reward that the first of EARLY equal parts of all rounds can tell from silence ..."""
AMPLE = 3 * SURE
"""... by bets that are expected to gain this: half of it would do in most runs, and a third on average."""
RATES = 0.5 ** np.arange(7)
"""Rewards that are bet on against silence, in floors: most learners earn more, and some less."""
LARGEST_STAKE = 30.0
"""Where there is no noise, this much is bet on one unit of reward: e^-30 is as good as 0."""
LEAST_SCALE = 1 / 300
"""In ticks."""
STEPS = 50
"""Halvings that find a stake."""

RELEASES, ROUNDS, TOTAL, ANSWERS, VARIANCE, BET, BEST, DRIFTED, SHOWN, LEARNED = range(10)
SINCE_DRIFT, SINCE_BEST = slice(10, 17), slice(17, 24)
SIZE = 24

ADVICE: dict[str, str] = {
    "ok": "Published rewards are more than noise: answers arrive in time.",
    "too early to tell": "What was published so far could be of a healthy learner, and could be noise alone.",
    "no signal": "Published rewards are consistent with no feedback in time. Check that feedback is sent, and that it "
    "arrives within the feedback window or deadline. Where very few users click, a healthy run can look like this for "
    "a short time.",
    "drift": "Published rewards fell: the learner has begun to learn anew, and no signal is proved since.",
    "not available": "This learner publishes no rewards, so that nothing public tells whether anybody answers.",
}  # fmt: skip


@dataclass(frozen=True)
class Health:
    """Whether published totals show that feedback arrives, and the public numbers behind it.

    Attributes
    ----------
    state : {"ok", "too early to tell", "no signal", "drift", "not available"}
        "no signal" and "ok" are each wrong with probability at most 1/1000 over a whole run (Theorems H2 and H3 of
        docs/maths/health.md), however often it is read.
    advice : str
        What the state means, and what to do.
    total : float
        All published rewards, noise included.
    deviation : float
        Standard deviation of the noise in the total.
    answers : float
        Number of responses behind it, if as many users respond as was declared.
    rounds : int
        Number of rounds behind it.
    floor : float
        Reward per response that the slates of a healthy learner earn at least.

    """

    state: State
    advice: str
    total: float = 0.0
    deviation: float = 0.0
    answers: float = 0.0
    rounds: int = 0
    floor: float = 0.0

    def __str__(self) -> str:
        if self.state == "not available":
            return self.state
        return (
            f"{self.state} (published rewards {self.total:,.1f}, noise {self.deviation:,.1f}, "
            f"of about {self.answers:,.0f} answers in {self.rounds:,} rounds)"
        )


NOT_AVAILABLE = Health("not available", ADVICE["not available"])


class GaussianNoise:
    """Normal noise of that deviation, rounded to multiples of `tick`: rounding moves it by half a tick at most."""

    def __init__(self, deviation: float, tick: float) -> None:
        self.variance, self._half = deviation**2, tick / 2
        self.limit = LARGEST_STAKE if not deviation else 1e6 / deviation

    def log_mgf(self, stake: Floats) -> Floats:
        """At least log E exp(stake noise)."""
        return np.asarray(stake**2 * self.variance / 2 + stake * self._half)

    def slope(self, stake: Floats) -> Floats:
        """The derivative of that."""
        return np.asarray(stake * self.variance + self._half)


class LaplaceNoise:
    """The sum of discrete Laplace noise on several numbers: of each of `scales`, in ticks, on how many `numbers`."""

    def __init__(self, scales: Any, numbers: Any, ticks: int) -> None:
        known = np.asarray(scales, dtype=np.float64) > 0
        # Less noise than this is none; as more of it is allowed for, nothing overflows.
        self._scales = np.maximum(np.asarray(scales, dtype=np.float64)[known, None], LEAST_SCALE)
        self._numbers, self._ticks = np.asarray(numbers, dtype=np.float64)[known, None], ticks
        self.limit = min([LARGEST_STAKE, *(ticks / self._scales.ravel())])
        each = 0.5 / np.sinh(0.5 / self._scales) ** 2
        self.variance = float((self._numbers * each).sum()) / ticks**2

    def log_mgf(self, stake: Floats) -> Floats:
        """Exactly: with q = exp(-1/scale), (1 - q)^2 / ((1 - q e^t) (1 - q e^-t)) for t to a tick."""
        t, rate = stake / self._ticks, 1 / self._scales
        each = 2 * np.log(-np.expm1(-rate)) - np.log(-np.expm1(t - rate)) - np.log(-np.expm1(-t - rate))
        return np.asarray((self._numbers * each).sum(axis=0))

    def slope(self, stake: Floats) -> Floats:
        """The derivative of that."""
        t, rate = stake / self._ticks, 1 / self._scales
        each = 1 / np.expm1(rate - t) - 1 / np.expm1(rate + t)
        return np.asarray((self._numbers * each).sum(axis=0) / self._ticks)


NoiseLaw: TypeAlias = GaussianNoise | LaplaceNoise
"""The law of the noise in one published total; all of it is public. Stakes are below its `limit`."""


def best_stakes(gain_slope: Callable[[Floats], Any], many: int, noise: NoiseLaw) -> Floats:
    """The stakes at which bets grow fastest: where what they gain rises as fast as what noise costs."""
    low: Floats = np.zeros(many)
    high: Floats = np.full(many, noise.limit * (1 - 1e-9))
    for _ in range(STEPS):
        middle = (low + high) / 2
        rises = gain_slope(middle) > noise.slope(middle)
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    return low


def floor_for(totals: list[tuple[float, float]], most: float) -> float:
    """The least reward per answer, between LEAST and `most`, that these totals tell from silence.

    `totals`: how many answers are in each, and the variance of its noise, as planned.
    """
    answers, variances = np.array(totals, dtype=np.float64).reshape(-1, 2).T
    low, high = LEAST, most
    for _ in range(STEPS):
        middle = (low + high) / 2
        gained = (middle * answers) ** 2 / (2 * (variances + middle * answers))
        low, high = (low, middle) if gained.sum() >= AMPLE else (middle, high)
    return high


class Signal:
    """What was published so far of rewards, in a few numbers, and what the two bets have come to."""

    def __init__(self, floor: float) -> None:
        self.floor, self.warned = floor, False
        self.array: Floats = np.zeros(SIZE)
        self.array[BET] = self.array[BEST] = -np.inf
        self.array[LEARNED] = -1.0

    def __repr__(self) -> str:
        return f"<Signal: {self.health}>"

    def add(self, total: float, answers: float, rounds: int, noise: NoiseLaw, *, drifted: bool) -> None:
        """A total was published, about that number of rounds.

        `answers`: how many answers are expected in it; one that should earn less than the floor counts as less.
        """
        result, expected = self.array, self.floor * answers
        result[RELEASES] += 1
        number = result[RELEASES]
        (stake,) = best_stakes(lambda each: expected * np.exp(-each), 1, noise)
        gained = float(-stake * total - expected * math.expm1(-stake) - noise.log_mgf(np.array([stake]))[0])
        weight = -math.log(number * (number + 1))  # of bets that begin with this release; all add up to 1
        if weight >= result[BEST]:
            result[BEST], result[SINCE_BEST] = weight, 0.0
        result[BET], result[BEST] = np.logaddexp(result[BET], weight) + gained, result[BEST] + gained
        stakes = best_stakes(lambda each: expected * RATES, len(RATES), noise)
        against_silence = stakes * total - noise.log_mgf(stakes)
        result[SINCE_DRIFT] += against_silence
        result[SINCE_BEST] += against_silence
        if _mixed(result[SINCE_DRIFT]) >= SURE:
            result[SHOWN], result[DRIFTED] = 1.0, 0.0
        if drifted:
            result[SHOWN], result[DRIFTED], result[SINCE_DRIFT] = 0.0, 1.0, 0.0
        result[ROUNDS : VARIANCE + 1] += (rounds, total, answers, noise.variance)

    @property
    def state(self) -> State:
        """What may be said by now."""
        result = self.array
        not_begun = -math.log(result[RELEASES] + 1)
        if np.logaddexp(result[BET], not_begun) >= SURE and _mixed(result[SINCE_BEST]) <= HINT:
            return "no signal"
        if result[DRIFTED]:
            return "drift"
        return "ok" if result[SHOWN] else "too early to tell"

    @property
    def health(self) -> Health:
        """The same with the numbers that it rests on."""
        result, state = self.array, self.state
        return Health(
            state, ADVICE[state], float(result[TOTAL]), math.sqrt(result[VARIANCE]), float(result[ANSWERS]),
            int(result[ROUNDS]), self.floor,
        )  # fmt: skip

    def warn(self, name: str) -> None:
        """Say once that there is no signal, if there is none."""
        if not self.warned and self.state == "no signal":
            self.warned = True
            warnings.warn(f"{name!r}: {self.health}. {ADVICE['no signal']}", NoSignal, stacklevel=4)

    def take(self, array: NDArray[Any] | None) -> None:
        """Go on from a snapshot's array, if it holds one."""
        if array is not None:
            self.array[:] = array


def _mixed(logs: Floats) -> float:
    """The logarithm of the mean of these, given as logarithms."""
    return float(np.logaddexp.reduce(logs)) - math.log(len(logs))
