r"""Running sums where each type of people has a chain of its own: as running.py, with cells and counts of values.

People of one batch answer along the chain of their type, as it was when their slates were chosen. There is one running
sum for each question, whichever types are asked it; besides, what items are worth by themselves is added to the sum of
everybody, and to that of her value in each column (cells.py); and, where contexts are private, she is counted there.
Weights of batches are those of running.py. A release publishes all of it, each number at most once. A person is in the
questions of one chain, and in one value of each column, so it costs what a release without contexts costs.

The questions that people were asked longest ago make way for new ones. Batches whose people still come are kept apart,
each with its own sums; so when tastes have changed, the one that has just closed alone can stay.

Guarantee  that of the ledger's budget, counted as continuous-gaussian: docs/maths/contexts.md, Theorem X1, for sums as
           docs/maths/overlap.md, Theorem O2. A release is charged before its noise is drawn. Its singles, each column,
           and all its questions together are each drawn once, as a whole.
Assumes    one `add` per person-round, her batch and her type those of when her slate was chosen; it may come late.
Memory     with N items, chains of up to L items, T types and V values in all columns together, at most
           (1 + V + 2 T (L + 1)) N running sums; (1 + V + T (L + 1)) N for each batch that is kept apart; and what each
           type was asked, T (L + 1) for each batch that is in the sums. As chains are shared, it is mostly far less.
Excludes   timing, and the memory of the process: sums without noise.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from diminuendo import _validate
from diminuendo._snapshots import taken
from diminuendo._validate import as_floats
from diminuendo.errors import InvalidInput, refuse_copies
from diminuendo.privacy.ledger import Ledger, Paid
from diminuendo.randomness import rounded_normal
from diminuendo.randomness.words import SecretRandomness
from diminuendo.sums.batch import csr_rows
from diminuendo.sums.chains.asked import AskedByType, asked_along, asked_by_type
from diminuendo.sums.chains.cells import Deviations, SharedFocus, ValueColumn, checked_shares, deviations
from diminuendo.sums.chains.cost import cost_of_one, partition, release_cost, squared_shifts
from diminuendo.sums.chains.focus import FULL, checked_weights, clip_focused
from diminuendo.sums.chains.joined import BatchSums, JoinedSums, no_sums, read_sums
from diminuendo.sums.chains.people.frozen import add_weighted, fall
from diminuendo.sums.chains.running import NO_ITEM, Question
from diminuendo.sums.chains.weights import RunningWeights
from diminuendo.sums.clip import Clip, gains_row
from diminuendo.sums.schedule import Schedule
from diminuendo.types import Floats, Ints

MOST_NUMBERS = 1 << 27
"""The most running sums, with those of one batch apart: a gigabyte. More are refused."""

GainsOfEach = Callable[[Ints, Ints], Callable[[Ints], Floats]]
"""Given where each person's entries begin and of which items they are: the gains of all entries once each person's own
item joins, NO_ITEM where none does."""


class Drawn(NamedTuple):
    """All of one release, as published."""

    singles: Ints
    cells: list[Ints | None]
    """(values, items) for each column; None where it has no share."""
    counts: list[Ints | None]
    """In ticks, for each value of each column."""
    questions: dict[Question, Ints]
    """From the one that people were asked longest ago to the last."""
    deviations: Deviations


class RunningByType:
    """The sums, what they are of, and which batches are in them.

    `longest`: how many items a chain has at most. `columns`: what is known of people of each type. `counted`: whether
    people are counted by value, which is for private contexts. `weights`: as from `running_weights`.
    """

    __getstate__ = refuse_copies

    def __init__(
        self,
        n_items: int,
        longest: int,
        columns: Sequence[ValueColumn],
        *,
        counted: bool,
        schedule: Schedule,
        weights: RunningWeights,
        ledger: Ledger,
        clip: Clip | None = None,
        name: str = "people",
    ) -> None:
        self.n_items = _validate.positive_int(n_items, "n_items")
        self.longest = _validate.whole(longest, 0, self.n_items, "longest")
        self.columns, self.n_types = tuple(columns), len(columns[0].of_type)
        self.schedule, self.ledger, self.name = schedule, ledger, name
        self.clip = Clip() if clip is None else clip
        if self.clip.norm != "l2" or self.clip.signed:
            raise InvalidInput("People contribute gains: an l2 clip of entries that are not negative.")
        weights.check(schedule, self.clip)
        self._firsts = 1 + np.cumsum([0, *(column.size for column in columns)])  # rows of each column's cells
        self._fixed = int(self._firsts[-1])  # questions come behind them
        many = (2 * self._fixed + 3 * self.n_types * (longest + 1)) * n_items
        if many > MOST_NUMBERS:
            raise InvalidInput(
                f"Sums for {self.n_types:,} types, chains of {longest} items and {n_items:,} items are up to {many:,} "
                f"numbers, and at most {MOST_NUMBERS:,} are allowed. Join values of a column, or leave a column out."
            )
        self._weights, batches = weights, len(schedule)
        self._often = np.append(weights.often, np.zeros(batches - len(weights), dtype=np.int64))
        self._lock = threading.RLock()  # people answer while a release is made
        self._position: Ints = np.zeros(1, dtype=np.int64)  # the batch that is open
        self._added: Ints = np.zeros(batches, dtype=np.int64)
        self._focus = np.full(
            (batches, n_items), FULL, dtype=np.int16
        )  # weights of items for people of a batch
        self.arrays = (self._position, self._added, self._focus)
        self._room = 2 * self.n_types * longest, 2 * self.n_types  # for rows, and for rests
        self._sums = no_sums(batches, self._fixed, self._fixed - 1 if counted else 0, n_items)
        self._apart: dict[int, BatchSums] = {}  # of batches that are open, or come later
        self._asked: dict[int, AskedByType] = {}
        self._nothing = asked_by_type(np.full((self.n_types, longest), NO_ITEM, dtype=np.int64), n_items)
        ledger.hold(name)
        self._partition = partition(name, schedule)

    def __repr__(self) -> str:
        return f"<RunningByType, {self.n_types} types, {self.n_items} items, batch {self.open_batch} open>"

    @property
    def open_batch(self) -> int:
        """The batch that is published next: its sums are kept apart."""
        return int(self._position[0])

    # People come.

    def ask(self, chains: Ints, *, batch: int, weights: Ints | None = None) -> None:
        """What people of a batch are asked about, in what focus: to be said before the first of them comes.

        `chains`: (types, longest), the items of each type's chain in order, NO_ITEM after the last.
        """
        each = np.asarray(chains)
        if self._added[batch] or each.shape != (self.n_types, self.longest):
            raise InvalidInput(
                f"There is a chain of {self.longest} items at most for each of {self.n_types} types, for people to "
                f"come; got shape {each.shape}."
            )
        asked = asked_by_type(each, self.n_items)
        self._focus[batch] = FULL if weights is None else checked_weights(weights, self.n_items)
        self._asked[batch] = asked

    def add(self, values: Any, walk: GainsOfEach, *, batch: int, kind: int, indices: Any = None) -> None:
        """One person of a type: what each item is worth to her by itself, and how to ask on. She may come late."""
        row, items = gains_row(values, indices, self.n_items)
        self._add(np.array([0, len(items)]), items, row, np.array([kind]), walk, batch)

    def add_rows(self, rows: Any, walk: GainsOfEach, *, batch: int, kinds: Ints) -> None:
        """Many people of one batch at once: one per row of a scipy CSR matrix, and their types."""
        self._add(*csr_rows(rows, self.n_items), np.asarray(kinds), walk, batch)

    def _add(
        self, starts: Ints, items: Ints, values: Floats, kinds: Ints, walk: GainsOfEach, batch: int
    ) -> None:
        _validate.whole(batch, 0, len(self.schedule) - 1, "batch")
        people = len(starts) - 1
        if kinds.shape != (people,) or ((kinds < 0) | (kinds >= self.n_types)).any():
            raise InvalidInput(f"Types are from 0 to {self.n_types - 1}, one for each of {people} people.")
        if self._added[batch] + people > self.schedule.sizes[batch]:
            raise InvalidInput(f"More than the {self.schedule.sizes[batch]} people of batch {batch}.")
        self._added[batch] += people
        if batch >= len(self._weights):
            return  # after the last release nothing is published
        left, scales = np.zeros(len(items), dtype=np.int64), np.empty(people)
        factors, room = self._factors(batch), np.empty(self.n_items, dtype=np.int64)
        clip_focused(
            self.clip.rule, starts, items, values, factors, np.empty(self.n_items), room, left, scales
        )
        asked, singles, after = self._asked_in(batch), left, walk(starts, items)
        chain, parts = asked.of_type[kinds], list[tuple[Ints, Ints]]()
        for step in range(self.longest):
            joined = asked.chains[chain, step]
            goes_on = joined != NO_ITEM
            if not goes_on.any():
                break
            before, left = left, left.copy()
            said = as_floats(after(joined)), goes_on, factors, self.clip.ceiling, joined
            fall(starts, items, scales, *said, before, left)
            parts.append((before - left, asked.steps[chain, step]))
        parts.append((left, asked.steps[chain, self.longest]))
        with self._lock:
            self._add_up(starts, items, singles, parts, kinds, batch)

    def _add_up(
        self,
        starts: Ints,
        items: Ints,
        singles: Ints,
        parts: list[tuple[Ints, Ints]],
        kinds: Ints,
        batch: int,
    ) -> None:
        """What people of one batch said: singles, and to each question of hers; kept apart, or, late, in the sums."""
        late, sums = batch < self.open_batch, self._sums
        if late and not sums.there[batch]:
            return
        rows, answers, counts = (sums.rows, sums.asked, sums.counts) if late else self._sums_apart(batch)
        often = np.full(len(kinds), self._often[batch] if late else 1)
        add_weighted(starts, items, singles, often, np.zeros_like(kinds), rows)
        for first, (_, of_type) in zip(self._firsts.tolist(), self.columns, strict=False):
            values = of_type[kinds]
            known = values >= 0
            whose = np.where(known, first + values, -1)
            add_weighted(starts, items, singles, often, whose, rows)
            if len(counts):
                np.add.at(counts, whose[known] - 1, self.clip.limit * often[known])
        asked = self._asked_in(batch).questions
        for part, numbers in parts:
            places = numbers
            if late:
                places = np.array(
                    [-1 if each < 0 else sums.place(asked[each], batch) for each in numbers.tolist()]
                )
            add_weighted(starts, items, part, often, places, answers)

    def _sums_apart(self, batch: int) -> BatchSums:
        """The sums of a batch that is not published yet."""
        if batch not in self._apart:
            asked = np.zeros((len(self._asked_in(batch).questions), self.n_items), dtype=np.int64)
            self._apart[batch] = BatchSums(
                np.zeros_like(self._sums.rows), asked, np.zeros_like(self._sums.counts)
            )
        return self._apart[batch]

    def _asked_in(self, batch: int) -> AskedByType:
        return self._asked.get(batch, self._nothing)

    def _factors(self, batch: int) -> Floats:
        """What people of a batch say of each item is multiplied by this."""
        found: Floats = self._focus[batch] / FULL
        return found

    # Releases.

    def forget(self) -> None:
        """Drop every batch before the open one. What was paid for is not given back."""
        with self._lock:
            self._sums, now = self._none(), self.open_batch
            self._asked = {batch: asked for batch, asked in self._asked.items() if batch >= now}

    def _none(self) -> JoinedSums:
        return no_sums(len(self.schedule), self._fixed, len(self._sums.counts), self.n_items)

    def _close(self, number: int) -> None:
        """The open batch joins the sums."""
        before = self._none() if self._weights.first[number] == number else self._sums
        mine, asked, often = self._sums_apart(number), self._asked_in(number), int(self._often[number])
        if not self._sums.there[number]:  # else it was interrupted between these two
            self._sums = before.joined_by(number, mine, asked, often, self._room)
        together, self._position[0] = self._sums, number + 1
        self._apart = {batch: apart for batch, apart in self._apart.items() if batch > number}
        self._asked = {
            batch: each for batch, each in self._asked.items() if batch > number or together.there[batch]
        }

    def release(
        self, number: int, sigmas: tuple[float, float], focus: SharedFocus, secret: SecretRandomness
    ) -> Drawn:
        """Close batch `number` and publish all sums, at the price of a release with deviations `sigmas`.

        `focus`: how the cost is shared out; weights of items are those of batches.

        If it fails, as on a full disk, the same release may be asked for again. After a crash it is published as it
        was drawn; questions that other batches are in than then are left out.
        """
        sizes = [column.size for column in self.columns]
        focus = checked_shares(focus, self.n_items, len(sizes))
        with self._lock:
            if number == self.open_batch < len(self._weights):
                self._close(number)
            if number != self.open_batch - 1:
                raise InvalidInput(f"Batch {self.open_batch} is to be released next; got {number}.")
            sums = self._sums
            rows, answers, counts = (
                sums.rows.copy(),
                sums.asked.copy(),
                sums.counts.copy(),
            )  # who has answered is frozen
        shifts = squared_shifts(self.n_items, self.clip)
        event = release_cost(self.weights[: number + 1], shifts, sigmas, self._partition)
        values = "".join(f", by {size} values" for size in sizes)
        note = f"sums over {self.n_items} items{values}"
        paid = self.ledger.bought(event, f"{self.name}-{number:06d}", note)
        apart = deviations(focus.kept(paid, secret), cost_of_one(shifts, sigmas), self.clip, sizes, shifts[1])

        def drawn(part: str, total: Ints, sigma: float) -> Ints | None:
            """With noise; None where it has no share."""
            if np.isinf(sigma):
                return None
            found = paid.once(
                part, lambda: rounded_normal.rounded_normal(total, sigma, secret).ravel(), secret
            )
            return found.reshape(total.shape)

        singles = drawn("singles", rows[0], apart.singles)
        cells, counted = list[Ints | None](), list[Ints | None]()
        for column, (low, high) in enumerate(zip(self._firsts[:-1], self._firsts[1:], strict=True)):
            cells.append(drawn(f"cells{column:04d}", rows[low:high], apart.cells[column]))
            here = counts[low - 1 : high - 1]
            counted.append(drawn(f"counts{column:04d}", here, apart.counts[column]) if len(here) else None)
        if singles is None:
            raise InvalidInput("A release of sums has a share for singles.")
        questions = self._drawn_questions(paid, answers, apart.others, secret)
        return Drawn(singles, cells, counted, questions, apart)

    def _drawn_questions(
        self, paid: Paid, sums: Ints, sigma: float, secret: SecretRandomness
    ) -> dict[Question, Ints]:
        """All questions, drawn together, each with what it is about: its set, and how much the batches in it weigh."""
        together = self._sums
        weights = together.within @ (self._often * np.array(self.schedule.sizes))
        about = np.hstack([together.keys(self.longest), weights[:, None]])
        kept = paid.once(
            "questions",
            lambda: np.hstack([about, rounded_normal.rounded_normal(sums, sigma, secret)]),
            secret,
        )
        width = about.shape[1]
        if kept.ndim != 2 or kept.shape[1] != width + self.n_items:
            raise InvalidInput(f"What was published as {paid.name!r} before is of another size.")
        drawn = {tuple(line[:width].tolist()): line[width:] for line in kept}
        facts = zip(map(tuple, about.tolist()), together.places, strict=True)
        return {question: drawn[fact] for fact, question in facts if fact in drawn}

    @property
    def weights(self) -> Ints:
        """How often people of each batch are in singles, cells and counts."""
        return self._often * self._sums.there

    def units(
        self, questions: Sequence[Question], people: Callable[[int], Floats], everybody: Floats, since: Ints
    ) -> tuple[Floats, Floats]:
        """What people can have added to each entry at most: of singles, (items), and of questions, (questions, items).

        `people`: how many of each type answer in a batch; `everybody`: how many in all, for each batch; `since`: the
        batch from which on people say of an item.
        """
        sums = self._sums
        times = np.zeros((1 + len(sums.places), len(self.schedule)))
        each = np.zeros((len(self.schedule), self.n_items))
        for batch in np.flatnonzero(sums.there).tolist():
            asked, types = self._asked_in(batch), people(batch)
            each[batch] = self.clip.ticks * self._often[batch] * self._factors(batch) * (since <= batch)
            times[0, batch] = everybody[batch]
            for question, many in zip(asked.questions, asked.people_of(types).tolist(), strict=True):
                if (place := sums.place(question, batch)) >= 0:
                    times[1 + place, batch] = many
        found: Floats = times @ each
        return found[0], found[[1 + sums.places[question] for question in questions]]

    # What a snapshot holds besides `arrays`: what has no fixed size.

    def extra(self) -> dict[str, NDArray[Any]]:
        """Sums, what people of batches are asked, and what was said in those that are not published yet."""
        found = self._sums.written(self.longest)
        for batch, asked in sorted(self._asked.items()):
            found |= {f"chains.{batch}": asked.chains, f"types.{batch}": asked.of_type}
        for batch, apart in sorted(self._apart.items()):
            found |= {f"apart.{batch}.{name}": part for name, part in apart._asdict().items()}
        return found

    def take_extra(self, found: dict[str, NDArray[Any]]) -> None:
        """Go on from what `extra` wrote; refuse what is of another size."""
        self._sums = read_sums(found, self._sums, self.longest)
        chains, types = taken(found, "chains"), taken(found, "types")
        apart = taken(found, "apart")
        if chains.keys() != types.keys() or found:
            raise _altered()
        self._asked = {int(batch): self._checked(chains[batch], types[batch]) for batch in chains}
        for batch in {int(name.split(".")[0]) for name in apart}:
            like = self._sums_apart(batch)
            mine = taken(apart, str(batch))
            if any(
                name not in mine or (mine[name].shape, mine[name].dtype) != (part.shape, part.dtype)
                for name, part in like._asdict().items()
            ):
                raise _altered()
            self._apart[batch] = BatchSums(**{name: mine[name] for name in like._fields})

    def _checked(self, chains: Ints, of_type: Ints) -> AskedByType:
        """What people of a batch are asked, as read from a snapshot."""
        whole = chains.dtype == np.int64 and of_type.dtype == np.int32
        if not whole or chains.shape != (len(chains), self.longest) or of_type.shape != (self.n_types,):
            raise _altered()
        try:
            return asked_along(chains, of_type, self.n_items)
        except InvalidInput as error:
            raise _altered() from error

    def sound(self) -> bool:
        """Whether these numbers, as read from a snapshot, can have come about."""
        sizes, sums = np.array(self.schedule.sizes, dtype=np.int64), self._sums
        each = self.clip.largest * sizes * self._often
        singles, questions = each @ sums.there, sums.within @ each
        keys = sums.keys(self.longest)
        return bool(
            0 <= self.open_batch <= len(self._weights)
            and ((self._added >= 0) & (self._added <= sizes)).all()
            and ((self._focus >= 1) & (self._focus <= FULL)).all()
            and not sums.there[self.open_batch :].any()
            and not (sums.within & ~sums.there).any()
            and ((sums.rows >= 0) & (sums.rows <= singles)).all()
            and ((sums.asked >= 0) & (sums.asked <= questions[:, None])).all()
            and ((sums.counts >= 0) & (sums.counts <= singles)).all()
            and ((keys >= NO_ITEM) & (keys < self.n_items)).all()
            and all(0 <= batch < len(self.schedule) for batch in self._asked)
            and all(
                self.open_batch <= batch < len(self.schedule)
                and all(((part >= 0) & (part <= self.clip.largest * sizes[batch])).all() for part in apart)
                for batch, apart in self._apart.items()
            )
        )


def _altered() -> InvalidInput:
    return InvalidInput("The snapshot holds sums that could not have come about; it was altered.")
