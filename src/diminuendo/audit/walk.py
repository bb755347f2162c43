"""A walk: one view, and how both worlds come to it.

One world is run freely. The other is then made to let out the same at every door (doors.py), with the same public
coins. Whoever looks on sees the same twice, so the ratio of the chances of the two runs is what the view tells about
the victim: its logarithm is the *loss*. It is infinite where the other world cannot come to the view: where it would
draw, publish or show something else, although all that was let out before is the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from diminuendo.audit.doors import Doors, Parted, Passage, Unwatched
from diminuendo.audit.laws import largest, lean, log_chance, log_weight, spread, words_twice
from diminuendo.audit.scripts import Neighbours
from diminuendo.audit.subjects import RAISED, Subject, View, play
from diminuendo.randomness.coins import SeededCoins
from diminuendo.types import Floats, Words


class SplitCoins(SeededCoins):
    """The public coins of one seed, the secret randomness of another; without another, none."""

    def __init__(self, seed: int, secret: int | None) -> None:
        super().__init__(seed)
        self._other = None if secret is None else SeededCoins(secret)
        self.handed: list[Words] = []

    def secret(self, count: int) -> Words:
        """The next secret words; refused where nothing should be left to draw."""
        if self._other is None:
            raise Unwatched
        self.handed.append(self._other.secret(count))
        return self.handed[-1]


@dataclass(frozen=True)
class Walk:
    """What one view told."""

    loss: float
    """The logarithm of how much likelier it is in the one world."""
    log_weight: float
    """Of how much likelier it is in a run that the audit left alone."""
    leans: tuple[Floats, ...]
    """In which direction the one world is likelier, passage by passage."""
    spread: float
    """The variance of the loss, all passages together; of Gaussian noise, squared shifts over squared deviations."""
    squared: float
    """What of it is of Gaussian noise."""
    summed: float
    """Shifts under Laplace noise over its scale, all together."""
    largest: float
    """What the loss can be at most along passages as these."""
    passages: int
    twice: int
    """How many passages took secret words that others took before."""
    bare: int
    """How many passages were made without secret words, or with words that come from elsewhere."""
    scaled: int
    """How many passages have noise of another scale in the other world."""
    parted: str = ""
    """Why the other world cannot come to this view; empty where it can."""


def walk(
    subject: Subject,
    pair: Neighbours,
    seed: int,
    secret: int,
    pushes: Sequence[np.ndarray] = (),
    *,
    turned: bool = False,
) -> Walk:
    """Run the one world, `turned` the other, and lead the other after it; public coins by `seed`."""
    one, other = (pair.other, pair.one) if turned else (pair.one, pair.other)
    free = Doors(pushes=pushes)
    coins = SplitCoins(seed, secret)
    seen = play(subject, pair.setting, one, coins, free)
    led, parted = Doors(free.passages, ends=True), ""
    try:
        again = play(subject, pair.setting, other, SplitCoins(seed, None), led)
        parted = _difference(seen, again, pair.victim, len(free.passages), len(led.passages))
    except Parted as reason:
        parted = str(reason)
    both = list(zip(free.passages, led.passages, strict=False))
    loss = math.inf if parted else math.fsum(log_chance(a) - log_chance(b) for a, b in both)
    return Walk(
        loss=loss,
        log_weight=math.fsum(log_weight(passage) for passage in free.passages),
        leans=tuple(lean(a, b) for a, b in both),
        spread=math.fsum(spread(a, b) for a, b in both),
        squared=math.fsum(spread(a, b) for a, b in both if a.law in ("normal", "gaussian")),
        summed=math.fsum(float(np.abs(lean(a, b) / a.scale).sum()) for a, b in both if a.law == "laplace"),
        largest=math.fsum(largest(a, b) for a, b in both),
        passages=len(free.passages),
        twice=words_twice(free.passages),
        bare=_bare(free.passages, coins),
        scaled=sum(a.scale != b.scale for a, b in both),
        parted=parted,
    )


def _bare(passages: Sequence[Passage], coins: SplitCoins) -> int:
    handed = {word for words in coins.handed for word in words.tolist()}
    return sum(
        not (passage.words and handed.issuperset(passage.words)) for passage in passages if passage.out.size
    )


def _difference(seen: View, again: View, victim: int, passed: int, led: int) -> str:
    if seen.ended != again.ended:
        return f"no more slates are shown ({seen.ended or again.ended})"
    if led < passed:
        return "less is drawn or published"
    if not np.array_equal(seen.slates, again.slates):
        return "other slates are shown"
    if not np.array_equal(seen.probes, again.probes):
        return "other rounds are probed"
    if not np.array_equal(seen.propensities, again.propensities, equal_nan=True):
        return "other propensities are told"
    return "" if _told(seen, victim) == _told(again, victim) else "answers are answered otherwise"


def _told(view: View, victim: int) -> list[tuple[int, str]]:
    """What was said to answers, but that the victim's own was refused: that is between the learner and her."""
    return [(to, what) for to, what in view.told if to != victim or not what.startswith(RAISED)]


def everything_is_watched(subject: Subject, pair: Neighbours, seed: int) -> bool:
    """Whether all of a learner's secret randomness passes through doors; else walks tell nothing."""
    try:
        walk(subject, pair, seed, seed)
    except Unwatched:
        return False
    return True
