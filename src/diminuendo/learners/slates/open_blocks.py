"""Blocks of which nothing is published yet: they are shown, or wait until all their rounds are settled. Public."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.slates.blocks import SlateBlock, could_be_planned, no_block
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
        """How many rounds of each slate could be answered: not those of people beyond their visits."""
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
    found: dict[str, NDArray[Any]] = dict(zip(PARTS, (*shown.block, assigned, left), strict=True))
    if shown.end < frame.rounds:  # other rounds have been chosen since, which do not count
        found["first"] = np.array([shown.menu.first])
    if waiting:
        for name, parts in zip(
            PARTS, zip(*[(*each.block, each.menu.assigned) for each in waiting], strict=True), strict=False
        ):
            found[f"waiting.{name}"] = np.concatenate(parts)
        sizes = [(each.menu.first, len(each.block.sizes), len(each.menu.assigned)) for each in waiting]
        found["waiting.shapes"] = np.array(sizes, dtype=np.int64)
        found["waiting.leading"] = np.stack([each.leading for each in waiting])
    return found


def blocks_from_arrays(
    found: dict[str, NDArray[Any]], frame: Frame
) -> list[tuple[SlateBlock, Items, int, Floats | None]]:
    """Take out of `found` what was written: each block, its assignment, its first round, and what is expected of it.

    Refuses what could not have been planned. What is expected of the block that is shown is held elsewhere.
    """
    nothing: NDArray[Any] = np.empty(0)
    *parts, assigned, left = (found.pop(name, nothing) for name in PARTS)
    shown = SlateBlock(*parts)
    if not could_be_planned(shown, assigned, left, frame.n_items, frame.slots):
        raise _altered()
    first = frame.rounds - (len(assigned) - int(left.sum()))
    if "first" in found:
        (first,) = _whole(found.pop("first"), (1,)).tolist()
        if first + len(assigned) > frame.rounds:
            raise _altered()
    shapes, leading = found.pop("waiting.shapes", None), found.pop("waiting.leading", None)
    blocks: list[tuple[SlateBlock, Items, int, Floats | None]] = []
    if shapes is not None and leading is not None:
        whole = {name: found.pop(f"waiting.{name}", nothing) for name in PARTS[:4]}
        blocks = _waiting(shapes, leading, whole, frame)
    starts = [*(start for _, _, start, _ in blocks), first]
    ends = [start + len(their) for _, their, start, _ in blocks]
    if first < 0 or any(end > start for end, start in zip(ends, starts[1:], strict=True)):
        raise _altered()
    return [*blocks, (shown, assigned, first, None)] if len(assigned) else blocks


def _waiting(
    shapes: NDArray[Any], leading: NDArray[Any], whole: dict[str, NDArray[Any]], frame: Frame
) -> list[tuple[SlateBlock, Items, int, Floats | None]]:
    many = len(shapes)
    _whole(shapes, (many, 3))
    sound = (
        leading.dtype == np.float64
        and leading.shape == (many, 3)
        and np.isfinite(leading).all()
        and ((shapes >= 0) & (shapes <= frame.rounds)).all()
    )
    if not sound:
        raise _altered()
    lengths = np.stack([shapes[:, 1]] * 3 + [shapes[:, 2]])
    if any(len(part) != int(total) for part, total in zip(whole.values(), lengths.sum(axis=1), strict=True)):
        raise _altered()
    split = [np.split(part, np.cumsum(each)[:-1]) for part, each in zip(whole.values(), lengths, strict=True)]
    blocks: list[tuple[SlateBlock, Items, int, Floats | None]] = []
    for slates, sizes, questions, assigned, (first, _, _), expected in zip(
        *split, shapes, leading, strict=True
    ):
        block, nobody_left = SlateBlock(slates, sizes, questions), np.zeros(len(sizes), dtype=np.int64)
        row = expected[0]
        if (
            not could_be_planned(block, assigned, nobody_left, frame.n_items, frame.slots)
            or not (row == -1.0 or (0 <= row < len(sizes) and row == int(row)))
            or not ((expected[1:] >= 0) & (expected[1:] <= 1)).all()
        ):
            raise _altered()
        blocks.append((block, assigned, int(first), expected))
    return blocks


def _whole(found: NDArray[Any], shape: tuple[int, ...]) -> NDArray[np.int64]:
    if found.dtype != np.int64 or found.shape != shape:
        raise _altered()
    return found


def _altered() -> InvalidInput:
    return InvalidInput("The snapshot holds a block that could not have been planned; it was altered.")
