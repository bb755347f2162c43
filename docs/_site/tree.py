"""The tree in ARCHITECTURE.md, from the first lines of modules: python docs/_site/tree.py writes it.

One line per folder, in the order in which imports may point, and files only where a stranger looks first.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "diminuendo"
PAGE = ROOT / "ARCHITECTURE.md"

ORDER = (
    "types.py", "errors.py", "client.py", "_numba", "randomness", "privacy", "sums", "objectives", "streams", "offline",
    "experts", "learners", "extend.py", "contract", "continuous", "paper", "plan", "evaluate", "simulate", "audit",
    "service", "cli",
)  # fmt: skip
"""What stands in the tree; a package imports from its own line and the lines above."""
WITH_FILES = ("learners", "learners/base", "learners/overlap")
"""Folders whose files are shown one by one."""
WITHOUT = (
    "audit/faults", "privacy/books", "sums/strategies", "learners/base/rules", "learners/base/kept",
    "service/store", "sums/chains/people",
)  # fmt: skip
"""Folders without a line of their own."""
WIDTH = 26
BLOCK = re.compile(r"(?<=<!-- tree -->\n```\n).*?(?=```\n<!-- end of tree -->)", re.DOTALL)


def first_line(path: Path) -> str:
    """The first line of a module's docstring, without its full stop."""
    said = ast.get_docstring(ast.parse(path.read_text())) or ""
    return said.splitlines()[0].removesuffix(".") if said else ""


def rows(path: Path, depth: int = 0) -> list[str]:
    """A file or a folder, and what is shown of what is in it."""
    place = path.relative_to(PACKAGE).as_posix()
    source = path / "__init__.py" if path.is_dir() else path
    name = path.name + ("/" if path.is_dir() else "")
    found = [f"{'  ' * depth}{name}".ljust(WIDTH) + first_line(source)]
    inside = sorted(path.iterdir()) if path.is_dir() else []
    if place in WITH_FILES:
        files = [part for part in inside if part.suffix == ".py" and part.name != "__init__.py"]
        found += [row for part in files for row in rows(part, depth + 1)]
    folders = [
        part
        for part in inside
        if (part / "__init__.py").exists() and part.relative_to(PACKAGE).as_posix() not in WITHOUT
    ]
    return found + [row for part in folders for row in rows(part, depth + 1)]


def tree() -> str:
    """All of it."""
    return "\n".join(row for name in ORDER for row in rows(PACKAGE / name)) + "\n"


if __name__ == "__main__":
    PAGE.write_text(BLOCK.sub(lambda _: tree(), PAGE.read_text()))
