"""What was measured, as the repository keeps it: each command, and for each cell the value of every seed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from diminuendo.types import Floats

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).with_name("results.json")
DIGITS = 4
"""Values are rounded to this many digits after the point."""


@dataclass(frozen=True)
class Kept:
    """What one entry came to."""

    command: str
    seeds: int
    """How many runs each cell has; 0 where nothing is left to luck, or the seed stands in the command."""
    cells: dict[str, list[float]] = field(default_factory=dict)
    """By what was run, as "private 0.1", the value of every seed from 0 on."""
    spec: dict[str, float] = field(default_factory=dict)
    """Single numbers, such as what greedy earns."""
    rows: dict[str, list[str]] = field(default_factory=dict)
    """Rows of a table as they are printed, where there are no seeds to average over."""
    drawn: dict[str, Any] = field(default_factory=dict)
    """What its picture shows, where that is more than the rest says."""


Results = dict[str, Kept]


def read_results(path: Path = RESULTS) -> Results:
    """All that is kept."""
    if not path.exists():
        return {}
    return {name: Kept(**result) for name, result in json.loads(path.read_text()).items()}


def write_results(results: Results, path: Path = RESULTS) -> None:
    """Keep it, one line for each cell, so that changes can be read."""
    entries = []
    for name, kept in results.items():
        parts = [f'    "command": {json.dumps(kept.command)}', f'    "seeds": {kept.seeds}']
        for part in ("cells", "spec", "rows", "drawn"):
            if held := getattr(kept, part):
                lines = [f"      {json.dumps(key)}: {json.dumps(value)}" for key, value in held.items()]
                parts.append(f'    "{part}": {{\n' + ",\n".join(lines) + "\n    }")
        entries.append(f"  {json.dumps(name)}: {{\n" + ",\n".join(parts) + "\n  }")
    path.write_text("{\n" + ",\n".join(entries) + "\n}\n")


def rounded(values: Iterable[float] | Floats) -> list[float]:
    """Values as they are kept."""
    return [round(float(value), DIGITS) for value in values]


def digest(results: Results, names: Iterable[str]) -> str:
    """A name for what these entries came to, which pictures of it carry."""
    held = [(name, kept.cells, kept.rows, kept.command) for name in names if (kept := results.get(name))]
    return hashlib.sha256(json.dumps(held).encode()).hexdigest()[:16]
