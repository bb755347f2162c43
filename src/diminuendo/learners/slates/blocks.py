"""Blocks: which slates the next rounds show, to how many users each, and what these users are asked. Public.

A block and its assignment, which says which of its slates each round shows, are kept on disk as one array of whole
numbers, so that a run that is begun again goes through the same blocks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from diminuendo.types import Ints, Items

WHICH_SLOT = 0
"""The question which slot was clicked first: one number for each slot. Any other question is a number e: was one of the
first e slots clicked? One number. Of rewards only the total is asked for: e is the number of slots."""


class SlateBlock(NamedTuple):
    """What the next rounds are for."""

    slates: Items
    """One row per slate, distinct items, or EMPTY_SLOT."""
    sizes: Ints
    """How many rounds show each of the slates."""
    questions: Ints
    """What the users of each slate are asked: WHICH_SLOT, or a number e."""


def no_block(slots: int) -> SlateBlock:
    """A block without slates."""
    nothing = np.zeros(0, dtype=np.int64)
    return SlateBlock(np.zeros((0, slots), dtype=np.int32), nothing, nothing)


def merged(planned: list[tuple[Items, int, int]]) -> SlateBlock:
    """A block of (slate, size, question); the same slate with the same question stands there once."""
    result: dict[tuple[bytes, int], list[Any]] = {}
    for slate, size, question in planned:
        row = np.asarray(slate, dtype=np.int32)
        result.setdefault((row.tobytes(), question), [row, 0, question])[1] += size
    rows, sizes, questions = (list(part) for part in zip(*result.values(), strict=True))
    return SlateBlock(np.array(rows, dtype=np.int32), np.array(sizes), np.array(questions))


def numbers_per_slate(questions: Ints, slots: int) -> Ints:
    """How many numbers are published about each slate."""
    return np.where(questions == WHICH_SLOT, slots, 1)


def sensitivity_of(questions: Any) -> Ints:
    """How much one answer moves what is published about a slate, in units: two of its numbers, or one."""
    return np.where(np.asarray(questions) == WHICH_SLOT, 2, 1)


def packed(block: SlateBlock, assigned: Items) -> Ints:
    """A block and its assignment in one array of whole numbers."""
    parts = (block.slates.ravel(), block.sizes, block.questions, assigned)
    return np.concatenate([[len(block.sizes)], *parts]).astype(np.int64)


def unpacked(kept: Ints, slots: int) -> tuple[SlateBlock, Items]:
    """The block and the assignment that `packed` put into one array."""
    many = int(kept[0])
    slates, sizes, questions, assigned = np.split(kept[1:], np.cumsum([many * slots, many, many]))
    block = SlateBlock(slates.reshape(many, slots).astype(np.int32), sizes, questions)
    return block, assigned.astype(np.int32)
