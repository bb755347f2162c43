"""Effort: how hard an audit tries, and how often it may raise a false alarm.

`quick` finds what is badly broken, and takes two minutes for everything that is shipped; `full` comes closer to the
true epsilon. False alarms are equally rare: their probability is shared by all tests of one audit.
"""

from __future__ import annotations

from dataclasses import dataclass

FALSE_ALARM = 1e-3
"""The chance that a whole audit, of however many learners, finds fault with any that keeps its promise."""
MOST_SUBJECTS = 100
ALPHA = FALSE_ALARM / (2 * MOST_SUBJECTS)
"""The share of one finding: each subject, a learner or a variant of it, gets two at most that are not certain, and
there are not more subjects."""


@dataclass(frozen=True)
class Effort:
    """How much an audit runs for one learner. `EFFORTS` has "quick" and "full".

    Attributes
    ----------
    name : str
        In `EFFORTS`.
    scouts : int
        Black box: runs of each world for each pair of adjacent inputs that may be the worst; 0: take the first.
    training : int
        Black box: rounds of each world from which the attacker learns a classifier.
    scored : int
        Black box: rounds of each world in which its guesses are counted.
    paths : int
        Pathwise: runs of one world that the other is made to follow, for each pair of adjacent inputs.
    views : int
        Exact: maximum number of runs to list all views.

    Notes
    -----
    A whole audit accuses any learner that keeps its guarantee with probability at most 1/1000, at every effort
    (Theorem U4 of docs/maths/audit.md). Less effort only shows less.

    """

    name: str
    scouts: int
    training: int
    scored: int
    paths: int
    views: int


STARTING = 2
"""To start a learner takes about as long as this number of rounds."""


def runs(rounds: int, horizon: int) -> int:
    """How many runs of a world of `horizon` rounds take as long as `rounds` rounds: short worlds are run more often."""
    return max(2, rounds // (horizon + STARTING))


EFFORTS = {
    "quick": Effort("quick", scouts=0, training=400, scored=500, paths=2, views=2_000),
    "full": Effort("full", scouts=60, training=8_000, scored=16_000, paths=16, views=50_000),
}
"""How hard the command tries, by name."""
