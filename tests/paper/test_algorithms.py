"""The compiled learners do what paper/algorithms.py says, and slips in it are found.

Three kinds of checks. `SAME` compares runs: function and learner draw with the same words, so every slate must agree.
`LAWS` compares the exact law of whole runs with the oracle of tests/kit/enumeration.py, which shares no code with
either. `CONSTANTS` compares the rates and noise of function and learner at sizes where no formula leaves its range,
for which runs would be too long. `SLIPS` are changes to the source of the functions, and name the checks that must
refuse them.
"""

from __future__ import annotations

import inspect
import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias
from unittest import mock

import numpy as np
import pytest
from scipy import sparse

from diminuendo import Learner, SeededSource, Setting, Users, paper
from diminuendo.continuous import CappedSimplex, MultilinearNoisyOr, frank_wolfe_plan
from diminuendo.errors import OutOfRange
from diminuendo.experts.noisy_leader import paper_curvature
from diminuendo.learners.hedge import constants
from diminuendo.objectives import NoisyOr
from diminuendo.paper import algorithms
from diminuendo.types import EMPTY_SLOT
from tests.kit.enumeration import (
    Law,
    Stream,
    bandit_law,
    full_information_law,
    mask,
    presampled_law,
    softmax,
    unit,
)
from tests.kit.inside import inside
from tests.kit.statistics import ALPHA, assert_follows, assert_rejects, p_value

Names: TypeAlias = dict[str, Any]
"""The names of paper/algorithms.py, as they are or with a slip."""

MODULE = inspect.getsource(algorithms)
PRINTED: Names = vars(algorithms)


def with_slip(owner: str, right: str, wrong: str) -> Names:
    """The module as it would be with other text in one function; the right text must be there once."""
    source = inspect.getsource(PRINTED[owner])
    assert source.count(right) == 1, f"{owner} has no single {right!r} any more"
    assert MODULE.count(source) == 1
    names: Names = {"__name__": "slipped"}
    exec(compile(MODULE.replace(source, source.replace(right, wrong)), "slipped", "exec"), names)
    return names


# The same words, the same slates.

N, K, T = 6, 3, 60
DELTA = 1e-6
Run: TypeAlias = tuple[Any, Any]
"""What the function plays, and what the learner plays."""


def likings(seed: int, rounds: int = T, n: int = N) -> Any:
    """Click probabilities in quarters: every value and every gain is a number that floats and ticks hold exactly."""
    random = np.random.default_rng(seed)
    return random.choice([0.0, 0.25, 0.5, 1.0], p=[0.5, 0.2, 0.2, 0.1], size=(rounds, n))


def stream(chances: Any) -> tuple[list[algorithms.Objective], Users]:
    """The same users as plain functions of sets, and as a table for compiled code."""

    def value(p: list[float]) -> algorithms.Objective:
        return lambda S: 1.0 - math.prod(1.0 - p[a] for a in S)

    return [value(p) for p in chances.tolist()], Users(NoisyOr(), sparse.csr_array(chances), chances.shape[1])


def rows(slates: Iterator[algorithms.Slate]) -> list[list[int]]:
    """Slates as a learner returns them: a repeated item, and whatever is behind an exploration, is an empty slot."""
    result = []
    for slate in slates:
        row = [EMPTY_SLOT if item in slate[:slot] else item for slot, item in enumerate(slate)]
        result.append(row + [EMPTY_SLOT] * (K - len(row)))
    return result


def quietly(make: Callable[..., Learner], *args: Any, **more: Any) -> Learner:
    """A learner whose constants are out of range on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutOfRange)
        return make(*args, **more)


def full(name: str, calibration: str, epsilon: float) -> Callable[[Names, int], Run]:
    def check(a: Names, seed: int) -> Run:
        F, users = stream(likings(seed))
        learner = quietly(
            getattr(paper, name), N, K, T, epsilon, DELTA, calibration=calibration, rng=SeededSource(seed)
        )
        eta = None if calibration == "paper" else learner.parameters["rate"]
        ours = a[name](F, N, K, T, epsilon, DELTA, eta=eta, rng=SeededSource(seed))
        return rows(ours), learner.replay(users).tolist()

    return check


def bandit(name: str, calibration: str, epsilon: float, **how: Any) -> Callable[[Names, int], Run]:
    """`how`: what the learner must be told to do what is printed."""

    def check(a: Names, seed: int) -> Run:
        F, users = stream(likings(seed))
        learner = quietly(
            getattr(paper, name), N, K, T, epsilon, DELTA, calibration=calibration, rng=SeededSource(seed), **how
        )  # fmt: skip
        given = learner.parameters
        constants = {} if calibration == "paper" else {"eta": given["rate"], "gamma": given["exploring"]}
        ours = a[name](F, N, K, T, epsilon, DELTA, **constants, rng=SeededSource(seed))
        return rows(ours), learner.replay(users).tolist()

    return check


def original(name: str) -> Callable[[Names, int], Run]:
    def check(a: Names, seed: int) -> Run:
        F, users = stream(likings(seed))
        learner = getattr(paper, name)(N, K, T, rng=SeededSource(seed))
        return rows(a[name](F, N, K, T, rng=SeededSource(seed))), learner.replay(users).tolist()

    return check


def forced(a: Names, seed: int) -> Run:
    """Exploring rounds drawn beforehand: the learner's own, and the slots and items that it probed in them."""
    F, users = stream(likings(seed))
    learner = paper.presampled_bandit(N, K, T, 400.0, DELTA, rng=SeededSource(seed))
    decisions = []
    for user in users:
        decisions.append(learner.choose())
        learner.observe(decisions[-1], user.value(decisions[-1].slate))
    probes = [decision.probe for decision in decisions]
    drawn = itertools.chain.from_iterable(probe for probe in probes if probe is not None)
    eta, b = learner.parameters["rate"], np.isin(np.arange(T), inside(learner).rules.schedule).tolist()
    with mock.patch.dict(a, uniform=lambda n, public: next(drawn)):
        slates = list(a["bandit_dp"](F, N, K, T, 1.0, DELTA, eta=eta, b=b, rng=SeededSource(seed)))
    theirs = [[item for item in decision.slate if item != EMPTY_SLOT] for decision in decisions]
    ours = [list(dict.fromkeys(slate)) for slate in slates]
    return ours, theirs


