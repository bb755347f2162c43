"""Pathwise: what hostile users can move, along views that both worlds come to, and what that shows about epsilon.

A *paired run* is one view, and how both worlds come to it. One world is run freely. The other is then made to let out
the same at every tap (taps.py), with the same public randomness. The view is the same twice, so the ratio of the
probabilities of the two runs is what the view reveals about the target: its logarithm is the *loss*. It is infinite if
the other world cannot come to the view: if it would draw, publish or show something else, although all that was let
out before is the same.

First, two paired runs (a pilot) are made with each of many targets. They show what may make the worlds diverge, whether
noise uses secret words, and each once, and how far sums are shifted. Then the worst target alone is tried, on
coins of its own: from the losses along sampled views follows a lower bound on epsilon at the promised delta, for

    delta(epsilon) = E max(0, 1 - exp(epsilon - loss))                      (docs/maths/audit-paths.md, Theorem W3)

over views of the one world. Gaussian noise hides at a delta of one in a million, so views that tell much are as rare.
They are made frequent by moving noise on purpose towards where the loss is large, and counted at their true weight.
Where delta is 0 one view is enough: whatever loss was seen is epsilon at least.

Where squared shifts are worth more than the promise, more was moved than was charged. This is said too, as the epsilon
of Gaussian noise whose shifts are these (Theorem W4). That is about the charge, and no lower bound.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from diminuendo.audit.effort import ALPHA, Effort
from diminuendo.audit.finding import Finding, share
from diminuendo.audit.laws import largest, log_chance, log_weight, spread, tilt, with_reused_words
from diminuendo.audit.subjects import RAISED, Subject, View, play, probed
from diminuendo.audit.taps import Crossing, Diverged, Taps, Unwatched
from diminuendo.audit.worlds import (
    CROWDS,
    Neighbours,
    Said,
    Script,
    crowd,
    growing,
    neighbours,
    size_in_words,
    targets,
)
from diminuendo.learners import Setting
from diminuendo.learners.base.entry import Shape
from diminuendo.privacy import curves
from diminuendo.privacy.budget import Guarantee
from diminuendo.randomness.sources import SeededSource
from diminuendo.types import FeedbackKind, Floats, Words

SHAPES: dict[FeedbackKind, tuple[Shape, ...]] = {
    "full": ((4, 2, 16), (2, 1, 16)),
    "bandit": ((3, 2, 40), (2, 1, 40)),
    "click": ((3, 2, 40), (2, 1, 40)),
}
"""Items, slots and rounds of the worlds that are tried."""
LONGER = (1, 8, 32)
"""How many times as long worlds are tried, one after the other, as long as a learner lets nothing out."""
WIDE: Shape = (60, 2, 16)
"""For users whose wishes grow: the more items, the more."""
RUNS = 12
"""How many paired runs are made with the worst pair, times the effort."""
CERTAIN = 8
"""How many paired runs are made where one view is proof, and crossings are moved so that nearly every view is one."""
CLOSE = 0.95
"""Targets with this share of the worst are as bad, and the first of them is taken."""
AIM = 0.9
"""Crossings are moved for an epsilon that is this share of what their spread is worth."""
FAR_DEVIATIONS = 20.0
"""This many deviations away, losses are as large as they get."""


class SplitSource(SeededSource):
    """The public coins of one seed, the secret randomness of another; without another, none."""

    def __init__(self, seed: int, secret: int | None) -> None:
        super().__init__(seed)
        self._other = None if secret is None else SeededSource(secret)
        self.handed: list[Words] = []

    def secret(self, count: int) -> Words:
        """The next secret words; refused where nothing should be left to draw."""
        if self._other is None:
            raise Unwatched
        self.handed.append(self._other.secret(count))
        return self.handed[-1]


@dataclass(frozen=True)
class PairedRun:
    """One world run freely, the other led to the same view, and what that view tells."""

    loss: float
    """The logarithm of how much likelier it is in the one world."""
    log_weight: float
    """The logarithm of how much likelier the view is in a run that the audit left alone."""
    tilts: tuple[Floats, ...]
    """In which direction the one world is likelier, crossing by crossing."""
    spread: float
    """The variance of the loss, all crossings together; of Gaussian noise, squared shifts over squared deviations."""
    squared: float
    """The part of `spread` that comes from Gaussian noise."""
    largest: float
    """What the loss can be at most along crossings as these."""
    crossings: int
    with_reused_words: int
    """How many crossings took secret words that others took before."""
    without_secret_words: int
    """How many crossings were made without secret words, or with words that come from elsewhere."""
    scaled: int
    """How many crossings have noise of another scale in the other world."""
    diverged: str = ""
    """Why the other world cannot come to this view; empty where it can."""


def paired_run(
    subject: Subject,
    pair: Neighbours,
    seed: int,
    secret: int,
    pushes: Sequence[np.ndarray] = (),
    *,
    turned: bool = False,
) -> PairedRun:
    """Run the one world, and lead the other to the same view; `turned`, the other way round. Public coins by `seed`."""
    one, other = (pair.other, pair.one) if turned else (pair.one, pair.other)
    free = Taps(pushes=pushes)
    rng = SplitSource(seed, secret)
    seen = play(subject, pair.setting, one, rng, free)
    led, diverged = Taps(free.crossings, ends=True), ""
    try:
        again = play(subject, pair.setting, other, SplitSource(seed, None), led)
        diverged = _difference(seen, again, pair, len(free.crossings), len(led.crossings))
    except Diverged as reason:
        diverged = str(reason)
    both = list(zip(free.crossings, led.crossings, strict=False))
    loss = math.inf if diverged else math.fsum(log_chance(a) - log_chance(b) for a, b in both)
    return PairedRun(
        loss=loss,
        log_weight=math.fsum(log_weight(crossing) for crossing in free.crossings),
        tilts=tuple(tilt(a, b) for a, b in both),
        spread=math.fsum(spread(a, b) for a, b in both),
        squared=math.fsum(spread(a, b) for a, b in both if a.law in ("normal", "gaussian")),
        largest=math.fsum(largest(a, b) for a, b in both),
        crossings=len(free.crossings),
        with_reused_words=with_reused_words(free.crossings),
        without_secret_words=_without_secret_words(free.crossings, rng),
        scaled=sum(a.scale != b.scale for a, b in both),
        diverged=diverged,
    )


def _without_secret_words(crossings: Sequence[Crossing], rng: SplitSource) -> int:
    handed = {word for words in rng.handed for word in words.tolist()}
    secret = [
        bool(crossing.words) and handed.issuperset(crossing.words)
        for crossing in crossings
        if crossing.out.size
    ]
    return secret.count(False)


def _difference(seen: View, again: View, pair: Neighbours, passed: int, led: int) -> str:
    if seen.ended != again.ended:
        return f"no more slates are shown ({seen.ended or again.ended})"
    if led < passed:
        return "less is drawn or published"
    if pair.target_hidden:
        seen, again = seen.of_others(pair.target), again.of_others(pair.target)
    if not np.array_equal(seen.slates, again.slates):
        return "other slates are shown"
    if not np.array_equal(seen.probes, again.probes):
        return "other rounds are probed"
    if not np.array_equal(seen.propensities, again.propensities, equal_nan=True):
        return "other propensities are reported"
    replies = [_replies(view, pair.target) for view in (seen, again)]
    return "" if replies[0] == replies[1] else "answers are answered otherwise"


def _replies(view: View, target: int) -> list[tuple[int, str]]:
    """Replies to feedback, except that the target's own was rejected: only the target sees that."""
    return [(to, what) for to, what in view.replies if to != target or not what.startswith(RAISED)]


