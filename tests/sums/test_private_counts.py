"""Private counts: no answer moves what is published by more than was paid for, and nothing is published twice."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

from diminuendo import SeededSource, SystemSource
from diminuendo.errors import InvalidInput, OverBudget
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import Gaussian, Laplace
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness import PublicSource, SecretRandomness, noise
from diminuendo.sums.private_counts import LARGEST_SENSITIVITY, ExactCounts, PrivateCounts
from diminuendo.types import Floats, Ints
from tests.kit.statistics import assert_follows, assert_rejects

EPSILON = 0.7
Answer: TypeAlias = tuple[list[int], list[int]] | None
"""Cells and ticks that one user adds; None: she did not answer."""
NO_ANSWER: Answer = None


def secret(seed: int = 0) -> SecretRandomness:
    return SecretRandomness(SeededSource(seed))


def system() -> SecretRandomness:
    return SecretRandomness(SystemSource())


def pure(epsilon: float = EPSILON) -> Ledger:
    return Ledger(Budget(epsilon, 0.0, accountant="pure"))


def fresh(ticks: int = 1, ledger: Ledger | None = None, epsilon: float = EPSILON) -> PrivateCounts:
    held = pure(epsilon) if ledger is None else ledger
    return PrivateCounts(cost=Laplace(epsilon), ticks=ticks, ledger=held)


# The exact law of what is published.


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[int], float]]:
    """No noise: sums, and the scale of the noise that would cover them, are written down instead."""
    seen: list[tuple[list[int], float]] = []

    def record(values: Ints, scale: float, secret: SecretRandomness) -> Ints:
        seen.append((values.tolist(), scale))
        return values

    monkeypatch.setattr(noise, "laplace", record)
    return seen


Covered: TypeAlias = tuple[tuple[int, Fraction], ...]
"""Every published cell: its sum, and the scale of its discrete Laplace noise."""


def covered(
    answer: Answer, sensitivity: list[int], ticks: int, bare: list[tuple[list[int], float]]
) -> Covered:
    """What is published where everybody else says the same and one user says this."""
    counts = fresh(ticks)
    counts.open(sensitivity)
    counts.add([0, len(sensitivity) - 1], [1, 1])
    if answer is not None:
        counts.add(*answer)
    bare.clear()
    counts.release(secret())
    return tuple((value, Fraction(scale)) for values, scale in bare for value in values)


def log_ratio(one: Covered, other: Covered) -> Fraction:
    """The largest log P(y) / Q(y) over all that may be published: P(y) is in proportion to exp(-|y - sum| / scale).

    Outcomes are listed up to one beyond all sums; further out, ratios are those of the last one.
    """
    assert [scale for _, scale in one] == [scale for _, scale in other], "noise does not depend on answers"
    sums = [value for value, _ in (*one, *other)]
    assert max(sums) - min(sums) < 10, "somebody's answer was not clipped"
    reach = range(min(sums) - 1, max(sums) + 2)

    def logarithm(law: Covered, outcome: tuple[int, ...]) -> Fraction:
        parts = (abs(y - value) / scale for y, (value, scale) in zip(outcome, law, strict=True))
        return -sum(parts, start=Fraction(0))

    outcomes = itertools.product(reach, repeat=len(one))
    return max(logarithm(one, outcome) - logarithm(other, outcome) for outcome in outcomes)


def worst(
    answers: list[Answer], sensitivity: list[int], ticks: int, bare: list[tuple[list[int], float]]
) -> float:
    """Over all neighbours with these answers, in parts of epsilon, exactly; a float only when it is known."""
    laws = list(dict.fromkeys(covered(answer, sensitivity, ticks, bare) for answer in answers))
    return float(max(log_ratio(*pair) for pair in itertools.permutations(laws, 2)) / Fraction(EPSILON))


HOSTILE = [-7, 0, 1, 2, 3, 4, 10**9, np.iinfo(np.int64).max, np.iinfo(np.int64).min]
YES_OR_NO: list[Answer] = [NO_ANSWER, ([1], [0]), ([1], [1])]
REWARD: list[Answer] = [NO_ANSWER, *(([1], [said]) for said in HOSTILE)]
WHICH: list[Answer] = [NO_ANSWER, *(([cell], [1]) for cell in (1, 2, 3))]
MANY: list[Answer] = [NO_ANSWER, *(([cell], [said]) for cell in (1, 2) for said in HOSTILE)]

BELOW = 2**-50
"""Scales are floats, rounded up: by less than this, in parts."""


@pytest.mark.parametrize(
    ("answers", "sensitivity", "ticks"),
    [
        (YES_OR_NO, [2, 1, 2], 1),
        (REWARD, [1, 1], 3),
        (WHICH, [1, 2, 2, 2], 1),
        (MANY, [1, 2, 2], 2),
    ],
    ids=["yes or no", "reward", "which", "which, in ticks"],
)
def test_answers_cost_what_is_charged_and_no_less(
    answers: list[Answer], sensitivity: list[int], ticks: int, bare: list[tuple[list[int], float]]
) -> None:
    """Theorem B1, attained. Answers are hostile, and one of them is none."""
    assert 1 - BELOW < worst(answers, sensitivity, ticks, bare) <= 1


def test_that_somebody_answered_which_costs_half(bare: list[tuple[list[int], float]]) -> None:
    """It is another slot that costs the whole; so noise for a distance of 1 there would be too little."""
    for clicked in WHICH[1:]:
        assert 0.5 - BELOW < worst([NO_ANSWER, clicked], [1, 2, 2, 2], 1, bare) <= 0.5
    assert 2 - BELOW < worst(WHICH, [1, 1, 1, 1], 1, bare) <= 2, "a mistake, and it is seen"


def test_two_questions_of_one_answer_cost_more(bare: list[tuple[list[int], float]]) -> None:
    """Why a user is asked one thing only: whether she clicked, and which slot, are one and a half together."""
    both: list[Answer] = [NO_ANSWER, *(([0, cell], [1, 1]) for cell in (1, 2))]
    assert 1.5 - BELOW < worst(both, [1, 2, 2], 1, bare) <= 1.5


def test_noise_of_too_small_a_scale_would_be_seen(
    bare: list[tuple[list[int], float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = PrivateCounts.scale
    monkeypatch.setattr(PrivateCounts, "scale", lambda counts, sensitivity: right(counts, 1))
    assert worst(WHICH, [1, 2, 2, 2], 1, bare) > 2 - BELOW
    assert worst(YES_OR_NO, [2, 1, 2], 1, bare) <= 1
    monkeypatch.setattr(
        PrivateCounts, "scale", lambda counts, sensitivity: right(counts, sensitivity) / counts.ticks
    )
    assert worst(REWARD, [1, 1], 3, bare) > 3 - BELOW


def test_unclipped_answers_would_be_seen(
    bare: list[tuple[list[int], float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        PrivateCounts, "add", lambda counts, cells, ticks, lot=-1: np.add.at(counts._lots[0], cells, ticks)
    )
    assert worst([([1], [0]), ([1], [4])], [1, 1], 3, bare) > 4 / 3 - BELOW


# The noise.


def laplace_law(scale: float, reach: int) -> Floats:
    """P(z) for z from -reach to reach, what lies beyond at the two ends; by the geometric series."""
    q = math.exp(-1 / scale)
    inner = [(1 - q) / (1 + q) * q ** abs(z) for z in range(-reach, reach + 1)]
    beyond = q ** (reach + 1) / (1 + q)
    return np.array([beyond, *inner, beyond])


@pytest.mark.parametrize("source", [secret(3), system()], ids=["seeded", "secure"])
def test_noise_has_the_law_of_its_cell(source: SecretRandomness) -> None:
    """20,000 cells of either kind, in turn. For a scale that is wrong by a factor of 1.2 the statistic is 560 or more
    over its degrees of freedom on average, with a deviation of 50, and at ALPHA 62 over: it is all but sure to refuse.
    """
    each = 20_000
    counts = fresh(ticks=2)
    counts.open(np.tile([1, 2], each))
    counts.add(np.arange(2 * each), np.ones(2 * each, dtype=np.int64))  # a tick in each
    result = np.rint(counts.release(source) * 2).astype(np.int64).reshape(each, 2) - 1
    for kind, sensitivity in enumerate((1, 2)):
        scale = 2 * sensitivity / EPSILON
        reach = math.ceil(4 * scale)
        places = np.clip(result[:, kind], -reach - 1, reach + 1) + reach + 1
        assert_follows(places, laplace_law(scale, reach))
        for wrong in (scale * 1.2, scale / 1.2):
            assert_rejects(places, laplace_law(wrong, reach))


# Published once.

ASKED = [1, 2] * 20
"""Two releases of so many cells, with noise of scale 2 and more, agree with a chance below (1/4)^40."""


def durable(folder: Path, ticks: int = 1) -> tuple[PrivateCounts, Ledger]:
    held = Ledger.open(folder / "ledger", Budget(EPSILON, 0.0, accountant="pure"))
    return fresh(ticks, held), held


def published(counts: PrivateCounts, cell: int, source: SecretRandomness) -> Floats:
    counts.open(ASKED)
    counts.add([cell], [1])
    return counts.release(source)


def test_counts_are_one_release() -> None:
    held = pure()
    counts = fresh(ledger=held)
    first = published(counts, 0, secret(1))
    np.testing.assert_array_equal(counts.release(secret(2)), first)
    np.testing.assert_array_equal(published(counts, 7, secret(3)), first)  # whatever else was said
    assert len(held.drawn) == 1
    counts.forget()
    assert counts.number == 1
    assert (published(counts, 0, secret(5)) != first).any()
    assert [drawn.name for drawn in held.drawn] == ["counts.000000", "counts.000001"]
    while counts._lots:
        counts.forget()
    counts._opened = 0
    counts.open([1, 1])
    with pytest.raises(InvalidInput, match="another size"):
        counts.release(secret(6))


def test_what_counts_are_for_is_kept_as_well() -> None:
    counts = fresh()
    plan = np.array([3, 1, 4])
    np.testing.assert_array_equal(counts.planned(lambda: plan, secret(1)), plan)
    np.testing.assert_array_equal(counts.planned(lambda: plan + 1, secret(1)), plan)
    published(counts, 0, secret(2))
    counts.forget()
    np.testing.assert_array_equal(counts.planned(lambda: plan + 1, secret(1)), plan + 1)


def test_after_a_crash_what_was_planned_and_published_is(tmp_path: Path) -> None:
    counts, held = durable(tmp_path)
    counts.planned(lambda: np.array([7]), system())
    first = published(counts, 0, system())
    spent = held.spent()
    held.close()
    for _ in range(2):
        counts, held = durable(tmp_path)
        assert held.spent() == spent == EPSILON
        assert counts.planned(lambda: np.array([8]), system()).tolist() == [7]
        np.testing.assert_array_equal(published(counts, 5, system()), first)
        assert len(held.drawn) == 2
        held.close()
    with pytest.raises(InvalidInput, match="something else"):
        durable(tmp_path, ticks=2)


def test_the_release_is_kept_before_it_is_seen(
    bare: list[tuple[list[int], float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where keeping it fails nothing is published, and the cells are still there."""
    held = pure()
    counts = fresh(ledger=held)
    counts.open([1, 1])
    counts.add([1], [1])
    with monkeypatch.context() as patch:
        patch.setattr(held._kept, "once", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(OSError, match="full"):
            counts.release(secret())
    assert counts.number == 0
    assert counts.release(secret()).tolist() == [0.0, 1.0]


def test_forgotten_cells_are_wiped_out() -> None:
    counts = fresh()
    counts.open([1, 1, 1])
    counts.add([0, 2], [1, 1])
    cells = counts._lots[0]
    counts.forget()
    assert not cells.any()
    assert counts.exact().shape == (0,)
    with pytest.raises(IndexError):
        counts.add([0], [1])


# What is charged.


def test_one_charge_for_all_counts_and_the_event_is_what_was_asked() -> None:
    held = pure()
    counts = fresh(ledger=held)
    assert counts.event == Laplace(EPSILON)
    for _ in range(3):
        published(counts, 0, secret())
        counts.forget()
    assert [charge.event for charge in held.charges] == [Laplace(EPSILON)]
    assert held.spent() == EPSILON
    with pytest.raises(InvalidInput, match="in use"):
        fresh(ledger=held)
    with pytest.raises(OverBudget):
        PrivateCounts(cost=Laplace(EPSILON), ticks=1, ledger=held, name="more")


@pytest.mark.parametrize(("sensitivity", "ticks"), [(1, 1), (2, 1), (1, 1024), (LARGEST_SENSITIVITY, 3)])
@pytest.mark.parametrize("epsilon", [0.1, EPSILON, 1.0, 3.0])
def test_scales_are_the_least_that_pay(sensitivity: int, ticks: int, epsilon: float) -> None:
    scale = fresh(ticks, epsilon=epsilon).scale(sensitivity)
    assert Fraction(sensitivity * ticks) <= Fraction(scale) * Fraction(epsilon)
    assert Fraction(sensitivity * ticks) > Fraction(math.nextafter(scale, 0.0)) * Fraction(epsilon)


def test_seeded_noise_serves_nobody(tmp_path: Path) -> None:
    counts, held = durable(tmp_path)
    with pytest.raises(InvalidInput, match="seeded randomness protects no one"):
        published(counts, 0, secret())
    assert held.drawn == ()
    held.close()
    simulated = pure()
    published(fresh(ledger=simulated), 0, secret())
    assert not simulated.guarantee().secure_rng
    with pytest.raises(InvalidInput, match="SecretRandomness"):
        published(fresh(), 0, PublicSource(SystemSource()))  # type: ignore[arg-type]


# At the door, and back from a snapshot.


@pytest.mark.parametrize(
    "sensitivity", [[0], [-1], [LARGEST_SENSITIVITY + 1], [1.0], [[1]], 1, [], ["1"], [True, False]], ids=repr
)
def test_distances_that_cannot_be_are_refused(sensitivity: Any) -> None:
    with pytest.raises(InvalidInput, match="sensitivity must be whole numbers from 1 to 1024, one per cell"):
        fresh().open(sensitivity)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"cost": Gaussian(0.5)}, "cost must be a Laplace event"),
        ({"cost": Laplace(0.0)}, "cost must be a Laplace event"),
        ({"ledger": None}, "paid for on a Ledger"),
        ({"ticks": 0}, "ticks"),
        ({"ticks": 1.5}, "ticks"),
    ],
    ids=repr,
)
def test_what_counts_are_made_of_is_checked_before_anything_is_charged(
    wrong: dict[str, Any], message: str
) -> None:
    held = pure()
    made: dict[str, Any] = {"cost": Laplace(EPSILON), "ticks": 1, "ledger": held} | wrong
    with pytest.raises(InvalidInput, match=message):
        PrivateCounts(**made)
    assert held.charges == []


