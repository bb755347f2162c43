"""Variants of a learner that are audited too: contexts, exclusions, retention, and a public sample.

Each is a subject of its own, since its guarantee is about another adjacency: with public contexts one user's feedback
is replaced, with private contexts the context too, with exclusions the exclusions too. If more than the feedback is
replaced, the user's own slate is not in the view.

Worlds of an audit are so small that nothing would be found out about contexts in them. So where users have contexts
each type has a favourite item from the first release on, by its number (`types_part_early`): then chains part, and rows
and cells have most of the budget; and where slates are counted, groups do. That is public and costs no privacy.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from diminuendo.audit.subjects import KEPT_FOR_GOOD, KeptSo, Subject, shipped
from diminuendo.learners import LEARNERS
from diminuendo.learners.overlap.contexts import columns, slate_per_context
from diminuendo.learners.overlap.contexts.slate_per_context import SlatePerContext
from diminuendo.learners.slates.contexts import groups
from diminuendo.streams.contexts import Contexts
from diminuendo.types import Floats, Ints

PUBLIC, PRIVATE = Contexts(group=3), Contexts(group=3, private=True)
"""What is known of users in the worlds of an audit."""


FORGETS, SAMPLES = KeptSo(retention=12), KeptSo(sample=2)
"""Worlds of an audit are short, and so is the time for which users are kept in them."""


class Variant(NamedTuple):
    """What is known of users beforehand, and which of them are kept."""

    contexts: Contexts | None = None
    exclusions: bool = False
    kept: KeptSo = KEPT_FOR_GOOD


VARIANTS = {
    "contexts": Variant(PUBLIC),
    "private contexts": Variant(PRIVATE),
    "exclusions": Variant(None, exclusions=True),
    "private, exclusions": Variant(PRIVATE, exclusions=True),
    "retention": Variant(kept=FORGETS),
    "sample": Variant(kept=SAMPLES),
}
"""By the words that follow the name of the learner."""
BEHIND = ", "


def tried(learner: str) -> list[str]:
    """The names of all subjects that an audit of this learner is about besides itself."""
    entry = LEARNERS[learner]
    return [
        learner + BEHIND + name
        for name, (contexts, exclusions, kept) in VARIANTS.items()
        if (entry.takes("contexts") or contexts is None)
        and (entry.takes("exclusions") or not exclusions)
        and (entry.takes("retention") or kept.retention is None)
        and (entry.takes("sample") or kept.sample == 1)
    ]


def learner_of(subject: str) -> str:
    """Whose promise that is."""
    return subject.partition(BEHIND)[0]


def tried_subject(name: str) -> Subject:
    """A learner of the catalogue, by its name or that of a variant."""
    learner, _, variant = name.partition(BEHIND)
    if not variant:
        return shipped(learner)
    contexts, exclusions, kept = VARIANTS[variant]
    made = shipped(learner, contexts, exclusions=exclusions, kept=kept)
    return dataclasses.replace(made, name=name, around=nullcontext if contexts is None else types_part_early)


@contextmanager
def types_part_early() -> Iterator[None]:
    """Gates are open from the first release on, and each type has a favourite item, by its number; where slates are
    counted, types are told apart at once, and then have groups of their own."""
    believed = SlatePerContext._believed

    def with_favourites(
        self: SlatePerContext, views: Any, whole: Any, present: Ints
    ) -> tuple[Floats, Floats]:
        mean, variance = believed(self, views, whole, present)
        mean[np.arange(len(present)), present % mean.shape[1]] += 1.0
        return mean, variance

    with (
        mock.patch.object(SlatePerContext, "_believed", with_favourites),
        mock.patch.object(slate_per_context, "OPENS_AFTER", 0.0),
        mock.patch.object(slate_per_context, "KNOWN", 1e-9),
        mock.patch.object(slate_per_context, "singles_share", return_value=0.3),
        mock.patch.object(columns, "_spread", return_value=(1.0, 1.0)),
        mock.patch.multiple(
            groups, TOLD_USERS=1.0, LEAST_TOLD=0.0, TOLD_SHARE=0.2, LEAST_GROUP=0.1, USERS_PER_SLATE=0.5
        ),
        mock.patch.object(groups.Group, "differs", lambda group: bool(group._told_of)),
    ):
        yield