def everything_is_watched(subject: Subject, pair: Neighbours, seed: int) -> bool:
    """Whether all of a learner's secret randomness passes through taps; if not, paired runs tell nothing."""
    try:
        paired_run(subject, pair, seed, seed)
    except Unwatched:
        return False
    return True


@dataclass(frozen=True)
class Scout:
    """A pilot: a first paired run, and its pair of worlds."""

    pair: Neighbours
    promise: Guarantee
    seed: int
    turned: bool
    run: PairedRun

    @property
    def worth(self) -> float:
        """The epsilon that it makes one expect."""
        if self.run.diverged:
            return math.inf
        if self.promise.delta == 0:
            return self.run.largest
        return min(self.run.largest, _worth(self.run.spread, self.promise.delta))

    @property
    def said_something(self) -> bool:
        """Whether anything was let out that may depend on users."""
        return self.run.crossings > 0 or bool(self.run.diverged)

    @property
    def share(self) -> float:
        """The epsilon that it makes one expect, as a share of what is promised."""
        return share(self.worth, self.promise.epsilon)


def pathwise(subject: Subject, epsilon: float, delta: float, effort: Effort, seed: int) -> list[Finding]:
    """The finding of the worst of many targets; none if secret randomness is used outside of all taps."""
    random = np.random.default_rng(seed)
    scouts: list[Scout] = []
    try:
        for longer in LONGER:
            for n, k, rounds in SHAPES[subject.feedback]:
                setting = Setting(n, k, longer * rounds, subject.feedback, epsilon, delta)
                scouts += _scouts(subject, setting, targets(setting, random, effort.paths), random)
            if any(scout.said_something or scout.promise.epsilon == 0 for scout in scouts):
                break
        if subject.feedback == "full":
            setting = Setting(*WIDE, subject.feedback, epsilon, delta)
            scouts += _scouts(subject, setting, [growing(setting)], random)
    except Unwatched:
        return []
    most = max(scout.share for scout in scouts)
    close = [scout for scout in scouts if scout.share >= CLOSE * most]
    worst = min(close, key=lambda scout: scout.pair.target)  # what comes early depends on the least noise
    promise = worst.promise
    reused = max(scout.run.with_reused_words for scout in scouts)
    without_words = max(scout.run.without_secret_words for scout in scouts)
    scaled = max(scout.run.scaled for scout in scouts)
    runs = RUNS * effort.paths if promise.delta > 0 else CERTAIN
    losses = _losses(subject, worst, random.integers(2**32, size=runs).tolist())
    shown, confidence = epsilon_of(losses, promise.delta)
    seen = [scout for scout in scouts if scout.promise.delta == 0 and scout.run.loss > 0]
    if promise.delta == 0 and seen:  # there the first paired runs are proof as well
        strongest = max(seen, key=lambda scout: scout.run.loss - scout.promise.epsilon)
        if strongest.run.loss - strongest.promise.epsilon > shown - promise.epsilon:
            worst, promise, shown = strongest, strongest.promise, strongest.run.loss
    about = f"{worst.pair.about}, in round {worst.pair.target}"
    if reused:
        shown, confidence, about = math.inf, 1 - 2.0**-30, "secret randomness is used twice"
    if without_words:
        shown, confidence, about = math.inf, 1.0, "noise without secret randomness"
    if scaled and promise.delta == 0:  # far enough out, the wider noise is as much likelier as one likes
        shown, confidence, about = math.inf, 1.0, "the scale of noise depends on answers"
    finding = Finding(
        method="pathwise",
        subject=subject.name,
        about=f"{about}; {size_in_words(worst.pair.setting)}",
        claimed=promise.epsilon,
        delta=promise.delta,
        shown=max(0.0, shown),
        confidence=confidence,
        runs=2 * (len(scouts) + len(losses.losses)),
        detail={
            "rng": worst.seed,
            "pairs": len(scouts),
            "passages": worst.run.crossings,
            "squared_shifts": max(scout.run.squared for scout in scouts),
            "parted": worst.run.diverged,
            "words_used_twice": reused,
            "passages_without_secret_words": without_words,
            "passages_scaled_by_answers": scaled,
        },
        silent=promise.epsilon > 0 and not any(scout.said_something for scout in scouts),
    )
    worth = math.inf if scaled else _worth(worst.run.squared, promise.delta)
    charged = dataclasses.replace(
        finding,
        shown=worth,
        confidence=1.0,
        uncharged="the scale of noise depends on answers, which no charge covers"
        if scaled
        else f"more is moved than is charged: shifts worth {worth:.2f}",
    )
    return [charged if charged.violation and not finding.violation else finding]


