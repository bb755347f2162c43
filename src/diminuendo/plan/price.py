r"""What epsilon buys: the loss of a learner at several epsilons, simulated on people who do not exist.

The learner itself is run, with seeded coins, on people of the public model (model.py). Its loss is the part of greedy's
payoff in hindsight that it does not reach. A long run is scaled down: to `MOST_PEOPLE` people and the `MOST_ITEMS` most
wanted items, with noise in the same proportion to people. Noise on sums has a deviation of sigma people, and the
largest among N items is about sigma sqrt(2 log N); so with Gaussian cost mu = sqrt(2) / sigma the short run gets

    mu' = mu (T / T') sqrt(log N' / log N),    and as its epsilon what mu' is worth at the same delta.

For learners that draw from secret scores it is the rate times the score that counts, and the rate goes like
mu / sqrt(T): there mu' = mu sqrt(T / T').

What is scaled errs on the safe side, by a few thousandths: fewer people are a worse sample.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from diminuendo.errors import InvalidInput, OutOfRange
from diminuendo.learners import LEARNERS, replay
from diminuendo.learners.learner import Setting
from diminuendo.learners.overlap_plan import OverlapPlan
from diminuendo.learners.private_draws import PrivateDraws
from diminuendo.offline import greedy
from diminuendo.plan.forecast import half_way
from diminuendo.plan.model import PublicModel
from diminuendo.plan.noise import noise, releases_of
from diminuendo.privacy import curves
from diminuendo.randomness import SeededCoins
from diminuendo.streams.people import People
from diminuendo.types import Progress

EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
MOST_PEOPLE, MOST_ITEMS, SEEDS = 20_000, 500, 2
LARGEST_MU, LARGEST_EPSILON = 30.0, 500.0
"""Noise of a twentieth of a person and less: more of it would change nothing, and be beyond floating point."""


@dataclass(frozen=True)
class Price:
    """One epsilon, and what it would come to. All of it a forecast under the public model."""

    epsilon: float
    losses: tuple[float, ...]
    """Of each run the part of greedy's payoff in hindsight that is not reached."""
    apart: float | None
    """By how many people two items must differ to be told apart at the last release (noise.py)."""
    half_way: int | None
    """After how many people half the way from random choice to hindsight is made (forecast.py)."""

    @property
    def loss(self) -> float:
        """On average."""
        return sum(self.losses) / len(self.losses)

    def as_json(self) -> dict[str, Any]:
        """For files."""
        return vars(self) | {"loss": self.loss, "losses": list(self.losses)}


def prices(
    name: str,
    setting: Setting,
    cares_about: float,
    epsilons: Sequence[float] = EPSILONS,
    progress: Callable[[str, int], Progress] | None = None,
) -> tuple[Price, ...]:
    """The learner of that name at every epsilon, and at the setting's own; where it cannot be made there is no row."""
    asked = sorted({*epsilons, setting.epsilon})
    tick = progress("trying epsilons on made-up people", len(asked)) if progress else lambda done: None
    model = PublicModel(setting.n_items, cares_about)
    crowd = _crowd(name, model, setting)
    found = []
    for epsilon in asked:
        with suppress(
            InvalidInput
        ):  # this epsilon is beyond what the learner can be made for; others are not
            found.append(_price(name, replace(setting, epsilon=epsilon), model, crowd))
        tick(1)
    return tuple(found)


def random_loss(setting: Setting, cares_about: float) -> float:
    """What random choice loses under the public model."""
    model = PublicModel(setting.n_items, cares_about)
    return 1 - model.random(setting.slots) / model.greedy(setting.slots)


class _Sample(NamedTuple):
    """The same made-up people for every epsilon."""

    seed: int
    people: People
    best: float
    """What hindsight earns from them."""


def _crowd(name: str, model: PublicModel, setting: Setting) -> list[_Sample]:
    short, found = _scaled(name, setting), []
    for seed in range(SEEDS):
        people = model.people(short.rounds, seed, items=short.n_items)
        found.append(_Sample(seed, people, greedy(people, setting.slots).value))
    return found


def _price(name: str, setting: Setting, model: PublicModel, crowd: list[_Sample]) -> Price:
    short, plan = _scaled(name, setting), _plan_of(name, setting)
    losses = tuple(_loss(name, short, sample) for sample in crowd)
    told = noise(plan, model.cares_about)
    return Price(
        setting.epsilon,
        losses,
        None if told is None else told.apart,
        None if plan is None else half_way(plan, model, setting.slots),
    )


def _loss(name: str, short: Setting, sample: _Sample) -> float:
    with _quietly():
        learner = LEARNERS[name].for_setting(short, coins=SeededCoins(sample.seed))
    earned = sample.people.values(replay(learner, sample.people, short.feedback)).mean()
    return float(1 - earned / sample.best) if sample.best > 0 else 0.0


def _plan_of(name: str, setting: Setting) -> OverlapPlan | None:
    with _quietly():
        return releases_of(LEARNERS[name].for_setting(setting))


@contextmanager
def _quietly() -> Iterator[None]:
    """What is out of range was said once, of the setting itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutOfRange)
        yield


def _scaled(name: str, setting: Setting) -> Setting:
    """The short run that stands for the long one."""
    rounds, items = min(setting.rounds, MOST_PEOPLE), min(setting.n_items, max(MOST_ITEMS, setting.slots))
    shrunk = setting.rounds / rounds
    if issubclass(LEARNERS[name], PrivateDraws):
        factor = math.sqrt(shrunk)
    else:
        factor = shrunk * math.sqrt(math.log(max(2, items)) / math.log(max(2, setting.n_items)))
    if (rounds, items) == (setting.rounds, setting.n_items):
        return setting
    if setting.delta == 0:
        epsilon = min(LARGEST_EPSILON, setting.epsilon * factor)
    else:
        mu = min(LARGEST_MU, factor * curves.gaussian_mu(setting.epsilon, setting.delta))
        epsilon = curves.gaussian_epsilon(mu, setting.delta)
    return replace(setting, n_items=items, rounds=rounds, epsilon=epsilon)