def pure(calibration: str, epsilon: float) -> Callable[[Names, int], Run]:
    def check(a: Names, seed: int) -> Run:
        F, users = stream(likings(seed))
        learner = paper.fi_pure(N, K, T, epsilon, calibration=calibration, rng=SeededSource(seed))  # type: ignore[arg-type]
        H = None if calibration == "paper" else inside(learner).curvature
        return rows(a["fi_pure"](F, N, K, T, epsilon, H=H, rng=SeededSource(seed))), learner.replay(
            users
        ).tolist()

    return check


DOMAIN = CappedSimplex(3, 1.5)


def slopes(seed: int) -> tuple[list[algorithms.Gradient], list[MultilinearNoisyOr]]:
    """Users of points: their gradients, and themselves."""

    def slope(user: MultilinearNoisyOr) -> algorithms.Gradient:
        return lambda x: user.gradients(x[None])[0]

    random = np.random.default_rng(seed)
    users = [MultilinearNoisyOr(0.57 * random.random(3)) for _ in range(T)]
    return [slope(user) for user in users], users


def points(copies: int | None, epsilon: float = 30.0) -> Callable[[Names, int], Run]:
    """Algorithm 4, as printed or with another number of copies: the printed one is 1 in all runs that end."""

    def plan(spec: Any, cost: float, printed: Any = frank_wolfe_plan.paper_plan) -> Any:
        made = printed(spec, cost)
        if copies is None:
            return made
        curvature = paper_curvature(spec.n, spec.rounds, cost / copies)
        return replace(made, copies=copies, parameter=curvature)

    def check(a: Names, seed: int) -> Run:
        F, users = slopes(seed)
        with mock.patch.object(frank_wolfe_plan, "paper_plan", plan):
            learner = paper.continuous(
                DOMAIN, T, epsilon, gradient_bound=1.0, smoothness=0.7, calibration="paper", rng=SeededSource(seed)
            )  # fmt: skip
        ours = a["continuous"](F, DOMAIN, T, epsilon, L=1.0, K=copies, rng=SeededSource(seed))
        return np.array(list(ours)), learner.replay(users)

    return check


def open_points(a: Names, seed: int) -> Run:
    F, users = slopes(seed)
    learner = paper.meta_frank_wolfe(DOMAIN, T, gradient_bound=1.0, smoothness=0.7, copies=4)
    return np.array(list(a["meta_frank_wolfe"](F, DOMAIN, T, L=1.0, K=4))), learner.replay(users)


SAME: dict[str, Callable[[Names, int], Run]] = {
    "fi_dp, printed": full("fi_dp", "paper", 300.0),
    "fi_dp, tight": full("fi_dp", "tight", 60.0),
    "fi_pure, printed": pure("paper", 2000.0),
    "fi_pure, tight": pure("tight", 2000.0),
    "streeter_golovin": original("streeter_golovin"),
    "bandit_dp, printed": bandit("bandit_dp", "paper", 300.0),
    "bandit_dp, tight": bandit("bandit_dp", "tight", 300.0, resample="all", capped=False),
    "bandit_dp, forced": forced,
    "streeter_golovin_bandit": original("streeter_golovin_bandit"),
    "direct_bandit, printed": bandit("direct_bandit", "paper", 3000.0),
    "direct_bandit, tight": bandit("direct_bandit", "tight", 300.0),
    "continuous, printed": points(None),
    "continuous, 3 copies": points(3),
    "meta_frank_wolfe": open_points,
}


def agree(ours: Any, theirs: Any) -> bool:
    """Slates exactly; points up to the order in which floats are added."""
    if isinstance(ours, np.ndarray):
        return np.allclose(ours, theirs, rtol=0, atol=1e-9)
    return bool(ours == theirs)


@pytest.mark.parametrize("name", SAME)
def test_the_learner_plays_what_the_function_plays(name: str) -> None:
    for seed in range(3):
        ours, theirs = SAME[name](PRINTED, seed)
        assert len(ours) == T
        assert len({str(one) for one in ours}) > 3, "a run in which something happens"
        assert agree(ours, theirs)


