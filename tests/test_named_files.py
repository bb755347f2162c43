"""Files that documents and docstrings name exist, and hold the functions that are said to be in them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CODE = ("src", "tests", "examples", "measurements", "benchmarks")
YOURS = {"yours.py", "mylearner.py", "popular.py", "busy.py", "drawn.py", "on_ray.py", "service.py"}
"""Files that a reader is to write."""
NAMED = re.compile(r"(?<![\w/.-])(?:\.\./)*((?:[\w.-]+/)*\w+\.py)\b")
WITHIN = re.compile(r"((?:`\w+`(?:, | and )?)+)\)? in `((?:[\w.-]+/)*\w+\.py)`")
"""One function or several, and the file they are said to be in."""


def texts() -> Iterator[tuple[Path, str]]:
    """Every page, and every docstring and string that stands by itself."""
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        yield page, page.read_text()
    for folder in CODE:
        for file in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                    yield file, str(node.value.value)


@pytest.fixture(scope="module")
def files() -> list[str]:
    """Every file of code, by its path."""
    here = [file for folder in (*CODE, "docs") for file in (ROOT / folder).rglob("*.py")]
    return ["/" + file.relative_to(ROOT).as_posix() for file in here]


def test_files_that_are_named_exist(files: list[str]) -> None:
    named = {(where, name) for where, text in texts() for name in NAMED.findall(text)}
    assert len(named) > 50
    missing = sorted(
        f"{where.relative_to(ROOT)}: {name}"
        for where, name in named
        if Path(name).name not in YOURS and not any(file.endswith("/" + name) for file in files)
    )
    assert missing == []


def test_functions_that_the_papers_page_places_in_a_file_are_there(files: list[str]) -> None:
    """The readable algorithms, the compiled loops of Algorithms 2 and 3 and the estimate among them."""
    placed = [
        (name, file)
        for names, file in WITHIN.findall((ROOT / "docs" / "paper.md").read_text())
        for name in re.findall(r"\w+", names.replace(" and ", " "))
    ]
    known = {"fi_dp", "bandit_dp", "continuous", "learn_gains", "_replay", "learn_probe", "next_round"}
    assert {name for name, _ in placed} >= known
    for name, file in placed:
        path = next(path for path in files if path.endswith("/src/diminuendo/" + file))
        text = (ROOT / path[1:]).read_text()
        assert re.search(rf"^(def|class) {name}\b", text, flags=re.MULTILINE), (name, file)
