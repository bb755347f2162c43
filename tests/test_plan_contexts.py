"""What a plan says of contexts: what they cost, what a category needs; and learners that do not take them."""

from __future__ import annotations

import json
import math

import pytest

from diminuendo.errors import InvalidInput
from diminuendo.learners.overlap.contexts.shares import TRIAL, USELESS
from diminuendo.plan import ContextPlan, plan
from diminuendo.privacy import Budget


def contexts_of(*sizes: int, private: bool = False, **asked: object) -> ContextPlan:
    arguments = {"n_items": 294, "slots": 5, "rounds": 30_000} | asked
    result = plan(**arguments, contexts=sizes, private_context=private).contexts  # type: ignore[arg-type]
    assert result is not None
    return result


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_what_a_category_needs_is_four_times_the_largest_noise(epsilon: float) -> None:
    mu = math.sqrt(Budget(epsilon, 1e-6, accountant="continuous-gaussian").limit)
    nu = math.sqrt(2) / mu * math.sqrt(2 * math.log(294))
    result = contexts_of(20, 24, epsilon=epsilon)
    assert result.needed == pytest.approx(4 * nu, abs=0.5)
    assert result.on_average == (1_500.0, 1_250.0)


def test_useless_contexts_cost_little_and_private_ones_a_little_more() -> None:
    public, private = contexts_of(20), contexts_of(20, private=True)
    assert public.noise_factor == pytest.approx(1 / math.sqrt(1 - TRIAL))
    assert private.noise_factor == pytest.approx(1 / math.sqrt((1 - TRIAL) * 0.95)), (
        "a twentieth counts users"
    )
    assert public.later_factor == pytest.approx(1 / math.sqrt(1 - USELESS))
    assert public.promise is None
    assert private.promise == (
        "(1, 1e-06)-differentially private (replace one round with its context; jointly: in the view of all others)"
    )


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ((20, 24), "This is enough."),
        ((20, 5_000), "Of the feature with the most categories expect little"),
        ((5_000,), "Too few users come for a category"),
    ],
)
def test_advice_follows_how_many_users_a_category_has(sizes: tuple[int, ...], words: str) -> None:
    assert words in contexts_of(*sizes).said


def test_words_for_slates() -> None:
    said = contexts_of(20, 24).said
    assert said.startswith("20 and 24 categories, public. If they are not informative, noise grows up to 1.")
    assert (
        "after about 81 users, and often two to four times as many; on average 1,500 and 1,250 come" in said
    )


@pytest.mark.parametrize("feedback", ["bandit", "click"])
def test_rewards_and_clicks_have_slates_of_their_own_where_categories_differ(feedback: str) -> None:
    many = contexts_of(4, feedback=feedback, n_items=50, rounds=100_000)
    assert many.taken
    assert many.noise_factor is None
    assert "shows all users the same at first" in many.said
    assert "25,000 come on average: try it" in many.said
    few = contexts_of(4_000, feedback=feedback, n_items=50, rounds=100_000)
    assert "leave contexts out, or merge categories" in few.said
    hidden = contexts_of(4, feedback=feedback, n_items=50, private=True)
    assert "With bandit feedback noise is then twice as large" in hidden.said
    assert hidden.promise is not None
    assert "in the view of all others" in hidden.promise


def test_a_learner_that_shows_everybody_the_same() -> None:
    result = contexts_of(20, delta=0.0)
    assert not result.taken
    assert "epoch-greedy shows all users the same" in result.said
    assert result.needed is None


def test_as_json() -> None:
    written = json.loads(json.dumps(plan(294, 5, 30_000, contexts=[20], private_context=True).as_json()))
    assert written["contexts"]["sizes"] == [20]
    assert written["contexts"]["private"] is True
    assert "contexts" not in written["setting"]
    assert plan(294, 5, 30_000).as_json()["contexts"] is None


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(InvalidInput, match="how many categories each feature has, as 20,24"):
        plan(294, 5, 30_000, contexts=[])
    with pytest.raises(InvalidInput, match="contexts must be"):
        plan(294, 5, 30_000, contexts=[0])
    with pytest.raises(InvalidInput, match="say how many values they have, too"):
        plan(294, 5, 30_000, private_context=True)
