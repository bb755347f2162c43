"""Notebooks, run without Jupyter: code cells in order, in one fresh set of names; what is printed is what they show.

`python -m tests.kit.notebooks` runs all of them and writes what is printed into them. Pictures are not kept.
"""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt

from diminuendo.learners import LEARNERS

NOTEBOOKS = Path(__file__).parents[2] / "docs" / "notebooks"


def source_of(cell: dict[str, Any]) -> str:
    """The text of a cell, which is kept line by line."""
    return "".join(cell["source"])


def shown_by(cell: dict[str, Any]) -> str:
    """What a cell is kept to have printed."""
    return "".join(line for output in cell["outputs"] for line in output["text"])


def faults(notebook: dict[str, Any]) -> list[str]:
    """What Jupyter could not read, by the fields of nbformat 4.5 that we use."""
    result = []
    if (notebook.get("nbformat"), notebook.get("nbformat_minor")) != (4, 5):
        result.append("format")
    if set(notebook) != {"cells", "metadata", "nbformat", "nbformat_minor"}:
        result.append("fields")
    fields = {"id", "cell_type", "metadata", "source"}
    more = {"markdown": set[str](), "code": {"execution_count", "outputs"}}
    names = [cell.get("id") for cell in notebook["cells"]]
    if len(set(names)) != len(names):
        result.append("ids")
    for number, cell in enumerate(notebook["cells"]):
        if set(cell) != fields | more.get(cell.get("cell_type", ""), {"?"}):
            result.append(f"cell {number}")
        elif any(set(out) != {"name", "output_type", "text"} for out in cell.get("outputs", ())):
            result.append(f"outputs of cell {number}")
    return result


def run(notebook: dict[str, Any], name: str) -> list[str]:
    """What each code cell prints. Learners that it registers are forgotten afterwards."""
    known = set(LEARNERS)
    names: dict[str, object] = {"__name__": "__main__"}
    printed = []
    mpl.use("Agg")
    try:
        for number, cell in enumerate(notebook["cells"]):
            if cell["cell_type"] == "code":
                out = io.StringIO()
                with redirect_stdout(out):
                    exec(compile(source_of(cell), f"{name}, cell {number}", "exec"), names)
                printed.append(out.getvalue())
    finally:
        plt.close("all")
        for learner in set(LEARNERS) - known:
            del LEARNERS[learner]
    return printed


def write(path: Path) -> None:
    """Run it, and keep what is printed."""
    notebook = json.loads(path.read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell, text in zip(code, run(notebook, path.name), strict=True):
        lines = text.splitlines(keepends=True)
        cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []
        cell["execution_count"] = None
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    for each in sorted(NOTEBOOKS.glob("*.ipynb")):
        write(each)
        print(each)
