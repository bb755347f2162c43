"""Which learner is taken: by rule where rules apply, else by the least bound; never one that breaks what was asked."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace

import pytest

from diminuendo import LEARNERS, SeededSource, Setting
from diminuendo.errors import OutOfRange
from diminuendo.learners.random_slates import RandomPolicy
from diminuendo.learners.recommend import RULES, preferred
from diminuendo.learners.slates.policy import SlatePolicy
from diminuendo.plan import Candidate, pick, plan
from diminuendo.plan.planner import candidate
from diminuendo.privacy.budget import REPLACE_ONE_ROUND, Guarantee
from diminuendo.streams import taste_groups
from diminuendo.types import FEEDBACKS

FULL, PURE = Setting(50, 5, 10_000, "full", 1.0, 1e-6), Setting(50, 5, 10_000, "full", 1.0, 0.0)


def made_up(name: str, bound: float | None, epsilon: float = 1.0, exact: bool = True) -> Candidate:
    promise = Guarantee(epsilon, 0.0, REPLACE_ONE_ROUND, "by definition", True, exact)
    return Candidate(name, "", {}, promise, None, bound)


def test_the_rules_read_from_the_top() -> None:
    everybody = {rule.learner for rule in RULES}
    assert everybody <= set(LEARNERS)
    cases = {
        ("overlap-greedy", FULL, True),
        ("epoch-greedy", replace(FULL, delta=0.0), True),
        (None, FULL, False),
        ("epoch-greedy", PURE, True),
        (None, PURE, False),
        ("slate-totals", Setting(50, 5, 10_000, "bandit"), True),
        ("slate-clicks", Setting(50, 5, 10_000, "click", 1.0, 0.0), False),
    }
    for expected, setting, store in cases:
        rule = preferred(setting, LEARNERS, store_users=store)
        assert (None if rule is None else rule.learner) == expected
    assert preferred(FULL, {}) is None
    rule = preferred(FULL, {name: LEARNERS[name] for name in everybody - {"overlap-greedy"}})
    assert rule is not None
    assert rule.learner == "epoch-greedy", "who is not there makes way for the next"


def test_a_rule_goes_before_a_bound_unless_a_bound_is_wanted() -> None:
    result = [made_up("random", None, 0.0), made_up("overlap-greedy", None), made_up("other", 900.0)]
    result.append(made_up("better", 800.0))
    assert pick(result, FULL)[0] == "overlap-greedy"
    name, why = pick(result, FULL, adversarial=True)
    assert name == "better"
    assert "0.080 per user" in why
    assert "overlap-greedy loses less" in why


def test_what_is_not_private_enough_is_never_taken() -> None:
    over, floats = made_up("over", 1.0, epsilon=1.5), made_up("floats", 1.0, exact=False)
    fine = made_up("fine", 6_400.0)
    assert pick([over, floats, fine], FULL)[0] == "fine"
    assert "no bound says anything" in pick([over, floats, fine], FULL)[1]
    assert pick([over, floats], FULL)[0] == "random"
    assert pick([made_up("overlap-greedy", None, epsilon=1.5), fine], FULL)[0] == "fine"


def test_who_keeps_users_is_not_taken_where_that_is_not_allowed() -> None:
    keeps, sums = made_up("epoch-greedy", 10.0), made_up("sums", 900.0)
    assert pick([keeps, sums], FULL, adversarial=True)[0] == "epoch-greedy"
    assert pick([keeps, sums], FULL, adversarial=True, store_users=False)[0] == "sums"
    name, why = pick([keeps], FULL, store_users=False)
    assert name == "random"
    assert "stores no users" in why


@pytest.mark.parametrize("feedback", FEEDBACKS)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_every_wish_is_granted_or_refused(feedback: str, delta: float) -> None:
    for store, adversarial in itertools.product((True, False), repeat=2):
        result = plan(
            50,
            5,
            10_000,
            delta=delta,
            feedback=feedback,  # type: ignore[arg-type]
            store_users=store,
            adversarial=adversarial,
        )
        taken = result[result.recommended]
        assert taken.keeps_to(result.setting)
        assert store or not LEARNERS[taken.name].advice.keeps_users
        if adversarial and taken.name != "random":
            others = [
                one for one in result.candidates if one.keeps_to(result.setting) and one.bound is not None
            ]
            allowed = [one.bound for one in others if store or not LEARNERS[one.name].advice.keeps_users]
            assert taken.bound == min(bound for bound in allowed if bound is not None)
        assert result.why.count(". ") + result.why.endswith(".") >= 2, "two sentences"


@pytest.mark.parametrize("name", LEARNERS)
def test_what_is_kept_is_what_the_catalogue_says(name: str) -> None:
    """A snapshot grows with the number of users exactly where users are kept; what was published does not count."""
    kind, users = LEARNERS[name], taste_groups(400, 12, groups=3, items_per_group=4)
    delta = 0.0 if LEARNERS[name].advice.guarantee == "(ε, 0)" else 1e-6
    sizes = []
    for rounds in (30, 390):
        setting = Setting(12, 2, 400, "full" if "full" in kind.reads else "bandit", 1.0, delta)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OutOfRange)
            learner = kind.for_setting(setting, rng=SeededSource(1))
        learner.replay(users[:rounds])
        policy = getattr(learner, "policy", None)
        published = policy.planner.posterior.arrays() if isinstance(policy, SlatePolicy) else {}
        sizes.append(len(learner.snapshot()) - sum(part.nbytes for part in published.values()))
    # A number for each of 360 more users, or one for each of the last few dozen, is more than headers ever grow.
    assert (sizes[1] - sizes[0] > 400) == LEARNERS[name].advice.keeps_users


def test_a_learner_may_carry_its_own_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RandomPolicy, "regret_bound", lambda policy, rounds: 123.0)
    assert candidate("random", FULL).bound == 123.0
