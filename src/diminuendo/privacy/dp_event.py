"""Events for dp-accounting: what our events cost, in a form that Google's accountants take.

An event is translated only into one that costs at least as much as ours is proved to cost, whichever neighbouring
relation their accountant was made with. Where they have no such event, the translation is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from math import nextafter
from typing import TYPE_CHECKING, Literal

from diminuendo import _validate
from diminuendo._extras import extra
from diminuendo.errors import UnknownEvent
from diminuendo.privacy.accountants import GAUSSIAN, PURE, ZCDP, Additive, BatchCosts
from diminuendo.privacy.events import Composed, Event, Repeated, Selections
from diminuendo.privacy.rounding import root_up, rounded_up

if TYPE_CHECKING:
    from dp_accounting import DpEvent


def to_dp_event(event: Event, *, rounds: int = 1, accountant: Literal["rdp", "pld"] = "rdp") -> DpEvent:
    """Translate a cost into a `dp_accounting.DpEvent` that costs no less.

    Parameters
    ----------
    event : Event
        What a run costs: `learner.events`, an event of your own, or all charges of a ledger (`Ledger.to_dp_event`).
    rounds : int, default 1
        How many rounds one user may own: `learner.unit.rounds`. With 1, the result is about one round of a user.
    accountant : {"rdp", "pld"}, default "rdp"
        Who will price it. `"rdp"`, for `RdpAccountant`: every event, as zCDP. `"pld"`, for `PLDAccountant`: pure and
        Gaussian events, often tighter; draws of the exponential mechanism count as pure there, which is looser.

    Returns
    -------
    DpEvent
        To be composed with events of other programs, if it protects the same users in the same sense.

    Raises
    ------
    UnknownEvent
        If `PLDAccountant` has no valid event for this one.
    MissingExtra
        If dp-accounting is not installed.

    Notes
    -----
    `"rdp"` rests on Theorems A1, A7 and A9 of docs/maths/accounting.md, `"pld"` on the worst pair of laws of each step.
    Both are about events that are fixed beforehand, such as `learner.events`. If which events there are depends on
    earlier releases, translate the most that may be charged.

    Examples
    --------

    >>> from diminuendo.privacy import Laplace, Repeated, Selections, to_dp_event
    >>> to_dp_event(Selections(count=8, span=0.5))
    ZCDpEvent(rho=0.25, xi=0.0)
    >>> to_dp_event(Repeated(Laplace(0.5), 4), accountant="pld").events[0].count
    4
    """
    _validate.positive_int(rounds, "rounds")
    _validate.one_of(accountant, ("rdp", "pld"), "accountant")
    with extra("dp-accounting"):
        from dp_accounting import dp_event
    if accountant == "rdp":
        # Every event of ours has a zCDP cost; theirs for it is the same line in the order. One event can say what a
        # composition of theirs cannot: users of different batches pay different sums, and parallel parts do not add.
        return dp_event.ZCDpEvent(_owned(ZCDP, ZCDP.tally(event).total, rounds))
    squares, steps = BatchCosts(), Counter[float]()
    for part, times in _simple(event):
        if isinstance(part, Selections):
            # They have no event for bounded range. A draw is (span, 0)-private, and that is all they can be told.
            steps[_owned(PURE, Fraction(part.span), rounds)] += part.count * times
        elif (gaussian := _tally(GAUSSIAN, part)) is not None:
            squares.add(gaussian, times)
        elif (pure := _tally(PURE, part)) is not None:
            steps[_owned(PURE, pure.total, rounds)] += times
        else:
            raise UnknownEvent(
                f"PLDAccountant has no event that is surely as costly as {type(part).__name__} "
                "(of discrete Gaussian noise only rho is known, and parallel parts must be all pure or all Gaussian). "
                "Use accountant='rdp', and RdpAccountant."
            )
    # "Purely private" may be anything, so LaplaceDpEvent would cost too little: randomised response is the worst
    # (Kairouz, Oh & Viswanath 2015). Discrete Laplace noise on a sensitivity of 1 has its two log-ratios, +step and
    # -step, and so its law. RandomizedResponseDpEvent has it too, but only with REPLACE_ONE, costs less with
    # REPLACE_SPECIAL, and PLDAccountant 0.6.0 counts it once, however often it is composed with itself.
    # A step of 0 would be read as no noise at all.
    parts = [
        dp_event.SelfComposedDpEvent(dp_event.DiscreteLaplaceDpEvent(step, 1), count)
        for step, count in steps.items()
        if step > 0 < count
    ]
    if mu := root_up(_owned(GAUSSIAN, squares.total, rounds)):
        parts.append(dp_event.GaussianDpEvent(nextafter(1 / mu, 0.0)))
    return dp_event.ComposedDpEvent(parts)


def _simple(event: Event, times: int = 1) -> Iterator[tuple[Event, int]]:
    """The parts of a composition, and how often each takes place."""
    if isinstance(event, Composed):
        for part in event.events:
            yield from _simple(part, times)
    elif isinstance(event, Repeated):
        yield from _simple(event.event, times * event.times)
    else:
        yield event, times


def _tally(accountant: Additive, event: Event) -> BatchCosts | None:
    """The cost of an event; None if this accountant has no rule for it."""
    with suppress(UnknownEvent):
        return accountant.tally(event)
    return None


def _owned(accountant: Additive, cost: Fraction, rounds: int) -> float:
    return rounded_up(accountant.owned(cost, rounds))
