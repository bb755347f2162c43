"""Black box: an attacker who sees what any observer sees, and guesses in which of two worlds it was.

It uses nothing but a way to start the learner again and again. First it scouts: a few runs of each pair of neighbours
say which pair is the most promising. Many runs of that pair teach it what to look at and when to call out; then the
event is fixed. Fresh runs count how often it happens in either world, and the counts prove a lower bound on epsilon
(docs/maths/audit.md, Theorems U1 to U3). However cunning or lucky the choice was, the bound is as valid as its counts.

It finds gross faults only: to tell an epsilon of 1 from 1.1 it would need a hundred thousand runs, and no number of
runs shows what happens with a chance of delta. Attacks with instrumented mechanisms show more (exact.py, pathwise.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from diminuendo.audit.classifier import Reader, learn
from diminuendo.audit.effort import ALPHA, Effort, runs
from diminuendo.audit.finding import Finding, epsilon_shown
from diminuendo.audit.known import Known
from diminuendo.audit.subjects import Subject, View, play
from diminuendo.audit.worlds import Neighbours, Script, candidates
from diminuendo.learners import Setting
from diminuendo.privacy.budget import Guarantee
from diminuendo.randomness.sources import SeededSource

METHOD = "black box"
HOPEFUL = 0.1
"""How unsure a scout may be of what it reports. Only the choice of neighbours depends on it."""
RNG = 20
"""How many public coins are asked what is promised."""


def black_box(subject: Subject, epsilon: float, delta: float, effort: Effort, seed: int) -> list[Finding]:
    """One finding, about the neighbours that look worst."""
    random = np.random.default_rng([seed, 1])

    def knows(setting: Setting, target: int) -> tuple[Known, Known]:
        return subject.knows(setting, target, random)

    pairs = candidates(_learner(subject, epsilon, delta), subject.feedback, epsilon, delta, knows)
    return [attack(subject, pairs, effort, seed)]


def attack(subject: Subject, pairs: Sequence[Neighbours], effort: Effort, seed: int) -> Finding:
    """What can be shown about the worst of `pairs`, except with chance ALPHA."""
    seeds = _seeds(seed)
    pair = pairs[0]
    if effort.scouts:
        hopes = [_attempt(subject, tried, effort.scouts, effort.scouts, HOPEFUL, seeds) for tried in pairs]
        pair = pairs[int(np.argmax([shown for shown, _ in hopes]))]
    promise = _promise(subject, pair.setting)
    training, scored = (runs(rounds, pair.setting.rounds) for rounds in (effort.training, effort.scored))
    shown, counted = _attempt(subject, pair, training, scored, ALPHA, seeds)
    return Finding(
        METHOD,
        subject.name,
        pair.about,
        promise.epsilon,
        promise.delta,
        shown,
        1 - ALPHA,
        2 * (2 * len(pairs) * effort.scouts + training + scored),
        {
            "scored_runs_of_each_world": scored,
            **counted,
            "neighbours_tried": len(pairs) if effort.scouts else 1,
        },
    )


def _learner(subject: Subject, epsilon: float, delta: float) -> str:
    """The name of the learner that is, perhaps, broken."""
    return subject.make(Setting(2, 1, 4, subject.feedback, epsilon, delta), SeededSource(0)).name


def _promise(subject: Subject, setting: Setting) -> Guarantee:
    """What is claimed; the largest claim, where public coins decide what a learner can claim."""
    return max((subject.promise(setting, seed) for seed in range(RNG)), key=lambda promise: promise.epsilon)


def _attempt(
    subject: Subject, pair: Neighbours, training: int, scored: int, alpha: float, seeds: Iterator[int]
) -> tuple[float, dict[str, Any]]:
    """Choose an event by some runs, count it in others: what epsilon that shows, and how."""
    delta = subject.promise(pair.setting).delta
    one, other = _worlds(subject, pair, training, seeds)
    reader = Reader.of([*one, *other], pair.setting.n_items, pair.target)
    event = learn(one, other, reader, delta)
    counts = [event.hits(views) for views in _worlds(subject, pair, scored, seeds)]
    hits, others = counts[event.likelier], counts[1 - event.likelier]
    counted = {"event_in_one_world": hits, "event_in_the_other": others, "classifier": event.name}
    return float(epsilon_shown(hits, others, scored, delta, alpha)), counted


def _worlds(
    subject: Subject, pair: Neighbours, count: int, seeds: Iterator[int]
) -> tuple[list[View], list[View]]:
    """What is in the view of `count` fresh runs of each world, all independent of each other."""

    def seen(script: Script) -> View:
        view = play(subject, pair.setting, script, SeededSource(next(seeds)))
        return view.of_others(pair.target) if pair.target_hidden else view

    one, other = ([seen(script) for _ in range(count)] for script in (pair.one, pair.other))
    return one, other


def _seeds(seed: int) -> Iterator[int]:
    """Seeds that do not come again."""
    generator = np.random.default_rng(seed)
    while True:
        yield int(generator.integers(1 << 63))
