"""Everything the documents show runs, and nothing they say is out of date."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import runpy
from pathlib import Path

import pytest

import diminuendo
from diminuendo.cli.reference import reference

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
MODULES = [
    module.name
    for module in pkgutil.walk_packages(diminuendo.__path__, "diminuendo.")
    if not module.name.endswith("__main__")
]


def test_there_is_something_to_test() -> None:
    assert len(PAGES) > 8
    assert len(MODULES) > 40
    assert any("```python" in page.read_text() for page in PAGES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_on_pages_runs(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.S):
        exec(compile(block, str(page), "exec"), names)
    assert "Traceback" not in capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("example", sorted(ROOT.glob("examples/*.py")), ids=lambda path: path.name)
def test_examples_run(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(example))
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str) -> None:
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0
    assert module.__doc__, "every module says what it is"


def test_the_package_example() -> None:
    assert doctest.testmod(diminuendo).failed == 0


def test_the_reference_is_up_to_date() -> None:
    assert (ROOT / "docs" / "reference.md").read_text() == reference(), "run `make docs`"


def test_the_readme_names_commands_that_exist() -> None:
    readme, makefile = (ROOT / "README.md").read_text(), (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"`?make ([a-z-]+)", readme)):
        assert f"\n{target}:" in makefile, target
    assert (ROOT / ".ci" / "run").read_text().strip().endswith("make test")
