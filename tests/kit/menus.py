"""Every kind of menu, so that tests can read what a learner wrote, also in another process."""

from __future__ import annotations

from diminuendo import _snapshots
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.menu import (
    Menu,
    OneSlate,
    RandomFromLists,
    RandomSlates,
    SlateByType,
    SlatesFromPoint,
)
from diminuendo.learners.hedge.lazy import ExpertsInTurn
from diminuendo.learners.slates.contexts.menu import SlatesByGroup
from diminuendo.learners.slates.menu import AssignedSlates

MENUS: dict[str, type[Menu]] = {
    menu.kind: menu
    for menu in (
        OneSlate,
        SlateByType,
        RandomSlates,
        RandomFromLists,
        SlatesFromPoint,
        AssignedSlates,
        SlatesByGroup,
        ExpertsInTurn,
    )
}
"""By the name that is written down."""


def read_menu(written: bytes) -> Menu:
    """The menu that `Menu.to_bytes` wrote."""
    spec, arrays = _snapshots.unpacked(written, "a menu")
    kind = spec.pop("menu", None)
    if kind not in MENUS:
        raise InvalidInput(f"Expected a menu of one of the kinds {', '.join(MENUS)}; got {kind!r}.")
    return MENUS[kind].from_parts(spec, arrays)