def test_cells_come_back_from_a_snapshot() -> None:
    counts = fresh(ticks=4)
    counts.open([1])
    counts.forget()
    counts.open([1, 2, 2])
    counts.add([0, 0, 2], [4, 4, 3])
    arrays = counts.arrays()
    again = fresh(ticks=4)
    again.open([1, 2, 2])
    again.take(arrays)
    assert again.number == 1
    assert again.exact().tolist() == [2.0, 0.0, 0.75]
    counts.add([1], [1])
    assert arrays["cells"].tolist() == [8, 0, 3], "a snapshot does not change any more"


def test_exact_counts_are_clipped_and_published_as_they_are() -> None:
    """They keep no books, and say what noise would cost."""
    counts, private = ExactCounts(cost=Laplace(EPSILON), ticks=4), fresh(ticks=4)
    for each in (counts, private):
        each.open([1, 2, 2])
        each.add([0, 0, 2], [4, 9, 3])
        each.add_one(1, -3)
    assert counts.release(secret()).tolist() == [2.0, 0.0, 0.75] == private.exact().tolist()
    assert not counts.noisy
    assert private.noisy
    assert counts.scale(2) == private.scale(2)
    plan = np.array([3, 1])
    assert counts.planned(lambda: plan, secret()) is plan
    with pytest.raises(InvalidInput, match="cost must be a Laplace event"):
        ExactCounts(cost=Laplace(0.0), ticks=4)