# The law of whole runs, by going through all of them.


class Branches:
    """One path through a run: takes the places it is told, and from then on the first, and multiplies chances."""

    def __init__(self, told: tuple[int, ...]) -> None:
        self.told, self.path, self.sizes, self.chance = told, [], [], 1.0  # type: ignore[var-annotated]

    def choose(self, law: Any) -> int:
        place = self.told[len(self.path)] if len(self.path) < len(self.told) else 0
        self.path.append(place)
        self.sizes.append(len(law))
        self.chance *= float(law[place])
        return place

    def expert(self, n: int, eta: float) -> Any:
        """A Hedge expert that draws every item in turn."""
        totals = np.zeros(n)

        class Expert:
            def draw(self, secret: object, choose: Callable[[Any], int] = self.choose) -> int:
                return choose(softmax(float(eta), tuple(totals.tolist())))

            def learn(self, gains: Any) -> None:
                totals[:] += [unit(gain) for gain in gains]

        return Expert()


def law_of(a: Names, name: str, rounds: int, *args: Any, **more: Any) -> Law:
    """The law of what a function plays, whatever its experts draw and its coins show."""
    law: Law = {}
    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        told = waiting.pop()
        one = Branches(told)
        with mock.patch.dict(
            a,
            Hedge=one.expert,
            randomness=lambda rng: (None, None),
            uniform=lambda n, public, one=one: one.choose([1 / n] * n),
            bernoulli=lambda p, public, one=one: one.choose([1 - p, p]) == 1,
        ):
            seen = tuple(itertools.islice(a[name](*args, **more), rounds))
        law[seen] = law.get(seen, 0.0) + one.chance
        for place in range(len(told), len(one.path)):
            waiting += [(*one.path[:place], other) for other in range(1, one.sizes[place])]
    return law


def played(law: Law) -> Law:
    """The oracle's law of slates in force and probes, as one of what is played."""
    result: Law = {}
    for seen, chance in law.items():
        sets = tuple(slate if probe is None else (*slate[: probe[0]], probe[1]) for slate, probe in seen)
        result[sets] = result.get(sets, 0.0) + chance
    return result


def tiny(rounds: int, n: int) -> tuple[Stream, list[algorithms.Objective]]:
    """Arbitrary functions, as tables by bit mask and as functions of sets."""
    random = np.random.default_rng(rounds)
    users = [(0.0, *random.random((1 << n) - 1).tolist()) for _ in range(rounds)]

    def value(table: tuple[float, ...]) -> algorithms.Objective:
        return lambda S: table[mask(S)]

    return tuple(users), [value(table) for table in users]


def far_apart(ours: Law, theirs: Law) -> float:
    """The largest difference between two chances."""
    return max(abs(ours.get(seen, 0.0) - theirs.get(seen, 0.0)) for seen in ours | theirs)


def full_laws(a: Names, most: int) -> float:
    result = []
    for n, k, rounds in ((2, 2, most), (3, 2, 2), (3, 1, most)):
        users, F = tiny(rounds, n)
        eta = 9.0 / (k * math.sqrt(32 * rounds * math.log(k / 0.5)))
        ours = law_of(a, "fi_dp", rounds, F, n, k, rounds, 9.0, 0.5)
        result.append(far_apart(ours, full_information_law(users, n, k, eta)))
    return max(result)


def open_laws(a: Names, rounds: int) -> float:
    users, F = tiny(rounds, 2)
    eta = min(1.0, math.sqrt(2 * math.log(2) / rounds))
    ours = law_of(a, "streeter_golovin", rounds, F, 2, 2, rounds)
    return far_apart(ours, full_information_law(users, 2, 2, eta))


GAMMA = 0.3


def bandit_laws(a: Names, rounds: int) -> float:
    users, F = tiny(rounds, 2)
    eta = 40.0 / (2 * math.sqrt(32 * 2 * GAMMA * rounds * math.log(2 / 0.5)))
    ours = law_of(a, "bandit_dp", rounds, F, 2, 2, rounds, 40.0, 0.5, gamma=GAMMA)
    return far_apart(ours, played(bandit_law(users, 2, 2, eta, GAMMA, "all")))


def presampled_laws(a: Names, rounds: int) -> float:
    users, F = tiny(rounds, 2)
    theirs: Law = {}
    for b in itertools.product((False, True), repeat=rounds):
        eta = 40.0 / (2 * math.sqrt(32 * (sum(b) + 1) * math.log(2 / 0.5)))
        schedule = [t for t, explores in enumerate(b) if explores]
        chance = math.prod(GAMMA if explores else 1 - GAMMA for explores in b)
        for seen, share in played(presampled_law(users, 2, 2, eta, schedule, "all")).items():
            theirs[seen] = theirs.get(seen, 0.0) + chance * share
    ours = law_of(a, "presampled_bandit", rounds, F, 2, 2, rounds, 40.0, 0.5, gamma=GAMMA)
    return far_apart(ours, theirs)


