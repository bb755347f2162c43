r"""Running sums of chains: what people said is added up at once, and only the sums are kept.

People of one batch all answer the same chain of questions, which is public before the first of them comes. There is one
running sum of singles; one for each row, by the item that joins and the set that was there before; and one for each
rest, by that set. Batches that answer the same question share its sum. People of batch j are added h_j times, a whole
number in proportion to t_j, and what is published at time t_b has noise in proportion to t_b: these are the weights t_j
/ t_b of stored.py, without anybody being stored. A release publishes all sums, each once. As every person is in the
sums of one chain only, however many sums there are cost no more than one chain.

The sum that people were added to longest ago makes way for a new question. The batch that is open is kept apart, so
that it alone can stay when tastes have changed.

Guarantee  that of the ledger's budget, counted as continuous-gaussian: docs/maths/overlap.md, Theorem O2. A release is
           charged before its noise is drawn, and drawn once, as a whole.
Assumes    one `add` per person-round, her batch the one open when her slate was chosen; it may come late.
Excludes   timing, and the memory of the process: sums without noise.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from diminuendo import _validate
from diminuendo._validate import as_floats
from diminuendo.errors import InvalidInput, refuse_copies
from diminuendo.privacy.events import NormalColumns
from diminuendo.privacy.ledger import Ledger
from diminuendo.privacy.process_guard import all_or_nothing
from diminuendo.randomness import rounded_normal
from diminuendo.randomness.words import SecretRandomness
from diminuendo.sums.batch import csr_rows
from diminuendo.sums.chains.cost import partition, release_cost, split_deviations, squared_shifts
from diminuendo.sums.chains.focus import FULL, SHARES, checked_weights, clip_focused
from diminuendo.sums.chains.people.frozen import add_weighted, fall
from diminuendo.sums.chains.weights import RunningWeights
from diminuendo.sums.clip import Clip, gains_row
from diminuendo.sums.schedule import Schedule
from diminuendo.types import Floats, Ints

RESTS = 4
"""There is room for this many rests, and for the rows of two chains."""

NO_ITEM = -1
"""Instead of an item: none joins."""

GainsAlong = Callable[[Ints, Ints], Callable[[int], Floats]]
"""Given where each person's entries begin and of which items they are: the gains of all entries once an item joins."""


class Question(NamedTuple):
    """A row: what is lost when `item` joins those before. Where nobody joins: what is left after them."""

    item: int
    before: tuple[int, ...]


SINGLES = Question(NO_ITEM - 1, ())


class Published(NamedTuple):
    """A sum with noise."""

    sums: Ints
    units: Floats
    """What people can have added to each entry at most."""
    sigma: float


