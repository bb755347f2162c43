"""Imports point up the list only."""

from __future__ import annotations

import ast
from pathlib import Path

import diminuendo

ROOT = Path(diminuendo.__file__).parent

ORDER = [
    (
        "errors",
        "types",
        "client",
        "_lazy",
        "_extras",
        "_plugins",
        "_compile_progress",
        "_database",
        "_numba",
        "_validate",
        "_sparse",
        "_snapshots",
        "_cluster",
    ),
    ("randomness",),
    ("privacy",),
    ("sums",),
    ("objectives",),
    ("streams",),
    ("offline",),
    ("experts",),
    ("learners",),
    ("extend",),
    ("contract",),
    ("continuous",),
    ("paper",),
    ("plan",),
    ("evaluate",),
    ("simulate",),
    ("audit",),
    ("service",),
    ("cli", "pytest_plugin"),
]
"""A package may import from its own line and the lines above; `diminuendo` itself only from `simulate` on."""

RANK = {name: rank for rank, names in enumerate(ORDER) for name in names}
MAY_ASK_THE_OUTSIDE = {
    "_database",
    "simulate",
    "audit",
    "service",
    "cli",
    "streams",
    "randomness",
    "privacy",
    "client",
    "_lazy",
    "_plugins",
    "_compile_progress",
    "_numba",
    "_cluster",
}
"""Who may read a clock, a file, the environment or the system's randomness (docs/decisions.md)."""
MAY_READ_A_CLOCK = {"offline"}
ISLANDS = ("hedge", "overlap", "slates")
OUTSIDE = {"os", "sys", "random", "secrets", "time", "datetime", "pathlib", "socket", "subprocess"}


def imports(path: Path) -> list[str]:
    """Every module that a file imports, wherever in it."""
    result = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            result += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            module = node.module or ""
            result += (
                [f"{module}.{alias.name}" for alias in node.names] if module == "diminuendo" else [module]
            )
    return result


def wrong_way(package: str, imported: str) -> bool:
    """Whether `package` must not import `imported`."""
    parts = imported.split(".")
    if parts[0] != "diminuendo":
        return False
    if len(parts) == 1 or parts[1] not in RANK:
        return RANK[package] < RANK["simulate"]
    return RANK[parts[1]] > RANK[package]


def test_every_package_has_its_place() -> None:
    result = {
        path.stem for path in ROOT.iterdir() if path.suffix in ("", ".py") and not path.name.startswith("__")
    }
    assert result == set(RANK), "a package is missing from ORDER, or ORDER names one that is not there"


def test_imports_point_up() -> None:
    faults = [
        f"{path.relative_to(ROOT)} imports {imported}"
        for path in ROOT.rglob("*.py")
        if (package := path.relative_to(ROOT).parts[0].removesuffix(".py")) in RANK
        for imported in imports(path)
        if wrong_way(package, imported)
    ]
    assert not faults, faults


def test_a_wrong_import_is_noticed() -> None:
    assert wrong_way("objectives", "diminuendo.learners.base.decisions")
    assert wrong_way("randomness", "diminuendo.objectives")
    assert wrong_way("learners", "diminuendo")
    assert not wrong_way("learners", "diminuendo.experts.hedge")
    assert not wrong_way("cli", "diminuendo")


def test_the_middle_of_the_house_asks_nothing_of_the_outside() -> None:
    faults = []
    for path in ROOT.rglob("*.py"):
        package = path.relative_to(ROOT).parts[0].removesuffix(".py")
        allowed = {"time"} if package in MAY_READ_A_CLOCK else set()
        if package in RANK and package not in MAY_ASK_THE_OUTSIDE:
            faults += [
                f"{path.name}: {name}" for name in imports(path) if name.split(".")[0] in OUTSIDE - allowed
            ]
    assert not faults, faults


def test_experts_never_see_an_objective() -> None:
    for path in (ROOT / "experts").glob("*.py"):
        assert not any(name.startswith("diminuendo.objectives") for name in imports(path)), path


def test_islands_know_nothing_of_each_other() -> None:
    """Each folder of learners is one idea: what two of them need belongs to `base`, or further up."""
    faults = []
    for island in ISLANDS:
        for path in (ROOT / "learners" / island).rglob("*.py"):
            others = tuple(f"diminuendo.learners.{other}" for other in ISLANDS if other != island)
            faults += [f"{island}/{path.name}: {name}" for name in imports(path) if name.startswith(others)]
    assert not faults, faults