def _scouts(
    subject: Subject, setting: Setting, users: list[tuple[str, Said, Said]], random: np.random.Generator
) -> list[Scout]:
    """Make two paired runs with every target: one early and one later, in either direction."""
    result = []
    seed = int(random.integers(2**32))
    turn = _edges(play(subject, setting, Script(setting.rounds, ()), SeededSource(seed)), setting, random)
    for number, (about, one, other) in enumerate(users):
        for later in (False, True):
            seed, kind = int(random.integers(2**32)), CROWDS[(number + later) % len(CROWDS)]
            until = 3 * setting.rounds // 4 if later else setting.rounds // 4
            target = number % 3
            if later:
                target = int(random.integers(until)) if number % 3 == 2 else turn[number % len(turn)]
            if setting.feedback != "full":  # if only some rounds are probed, the target's is one of them
                answered = np.flatnonzero(probed(subject, setting, seed)[:until])
                target = int(random.choice(answered)) if len(answered) else target
            others = crowd(setting, kind, random)
            known = subject.knows(setting, target, random)
            pair = neighbours(setting, f"{about}; {kind}", target, one, other, others, known)
            turned, secret = (number + later) % 2 == 1, int(random.integers(2**32))
            found_run = paired_run(subject, pair, seed, secret, turned=turned)
            result.append(Scout(pair, subject.promise(setting, seed), seed, turned, found_run))
    return result


