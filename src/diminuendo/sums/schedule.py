"""When batches close: after a number of calls of choose() that is decided beforehand, never by what people said.

A person belongs to the batch that is open when her slate is chosen. What has not arrived when the batch closes counts
as nothing, for good (docs/maths/sums.md, Theorem S1: nothing visible may depend on who answered).
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass

from diminuendo import _validate
from diminuendo.errors import InvalidInput


@dataclass(frozen=True)
class Schedule:
    """Batch b consists of the rounds from ends[b-1] to ends[b] - 1."""

    ends: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "ends", tuple(_validate.positive_int(end, "ends") for end in self.ends))
        if not self.ends or any(b <= a for a, b in zip((0, *self.ends), self.ends, strict=False)):
            raise InvalidInput(
                f"Batches must end one after the other, the first after round 1; got {self.ends[:9]}."
            )

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def rounds(self) -> int:
        """How many rounds there are."""
        return self.ends[-1]

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many rounds each batch has: public, and what rates are divided by."""
        return tuple(b - a for a, b in zip((0, *self.ends), self.ends, strict=False))

    def batch_of(self, round_: int) -> int:
        """The batch that a round (from 0) belongs to."""
        if not 0 <= round_ < self.rounds:
            raise InvalidInput(f"Rounds go from 0 to {self.rounds - 1}; got {round_}.")
        return bisect.bisect_right(self.ends, round_)

    def closed_by(self, rounds: int) -> int:
        """How many batches are over when `rounds` slates were chosen."""
        return bisect.bisect_right(self.ends, rounds)


def equal(rounds: int, batches: int) -> Schedule:
    """Batches as equal as whole numbers allow."""
    _validate.positive_int(rounds, "rounds")
    _validate.positive_int(batches, "batches")
    if batches > rounds:
        raise InvalidInput(
            f"There cannot be more batches than rounds: got {batches} batches of {rounds} rounds."
        )
    return Schedule(tuple(rounds * (batch + 1) // batches for batch in range(batches)))


def geometric(rounds: int, first: int, ratio: float, longest: int | None = None) -> Schedule:
    """Ends grow by `ratio`, so that much is learned early; no batch is longer than `longest`."""
    _validate.positive_int(rounds, "rounds")
    ends = [min(_validate.positive_int(first, "first"), rounds)]
    if not (_validate.positive_float(ratio, "ratio") > 1):
        raise InvalidInput(f"ratio must be above 1, so that batches grow; got {ratio}.")
    cap = rounds if longest is None else _validate.positive_int(longest, "longest")
    while ends[-1] < rounds:
        step = min(math.ceil((ratio - 1) * ends[-1]), cap)
        ends.append(min(ends[-1] + step, rounds))
    return Schedule(tuple(ends))
