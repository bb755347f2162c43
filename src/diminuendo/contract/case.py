"""A case: a learner with one kind of feedback, fresh ones of it, and users who answer them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from diminuendo.errors import OutOfRange
from diminuendo.learners import Learner, Setting
from diminuendo.learners.base.entry import AnyEntry
from diminuendo.learners.base.feedback import Anything, Supergradients, simulate_feedback
from diminuendo.randomness import SeededSource
from diminuendo.streams.synthetic import taste_groups
from diminuendo.types import Decision, FeedbackKind

N_ITEMS, SLOTS = 12, 3
USERS = taste_groups(300, N_ITEMS, groups=4, items_per_group=5, seed=1)


class Case:
    """A learner with one kind of feedback, as the contract checks it.

    Parameters
    ----------
    kind : Entry
        The learner.
    feedback : {"full", "bandit", "click"}
        What users report.

    Attributes
    ----------
    kind, feedback
        As given.
    shared : dict
        Results of one check that others use.
    """

    def __init__(self, kind: AnyEntry, feedback: FeedbackKind) -> None:
        self.kind, self.feedback = kind, feedback
        self.shared: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"{self.kind.name}, {self.feedback}"

    def fresh(self, seed: int = 3, n_items: int = N_ITEMS, slots: int = SLOTS, rounds: int = 600) -> Learner:
        """Return a new learner for 12 items, 3 slots and 600 rounds by default, seeded."""
        return self.made(Setting(n_items, slots, rounds, self.feedback), SeededSource(seed))

    def made(self, setting: Setting, rng: SeededSource | None = None) -> Learner:
        """Return a new learner for a setting."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OutOfRange)  # the paper's constants for so few rounds
            return self.kind.for_setting(setting, rng=rng)

    @property
    def hears_nothing(self) -> bool:
        """Whether all feedback counts as nothing, so that no feedback can be wrong."""
        return isinstance(self.fresh().policy.reader, Anything)

    @property
    def reads_rows(self) -> bool:
        """Whether a user's row says more to it than the function with the same values."""
        return isinstance(self.fresh().policy.reader, Supergradients)

    def answer(self, decision: Decision, t: int) -> Any:
        """Return the feedback of user `t` of the contract's stream on a decision."""
        return simulate_feedback(USERS, t, decision.slate, self.feedback)

    def trained(self, rounds: int = 50) -> Learner:
        """Return a learner that has met the first users of the contract's stream."""
        learner = self.fresh()
        for t in range(rounds):
            decision = learner.choose()
            learner.observe(decision, self.answer(decision, t))
        return learner


@contextmanager
def raises(kinds: type[Exception] | tuple[type[Exception], ...], match: str = "") -> Iterator[None]:
    """What is done in here must raise such an error, with words that match."""
    try:
        yield
    except kinds as error:
        if not re.search(match, str(error)):
            raise AssertionError(f"expected an error that says {match!r}; it says: {error}") from error
        return
    raise AssertionError(f"expected {kinds}, and nothing was raised")
