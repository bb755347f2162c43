"""Everything the documents show runs, and nothing they say is out of date."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
import runpy
import sys
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import diminuendo
from diminuendo.cli.reference import reference
from tests.kit.pages import RUN, SHOWN, Block, blocks, check_shown, run_console, run_page, run_python
from tests.kit.plugins import plugins_forgotten
from tests.kit.shell import Shell, missing
from tests.kit.slow import mostly_slow

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
BLOCKS = [block for page in PAGES for block in blocks(page)]
RUNNABLE = sorted({block.page for block in BLOCKS if block.language in RUN})
LONG_PAGES = {
    ROOT / "docs" / f"{name}.md"
    for name in (
        "scaling",
        "how-to/choose-epsilon",
        "how-to/contexts",
        "how-to/from-an-export",
        "how-to/read-the-report",
    )
}
"""Pages that take seconds as a whole; blocks that do are marked on their page."""
EXAMPLES = set(ROOT.glob("examples/[!_]*.py"))
LONG_EXAMPLES = {
    ROOT / "examples" / f"{name}.py" for name in ("places", "own_objective", "seeds", "leak", "osm_via_oco")
}
"""Two compile kernels for families of objectives that nothing else in the quick suite needs, three play many runs;
tests/test_leak.py plays fewer."""
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
def remote_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty folder and a screen of 80 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # commands set their own; put it back
    with plugins_forgotten():
        yield


@pytest.mark.usefixtures("remote_rounds")
@pytest.mark.parametrize(
    "page", mostly_slow(RUNNABLE, set(RUNNABLE) - LONG_PAGES), ids=lambda page: str(page.relative_to(ROOT))
)
def test_what_pages_show_runs_and_prints_what_they_say(page: Path) -> None:
    _skip_where_a_program_is_missing(page)
    assert run_page(page) > 0


@pytest.mark.slow
@pytest.mark.usefixtures("remote_rounds")
@pytest.mark.parametrize("page", LONG, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_takes_long_on_pages_runs_too(page: Path) -> None:
    _skip_where_a_program_is_missing(page)
    assert run_page(page, slow=True) > 0


def _skip_where_a_program_is_missing(page: Path) -> None:
    shown = "".join(block.text for block in blocks(page) if block.language == "console")
    if name := missing(shown):
        pytest.skip(f"no {name} on PATH, which {page.name} shows")


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


def test_a_shell_remembers_fails_and_ends_what_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Shell() as shell:
        assert shell.run("WORD=tea; sleep 60 & echo $! > pid") == (0, "", "")
        assert shell.run('echo "$WORD" && printf end') == (0, "tea\nend", "")
        assert shell.run("echo so >&2; false") == (1, "", "so\n")
        assert shell.run("diminuendo version | wc -l")[:2] == (0, "1\n")
    process = Path("/proc") / (tmp_path / "pid").read_text().strip()
    assert not process.exists() or "Z" in (process / "stat").read_text()
    monkeypatch.setenv("PATH", "")
    assert missing("curl -sS there") == "curl"
    assert missing("echo so") is None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """In the repository; tests/test_site.py looks at the site."""
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.usefixtures("remote_rounds")
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
    if name == "diminuendo.privacy.dp_event":
        pytest.importorskip("dp_accounting", reason="its example needs dp-accounting")
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0
    assert module.__doc__, "every module says what it is"


def documented(obj: object) -> list[str]:
    """The names in the section `Parameters` of a docstring."""
    section = re.search(
        r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-{3,}|\Z)", inspect.getdoc(obj) or "", flags=re.S | re.M
    )
    heads = [] if section is None else re.findall(r"^(\S[^\n]*)$", section[1], flags=re.M)
    return [name.strip(" *") for head in heads for name in head.split(" : ")[0].split(",")]


@pytest.mark.parametrize("name", MODULES)
def test_documented_parameters_exist(name: str) -> None:
    module = importlib.import_module(name)
    own = [obj for obj in vars(module).values() if getattr(obj, "__module__", None) == name]
    own += [member for obj in own if inspect.isclass(obj) for member in vars(obj).values()]
    for obj in own:
        if (inspect.isfunction(obj) or inspect.isclass(obj)) and (names := documented(obj)):
            assert set(names) <= set(inspect.signature(obj).parameters), obj


def test_the_package_example() -> None:
    assert doctest.testmod(diminuendo).failed == 0


def test_the_reference_is_up_to_date() -> None:
    assert (ROOT / "docs" / "reference.md").read_text() == reference(), "run `make docs`"


def test_the_readme_names_commands_that_exist() -> None:
    readme, makefile = (ROOT / "README.md").read_text(), (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"`?make ([a-z-]+)", readme)):
        assert f"\n{target}:" in makefile, target
    assert (ROOT / ".ci" / "run").read_text().strip().endswith("make test")


def test_how_to_cite_says_what_the_package_says() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited = (ROOT / "CITATION.cff").read_text()
    named = {"title": project["name"], "version": project["version"], "license": project["license"]}
    assert dict(re.findall(r"^(title|version|license): (.+)$", cited, flags=re.M)) == named
    assert f'abstract: "{project["description"]}"' in cited
    assert re.findall(r"^  - ([a-z ]+)$", cited, flags=re.M) == project["keywords"]
    assert "Perez-Salazar" in cited


@pytest.mark.parametrize(
    ("page", "most"),
    [
        ("README.md", 900),
        ("docs/start-engineers.md", 800),
        ("docs/start-researchers.md", 800),
        ("docs/start-operators.md", 800),
    ],
)
def test_first_pages_are_short(page: str, most: int) -> None:
    assert len((ROOT / page).read_text().split()) <= most
