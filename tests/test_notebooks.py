"""Notebooks are valid, run from top to bottom, and print what they show."""

from __future__ import annotations

import copy
import json
import warnings
from pathlib import Path

import pytest

from diminuendo.learners import LEARNERS
from tests.kit.notebooks import NOTEBOOKS, faults, run, shown_by, source_of
from tests.kit.slow import mostly_slow

ALL = sorted(NOTEBOOKS.glob("*.ipynb"))
LONG = {NOTEBOOKS / "your-own-learner.ipynb"}
"""Notebooks that take more than a few seconds; this one runs the contract, and an audit."""
LARGEST = 40_000
"""A notebook with its outputs has no more bytes than this."""


@pytest.mark.parametrize("path", mostly_slow(ALL, set(ALL) - LONG), ids=lambda path: path.stem)
def test_a_notebook_prints_what_it_shows(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    notebook = json.loads(path.read_text())
    code, known = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"], set(LEARNERS)
    assert run(notebook, path.name) == [shown_by(cell) for cell in code], (
        "run `python -m tests.kit.notebooks`"
    )
    assert set(LEARNERS) == known


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_a_notebook_is_valid_and_small(path: Path) -> None:
    notebook = json.loads(path.read_text())
    assert faults(notebook) == []
    assert path.stat().st_size < LARGEST
    assert source_of(notebook["cells"][0]).startswith("# ")
    assert sum(cell["cell_type"] == "code" for cell in notebook["cells"]) > 4


def test_there_are_notebooks_and_all_are_on_the_map() -> None:
    assert len(ALL) == 3
    index = (NOTEBOOKS.parent / "index.md").read_text()
    assert all(f"(notebooks/{path.name})" in index for path in ALL)


def test_a_broken_notebook_is_noticed() -> None:
    notebook = json.loads(ALL[0].read_text())
    for field in ("id", "metadata"):
        other = copy.deepcopy(notebook)
        del other["cells"][1][field]
        assert faults(other)
    other = copy.deepcopy(notebook)
    other["cells"].append(other["cells"][0])
    assert faults(other) == ["ids"]
    small = {
        "cells": [
            {"cell_type": "code", "source": ["a = 1\n", "print(a)"]},
            {"cell_type": "code", "source": ["print(a + 1)"]},
        ]
    }
    assert run(small, "small") == ["1\n", "2\n"]
