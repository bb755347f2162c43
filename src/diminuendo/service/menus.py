"""From a learner's menu to the public menu of front ends: the same slates in the same rounds.

Of what a public menu says, only the order of rounds was drawn, with public coins, before it was published; and rounds
are handed out once, whoever restarts. So the chance of a slate inside a lease is said also of blocks that were planned
before a restart (docs/maths/late.md, Theorem L2).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.menu import Menu, OneSlate, RandomFromLists, RandomSlates, SlateByType
from diminuendo.learners.base.rules.lists import Lists
from diminuendo.learners.health import NOT_AVAILABLE
from diminuendo.learners.slates.builder import SlateBuilder
from diminuendo.learners.slates.contexts.menu import SlatesByGroup
from diminuendo.learners.slates.menu import AssignedSlates
from diminuendo.service import records
from diminuendo.service.records import PublicMenu
from diminuendo.types import Items


def public_menu(learner: Learner, version: int, **more: Any) -> PublicMenu:
    """The learner's menu; `more`: further fields, such as the ledger's head."""
    policy: Any = learner.policy
    menu = learner.menu
    if menu is None:
        raise InvalidInput(
            f"{learner.name!r} has no menu that could be handed out; take 'private', which has one."
        )
    lists = None if menu.lists is None else _lists(menu.lists)
    hidden = learner.contexts is not None and learner.contexts.private
    says = not (policy.frame.exclusions or hidden)
    kind: dict[str, Any]
    sizes: dict[str, Any] = {
        "version": version,
        "slots": menu.slots,
        "first": menu.first,
        "end": menu.end,
        "lists": lists,
        "remembers_from": policy.remembers_from,
        "guarantee": learner.guarantee.as_json() | {"learner": learner.name},
        "signal": "" if learner.health == NOT_AVAILABLE else learner.health.state,
    }
    match menu:
        case OneSlate():
            kind, fallback = {"kind": "one", "slates": _rows(menu.slate[None, :])}, menu.slate
        case SlateByType():
            own = () if menu.own is None else _rows(menu.own)
            kind, fallback = {"kind": "types", "slates": _rows(menu.slates), "own": own}, menu.slates[0]
        case AssignedSlates():
            kind = {"kind": "rounds", "slates": _rows(menu.slates), "shown": _row(menu.assigned)}
            fallback = policy.filler()
        case SlatesByGroup():
            own = () if menu.rankings is None else _rows(menu.rankings)
            kind = {"kind": "groups", "slates": _rows(menu.slates), "decks": _rows(menu.decks), "own": own}
            kind, fallback = kind | {"groups": _row(menu.groups)}, policy.filler()
        case RandomSlates() | RandomFromLists():
            kind, fallback = {"kind": "random", "lists": lists or _all_items(menu)}, _any(policy)
            says &= isinstance(menu, RandomSlates)
        case _:
            raise InvalidInput(f"Menus of kind {menu.kind!r} need randomness that the learner has to know.")
    ranking = _row(result) if (result := getattr(menu, "ranking", None)) is not None else ()
    return PublicMenu(
        **sizes | kind | {"ranking": ranking, "fallback": _row(fallback), "propensities": says} | more
    )


def _any(policy: Any) -> Items:
    return SlateBuilder(policy.items).any_slate()


def _all_items(menu: Menu) -> records.Lists:
    return records.Lists((0, menu.n_items), tuple(range(menu.n_items)))


def _lists(lists: Lists) -> records.Lists:
    return records.Lists(*(_row(part) for part in lists))


def _row(values: NDArray[Any]) -> tuple[int, ...]:
    return tuple(np.asarray(values).tolist())


def _rows(values: NDArray[Any]) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, values.tolist()))
