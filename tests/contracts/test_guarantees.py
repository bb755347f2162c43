"""A guarantee is never smaller than what is charged for, also where a mechanism is noisier or less noisy than planned.

Each learner is made for another epsilon than the one that was asked for, so that its noise is a factor of what it
should be and its events honestly cost more or less; then it is told that it was made for what was asked. What it states
must follow its events: a statement that is cut off at what was asked for would hide such a mistake.
"""

from __future__ import annotations

import importlib
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

from diminuendo import LEARNERS, paper
from diminuendo.continuous import Box, MetaFrankWolfe
from diminuendo.continuous.boosted import BoostedAscent
from diminuendo.contract.case import N_ITEMS, SLOTS, USERS
from diminuendo.errors import OutOfRange
from diminuendo.learners.base.feedback import simulate_feedback
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.hedge.private_draws import PrivateDraws
from diminuendo.privacy.books import ledger_file
from diminuendo.privacy.budget import Budget, Guarantee, Unit
from diminuendo.privacy.events import ContinuousGaussian, Event, Gaussian, Laplace, Selections
from diminuendo.privacy.ledger import Ledger
from diminuendo.privacy.rounding import rounded_up
from diminuendo.randomness import SeededSource
from diminuendo.randomness.words import SecretRandomness
from diminuendo.service.dashboard.accounts import Account
from diminuendo.streams.contexts import Contexts
from diminuendo.sums.private_counts import PrivateCounts
from diminuendo.sums.private_sum import PrivateSum
from diminuendo.sums.schedule import equal

offline: Any = importlib.import_module("diminuendo.offline.private_greedy")
SCALES = (Fraction(1, 2), Fraction(5, 7), Fraction(1), Fraction(2))
"""What noise is multiplied by; 5/7 is about 1 / sqrt 2."""
ROUNDING = 2.0**-40
"""Conversions round up by 2^-44 of each of about ten terms, and find epsilon to 2^-50 of it (privacy/curves.py)."""
ROUNDS = 64
EPSILON = 1.0


def epsilon_at(asked: Budget, scale: Fraction) -> float:
    """The epsilon of a mechanism whose noise is `scale` times what the budget asked for allows."""
    return asked.epsilon if scale == 1 else price(asked, asked.limit / scale**asked.counting.power)


def price(budget: Budget, cost: Fraction) -> float:
    """What the accountant says about what one round pays, whatever was asked for."""
    whole = budget.counting.owned(cost, budget.unit.rounds)
    return budget.counting.convert(rounded_up(whole), budget.delta)


def check(stated: Guarantee, asked: Budget, scale: Fraction, *costs: Fraction) -> None:
    """At least what each of these costs; and where noise is as planned, at most what was asked for."""
    assert stated.delta == asked.delta
    for cost in costs:
        assert stated.epsilon >= price(asked, cost) * (1 - ROUNDING)
    if scale == 1:
        assert stated.epsilon <= asked.epsilon


class Made(NamedTuple):
    """A private learner of the table, with one kind of feedback and options."""

    name: str
    feedback: Any
    options: tuple[tuple[str, Any], ...] = ()
    note: str = ""

    def __str__(self) -> str:
        return f"{self.name}, {self.feedback}{self.note}"

    def setting(self, epsilon: float, delta: float = 1e-6) -> Setting:
        return Setting(N_ITEMS, SLOTS, ROUNDS, self.feedback, epsilon, delta, **dict(self.options))

    def learner(self, setting: Setting, ledger: Ledger | None = None) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OutOfRange)  # the paper's constants for so few rounds
            return LEARNERS[self.name].for_setting(setting, rng=SeededSource(1), ledger=ledger)


COLUMNS = {"country": ["a", "b"]}
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("", {}),
    (", public contexts", {"contexts": Contexts(COLUMNS)}),
    (", private contexts", {"contexts": Contexts(COLUMNS, private=True)}),
    (", exclusions", {"exclusions": True}),
    (", three visits", {"max_rounds_per_user": 3}),
]


def all_private() -> Iterator[Made]:
    """All private learners, with every kind of feedback they read; with the options that each of them takes."""
    for entry in LEARNERS.values():
        if not entry.private:
            continue
        for feedback in sorted(entry.reads):
            for note, options in VARIANTS:
                made = Made(entry.name, feedback, tuple(options.items()), note)
                if not ({"contexts", "exclusions"} & set(options)) or set(options) <= set(entry.options):
                    yield made


