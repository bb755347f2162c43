"""Contract: what every learner keeps, as checks that you can run on a learner of your own.

    pytest --diminuendo mypackage.mylearner

runs all of them on every learner that the module registers. In Python: `for check in CHECKS: check(case)` for each of
`cases_of(entry)`; a check that fails raises AssertionError, or whatever the learner raised.
"""

from __future__ import annotations

from collections.abc import Callable

from diminuendo.contract import answers, releases, slates, snapshots
from diminuendo.contract.case import Case
from diminuendo.learners.base.entry import AnyEntry

Check = Callable[[Case], None]
"""Raises AssertionError where a case does not keep to it."""

CHECKS: tuple[Check, ...] = tuple(
    thing
    for module in (slates, answers, snapshots, releases)
    for name, thing in vars(module).items()
    if name.startswith("check_")
)
"""All of them."""


def cases_of(entry: AnyEntry) -> list[Case]:
    """Return the cases on which the contract checks a learner: one for each kind of feedback that it reads.

    Parameters
    ----------
    entry : Entry
        A learner.

    Returns
    -------
    list of Case

    Examples
    --------
    >>> import diminuendo as dim
    >>> from diminuendo.contract import CHECKS, cases_of
    >>> cases_of(dim.LEARNERS["random"])
    [random, bandit, random, click, random, full]
    >>> CHECKS[0](cases_of(dim.LEARNERS["random"])[0])  # raises AssertionError if the learner breaks it
    """
    return [Case(entry, feedback) for feedback in sorted(entry.reads)]


__all__ = ["CHECKS", "Case", "Check", "cases_of"]
