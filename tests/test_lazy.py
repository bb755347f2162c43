"""The package opens at once: what is heavy is loaded when it is used, and help needs none of it."""

from __future__ import annotations

import ast
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import diminuendo
import diminuendo.privacy
import diminuendo.streams
from diminuendo._lazy import lazily
from diminuendo.cli import simulate as names
from diminuendo.streams.builtin import BUILTIN, from_rows
from diminuendo.streams.clicks import MODELS
from diminuendo.types import FEEDBACKS

HEAVY = [
    "numpy",
    "scipy",
    "scipy.sparse",
    "scipy.special",
    "numba",
    "duckdb",
    "pyarrow",
    "opendp",
    "matplotlib",
    "joblib",
    "rich",
    "typer",
]

FIRST_USE = """
users = diminuendo.msweb()[:50]
setting = diminuendo.Setting(users.n_items, slots=2, rounds=len(users), feedback="full", epsilon=1.0, delta=1e-6)
diminuendo.make("private", setting).replay(users)
"""


def loaded(program: str) -> set[str]:
    """Which of the heavy packages a program loads."""
    said = f"{program}\nimport sys\nprint(*[name for name in {HEAVY} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    return set(ran.stdout.splitlines()[-1].split())


def test_opening_the_package_loads_nothing_heavy() -> None:
    assert loaded("import diminuendo") == set()
    assert loaded("import diminuendo; dir(diminuendo); diminuendo.DiminuendoError") == set()


def test_choosing_for_users_loads_no_files_no_plots_no_screen_and_little_of_scipy() -> None:
    assert loaded(f"import diminuendo\n{FIRST_USE}") == {"numpy", "scipy", "numba"}


@pytest.mark.parametrize(
    "typed", [["--help"], ["--version"], ["simulate", "--help"], ["simulate", "--slots"]]
)
def test_help_and_wrong_options_load_no_kernels(typed: list[str]) -> None:
    program = f"""
import sys
from diminuendo.cli import main
sys.argv = ["diminuendo", *{typed}]
try:
    main()
except SystemExit:
    pass
print()"""
    assert loaded(program) <= {"rich", "typer"}


@pytest.mark.parametrize("package", [diminuendo, diminuendo.privacy, diminuendo.streams])
def test_what_type_checkers_read_is_what_is_there(package: object) -> None:
    source = Path(str(package.__file__))  # type: ignore[attr-defined]
    tree = ast.parse(source.read_text())
    (hidden,) = (
        node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    for statement in hidden.body:
        assert isinstance(statement, ast.ImportFrom)
        home = __import__(str(statement.module), fromlist=["*"])
        for alias in statement.names:
            assert getattr(package, alias.name) is getattr(home, alias.name)
            assert alias.name in package.__all__  # type: ignore[attr-defined]
    for name in package.__all__:  # type: ignore[attr-defined]
        assert name in dir(package)
        getattr(package, name)


def test_a_name_that_is_not_there_is_refused_as_ever() -> None:
    with pytest.raises(AttributeError, match="module 'diminuendo' has no attribute 'magic'"):
        _ = diminuendo.magic
    with pytest.raises(ImportError, match="magic"):
        exec("from diminuendo import magic")
    assert diminuendo.paper.__name__ == "diminuendo.paper", "packages are there without being imported"


def test_loaded_late_is_the_same_thing() -> None:
    assert pickle.loads(pickle.dumps(diminuendo.NoisyOr)) is diminuendo.NoisyOr
    assert diminuendo.replay.__module__ == "diminuendo.learners.base.replay"


def test_a_name_that_its_home_lacks_is_refused() -> None:
    load, _ = lazily("tests", {"test_lazy": "HEAVY magic"})
    assert load("HEAVY") == HEAVY
    with pytest.raises(AttributeError, match="magic"):
        load("magic")


def test_help_names_what_there_is() -> None:
    assert tuple(BUILTIN) == names.STREAMS
    assert tuple(from_rows()) == names.FROM_ROWS
    assert names.FEEDBACKS == FEEDBACKS
    assert names.CLICKS == MODELS


def test_an_installed_program_says_its_version() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "diminuendo", "--version"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
    )
    assert ran.stdout == f"{diminuendo.__version__}\n"
