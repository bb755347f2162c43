"""Around a slate: one vector per user, of what items would add and what shown ones keep; charged as a chain is."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diminuendo import Oracle, SystemSource
from diminuendo.errors import InvalidInput, LedgerDamaged
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness import SecretRandomness
from diminuendo.randomness import rounded_normal as normal
from diminuendo.streams.walks import Room, Segment, gains_around, one_user, singletons
from diminuendo.sums.clip import Clip
from diminuendo.sums.greedy_queries.cost import UNIT, cost_of_one, squared_shifts, was_swap
from diminuendo.sums.greedy_queries.participants import EASE
from diminuendo.sums.greedy_queries.query_weights import FULL, QueryWeights
from diminuendo.sums.greedy_queries.release import OtherSequence
from diminuendo.sums.greedy_queries.stored import StoredUsers
from diminuendo.sums.schedule import Schedule
from diminuendo.types import EMPTY_SLOT, Floats
from tests.kit.brute import KINDS, Crowd, Set, tossed_crowds
from tests.kit.stored import HandSwap, UsersByHand
from tests.sums.test_query_weights import CLIPS, FIRST, OTHER, all_query_weights, charged, full, squared
from tests.sums.test_stored import ITEMS, WIDE, secret, stored, vectors

NAME, WEIGHT = "users-000000", 16
LARGE = Clip(bound=1000.0, ticks=1 << 16)
"""Nobody is clipped by it."""


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normal, "rounded_normal", lambda values, sigma, secret: values)


def never() -> Iterator[tuple[int, Floats]]:
    """Nobody is asked again: nothing is taken from this."""
    return (pytest.fail("somebody was asked again") for _ in range(1))


# What users can move.

slates = st.permutations([*range(ITEMS), EMPTY_SLOT]).map(lambda order: list(order[:3]))
hostile_gains = st.lists(vectors, min_size=4, max_size=4)
"""Of one user: what items would add to the slate, and to the slate without each of three."""


@settings(deadline=None, max_examples=250)
@given(
    one=st.tuples(vectors, hostile_gains),
    other=st.tuples(vectors, hostile_gains),
    slate=slates,
    weight=st.integers(0, UNIT),
    clip=st.sampled_from(CLIPS),
    query_weights=all_query_weights,
)
def test_hostile_users_move_an_around_by_no_more_than_is_charged(
    one: Any, other: Any, slate: list[int], weight: int, clip: Clip, query_weights: QueryWeights
) -> None:
    """Whatever they say: not numbers, infinite, negative, gains that rise; a function that says something else each
    time is one of these."""
    result = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(normal, "rounded_normal", lambda values, sigma, secret: values)
        for user, gains in (one, other):
            users = stored(clip=clip)
            users.add(user, np.arange(ITEMS), batch=0)
            release = users.swap(0, [weight], WIDE, slate, query_weights, secret())
            result.append(release.publish([(0, np.array(gains))], secret()))
    for said in result:
        assert said.min() >= 0
        assert (said.astype(object) ** 2).sum() <= (weight * clip.limit) ** 2
    price = weight**2 * cost_of_one(squared_shifts(ITEMS, clip), WIDE)
    assert squared(result[0] - result[1], release.sigma) <= price <= charged(users.ledger, NAME)


def test_two_users_with_other_wishes_move_all_that_is_charged(bare: None) -> None:
    """Within the rounding to ticks: the price of an around is not idle."""
    for weights in (np.full(ITEMS, FULL), np.array([FULL, 1, FULL, 3])):
        result = []
        for item in (0, 2):
            users = stored()
            users.add([1.0], [item], batch=0)
            release = users.swap(0, [UNIT], WIDE, [1, 3], QueryWeights(weights, 512), secret())
            result.append(release.publish([(0, np.ones((3, 1)))], secret()))
        paid = charged(users.ledger, NAME)
        assert (1 - Fraction(1, 10**12)) * paid < squared(result[0] - result[1], release.sigma) <= paid


def test_without_the_clip_of_all_parts_together_an_around_would_say_too_much(
    bare: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody whose gains rise with every item that leaves: her parts are four times as long as her singles."""

    def publish() -> tuple[Fraction, Fraction]:
        result = []
        for gains in (np.array([[0.1], [1.0], [1.0], [1.0]]), np.zeros((4, 1))):
            users = stored()
            users.add([1.0], [3], batch=0)
            release = users.swap(0, [UNIT], WIDE, [0, 1, 2], full(), secret())
            result.append(release.publish([(0, gains)], secret()))
        return squared(result[0] - result[1], release.sigma), charged(users.ledger, NAME)

    moved, paid = publish()
    assert moved <= paid
    monkeypatch.setattr(Clip, "rule", property(lambda clip: (0, 8.0, 1.0, 1024, 8 * 1024, False)))
    moved, paid = publish()
    assert moved > paid


