"""Taps: the few functions through which anything private passes on its way out, watched while an audit runs.

Noise is added, and items are drawn from secret scores, in eight functions. While the taps are open each call is written
down as a crossing: what was about to be covered, by which law (laws.py), and what came out. A second run can be made to
let out what the first one let out: then both runs are the same in all that is seen, and how much more likely one of
them is follows from what was covered. Compiled draws are led to the wanted item by words that fall on it, so that it is
the learner's own code that draws.

This reads secrets. It is for learners without real users, in the process of the audit alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from diminuendo.experts.hedge import HedgeState
from diminuendo.learners import epoch_greedy
from diminuendo.learners.hedge import exploring, full, lazy
from diminuendo.learners.hedge.exploring import EVERYBODY, ExploringState
from diminuendo.randomness import noise
from diminuendo.randomness import rounded_normal as normal
from diminuendo.randomness.score_classes import BOUND, TOP, ScoreClasses, probabilities
from diminuendo.randomness.words import USED, WINDOW, SecretRandomness, SecretWords, WordBuffer
from diminuendo.types import Floats, Ints, Items

DRAWN, SHOWN = "drawn", "shown"
"""Items drawn by their chances: all of them seen; or, where one repeats an earlier one, only that it does (-1)."""
NOISE: dict[str, tuple[Any, str]] = {
    "laplace": (noise, "laplace"),
    "gaussian": (noise, "gaussian"),
    "normal": (normal, "rounded_normal"),
}
"""Laws of noise on whole numbers, and the function that adds it."""


class Unwatched(Exception):
    """Secret words were asked for outside of all taps."""


class Diverged(Exception):
    """The second run cannot let out what the first one did: something visible depends on a secret."""


@dataclass(frozen=True)
class Crossing:
    """One call: something was covered by the law of that name, and `out` came out."""

    law: str
    covered: np.ndarray
    """Whole numbers that got noise; or, of draws, the chances of all items, one row for each draw."""
    scale: float
    """The scale of the noise."""
    out: np.ndarray
    words: tuple[int, ...] = ()
    """The secret words that it took; none where it was led."""
    pushed: np.ndarray | None = None
    """How the audit moved this, to see more often what is rare: numbers added to what got noise; or, of draws, to the
    logarithms of chances."""

    def __repr__(self) -> str:
        return f"<Crossing: {self.law}, {self.covered.size} numbers>"


class Taps:
    """Watches everything that crosses from secret to public, and can prescribe it.

    script  What is to come out, crossing by crossing, from the first on; what passes later passes as it may.
    ends    Nothing may pass after the script.
    pushes  How crossings are to be moved (`Crossing.pushed`), one by one.
    """

    def __init__(
        self,
        script: Sequence[Crossing] | None = None,
        *,
        ends: bool = False,
        pushes: Sequence[np.ndarray] = (),
    ) -> None:
        self.crossings: list[Crossing] = []
        self._script, self._ends, self._pushes = list(script or ()), ends, list(pushes)

    @contextmanager
    def open(self) -> Iterator[None]:
        """While this lasts, everything that crosses is watched, in this process."""
        with ExitStack() as stack:
            for law, (module, name) in NOISE.items():
                self._watch(stack, module, name, partial(self._noise, law))
            self._watch(stack, epoch_greedy, "select", self._select)
            self._watch(stack, lazy, "select", self._select)
            self._watch(stack, lazy, "survives", self._coin)
            self._watch(stack, full, "draw_slate", self._slate)
            self._watch(stack, exploring, "draw_round", self._round)
            yield

    @staticmethod
    def _watch(stack: ExitStack, module: Any, name: str, made: Callable[..., Any]) -> None:
        stack.enter_context(mock.patch.object(module, name, made(getattr(module, name))))

    def _wanted(self, law: str, shape: tuple[int, ...]) -> np.ndarray | None:
        """What is to come out now, if that is prescribed."""
        place = len(self.crossings)
        if place >= len(self._script):
            if self._ends:
                raise Diverged("more is drawn or published")
            return None
        said = self._script[place]
        if (said.law, said.out.shape) != (law, shape):
            raise Diverged("something else is drawn or published")
        return said.out.copy()

    def _push(self, shape: tuple[int, ...]) -> np.ndarray | None:
        place = len(self.crossings)
        fits = place < len(self._pushes) and self._pushes[place].shape == shape
        return self._pushes[place] if fits else None

    def _noise(self, law: str, real: Callable[..., Ints]) -> Callable[..., Ints]:
        def tap(values: Ints, scale: float, secret: SecretRandomness) -> Ints:
            covered = np.array(values)
            out, words, pushed = self._wanted(law, covered.shape), list[int](), None
            if out is None:
                pushed = self._push(covered.shape)
                moved = covered if pushed is None else covered + np.rint(pushed).astype(np.int64)
                with _noting(secret, words):
                    out = real(moved, scale, secret)
            self.crossings.append(Crossing(law, covered, float(scale), out.copy(), tuple(words), pushed))
            return out

        return tap

    def _select(self, real: Callable[..., int]) -> Callable[..., int]:
        def tap(scores: Ints, rate: float, secret: SecretRandomness) -> int:
            weights = np.exp(rate * (np.asarray(scores) - np.max(scores)))
            return self._one(weights / weights.sum(), secret, lambda: real(scores, rate, secret))

        return tap

    def _coin(self, real: Callable[..., bool]) -> Callable[..., bool]:
        def tap(rate: float, difference: int, secret: SecretRandomness) -> bool:
            yes = math.exp(rate * difference)
            chances = np.array([1 - yes, yes])
            return bool(self._one(chances, secret, lambda: int(real(rate, difference, secret))))

        return tap

    def _one(self, chances: Floats, secret: SecretRandomness, real: Callable[[], int]) -> int:
        """One draw by these chances."""
        covered = chances[None, :]
        out, words, pushed = self._wanted(DRAWN, (1,)), list[int](), None
        if out is None:
            pushed = self._push(covered.shape)
            with _noting(secret, words):
                if pushed is None:
                    out = np.array([real()])
                else:
                    out = _draw_tilted(covered, pushed, int(secret.take(1)[0]))
        self.crossings.append(Crossing(DRAWN, covered, 1.0, out, tuple(words), pushed))
        return int(out[0])

    def _slate(self, real: Callable[..., bool]) -> Callable[..., bool]:
        def tap(
            experts: HedgeState, row: Items, number: int, paid: Ints, repeats: bool, secret: SecretWords
        ) -> bool:
            if not repeats:  # drawn by another law, of which nothing is promised
                return bool(real(experts, row, number, paid, repeats, secret))

            def go_on(words: SecretWords) -> bool:
                return real(experts, row, number, paid, repeats, words)

            return self._draws(SHOWN, experts.classes, list(range(len(row))), secret, go_on, row)

        return tap

    def _round(self, real: Callable[..., bool]) -> Callable[..., bool]:
        def tap(
            experts: HedgeState, state: ExploringState, rules: Any, paid: Ints, row: Items, probe: Items,
            rng: Any, secret: SecretWords,
        ) -> bool:  # fmt: skip
            due = int(state.due[0])
            slots = [slot for slot in range(len(row)) if due in (EVERYBODY, slot)]

            def go_on(words: SecretWords) -> bool:
                return real(experts, state, rules, paid, row, probe, rng, words)

            if not slots:  # public coins alone
                return bool(go_on(secret))
            return self._draws(DRAWN, experts.classes, slots, secret, go_on, state.current)

        return tap

    def _draws(
        self,
        law: str,
        classes: ScoreClasses,
        slots: list[int],
        secret: SecretWords,
        go_on: Callable[[SecretWords], bool],
        drawn: Items,
    ) -> bool:
        """A compiled round with draws from these classes for `slots`, where `drawn` has them afterwards."""
        covered = np.array([probabilities(classes, slot) for slot in slots])
        wanted, pushed, words = self._wanted(law, (len(slots),)), None, secret
        before = int(secret.used[USED])
        if wanted is None:
            pushed = self._push(covered.shape)
            if pushed is not None and before < len(secret.words):
                wanted = _draw_tilted(covered, pushed, int(secret.words[before]))
        if wanted is not None:
            # A repeat that is not seen may be of any item before it; what is learned is the same.
            words = _words_that_draw(classes, slots, np.where(wanted < 0, wanted[0], wanted))
        done = bool(go_on(words))
        if done:
            if pushed is not None:
                secret.used[USED] += 1  # it was used, if not by the learner
            taken = tuple(secret.words[before : int(secret.used[USED])].tolist())
            self.crossings.append(Crossing(law, covered, 1.0, drawn[slots].astype(np.int64), taken, pushed))
        return done


def _draw_tilted(covered: Floats, pushed: Floats, word: int) -> Ints:
    """Draw one item by each row of chances, after `pushed` has moved them."""
    chances = tilted_chances(covered, pushed)
    random = np.random.default_rng(word)
    return np.array([random.choice(len(row), p=row) for row in chances], dtype=np.int64)


def tilted_chances(covered: Floats, pushed: Floats) -> Floats:
    """The chances of draws whose logarithms were moved by `pushed`."""
    with np.errstate(divide="ignore"):
        logs = np.log(covered) + pushed
    moved = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(moved / moved.sum(axis=1, keepdims=True))


@contextmanager
def _noting(secret: SecretRandomness, words: list[int]) -> Iterator[None]:
    """Write down all words that are taken meanwhile, in order, also those that had to be fetched first.

    Of words that are cut into digits: those whose first digit is taken.
    """
    buffers: tuple[WordBuffer[Any], ...] = (secret, secret.digits)
    streams = [[buffer.view.words[int(buffer.view.used[USED]) :].copy()] for buffer in buffers]

    def noted(buffer: WordBuffer[Any], stream: list[Any]) -> Callable[[int], Any]:
        real = buffer._fresh

        def fresh(count: int) -> Any:
            stream.append(real(count))
            return stream[-1]

        return fresh

    with ExitStack() as stack:
        for buffer, stream in zip(buffers, streams, strict=True):
            stack.enter_context(mock.patch.object(buffer, "_fresh", noted(buffer, stream)))
        yield
    for buffer, stream in zip(buffers, streams, strict=True):
        come = np.concatenate(stream)
        digits = 8 // come.itemsize  # in a word
        begun = len(stream[0]) % digits  # the rest of a word that was taken before
        taken = len(come) - (len(buffer.view.words) - int(buffer.view.used[USED])) - begun
        words += come[begun:].view(np.uint64)[: max(0, -(-taken // digits))].tolist()


def _words_that_draw(
    classes: ScoreClasses, slots: Sequence[int], items: Sequence[int] | np.ndarray
) -> SecretWords:
    """Words with which experts draw these items: each falls on the first part of the item's own share."""
    words = [_word_for(classes, slot, int(item)) for slot, item in zip(slots, items, strict=True)]
    return SecretWords(
        words=np.array(words, dtype=np.uint64),
        used=np.zeros(4, dtype=np.int64),
        window=np.array([WINDOW]),
        question=np.zeros(5, dtype=np.int64),
        rate=np.zeros(1),
        verdicts=np.zeros((4, 6), dtype=np.int64),
        rates=np.zeros(4),
    )


def _word_for(classes: ScoreClasses, expert: int, item: int) -> int:
    point, level = 0, int(classes.marks[expert, TOP])
    place = int(classes.place[item, expert])
    while True:
        bound = int(classes.weights[expert, classes.marks[expert, TOP] - level])
        first, end = int(classes.starts[expert, level]), int(classes.starts[expert, level + 1])
        if first <= place < end:
            result = point + (place - first) * bound
            assert result < classes.marks[expert, BOUND]
            return result
        point += (end - first) * bound
        level -= 1
