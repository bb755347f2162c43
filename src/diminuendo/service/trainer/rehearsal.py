"""A rehearsal: a learner for a few made-up people, with a ledger of its own, so that compiled code is loaded.

That takes a second or two, which the first release of a placement would take longer. It is done when its first menu
has been published: nobody can have answered by then. Of many placements of one kind the first rehearses for all.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
import numpy as np

from diminuendo.errors import DiminuendoError
from diminuendo.learners.elsewhere import Elsewhere
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.coins import SeededCoins
from diminuendo.service.records import PlacementFacts, PopulationFacts, Said, Shown
from diminuendo.service.trainer.answers import AnswerReader
from diminuendo.service.trainer.made import budget_of, made

PEOPLE, ROUNDS = 2_000, 400
"""For how many people the learner is made, and how many of them come."""


_REHEARSED = set[tuple[object, ...]]()


def rehearse_once(facts: PlacementFacts, reader: AnswerReader) -> None:
    """Rehearse, unless a placement of that kind did in this process."""
    kind = (
        facts.learner, facts.feedback, facts.objective, facts.delta == 0, facts.people is None, bool(facts.contexts),
        facts.private_contexts, facts.exclusions, bool(facts.pinned or facts.caps), bool(facts.heard),
    )  # fmt: skip
    if kind not in _REHEARSED:
        _REHEARSED.add(kind)
        rehearse(facts, reader)


def rehearse(facts: PlacementFacts, reader: AnswerReader) -> None:
    """Choose, answer and release once, as the learner of these facts does; what it learns is thrown away."""
    few = msgspec.structs.replace(
        facts,
        items=facts.items[: max(2 * facts.slots, 8)],
        people=PEOPLE,
        pinned={},
        caps=(),
        retention=None,
        sample=1,
    )
    now = [0.0]
    with suppress(DiminuendoError):  # so few items or people are none that it could be made for
        budget = budget_of(PopulationFacts(facts.epsilon, facts.delta, facts.visits), few)
        learner = made(few, Ledger(budget), lambda: now[0], SeededCoins(0))
        learner.release()
        door, slate = Elsewhere(learner), tuple(range(few.slots))
        menu: Any = learner.menu
        many = min(ROUNDS, menu.end or ROUNDS)
        door.chosen(many)
        door.came(0, np.ones(many, dtype=np.bool_), np.zeros(many, dtype=np.int64))
        said = [Said(Shown(0, number, 1, True, slate), {0: 1.0}, 1.0, 0) for number in range(many)]
        door.answered(*reader.answers(said))
        now[0] = 2 * few.deadline
        learner.release()
        learner.snapshot()
