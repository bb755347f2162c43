"""A setting: what is known before the first person arrives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.patience import NO_PATIENCE, Patient, as_patience
from diminuendo.offline.rules import SlateRules, as_rules
from diminuendo.streams.contexts import Contexts, as_contexts
from diminuendo.types import FEEDBACKS, FeedbackKind, Floats


@dataclass(frozen=True)
class Setting:
    """What is known before the first person arrives; all of it public."""

    n_items: int
    slots: int
    rounds: int
    feedback: FeedbackKind
    epsilon: float = 1.0
    delta: float = 1e-6
    visits: int = 1
    """How many rounds one person may have; her answers in all of them together are protected."""
    patience: Patient = NO_PATIENCE
    """How long answers are waited for, and how many people answer at all; a number is one of rounds."""
    contexts: Contexts | None = field(default=None, repr=False)
    """What is known of people when they come; None: nothing."""
    rules: SlateRules | None = field(default=None, repr=False)
    """What slates must keep to, whatever people say; None: nothing."""
    exclusions: bool = field(default=False, repr=False)
    """Whether people may exclude items, such as those that they have already."""
    retention: int | None = field(default=None, repr=False)
    """Nobody is kept for more rounds than these; None: as long as the learner likes."""
    sample: int = field(default=1, repr=False)
    """Of how many people one is learned from, by a public coin; all are served."""

    def __post_init__(self) -> None:
        checked = {
            "n_items": _validate.positive_int(self.n_items, "n_items"),
            "slots": _validate.slots(self.slots, self.n_items),
            "rounds": _validate.positive_int(self.rounds, "rounds"),
            "feedback": _validate.one_of(self.feedback, FEEDBACKS, "feedback"),
            "epsilon": _validate.positive_float(self.epsilon, "epsilon"),
            "delta": _validate.delta(self.delta),
            "visits": _validate.positive_int(self.visits, "visits"),
            "patience": as_patience(self.patience),
            "contexts": as_contexts(self.contexts),
            "rules": as_rules(self.rules),
            "exclusions": bool(self.exclusions),
            "retention": None
            if self.retention is None
            else _validate.positive_int(self.retention, "retention"),
            "sample": _validate.positive_int(self.sample, "sample"),
        }
        for name, value in checked.items():  # plain numbers, whatever kind was given
            object.__setattr__(self, name, value)
        if self.rules is not None:
            self.rules.check(self.n_items, self.slots)


class Prior(NamedTuple):
    """What is known of items before anybody comes: public."""

    scores: Floats
    """Which share of people each item pleases."""
    people: int
    """As how many people that counts."""


def checked_prior(scores: Any, people: int | None, n_items: int, otherwise: int) -> Prior | None:
    """A public prior at the door, counting as `people`, or as `otherwise` people where that is None."""
    found = None if scores is None else _checked_scores(scores, n_items)
    many = otherwise if people is None else _validate.positive_int(people, "prior_people")
    return None if found is None else Prior(found, many)


def _checked_scores(scores: Any, n_items: int) -> Floats:
    found = np.array(scores, dtype=np.float64)
    if found.shape != (n_items,) or not ((found >= 0) & (found <= 1)).all():
        raise InvalidInput(
            f"prior must say for each of {n_items} items which share of people it pleases, from 0 to 1."
        )
    return found
