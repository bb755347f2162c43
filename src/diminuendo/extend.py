"""Extend: what a learner, an expert, an objective or a stream of your own is made of, and `register`.

    from diminuendo.extend import Entry, Frame, Learner, MenuPolicy, OneSlate, PrivateSum, register

A learner is a *policy* on a *frame*. The policy defines what is shown (`draw`, or a menu by `show`), when something is
published (`due`, `release`), and what feedback changes (`learn`). The rest has defaults: replay goes round by round, a
snapshot holds its `sums`, its `options` and its menu, and the guarantee is the cost of its sums. A *recipe* puts the
parts together, and an `Entry` gives it a name (docs/how-to/your-own-learner.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from diminuendo import _plugins
from diminuendo.errors import InvalidInput
from diminuendo.experts import EXPERTS, Expert
from diminuendo.experts.capped_simplex import leader, spread, step_cost
from diminuendo.learners import LEARNERS, ROLES
from diminuendo.learners.base.entry import Advice, AnyEntry, Entry
from diminuendo.learners.base.feedback import (
    Anything,
    Clicks,
    Objectives,
    Reader,
    Rewards,
    Singles,
    Supergradients,
)
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.menu import (
    Chooser,
    Menu,
    OneSlate,
    RandomSlates,
    SlateByType,
    SlatesFromPoint,
    point_ends,
)
from diminuendo.learners.base.policy import MenuPolicy, Policy
from diminuendo.learners.base.setting import Setting
from diminuendo.objectives import FAMILIES
from diminuendo.objectives.family import Family, Kernels
from diminuendo.objectives.family import register as register_kernels
from diminuendo.objectives.rows import checked_rows
from diminuendo.privacy.budget import Budget, Guarantee
from diminuendo.privacy.events import Gaussian, Laplace
from diminuendo.privacy.ledger import Ledger
from diminuendo.streams.builtin import BUILTIN
from diminuendo.streams.users import Users
from diminuendo.sums.clip import Clip
from diminuendo.sums.private_counts import ExactCounts, PrivateCounts
from diminuendo.sums.private_sum import ExactSum, PrivateSum
from diminuendo.sums.schedule import Schedule, equal, geometric


def register(
    *learners: AnyEntry,
    families: Iterable[type[Family]] = (),
    experts: Mapping[str, Callable[[int], Expert]] | None = None,
    streams: Mapping[str, Callable[[], Users]] | None = None,
) -> None:
    """Make learners, families of objectives, experts and streams known by their names, as if they were ours.

    Call it at the top level of a module, which is then a plug-in: worker processes import it by themselves.

    Parameters
    ----------
    *learners : Entry
        Learners, each under the name of its entry.
    families : iterable of type, optional
        Classes derived from Family, each under its `name`.
    experts : mapping of str to callable, optional
        Functions of the number of items that return an Expert.
    streams : mapping of str to callable, optional
        Functions without arguments that return Users.

    Raises
    ------
    InvalidInput
        If another module has the name, if a name is a role, or if nothing was given. Nothing is registered then.
        The same module may register again.

    Examples
    --------
    A module of yours ends with `register(Entry("mine", recipe, ...))`; then `dim.make("mine", setting)` finds it.

    >>> from diminuendo.extend import register
    >>> register(streams={"msweb": lambda: None})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    diminuendo.errors.InvalidInput: ...
    """
    origin, wanted = _plugins.caller(1), list[tuple[_plugins.Table[Any], str, Any]]()
    for entry in learners:
        if not isinstance(entry, Entry):
            raise InvalidInput(f"A learner is registered as an Entry; got {entry!r}.")
        if entry.name in ROLES:
            raise InvalidInput(
                f"{entry.name!r} is a role, which no learner can be called. Take another name."
            )
        wanted.append((LEARNERS, entry.name, entry))
    for family in families:
        if not (isinstance(family, type) and issubclass(family, Family)):
            raise InvalidInput(f"An objective is registered as a class derived from Family; got {family!r}.")
        wanted.append((FAMILIES, family.name, family))
    for table, named in ((EXPERTS, experts), (BUILTIN, streams)):
        for name, make in (named or {}).items():
            if not callable(make):
                raise InvalidInput(f"What makes the {table.kind} {name!r} must be a function; got {make!r}.")
            wanted.append((table, name, make))
    if not wanted:
        raise InvalidInput("There is nothing to register: give an Entry, or families=, experts= or streams=.")
    for table, name, _ in wanted:
        table.refuse(name, origin)
    for table, name, thing in wanted:
        table.register(name, thing, origin)


__all__ = [
    "Advice",
    "Anything",
    "Budget",
    "Chooser",
    "Clicks",
    "Clip",
    "Entry",
    "ExactCounts",
    "ExactSum",
    "Expert",
    "Family",
    "Frame",
    "Gaussian",
    "Guarantee",
    "Kernels",
    "Laplace",
    "Learner",
    "Ledger",
    "Menu",
    "MenuPolicy",
    "Objectives",
    "OneSlate",
    "Policy",
    "PrivateCounts",
    "PrivateSum",
    "RandomSlates",
    "Reader",
    "Rewards",
    "Schedule",
    "Setting",
    "Singles",
    "SlateByType",
    "SlatesFromPoint",
    "Supergradients",
    "Users",
    "checked_rows",
    "equal",
    "geometric",
    "leader",
    "point_ends",
    "register",
    "register_kernels",
    "spread",
    "step_cost",
]
