"""Classifiers: ways to guess from a view in which of two worlds it was seen.

A `Reader` turns views into columns of numbers, one row for each view:

    slates      how often each slot showed each item, soon after the target, at last, and in all; how often it showed
                the target's own slate or probed item; how often slates changed
    published   every number; what changed from one publication to the next; how many there were; and the number that
                stands at the target's probed item, if there was one

and into `words`, parts of views that are compared as a whole: all that was shown after the target, and the target's
slate with the next one. Nothing here is tuned to a learner; the classifiers find out what matters. Each gives a view a
score: the higher, the more it looks like the one world. All are simple and quick to fit:

    column      one number of the view by itself
    linear      Fisher's discriminant, the best there is where numbers have noise of the Gaussian kind
    bins        each number cut into a few bins, log-ratios of their frequencies added up
    words       log-ratio of how often this very view, or a piece of it, was seen

An `Attack` is one of them with a threshold: an event, and the world in which it should be the more likely one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from diminuendo.audit.finding import epsilon_shown
from diminuendo.audit.subjects import View
from diminuendo.types import EMPTY_SLOT, Floats

SOON = 4
"""How many rounds after the target are looked at by themselves."""
NUMBERS = 48
"""How many of the published numbers are looked at: the first ones, in which a target that comes first shows."""


SMOOTHING = 0.5
"""Added to each count, so that what was never seen is not taken to be impossible."""
WARY = 1e-3
"""By how much an event must stand out to be chosen: thousands are looked at, and the best of them by mere luck are rare
events. Nothing is claimed on the strength of it."""
BINS = 8
THRESHOLDS = 64
"""How many thresholds are tried, at equal shares of views."""

Score = Callable[[Floats, list[list[bytes]]], Floats]
"""From columns and words to one score for each view."""
ColumnsAndWords = tuple[Floats, list[list[bytes]]]
"""What a reader makes of some views."""


@dataclass(frozen=True)
class Reader:
    """Reads views into columns. What sizes there are is learned from some views, and kept for all others."""

    n_items: int
    target: int
    sizes: tuple[int, ...]
    """How many numbers each publication has."""

    @classmethod
    def of(cls, views: Sequence[View], n_items: int, target: int) -> Reader:
        """A reader for views like these."""
        most = max(len(view.published) for view in views)
        sizes = tuple(
            max(view.published[place].size for view in views if place < len(view.published))
            for place in range(most)
        )
        return cls(n_items, target, sizes)

    def columns(self, views: Sequence[View]) -> Floats:
        """All columns of all views, as an array of shape (views, columns)."""
        return np.hstack([self._shown(views), self._published(views)])

    def words(self, views: Sequence[View]) -> list[list[bytes]]:
        """For each kind of word, that of every view."""
        after = self.target + 1
        whole = [view.slates[after:].tobytes() + view.probes[after:].tobytes() for view in views]
        return [
            [view.slates.tobytes() + view.probes.tobytes() for view in views],
            whole,
            [
                view.probes[self.target].tobytes() + view.slates[self.target : after + 1].tobytes()
                for view in views
            ],
        ]

    def _shown(self, views: Sequence[View]) -> Floats:
        slates = np.stack([view.slates for view in views])  # (views, rounds, slots)
        probes = np.stack([view.probes for view in views])  # (views, rounds, 2)
        target_slates, probed_item = slates[:, self.target, :], probes[:, self.target, 1]
        later, probed = slates[:, self.target + 1 :], probes[:, self.target + 1 :, 1]
        result = []
        for rounds in (later[:, :1], later[:, -1:], later[:, :SOON], later):
            for item in (EMPTY_SLOT, *range(self.n_items)):
                result.append((rounds == item).sum(axis=1))
            result.append((rounds == target_slates[:, None, :]).sum(axis=1))
            known = (probed_item != EMPTY_SLOT)[:, None, None]
            result.append(((rounds == probed_item[:, None, None]) & known).sum(axis=1))
        result.append((slates[:, 1:] != slates[:, :-1]).sum(axis=1))
        result.append((probed != EMPTY_SLOT).sum(axis=1)[:, None])
        result.append((probed_item != EMPTY_SLOT)[:, None])
        return np.hstack(result).astype(np.float64)

    def _published(self, views: Sequence[View]) -> Floats:
        table = np.zeros((len(views), sum(self.sizes)))
        at_hers = np.zeros((len(views), len(self.sizes)))
        for row, view in enumerate(views):
            start = 0
            probe = view.probes[self.target]
            for place, (size, numbers) in enumerate(zip(self.sizes, view.published, strict=False)):
                flat = numbers.reshape(-1)[:size].astype(np.float64)
                table[row, start : start + len(flat)] = flat
                start += size
                cell = probe[0] * self.n_items + probe[1] if len(flat) > self.n_items else probe[1]
                if probe[1] != EMPTY_SLOT and cell < len(flat):
                    at_hers[row, place] = flat[cell]
        starts = np.cumsum((0, *self.sizes))
        changes = [
            table[:, starts[place] : starts[place + 1]] - table[:, starts[earlier] : starts[earlier + 1]]
            for place, size in enumerate(self.sizes)
            for earlier in range(place - 1, -1, -1)
            if self.sizes[earlier] == size
        ]
        count = np.array([[len(view.published)] for view in views], dtype=np.float64)
        parts = [part[:, :NUMBERS] for part in (table, at_hers, np.hstack([*changes, count]))]
        return np.hstack([*parts, count])


@dataclass(frozen=True)
class Attack:
    """The event that a score is at least, or at most, a threshold."""

    name: str
    reader: Reader
    score: Score
    threshold: float
    above: bool
    likelier: int
    """0: in the first world; 1: in the second."""

    def hits(self, views: Sequence[View]) -> int:
        """How often the event happened."""
        scores = self.score(self.reader.columns(views), self.reader.words(views))
        return int(((scores >= self.threshold) if self.above else (scores <= self.threshold)).sum())


def learn(one: Sequence[View], other: Sequence[View], reader: Reader, delta: float) -> Attack:
    """The most promising attack.

    Classifiers are fitted on the first half of the views, and one is chosen on the second half; on all of them where
    there was nothing to fit.
    """
    middle = len(one) // 2
    read = [(reader.columns(views), reader.words(views)) for views in (one, other)]
    fitting = [(columns[:middle], [word[:middle] for word in words]) for columns, words in read]
    choosing = [(columns[middle:], [word[middle:] for word in words]) for columns, words in read]
    best: tuple[Attack, float] | None = None
    for name, score, fitted in _classifiers(fitting):
        scores = [score(*views) for views in (choosing if fitted else read)]
        threshold, above, likelier, shown = _event(scores[0], scores[1], delta)
        if best is None or shown > best[1]:
            best = Attack(name, reader, score, threshold, above, likelier), shown
    assert best is not None
    return best[0]


def _event(one: Floats, other: Floats, delta: float) -> tuple[float, bool, int, float]:
    """Where to cut, on which side the event lies, where it is likelier, and what that gives hope for."""
    pooled = np.concatenate([one, other])
    cuts = np.unique(np.quantile(pooled, np.linspace(0, 1, THRESHOLDS), method="inverted_cdf"))
    runs = len(one)
    best = (float(cuts[0]), True, 0, -1.0)
    for above in (True, False):
        counts = [
            ((scores[:, None] >= cuts) if above else (scores[:, None] <= cuts)).sum(axis=0)
            for scores in (one, other)
        ]
        for likelier in (0, 1):
            shown = epsilon_shown(counts[likelier], counts[1 - likelier], runs, delta, WARY)
            place = int(np.argmax(shown))
            if shown[place] > best[3]:
                best = (float(cuts[place]), above, likelier, float(shown[place]))
    return best


def _classifiers(fitting: list[ColumnsAndWords]) -> Iterator[tuple[str, Score, bool]]:
    (one, words_one), (other, words_other) = fitting
    spread = np.vstack([one, other]).std(axis=0)
    varying = np.flatnonzero(spread > 0)
    if len(varying):
        yield "linear", _linear(one, other, varying), True
        yield "bins", _bins(one, other, varying), True
    for column in varying:
        yield f"column {column}", _column(int(column)), False
    for kind, (here, there) in enumerate(zip(words_one, words_other, strict=True)):
        yield f"words {kind}", _words(kind, Counter(here), Counter(there)), True


def _column(column: int) -> Score:
    return lambda columns, words: np.asarray(columns[:, column])


def _linear(one: Floats, other: Floats, varying: np.ndarray) -> Score:
    """Fisher's discriminant; the covariance is drawn towards no correlation as far as views are few."""
    pooled = np.vstack([one, other])[:, varying]
    scale = pooled.std(axis=0)
    within = np.vstack([part[:, varying] - part[:, varying].mean(axis=0) for part in (one, other)]) / scale
    few = len(varying) / (len(varying) + len(within))
    covariance = (1 - few) * (within.T @ within) / len(within) + few * np.eye(len(varying))
    apart = (one[:, varying].mean(axis=0) - other[:, varying].mean(axis=0)) / scale
    weights = np.linalg.lstsq(covariance, apart, rcond=None)[0] / scale
    return lambda columns, words: np.asarray(columns[:, varying] @ weights)


def _bins(one: Floats, other: Floats, varying: np.ndarray) -> Score:
    """Log-ratios of how often each column falls into each of a few bins, added up."""
    pooled = np.vstack([one, other])
    edges = [np.unique(np.quantile(pooled[:, c], np.linspace(0, 1, BINS + 1)[1:-1])) for c in varying]
    ratios = []
    for column, cuts in zip(varying, edges, strict=True):
        here, there = (
            np.bincount(np.searchsorted(cuts, part[:, column], side="right"), minlength=len(cuts) + 1)
            for part in (one, other)
        )
        ratios.append(np.log((here + SMOOTHING) / (there + SMOOTHING)))

    def score(columns: Floats, words: list[list[bytes]]) -> Floats:
        total = np.zeros(len(columns))
        for column, cuts, ratio in zip(varying, edges, ratios, strict=True):
            total += ratio[np.searchsorted(cuts, columns[:, column], side="right")]
        return total

    return score


def _words(kind: int, here: Counter[bytes], there: Counter[bytes]) -> Score:
    def score(columns: Floats, words: list[list[bytes]]) -> Floats:
        return np.array([np.log((here[w] + SMOOTHING) / (there[w] + SMOOTHING)) for w in words[kind]])

    return score
