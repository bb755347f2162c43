"""Worlds that are scripted by hand."""

from __future__ import annotations

from collections.abc import Iterable

from diminuendo.audit.worlds import Answer, Reply, Script


def prompt(replies: Iterable[Reply | None]) -> Script:
    """A world in which everybody answers at once, once; None stands for somebody who says nothing."""
    said = list(replies)
    answers = tuple(Answer(t, t, reply) for t, reply in enumerate(said) if reply is not None)
    return Script(len(said), answers)
