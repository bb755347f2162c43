"""A setting: what is known before the first user arrives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.feedback_window import NO_FEEDBACK_WINDOW, Patient, as_feedback_window
from diminuendo.offline.rules import SlateRules, as_rules
from diminuendo.streams.contexts import Contexts, as_contexts
from diminuendo.types import FEEDBACKS, FeedbackKind, Floats


@dataclass(frozen=True)
class Setting:
    """What is known before the first user arrives; all of it public.

    Parameters
    ----------
    n_items : int
        Number of items.
    slots : int
        Number of items in a slate, k.
    rounds : int
        Horizon: number of rounds, T.
    feedback : {"full", "bandit", "click"}
        What users report: their whole objective; the reward of the slate, in [0, 1]; or the position of the first
        click.
    epsilon : float, default 1.0
        Privacy budget of a private learner. Others ignore it.
    delta : float, default 1e-6
        0 for pure differential privacy. Learners with delta = 0 ignore it.
    max_rounds_per_user : int, default 1
        Contribution bound: how many rounds of one user count. Their feedback in all of these together is protected.
    feedback_window : FeedbackWindow or int, optional
        Feedback window, in rounds if a number, and the share of users who respond.
    contexts : Contexts, optional
        What is known of users when they arrive.
    rules : SlateRules, optional
        What every slate satisfies.
    exclusions : bool, default False
        Whether users may exclude items, such as those they have already.
    retention : int, optional
        No user's data is kept for more rounds than these.
    sample : int, default 1
        One in `sample` users is learned from, by a public coin; all are served.

    Raises
    ------
    InvalidInput
        If a number is out of range, or rules do not fit the items and slots.

    Notes
    -----
    Contexts, exclusions and `max_rounds_per_user` decide the adjacency of the guarantee: see `privacy.Unit`. A
    public sample
    does not lower epsilon, because everybody may know who is in it (Theorem L4 of docs/maths/late.md).

    Examples
    --------
    >>> import diminuendo as dim
    >>> setting = dim.Setting(n_items=294, slots=5, rounds=30_000, feedback="full", epsilon=0.5)
    >>> setting.delta, setting.max_rounds_per_user
    (1e-06, 1)

    """

    n_items: int
    slots: int
    rounds: int
    feedback: FeedbackKind
    epsilon: float = 1.0
    delta: float = 1e-6
    max_rounds_per_user: int = 1
    feedback_window: Patient = NO_FEEDBACK_WINDOW
    contexts: Contexts | None = field(default=None, repr=False)
    rules: SlateRules | None = field(default=None, repr=False)
    exclusions: bool = field(default=False, repr=False)
    retention: int | None = field(default=None, repr=False)
    sample: int = field(default=1, repr=False)

    def __post_init__(self) -> None:
        checked = {
            "n_items": _validate.positive_int(self.n_items, "n_items"),
            "slots": _validate.slots(self.slots, self.n_items),
            "rounds": _validate.positive_int(self.rounds, "rounds"),
            "feedback": _validate.one_of(self.feedback, FEEDBACKS, "feedback"),
            "epsilon": _validate.positive_float(self.epsilon, "epsilon"),
            "delta": _validate.delta(self.delta),
            "max_rounds_per_user": _validate.positive_int(self.max_rounds_per_user, "max_rounds_per_user"),
            "feedback_window": as_feedback_window(self.feedback_window),
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

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of a learner's recipe that follow from the setting, by name."""
        result = vars(self) | {"horizon": self.rounds}
        del result["rounds"], result["feedback"]
        if self.feedback_window == NO_FEEDBACK_WINDOW:  # the recipe has a default of its own
            del result["feedback_window"]
        return result


class Prior(NamedTuple):
    """Public prior knowledge of items."""

    scores: Floats
    """Which share of users each item pleases."""
    users: int
    """As how many users that counts."""


def checked_prior(scores: Any, users: int | None, n_items: int, otherwise: int) -> Prior | None:
    """A validated public prior, counting as `users`, or as `otherwise` users where that is None."""
    result = None if scores is None else _checked_scores(scores, n_items)
    many = otherwise if users is None else _validate.positive_int(users, "prior_users")
    return None if result is None else Prior(result, many)


def _checked_scores(scores: Any, n_items: int) -> Floats:
    result = np.array(scores, dtype=np.float64)
    if result.shape != (n_items,) or not ((result >= 0) & (result <= 1)).all():
        raise InvalidInput(
            f"prior must say for each of {n_items} items which share of users it pleases, from 0 to 1."
        )
    return result
