"""The guarantee in words, word for word: what is quoted must be what is proved."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diminuendo.learners import Setting, make
from diminuendo.privacy.budget import Guarantee, Unit, no_privacy, perfect_privacy
from diminuendo.privacy.sentence import chance, factor, upwards
from diminuendo.randomness import SeededSource, SystemSource
from diminuendo.simulate.report import guarantee_sentence
from diminuendo.simulate.report.text import seeded_note

ONE = (
    "Whatever any one user answers in one round, and whether they answer at all: the probability of anything that "
    "others may come to see is at most e^1 = 2.72 times what it would be had they answered anything else, or nothing, "
    "plus at most one in a million. Others are all who see every slate and every released number of the whole run, "
    "whatever else they know and however long they compute. That a user came is not hidden. This is (1, "
    "0.000001)-differential privacy (replace one round), proved in docs/maths/overlap.md of diminuendo. It holds "
    "where random numbers come from the operating system and stay secret, where every answer is given to the decision "
    "that it answers, and where nothing else that depends on answers, such as rewards or click rates, is published."
)
SEVERAL = (
    "Whatever any one user answers in up to 3 rounds together, and whether they answer at all: the probability of "
    "anything that others may come to see is at most e^0.5 = 1.65 times what it would be had they answered anything "
    "else, or nothing. Others are all who see every slate and every released number of the whole run, whatever else "
    "they know and however long they compute. That a user came is not hidden. This is (0.5, 0)-differential privacy "
    "(replace one user's 3 rounds), proved in docs/maths/x.md of diminuendo, for real numbers, which the numbers "
    "computed with only resemble. It holds where random numbers come from the operating system and stay secret, where "
    "every answer is given to the decision that it answers, where each user comes under one name of their own, and "
    "where nothing else that depends on answers, such as rewards or click rates, is published."
)

JOINT = (
    "Whatever is known of any one user, and whatever they answer, in one round, and whether they answer at all: the "
    "probability of anything that others may come to see is at most e^1 = 2.72 times what it would be had anything "
    "else been known of them, or had they answered anything else, or nothing, plus at most one in a million. Others "
    "are all but this user, together: all who see every slate but theirs and every released number, whatever else "
    "they know and however long they compute. A user's own slates follow from what is known of them; a reader of "
    "these slates may learn it. That a user came is not hidden. This is joint (1, 0.000001)-differential privacy "
    "(replace one round with its context), proved in docs/maths/x.md of diminuendo. It holds where random numbers "
    "come from the operating system and stay secret, where every answer is given to the decision that it answers, and "
    "where nothing else that depends on answers, such as rewards or click rates, is published."
)


def test_the_words() -> None:
    learner = make("private", Setting(10, 2, 500, "full", 1.0, 1e-6), rng=SeededSource(1))
    assert guarantee_sentence(learner.guarantee.as_json()) == ONE
    pure = Guarantee(0.5, 0.0, str(Unit(rounds=3)), "docs/maths/x.md", secure_rng=True, exact=False)
    assert guarantee_sentence(pure.as_json(), max_rounds_per_user=3) == SEVERAL


def test_the_words_where_contexts_are_private() -> None:
    unit = Unit(relation="replace-with-context")
    joint = Guarantee(1.0, 1e-6, str(unit), "docs/maths/x.md", secure_rng=True, view=unit.view)
    assert guarantee_sentence(joint.as_json()) == JOINT
    before = {name: value for name, value in joint.as_json().items() if name != "view"}
    assert "joint" not in guarantee_sentence(before), "as guarantees were kept when there were no contexts"


def test_who_promises_nothing_and_who_needs_not() -> None:
    nothing = guarantee_sentence(no_privacy(True).as_json())
    assert nothing == "No guarantee: what is shown may reveal the feedback of any one user."
    perfect = guarantee_sentence(perfect_privacy("obvious", True).as_json())
    assert perfect == (
        "What is shown does not depend on the feedback of any user and reveals nothing of it: "
        "(0, 0)-differential privacy."
    )


def test_seeded_runs_say_so() -> None:
    for rng, said in ((SeededSource(1), True), (SystemSource(), False)):
        learner = make("fi-dp", Setting(10, 2, 500, "full", 1.0, 1e-6), rng=rng)
        assert ("seeded" in seeded_note(learner.guarantee.as_json())) == said
    assert seeded_note(no_privacy(False).as_json()) == "", (
        "where nothing is promised there is nothing to take back"
    )


@pytest.mark.parametrize(
    ("epsilon", "words"),
    [
        (0.1, "e^0.1 = 1.11"),
        (1.0, "e^1 = 2.72"),
        (0.9999999999994844, "e^1 = 2.72"),
        (0.07826987, "e^0.0783 = 1.0815"),
        (0.001, "e^0.001 = 1.00101"),
        (10.0, "e^10 = 22,027"),
        (40.0, "e^40 (more than a billion)"),
    ],
)
def test_factors(epsilon: float, words: str) -> None:
    assert factor(epsilon) == words


@pytest.mark.parametrize(
    ("delta", "words"),
    [
        (1e-6, "one in a million"),
        (1e-9, "one in a billion"),
        (3e-7, "one in 3.33 million"),
        (1e-5, "one in 100,000"),
        (0.3, "one in 3"),
        (1.0, "one in 1"),
    ],
)
def test_chances(delta: float, words: str) -> None:
    assert chance(delta) == words


@given(st.floats(1e-9, 20.0))
def test_numbers_are_rounded_so_that_the_sentence_stays_true(epsilon: float) -> None:
    power, number = factor(epsilon).removeprefix("e^").split(" = ")
    assert float(power.replace(",", "")) >= epsilon
    assert float(number.replace(",", "")) >= math.exp(epsilon) * (1 - 1e-15)
    if epsilon < 0.09:  # one part in a hundred for epsilon, and for what is more than 1
        assert float(number) - 1 <= 1.03 * math.expm1(epsilon)
    assert float(upwards(epsilon).replace(",", "")) <= epsilon * 1.011, (
        "in three digits, and no more than that"
    )


@given(st.floats(1e-15, 1.0))
def test_a_chance_is_never_understated(delta: float) -> None:
    sizes = {"billion": 1e9, "million": 1e6}
    many, *size = chance(delta).removeprefix("one in ").split(" ")
    times = (1.0 if many == "a" else float(many.replace(",", ""))) * (sizes[size[0]] if size else 1.0)
    assert 1 / times >= delta * (1 - 1e-12)
    assert 1 / times <= 2 * delta
