r"""Dealt rounds: each person is dealt to one slate of the open block and asked one question, by public facts alone.

A *block* is a few slates, how many rounds each is shown, and what its people are asked. Its rounds are dealt to
its slates by a shuffle with public coins. When they have all been issued, the answers are added up per slate, published
once with noise (sums/private_counts.py), and forgotten; then the next block is planned from all that was published.
Every slate and every plan is post-processing of what was published, so it costs nothing, and propensities are public.
After a restart a deal that was kept goes on: what it shows may have been seen before, so its rounds have no propensity.

Guarantee  (epsilon, 0), whatever people say, and whether they say it or not (docs/maths/counts.md, Theorem B2).
Assumes    one answer per round. What comes after its block has closed has said nothing.
Memory     the open block's cells: a few numbers per slate.
Excludes   timing, and the memory of the process.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput
from diminuendo.learners.base.old_private import PrivateLearner
from diminuendo.privacy.accountants import ACCOUNTANTS
from diminuendo.privacy.budget import Budget, Guarantee
from diminuendo.privacy.events import Laplace
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.coins import Coins
from diminuendo.streams.people import People
from diminuendo.sums.private_counts import PrivateCounts
from diminuendo.types import Floats, Ints, Items

WHICH = 0
"""The question which slot was clicked first. Any other question is a number e: was one of the first e? Of payoffs, as
of yes and no, only the total is asked for: e is the number of slots."""


class Block(NamedTuple):
    """What the next rounds are for."""

    slates: Items
    """One row per slate, distinct items."""
    sizes: Ints
    """How many rounds show each of them."""
    questions: Ints
    """What its people are asked: WHICH, or a number e."""


class DealtRounds(PrivateLearner):
    """Plans blocks, deals people to their slates, and publishes what they said."""

    pure: ClassVar[bool] = True
    ticks: ClassVar[int]
    """Whole numbers to one unit of an answer."""

    def __init__(
        self,
        n_items: int,
        slots: int,
        *,
        horizon: int,
        epsilon: float,
        visits: int = 1,
        ledger: Ledger | None = None,
        coins: Coins | None = None,
        patience: int = 10_000,
    ) -> None:
        super().__init__(
            n_items, slots, horizon=horizon, visits=visits, ledger=ledger, coins=coins, patience=patience
        )
        self.budget = Budget(epsilon, 0.0, self.unit, "pure")
        cost = self.budget.share()
        assert isinstance(cost, Laplace)
        paid_on = Ledger(self.budget) if ledger is None else ledger
        about = f"{self.slots} of {self.n_items} items, {self.horizon} rounds, "
        self._counts = PrivateCounts(cost=cost, ticks=self.ticks, ledger=paid_on, name=self.name, about=about)
        self._block = _no_block(self.slots)
        self._dealt: Items = np.zeros(0, dtype=np.int32)  # which slate each round of the block shows
        self._first = self._end = (
            0  # the rounds with which the block begins, and with which the next one will
        )
        self._alike: Ints | None = (
            None  # for each round, how many show the same from there on; counted when asked
        )
        self._dealt_now = False  # whether nobody can have seen this deal before
        self._published: Floats | None = None  # what was, and is not yet heard of

    @abstractmethod
    def _plan(self, coins: np.random.Generator) -> Block:
        """What to do with the next rounds, from all that was heard; `coins` are public."""

    @abstractmethod
    def _hear(self, block: Block, said: list[Floats]) -> None:
        """A block was published: for each of its slates what its people said, with noise."""

    @abstractmethod
    def _answers(self, people: People, first: int, slates: Items) -> NDArray[Any]:
        """What people from number `first` on say to these slates."""

    @abstractmethod
    def _add(self, slates: Ints, answers: NDArray[Any]) -> None:
        """Count these answers of people who were dealt to `slates` of the open block."""

    @abstractmethod
    def _add_one(self, slate: int, answer: Any) -> None:
        """The same for one person, in plain numbers: arrays of one would take ten times as long."""

    @property
    def events(self) -> Laplace:
        """What the whole run costs one round: as much as one block, for none is in two."""
        return self._counts.event

    @property
    def guarantee(self) -> Guarantee:
        """What is proved for the whole run."""
        found = ACCOUNTANTS["pure"].epsilon(self.events, 0.0, self.visits)
        epsilon, proof = min(found, self.budget.epsilon), "docs/maths/counts.md, Theorem B2"
        return Guarantee(epsilon, 0.0, str(self.unit), proof, self.coins.secure)

    def _config(self) -> dict[str, Any]:
        return super()._config() | {"epsilon": self.budget.epsilon}

    # Choosing.

    def _release_due(self) -> None:
        if self._decisions.rounds < self._end:
            return
        if len(self._dealt) and self._published is None:
            self._published = self._release()
        with self._guard.all_or_broken():
            if self._published is not None:
                self._hear(self._block, np.split(self._published, self._starts[1:-1]))
                self._counts.forget()
                self._dealt, self._published = self._dealt[:0], None
            coins = np.random.Generator(np.random.Philox(int(self._public.take(1)[0])))
            block = self._plan(coins)
            dealt = np.repeat(np.arange(len(block.sizes), dtype=np.int32), block.sizes)
            coins.shuffle(dealt)
        with self._guard.defer_interrupt():
            self._begin(*self._kept(block, dealt))

    def _release(self) -> Floats:
        return self._counts.release(self._secret)

    def _kept(self, block: Block, dealt: Items) -> tuple[Block, Items]:
        """The block as it was kept before a crash, if it was; else this one, which is kept now."""
        mine, drawn = packed(block, dealt), []

        def draw() -> Ints:
            drawn.append(True)
            return mine

        kept = self._counts.planned(draw, self._secret)
        same = np.array_equal(kept, mine)
        if not same:
            self._overruled()
        self._dealt_now = bool(drawn) and same
        return unpacked(kept, self.slots)

    def _overruled(self) -> None:
        """Another block than the one just planned was kept."""

    def _begin(self, block: Block, dealt: Items, over: int = 0) -> None:
        """Go on with this block, of which so many rounds are over."""
        self._block, self._dealt, self._alike = block, dealt, None
        self._first = self.rounds - over
        self._end = self._first + len(dealt)
        widths = np.where(block.questions == WHICH, self.slots, 1)
        self._starts = np.concatenate([[0], np.cumsum(widths)])
        apart = np.repeat(np.where(block.questions == WHICH, 2, 1), widths)
        self._counts.open(apart)

    @property
    def _at(self) -> int:
        """How many rounds of the block are over. Nothing but the desk counts them, so nothing can be out of step."""
        return self.rounds - self._first

    def _draw(self, row: Items, probe: Items) -> bool:
        row[:] = self._block.slates[self._dealt[self._at]]
        return True

    def _propensity(self, row: Items) -> float | None:
        if not self._dealt_now:  # its rounds may have been seen before a restart: they are certain, not drawn
            return None
        if self._alike is None:
            self._alike = alike_from(self._block.slates, self._dealt)
        number = self._decisions.rounds
        chance: float = self._alike.item(number - self._first) / (self._end - number)
        return chance

    # Learning.

    def _learn(self, place: int, answer: Any) -> None:
        turn = self._decisions.round_at(place) - self._first
        if 0 <= turn < len(self._dealt):
            self._add_one(self._dealt.item(turn), answer)

    def _replay(self, people: People, slates: Items, done: int) -> int:
        at = self._at
        dealt = self._dealt[at : at + len(people) - done]
        stop = done + len(dealt)
        slates[done:stop] = self._block.slates[dealt]
        self._add(dealt.astype(np.int64), self._answers(people, done, slates[done:stop]))
        return stop

    # What a snapshot holds.

    def _extra(self) -> dict[str, NDArray[Any]]:
        if self._published is not None:
            raise InvalidInput("A release is under way; call choose() again before a snapshot.")
        found: dict[str, NDArray[Any]] = dict(self._block._asdict())
        left = np.bincount(self._dealt[self._at :], minlength=len(self._block.sizes))
        found |= {"dealt": self._dealt, "left": left}
        return found | {f"counts.{name}": part for name, part in self._counts.arrays().items()}

    def _take_extra(self, found: dict[str, NDArray[Any]]) -> None:
        names = ("slates", "sizes", "questions", "dealt", "left")
        mine = {name: found.pop(name, np.empty(0)) for name in names}
        counts = {name: found.pop(f"counts.{name}", None) for name in ("lot", "cells")}
        found.pop("places", None)  # which older snapshots hold: it follows from the rest
        super()._take_extra(found)
        block = Block(mine["slates"], mine["sizes"], mine["questions"])
        dealt, left = mine["dealt"], mine["left"]
        kinds = (np.int32, np.int64, np.int64, np.int32, np.int64)
        shapes = ((len(block.sizes), self.slots), *[(len(block.sizes),)] * 2)
        sound = (
            all(part.dtype == kind for part, kind in zip(mine.values(), kinds, strict=True))
            and tuple(part.shape for part in block) == shapes
            and (dealt.ndim, left.shape) == (1, block.sizes.shape)
            and ((block.slates >= 0) & (block.slates < self.n_items)).all()
            and all(len(set(slate)) == self.slots for slate in block.slates.tolist())
            and ((block.questions >= WHICH) & (block.questions <= self.slots)).all()
            and ((dealt >= 0) & (dealt < len(block.sizes))).all()
        )
        if sound:
            over = len(dealt) - int(left.sum())
            rest = np.bincount(dealt[max(0, over) :], minlength=len(left))
            sound = np.bool_(0 <= over <= self.rounds and np.array_equal(rest, left))
            self._begin(block, dealt, over)
            self._dealt_now = False
        if not sound:
            raise InvalidInput("The snapshot holds a block that could not have been planned; it was altered.")
        self._counts.take(counts, len(dealt))


def _no_block(slots: int) -> Block:
    nothing = np.zeros(0, dtype=np.int64)
    return Block(np.zeros((0, slots), dtype=np.int32), nothing, nothing)


def merged(blocks: list[tuple[Items, int, int]]) -> Block:
    """A block of (slate, size, question); the same slate with the same question stands there once."""
    found: dict[tuple[bytes, int], list[Any]] = {}
    for slate, size, question in blocks:
        row = np.asarray(slate, dtype=np.int32)
        found.setdefault((row.tobytes(), question), [row, 0, question])[1] += size
    rows, sizes, questions = (list(part) for part in zip(*found.values(), strict=True))
    return Block(np.array(rows, dtype=np.int32), np.array(sizes), np.array(questions))


def alike_from(slates: Items, dealt: Items) -> Ints:
    """For each round of a deal, how many rounds from it on show the same items in the same order, whatever they ask."""
    same = np.unique(slates, axis=0, return_inverse=True)[1].reshape(-1)[dealt]
    order = np.argsort(same, kind="stable")
    ends = np.cumsum(np.bincount(same))
    alike = np.empty(len(dealt), dtype=np.int64)
    alike[order] = ends[same[order]] - np.arange(len(dealt))
    return alike


def packed(block: Block, dealt: Items) -> Ints:
    """A block in one array of whole numbers."""
    parts = (block.slates.ravel(), block.sizes, block.questions, dealt)
    return np.concatenate([[len(block.sizes)], *parts]).astype(np.int64)


def unpacked(kept: Ints, slots: int) -> tuple[Block, Items]:
    """The block, and which slate each of its rounds shows."""
    many = int(kept[0])
    slates, sizes, questions, dealt = np.split(kept[1:], np.cumsum([many * slots, many, many]))
    return Block(slates.reshape(many, slots).astype(np.int32), sizes, questions), dealt.astype(np.int32)
