"""Choosing and learning need few packages; what needs more says, where it is missing, which extra brings it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import diminuendo
from diminuendo._extras import EXTRAS, extra
from diminuendo.errors import DiminuendoError, MissingExtra
from tests.kit.slow import mostly_slow, rows_mostly_slow

ROOT = Path(diminuendo.__file__).parent
PROJECT = ROOT.parents[1] / "pyproject.toml"

HIDE = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
"""

EVERYTHING = [name for packages in EXTRAS.values() for name in packages]

CORE = """
import diminuendo, diminuendo.learners.recommend, diminuendo.continuous, diminuendo.paper, diminuendo.plan
import diminuendo.evaluate, diminuendo.offline, diminuendo.streams
users = diminuendo.msweb()[:20]
for name in ("private", "nonprivate", "random"):
    setting = diminuendo.Setting(users.n_items, slots=2, rounds=len(users), feedback="full", epsilon=1.0, delta=1e-6)
    learner = diminuendo.make(name, setting)
    decision = learner.choose()
    learner.observe(decision, users[0])
diminuendo.greedy(users, 2)
print(learner.rounds)
"""


def without(hidden: list[str], program: str) -> subprocess.CompletedProcess[str]:
    """Run a program where these packages cannot be found."""
    said = HIDE.format(hidden=hidden) + program
    return subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=False)


def test_choosing_and_learning_need_no_extra() -> None:
    ran = without(EVERYTHING, CORE)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "1\n"


NEEDED = [
    ("cloudpickle", "import diminuendo; diminuendo.simulate.sweep", "simulate"),
    ("joblib", "import diminuendo.simulate", "simulate"),
    ("matplotlib", "import diminuendo.simulate.report", "simulate"),
    ("duckdb", "import diminuendo; diminuendo.from_ratings", "simulate"),
    (
        "asyncpg",
        "from diminuendo.service.store import open_store; open_store('postgresql://x/y')",
        "postgres",
    ),
    (
        "dp_accounting",
        "from diminuendo.privacy import Laplace, to_dp_event; to_dp_event(Laplace(1.0))",
        "dp-accounting",
    ),
    ("rich", "from diminuendo.simulate.table import tables, _empty; _empty(None, '')", "cli"),
]
"""One place for each package. Each case starts a Python of its own."""
ALSO_NEEDED = [
    ("duckdb", "import diminuendo.simulate", "simulate"),
    ("matplotlib", "import diminuendo.simulate.figures.prices", "simulate"),
    ("matplotlib", "import diminuendo.audit.figure", "simulate"),
    ("joblib", "import diminuendo.audit", "simulate"),
    ("duckdb", "from diminuendo.evaluate import Log; Log(2).write('log.parquet')", "simulate"),
]


@pytest.mark.parametrize(
    ("hidden", "program", "brings"), rows_mostly_slow([*NEEDED, *ALSO_NEEDED], NEEDED[:2])
)
def test_what_is_missing_is_said(hidden: str, program: str, brings: str) -> None:
    caught = f"""
from diminuendo.errors import DiminuendoError
try:
    {program}
except DiminuendoError as error:
    assert isinstance(error, ImportError)
    print(error)
"""
    ran = without([hidden], caught)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == f"{hidden} is not installed; try `pip install 'diminuendo[{brings}]'`.\n"


@pytest.mark.parametrize(
    ("hidden", "typed", "brings"),
    [
        ("typer", ["--version"], "cli"),
        pytest.param("rich", ["learners"], "cli", marks=pytest.mark.slow),
        pytest.param("joblib", ["audit", "--quick"], "simulate", marks=pytest.mark.slow),
        ("duckdb", ["simulate", "msweb"], "simulate"),
        pytest.param(
            "matplotlib",
            ["plan", "--items", "5", "--slots", "1", "--rounds", "100", "--plot", "no.png"],
            "simulate",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_commands_say_it_in_one_sentence(hidden: str, typed: list[str], brings: str, tmp_path: Path) -> None:
    typed = [str(tmp_path / word) if word.endswith(".png") else word for word in typed]
    ran = without([hidden], f"sys.argv = ['diminuendo', *{typed}]\nfrom diminuendo.cli import main\nmain()")
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr
    said = " ".join(ran.stderr.split())
    assert said.endswith(f"error {hidden} is not installed; try `pip install 'diminuendo[{brings}]'`.")


@pytest.mark.parametrize("typed", mostly_slow([["--help"], ["learners"], ["plan", "--help"]], [["learners"]]))
def test_commands_that_simulate_nothing_need_no_more_than_their_own_extra(typed: list[str]) -> None:
    ran = without(
        list(EXTRAS["simulate"]),
        f"sys.argv = ['diminuendo', *{typed}]\nfrom diminuendo.cli import main\nmain()",
    )
    assert ran.returncode == 0, ran.stderr


SERVE = """
sys.argv = ['diminuendo', *{typed}]
from diminuendo.cli import main
main()
"""


def test_site_commands_need_no_typer(tmp_path: Path) -> None:
    """With the same options as with typer."""
    hidden = [*EXTRAS["cli"], *EXTRAS["simulate"]]
    ran = without(hidden, SERVE.format(typed=["serve", "--new-key", "auditor"]))
    assert ran.returncode == 0, ran.stderr
    assert 'auditor = ["' in ran.stdout
    ran = without(hidden, SERVE.format(typed=["check", str(tmp_path / "no.toml")]))
    assert (ran.returncode, ran.stderr.count("\n"), ran.stderr[:6]) == (2, 1, "error ")
    ran = without(hidden, SERVE.format(typed=["serve", "--help"]))
    assert "Other commands: pip install 'diminuendo[cli]'." in ran.stdout
    import typer

    from diminuendo.cli.app import app

    result: Any = typer.main.get_command(app)
    for each in result.commands["serve"].params:
        assert all(option in ran.stdout for option in each.opts), each.name
    ran = without(hidden, SERVE.format(typed=["serve", "--port", "x"]))
    assert (ran.returncode, ran.stderr.count("error: argument --port")) == (2, 1)


def test_other_failures_are_left_as_they_are() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_package") as caught, extra("simulate"):
        import no_such_package  # type: ignore[import-not-found]  # noqa: F401
    assert not isinstance(caught.value, DiminuendoError)
    with pytest.raises(MissingExtra, match="duckdb"), extra("simulate"):
        raise ModuleNotFoundError("No module named 'duckdb.typing'", name="duckdb.typing")


@pytest.mark.skipif(not PROJECT.exists(), reason="not in a clone")
def test_extras_bring_what_they_are_said_to() -> None:
    project = tomllib.loads(PROJECT.read_text())["project"]
    imported_as = {"pynacl": "nacl", "dp-accounting": "dp_accounting"}
    for name, packages in EXTRAS.items():
        brought = [line.partition(">")[0] for line in project["optional-dependencies"][name]]
        own = [imported_as.get(each, each) for each in brought if not each.startswith("diminuendo[")]
        assert own == list(packages)
    assert [line.partition(">")[0] for line in project["dependencies"]] == [
        "numpy",
        "scipy",
        "numba",
    ]
