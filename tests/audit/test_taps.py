"""Doors: what passes is written down, and a run can be led after another."""

from __future__ import annotations

import numpy as np
import pytest

from diminuendo.audit.laws import with_reused_words
from diminuendo.audit.pathwise import SplitSource, paired_run
from diminuendo.audit.subjects import Subject, play, shipped
from diminuendo.audit.taps import Crossing, Diverged, Taps, Unwatched, _words_that_draw
from diminuendo.audit.worlds import SILENT, Neighbours, crowd, neighbours, wanting
from diminuendo.learners import Setting
from diminuendo.learners.hedge.fi_dp import FiDp
from diminuendo.randomness.score_classes import probabilities
from diminuendo.randomness.sources import SeededSource
from tests.kit.inside import inside

WATCHED = [
    "fi-dp",
    "bandit-dp",
    "bandit-dp:draw=direct",
    "bandit-dp:draw=presampled",
    "epoch-greedy",
    "lazy-hedge",
    "slate-clicks",
    "random",
]


def pair_for(name: str, seed: int = 0) -> tuple[Subject, Neighbours]:
    subject = shipped(name)
    setting = Setting(3, 2, 40, subject.feedback, 1.0, 1e-6)
    random = np.random.default_rng(seed)
    others = crowd(setting, "all others respond at random", random)
    said = ((0, wanting(subject.feedback, 3, (0, 1, 2))),)
    return subject, neighbours(setting, "wants everything, or says nothing", 1, said, SILENT, others)


@pytest.mark.parametrize("name", WATCHED)
def test_a_run_is_led_after_another(name: str) -> None:
    """The same world with no secret randomness of its own: all that passes, and all that is seen, is the same."""
    subject, pair = pair_for(name)
    free = Taps()
    seen = play(subject, pair.setting, pair.one, SplitSource(3, 4), free)
    led = Taps(free.crossings, ends=True)
    again = play(subject, pair.setting, pair.one, SplitSource(3, None), led)
    assert (len(free.crossings) > 0) == (name != "random")
    for one, other in zip(free.crossings, led.crossings, strict=True):
        assert (one.law, one.scale) == (other.law, other.scale)
        np.testing.assert_array_equal(one.covered, other.covered)
        np.testing.assert_array_equal(one.out, other.out)
    np.testing.assert_array_equal(seen.slates, again.slates)
    np.testing.assert_array_equal(seen.probes, again.probes)
    assert with_reused_words(free.crossings) == 0
    assert all(crossing.words for crossing in free.crossings)
    assert not any(crossing.words for crossing in led.crossings)


@pytest.mark.parametrize("name", WATCHED)
def test_both_worlds_come_to_one_view_and_doors_change_nothing(name: str) -> None:
    subject, pair = pair_for(name)
    result = paired_run(subject, pair, 3, 4)
    assert not result.diverged
    assert np.isfinite(result.loss)
    plain = play(subject, pair.setting, pair.one, SeededSource(5))
    learner = subject.make(pair.setting, SeededSource(5))
    for t in range(pair.setting.rounds):  # as without any audit
        with np.errstate(all="ignore"):
            decision = learner.choose()
            np.testing.assert_array_equal(learner.row_of(decision), plain.slates[t])
            for answer in pair.one.after(t):
                assert answer.to == t
                learner.observe(decision, answer.reply(decision.slate))


def test_draws_are_led_to_any_item() -> None:
    random = np.random.default_rng(1)
    for _ in range(20):
        learner = FiDp(5, 2, horizon=400, rate=0.4, epsilon=60.0, delta=1e-6, rng=SeededSource(0))
        for _ in range(int(random.integers(60))):
            answer = wanting("full", 5, random.choice(5, size=2).tolist())
            learner.observe(learner.choose(), answer(()))
        for items in ([0, 1], [4, 2], [3, 0], [1, 1]):
            words = _words_that_draw(inside(learner)._experts.classes, (0, 1), items)
            learner._frame.secret.view = words
            shown = learner.row_of(learner.choose()).tolist()
            assert shown == [items[0], -1 if items[1] == items[0] else items[1]]
            assert probabilities(inside(learner)._experts.classes, 0)[items[0]] > 0


def test_any_word_that_two_passages_share_is_noticed() -> None:
    def crossing(*words: int) -> Crossing:
        return Crossing("laplace", np.zeros(1, dtype=np.int64), 1.0, np.zeros(1, dtype=np.int64), words)

    assert with_reused_words([crossing(1, 2), crossing(3), crossing(4, 5)]) == 0
    assert with_reused_words([crossing(1, 2), crossing(3, 2), crossing(4, 3)]) == 2


def test_another_passage_than_before_parts_the_worlds() -> None:
    subject, pair = pair_for("overlap-greedy")
    free = Taps()
    play(subject, pair.setting, pair.one, SeededSource(3), free)
    with pytest.raises(Diverged, match="more is drawn"):
        play(subject, pair.setting, pair.one, SplitSource(3, None), Taps(free.crossings[:-1], ends=True))
    other, its = pair_for("slate-clicks")
    with pytest.raises(Diverged, match="something else"):
        play(other, its.setting, its.one, SplitSource(3, None), Taps(free.crossings, ends=True))


def test_secrets_that_no_door_sees_are_noticed() -> None:
    subject, pair = pair_for("fi-pure")
    with pytest.raises(Unwatched):
        paired_run(subject, pair, 3, 4)
