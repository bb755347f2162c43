"""What people have paid so far: in common, and batch by batch (docs/maths/accounting.md, Theorem A7, columns)."""

from __future__ import annotations

from fractions import Fraction


class Tally:
    """A running total: what everybody paid, and what each batch of each partition paid besides.

    Adding takes no longer as it grows.
    """

    def __init__(self) -> None:
        self.common = Fraction(0)
        self.columns: dict[tuple[str, int], Fraction] = {}
        self.worst: dict[str, Fraction] = {}

    @property
    def total(self) -> Fraction:
        """The most that one person-round can have paid: in each partition she is in some batch."""
        return self.common + sum(self.worst.values())

    def put(self, partition: str, column: int, cost: Fraction) -> None:
        """That batch pays so much more."""
        paid = self.columns.get((partition, column), Fraction(0)) + cost
        self.columns[partition, column] = paid
        self.worst[partition] = max(self.worst.get(partition, Fraction(0)), paid)

    def add(self, other: Tally, times: int = 1) -> None:
        """On the same people."""
        self.common += times * other.common
        for (partition, column), cost in other.columns.items():
            self.put(partition, column, times * cost)

    def after(self, other: Tally) -> Fraction:
        """The total there would be after adding `other`, which is not added."""
        worst = dict(self.worst)
        for (partition, column), cost in other.columns.items():
            paid = self.columns.get((partition, column), Fraction(0)) + cost
            worst[partition] = max(worst.get(partition, Fraction(0)), paid)
        return self.common + other.common + sum(worst.values())
