"""What can be done wrong with what is published."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from diminuendo.randomness.sources import RandomSource, SeededSource
from diminuendo.randomness.words import USED, SecretRandomness
from diminuendo.types import Floats, Items, Words
from tests.audit.faults.planted import after


class PublicAsSecret(SeededSource):
    """The public words of some coins, for secret ones."""

    def __init__(self, rng: RandomSource) -> None:
        super().__init__(0)
        self._rng = rng

    def secret(self, count: int) -> Words:
        """The next public words."""
        return self._rng.public(count)


def public_noise(policy: Any, broken: bool) -> None:
    """Noise is drawn from public randomness, so an observer can subtract it."""
    if broken:
        policy.frame.secret = SecretRandomness(PublicAsSecret(policy.frame.rng))


def propensity_tells(policy: Any, broken: bool) -> None:
    """The chance that is reported follows what was said but not published yet."""
    propensity = policy.propensity

    def tells(row: Items) -> float:
        told = propensity(row) or 0.0
        return told / (1 + float(policy._counts.exact().sum())) if broken else told

    policy.propensity = tells


def scale_follows_answers(policy: Any, broken: bool) -> None:
    """Noise is larger where users are happy."""
    counts = policy._counts
    scale, release = counts.scale, counts.release

    def releases(secret: SecretRandomness) -> Floats:
        happy = broken and counts.exact().sum() > 0
        counts.scale = lambda sensitivity: scale(sensitivity) * (2 if happy else 1)
        published: Floats = release(secret)
        return published

    counts.release = releases


def refuses_when_unhappy(policy: Any, broken: bool) -> None:
    """A check that was meant for tests stops the run when rewards add up to too little."""
    unhappy = [False]

    def note(_: None, place: int, answer: float) -> None:
        unhappy[0] = broken and answer <= 0

    def refuse(_: None, rounds: int) -> None:
        if unhappy[0]:
            raise ArithmeticError("rewards are too small")

    after(policy, "learn", note)
    after(policy.frame, "admit", refuse)


def plans_on_answers(policy: Any, broken: bool) -> None:
    """Puts a slate aside as soon as one user dislikes it, before anything was published."""

    def put_aside(_: None, place: int, answer: float) -> None:
        if broken and answer <= 0:
            shown = policy._blocks[-1]
            others = np.roll(shown.block.slates, 1, axis=1)
            menu = replace(shown.menu, slates=others)
            policy._blocks[-1] = shown._replace(block=shown.block._replace(slates=others), menu=menu)
            policy._chooser = menu.chooser()

    after(policy, "learn", put_aside)


def words_given_back(policy: Any, broken: bool) -> None:
    """After a release the place in the secret words goes back, by all but one: the next has nearly the same noise."""
    release, secret = policy.release, policy.frame.secret

    def releases() -> None:
        buffers = secret, secret.digits
        before = [int(buffer.view.used[USED]) for buffer in buffers]
        release()
        for buffer, place in zip(buffers, before, strict=True):
            if broken and buffer.view.used[USED] > place + 1:
                buffer.view.used[USED] = place + 1

    policy.release = releases


def noise_used_again(policy: Any, broken: bool) -> None:
    """Randomness is made for each release from one seed that was meant for tests."""
    release = policy.release

    def releases() -> None:
        if broken:
            policy.frame.secret = SecretRandomness(SeededSource(7))
        release()

    policy.release = releases


def last_counted_again(policy: Any, broken: bool) -> None:
    """The last user of a block is counted again in the next one, at the first release after it was planned."""
    counts, frame, last = policy._counts, policy.frame, list[tuple[int, int]]()
    add_one = counts.add_one

    def add(cell: int, ticks: int, histogram: int = -1) -> None:
        add_one(cell, ticks, histogram)
        if broken and frame.rounds == policy._blocks[histogram].end:
            last[:] = [(cell, ticks)]

    def count(_: None) -> None:
        if last and policy._blocks:
            cell, ticks = last.pop()
            add_one(min(cell, len(counts._histograms[-1]) - 1), ticks)

    counts.add_one = add
    after(policy, "release", count)
