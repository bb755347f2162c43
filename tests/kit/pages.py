"""What pages show, taken out of them and run.

A page is run from top to bottom in a folder of its own: `python` blocks share their names, `console` blocks are
commands after `$ ` with what they print below. In Python, lines that begin with `#>` are what the statement above
them prints. In both, `...` stands for anything. Commands that are more than one of ours are run by one bash per page
(tests/kit/shell.py), and port 8080 is one that is free. Other blocks are not run; the commands in them must at least be
understood. A block below the comment `<!-- slow -->` waits for `make test-slow`; one below `<!-- file: NAME -->` is
saved under that name, and not run.
"""

from __future__ import annotations

import ast
import doctest
import io
import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import typer
from typer.main import get_command

from diminuendo.cli import main
from diminuendo.cli.app import app
from tests.kit.shell import PORT, Shell, free_port

FENCE = re.compile(r"^(?:<!-- (slow|file: \S+) -->\n\n?)?```(\w*)\n(.*?)^```$", re.M | re.S)
RUN, SHOWN = ("python", "console"), ("sh", "text", "yaml", "toml", "")
"""Languages of blocks that are run, and of those that are only shown."""
PRINTS = "#>"


@dataclass(frozen=True)
class Block:
    """A fenced block, and the line where it begins."""

    page: Path
    line: int
    language: str
    text: str
    slow: bool = False
    file: str = ""
    """Under which name it is saved; "" where it is run."""

    def __str__(self) -> str:
        return f"{self.page.name}, line {self.line}"


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text()
    return [
        Block(
            page,
            text.count("\n", 0, result.start(2)) + 1,
            result[2],
            result[3],
            slow=result[1] == "slow",
            file=(result[1] or "").removeprefix("file: ").replace("slow", ""),
        )
        for result in FENCE.finditer(text)
    ]


def run_page(page: Path, *, slow: bool = False) -> int:
    """Run what can be run; what is printed must be what the page says is printed. How many blocks that were."""
    names: dict[str, object] = {"__name__": "__main__"}
    ran, port = 0, free_port()
    with ExitStack() as until_then:
        shell: Shell | None = None
        for block in blocks(page):
            if block.slow and not slow:
                continue
            block = replace(block, text=block.text.replace(PORT, port))
            if block.file:
                Path(block.file).write_text(block.text)
            elif block.language == "python":
                run_python(block, names)
            elif block.language == "console":
                if shell is None and not all(ours_alone(command) for command, _ in commands(block)):
                    shell = until_then.enter_context(Shell())
                run_console(block, shell)
            ran += block.language in ("python", "console")
    return ran


def run_python(block: Block, names: dict[str, object]) -> None:
    """Run a block statement by statement."""
    lines = block.text.split("\n")
    statements = ast.parse(block.text).body
    begins = [_first_line(statement) for statement in statements] + [len(lines) + 1]
    for statement, next_begins in zip(statements, begins[1:], strict=True):
        after = lines[statement.end_lineno or 0 : next_begins - 1]
        said = [line[len(PRINTS) :].removeprefix(" ") for line in after if line.startswith(PRINTS)]
        printed = io.StringIO()
        code = ast.Module([statement], type_ignores=[])
        ast.increment_lineno(code, block.line)  # so that a traceback names the line of the page
        with redirect_stdout(printed):
            exec(compile(code, str(block.page), "exec"), names)
        if said:
            compare("\n".join(said), printed.getvalue(), f"{block}: {ast.unparse(statement)}")


def run_console(block: Block, shell: Shell | None = None) -> None:
    """Run the commands of a block."""
    for command, said in commands(block):
        if shell is not None and not ours_alone(command):
            status, printed, complained = shell.run(command)
        else:
            status, printed, complained = _run(command)
        assert status == 0, f"{block}: {command}\n{printed}\n{complained}"
        if said.strip():
            compare(said, printed, f"{block}: {command}")


def ours_alone(command: str) -> bool:
    """Whether it is one command of ours, without a pipe, a variable or anything else that takes a shell."""
    return command.startswith("diminuendo ") and not re.search(r"[|<>&$;]", command)


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """(command, what it prints) of a console block; a command may go on after a backslash."""
    parts = re.split(r"^\$ ", block.text.replace("\\\n", " "), flags=re.M)
    assert not parts[0].strip(), f"{block} begins with output, and not with `$ `"
    for part in parts[1:]:
        command, _, said = part.partition("\n")
        yield command, said


def _run(command: str) -> tuple[int, str, str]:
    words = shlex.split(command, comments=True)
    assert words[0] == "diminuendo", f"Only diminuendo is run without a shell, not {words[0]}."
    printed, complained, status = io.StringIO(), io.StringIO(), 0
    with redirect_stdout(printed), redirect_stderr(complained), patch("sys.argv", words):
        try:
            main()
        except SystemExit as end:
            status = int(end.code or 0)
    return status, printed.getvalue(), complained.getvalue()


def check_shown(block: Block) -> None:
    """Commands that are not run, perhaps because they take long: is there such a command, with such options?"""
    for line in block.text.replace("\\\n", " ").split("\n"):
        words = shlex.split(line, comments=True) if line.startswith("diminuendo ") else []
        if words:
            known = cast(Any, get_command(app)).commands
            assert words[1] in known, f"{block}: {line}"
            try:
                with suppress(typer.Exit):  # --help
                    known[words[1]].make_context(words[1], words[2:])
            except Exception as error:
                raise AssertionError(f"{block}: {line}: {error}") from error


def compare(said: str, printed: str, where: str) -> None:
    """Equal but for spaces at the ends of lines, and `...`."""
    want, got = (
        "\n".join(line.rstrip() for line in text.strip("\n").split("\n")) + "\n" for text in (said, printed)
    )
    fits = doctest.OutputChecker().check_output(want, got, doctest.ELLIPSIS)
    assert fits, f"{where}\n--- the page says\n{want}--- printed\n{got}"


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])