def tell(learner: Any, asked: Budget) -> None:
    """From now on it has been asked for that."""
    policy = learner.policy
    policy.budget = asked
    if isinstance(draws := getattr(policy, "_draws", None), PrivateDraws):
        draws.budget = draws._budget = asked
        vars(draws).pop("_epsilon", None)  # what was computed for another budget


def play(made: Made, learner: Any, rounds: int = ROUNDS // 2) -> None:
    """Users come and answer, as many as half of them."""
    options = dict(made.options)
    for t in range(rounds):
        known: dict[str, Any] = {"user_id": str(t)} if "max_rounds_per_user" in options else {}
        if "contexts" in options:
            known["context"] = {"country": "ab"[t % 2]}
        decision = learner.choose(**known)
        learner.observe(decision, simulate_feedback(USERS, t, decision.slate, made.feedback))


@pytest.mark.parametrize("made", list(all_private()), ids=str)
def test_a_learner_states_no_less_than_it_charges(made: Made) -> None:
    asked = made.learner(made.setting(EPSILON)).budget
    for scale in SCALES:
        setting = made.setting(epsilon_at(asked, scale))
        ledger = Ledger(replace(asked, epsilon=8 * setting.epsilon))
        learner = made.learner(setting, ledger)
        tell(learner, asked)
        before = learner.guarantee
        if scale in (SCALES[0], 1):
            play(made, learner)
            assert ledger._tally.total > 0
        whole = asked.counting.tally(learner.events).total
        check(before, asked, scale, whole, ledger._tally.total)
        assert learner.guarantee == before


DOMAIN = Box([1.0, 1.0])
STEEP: dict[str, Any] = {"gradient_bound": 1.0}
SPEC: dict[str, Any] = STEEP | {"smoothness": 1.0}
POINTS: dict[str, Callable[..., Any]] = {
    "frank-wolfe, gamma": lambda **more: MetaFrankWolfe(DOMAIN, ROUNDS, noise="gamma", **SPEC, **more),
    "frank-wolfe, gaussian": lambda **more: MetaFrankWolfe(DOMAIN, ROUNDS, noise="gaussian", **SPEC, **more),
    "frank-wolfe, paper": lambda **more: paper.continuous(
        DOMAIN, ROUNDS, delta=0.0, calibration="paper", **SPEC, **more
    ),
    "boosted, laplace": lambda **more: BoostedAscent(DOMAIN, ROUNDS, noise="laplace", **STEEP, **more),
    "boosted, gaussian": lambda **more: BoostedAscent(DOMAIN, ROUNDS, noise="gaussian", **STEEP, **more),
}


@pytest.mark.parametrize("max_rounds_per_user", [1, 3])
@pytest.mark.parametrize("kind", POINTS)
def test_a_learner_of_points_states_no_less_than_it_charges(kind: str, max_rounds_per_user: int) -> None:
    make, unit = POINTS[kind], Unit(max_rounds_per_user)
    accountant = make(epsilon=EPSILON, rng=SeededSource(1))._budget.accountant
    asked = Budget(EPSILON, 0.0 if accountant == "pure" else 1e-6, unit, accountant)
    for scale in SCALES:
        epsilon = epsilon_at(asked, scale)
        ledger = Ledger(replace(asked, epsilon=8 * epsilon))
        learner = make(epsilon=epsilon, rng=SeededSource(1), ledger=ledger)
        learner._budget, learner.epsilon = asked, asked.epsilon
        assert ledger._tally.total > 0
        check(learner.guarantee, asked, scale, ledger._tally.total)


@pytest.mark.parametrize(("calibration", "delta"), [("tight", 0.0), ("tight", 1e-6), ("paper", 1e-6)])
def test_one_expert_states_no_less_than_it_charges(calibration: Any, delta: float) -> None:
    asked = Budget(EPSILON, delta, accountant="zcdp" if delta else "pure")
    for scale in SCALES:
        epsilon = epsilon_at(asked, scale)
        ledger = Ledger(replace(asked, epsilon=8 * epsilon))
        expert = paper.private_hedge(
            4, ROUNDS, epsilon, delta, calibration=calibration, ledger=ledger, rng=SeededSource(1)
        )
        expert.budget = asked
        for _ in range(ROUNDS):
            expert.draw()
            expert.learn(np.ones(4))
        check(expert.guarantee, asked, scale, ledger._tally.total)


@pytest.mark.parametrize("calibration", ["pure", "zcdp", "telescoping"])
def test_private_greedy_states_no_less_than_its_draws_cost(
    calibration: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Budget(EPSILON, 0.0, accountant="pure") if calibration == "pure" else Budget(EPSILON, 1e-6)
    planned = offline._calibrated
    for scale in SCALES:

        def scaled(*given: Any, scale: Fraction = scale) -> tuple[str, float]:
            name, rate = planned(*given)
            return name, rate / float(scale)

        monkeypatch.setattr(offline, "_calibrated", scaled)
        result = offline.private_greedy(USERS, 2, budget=asked, calibration=calibration, rng=SeededSource(1))
        check(result.guarantee, asked, scale)
        honest = result.epsilons(asked.delta)[calibration]
        assert result.guarantee.epsilon >= honest * (1 - ROUNDING)


# Ledgers, and what is read of them.

EVENTS: dict[str, Callable[[Fraction], Event]] = {
    "pure": lambda cost: Laplace(float(cost)),
    "zcdp": lambda cost: Gaussian(float(cost)),
    "continuous-gaussian": lambda cost: ContinuousGaussian(math.sqrt(cost)),
}


def budgets() -> list[Budget]:
    return [
        Budget(EPSILON, 0.0 if accountant == "pure" else 1e-6, Unit(rounds), accountant)  # type: ignore[arg-type]
        for accountant in EVENTS
        for rounds in (1, 3)
    ]


@pytest.mark.parametrize("asked", budgets(), ids=str)
def test_a_ledger_states_no_less_than_it_took(asked: Budget) -> None:
    """It refuses what costs more; should it fail to, it says what it took."""
    for scale in SCALES:
        ledger = Ledger(asked)
        ledger._limit = 100 * asked.limit
        ledger.charge(EVENTS[asked.accountant](asked.limit / scale**asked.counting.power))
        check(ledger.guarantee(), asked, Fraction(0), ledger._tally.total)
        # What is drawn next may depend on what was drawn: the budget is what Theorem A7 proves, never the total so far.
        assert ledger.guarantee().epsilon == max(asked.epsilon, ledger.spent())
        if scale > 1:
            assert ledger.spent() < asked.epsilon


@pytest.mark.parametrize("asked", budgets(), ids=str)
def test_an_account_states_no_less_than_its_lines_say(asked: Budget) -> None:
    """What dashboard and API read of a ledger that somebody wrote past its budget."""
    for scale in SCALES:
        event = EVENTS[asked.accountant](asked.limit / scale**asked.counting.power)
        text, head = b"", ""
        for body in (ledger_file.header(asked), ledger_file.Charge(event, "one@front: it").body()):
            text += ledger_file.line(body, head := ledger_file.chained(head, body))
        account = Account().read(text)
        assert account.damaged == ""
        assert len(account.lines) == 2
        honest = price(asked, asked.counting.tally(event).total) * (1 - ROUNDING)
        assert account.spent >= honest
        assert account.placements()[0].epsilon >= honest
        assert account.spent_at(account.head) == account.spent


@pytest.mark.parametrize("asked", budgets(), ids=str)
def test_sums_and_counts_that_take_all_of_a_budget_are_worth_no_more_than_it(asked: Budget) -> None:
    """And no less than they cost."""
    ledger, secret = Ledger(asked), SecretRandomness(SeededSource(1))
    cost = asked.share()
    total = PrivateSum(2, schedule=equal(ROUNDS, 4), cost=cost, ledger=ledger)
    total.release(secret)
    check(ledger.guarantee(), asked, Fraction(1), asked.counting.tally(total.event).total)
    if isinstance(cost, Laplace):
        ledger = Ledger(asked)
        counts = PrivateCounts(cost=cost, ticks=4, ledger=ledger, name="counts", about="x")
        check(ledger.guarantee(), asked, Fraction(1), asked.counting.tally(counts.event).total)


def test_what_fits_is_worth_no_more_than_was_asked_and_what_does_not_is_never_cut() -> None:
    for asked in budgets():
        assert asked.worth(asked.limit) <= asked.epsilon
        assert asked.worth(asked.limit * Fraction(1 + 2.0**-30)) >= asked.epsilon
        assert asked.worth(2 * asked.limit) > 1.3 * asked.epsilon
        assert asked.worth(asked.limit, 2 * asked.unit.rounds) >= 1.9 * asked.epsilon
        assert asked.worth(Fraction(0)) == 0
    assert Budget(1.0, 1e-6).worth_of(Selections(10, 0.1)) == Budget(9.0, 1e-6).worth_of(Selections(10, 0.1))
