r"""People who are kept, and asked again at every release, with weights.

A batch of people may enter many releases, if the squares of its weights are accounted for: release b multiplies the
people of batch j by a whole number W_bj, and each batch pays for itself (`Columns` events; the ledger refuses the
release that would take any batch over the budget). Weights in proportion to t_j / t_b let everybody be asked again at
every release at a bounded price, and averages over releases then lose nothing however many there are (`power_weights`).

In one release each person answers one *chain* of questions: first how much each item is worth to her by itself
(`singles`), then, as items are picked one after the other, what every item loses when the next one joins (`row`). The
rows of one person come out of her singles, entry by entry, so all rows together are no longer than her singles, for
any function whatever and any length of the chain (docs/maths/sums.md, Theorem S4): a running minimum sees to it.

Guarantee  rho-zCDP if the ledger's budget is rho: Theorem S4. The event of a release is charged before its first noise.
Assumes    one `add` per person-round, its batch the one open when her slate was chosen; it may come late. Each release
           number is one chain. Excludes timing and the memory of the process, which holds what people said.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from diminuendo import _validate
from diminuendo._jit import kernel
from diminuendo.errors import InvalidInput
from diminuendo.privacy.accountants import rounded_up
from diminuendo.privacy.events import Columns
from diminuendo.privacy.ledger import Ledger
from diminuendo.privacy.releases import Releases
from diminuendo.randomness import noise
from diminuendo.randomness.coins import SecretRandomness
from diminuendo.sums.clip import Clip, Rule, as_floats, clip_row, sparse_row
from diminuendo.sums.private_sum import ROOM
from diminuendo.sums.schedule import Schedule
from diminuendo.types import Floats, Ints

UNIT = 4096
"""The whole number that stands for a weight of 1."""


def power_weights(schedule: Schedule) -> Ints:
    """(releases, batches): the weights of batches in releases, t_j / t_b, squares adding up to UNIT^2 a batch."""
    ends = np.array(schedule.ends, dtype=np.float64)
    weights = np.tril(ends[None, :] / ends[:, None])
    weights /= np.sqrt((weights**2).sum(axis=0))
    return np.floor(UNIT * weights).astype(np.int64)


def gls(rates: Sequence[Floats], deviations: Sequence[float]) -> tuple[Floats, float]:
    """The average of independent measurements of one thing, each counting by its precision; and its deviation."""
    precision = np.array(deviations, dtype=np.float64) ** -2
    mean = (precision[:, None] * np.asarray(rates)).sum(axis=0) / precision.sum()
    return mean, float(precision.sum() ** -0.5)


class StoredPeople:
    """People's contributions, as whole ticks, batch by batch."""

    def __init__(
        self,
        n_items: int,
        *,
        rounds: int,
        clip: Clip | None = None,
        kept: Releases | None = None,
        name: str = "people",
    ) -> None:
        self.n_items = _validate.positive_int(n_items, "n_items")
        self.rounds = _validate.positive_int(rounds, "rounds")
        self.clip = Clip() if clip is None else clip
        if self.clip.norm != "l2" or self.clip.signed:
            raise InvalidInput("Stored people contribute gains: an l2 clip of entries that are not negative.")
        if self.rounds * self.clip.largest * UNIT > ROOM:
            raise InvalidInput(
                f"{rounds:,} people of {self.clip.ticks} ticks could overflow 64 bits; take fewer ticks."
            )
        self._kept, self._name = Releases() if kept is None else kept, name
        self._rows: list[tuple[int, Ints, Ints, float]] = []

    def __repr__(self) -> str:
        return f"<StoredPeople, {self.n_items} items>"

    def add(self, values: Any, indices: Any = None, *, batch: int) -> None:
        """One person: what each item is worth to her by itself. May come late, but counts for its own batch."""
        if indices is None:
            row = as_floats(values)
            if row.shape != (self.n_items,):
                raise InvalidInput(f"Expected a vector of {self.n_items} numbers; got shape {row.shape}.")
            places = np.flatnonzero(row > 0)
            row = row[places]
        else:
            row, places = sparse_row(values, indices, self.n_items)
        if isinstance(batch, bool) or not isinstance(batch, (int, np.integer)) or batch < 0:
            raise InvalidInput(f"batch must be a whole number from 0 on; got {batch!r}.")
        if len(self._rows) >= self.rounds:
            raise InvalidInput(f"More than the {self.rounds} people that there was room for.")
        ticks = np.zeros(len(row), dtype=np.int64)
        scale = float(_clipped(self.clip.rule(), row, ticks))
        self._rows.append((int(batch), places.astype(np.int64), ticks, scale))

    def release(
        self, number: int, weights: Sequence[int], sigmas: tuple[float, float], ledger: Ledger
    ) -> Chain:
        """Begin release `number`: people of batch j enter with weights[j]. Charged here, before anything is drawn.

        `sigmas` are the deviations of the noise on the singles and on every row. Going on after a crash with the
        same number and weights is not charged again, and what was drawn before is not drawn again.
        """
        whole = np.array(weights, dtype=np.int64)
        if whole.ndim != 1 or len(whole) == 0 or whole.min() < 0 or whole.max() > UNIT:
            raise InvalidInput(
                f"weights must be whole numbers from 0 to {UNIT}, one per batch; got {weights!r}."
            )
        singles, rows = (Fraction(_validate.positive_float(sigma, "sigma")) for sigma in sigmas)
        each = Fraction(self.clip.limit**2) * (1 / singles**2 + 1 / rows**2)
        event = Columns(0, tuple(rounded_up(int(weight) ** 2 * each) for weight in whole))
        note = f"{self._name}-{number:06d}"
        if (before := ledger.find(note)) is None:
            ledger.charge(event, note)
        elif before.event != event:
            raise InvalidInput(f"{note} was begun with other weights or noise; a release happens once.")
        return Chain(self, note, whole, (float(singles), float(rows)))


