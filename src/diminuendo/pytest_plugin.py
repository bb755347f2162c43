"""pytest --diminuendo mypackage.mylearner: the contract of learners, on every learner that a plugin registers.

pytest finds this by its entry point. Nothing of diminuendo is loaded unless the option is given, and pytest is not
needed otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

    from diminuendo.contract import Case, Check


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option, and its help."""
    group = parser.getgroup("diminuendo")
    group.addoption(
        "--diminuendo",
        action="append",
        default=[],
        metavar="PLUGIN",
        help="Run the contract on the learners that this module or file registers; give it again for more.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Where no other tests are asked for, none are looked for."""
    if config.getoption("--diminuendo") and config.args_source is not config.ArgsSource.ARGS:
        config.args = []


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[Any]) -> None:
    """A test for each learner, kind of feedback and check."""
    plugins: list[str] = config.getoption("--diminuendo")
    if plugins:
        items += _items(session, plugins)


def _items(session: pytest.Session, plugins: list[str]) -> Iterator[Any]:
    import pytest

    from diminuendo._plugins import load
    from diminuendo.contract import CHECKS, cases_of
    from diminuendo.errors import DiminuendoError
    from diminuendo.learners import LEARNERS

    class Kept(pytest.Item):
        """One check on one case."""

        def __init__(self, *, case: Case, check: Check, **more: Any) -> None:
            super().__init__(**more)
            self.case, self.check = case, check

        def runtest(self) -> None:
            self.check(self.case)

        def reportinfo(self) -> tuple[str, None, str]:
            return "diminuendo", None, self.name

    for plugin in plugins:
        try:
            names = [name for name in load(plugin) if name in LEARNERS.origins]
        except DiminuendoError as error:
            raise pytest.UsageError(str(error)) from error
        if not names:
            raise pytest.UsageError(f"The plugin {plugin} registers no learner.")
        for name in names:
            for case in cases_of(LEARNERS[name]):
                for check in CHECKS:
                    title = f"{name}[{case.feedback}]-{check.__name__.removeprefix('check_')}"
                    yield Kept.from_parent(session, name=title, case=case, check=check)
