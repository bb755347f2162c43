"""Every expert keeps its contract, and k of any kind make a learner: one file and one entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from diminuendo import Learner, NoisyOr, OrderedExperts, SeededSource, Users
from diminuendo.errors import InvalidInput
from diminuendo.experts import EXPERTS, Expert, Hedge
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.hedge.full import ATTEMPTS
from diminuendo.learners.hedge.ordered import AnyExpertsPolicy
from diminuendo.randomness import SecretRandomness
from diminuendo.streams import taste_groups
from diminuendo.types import Floats
from tests.kit.families import families, specimens
from tests.kit.inside import inside
from tests.kit.statistics import assert_follows, assert_rejects

N_ITEMS, SLOTS = 6, 3
USERS = taste_groups(120, N_ITEMS, groups=2, items_per_group=3, seed=2)


class Follower:
    """Every other word shows the item with the largest total; others, one at random. As simple as an expert can be."""

    def __init__(self, n_items: int) -> None:
        self.n_items = n_items
        self._totals = np.zeros(n_items)

    def draw(self, secret: SecretRandomness) -> int:
        word = int(secret.take(1)[0])
        return int(self._totals.argmax()) if word % 2 else word // 2 % self.n_items

    def learn(self, gains: Floats, drawn: int) -> None:
        row = np.asarray(gains, dtype=np.float64)
        if row.shape != (self.n_items,):
            raise InvalidInput(f"Expected one gain per item, {self.n_items}; got shape {row.shape}.")
        self._totals += np.nan_to_num(row, nan=0.0).clip(0.0, 1.0)

    def state(self) -> tuple[NDArray[Any], ...]:
        return (self._totals,)

    def restored(self) -> None:
        if not (self._totals >= 0).all():
            raise InvalidInput("The snapshot holds totals that could not have come about; it was altered.")


KINDS: dict[str, Callable[[int], Expert]] = dict(EXPERTS) | {"follower": Follower}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def taught(kind: Callable[[int], Expert], rounds: int = 60, seed: int = 1) -> Expert:
    """An expert that was told of item 2 in every round, and of others now and then; answers came in pairs, late."""
    expert, secret = kind(N_ITEMS), SecretRandomness(SeededSource(seed))
    random = np.random.default_rng(seed)
    for _ in range(rounds // 2):
        drawn = [expert.draw(secret) for _ in range(2)]
        for item in reversed(drawn):
            gains = 0.2 * random.random(N_ITEMS)
            gains[2] = 1.0
            expert.learn(gains, item)
    return expert


def draws(expert: Expert, count: int = 400, seed: int = 7) -> list[int]:
    """Draws with rounds between them in which nothing gained anything: some keep their item until they are told."""
    secret, result = SecretRandomness(SeededSource(seed)), []
    for _ in range(count):
        result.append(expert.draw(secret))
        expert.learn(np.zeros(N_ITEMS), result[-1])
    return result


@every_kind
def test_draws_are_items_and_follow_from_secret_words_alone(kind: Callable[[int], Expert]) -> None:
    for expert in (kind(N_ITEMS), taught(kind)):
        assert expert.n_items == N_ITEMS
        assert set(draws(expert)) <= set(range(N_ITEMS))
    assert draws(taught(kind)) == draws(taught(kind))
    assert draws(taught(kind), seed=8) != draws(taught(kind))


@every_kind
def test_what_gains_most_is_drawn_most(kind: Callable[[int], Expert]) -> None:
    before, after = (draws(expert).count(2) for expert in (kind(N_ITEMS), taught(kind, 200)))
    assert after > 200 > before


@every_kind
@pytest.mark.parametrize(
    ("said", "counts"), [(np.nan, 0.0), (np.inf, 1.0), (-np.inf, 0.0), (1e300, 1.0), (-1.0, 0.0)]
)
def test_a_gain_counts_as_the_nearest_in_its_range(
    kind: Callable[[int], Expert], said: float, counts: float
) -> None:
    one, other = taught(kind), taught(kind)
    for expert, gain in ((one, said), (other, counts)):
        expert.learn(np.array([0.5, gain, 1.0, 0.0, 0.25, 0.0]), 1)
    for left, right in zip(one.state(), other.state(), strict=True):
        np.testing.assert_array_equal(left, right)


@every_kind
@pytest.mark.parametrize("shape", [(), (N_ITEMS - 1,), (N_ITEMS + 1,), (1, N_ITEMS)])
def test_one_gain_for_each_item(kind: Callable[[int], Expert], shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInput, match="one gain per item"):
        kind(N_ITEMS).learn(np.zeros(shape), 0)


@every_kind
def test_its_state_is_all_that_it_carries(kind: Callable[[int], Expert]) -> None:
    known, fresh = taught(kind), kind(N_ITEMS)
    for array, kept in zip(fresh.state(), known.state(), strict=True):
        assert (array.shape, array.dtype) == (kept.shape, kept.dtype)
        array[...] = kept
    for expert in (
        fresh,
        known,
    ):  # both: the order in which equals lie may change, and with it which word draws which
        expert.restored()
    assert draws(fresh) == draws(known)
    for expert in (fresh, known):
        expert.learn(np.linspace(0.0, 1.0, N_ITEMS), 3)
    assert draws(fresh) == draws(known)


# As a learner.


def learner_of(kind: str, monkeypatch: pytest.MonkeyPatch, seed: int = 3) -> Learner:
    monkeypatch.setitem(EXPERTS, kind, KINDS[kind])
    return OrderedExperts(N_ITEMS, SLOTS, expert=kind, rng=SeededSource(seed))


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_is_enough_for_a_learner(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looped, replayed = (learner_of(kind, monkeypatch) for _ in range(2))
    slates = replayed.replay(USERS)
    assert all(len(set(slate)) == SLOTS for slate in slates.tolist())
    for t, slate in enumerate(slates):
        decision = looped.choose()
        assert decision.slate == tuple(slate)
        looped.observe(decision, USERS[t])
    one, other = (OrderedExperts.restore(made.snapshot(), rng=SeededSource(5)) for made in (looped, replayed))
    np.testing.assert_array_equal(one.replay(USERS[:20]), other.replay(USERS[:20]))


def asked_one_by_one(n_items: int, slots: int, rate: float | None = None) -> Learner:
    """Hedge experts as experts of any kind are asked: not compiled together."""
    frame = Frame("hedge", n_items, slots, rng=SeededSource(4))
    return Learner(AnyExpertsPolicy(frame, [Hedge(n_items, rate) for _ in range(slots)], {}))


@families
def test_hedge_experts_asked_one_by_one_learn_what_compiled_ones_learn(name: str) -> None:
    """To the last tick, from the same slates; which word draws which item is another matter."""
    for family, n_items, matrices in specimens(name):
        users = Users(family, tuple(np.tile(np.asarray(matrix), (10, 1)) for matrix in matrices), n_items)
        compiled, one_by_one = (
            OrderedExperts(n_items, SLOTS, rng=SeededSource(4)),
            asked_one_by_one(n_items, SLOTS),
        )
        policy = inside(one_by_one)
        for t, row in enumerate(compiled.replay(users)):
            policy._learn(users.table, t, users.family.leaves, row)
        for part, both in enumerate(compiled.policy.state()):
            for slot, own in enumerate(policy.state()):
                np.testing.assert_array_equal(own[part][..., 0], both[..., slot])


def test_hedge_experts_asked_one_by_one_draw_by_the_law_of_compiled_ones() -> None:
    """The second expert, whose law is far from uniform, may not repeat the first one's item."""
    learner = asked_one_by_one(4, 4, rate=0.2)
    learner.replay(Users(NoisyOr(), np.tile([[0.9, 0.1, 0.5, 0.0]], (30, 1))))
    slates = np.array([learner.choose().slate for _ in range(12_000)])
    assert (np.sort(slates, axis=1) == np.arange(4)).all()
    law = inside(learner)._experts[1].probabilities()
    after = slates[slates[:, 0] == 0, 1]
    again = law[0]
    expected = law * sum(again**j for j in range(ATTEMPTS)) + again**ATTEMPTS / 3
    expected[0] = 0.0
    assert_follows(after, expected)
    assert_rejects(after, np.array([0, 1, 1, 1]) / 3)


def test_other_words_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="expert"):
        OrderedExperts(N_ITEMS, SLOTS, expert="hegde")
    monkeypatch.setitem(EXPERTS, "follower", Follower)
    with pytest.raises(InvalidInput, match="'hedge' experts"):
        OrderedExperts(N_ITEMS, SLOTS, expert="follower", rate=0.1)
