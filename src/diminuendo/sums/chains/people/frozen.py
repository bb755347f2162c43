"""The people of one release as they were when it began, and what they say to its questions: whole numbers that add up.

Whoever answers later is for the next release. People lie in groups, each a slice of arrays that may hold others too, so
nothing of what they said is copied; what is left of a person along a chain takes 16 bits an entry, where ticks fit. A
question goes to those whom an item moves: what the others have left stays as it is. Noise and the ledger know nothing
of groups (release.py, around.py, cells.py): any way to part people gives the same sums, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from diminuendo._numba import kernel
from diminuendo.errors import DiminuendoError, InvalidInput, refuse_copies
from diminuendo.sums.chains.focus import clip_focused
from diminuendo.sums.chains.people.answers import Answers, Group, Moved
from diminuendo.sums.chains.people.around_sums import EASE, add_around
from diminuendo.sums.clip import Clip
from diminuendo.types import EMPTY_SLOT, Floats, Ints


class PeopleLost(DiminuendoError):
    """Some of those who were asked are not there any more: a chain that was begun ends here."""


class AskedPeople(Protocol):
    """The people of one release, wherever they are. Everything that comes back is a sum over people, without noise."""

    def sums(self, whose: Ints, many: int) -> Ints:
        """(many, items): what is left of everybody, at first the singles; `whose`: the row of each type, -1: none."""
        ...

    def singles(self, whose: Ints, many: int) -> Ints:
        """As `sums`, and as it was at first, whatever has joined since."""
        ...

    def row(self, joining: Ints, questions: Ints, many: int) -> Ints:
        """(many, items): what is lost as an item joins the chain of each type, in the row of its question."""
        ...

    def take(self, joining: Ints) -> None:
        """These items, which `row` was asked about, have joined."""
        ...

    def around(self, slate: Ints) -> Ints:
        """(1 + slots, items): what is said around a slate."""
        ...

    def counts(self, of_type: Ints, size: int, unit: int) -> Ints:
        """How often each value is there, by weights, times `unit`; `of_type`: the value of each type, -1: none."""
        ...


class FrozenPeople:
    """People of one release in this process."""

    __getstate__ = refuse_copies

    def __init__(self, groups: Iterable[Group], clip: Clip, factors: Floats) -> None:
        self._groups = [group for group in groups if len(group.people.weights)]
        self._clip, self._factors, self._n_items = clip, factors, len(factors)
        self._clipped: list[tuple[NDArray[Any], Floats]] | None = (
            None  # what is left, and scales, of each group
        )
        self._begun: dict[bytes, tuple[Ints, list[tuple[int, Moved, NDArray[Any]]]]] = {}
        self._joined = False

    def __repr__(self) -> str:
        return f"<FrozenPeople, {self._n_items} items>"

    @property
    def groups(self) -> Sequence[Group]:
        """Everybody, in order."""
        return self._groups

    def __len__(self) -> int:
        """How many: as private as whether somebody answered."""
        return sum(len(group.people.weights) for group in self._groups)

    def _left(self) -> list[tuple[NDArray[Any], Floats]]:
        if self._clipped is None:
            self._clipped = [clipped(group.people, self._clip, self._factors) for group in self._groups]
        return self._clipped

    def sums(self, whose: Ints, many: int) -> Ints:
        """(many, items): what is left of everybody; at first the singles."""
        total = np.zeros((many, self._n_items), dtype=np.int64)
        for group, (left, _) in zip(self._groups, self._left(), strict=True):
            add_left(group.people, left, whose, total)
        return total

    def singles(self, whose: Ints, many: int) -> Ints:
        """As `sums`, and as it was at first."""
        if not self._joined:
            return self.sums(whose, many)
        total = np.zeros((many, self._n_items), dtype=np.int64)
        for group in self._groups:
            left, _ = clipped(group.people, self._clip, self._factors)
            add_left(group.people, left, whose, total)
        return total

    def row(
        self, joining: Ints, questions: Ints, many: int, said: tuple[Floats, NDArray[np.bool_]] | None = None
    ) -> Ints:
        """(many, items): what is lost as an item joins the chain of each type.

        Asked again before it is taken, it is the same answer, whatever people would say now. `said`: what entries
        would add, and of whom that is known, where people cannot be asked.
        """
        key = joining.tobytes()
        if key not in self._begun:
            total, found, first, entry = np.zeros((many, self._n_items), dtype=np.int64), [], 0, 0
            for number, (group, (left, scales)) in enumerate(zip(self._groups, self._left(), strict=True)):
                people = group.people
                if said is not None:
                    gains, asked = said
                    asked = asked[first : first + len(people.types)]
                    here = _given(people, entry, gains, asked, joining)
                elif group.walk is not None:
                    here = group.walk.moved_by(joining, people.types)
                else:
                    raise InvalidInput("Nobody knows what these people would say; give what items add.")
                for moved in here:
                    after = self._fallen(people, left, scales, moved, joining, questions, total)
                    found.append((number, moved._replace(gains=moved.gains[:0]), after))
                first, entry = first + len(people.types), entry + len(left)
            self._begun[key] = total, found
        return self._begun[key][0]

    def _fallen(
        self,
        people: Answers,
        left: NDArray[Any],
        scales: Floats,
        moved: Moved,
        joining: Ints,
        questions: Ints,
        total: Ints,
    ) -> NDArray[Any]:
        """What those who are moved have left, entry by entry; what they lose is added to the total."""
        who = moved.who
        starts, items, before = _of_some(people, who, left)
        after, everybody = np.empty_like(before), np.ones(len(who), dtype=np.bool_)
        types, weights = people.types[who], people.weights[who]
        said = moved.gains, everybody, self._factors, self._clip.ceiling, joining[types]
        fall(starts, items, scales[who], *said, before, after)
        whose = questions[types]
        add_losses(starts, items, everybody, before, after, weights, whose, total)
        return after

    def take(self, joining: Ints) -> None:
        """These items have joined: what people lost by them is gone."""
        _, found = self._begun.get(
            joining.tobytes(), (None, [])
        )  # none: they had joined before this was interrupted
        for number, moved, after in found:
            group, (left, _) = self._groups[number], self._left()[number]
            put_back(group.people.starts, moved.who, after, left)
            if group.walk is not None:
                group.walk.join(moved.further)
        self._begun, self._joined = {}, True

    def around(self, slate: Ints, gains: Iterable[tuple[int, Floats]] | None = None) -> Ints:
        """(1 + slots, items): what is said around a slate. `gains`: of everybody, where people cannot be asked."""
        shape = len(slate) + 1, self._n_items
        total, place = np.zeros(shape, dtype=np.int64), np.full(self._n_items, -1, dtype=np.int64)
        shown = np.flatnonzero(slate != EMPTY_SLOT)
        place[slate[shown]] = shown
        if gains is not None:
            self._add_around(self.flat(), gains, place, total, {len(total)})
            return total
        for people, walk in self._groups:
            if walk is None:
                raise InvalidInput("Nobody knows what these people would say; give what items add.")
            for who, found in walk.around(slate.tolist()):
                self._add_around(_only(people, who), [(0, found)], place, total, {1, len(total)})
        return total

    def _add_around(
        self,
        people: Answers,
        gains: Iterable[tuple[int, Floats]],
        place: Ints,
        total: Ints,
        parts: set[int],
    ) -> None:
        most = len(total) * int(np.diff(people.starts).max(initial=0))
        room = np.empty(most), np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
        done, starts, ease = 0, people.starts, EASE * self._clip.bound
        for first, found in gains:
            # Somebody who says nothing may be looked at again; nobody else.
            if not 0 <= first < len(starts) or starts[first] != starts[done]:
                raise InvalidInput("People come one after the other, each once.")
            if found.ndim != 2 or len(found) not in parts:
                raise InvalidInput(
                    f"Expected {len(total)} parts, the whole slate first; got shape {found.shape}."
                )
            done = add_around(
                self._clip.rule, people, first, found, self._factors, place, ease, *room, total.reshape(-1)
            )

    def counts(self, of_type: Ints, size: int, unit: int) -> Ints:
        """How often each value is there, by weights, times `unit`."""
        total = np.zeros(size, dtype=np.int64)
        for people, _ in self._groups:
            count_values(of_type[people.types], people.weights, unit, total)
        return total

    def flat(self) -> Answers:
        """Everybody in one group; without copying where there is one."""
        if len(self._groups) == 1:
            return self._groups[0].people
        everybody = [group.people for group in self._groups]
        none = np.empty(0, dtype=np.int64)
        lengths = np.concatenate([none, *(np.diff(people.starts) for people in everybody)])
        entries = [slice(people.starts[0], people.starts[-1]) for people in everybody]
        return Answers(
            np.concatenate([[0], np.cumsum(lengths)]),
            np.concatenate([none, *(p.items[here] for p, here in zip(everybody, entries, strict=True))]),
            np.concatenate(
                [none * 0.0, *(p.values[here] for p, here in zip(everybody, entries, strict=True))]
            ),
            np.concatenate([none, *(people.weights for people in everybody)]),
            np.concatenate([none, *(people.types for people in everybody)]),
        )


def _given(
    people: Answers, first: int, gains: Floats, asked: NDArray[np.bool_], joining: Ints
) -> Iterator[Moved]:
    """As a walk would say it, of what somebody gave for everybody; this group begins with entry number `first`."""
    who = np.flatnonzero(asked & (joining != EMPTY_SLOT)[people.types])
    lengths = np.diff(people.starts)
    mine = np.zeros(len(lengths), dtype=np.bool_)
    mine[who] = True
    here = gains[first : first + int(people.starts[-1] - people.starts[0])]
    yield Moved(who, here[np.repeat(mine, lengths)], None)


def clipped(people: Answers, clip: Clip, factors: Floats) -> tuple[NDArray[Any], Floats]:
    """What people say, times the factors of their items, clipped to ticks; and by what each was multiplied."""
    kind = np.int16 if clip.largest <= np.iinfo(np.int16).max else np.int32
    size, longest = people.starts[-1] - people.starts[0], int(np.diff(people.starts).max(initial=0))
    ticks, scales = np.zeros(size, dtype=kind), np.empty(len(people.weights))
    room = np.empty(longest), np.empty(longest, dtype=np.int64)
    clip_focused(clip.rule, people.starts, people.items, people.values, factors, *room, ticks, scales)
    return ticks, scales


def _only(people: Answers, who: Ints) -> Answers:
    """Some people, side by side."""
    starts, items, values = _of_some(people, who, people.values[people.starts[0] : people.starts[-1]])
    return Answers(starts, items, values, people.weights[who], people.types[who])


def _of_some(people: Answers, who: Ints, left: NDArray[Any]) -> tuple[Ints, NDArray[Any], NDArray[Any]]:
    """The entries of some people, side by side: where each begins, items, and what is left."""
    starts = np.concatenate([[0], np.cumsum(people.starts[who + 1] - people.starts[who])])
    items, before = np.empty(starts[-1], dtype=people.items.dtype), np.empty(starts[-1], dtype=left.dtype)
    side_by_side(people.starts, people.items, who, left, items, before)
    return starts, items, before


@kernel
def side_by_side(
    starts: Ints, items: NDArray[Any], who: Ints, left: NDArray[Any], out: NDArray[Any], before: NDArray[Any]
) -> None:
    """The entries of some people, one after the other."""
    base, at = starts[0], 0
    for number in range(len(who)):
        for j in range(starts[who[number]], starts[who[number] + 1]):
            out[at], before[at] = items[j], left[j - base]
            at += 1


@kernel
def put_back(starts: Ints, who: Ints, after: NDArray[Any], left: NDArray[Any]) -> None:
    """From now on these people have left what is in `after`, side by side."""
    base, at = starts[0], 0
    for number in range(len(who)):
        for j in range(starts[who[number]], starts[who[number] + 1]):
            left[j - base] = after[at]
            at += 1


@kernel
def add_left(people: Answers, ticks: NDArray[Any], whose: Ints, total: Ints) -> None:
    """Add everybody's ticks to the row of the total that is her type's, if any, each as often as her weight says."""
    starts, items, base = people.starts, people.items, people.starts[0]
    for person in range(len(starts) - 1):
        row = whose[people.types[person]]
        if row >= 0:
            weight = np.int64(people.weights[person])
            for j in range(starts[person], starts[person + 1]):
                total[row, items[j]] += weight * ticks[j - base]


@kernel
def add_losses(
    starts: Ints,
    items: NDArray[Any],
    asked: NDArray[np.bool_],
    left: NDArray[Any],
    after: NDArray[Any],
    weights: NDArray[Any],
    whose: Ints,
    total: Ints,
) -> None:
    """Add to their rows of the total what those who are asked lose, each as often as her weight says."""
    for person in range(len(starts) - 1):
        if asked[person]:
            weight = np.int64(weights[person])
            for j in range(starts[person], starts[person + 1]):
                total[whose[person], items[j]] += weight * (left[j] - after[j])


@kernel
def fall(
    starts: Ints,
    items: NDArray[Any],
    scales: Floats,
    gains: Floats,
    asked: NDArray[np.bool_],
    factors: Floats,
    ceiling: float,
    joined: Ints,
    left: NDArray[Any],
    after: NDArray[Any],
) -> None:
    """What those who are asked have left after an item has joined, each person's own of `joined`.

    What is left never rises and never falls below 0, so all losses together are at most what was there.
    """
    for person in range(len(starts) - 1):
        if asked[person]:
            for j in range(starts[person], starts[person + 1]):
                if items[j] == joined[person] or not gains[j] > 0.0:
                    after[j] = 0
                else:
                    gain = factors[items[j]] * min(gains[j], ceiling)
                    after[j] = min(left[j], int(scales[person] * gain))


@kernel
def count_values(values: Ints, weights: NDArray[Any], unit: int, total: Ints) -> None:
    """Add `unit` for each person, as often as her weight says, to her value, if it is known."""
    for person in range(len(values)):
        if values[person] >= 0:
            total[values[person]] += unit * np.int64(weights[person])
