"""Families as plain records, for snapshots: a family is its name and its public parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from diminuendo.errors import InvalidInput

if TYPE_CHECKING:
    from diminuendo.objectives.family import Family


def to_record(family: Family) -> dict[str, Any]:
    """What JSON can hold of a registered family."""
    if _registered().get(family.name) is not type(family):
        raise InvalidInput(f"Objectives of family {family.name!r} cannot be written down.")
    return {"family": family.name} | family.parameters()


def from_record(record: dict[str, Any]) -> Family:
    """The family of a record."""
    name = record["family"]
    if name not in _registered():
        raise InvalidInput(f"There is no family called {name!r}.")
    return _registered()[name].from_parameters({part: record[part] for part in record if part != "family"})


def same_family(one: Family, other: Family) -> bool:
    """Whether users of both can lie in one table: as records they are equal. One without a record is only itself."""
    try:
        return one is other or to_record(one) == to_record(other)
    except InvalidInput:
        return False


def _registered() -> Mapping[str, type[Family]]:
    from diminuendo.objectives import FAMILIES  # here: the table names families, which write themselves

    return FAMILIES
