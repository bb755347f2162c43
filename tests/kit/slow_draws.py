"""Draws from score classes that look at the total of every item proposed: what `draw` is held to."""

from __future__ import annotations

from diminuendo._numba import inline
from diminuendo.randomness.exponential import KEPT, keep
from diminuendo.randomness.score_classes import BITS, ScoreClasses, propose, reference
from diminuendo.randomness.words import UNFINISHED, SecretWords


@inline
def draw_looking(classes: ScoreClasses, expert: int, secret: SecretWords) -> int:
    """An item, as `draw` finds it, without the short cut."""
    while True:
        item, residual, _ = propose(classes, expert, secret)
        if item == UNFINISHED:
            return UNFINISHED
        difference = classes.totals[item, expert] - reference(classes, expert)
        kept = keep(residual, classes.rate[expert], difference, classes.marks[expert, BITS], secret)
        if kept == UNFINISHED:
            return UNFINISHED
        if kept == KEPT:
            return item
