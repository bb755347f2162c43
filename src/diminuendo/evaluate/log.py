"""A log: what a service has kept of its rounds, in the order in which they were chosen.

    log = Log(slots=2)
    decision = learner.choose()
    log.add(decision, payoff)         # once her answer came, or can no longer come

For each round it has the slate, the probability with which it was shown, and the payoff. Slates and propensities are
public; payoffs are not, and a log is as private as what people said.

A round without an answer has payoff 0. Whether somebody answers may depend on what she was shown, so leaving silent
rounds out would favour slates that few answer to. With 0 for silence, what is estimated is payoff *and* answer, which
is well defined for every slate, and is what learners count too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.types import EMPTY_SLOT, Decision, Floats, Ints, Items, Slate

COLUMNS = ("round", "slate", "propensity", "payoff")
"""Of a table."""


class Log:
    """Rounds, slates, propensities and payoffs."""

    def __init__(self, slots: int) -> None:
        self.slots = _validate.positive_int(slots, "slots")
        self._rows: list[Slate] = []
        self._numbers: list[tuple[int, float, float]] = []
        self._life: int | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, stretch: slice) -> Log:
        """Some of the rounds. Which ones must be public, and known before they are drawn: see docs/evaluating.md."""
        if not isinstance(stretch, slice):
            raise InvalidInput(f"Take a stretch of rounds, as log[:500]; got {stretch!r}.")
        made = Log(self.slots)
        made._rows, made._numbers, made._life = self._rows[stretch], self._numbers[stretch], self._life
        return made

    def __repr__(self) -> str:
        return f"<Log: {len(self):,} rounds of up to {self.slots} items; payoffs are private>"

    def add(self, decision: Decision, payoff: float = 0.0) -> None:
        """A round that is over. Rounds are added in the order of `choose()`, whenever their answers came."""
        if not isinstance(decision, Decision):
            raise InvalidInput(f"Log the decision that choose() returned; got {type(decision).__name__}.")
        if decision.propensity is None:
            raise InvalidInput(
                "This decision has no propensity. Its learner draws by secret scores, or by a law that has no simple "
                "formula, and without the chance of what was shown nothing can be said of what was not. Log a learner "
                "that follows released sums: random, slate-totals, slate-clicks, noisy-hedge, boosted, bandit-blocks, "
                "ranked-clicks."
            )
        same_life = self._life in (None, decision.life)  # of tables nothing is known but the rounds
        if same_life and self._numbers and decision.round <= self._numbers[-1][0]:
            raise InvalidInput(
                f"Round {decision.round} comes after round {self._numbers[-1][0]} in this log. Add rounds in the order "
                "in which they were chosen, and each once: keep an answer that comes early until it is its turn."
            )
        self._append(decision.round, decision.slate, decision.propensity, payoff)
        self._life = decision.life

    def _append(self, round_: int, slate: Slate, propensity: float, payoff: float) -> None:
        if len(slate) > self.slots or len(set(slate)) < len(slate) or min(slate, default=0) < 0:
            raise InvalidInput(f"A slate here has up to {self.slots} different items from 0 on; got {slate}.")
        if not 0 < propensity <= 1:
            raise InvalidInput(f"A propensity is above 0 and at most 1; got {propensity!r}.")
        if not 0 <= payoff <= 1:
            raise InvalidInput(
                f"A payoff is from 0 to 1, for clicks 0 or 1; got {payoff!r}. No answer counts as 0."
            )
        self._rows.append(slate)
        self._numbers.append((round_, float(propensity), float(payoff)))

    @classmethod
    def from_arrays(
        cls, slates: Any, propensities: Any, payoffs: Any, rounds: Sequence[int] | Ints | None = None
    ) -> Self:
        """One row per round, -1 for an empty slot; `rounds`: their numbers, by default 0, 1, 2 ..."""
        rows = np.asarray(slates)
        if rows.ndim != 2 or not np.issubdtype(rows.dtype, np.integer):
            raise InvalidInput(
                "slates must be a table of whole numbers, one row per round, -1 for an empty slot."
            )
        numbers = np.arange(len(rows)) if rounds is None else np.asarray(rounds, dtype=np.int64)
        chances, worths = (np.asarray(part, dtype=np.float64) for part in (propensities, payoffs))
        if not len(rows) == len(numbers) == len(chances) == len(worths):
            raise InvalidInput(
                f"Each round has a slate, a propensity and a payoff; got {len(rows)} slates, {len(chances)} "
                f"propensities, {len(worths)} payoffs and {len(numbers)} rounds."
            )
        made = cls(max(1, rows.shape[1]))
        for round_, row, chance, worth in zip(
            numbers.tolist(), rows.tolist(), chances.tolist(), worths.tolist(), strict=True
        ):
            made._append(round_, tuple(item for item in row if item != EMPTY_SLOT), chance, worth)
        return made

    def table(self) -> pa.Table:
        """For files: `pyarrow.parquet.write_table(log.table(), path)`. As private as what people said."""
        rows = [row.tolist() for row in self.slates]
        kinds = (pa.int64(), pa.list_(pa.int32(), self.slots), pa.float64(), pa.float64())
        parts = (self.rounds, rows, self.propensities, self.payoffs)
        arrays = [pa.array(part, type=kind) for part, kind in zip(parts, kinds, strict=True)]
        return pa.Table.from_arrays(arrays, names=list(COLUMNS))

    @classmethod
    def from_table(cls, table: pa.Table) -> Self:
        """What `table` gave; slates may be lists of different lengths."""
        if missing := [name for name in COLUMNS if name not in table.column_names]:
            raise InvalidInput(f"A log has the columns {', '.join(COLUMNS)}; missing: {', '.join(missing)}.")
        listed = table["slate"].to_pylist()
        if any(slate is None or None in slate for slate in listed):
            raise InvalidInput(
                "Some slates are missing. A slate in which nothing was shown is an empty list."
            )
        rows = np.full((len(listed), max(map(len, listed), default=1)), EMPTY_SLOT, dtype=np.int32)
        for row, slate in zip(rows, listed, strict=True):
            row[: len(slate)] = slate
        numbers = (table[name].to_numpy() for name in ("propensity", "payoff", "round"))
        return cls.from_arrays(rows, *numbers)

    def shown(self) -> list[Slate]:
        """The slates, without empty slots."""
        return list(self._rows)

    @property
    def slates(self) -> Items:
        """(rounds, slots), -1 for an empty slot."""
        rows = np.full((len(self), self.slots), EMPTY_SLOT, dtype=np.int32)
        for row, slate in zip(rows, self._rows, strict=True):
            row[: len(slate)] = slate
        return rows

    @property
    def rounds(self) -> Ints:
        """Their numbers."""
        return np.array([number[0] for number in self._numbers], dtype=np.int64)

    @property
    def propensities(self) -> Floats:
        """With what probability each slate was shown."""
        return np.array([number[1] for number in self._numbers], dtype=np.float64)

    @property
    def payoffs(self) -> Floats:
        """What each slate earned. Private."""
        return np.array([number[2] for number in self._numbers], dtype=np.float64)