class RunningChains:
    """The sums, what they are of, and which batches are in them.

    `longest`: how many items a chain has at most. `weights`: as from `running_weights`.
    """

    __getstate__ = refuse_copies

    def __init__(
        self,
        n_items: int,
        longest: int,
        *,
        schedule: Schedule,
        weights: RunningWeights,
        ledger: Ledger,
        clip: Clip | None = None,
        name: str = "people",
    ) -> None:
        self.n_items = _validate.positive_int(n_items, "n_items")
        self.longest = _validate.whole(longest, 0, self.n_items, "longest")
        self.schedule, self.ledger, self.name = schedule, ledger, name
        self.clip = Clip() if clip is None else clip
        if self.clip.norm != "l2" or self.clip.signed:
            raise InvalidInput("People contribute gains: an l2 clip of entries that are not negative.")
        weights.check(schedule, self.clip)
        self._weights, batches, self._rows = weights, len(schedule), 2 * (longest + 1)
        self._often = np.append(weights.often, np.zeros(batches - len(weights), dtype=np.int64))
        room = 1 + self._rows + RESTS
        self._sums: Ints = np.zeros((room, n_items), dtype=np.int64)  # singles, rows, rests
        self._keys: Ints = np.full((room, longest + 1), NO_ITEM, dtype=np.int64)
        self._keys[0, 0] = SINGLES.item
        self._units: Floats = np.zeros((room, n_items))  # what people can have added to each sum, in weights
        self._within = np.zeros((room, batches), dtype=np.bool_)  # which batches are in which sum
        self._lock = threading.RLock()  # people answer while a release is made
        self._open: Ints = np.zeros((longest + 2, n_items), dtype=np.int64)  # of the open batch
        self.later: dict[int, Ints] = {}
        """The same of batches whose people come before the open one is published; as private as what they said."""
        self._position: Ints = np.zeros(1, dtype=np.int64)  # the batch that is open
        self._added: Ints = np.zeros(batches, dtype=np.int64)
        self._chains: Ints = np.full((batches, longest), NO_ITEM, dtype=np.int64)
        counts = self._position, self._added, self._chains
        self._focus = np.full(
            (batches, n_items), FULL, dtype=np.int16
        )  # weights of items for people of a batch
        self.arrays = (self._sums, self._keys, self._within, self._open, *counts, self._units, self._focus)
        ledger.hold(name)
        self._partition = partition(name, schedule)

    def __repr__(self) -> str:
        return f"<RunningChains, {self.n_items} items, batch {self.open_batch} open>"

    @property
    def open_batch(self) -> int:
        """The batch that is published next: its sums are kept apart."""
        return int(self._position[0])

    # People come.

    def ask(self, chain: Sequence[int], *, batch: int, weights: Ints | None = None) -> None:
        """What people of a batch are asked about, in what focus: to be said before the first of them comes."""
        if self._added[batch] or len(chain) > self.longest or len(set(chain)) < len(chain):
            raise InvalidInput(
                f"A chain is {self.longest} different items at most, for people to come; got {chain}."
            )
        items = [_validate.whole(a, 0, self.n_items - 1, "item") for a in chain]
        self._focus[batch] = FULL if weights is None else checked_weights(weights, self.n_items)
        self._chains[batch] = items + [NO_ITEM] * (self.longest - len(items))

    def add(self, values: Any, walk: GainsAlong, *, batch: int, indices: Any = None) -> None:
        """One person: what each item is worth to her by itself, and how to ask on. She may come late."""
        row, items = gains_row(values, indices, self.n_items)
        self._add(np.array([0, len(items)]), items, row, walk, batch)

    def add_rows(self, rows: Any, walk: GainsAlong, *, batch: int) -> None:
        """Many people of one batch at once: one per row of a scipy CSR matrix."""
        self._add(*csr_rows(rows, self.n_items), walk, batch)

    def _add(self, starts: Ints, items: Ints, values: Floats, walk: GainsAlong, batch: int) -> None:
        _validate.whole(batch, 0, len(self.schedule) - 1, "batch")
        if self._added[batch] + len(starts) - 1 > self.schedule.sizes[batch]:
            raise InvalidInput(f"More than the {self.schedule.sizes[batch]} people of batch {batch}.")
        self._added[batch] += len(starts) - 1
        if batch >= len(self._weights):
            return  # after the last release nothing is published
        left, scales = np.zeros(len(items), dtype=np.int64), np.empty(len(starts) - 1)
        factors, room = self._factors(batch), np.empty(self.n_items, dtype=np.int64)
        clip_focused(
            self.clip.rule, starts, items, values, factors, np.empty(self.n_items), room, left, scales
        )
        parts, after, everybody = [left], walk(starts, items), np.ones(len(scales), dtype=np.bool_)
        for item in self._chain(batch):
            before, left = left, np.empty_like(left)
            joined = np.full(len(scales), item)
            said = as_floats(after(item)), everybody, factors, self.clip.ceiling, joined
            fall(starts, items, scales, *said, before, left)
            parts.append(before - left)
        with self._lock:
            self._add_up(starts, items, [*parts, left], batch)

    def _add_up(self, starts: Ints, items: Ints, parts: list[Ints], batch: int) -> None:
        """What people of one batch said to each question of its chain."""
        late, apart = batch < self.open_batch, self._open
        if batch > self.open_batch:
            apart = self.later.setdefault(batch, np.zeros_like(self._open))
        often, whose = np.full(len(starts) - 1, self._often[batch] if late else 1), np.zeros_like(starts[1:])
        for number, (part, question) in enumerate(zip(parts, self._questions(batch), strict=False)):
            if not late:
                add_weighted(starts, items, part, often, whose, apart[number : number + 1])
            elif (place := self._find(question)) is not None and self._within[place, batch]:
                add_weighted(starts, items, part, often, whose, self._sums[place : place + 1])

    def _factors(self, batch: int) -> Floats:
        """What people of a batch say of each item is multiplied by this."""
        found: Floats = self._focus[batch] / FULL
        return found

    # What sums are of.

    def _chain(self, batch: int) -> tuple[int, ...]:
        return tuple(int(item) for item in self._chains[batch] if item != NO_ITEM)

    def _questions(self, batch: int) -> list[Question]:
        """Singles, rows, and the rest if the chain is as long as chains are."""
        chain = self._chain(batch)
        found = [SINGLES, *(Question(item, chain[:place]) for place, item in enumerate(chain))]
        return [*found, Question(NO_ITEM, chain)] if len(chain) == self.longest else found

    def _key(self, question: Question) -> Ints:
        key = np.full(self.longest + 1, NO_ITEM, dtype=np.int64)
        key[0], key[1 : 1 + len(question.before)] = question.item, sorted(question.before)
        return key

    def _find(self, question: Question) -> int | None:
        if question == SINGLES:
            return 0
        same = (self._keys == self._key(question)).all(axis=1) & self._within.any(axis=1)
        return int(np.argmax(same)) if same.any() else None

    def _found_or_made(self, question: Question) -> int:
        place = self._find(question)
        if place is None:
            first, last = (1 + self._rows, None) if question.item == NO_ITEM else (1, 1 + self._rows)
            lately = (self._within[first:last] * np.arange(1, len(self.schedule) + 1)).max(axis=1)
            place = first + int(np.argmin(lately))
            self._sums[place], self._within[place], self._units[place] = 0, False, 0.0
            self._keys[place] = self._key(question)
        return place

    # Releases.

    def forget(self) -> None:
        """Drop every batch before the open one. What was paid for is not given back."""
        self._sums[:], self._within[:], self._units[:] = 0, False, 0.0

    def _close(self, number: int, people: float, since: Ints) -> None:
        """The open batch, of that many people, joins the sums; `since`: from which batch on people say of an item."""
        units = self._often[number] * people * self._factors(number) * (since <= number)
        with all_or_nothing(self.arrays):
            if self._weights.first[number] == number:
                self.forget()
            for part, question in zip(self._open, self._questions(number), strict=False):
                place = self._found_or_made(question)
                self._within[place, number] = True
                self._sums[place] += self._often[number] * part
                self._units[place] += units
            self._open[:], self._position[0] = self.later.get(number + 1, 0), number + 1
            self.later = {batch: sums for batch, sums in self.later.items() if batch > number + 1}

    def release(
        self,
        number: int,
        sigmas: tuple[float, float],
        secret: SecretRandomness,
        *,
        people: float | None = None,
        since: Ints | None = None,
        singles: int | None = None,
    ) -> dict[Question, Published]:
        """Close batch `number` and publish all sums; `sigmas`: the deviations of noise on singles, and on others.

        `people`: how many of the batch answer, about; without it, all of them. `since`: the batch from which on people
        are asked about each item; without it, the first. `singles`: how many of SHARES parts of the cost go into
        singles; without it, as `sigmas` say. The price is the same.

        If it fails, as on a full disk, the same release may be asked for again. After a crash it is published as it
        was drawn; sums that were of something else then are left out.
        """
        if singles is not None:
            _validate.whole(singles, 1, SHARES - 1, "singles")
        many = float(self.schedule.sizes[number]) if people is None else people
        there = np.zeros(self.n_items, dtype=np.int64) if since is None else since
        with self._lock:
            if number == self.open_batch < len(self._weights):
                self._close(number, many, there)
            if number != self.open_batch - 1:
                raise InvalidInput(f"Batch {self.open_batch} is to be released next; got {number}.")
            places = np.flatnonzero(self._within.any(axis=1))
            sums = self._sums[places]  # a copy: who has answered is frozen
        paid = self.ledger.bought(
            self._event(number, sigmas), f"{self.name}-{number:06d}", f"sums over {self.n_items} items"
        )
        if singles is not None and (paid.has("share") or not paid.has("sums")):
            share = Fraction(int(paid.once("share", lambda: np.array([singles]), secret)[0]), SHARES)
            sigmas = split_deviations(squared_shifts(self.n_items, self.clip), sigmas, share)
        weights = self._within[places] * (self._often * np.array(self.schedule.sizes))  # of all in a batch
        about = np.concatenate([self._keys[places], weights.sum(axis=1, keepdims=True)], axis=1)

        def draw() -> Ints:
            one = rounded_normal.rounded_normal(sums[:1], sigmas[0], secret)
            others = rounded_normal.rounded_normal(sums[1:], sigmas[1], secret)
            return np.hstack([about, np.vstack([one, others])])

        kept, width = paid.once("sums", draw, secret), about.shape[1]
        if kept.ndim != 2 or kept.shape[1] != width + self.n_items:
            raise InvalidInput(f"What was published as {paid.name!r} before is of another size.")
        drawn, found = {tuple(line[:width].tolist()): line[width:] for line in kept}, {}
        for facts, place in zip(about.tolist(), places, strict=True):
            if tuple(facts) in drawn:
                question = Question(facts[0], tuple(item for item in facts[1:-1] if item != NO_ITEM))
                units = self.clip.ticks * self._units[place]
                found[question] = Published(drawn[tuple(facts)], units, sigmas[question != SINGLES])
        return found

    def _event(self, number: int, sigmas: tuple[float, float]) -> NormalColumns:
        """What people of each batch pay: for singles, and for all rows and the rest together."""
        often = (self._often * self._within[0])[: number + 1]
        return release_cost(often, squared_shifts(self.n_items, self.clip), sigmas, self._partition)

    def _could_be(self, batch: int, sums: Ints) -> bool:
        """Whether these can be the sums of a later batch."""
        whole = sums.shape == self._open.shape and sums.dtype == np.int64
        if not (whole and self.open_batch < batch < len(self.schedule)):
            return False
        return bool(((sums >= 0) & (sums <= self.clip.largest * self.schedule.sizes[batch])).all())

    def sound(self) -> bool:
        """Whether these numbers, as read from a snapshot, can have come about."""
        sizes = np.array(self.schedule.sizes, dtype=np.int64)
        most = self.clip.largest * (self._within @ (sizes * self._often))
        return bool(
            0 <= self.open_batch <= len(self._weights)
            and ((self._added >= 0) & (self._added <= sizes)).all()
            and not self._within[:, self.open_batch :].any()
            and ((self._sums >= 0) & (self._sums <= most[:, None])).all()
            and (self._open >= 0).all()
            and (self._open <= self.clip.largest * sizes[self.open_batch]).all()
            and all(self._could_be(batch, sums) for batch, sums in self.later.items())
            and (self._units >= 0).all()
            and (self._units <= 1 + self._within @ (sizes * self._often)[:, None]).all()
            and ((self._focus >= 1) & (self._focus <= FULL)).all()
            and ((self._keys >= SINGLES.item) & (self._keys < self.n_items)).all()
            and ((self._chains >= NO_ITEM) & (self._chains < self.n_items)).all()
        )
