"""Running sums by type: what is in them, what makes way, what late answers and crashes do, what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import diminuendo as dim
from diminuendo import SeededCoins
from diminuendo.errors import InvalidInput
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness import SecretRandomness
from diminuendo.randomness import rounded_normal as normal
from diminuendo.streams.walks import GainWalk, one_person
from diminuendo.sums.chains.cells import SharedFocus, ValueColumn
from diminuendo.sums.chains.focus import FULL, SHARES
from diminuendo.sums.chains.running import NO_ITEM, Question
from diminuendo.sums.chains.running_by_type import Drawn, GainsOfEach, RunningByType
from diminuendo.sums.chains.weights import running_weights
from diminuendo.sums.clip import Clip
from diminuendo.sums.schedule import Schedule
from diminuendo.types import Floats, Ints

TWELVE = Schedule(tuple(range(10, 130, 10)))
OFTEN = running_weights(TWELVE, 11, Clip()).often
LARGE = Budget(1e9, 0.5, accountant="continuous-gaussian")
SECRET = SecretRandomness(SeededCoins(1))
# Two columns, of two values and of one; four types that are known in one, in both or in none.
COLUMNS = (ValueColumn(2, np.array([-1, 0, 1, 0])), ValueColumn(1, np.array([-1, -1, 0, 0])))


def made(
    n_items: int, longest: int, columns: Any = COLUMNS, ledger: Ledger | None = None, **more: Any
) -> RunningByType:
    settings: dict[str, Any] = {"counted": True, "schedule": TWELVE, "ledger": ledger or Ledger(LARGE)}
    weights = running_weights(TWELVE, 11, Clip())
    return RunningByType(n_items, longest, columns, weights=weights, **(settings | more))


def focus(n_items: int, columns: int = 2) -> SharedFocus:
    each = (SHARES // 8,) * columns
    return SharedFocus(np.full(n_items, FULL), SHARES // 4, SHARES // 4, each, each)


def released(sums: RunningByType, number: int, columns: int = 2, shares: SharedFocus | None = None) -> Drawn:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(normal, "rounded_normal", lambda values, sigma, secret: values.copy())  # without noise
        return sums.release(number, (1e9, 1e9), shares or focus(sums.n_items, columns), SECRET)


def wanting(items: list[int], n_items: int) -> tuple[Floats, GainsOfEach]:
    """Somebody who is content with any of these, and how she is asked on."""
    person = dim.person(dim.NoisyOr(), dict.fromkeys(items, 1.0), n_items=n_items)
    worth = np.zeros(n_items)
    worth[items] = 1.0
    return worth, lambda starts, entries: GainWalk(n_items, [one_person(person)], starts, entries).after


def by_hand(wishes: list[int], chain: list[int], longest: int) -> dict[Question, dict[int, int]]:
    """What she adds to each question of her chain, in ticks: she loses all by the first item that she wants."""
    left = dict.fromkeys(wishes, math.isqrt(1024**2 // len(wishes)))
    found = dict[Question, dict[int, int]]()
    for step, item in enumerate(chain):
        found[Question(item, tuple(sorted(chain[:step])))] = left if item in wishes else {}
        left = {} if item in wishes else left
    if len(chain) == longest:
        found[Question(NO_ITEM, tuple(sorted(chain)))] = left
    return found


def table(*chains: list[int], longest: int) -> Ints:
    return np.array([[*chain, *[NO_ITEM] * (longest - len(chain))] for chain in chains])


def test_sums_are_what_people_said_along_the_chains_of_their_types() -> None:
    """Person by person, by hand: singles, cells, counts and every question; some of them come late."""
    n, longest, random = 6, 2, np.random.default_rng(3)
    chains: list[list[list[int]]] = [
        [[], [], [], []],
        [[0, 1], [0, 1], [1, 0], [2]],
        [[0, 3], [1, 2], [1, 0], [1, 0]],
        [[4, 0], [1, 2], [1, 0], [3, 1]],
    ]
    sums, late = made(n, longest), list[tuple[list[int], int, int]]()
    said = list[tuple[list[int], int, int]]()
    for batch, each in enumerate(chains):
        sums.ask(table(*each, longest=longest), batch=batch)
        for number in range(9):
            wishes = sorted(random.choice(n, size=random.integers(1, 4), replace=False).tolist())
            person = wishes, int(random.integers(4)), batch
            (late if number % 3 == 0 else said).append(person)
            if number % 3:
                worth, walk = wanting(wishes, n)
                sums.add(worth, walk, batch=batch, kind=person[1])
        released(sums, batch)
        for wishes, kind, of_batch in late[: 2 * batch]:
            worth, walk = wanting(wishes, n)
            sums.add(worth, walk, batch=of_batch, kind=kind)
            said.append((wishes, kind, of_batch))
        late = late[2 * batch :]
    sums.ask(table([0], [0], [0], [0], longest=longest), batch=4)
    found = released(sums, 4)
    singles, cells = np.zeros(n), [np.zeros((2, n)), np.zeros((1, n))]
    counts, questions = [np.zeros(2), np.zeros(1)], {question: np.zeros(n) for question in found.questions}
    for wishes, kind, batch in said:
        each_tick = math.isqrt(1024**2 // len(wishes)) * OFTEN[batch]
        singles[wishes] += each_tick
        for column, (_, of_type) in enumerate(COLUMNS):
            if of_type[kind] >= 0:
                cells[column][of_type[kind], wishes] += each_tick
                counts[column][of_type[kind]] += 1024 * OFTEN[batch]
        for question, parts in by_hand(wishes, chains[batch][kind], longest).items():
            for item, ticks in parts.items():
                questions[question][item] += ticks * OFTEN[batch]
    np.testing.assert_array_equal(found.singles, singles)
    for column in range(2):
        np.testing.assert_array_equal(found.cells[column], cells[column])
        np.testing.assert_array_equal(found.counts[column], counts[column])
    for question, expected in questions.items():
        np.testing.assert_array_equal(found.questions[question], expected, str(question))
    asked = {question for each in chains for chain in each for question in by_hand([0], chain, longest)} | {
        Question(0, ())
    }
    assert set(questions) == asked, "all of them are published, and each once"
    assert sum(bool(row.any()) for row in questions.values()) >= 10


def test_units_are_those_of_the_types_that_were_asked() -> None:
    sums = made(5, 2)
    chains = ([[0, 1]] * 4, [[0, 1], [0, 2], [1, 0], [1, 0]])
    people = (np.array([1.0, 2.0, 3.0, 4.0]), np.array([5.0, 0.5, 2.0, 2.5]))
    for batch, each in enumerate(chains):
        sums.ask(table(*each, longest=2), batch=batch, weights=np.array([FULL, FULL, FULL, FULL, 64]))
        found = released(sums, batch)
    since = np.array([0, 0, 0, 1, 0])
    questions = [
        Question(0, ()),
        Question(1, ()),
        Question(1, (0,)),
        Question(0, (1,)),
        Question(NO_ITEM, (0, 1)),
    ]
    assert set(questions) < set(found.questions)
    whole, each_units = sums.units(questions, people.__getitem__, np.full(12, 10.0), since)
    first, second = 1024.0 * OFTEN[0], 1024.0 * OFTEN[1]
    expected = [(10, 5.5), (0, 4.5), (10, 5), (0, 4.5), (10, 9.5)]
    for (before, now), units in zip(expected, each_units, strict=True):
        np.testing.assert_allclose(units[0], before * first + now * second)
        np.testing.assert_allclose(units[3], now * second, err_msg="that item came later")
        np.testing.assert_allclose(units[4], units[0] / 4, err_msg="out of focus")
    np.testing.assert_allclose(whole[0], 10 * (first + second))


@pytest.mark.parametrize("seed", range(4))
def test_rows_and_rest_of_anybody_add_up_to_her_singles(seed: int) -> None:
    """Whatever she says, also of types whose chains end before."""
    random, sums = np.random.default_rng(seed), made(6, 3)
    sums.ask(table([3, 0, 5], [3, 0], [], [1, 2, 4], longest=3), batch=0)
    anything = [-1.0, 0.0, 0.1, 0.4, 1.0, 7.0, np.nan, np.inf, -np.inf]
    for number in range(10):
        kind = int(random.choice([0, 3])) if number < 9 else 1
        sums.add(
            random.choice(anything, size=6),
            lambda starts, items: lambda joined: random.choice(anything, size=len(items)),
            batch=0,
            kind=kind,
        )
        rows, asked, _ = sums._apart[0]
        assert (rows >= 0).all()
        assert (asked >= 0).all()
        if kind != 1:
            np.testing.assert_array_equal(asked.sum(axis=0), rows[0])
    assert (asked.sum(axis=0) <= rows[0]).all()


def test_old_questions_make_way_and_take_no_late_answers() -> None:
    """Of one type: there is room for two rows and two rests."""
    sums = made(9, 1, columns=[ValueColumn(1, np.array([0]))])
    for batch, item in enumerate((0, 1, 2, 0)):
        sums.ask(np.array([[item]]), batch=batch)
        found = released(sums, batch, columns=1)
    assert set(found.questions) == {
        Question(a, b) for item in (2, 0) for a, b in ((item, ()), (NO_ITEM, (item,)))
    }
    worth, walk = wanting([0], 9)
    for batch in (0, 1):
        sums.add(worth, walk, batch=batch, kind=0)
    assert not sums._sums.asked.any(), "what batch 0 said of item 0 had made way, and is begun anew since"
    assert sums._sums.rows[0, 0] == 1024 * (OFTEN[0] + OFTEN[1])
    sums.add(worth, walk, batch=3, kind=0)
    assert sums._sums.asked.sum() == 1024 * OFTEN[3]


def test_when_memory_begins_anew_the_open_batch_stays_and_nobody_else() -> None:
    sums = made(4, 1)
    (one, walk_one), (other, walk_other) = wanting([0], 4), wanting([1], 4)
    for batch in range(3):
        sums.ask(np.full((4, 1), batch), batch=batch)
    sums.add(one, walk_one, batch=0, kind=1)
    released(sums, 0)
    sums.add(other, walk_other, batch=1, kind=2)
    sums.add(other, walk_other, batch=2, kind=2)
    sums.forget()
    sums.add(one, walk_one, batch=0, kind=1)
    found = released(sums, 1)
    expected = np.array([0, 1024 * OFTEN[1], 0, 0])
    np.testing.assert_array_equal(found.singles, expected)
    np.testing.assert_array_equal(found.cells[0], [np.zeros(4), expected])
    np.testing.assert_array_equal(found.counts[0], [0, 1024 * OFTEN[1]])
    assert set(found.questions) == {Question(1, ()), Question(NO_ITEM, (1,))}
    np.testing.assert_array_equal(released(sums, 2).singles[1], 1024 * (OFTEN[1] + OFTEN[2]))


def test_what_was_drawn_before_a_crash_is_published_again(tmp_path: Path) -> None:
    """With the shares it was drawn with; questions that are others now are left out."""
    secret = SecretRandomness(dim.SystemCoins())
    with Ledger.open(tmp_path / "ledger", LARGE) as ledger:
        sums = made(4, 1, ledger=ledger)
        sums.ask(table([2], [2], [2], [0], longest=1), batch=0)
        before = sums.release(0, (1e9, 1e9), focus(4), secret)
    with Ledger.open(tmp_path / "ledger") as ledger:
        sums = made(4, 1, ledger=ledger)
        sums.ask(table([2], [2], [3], [3], longest=1), batch=0)
        worth, walk = wanting([2], 4)
        sums.add(worth, walk, batch=0, kind=1)
        other = focus(4)._replace(singles=SHARES // 2, others=1)
        after = sums.release(0, (1e9, 1e9), other._replace(cells=(1, 1), counts=(1, 1)), secret)
        assert len(ledger.charges) == 1
    assert after.deviations == before.deviations
    np.testing.assert_array_equal(after.singles, before.singles)
    for column in range(2):
        np.testing.assert_array_equal(after.cells[column], before.cells[column])
        np.testing.assert_array_equal(after.counts[column], before.counts[column])
    assert set(after.questions) == {Question(2, ()), Question(NO_ITEM, (2,))}
    for question, row in after.questions.items():
        np.testing.assert_array_equal(row, before.questions[question])


def test_public_contexts_are_not_counted_and_columns_without_a_share_are_not_published() -> None:
    sums = made(4, 1, counted=False)
    worth, walk = wanting([2], 4)
    sums.add(worth, walk, batch=0, kind=2)
    shares = focus(4)._replace(cells=(0, 100), counts=(0, 0))
    found = released(sums, 0, shares=shares)
    assert found.cells[0] is None
    assert found.counts == [None, None]
    np.testing.assert_array_equal(found.cells[1], [[0, 0, 1024 * OFTEN[0], 0]])


def test_what_does_not_fit_is_refused() -> None:
    many = [ValueColumn(60_000, np.arange(-1, 60_000))]
    with pytest.raises(InvalidInput, match="60,001 types, chains of 4 items and 300 items"):
        made(300, 4, columns=many)
    sums = made(4, 2)
    for chains in (
        table([1, 1], [], [], [], longest=2),
        table([4], [], [], [], longest=2),
        table([0], longest=2),
    ):
        with pytest.raises(InvalidInput, match="chain"):
            sums.ask(chains, batch=0)
    with pytest.raises(InvalidInput, match="one after the other"):
        sums.ask(np.array([[NO_ITEM, 1]] * 4), batch=0)
    worth, walk = wanting([0], 4)
    with pytest.raises(InvalidInput, match="Types are from 0 to 3"):
        sums.add(worth, walk, batch=0, kind=4)
    sums.add(worth, walk, batch=0, kind=3)
    with pytest.raises(InvalidInput, match="for people to come"):
        sums.ask(table([1], [], [], [], longest=2), batch=0)
    with pytest.raises(InvalidInput, match="share for singles"):
        sums.release(0, (1e9, 1e9), focus(4)._replace(singles=0), SECRET)
