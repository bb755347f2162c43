r"""Learning what slates are worth from one published number per slate, or a few.

Noise is paid per published number, so few numbers, each about a whole slate and many people, teach more than one for
every slot and item. What they say about single items is worked out afterwards, for free (posterior.py).

    first       all items, in random slates, each shown to a few people; where people are few, only some of the items
    then        in blocks: two exploring slates, each the best on average over a few draws of the Markov chain, so that
                what may be good is tried and what was tried long enough is not; beside them, from some time on, the
                slate that is best on average over all draws, shown to the greater part of people

An item that was given up is tried again, by a few people, whenever a chain, which never forgets how unsure it is, draws
it high: so no run loses a good item for good because it was unlucky once.
When people stop wanting what they were known to want, all is forgotten, and learning begins anew (drift).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput
from diminuendo.learners.slates.blocks import WHICH, Block, DealtRounds, merged
from diminuendo.learners.slates.posterior import KEPT, Beliefs
from diminuendo.types import Floats, Items

FEW = 8.0
"""People per slate at first, times 1 + 1 / epsilon: enough to see a good item through chance and noise."""
AT_FIRST = 0.15
"""The share of people who see random slates at first. Items for which they are too few are left for later."""
GROWTH = 60
"""Later slates are shown to one in so many of the people who came so far: the number of releases is logarithmic."""
BOLD, WARY = 4, 8
"""Each block tries two slates: the best on average over that many draws, and over that many. The second number doubles
as epsilon falls to 1/4: where noise is larger there is more to be unsure about, and single draws are worth less."""
SWEEPS = 2
"""Of Markov chains before each exploring slate, for each draw of the wary one."""
FALLS, SURE = 0.6, 3.0
"""Tastes have changed when leading slates earn less than that share of what was expected, by so many deviations."""
STRETCHES = (1, 2, 4, 8, 16)
"""How many of the last blocks are looked at together."""
NOBODY = -1.0
"""No slate leads in the block."""


class SlateLearner(DealtRounds):
    """Explores slates and shows the best, by beliefs."""

    noisy: ClassVar[bool] = True
    """Whether what is published has noise."""

    def __init__(self, n_items: int, slots: int, **config: Any) -> None:
        super().__init__(n_items, slots, **config)
        self._beliefs = Beliefs(self.n_items, self.slots)
        self._since = np.zeros(1, dtype=np.int64)  # the round with which learning began, or began anew
        # Of the leading slate of the open block: its row, the share that it should earn, and the variance of that.
        self._leading = np.array([NOBODY, 0.0, 0.0])
        # Of leading slates before: what was published, what was expected, and the variance of the difference.
        self._checks = np.zeros((0, 3))

    def _ask(self, slate: Items, people: int) -> tuple[Items, int]:
        """In what order to show a slate, and what to ask."""
        return np.sort(slate), self.slots

    def _scale(self, question: int) -> float:
        """Of the noise on what is published, in units."""
        apart = 2 if question == WHICH else 1
        return self._counts.scale(apart) / self.ticks if self.noisy else 0.0

    # Planning.

    def _plan(self, coins: np.random.Generator) -> Block:
        wary = int(WARY * min(2.0, max(1.0, self.events.epsilon**-0.5)))
        block = self._planned(SWEEPS * wary, wary, coins)
        self._beliefs.rest(SWEEPS * wary)
        return block

    def _planned(self, sweeps: int, wary: int, coins: np.random.Generator) -> Block:
        """The next block; before each exploring slate, but at first, there are so many sweeps."""
        self._leading[:] = NOBODY, 0.0, 0.0
        lately, left = self.rounds - int(self._since[0]), self.horizon - int(self._since[0])
        n, k = self.n_items, self.slots
        few = min(FEW * (1 + 1 / self.events.epsilon), self.horizon - self.rounds)  # nobody comes after them
        if lately == 0:
            return self._first_block(int(few), int(AT_FIRST * left), coins)
        few = int(max(4, min(few, AT_FIRST * left * k / n)))
        people = int(max(few, lately / GROWTH))
        planned = []
        for draws in (BOLD, wary):
            self._beliefs.think(sweeps, coins)
            planned.append(self._asked(self._beliefs.best(draws, 1), people))
        share = (n * left**2) ** (1 / 3) / lately
        if share >= 1:
            return merged(planned)
        leader = self._beliefs.best(KEPT, 2)
        planned += [self._asked(slate, size) for slate, size in self._retests(leader, people, few)]
        shown = math.ceil(sum(size for _, size, _ in planned) * (1 - share) / share)
        leading = self._asked(leader, shown)
        block = merged([*planned, leading])
        self._foretell(block, *leading)
        return block

    def _retests(self, leader: Items, people: int, few: int) -> list[tuple[Items, int]]:
        """Slates that give items another chance which were given up, and how many people each is shown to.

        Here those that the chains' last thoughts would rather show than the leading ones, in a slate of their own: a
        total of what people hardly want varies little, so few of them are enough.
        """
        others: dict[int, None] = {}  # in the order in which they are found
        for back in range(KEPT):
            others |= dict.fromkeys(self._beliefs.rivals(back, leader).tolist())
            if len(others) >= self.slots:
                return [(np.array(list(others)[: self.slots], dtype=np.int32), few)]
        return []

    def _overruled(self) -> None:
        self._leading[:] = NOBODY, 0.0, 0.0

    def _first_block(self, people: int, most: int, coins: np.random.Generator) -> Block:
        """Random slates, no item twice as long as there are others; for `most` people at most, or one slate."""
        self._beliefs.think(KEPT, coins)
        n, k = self.n_items, self.slots
        order = coins.permutation(n)
        order = np.concatenate([order, order[: -n % k]]).astype(np.int32)  # the last slate is filled up
        slates = order.reshape(-1, k)[: max(1, most // people)]
        return merged([self._asked(slate, people) for slate in slates])

    def _asked(self, slate: Items, people: int) -> tuple[Items, int, int]:
        ordered, question = self._ask(slate, people)
        return ordered, people, question

    # Hearing.

    def _hear(self, block: Block, said: list[Floats]) -> None:
        for slate, size, question, numbers in zip(*block, said, strict=True):
            self._beliefs.hear(slate, int(question), int(size), numbers, self._scale(int(question)))
        if self._leading[0] != NOBODY and self._has_drifted(block, said):
            self._beliefs.forget()
            self._since[0], self._checks = self.rounds, np.zeros((0, 3))

    def _foretell(self, block: Block, slate: Items, people: int, question: int) -> None:
        """What the leading slate should earn, if people are as believed."""
        same = (block.slates == slate).all(axis=1) & (block.questions == question)
        chance = self._beliefs.chances(slate)[:, (question or self.slots) - 1]
        mean = chance.mean()
        self._leading[:] = np.flatnonzero(same)[0], mean, chance.var()

    def _has_drifted(self, block: Block, said: list[Floats]) -> bool:
        """Whether leading slates lately earned far less than expected."""
        row, mean, unsure = int(self._leading[0]), self._leading[1], self._leading[2]
        people, cells = int(block.sizes[row]), len(said[row])
        noise = 2 * cells * self._scale(int(block.questions[row])) ** 2
        variance = people**2 * unsure + people * mean * (1 - mean) + noise
        check = np.array([[said[row].sum(), people * mean, variance]])
        self._checks = np.concatenate([check, self._checks])[: STRETCHES[-1]]
        for stretch in STRETCHES:
            earned, expected, spread = self._checks[:stretch].sum(axis=0)
            earned = max(0.0, earned)  # whatever noise says
            if stretch <= len(self._checks) and earned < FALLS * expected - SURE * math.sqrt(spread):
                return True
        return False

    # What a snapshot holds.

    def _state(self) -> Any:
        return self._since, self._leading

    def _extra(self) -> dict[str, NDArray[Any]]:
        return super()._extra() | self._beliefs.arrays() | {"checks": self._checks}

    def _take_extra(self, found: dict[str, NDArray[Any]]) -> None:
        checks = found.pop("checks", np.empty(0))
        self._beliefs.take(found)
        super()._take_extra(found)
        sound = checks.dtype == np.float64 and checks.ndim == 2 and checks.shape[1] == 3
        if not sound or not np.isfinite(checks).all() or (checks[:, 1:] < 0).any():
            raise InvalidInput("The snapshot holds numbers that could not be; it was altered.")
        self._checks = checks

    def _restored(self) -> None:
        super()._restored()
        row, mean, unsure = self._leading
        sound = row == NOBODY or (0 <= row < len(self._block.sizes) and row == int(row))
        sound = sound and 0 <= mean <= 1 and 0 <= unsure <= 1
        if not sound or not 0 <= self._since[0] <= self.rounds:
            raise InvalidInput("The snapshot holds a plan that could not have been made; it was altered.")
