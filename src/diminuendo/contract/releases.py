"""What is learned: something is published, early enough to be of use, and a snapshot holds it.

Worlds are made longer, and budgets larger, until what is shown in the midst of a run depends on what users said: then
something was published. A learner that is silent, or publishes at the end alone, never gets there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from diminuendo.contract.case import N_ITEMS, SLOTS, Case
from diminuendo.learners import Learner, Setting
from diminuendo.objectives import NoisyOr
from diminuendo.randomness import SeededSource
from diminuendo.randomness.words import PublicSource, SecretRandomness
from diminuendo.streams.users import Users

LENGTHS = (200, 800, 3200)
"""Rounds of the worlds, one after the other."""
EPSILONS = (1.0, 30.0)
"""A learner that follows no user at first may be too careful for so few users."""
EARLY, DELAY = 0.25, 0.75
"""The midst of a run, as shares of its rounds."""


class World(NamedTuple):
    """A setting, and users to whom other slates are shown in the midst of it than to others, of another taste."""

    setting: Setting
    users: Users
    others: Users


def crowd(rounds: int, first: int) -> Users:
    """Users who want every second item, from the first or from the second on, each a little differently."""
    rng = np.random.default_rng(first)
    wants = rng.random((rounds, N_ITEMS)) * (np.arange(N_ITEMS) % 2 == first)
    return Users(NoisyOr(), (wants,), N_ITEMS)


def world_in_which_it_learns(case: Case) -> World | None:
    """The shortest world in which what is shown, in the midst of it, depends on users; None where there is none."""
    if "world" not in case.shared:
        case.shared["world"] = _look_for_world(case)
    result: World | None = case.shared["world"]
    return result


def _look_for_world(case: Case) -> World | None:
    for rounds in LENGTHS:
        for epsilon in EPSILONS:
            setting = Setting(N_ITEMS, SLOTS, rounds, case.feedback, epsilon)
            crowds = [crowd(rounds, first) for first in (0, 1)]
            midst = slice(int(EARLY * rounds), int(DELAY * rounds))
            one, other = (case.made(setting, SeededSource(3)).replay(users)[midst] for users in crowds)
            if not np.array_equal(one, other):
                return World(setting, *crowds)
    return None


def check_something_is_learned_in_time(case: Case) -> None:
    """What is shown depends on what users said, before a run is nearly over."""
    learner = case.fresh()
    if learner.guarantee.epsilon == 0:
        return  # promises that nothing does
    assert world_in_which_it_learns(case) is not None, (
        f"nothing that {case.kind.name!r} shows before three quarters of a run are over depends on what users said, "
        f"in up to {LENGTHS[-1]:,} rounds and at epsilons up to {EPSILONS[-1]:g}: it releases nothing, or too late"
    )


def check_what_is_restored_goes_on_as_the_learner_would(case: Case) -> None:
    """With the same random words from then on it shows the same slates; one without a menu, only by the same law."""
    result = world_in_which_it_learns(case)
    if result is None or case.fresh().menu is None:
        return
    rounds, half = result.setting.rounds, result.setting.rounds // 2
    learner = case.made(result.setting, SeededSource(3))
    learner.replay(result.users[:half])
    twin = case.kind.restore(learner.snapshot(), rng=SeededSource(9))
    _give_rng(learner, SeededSource(9))
    same = (learner.replay(result.users[half:]) == twin.replay(result.users[half:])).all(axis=1)
    assert same.all(), (
        f"restored from a snapshot after {half} of {rounds} rounds, {case.kind.name!r} shows other slates than the "
        f"learner itself does with the same random words, first in round {half + int(np.argmin(same))}: the snapshot "
        "lacks something"
    )


def check_a_snapshot_holds_what_was_learned(case: Case) -> None:
    """What is shown after restoring depends on who came before."""
    result = world_in_which_it_learns(case)
    if result is None:
        return  # which is said by another check
    rounds, half = result.setting.rounds, result.setting.rounds // 2
    shown = []
    for before in (result.users, result.others):
        learner = case.made(result.setting, SeededSource(3))
        learner.replay(before[:half])
        twin = case.kind.restore(learner.snapshot(), rng=SeededSource(9))
        shown.append(twin.replay(result.users[half:]))
    assert not np.array_equal(shown[0], shown[1]), (
        f"restored from a snapshot after {half} of {rounds} rounds, {case.kind.name!r} shows the same, whatever users "
        "said before: the snapshot does not hold what was learned"
    )


def _give_rng(learner: Learner, rng: SeededSource) -> None:
    """From now on its random words come from these."""
    frame = learner._frame
    frame.rng, frame.public, frame.secret = rng, PublicSource(rng), SecretRandomness(rng)
