"""Everything the documents show runs, and nothing they say is out of date."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import runpy
import sys
import warnings
from pathlib import Path

import pytest

import diminuendo
from diminuendo.cli.reference import reference
from tests.kit.pages import RUN, SHOWN, Block, blocks, check_shown, run_console, run_page, run_python
from tests.kit.slow import mostly_slow

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
BLOCKS = [block for page in PAGES for block in blocks(page)]
RUNNABLE = sorted({block.page for block in BLOCKS if block.language in RUN})
LONG_PAGES = {ROOT / "docs" / "how-to" / "sweep.md"}
"""Pages that take seconds as a whole; blocks that do are marked on their page."""
EXAMPLES = set(ROOT.glob("examples/[!_]*.py"))
LONG_EXAMPLES = {ROOT / "examples" / "places.py", ROOT / "examples" / "seeds.py"}
"""One compiles kernels for a family of objectives that nothing else in the quick suite needs, one plays many seeds."""
LONG = sorted({block.page for block in BLOCKS if block.slow})
MODULES = [
    module.name
    for module in pkgutil.walk_packages(diminuendo.__path__, "diminuendo.")
    if not module.name.endswith("__main__")
]


def test_there_is_something_to_test() -> None:
    assert len(PAGES) > 8
    assert len(MODULES) > 40
    assert {block.language for block in BLOCKS} >= set(RUN)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder and a screen of 80 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # commands set their own; put it back


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(
    "page", mostly_slow(RUNNABLE, set(RUNNABLE) - LONG_PAGES), ids=lambda page: str(page.relative_to(ROOT))
)
def test_what_pages_show_runs_and_prints_what_they_say(page: Path) -> None:
    assert run_page(page) > 0


@pytest.mark.slow
@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("page", LONG, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_takes_long_on_pages_runs_too(page: Path) -> None:
    assert run_page(page, slow=True) > 0


def test_blocks_are_of_known_kinds_and_their_commands_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for block in BLOCKS:
        assert block.language in (*RUN, *SHOWN), f"{block} is `{block.language}`"
        if block.language in SHOWN:
            assert "$ diminuendo" not in block.text, (
                f"{block}: commands with a `$` are run; call it `console`"
            )
            check_shown(block)
        for target in re.findall(r"^make ([a-z-]+)", block.text, flags=re.M):
            assert f"\n{target}:" in makefile, f"{block}: make {target}"


@pytest.mark.parametrize(
    ("language", "text", "wrong"),
    [
        ("python", "print(1 + 1)\n#> 2\n", "print(1 + 1)\n#> 3\n"),
        ("python", "for i in (1, 2):\n    print(i)\n#> 1\n#> 2\n", "for i in (1, 2):\n    print(i)\n#> 1\n"),
        ("python", "print('a 7 b')\n#> a ... b\n", "print('a 7 c')\n#> a ... b\n"),
        ("console", "$ diminuendo version\n...\n", "$ diminuendo version\nnine\n"),
        ("console", "$ diminuendo version\n", "$ diminuendo verse\n"),
        ("sh", "diminuendo simulate msweb --slots 5\n", "diminuendo simulate msweb --slotz 5\n"),
        ("sh", "diminuendo plan --items 9 --slots 2 \\\n  --rounds 9\n", "diminuendo plan --items nine\n"),
    ],
)
def test_a_page_that_says_something_else_is_noticed(language: str, text: str, wrong: str) -> None:
    def run(shown: str) -> None:
        block = Block(Path("page.md"), 1, language, shown)
        if language == "python":
            run_python(block, {})
        else:
            (run_console if language == "console" else check_shown)(block)

    run(text)
    with pytest.raises(AssertionError):
        run(wrong)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """In the repository; tests/test_site.py looks at the site."""
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(
    "example", mostly_slow(sorted(EXAMPLES), EXAMPLES - LONG_EXAMPLES), ids=lambda path: path.name
)
def test_examples_run(
    example: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [str(example)])
    runpy.run_path(str(example), run_name="__main__")
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
