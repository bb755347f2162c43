"""A public sample: the coin falls before anybody speaks, and who is outside changes nothing but what she is shown."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import diminuendo as dim
from diminuendo.errors import InvalidInput
from diminuendo.learners import Learner, Setting
from diminuendo.learners.base.contribution_bound import hashed
from diminuendo.learners.base.feedback_window import feedback_window_in, rounds_late
from diminuendo.learners.base.replay import as_delay, loop, replay
from diminuendo.learners.remote_rounds import RemoteRounds
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.public_sample import PublicSample
from diminuendo.randomness.words import PublicSource
from diminuendo.streams import Users, taste_groups
from diminuendo.types import NEVER, OUTSIDE, Decision
from tests.kit.statistics import ALPHA

WORLD = Setting(6, 2, 400, "full", 4.0)
LEARNERS_OF = ("overlap-greedy", "epoch-greedy")


def some_users(n_items: int, many: int, seed: int) -> Users:
    return taste_groups(many, n_items, groups=3, items_per_group=3, seed=seed)


def made(name: str = "overlap-greedy", sample: int = 4, seed: int = 3, **more: Any) -> Learner:
    return dim.make(name, WORLD, rng=dim.SeededSource(seed), sample=sample, **more)


def test_one_user_in_m_is_sampled_however_rounds_are_requested() -> None:
    sample = PublicSample(5, PublicSource(dim.SeededSource(1)))
    whole = sample.heads(0, 20_000)
    parts = np.concatenate([sample.heads(first, 7) for first in range(0, 2002, 7)])
    assert (parts == whole[: len(parts)]).all()
    assert (sample.heads(19_993, 7) == whole[-7:]).all()
    other = PublicSample(5, PublicSource(dim.SeededSource(2))).heads(0, 20_000)
    for result in (whole, other):  # Hoeffding, at the one false-alarm rate of all tests
        assert abs(result.mean() - 0.2) < math.sqrt(math.log(2 / ALPHA) / (2 * len(result)))
    assert abs((whole & other).mean() - 0.04) < math.sqrt(math.log(2 / ALPHA) / (2 * len(whole)))


@pytest.mark.parametrize("name", LEARNERS_OF)
@pytest.mark.parametrize("delay", [None, "0", "exponential:30"])
def test_a_replay_shows_what_the_loop_shows(name: str, delay: str | None) -> None:
    users, more = some_users(6, 400, seed=1), dict[str, Any]()
    drawn = None
    if delay is not None:
        law = as_delay(delay, 0.8)
        more["feedback_window"], drawn = feedback_window_in(law.feedback_window, 4), law.drawn(400, 7)
    whole, one_by_one = made(name, **more), made(name, **more)
    assert (replay(whole, users, delay=drawn) == loop(one_by_one, users, delay=drawn)).all()
    assert whole.rounds == one_by_one.rounds == min(100, int(_heads(whole, 400).sum()))
    assert whole.due() == one_by_one.due()


@pytest.mark.parametrize("contexts", [dim.Contexts(group=3), dim.Contexts(group=3, private=True)])
def test_a_replay_with_contexts_names_and_exclusions_is_the_loop(contexts: dim.Contexts) -> None:
    users = some_users(6, 400, seed=1)
    rng = np.random.default_rng(4)
    known = rng.integers(-1, 3, (400, 1))
    names, excluded = rng.integers(0, 150, 400), [rng.choice(6, 1).tolist() for _ in range(400)]
    both = [made(contexts=contexts, max_rounds_per_user=2, exclusions=True) for _ in range(2)]
    slates = [
        play(each, users, user_ids=names, contexts=known, exclude=excluded)
        for play, each in zip((replay, loop), both, strict=True)
    ]
    assert (slates[0] == slates[1]).all()
    one, other = (each.policy.frame for each in both)
    assert one.silent == other.silent != []
    assert one.extra().keys() == other.extra().keys()
    assert all((one.extra()[name] == other.extra()[name]).all() for name in one.extra()), (
        "with the same visits"
    )
    assert (one.rounds, one.decisions.outside) == (other.rounds, other.decisions.outside)


def _heads(learner: Learner, users: int) -> Any:
    frame = learner.policy.frame
    assert frame.sample is not None
    return frame.sample.heads(0, users)


def test_who_is_outside_has_no_round_no_visit_and_changes_nothing() -> None:
    learner, users = made(sample=3, max_rounds_per_user=2), some_users(6, 400, seed=1)
    heads, outside = _heads(learner, 90), 0
    for t in range(90):
        rounds = learner.rounds
        decision = learner.choose("ada" if t % 2 else f"somebody {t}")
        if heads[t]:
            assert decision.round == rounds == learner.rounds - 1
            learner.observe(decision, users[t])
            continue
        outside += 1
        assert decision.round == OUTSIDE
        assert learner.rounds == rounds
        shown = learner.snapshot()
        said = Decision.from_json(decision.to_json())
        for answer in (said, decision, decision.id):
            learner.observe(answer, users[t])
        assert learner.snapshot() == shown, "whatever she says"
    assert outside > 40
    limit = learner.policy.frame.contribution_bound
    assert limit is not None
    hers = [t for t in range(90) if t % 2 and heads[t]]
    assert limit._rounds[hashed("ada")] == len(hers) > 2
    frame = learner.policy.frame
    rounds_of = np.cumsum(heads) - 1
    assert frame.silent == [int(rounds_of[t]) for t in hers[2:]], "her first two rounds of the sample count"


def test_batches_divisors_and_memory_are_those_of_the_sample() -> None:
    learner, users = made(sample=4), some_users(6, 400, seed=1)
    replay(learner, users)
    policy: Any = learner.policy
    assert policy.plan.schedule.rounds == learner.horizon == 100
    assert len(policy._memory) == learner.rounds
    assert policy._memory.users.blocks[0].table is not users.table, "no table that others are in is kept"
    alone = dim.make("overlap-greedy", Setting(6, 2, 100, "full", 4.0))
    assert policy.plan.schedule == alone.policy.plan.schedule  # type: ignore[attr-defined]
    assert learner.guarantee.epsilon == alone.guarantee.epsilon, "a public coin makes nothing more private"


def test_once_the_sample_has_its_rounds_all_others_are_outside_and_no_more_come_than_was_said() -> None:
    result = []
    for seed in range(12):
        learner = made(seed=seed)
        shown = learner.choose_many(400)
        assert learner.rounds == min(100, int(_heads(learner, 400).sum()))
        result.append(learner.rounds)
        assert sum(decision.round != OUTSIDE for decision in shown) == learner.rounds
        with pytest.raises(InvalidInput, match="made for 400 rounds, and 400 are over"):
            learner.choose()
    assert 100 in result
    assert min(result) < 100


def test_choosing_many_is_choosing_one_after_the_other_and_goes_on_after_a_snapshot() -> None:
    one, many = made(), made()
    assert [one.choose() for _ in range(90)] == many.choose_many(90)
    again = dim.restore(one.snapshot(), rng=dim.SeededSource(8))
    assert (again.sample, again.rounds, again.horizon) == (4, one.rounds, 100)
    again.choose_many(310)
    with pytest.raises(InvalidInput, match="400 are over"):
        again.choose()


def test_chances_are_those_of_everybody_in_the_sample_or_not() -> None:
    """Before the first release random slates, then one: with the same chance whatever the coin says."""
    learner, users = made(), some_users(6, 400, seed=1)
    for t in range(400):
        decision = learner.choose()
        assert decision.propensity == (1.0 if learner.policy._position.releases else 1 / 30)  # type: ignore[attr-defined]
        learner.observe(decision, users[t])


def test_lateness_in_rounds_of_the_sample() -> None:
    sampled = np.array([True, False, True, True, False, True])
    delay = np.array([0, 9, 1, 2, NEVER, 3])
    assert rounds_late(delay, sampled).tolist() == [0, 3, 1, 1, NEVER, 0]
    assert rounds_late([1, 2], sampled) == [1, 2]


def test_names_are_wanted_of_everybody_alike() -> None:
    for seed in range(20):
        with pytest.raises(InvalidInput, match="whose round this is"):
            made(max_rounds_per_user=2, seed=seed).choose()


def test_a_ledger_in_a_file_remembers_visits_of_the_sample_alone(tmp_path: Path) -> None:
    learner = dim.make("overlap-greedy", WORLD, sample=4, ledger=tmp_path / "people.ledger")
    names = [f"somebody {t}" for t in range(100)]
    decisions = learner.choose_many(60, names[:60]) + [learner.choose(name) for name in names[60:]]
    counted = {name for name, each in zip(names, decisions, strict=True) if each.round != OUTSIDE}
    assert 0 < len(counted) < 60
    assert learner.ledger is not None
    learner.ledger.close()
    with Ledger.open(tmp_path / "people.ledger") as again:
        result = again.contributions_of("overlap-greedy")
        assert result is not None
        assert set(result.rounds) == {hashed(name) for name in counted}


@pytest.mark.parametrize("one_in", [1, 4, 100])
def test_a_public_coin_lowers_delta_and_not_epsilon(one_in: int) -> None:
    """Theorem L4, over all views: her coin, and then the release of a learner that is (epsilon, delta)-private."""
    release = {
        "her": (0.1, 0.0),
        "yes": (0.6, 0.3),
        "no": (0.3, 0.7),
    }  # the chances if she says one thing, or another
    views = {("heads", seen): (p / one_in, q / one_in) for seen, (p, q) in release.items()}
    views["tails", ""] = (1 - 1 / one_in, 1 - 1 / one_in)
    assert sum(p for p, _ in views.values()) == pytest.approx(1)

    def delta(laws: dict[Any, tuple[float, float]], epsilon: float) -> float:
        pairs = [*laws.values(), *((q, p) for p, q in laws.values())]
        half = len(laws)
        return max(
            math.fsum(max(0.0, p - math.exp(epsilon) * q) for p, q in side)
            for side in (pairs[:half], pairs[half:])
        )

    def ratio(laws: dict[Any, tuple[float, float]]) -> float:
        return max(abs(math.log(p / q)) for p, q in laws.values() if p and q)

    assert ratio(views) == pytest.approx(ratio(release))
    for epsilon in (0.0, 0.5, 1.0, 3.0):
        assert delta(views, epsilon) == pytest.approx(delta(release, epsilon) / one_in)
    theorem = (Path(__file__).parents[2] / "docs" / "maths" / "late.md").read_text().split("## Theorem L4")[1]
    assert "`1/m` of the delta of L1" in theorem
    assert "no better one" not in theorem


def test_where_a_sample_makes_no_sense_it_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"'slate-totals' learns from everybody.*'private'"):
        dim.make("slate-totals", Setting(6, 2, 400, "bandit", 4.0), sample=10)
    with pytest.raises(InvalidInput, match="throws the coins of its sample itself"):
        RemoteRounds(made())
    nonsense: tuple[Any, ...] = (0, 1.5, "ten")
    for given in nonsense:
        with pytest.raises(InvalidInput, match="sample"):
            dim.make("overlap-greedy", WORLD, sample=given)
