"""Candidates: a learner made for the setting and asked what it runs with, what it promises, what regret is proved."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from diminuendo.errors import OutOfRange
from diminuendo.learners import LEARNERS
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.hedge.constants import paper_exploring, rounds_for_paper_exploring
from diminuendo.offline import ONE_MINUS_1_OVER_E
from diminuendo.privacy.budget import Guarantee


@dataclass(frozen=True)
class Candidate:
    """One learner, made for the setting."""

    name: str
    summary: str
    parameters: dict[str, Any]
    guarantee: Guarantee
    """What is proved here."""
    claim: Guarantee | None
    """What the paper's analysis says about the same parameters, where it is one of the paper's."""
    bound: float | None
    """On the expected regret of the whole run to (1 - 1/e) of the best slate; None where nothing is proved."""
    notes: tuple[str, ...] = ()

    def says_something(self, rounds: int) -> bool:
        """Whether the bound is below what never showing anything would lose at most."""
        return self.bound is not None and self.bound < ONE_MINUS_1_OVER_E * rounds

    def keeps_to(self, setting: Setting) -> bool:
        """Whether what is proved of it, for the arithmetic that is run, is within the budget."""
        promise = self.guarantee
        return promise.exact and promise.epsilon <= setting.epsilon and promise.delta <= setting.delta

    def as_json(self, rounds: int) -> dict[str, Any]:
        """The candidate as plain values, as it is written to files."""
        return {
            "learner": self.name,
            "summary": self.summary,
            "parameters": self.parameters,
            "guarantee": self.guarantee.as_json(),
            "claim": None if self.claim is None else self.claim.as_json(),
            "bound": self.bound,
            "bound_per_person": None if self.bound is None else self.bound / rounds,
            "bound_says_something": self.says_something(rounds),
            "notes": list(self.notes),
        }


def candidate(name: str, setting: Setting) -> Candidate:
    """One learner for the setting; warnings become notes."""
    kind = LEARNERS[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OutOfRange)
        made = kind.for_setting(setting)
    notes = tuple(str(warning.message) for warning in caught if issubclass(warning.category, OutOfRange))
    return Candidate(
        name,
        kind.summary,
        made.parameters | _printed(made, setting),
        made.guarantee,
        made.claim,
        made.regret_bound(setting.rounds),
        notes,
    )


def _printed(made: Learner, setting: Setting) -> dict[str, Any]:
    """The paper's letters, and its formula for gamma before it is held at 1."""
    letters = {"rate": "eta", "exploring": "gamma", "curvature": "H"}
    own = made.parameters
    found = {letter: own[name] for name, letter in letters.items() if own.get(name) is not None}
    if made.name in ("bandit-dp-paper", "bandit-presampled-paper"):
        found["gamma_as_printed"] = paper_exploring(setting.n_items, setting.slots, setting.rounds)
        found["rounds_for_gamma"] = rounds_for_paper_exploring(setting.n_items, setting.slots)
    return found