def direct_laws(a: Names, rounds: int) -> float:
    users, F = tiny(rounds, 2)
    eta = 40.0 / (2 * math.sqrt(32 * rounds * math.log(2 / 0.5)))
    ours = law_of(a, "direct_bandit", rounds, F, 2, 2, rounds, 40.0, 0.5, gamma=GAMMA)
    return far_apart(ours, played(bandit_law(users, 2, 2, eta, GAMMA, "every")))


def open_bandit_laws(a: Names, rounds: int) -> float:
    """Three items, one slot: at the default constants, held at 1/2 and at 1 here."""
    users, F = tiny(rounds, 3)
    ours = law_of(a, "streeter_golovin_bandit", rounds, F, 3, 1, rounds)
    return far_apart(ours, played(bandit_law(users, 3, 1, 1.0, 0.5, "every")))


LAWS: dict[str, Callable[[Names, int], float]] = {
    "law of fi_dp": full_laws,
    "law of streeter_golovin": open_laws,
    "law of bandit_dp": bandit_laws,
    "law of presampled_bandit": presampled_laws,
    "law of direct_bandit": direct_laws,
    "law of streeter_golovin_bandit": open_bandit_laws,
}
ROUNDING = 1e-12
"""Sums of thousands of products of a few doubles agree to much less."""


@pytest.mark.parametrize("name", LAWS)
def test_the_function_has_the_law_of_the_oracle(name: str) -> None:
    for rounds in (2, 3):
        assert LAWS[name](PRINTED, rounds) < ROUNDING


# Constants, where nothing is given.


def constants_of(a: Names, name: str, *args: Any, explorations: int = 0, **more: Any) -> dict[str, float]:
    """What a function gives to its experts and coins, of a run that ends with its first slate."""
    seen, made, tree = dict[str, float](), a["PFTAL"], a["GammaTree"]

    def expert(n: int, eta: float) -> Any:
        seen["rate"] = eta
        return mock.Mock(draw=lambda secret: 0)

    def leader(*given: Any) -> Any:
        seen["copies"] = seen.get("copies", 0) + 1
        one = made(*given)
        seen["H"] = one.H
        return one

    def sums(copies: int, size: int, rounds: int, scale: float) -> Any:
        seen["scale"] = scale
        return tree(copies, size, rounds, scale)

    tosses = itertools.chain([True] * explorations, itertools.repeat(False))

    def toss(p: float, public: object) -> bool:
        seen["exploring"] = p
        return next(tosses)

    with mock.patch.dict(a, Hedge=expert, PFTAL=leader, GammaTree=sums, bernoulli=toss):
        next(a[name](*args, **more))
    return seen


IN_RANGE, AT_ITS_END = (4, 2, 100_000), (6, 3, 60)
"""N, k and T at which shares of exploring rounds are below 1, and at which they are held."""
Constants: TypeAlias = tuple[dict[str, float], dict[str, float]]
"""What the function has, and what the learner has."""


def rates_of(name: str, sizes: tuple[int, int, int], *budget: float) -> Callable[[Names], Constants]:
    """Rate and share of Hedge experts, as printed, or by default where there is nothing to be private about."""

    def check(a: Names) -> Constants:
        printed = {"calibration": "paper"} if budget else {}
        given = quietly(getattr(paper, name), *sizes, *budget, **printed).parameters
        ours = constants_of(a, name, [lambda S: 0.0], *sizes, *budget)
        return ours, {key: given[key] for key in ours}

    return check


def presampled_constants(a: Names) -> Constants:
    learner = paper.presampled_bandit(*IN_RANGE, 1.0, DELTA, calibration="paper", rng=SeededSource(1))
    theirs = {"rate": learner.parameters["rate"]}
    theirs["exploring"] = constants.bandit(Setting(*IN_RANGE, "bandit", 1.0, DELTA), "paper", "all").share
    many = learner.parameters["explorations"]
    return constants_of(
        a, "presampled_bandit", [lambda S: 0.0], *IN_RANGE, 1.0, DELTA, explorations=many
    ), theirs


def pure_constants(a: Names) -> Constants:
    """Where T is a power of 2, or one less, a sum that is counted or not makes a level."""
    n, k, all_ours, all_theirs = 6, 3, dict[str, float](), dict[str, float]()
    for rounds in (1023, 1024):
        made = inside(paper.fi_pure(n, k, rounds, 1.0, calibration="paper"))
        theirs = {"copies": k, "H": made.curvature, "scale": float(made._experts.tree.scale[0])}
        ours = constants_of(a, "fi_pure", [lambda S: 0.0], n, k, rounds, 1.0)
        all_ours |= {f"{key}, {rounds}": value for key, value in ours.items()}
        all_theirs |= {f"{key}, {rounds}": value for key, value in theirs.items()}
    return all_ours, all_theirs


def point_constants(a: Names) -> Constants:
    learner = paper.continuous(DOMAIN, 1000, 1.0, gradient_bound=1.5, smoothness=0.7, calibration="paper")
    made: Any = learner
    theirs = {"copies": learner.plan.copies, "H": learner.plan.parameter, "scale": made._sums._tree.scale}
    return constants_of(a, "continuous", [lambda x: x], DOMAIN, 1000, 1.0, L=1.5), theirs