def test_an_around_and_a_chain_under_one_number_would_move_more_than_is_charged(
    bare: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Why a number that was bought as one of the two is never the other."""
    bought = StoredUsers._bought

    def as_one(users: StoredUsers, number: int, weights: Any, sigmas: Any, about: str) -> Any:
        return bought(users, number, weights, sigmas, "users over")

    monkeypatch.setattr(StoredUsers, "_bought", as_one)
    result = []
    for item in (0, 2):
        users = stored()
        users.add([1.0], [item], batch=0)
        swap = users.swap(0, [UNIT], WIDE, [1, 3], full(), secret())
        said = [(swap.publish([(0, np.ones((3, 1)))], secret()), swap.sigma)]
        chain = users.begin_greedy(0, [UNIT], WIDE, full(), secret())
        said += [(chain.singletons(secret()), chain.sigmas[0]), (chain.residual(secret()), chain.sigmas[1])]
        result.append(said)
    moved = sum((squared(a - b, sigma) for (a, sigma), (b, _) in zip(*result, strict=True)), Fraction(0))
    assert len(users.ledger.charges) == 1
    assert moved > Fraction(199, 100) * charged(users.ledger, NAME)


# What it says, against sets tried one by one.


def parts_by_definition(value: Any, n_items: int, slate: Sequence[int]) -> list[list[Fraction]]:
    """R and every D_i of one user, from her value of sets alone."""
    shown = frozenset(item for item in slate if item != EMPTY_SLOT)

    def adds(item: int, to: Set) -> Fraction:
        return Fraction(value(to | {item}) - value(to))

    result = [[Fraction(0) if a in shown else adds(a, shown) for a in range(n_items)]]
    for kept in slate:
        others, row = shown - {kept}, []
        for a in range(n_items):
            if a not in shown:
                row.append(adds(a, others) - adds(a, shown))
            else:
                row.append(adds(a, others) if a == kept else Fraction(0))
        result.append(row)
    return result


def users_of(crowd: Crowd) -> list[Segment]:
    users = crowd.users()
    return [Segment(users.family, users.table, list(range(len(users))))]


def functions_of(crowd: Crowd) -> list[Segment]:
    """The same users as Python functions, one by one."""

    def value(user: int, chosen: Set) -> float:
        return float(crowd.value(user, chosen))

    return [one_user(Oracle(partial(value, user), crowd.n_items)) for user in range(len(crowd))]


def release_of(crowd: Crowd, slate: Sequence[int], clip: Clip, query_weights: QueryWeights) -> HandSwap:
    """Everybody of a crowd, in one batch."""
    users = UsersByHand(
        crowd.n_items,
        schedule=Schedule((len(crowd), len(crowd) + 1)),
        ledger=Ledger(Budget(1.0, 1e-6)),
        clip=clip,
    )
    users.add_rows(singletons(users_of(crowd)[0], crowd.n_items), batch=0)
    return users.swap(0, [WEIGHT], WIDE, slate, query_weights, secret())


def asked(crowd: Crowd, release: HandSwap, segments: list[Segment]) -> Iterator[tuple[int, Floats]]:
    return gains_around(
        Room(crowd.n_items), segments, release.users.starts, release.users.items, release.slate.tolist()
    )


def slates_of(n_items: int) -> Iterator[tuple[int, ...]]:
    """Some of every kind: empty, short, in any order, with empty slots."""
    yield from [
        (),
        (2,),
        (0, 3),
        (3, 0),
        (4, 1, 2),
        (EMPTY_SLOT, 5, 0),
        (1, EMPTY_SLOT),
        tuple(range(n_items)),
    ]


KINDS_HERE = [
    pytest.param(kind, marks=[] if kind in ("noisy-or", "best-match", "coverage") else pytest.mark.slow)
    for kind in KINDS
]


@pytest.mark.parametrize("kind", KINDS_HERE)
def test_an_around_says_what_items_add_and_what_shown_ones_keep(bare: None, kind: str) -> None:
    """Every number, against sets tried one by one, in any focus: each of them is off by the rounding to ticks alone."""
    crowds = itertools.islice(tossed_crowds(kind), 6)
    some = 0
    for number, crowd in enumerate(crowds):
        weights = np.full(6, FULL) if number % 2 else np.array([FULL, 17, 128, 200, 1, 64])
        for slate in slates_of(6):
            release = release_of(crowd, slate, LARGE, QueryWeights(weights, 512))
            result = release.publish(asked(crowd, release, users_of(crowd)), secret())
            expected = np.zeros((len(slate) + 1, 6))
            for user in range(len(crowd)):
                value = partial(crowd.value, user)
                parts = parts_by_definition(value, 6, slate)
                expected += np.array([[float(max(Fraction(0), part)) for part in row] for row in parts])
            expected *= WEIGHT * LARGE.ticks * weights / FULL
            assert (np.abs(result - expected) <= WEIGHT * len(crowd) * 1.01).all(), (slate, result, expected)
            some += int((expected[1:] > 0).sum())
    assert some > 50, "shown items keep something"


@pytest.mark.parametrize("kind", ["noisy-or", "best-match", "coverage"])
def test_all_parts_together_are_no_more_than_the_item_by_itself(kind: str) -> None:
    """For these families an around clips nobody more than singles do."""
    for crowd in itertools.islice(tossed_crowds(kind), 8):
        for user, slate in itertools.product(range(len(crowd)), slates_of(6)):
            parts = parts_by_definition(partial(crowd.value, user), 6, slate)
            for a in range(6):
                assert all(row[a] >= 0 for row in parts)
                assert sum((row[a] for row in parts), Fraction(0)) <= crowd.value(user, {a})


def test_without_gains_that_fall_by_less_and_less_parts_can_be_more() -> None:
    """Why it says `for these families`: two of three is enough, and any one of two shown items keeps it all."""
    parts = parts_by_definition(lambda chosen: min(2, len(chosen)), 3, (0, 1))
    assert sum(row[2] for row in parts) == 2 > 1


@pytest.mark.parametrize("kind", KINDS_HERE)
def test_python_functions_say_around_a_slate_what_compiled_users_say(kind: str) -> None:
    for crowd in itertools.islice(tossed_crowds(kind), 3):
        for slate in slates_of(6):
            release = release_of(crowd, slate, LARGE, full(6))
            ((first, compiled),) = asked(crowd, release, users_of(crowd))
            said = list(asked(crowd, release, functions_of(crowd)))
            assert first == 0
            assert [first for first, _ in said] == list(range(len(crowd)))
            counts = np.array(
                [
                    [item == left or item not in slate for item in release.users.items]
                    for left in (None, *slate)
                ]
            )  # what an item that is there would add again is not looked at
            result = np.hstack([gains for _, gains in said])
            np.testing.assert_allclose(result[counts], compiled[counts], atol=1e-12)


def test_whoever_raises_or_says_nonsense_around_a_slate_has_said_nothing(bare: None) -> None:
    def broken(chosen: Any) -> Floats:
        raise RuntimeError("she likes item 7")

    crowd = next(tossed_crowds("noisy-or", n_items=4, n_users=3))
    release = release_of(crowd, [0, 1], Clip(), full())
    mute = [Segment(None, None, function=broken), Segment(None, None, function=lambda chosen: np.ones(3))]
    first, *_ = functions_of(crowd)
    result = release.publish(asked(crowd, release, [first, *mute]), secret())
    alone = release_of(crowd, [0, 1], Clip(), full())
    only = [(0, next(iter(asked(crowd, alone, functions_of(crowd))))[1])]
    np.testing.assert_array_equal(result, alone.publish(only, secret()))


def test_a_slate_that_serves_her_well_does_not_make_her_count_less(bare: None) -> None:
    """She is first scaled by what she wants, not by what is left of it: she counts alike around any slate."""
    result = []
    for slate in ([1], [2]):
        users = stored()
        users.add([1.0] * ITEMS, batch=0)
        release = users.swap(0, [1], WIDE, slate, full(), secret())
        gains = np.array([[1.0, 0.0, 1.0, 0.0] if slate == [2] else [0.1, 0.0, 0.0, 0.0]] * 2)
        result.append(int(release.publish([(0, gains)], secret())[0, 0]))
    assert result == [int(1024 * EASE / 2 * 0.1), int(1024 * EASE / 2)]


def test_weights_of_batches_and_empty_slots_count(bare: None) -> None:
    users = stored(n_items=2)
    users.add([1.0, 0.0], batch=0)
    users.add([1.0, 0.0], batch=1)
    users.add([1.0, 0.0], batch=2)
    release = users.swap(0, [2, 30], WIDE, [EMPTY_SLOT, 1], full(2), secret())
    gains = np.array([[0.5] * 3, [0.5] * 3, [0.75] * 3])
    assert release.publish([(0, gains)], secret()).tolist() == [[512 * 32, 0], [0, 0], [256 * 32, 0]]
    nobody = stored(n_items=2).swap(0, [2], WIDE, [EMPTY_SLOT, EMPTY_SLOT], full(2), secret())
    assert not nobody.publish([], secret()).any()


# Once, and as it was drawn.


def opened(path: Path) -> UsersByHand:
    """As after a crash: the same users, on the ledger of the file."""
    users = stored(ledger=Ledger.open(path / "ledger", Budget(1.0, 1e-6)))
    users.add([0.5, 0.2, 0.1, 0.0], batch=0)
    return users


def test_after_a_crash_an_around_is_what_was_drawn(tmp_path: Path) -> None:
    """Nobody is asked again; around another slate nothing is drawn."""
    source = SecretRandomness(SystemSource())
    users = opened(tmp_path)
    before = users.swap(0, [UNIT], WIDE, [0, 1], FIRST, source)
    drawn = before.publish([(0, np.full((3, 3), 0.1))], source)
    spent = users.ledger.spent()
    users.ledger.close()
    users = opened(tmp_path)
    again = users.swap(0, [UNIT], WIDE, [0, 1], OTHER, source)
    np.testing.assert_array_equal(again.publish(never(), source), drawn)
    np.testing.assert_array_equal(again.factors, FIRST.factors)
    assert again.sigma == before.sigma
    assert users.ledger.spent() == spent
    for slate in ([1, 0], [0, 2], [0, EMPTY_SLOT]):
        with pytest.raises(OtherSequence, match="another slate"):
            users.swap(0, [UNIT], WIDE, slate, FIRST, source).publish(never(), source)
    users.ledger.close()
    for kept in (tmp_path / "ledger.releases").glob("*around*"):
        kept.unlink()
    users = opened(tmp_path)
    with pytest.raises(LedgerDamaged, match="not drawn again"):
        users.swap(0, [UNIT], WIDE, [0, 1], FIRST, source).publish(never(), source)
    users.ledger.close()


def test_the_ledger_says_in_public_what_was_asked(tmp_path: Path) -> None:
    users = stored()
    users.swap(0, [UNIT], WIDE, [0, 1], full(), secret())
    users.begin_greedy(1, [UNIT], WIDE, full(), secret())
    result = [was_swap(users.ledger, users.name, number) for number in range(3)]
    assert result == [True, False, None]
    assert users.ledger.about(NAME) == "around 2 of 4 items"
    assert len({charge.event.squares for charge in users.ledger.charges}) == 1, "at the price of a chain"  # type: ignore[union-attr]


def test_who_answers_after_it_was_begun_is_not_in_it(bare: None) -> None:
    users = stored()
    users.add([0.5], [0], batch=0)
    release = users.swap(0, [1], WIDE, [1], full(), secret())
    users.add([1.0], [0], batch=0)
    users.add_rows(np.ones((1, ITEMS)), batch=0)
    assert release.publish([(0, np.full((2, 1), 0.5))], secret())[0].tolist() == [512, 0, 0, 0]
    with pytest.raises(InvalidInput, match="entries of 1 users, and 0"):
        next(gains_around(Room(ITEMS), [], release.users.starts, release.users.items, [1]))


@pytest.mark.parametrize("slate", [[0, 0], [ITEMS], [-2], [0, EMPTY_SLOT, 0]])
def test_a_slate_that_is_none_is_refused_before_anything_is_paid(slate: list[int]) -> None:
    users = stored()
    with pytest.raises(InvalidInput, match="slate"):
        users.swap(0, [1], WIDE, slate, full(), secret())
    assert not users.ledger.charges