def _edges(seen: View, setting: Setting, random: np.random.Generator) -> list[int]:
    """Last rounds of batches and first rounds of the next, in the first three quarters, in any order."""
    until = 3 * setting.rounds // 4
    result = sorted(
        {edge for first in seen.crossing_rounds for edge in (first - 1, first) if 0 <= edge < until}
    )
    return [int(edge) for edge in random.permutation(result or until)]


def _worth(spread: float, delta: float) -> float:
    """The epsilon of Gaussian noise whose squared shifts over squared deviations are that."""
    if spread == 0:
        return 0.0
    return curves.gaussian_epsilon(math.sqrt(spread), delta) if delta > 0 else math.inf


@dataclass(frozen=True)
class Losses:
    """Losses along views that were drawn independently, how much each view counts, and the most that any may."""

    losses: Floats
    weights: Floats
    most: float


def _losses(subject: Subject, scout: Scout, secrets: list[int]) -> Losses:
    """Losses of paired runs with the pair of `scout`, crossings moved to where losses are large."""
    spread, stretch, most = scout.run.spread, 0.0, 1.0
    if spread > 0 and not scout.run.diverged:
        if scout.promise.delta == 0:  # as far out as can be
            stretch = FAR_DEVIATIONS / math.sqrt(spread)
        else:  # so that losses are near the aim, about half of them above
            aim = AIM * scout.worth
            stretch = max(0.0, aim / spread - 0.5)
            most = _most(aim, spread, stretch)
    pushes = [stretch * tilt for tilt in scout.run.tilts] if stretch > 0 else []
    runs = [
        paired_run(subject, scout.pair, scout.seed, secret, pushes, turned=scout.turned) for secret in secrets
    ]
    losses = np.array([result.loss for result in runs])
    return Losses(losses, np.exp([result.log_weight for result in runs]), most)


def _most(epsilon: float, spread: float, stretch: float) -> float:
    """What a view counts at most at `epsilon`, under Gaussian noise: what counts more is cut, which shows less."""
    if stretch == 0:
        return 1.0
    at_epsilon = math.exp(-stretch * (epsilon - spread / 2) + stretch**2 * spread / 2)
    return at_epsilon * math.exp(-stretch * math.log1p(1 / stretch)) / (stretch + 1)


def excess(losses: Floats, epsilon: float) -> Floats:
    """max(0, 1 - exp(epsilon - loss)): its mean is delta."""
    with np.errstate(over="ignore"):
        return np.maximum(0.0, -np.expm1(epsilon - losses))


def epsilon_of(sample: Losses, delta: float) -> tuple[float, float]:
    """Epsilon is at least this, and how surely. Where delta is 0, one view with that loss is proof."""
    if delta == 0:
        return float(sample.losses.max()), 1.0

    def refuted(epsilon: float) -> bool:
        counted = np.minimum(sample.weights * excess(sample.losses, epsilon) / sample.most, 1.0)
        return mean_exceeds(counted, delta / sample.most, ALPHA)

    low, high = 0.0, float(np.max(sample.losses, where=np.isfinite(sample.losses), initial=0.0))
    if refuted(high + 1):  # then without end: nothing but views that the other world cannot come to is left
        return math.inf, 1 - ALPHA
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low, 1 - ALPHA


def mean_exceeds(values: Floats, bound: float, alpha: float) -> bool:
    """Whether independent values in [0, 1] show their mean to be above `bound`; wrong with chance alpha at most.

    Hoeffding (1963), JASA 58, Theorem 1: the bound by relative entropy.
    """
    seen = float(values.mean())
    if seen <= bound or bound >= 1:
        return False
    parts = ((seen, bound), (1 - seen, 1 - bound))
    apart = math.fsum(share * math.log(share / other) for share, other in parts if share > 0)
    return len(values) * apart > -math.log(alpha)
