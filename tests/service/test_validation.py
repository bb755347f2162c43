"""Values that cannot be are refused in a site's file, with the field."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
import pytest

from diminuendo.errors import InvalidInput
from diminuendo.service.records import PlacementSpec, PopulationSpec
from diminuendo.service.site import read_site
from tests.service.site import ITEMS

BUDGETS: dict[str, list[float]] = {
    "epsilon": [0, -1, 1e308],
    "delta": [-1e-9, 1, 2],
    "max_rounds_per_user": [0, -1, 10**20],
}
SPEC: dict[str, list[Any]] = BUDGETS | {
    "items": [["a", "a", "b"]],
    "slots": [0, 5],
    "users": [0, -5, 10**30],
    "retention": [0, -1, 10**20],
    "sample": [0, -3, 10**20],
    "deadline": [0, -1, 1e300, 1e-300],
    "publish_interval": [0, -1, 1e300, 1e-300],
    "publish_delay": [-100, 1e300],
    "per_second": [0, -5, 1e300],
    "response_rate": [0, 2],
    "response_count": [-1, 1, 2],
    "pinned": [{"0": "kiwi"}, {"7": "plum"}],
    "caps": [[[["kiwi"], 1]], [[["plum"], -1]]],
}
"""Values that cannot be, by field."""
GOOD: dict[str, Any] = {"population": "users", "items": list(ITEMS), "slots": 2, "feedback": "click"}


def toml(told: Any) -> str:
    """A value of a site's file."""
    if isinstance(told, dict):
        return "{" + ", ".join(f"{key} = {toml(value)}" for key, value in told.items()) + "}"
    if isinstance(told, list):
        return "[" + ", ".join(map(toml, told)) + "]"
    return repr(told).replace("'", '"')


def site_file(folder: Path, population: dict[str, Any], placement: dict[str, Any]) -> Path:
    tables = {"[populations.users]": population, "[placements.home]": placement}
    lines = [
        line
        for table, told in tables.items()
        for line in (table, *(f"{key} = {toml(value)}" for key, value in told.items()))
    ]
    (folder / "site.toml").write_text("\n".join(lines))
    return folder / "site.toml"


@pytest.mark.parametrize(("field", "given"), [(field, each) for field in SPEC for each in SPEC[field]])
def test_a_site_file_refuses_it(tmp_path: Path, field: str, given: Any) -> None:
    with pytest.raises(InvalidInput, match=rf"placements.home: .*{field}"):
        read_site(site_file(tmp_path, {}, GOOD | {field: given}))
    if field in BUDGETS:
        with pytest.raises(InvalidInput, match=rf"populations.users: .*{field}"):
            read_site(site_file(tmp_path, {field: given}, GOOD))


@pytest.mark.parametrize(
    "field",
    [
        "deadline",
        "publish_interval",
        "publish_delay",
        "per_second",
        "response_rate",
        "response_count",
        "delta",
    ],
)
@pytest.mark.parametrize("given", ["nan", "inf"])
def test_a_site_file_refuses_what_is_no_number(tmp_path: Path, field: str, given: str) -> None:
    path = site_file(tmp_path, {}, GOOD | {field: math.pi})
    path.write_text(path.read_text().replace(str(math.pi), given))
    with pytest.raises(InvalidInput, match=field):
        read_site(path)


def test_every_number_of_the_spec_is_among_them() -> None:
    """A new field has a check of its own, or is left out here and says why."""
    told = {
        field.name
        for kind in (PlacementSpec, PopulationSpec)
        for field in msgspec.structs.fields(kind)
        if field.type in (int, float, int | None)
    }
    assert told <= SPEC.keys()
