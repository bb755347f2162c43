"""People of one release in several parts, asked one after the other or together: sums of what each part says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from diminuendo.sums.chains.people.frozen import AskedPeople
from diminuendo.types import Ints


class PartedPeople:
    """People of one release in several parts: what each of them says, added up."""

    def __init__(self, parts: Sequence[AskedPeople], threads: int = 1) -> None:
        self._parts, self._threads = parts, threads

    def __repr__(self) -> str:
        return f"<PartedPeople, {len(self._parts)} parts>"

    def _each(self, ask: Callable[[AskedPeople], Any]) -> list[Any]:
        if self._threads == 1:
            return list(map(ask, self._parts))
        with ThreadPoolExecutor(self._threads) as pool:  # a release is rare: no thread waits for the next one
            return list(pool.map(ask, self._parts))

    def sums(self, whose: Ints, many: int) -> Ints:
        """What is left of everybody."""
        return added(self._each(lambda part: part.sums(whose, many)))

    def singles(self, whose: Ints, many: int) -> Ints:
        """What was there at first."""
        return added(self._each(lambda part: part.singles(whose, many)))

    def row(self, joining: Ints, questions: Ints, many: int) -> Ints:
        """What is lost as items join."""
        return added(self._each(lambda part: part.row(joining, questions, many)))

    def take(self, joining: Ints) -> None:
        """These items have joined."""
        self._each(lambda part: part.take(joining))

    def around(self, slate: Ints) -> Ints:
        """What is said around a slate."""
        return added(self._each(lambda part: part.around(slate)))

    def counts(self, of_type: Ints, size: int, unit: int) -> Ints:
        """How often each value is there."""
        return added(self._each(lambda part: part.counts(of_type, size, unit)))


def added(parts: Sequence[Ints]) -> Ints:
    """The sum, in whole numbers: in any order the same."""
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total
