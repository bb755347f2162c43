"""When batches close: after numbers of rounds that are fixed beforehand, never because of feedback."""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass

from diminuendo import _validate
from diminuendo.errors import InvalidInput


@dataclass(frozen=True)
class Schedule:
    """When batches close: after numbers of rounds that are fixed beforehand.

    Parameters
    ----------
    ends : tuple of int
        Rising; batch b consists of the rounds from ends[b - 1] to ends[b] - 1.

    Raises
    ------
    InvalidInput
        If ends do not rise.

    Notes
    -----
    A user belongs to the batch that is open when their slate is chosen. Nothing about the schedule may depend on
    who responded (Theorem S1 of docs/maths/sums.md).

    Examples
    --------
    >>> from diminuendo.sums import geometric
    >>> schedule = geometric(rounds=1_000, first=100, ratio=2)
    >>> schedule.ends, schedule.sizes, schedule.batch_of(250)
    ((100, 200, 400, 800, 1000), (100, 100, 200, 400, 200), 2)
    """

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
        """The number of rounds."""
        return self.ends[-1]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of rounds of each batch: public, and what averages are divided by."""
        return tuple(b - a for a, b in zip((0, *self.ends), self.ends, strict=False))

    def batch_of(self, round_: int) -> int:
        """Return the batch of a round (from 0). Raises InvalidInput if the round is out of range."""
        if not 0 <= round_ < self.rounds:
            raise InvalidInput(f"Rounds go from 0 to {self.rounds - 1}; got {round_}.")
        return bisect.bisect_right(self.ends, round_)

    def closed_by(self, rounds: int) -> int:
        """Return how many batches are over when `rounds` slates have been chosen."""
        return bisect.bisect_right(self.ends, rounds)


def equal(rounds: int, batches: int) -> Schedule:
    """Return a schedule of batches as equal as integers allow.

    Parameters
    ----------
    rounds : int
        Number of rounds.
    batches : int
        Number of batches, at most `rounds`.

    Returns
    -------
    Schedule

    Raises
    ------
    InvalidInput
        If a number is out of range.

    Examples
    --------
    >>> from diminuendo.sums import equal
    >>> equal(rounds=10, batches=3).ends
    (3, 6, 10)
    """
    _validate.positive_int(rounds, "rounds")
    _validate.positive_int(batches, "batches")
    if batches > rounds:
        raise InvalidInput(
            f"There cannot be more batches than rounds: got {batches} batches of {rounds} rounds."
        )
    return Schedule(tuple(rounds * (batch + 1) // batches for batch in range(batches)))


def geometric(rounds: int, first: int, ratio: float, longest: int | None = None) -> Schedule:
    """Return a schedule whose ends grow geometrically, so that much is learned early.

    Parameters
    ----------
    rounds : int
        Number of rounds.
    first : int
        Length of the first batch.
    ratio : float
        Above 1: each end is about this many times the one before.
    longest : int, optional
        Maximum length of a batch.

    Returns
    -------
    Schedule

    Raises
    ------
    InvalidInput
        If a number is out of range.

    Examples
    --------
    >>> from diminuendo.sums import geometric
    >>> geometric(rounds=1_000, first=100, ratio=2, longest=300).ends
    (100, 200, 400, 700, 1000)
    """
    _validate.positive_int(rounds, "rounds")
    ends = [min(_validate.positive_int(first, "first"), rounds)]
    if not (_validate.positive_float(ratio, "ratio") > 1):
        raise InvalidInput(f"ratio must be above 1, so that batches grow; got {ratio}.")
    cap = rounds if longest is None else _validate.positive_int(longest, "longest")
    while ends[-1] < rounds:
        step = min(math.ceil((ratio - 1) * ends[-1]), cap)
        ends.append(min(ends[-1] + step, rounds))
    return Schedule(tuple(ends))
