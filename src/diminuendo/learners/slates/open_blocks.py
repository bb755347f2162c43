"""Blocks of which nothing is published yet: they are shown, or wait until all their rounds are settled. Public."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from diminuendo.learners.base.frame import Frame
from diminuendo.learners.slates.blocks import SlateBlock, no_block
from diminuendo.learners.slates.menu import AssignedSlates
from diminuendo.types import Floats, Ints, Items

PARTS = ("slates", "sizes", "questions", "assigned", "left")
"""What a snapshot holds of a block: the block, its assignment, and how many rounds each slate still has."""


class OpenBlock(NamedTuple):
    """A block, which of its slates each round shows, and what is expected of it."""

    block: SlateBlock
    menu: AssignedSlates
    starts: Ints
    """The first cell of each slate; at last, the number of cells."""
    leading: Floats
    """Of the leading slate: its row, the share it should earn, the variance of that (planner.py)."""

    @property
    def end(self) -> int:
        """The round with which the next block begins."""
        return self.menu.first + len(self.menu.assigned)

    def answerable(self, frame: Frame) -> Ints:
        """How many rounds of each slate could be answered: not those of users beyond their visits."""
        silent = self.menu.assigned[frame.silent_rounds(self.menu.first, self.end) - self.menu.first]
        return np.asarray(self.block.sizes - np.bincount(silent, minlength=len(self.block.sizes)))


def blocks_as_arrays(blocks: list[OpenBlock], frame: Frame) -> dict[str, NDArray[Any]]:
    """For a snapshot: the block that is shown; and, one after the other, those that wait, if any."""
    if not blocks:
        nothing = np.zeros(0, dtype=np.int64)
        return dict(zip(PARTS, (*no_block(frame.slots), nothing.astype(np.int32), nothing), strict=True))
    *waiting, shown = blocks
    assigned = shown.menu.assigned
    left = np.bincount(assigned[frame.rounds - shown.menu.first :], minlength=len(shown.block.sizes))
    result: dict[str, NDArray[Any]] = dict(zip(PARTS, (*shown.block, assigned, left), strict=True))
    if shown.end < frame.rounds:  # other rounds have been chosen since, which do not count
        result["first"] = np.array([shown.menu.first])
    if waiting:
        for name, parts in zip(
            PARTS, zip(*[(*each.block, each.menu.assigned) for each in waiting], strict=True), strict=False
        ):
            result[f"waiting.{name}"] = np.concatenate(parts)
        sizes = [(each.menu.first, len(each.block.sizes), len(each.menu.assigned)) for each in waiting]
        result["waiting.shapes"] = np.array(sizes, dtype=np.int64)
        result["waiting.leading"] = np.stack([each.leading for each in waiting])
    return result


def blocks_from_arrays(
    arrays: dict[str, NDArray[Any]], frame: Frame
) -> list[tuple[SlateBlock, Items, int, Floats | None]]:
    """Take out of `found` what was written: each block, its assignment, its first round, and what is expected of it.

    What is expected of the block that is shown is held elsewhere.
    """
    *parts, assigned, left = (arrays.pop(name) for name in PARTS)
    first = frame.rounds - (len(assigned) - int(left.sum()))
    if "first" in arrays:
        (first,) = arrays.pop("first").tolist()
    blocks: list[tuple[SlateBlock, Items, int, Floats | None]] = []
    if "waiting.shapes" in arrays:
        shapes, leading = arrays.pop("waiting.shapes"), arrays.pop("waiting.leading")
        lengths = np.stack([shapes[:, 1]] * 3 + [shapes[:, 2]])
        split = [
            np.split(arrays.pop(f"waiting.{name}"), np.cumsum(each)[:-1])
            for name, each in zip(PARTS[:4], lengths, strict=True)
        ]
        for slates, sizes, questions, deck, start, expected in zip(
            *split, shapes[:, 0], leading, strict=True
        ):
            blocks.append((SlateBlock(slates, sizes, questions), deck, int(start), expected))
    return [*blocks, (SlateBlock(*parts), assigned, first, None)] if len(assigned) else blocks