class Chain:
    """One release: singles first, then a row for each item that joins."""

    def __init__(self, people: StoredPeople, note: str, weights: Ints, sigmas: tuple[float, float]) -> None:
        present = [row for row in people._rows if row[0] < len(weights)]
        self._people, self._note, self._sigmas = people, note, sigmas
        self._weights = np.array([weights[batch] for batch, *_ in present], dtype=np.int64)
        self._scales = np.array([scale for *_, scale in present])
        lengths = [len(places) for _, places, *_ in present]
        self.starts: Ints = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        """Where each stored person's entries begin; secret."""
        self.items: Ints = np.concatenate([np.empty(0, np.int64), *(places for _, places, *_ in present)])
        """The items of all entries, person after person; secret."""
        self._left: Ints = np.concatenate([np.empty(0, np.int64), *(ticks for _, _, ticks, _ in present)])
        self._chain: list[int] = []

    def __repr__(self) -> str:
        return f"<Chain {self._note}, {len(self._chain)} items>"

    def singles(self, secret: SecretRandomness) -> Ints:
        """The weighted sum of what each item is worth by itself, in ticks times weights, with noise."""
        total = np.zeros(self._people.n_items, dtype=np.int64)
        _weighted(self.starts, self.items, self._left, self._weights, total)
        return self._once("singles", -1, total, self._sigmas[0], secret)

    def row(self, item: int, gains: Any, secret: SecretRandomness) -> Ints:
        """The weighted sum of what each item loses when `item` joins the chain, with noise.

        `gains`: what each stored entry (see `items`) would add after the chain with `item`. Any numbers will do.
        """
        now = as_floats(gains)
        if now.shape != self.items.shape:
            raise InvalidInput(f"Expected a gain for each of the {len(self.items)} stored entries.")
        if not 0 <= item < self._people.n_items or item in self._chain:
            raise InvalidInput(f"An item joins a chain once; got {item} after {self._chain}.")
        self._chain.append(int(item))
        lost = np.zeros(self._people.n_items, dtype=np.int64)
        _lose(self.starts, self.items, self._left, self._weights, self._scales, now, item, lost)
        return self._once(f"row-{len(self._chain):04d}", item, lost, self._sigmas[1], secret)

    def _once(self, what: str, item: int, total: Ints, sigma: float, secret: SecretRandomness) -> Ints:
        """Kept with the item it is about: a chain that was begun goes on as it began, or not at all."""
        name = f"{self._note}-{what}"
        kept = self._people._kept.once(
            name, lambda: np.concatenate([[item], noise.gaussian(total, sigma, secret)])
        )
        if kept[0] != item or len(kept) != len(total) + 1:
            raise InvalidInput(f"{name} was drawn for item {kept[0]}, not {item}; one release is one chain.")
        return kept[1:]


@kernel
def _clipped(rule: Rule, values: Floats, out: Ints) -> float:
    return clip_row(rule, values, 0, len(values), out)


@kernel
def _weighted(starts: Ints, items: Ints, left: Ints, weights: Ints, total: Ints) -> None:
    for person in range(len(starts) - 1):
        for j in range(starts[person], starts[person + 1]):
            total[items[j]] += weights[person] * left[j]


@kernel
def _lose(
    starts: Ints,
    items: Ints,
    left: Ints,
    weights: Ints,
    scales: Floats,
    gains: Floats,
    joined: int,
    lost: Ints,
) -> None:
    """What is left never rises and never falls below 0, so all losses together are at most what was there."""
    for person in range(len(starts) - 1):
        for j in range(starts[person], starts[person + 1]):
            now = 0
            if items[j] != joined and gains[j] > 0.0:
                now = left[j] if gains[j] >= 1.0 else min(left[j], int(scales[person] * gains[j]))
            lost[items[j]] += weights[person] * (left[j] - now)
            left[j] = now
