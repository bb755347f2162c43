"""Warm-up: a learner for a few made-up users, with a ledger of its own, so that compiled code is loaded.

That takes a second or two, which the first release of a placement would take longer. It is done when its first menu
has been published: no response can have come by then. Of many placements of one kind the first warms up for all.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
import numpy as np

from diminuendo.errors import DiminuendoError
from diminuendo.learners.remote_rounds import RemoteRounds
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.sources import SeededSource
from diminuendo.service.records import PlacementSpec, PopulationSpec, Said, Shown
from diminuendo.service.trainer.answers import AnswerReader
from diminuendo.service.trainer.made import budget_of, made

USERS, ROUNDS = 2_000, 400
"""For how many users the learner is made, and how many of them come."""


class WarmUps:
    """The kinds of placements that one trainer has warmed up."""

    def __init__(self) -> None:
        self._done = set[tuple[object, ...]]()

    def once(self, spec: PlacementSpec, reader: AnswerReader) -> None:
        """Warm up, unless a placement of that kind did."""
        kind = (
            spec.learner, spec.feedback, spec.objective, spec.delta == 0, spec.users is None,
            bool(spec.contexts), spec.private_contexts, spec.exclusions, bool(spec.pinned or spec.caps),
        )  # fmt: skip
        if kind not in self._done:
            self._done.add(kind)
            warm_up(spec, reader)


def warm_up(spec: PlacementSpec, reader: AnswerReader) -> None:
    """Choose, answer and release once, as the learner of these facts does; what it learns is thrown away."""
    few = msgspec.structs.replace(
        spec,
        items=spec.items[: max(2 * spec.slots, 8)],
        users=USERS,
        pinned={},
        caps=(),
        retention=None,
        sample=1,
    )
    now = [0.0]
    with suppress(DiminuendoError):  # so few items or users are none that it could be made for
        budget = budget_of(PopulationSpec(spec.epsilon, spec.delta, spec.max_rounds_per_user), few)
        learner = made(few, Ledger(budget), lambda: now[0], SeededSource(0))
        learner.release()
        door, slate = RemoteRounds(learner), tuple(range(few.slots))
        menu: Any = learner.menu
        many = min(ROUNDS, menu.end or ROUNDS)
        door.chosen(many)
        door.record_arrivals(0, np.ones(many, dtype=np.bool_), np.zeros(many, dtype=np.int64))
        said = [Said(Shown(0, number, 1, True, slate), {0: 1.0}, 1.0, 0) for number in range(many)]
        door.answered(*reader.answers(said))
        now[0] = 2 * few.deadline
        learner.release()
        learner.snapshot()