def many_rounds(a: Names) -> Constants:
    """Two copies, which takes so many rounds that only the plan of the learner is made."""
    rounds = 10**7
    spec = frank_wolfe_plan.Spec(DOMAIN.n, rounds, DOMAIN.radius, DOMAIN.spread, 1.5, 0.7)
    with mock.patch.object(frank_wolfe_plan, "equal", lambda rounds, batches: range(batches)):
        plan = frank_wolfe_plan.paper_plan(spec, 1.0)
    _, scale = frank_wolfe_plan.gamma_noise(spec, 1.0, plan.copies, plan.releases)
    theirs = {"copies": plan.copies, "H": plan.parameter, "scale": scale}
    return constants_of(a, "continuous", [lambda x: x], DOMAIN, rounds, 1.0, L=1.5), theirs


def open_copies(a: Names) -> Constants:
    """The function's own default, by the gradients that it asks for in a round."""
    slope = mock.Mock(side_effect=lambda x: x)
    list(a["meta_frank_wolfe"]([slope], DOMAIN, 50, L=1.0))
    return {"copies": slope.call_count}, {"copies": 8}


CONSTANTS: dict[str, Callable[[Names], Constants]] = {
    "constants of fi_dp": rates_of("fi_dp", IN_RANGE, 1.0, DELTA),
    "constants of streeter_golovin": rates_of("streeter_golovin", IN_RANGE),
    "constants of streeter_golovin, few rounds": rates_of("streeter_golovin", (6, 3, 2)),
    "constants of fi_pure": pure_constants,
    "constants of bandit_dp": rates_of("bandit_dp", IN_RANGE, 1.0, DELTA),
    "constants of bandit_dp, few rounds": rates_of("bandit_dp", AT_ITS_END, 1.0, DELTA),
    "constants of presampled_bandit": presampled_constants,
    "constants of direct_bandit": rates_of("direct_bandit", IN_RANGE, 100.0, DELTA),
    "constants of direct_bandit, few rounds": rates_of("direct_bandit", AT_ITS_END, 1.0, DELTA),
    "constants of streeter_golovin_bandit": rates_of("streeter_golovin_bandit", IN_RANGE),
    "constants of streeter_golovin_bandit, few rounds": rates_of("streeter_golovin_bandit", AT_ITS_END),
    "constants of continuous": point_constants,
    "constants of continuous, many rounds": many_rounds,
    "constants of meta_frank_wolfe": open_copies,
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_function_and_learner_have_the_same_constants(name: str) -> None:
    ours, theirs = CONSTANTS[name](PRINTED)
    assert ours == pytest.approx(theirs, rel=ROUNDING)
    if "exploring" in ours:
        assert (ours["exploring"] in (0.5, 1.0)) == name.endswith("few rounds")


def test_the_learner_of_algorithm_4_does_not_count_the_sum_that_is_never_played() -> None:
    """1,024 sums need 11 levels, and 1,023 need 10."""
    made: Any = paper.continuous(DOMAIN, 1024, 1.0, gradient_bound=1.0, smoothness=0.7, calibration="paper")
    ours = constants_of(PRINTED, "continuous", [lambda x: x], DOMAIN, 1024, 1.0, L=1.0)
    assert ours["scale"] / made._sums._tree.scale == pytest.approx(11 / 10, rel=ROUNDING)


def test_help_on_every_algorithm_names_the_function_to_read() -> None:
    made = {name: getattr(paper, name) for name in algorithms.__all__ if name != "PFTAL"}
    assert [name for name, one in made.items() if "`paper.algorithms" not in (one.__doc__ or "")] == []


# Algorithm 1 by itself, and what the functions draw with.

GAINS = [[0.0, 0.5, 1.0], [1.0, 0.25, 0.0], [1.0, 0.0, 0.5]]
RUNS = 2000


def hedge_law(eta: float) -> Any:
    """The law of three draws of Hedge on `GAINS`, by place in a table of 27."""
    totals = [tuple(np.sum(GAINS[:t], axis=0, dtype=float) + np.zeros(3)) for t in range(3)]
    laws = [softmax(eta, one) for one in totals]
    return np.array([math.prod(chances) for chances in itertools.product(*laws)])


def hedge_draws(a: Names) -> list[int]:
    runs = [list(a["hedge"](GAINS, 3, 2.0, rng=SeededSource(seed))) for seed in range(RUNS)]
    return [9 * one + 3 * two + three for one, two, three in runs]


def test_algorithm_1_and_the_compiled_expert_have_one_law() -> None:
    theirs = []
    for seed in range(RUNS):
        expert, secret = paper.hedge(3, 2.0), algorithms.randomness(SeededSource(seed))[0]
        place = 0
        for gains in GAINS:
            place = 3 * place + expert.draw(secret)
            expert.learn(np.array(gains))
        theirs.append(place)
    for draws in (hedge_draws(PRINTED), theirs):
        assert_follows(draws, hedge_law(2.0))
        assert_rejects(draws, hedge_law(2.6))


def test_numbers_and_places_are_drawn_as_likely_as_they_say() -> None:
    public = algorithms.randomness(SeededSource(1))[1]
    numbers = [algorithms.uniform(5, public) for _ in range(4000)]
    assert_follows(numbers, np.full(5, 0.2))
    assert_rejects(numbers, np.array([0.25, 0.25, 0.1875, 0.1875, 0.125]))
    law, nearby = np.array([0.1, 0.6, 0.3]), np.array([0.15, 0.6, 0.25])
    places = [algorithms.index(law, public) for _ in range(4000)]
    assert_follows(places, law)
    assert_rejects(places, nearby)
    tosses = [int(algorithms.bernoulli(0.3, public)) for _ in range(4000)]
    assert_follows(tosses, np.array([0.7, 0.3]))
    assert_rejects(tosses, np.array([0.65, 0.35]))


def test_exploring_rounds_drawn_beforehand_are_independent_and_as_likely_as_the_share() -> None:
    """Of the learner, three rounds at a time; the function's own are in its law."""
    setting = Setting(2, 1, 9000, "bandit", 1.0, DELTA)
    gamma = constants.bandit(setting, "paper", "all").share
    learner = paper.presampled_bandit(2, 1, 9000, 1.0, DELTA, calibration="paper", rng=SeededSource(1))
    explores = np.isin(np.arange(9000), inside(learner).rules.schedule)

    def law(p: float) -> Any:
        return np.array([math.prod(three) for three in itertools.product((1 - p, p), repeat=3)])

    triples = explores.reshape(-1, 3) @ np.array([4, 2, 1])
    assert_follows(triples, law(gamma))
    assert_rejects(triples, law(gamma - 0.05))


def copies(a: Names, rounds: int) -> int:
    """How many copies of PFTAL Algorithm 4 makes as printed, also for runs that nobody would wait for."""
    with mock.patch.dict(a, PFTAL=mock.Mock(side_effect=lambda project, v, *more: mock.Mock(v=v))):
        next(a["continuous"]([lambda x: x], DOMAIN, rounds, 1.0, L=1.0))
        return int(a["PFTAL"].call_count)


def right_copies(a: Names) -> bool:
    """T^(1/4) / log^1.25 T, which is 1 up to 4.16 million rounds (erratum 5)."""
    printed = {60: 1, 4 * 10**6: 1, 10**7: 2, 10**9: 4, 10**12: 16}
    return {rounds: copies(a, rounds) for rounds in printed} == printed


def test_algorithm_4_makes_the_printed_number_of_copies() -> None:
    assert right_copies(PRINTED)


def refuse(*_: Any) -> Any:
    raise AssertionError("evaluated before anything was played")


@pytest.mark.parametrize("name", sorted({*algorithms.__all__} - {"PFTAL", "hedge"}))
def test_nothing_is_asked_before_it_is_played(name: str) -> None:
    function = PRINTED[name]
    spec: dict[str, Any] = {"N": 3, "k": 2, "T": 9, "X": DOMAIN, "epsilon": 1.0, "delta": 1e-6, "L": 1.0}
    given = {key: spec[key] for key in inspect.signature(function).parameters if key in spec}
    run = function(F=[refuse] * 9, **given)
    next(run)
    with pytest.raises(AssertionError, match="before anything"):
        list(run)


# Slips: the text that is right, what stands there instead, and which checks must notice.

REDRAW = "S_t = [E_i.draw(secret) for E_i in E]              #     Utilize"
SLIPS: list[tuple[str, str, str, tuple[str, ...]]] = [
    ("hedge", "G += [", "G -= [", ("hedge",)),
    ("hedge", "clipped(gain) for", "clipped(1 - gain) for", ("hedge",)),
    ("hedge", "select(G,", "select(G + [clipped(x) for x in g_t],", ("hedge",)),
    ("hedge", "eta / TICKS", "2 * eta / TICKS", ("hedge",)),
    ("hedge", "for gain in g_t", "for gain in np.eye(N)[i_t] * g_t", ("hedge",)),
    # Algorithm 2.
    ("fi_dp", "a_t[:i])", "a_t[:i + 1])", ("fi_dp, printed", "law of fi_dp")),
    ("fi_dp", "set(a_t[:i])", "set(a_t[:0])", ("fi_dp, printed", "law of fi_dp")),
    ("fi_dp", "E[i].learn", "E[k - 1 - i].learn", ("fi_dp, printed", "law of fi_dp")),
    ("fi_dp", "f_t(S | {a}) - f_t(S) for", "f_t(S) - f_t(S | {a}) for", ("fi_dp, printed", "law of fi_dp")),
    ("fi_dp", "f_t(S | {a}) - f_t(S) for", "f_t({a}) for", ("fi_dp, tight", "law of fi_dp")),
    (
        "fi_dp",
        "a_t = [E_i.draw(secret) for E_i in E] ",
        "a_t = locals().get('a_t') or [E_i.draw(secret) for E_i in E] ",
        ("fi_dp, printed", "law of fi_dp"),
    ),
    ("fi_dp", "math.sqrt(32 * T", "math.sqrt(8 * T", ("fi_dp, printed", "law of fi_dp")),
    ("fi_dp", "math.log(k / delta)", "math.log(1 / delta)", ("law of fi_dp",)),
    ("fi_dp", "epsilon / (k * math", "epsilon / (math", ("fi_dp, printed", "law of fi_dp")),
    ("streeter_golovin", "k * math.log(N) / T", "math.log(N) / T", ("streeter_golovin", "law of streeter_golovin")),
    ("streeter_golovin", "min(1.0, ", "min(2.0, ", ("constants of streeter_golovin, few rounds",)),
    # The remark after it.
    ("fi_pure", "a_t[:i])", "a_t[:i + 1])", ("fi_pure, printed",)),
    ("fi_pure", "E[i].learn", "E[k - 1 - i].learn", ("fi_pure, printed",)),
    ("fi_pure", "f_t(S | {a}) - f_t(S) for", "f_t(S) - f_t(S | {a}) for", ("fi_pure, printed",)),
    (
        "fi_pure",
        "a_t = [index(E_i.v, public) for E_i in E] ",
        "a_t = locals().get('a_t') or [index(E_i.v, public) for E_i in E] ",
        ("fi_pure, printed",),
    ),
    ("PFTAL", "self.project(G_t /", "self.project(-G_t /", ("fi_pure, printed", "continuous, printed")),
    ("PFTAL", "self.H * self.t)", "self.H * (self.t + 1))", ("fi_pure, printed", "continuous, printed")),
    ("fi_pure", "T, epsilon / k, size", "T, epsilon, size", ("fi_pure, printed", "fi_pure, tight")),
    ("fi_pure", "size = math.sqrt(N)", "size = 1.0", ("fi_pure, printed", "fi_pure, tight")),
    ("fi_pure", "(epsilon / k * T)", "(epsilon * T)", ("fi_pure, printed",)),
    ("fi_pure", "k * T)", "k * (T - 1))", ("constants of fi_pure",)),
    ("PFTAL", "T.bit_length()", "(T - 1).bit_length()", ("constants of fi_pure",)),
    ("PFTAL", "T.bit_length()", "(T + 1).bit_length()", ("constants of fi_pure",)),
    ("simplex", "np.cumsum(falling) - 1", "np.cumsum(falling) - 0.9", ("fi_pure, printed",)),
    ("PFTAL", "self.H * self.t)", "self.H)", ("fi_pure, printed", "continuous, printed")),
    ("PFTAL", "node_scale(levels,", "node_scale(1,", ("fi_pure, printed", "continuous, printed")),
    # Algorithm 3.
    ("bandit_dp", "S_t[:i], a", "S_t[:i + 1], a", ("bandit_dp, forced", "law of bandit_dp")),
    ("bandit_dp", REDRAW, "pass  #", ("bandit_dp, printed", "bandit_dp, forced", "law of bandit_dp")),
    (
        "bandit_dp",
        "            yield tuple(S_t) ",
        "            S_t = [E_i.draw(secret) for E_i in E]; yield tuple(S_t) ",
        ("bandit_dp, tight", "bandit_dp, forced", "law of bandit_dp"),
    ),
    ("bandit_dp", "f_hat[i, a]", "f_hat[k - 1 - i, a]", ("bandit_dp, printed", "law of bandit_dp")),
    ("bandit_dp", "f_hat[i, a]", "f_hat[i, S_t[i]]", ("bandit_dp, printed", "law of bandit_dp")),
    ("bandit_dp", "f_t(set(played))", "f_t({a})", ("bandit_dp, printed", "law of bandit_dp")),
    (
        "bandit_dp",
        "f_t(set(played))",
        "f_t(set(played)) - f_t(set(S_t[:i]))",
        ("bandit_dp, printed", "law of bandit_dp"),
    ),
    ("bandit_dp", "f_hat[i, a] = f_t(", "f_hat[i, a] = -f_t(", ("bandit_dp, printed", "law of bandit_dp")),
    ("bandit_dp", "(2 * gamma * T)", "(gamma * T)", ("bandit_dp, printed", "law of bandit_dp")),
    ("bandit_dp", "b = (bernoulli(gamma", "b = (bernoulli(gamma / 2", ("bandit_dp, tight", "law of bandit_dp")),
    ("bandit_dp", "k * math.cbrt((16", "math.cbrt((16", ("constants of bandit_dp",)),
    ("bandit_dp", "(16 * N", "(8 * N", ("constants of bandit_dp",)),
    ("bandit_dp", "** 2 / T", "** 2 / (T - 1)", ("constants of bandit_dp",)),
    ("bandit_dp", "min(1.0, k", "min(0.5, k", ("bandit_dp, printed", "constants of bandit_dp, few rounds")),
    # Appendix B.
    ("presampled_bandit", "(M + 1)", "(M + 2)", ("law of presampled_bandit",)),
    ("presampled_bandit", "(M + 1)", "(M or 1)", ("law of presampled_bandit", "constants of presampled_bandit")),
    ("presampled_bandit", "k * math.cbrt((16", "math.cbrt((16", ("constants of presampled_bandit",)),
    ("presampled_bandit", "eta=eta, gamma=gamma, b=b", "eta=eta, gamma=gamma", ("law of presampled_bandit",)),
    ("direct_bandit", "32 * T", "32 * 2 * gamma * T", ("law of direct_bandit",)),
    ("direct_bandit", "(eta * T)", "T", ("direct_bandit, printed",)),
    ("streeter_golovin_bandit", "S_t[:i], a", "S_t[:i + 1], a", ("law of direct_bandit", "streeter_golovin_bandit")),
    ("streeter_golovin_bandit", "f_hat[i, a]", "f_hat[0, a]", ("law of direct_bandit", "streeter_golovin_bandit")),
    ("streeter_golovin_bandit", "f_t(set(played))", "f_t({a})", ("law of direct_bandit", "streeter_golovin_bandit")),
    (
        "streeter_golovin_bandit",
        "f_hat[i, a] = f_t(",
        "f_hat[i, a] = -f_t(",
        ("law of direct_bandit", "streeter_golovin_bandit"),
    ),
    (
        "streeter_golovin_bandit",
        "S_t = [E_i.draw(secret) for E_i in E] ",
        "S_t = locals().get('S_t') or [E_i.draw(secret) for E_i in E] ",
        ("law of direct_bandit", "streeter_golovin_bandit"),
    ),
    ("streeter_golovin_bandit", "math.cbrt(N", "math.cbrt(2 * N", ("constants of streeter_golovin_bandit",)),
    ("streeter_golovin_bandit", "min(0.5, k *", "min(1.0, k *", ("streeter_golovin_bandit",)),
    ("streeter_golovin_bandit", "min(1.0, math.sqrt", "min(2.0, math.sqrt", ("law of streeter_golovin_bandit",)),
    # Algorithm 4.
    ("continuous", "learn(grad_f_t", "learn(-grad_f_t", ("continuous, printed", "continuous, 3 copies")),
    (
        "continuous",
        "v_t = np.array([E_k.v for E_k in E])",
        "v_t = locals().get('v_t', np.array([E_k.v for E_k in E]))",
        ("continuous, printed", "continuous, 3 copies"),
    ),
    ("continuous", "v_t[:k]", "v_t[:k + 1]", ("continuous, printed", "continuous, 3 copies")),
    ("continuous", "v_t[:k].sum(axis=0) / K", "v_t[:k].sum(axis=0) / (k or 1)", ("continuous, 3 copies",)),
    ("continuous", "x_t = v_t.sum(axis=0) / K", "x_t = v_t[-1]", ("continuous, 3 copies",)),
    ("continuous", "E[k].learn", "E[K - 1 - k].learn", ("continuous, 3 copies",)),
    ("continuous", "T, epsilon / K, size", "T, epsilon, size", ("continuous, 3 copies",)),
    ("continuous", "(epsilon / K * T)", "(epsilon * T)", ("continuous, 3 copies",)),
    ("continuous", "math.sqrt(2) * L", "L", ("continuous, printed", "continuous, 3 copies")),
    ("continuous", "math.log(T) ** 2.5)))", "math.log(T) ** 1.25)))", ("copies",)),
    ("meta_frank_wolfe", "G[k] += grad", "G[k] -= grad", ("meta_frank_wolfe",)),
    ("meta_frank_wolfe", "v_t[:k]", "v_t[:k + 1]", ("meta_frank_wolfe",)),
    ("meta_frank_wolfe", "(L * math.sqrt(T))", "(L * T)", ("meta_frank_wolfe",)),
    ("meta_frank_wolfe", "math.ceil(math.sqrt(T))", "math.ceil(T)", ("constants of meta_frank_wolfe",)),
]  # fmt: skip


def refuses(check: str, names: Names) -> bool:
    """Whether a check tells the slipped functions from the learner, or from the oracle."""
    if check == "hedge":
        return p_value(hedge_draws(names), hedge_law(2.0)) < ALPHA
    if check == "copies":
        return not right_copies(names)
    if check in LAWS:
        return LAWS[check](names, 2) >= ROUNDING
    if check in CONSTANTS:
        ours, theirs = CONSTANTS[check](names)
        return ours != pytest.approx(theirs, rel=ROUNDING)
    return not all(agree(*SAME[check](names, seed)) for seed in range(3))


@pytest.mark.parametrize(
    ("owner", "right", "wrong", "checks"), SLIPS, ids=[f"{one[0]}-{one[2][:30]}-{row}" for row, one in enumerate(SLIPS)]
)  # fmt: skip
def test_a_slip_is_found(owner: str, right: str, wrong: str, checks: tuple[str, ...]) -> None:
    names = with_slip(owner, right, wrong)
    assert [check for check in checks if not refuses(check, names)] == []


def test_a_slip_in_text_that_is_gone_is_noticed() -> None:
    with pytest.raises(AssertionError, match="any more"):
        with_slip("fi_dp", "what was there once", "")


def test_every_algorithm_is_checked_and_the_papers_page_leads_to_it() -> None:
    functions = set(algorithms.__all__)
    assert {owner for owner, *_ in SLIPS} >= functions
    page = (Path(__file__).parents[2] / "docs" / "paper.md").read_text()
    assert [name for name in sorted(functions) if f"`{name}` in `paper/algorithms.py`" not in page] == []
