"""What is to be looked at when: placements by their next public moment. Those that wait for nothing cost nothing."""

from __future__ import annotations

import heapq


class Agenda:
    """By number of a placement, the time after which it is due; never, for those that are not in it."""

    def __init__(self) -> None:
        self._moments: dict[int, float] = {}
        self._heap: list[tuple[float, int]] = []

    def put(self, number: int, moment: float) -> None:
        """It is due after that time, in place of any other; infinity: it waits for nothing."""
        if moment == float("inf"):
            self.drop(number)
        elif self._moments.get(number) != moment:
            self._moments[number] = moment
            heapq.heappush(self._heap, (moment, number))

    def drop(self, number: int) -> None:
        """It is not looked at any more."""
        self._moments.pop(number, None)

    def due(self, now: float) -> list[int]:
        """Those whose moment has passed, in the order of their moments. They stay due until they are put again."""
        result = list[tuple[float, int]]()
        while self._heap and self._heap[0][0] < now:
            moment, number = entry = heapq.heappop(self._heap)
            if self._moments.get(number) == moment and entry not in result[-1:]:
                result.append(entry)
        for entry in result:
            heapq.heappush(self._heap, entry)
        return [number for _, number in result]
