"""What is shown: one by one, many at once, and in a replay; the same slates whichever way."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from diminuendo.contract.case import N_ITEMS, SLOTS, USERS, Case, raises
from diminuendo.errors import DiminuendoError, InvalidInput
from diminuendo.learners.base.replay import loop, replay
from diminuendo.objectives import FAMILIES
from diminuendo.randomness.words import SecretRandomness
from diminuendo.streams.synthetic import taste_groups
from diminuendo.streams.users import Functions, Users
from diminuendo.types import Words


def check_slates_are_distinct_items_in_range(case: Case) -> None:
    """Slates hold distinct items that there are, and rounds are counted."""
    learner = case.fresh()
    for t in range(100):
        decision = learner.choose()
        assert decision.round == t
        assert 1 <= len(decision.slate) <= SLOTS
        assert len(set(decision.slate)) == len(decision.slate)
        assert all(0 <= item < N_ITEMS for item in decision.slate)
        learner.observe(decision, case.answer(decision, t))
    assert learner.rounds == 100


def check_extreme_sizes_work(case: Case) -> None:
    """One item, as many slots as items, and many items work too."""
    for n_items, slots in ((1, 1), (2, 2), (5, 5), (300, 1)):
        users = taste_groups(60, n_items, groups=2, items_per_group=min(2, n_items))
        slates = case.fresh(n_items=n_items, slots=slots, rounds=60).replay(users)
        assert slates.shape == (60, slots)
        assert slates.max() < n_items


def check_replay_is_the_loop(case: Case) -> None:
    """A replay shows what the loop shows, for a family that is not that of the other checks."""
    assert_replay_is_the_loop(case, "coverage")


def assert_replay_is_the_loop(case: Case, *families: str) -> None:
    """For users of these families a replay shows what the loop of choose and observe shows."""
    for name in families:
        for specimen, n_items, matrices in FAMILIES[name].specimens():
            many = tuple(np.tile(np.asarray(matrix), (40, 1)) for matrix in matrices)
            users = Users(specimen, many, n_items)
            quick = replay(case.fresh(n_items=n_items, slots=2, rounds=len(users)), users, case.feedback)
            slow = loop(case.fresh(n_items=n_items, slots=2, rounds=len(users)), users, case.feedback)
            np.testing.assert_array_equal(quick, slow, err_msg=repr(specimen))


def check_replay_is_the_loop_on_functions_too(case: Case) -> None:
    """Users who are Python functions are shown what they would be shown as rows, unless the learner reads rows."""
    if case.reads_rows:
        return
    as_functions = Functions([lambda s, t=t: USERS[t].value(sorted(s)) for t in range(40)], N_ITEMS)  # type: ignore[misc]
    np.testing.assert_array_equal(
        replay(case.fresh(), as_functions, case.feedback), replay(case.fresh(), USERS[:40], case.feedback)
    )


def check_the_size_of_the_buffer_does_not_matter(case: Case) -> None:
    """However many random words are fetched at once, slates are the same."""
    slates = case.fresh().replay(USERS)
    for size in (1, 2, 7, 100_000):
        learner = case.fresh()
        learner._frame.public.size = learner._frame.secret.size = size
        np.testing.assert_array_equal(learner.replay(USERS), slates, err_msg=f"buffer of {size} words")


def check_rng_that_fail_for_a_while_lose_nothing(case: Case) -> None:
    """If randomness fails for a while, the learner begins again and shows the same slates."""
    slates, learner = case.fresh().replay(USERS), case.fresh()
    rng, failed = learner._frame.public, 0
    rng.size = 13  # no multiple of what a slate takes, so that words run out in the middle of one

    def failing(count: int, next_words: Callable[[int], Words] = rng._fresh) -> Words:
        nonlocal failed
        failed += 1
        if failed % 3:
            raise OSError("No coins.")
        return next_words(count)

    rng._fresh = failing  # type: ignore[method-assign]
    while learner.rounds < len(USERS):
        try:
            rest = learner.replay(USERS[learner.rounds :])
            np.testing.assert_array_equal(rest, slates[len(slates) - len(rest) :])
        except OSError:
            continue
    assert failed >= 3 or not failed


def check_exact_arithmetic_decides_as_floats_do(case: Case) -> None:
    """Every comparison sent to the slow path: the same slates, word for word."""
    fast, slow = case.fresh(), case.fresh()
    slow._frame.secret = SecretRandomness(slow.rng, size=8, window=1e300)
    few = USERS[:60]
    np.testing.assert_array_equal(slow.replay(few), fast.replay(few))


def check_replay_can_be_cut_anywhere(case: Case) -> None:
    """Two replays, one after the other, are one."""
    whole, parts = case.fresh(), case.fresh()
    first, rest = parts.replay(USERS[:123]), parts.replay(USERS[123:])
    np.testing.assert_array_equal(np.vstack([first, rest]), whole.replay(USERS))
    assert parts.rounds == whole.rounds == len(USERS)
    assert parts.snapshot() == whole.snapshot()


def check_many_at_once_are_as_one_after_the_other(case: Case) -> None:
    """choose_many and observe_many are the loop of choose and observe."""
    one, many = case.fresh(), case.fresh()
    done = 0
    for count in (1, 0, 7, 40, 100):
        singly = [one.choose() for _ in range(count)]
        assert many.choose_many(count) == singly
        answers = [case.answer(decision, done + t) for t, decision in enumerate(singly)]
        for decision, answer in zip(singly, answers, strict=True):
            one.observe(decision, answer)
        many.observe_many(singly, answers)
        assert many.snapshot() == one.snapshot()
        done += count


def check_bad_sizes_are_refused(case: Case) -> None:
    """Sizes that make no sense, and users of other items, are refused."""
    for n_items, slots in ((0, 1), (5, 0), (5, 6), (-3, 1), (2.5, 1), (5, True)):
        with raises(DiminuendoError):
            case.fresh(n_items=n_items, slots=slots)  # type: ignore[arg-type]
    with raises(InvalidInput, match="items"):
        case.fresh(n_items=5).replay(USERS)
