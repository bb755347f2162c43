"""Who may write: what somebody writes as the trainer of a population is refused once another one leads it."""

from __future__ import annotations

from typing import NamedTuple

from diminuendo.errors import Superseded


class Led(NamedTuple):
    """What somebody writes as the trainer of a population, in its epoch."""

    population: str
    epoch: int

    def check(self, last: int) -> None:
        """Refuse where the last epoch is another one."""
        if self.epoch != last:
            raise Superseded(
                f"Epoch {self.epoch} of population {self.population!r} is over: the last one is {last}. Whoever leads "
                "it now goes on; this trainer writes nothing of it."
            )


def next_epoch(population: str, last: int, after: int | None) -> int:
    """The epoch of whoever leads from now on; refused where it was to be after another one than the last."""
    if after is not None and after != last:
        raise Superseded(
            f"Population {population!r} was led in epoch {last} last, and not {after}: somebody was faster."
        )
    return last + 1
