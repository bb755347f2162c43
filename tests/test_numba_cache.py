"""Compiled code on disk is reused until a source that it builds on changes; who waits for it is told so once."""

from __future__ import annotations

import ast
import dis
import importlib
import inspect
import os
import pkgutil
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher

import diminuendo
from diminuendo._compile_progress import LINE
from diminuendo._numba.cache import ROOT, closure, imported_names
from diminuendo.objectives.family import _KERNELS

PROGRAM = """
from diminuendo import NoisyOr, user
from diminuendo.objectives.user import _value_of
print(user(NoisyOr(), {0: 0.5}, 2).value([0]), sum(_value_of.stats.cache_hits.values()))
"""

NO_FOLDER = """
import numba.core.caching
numba.core.caching.CacheImpl._locator_classes = []
"""


def run(folder: Path, program: str = PROGRAM) -> list[str]:
    return run_at_terminal(folder, program, terminal=False)[0]


def run_at_terminal(
    folder: Path, program: str = PROGRAM, *, terminal: bool = True
) -> tuple[list[str], list[str]]:
    """What a program prints, and what lines it says on stderr."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache")}
    reading, writing = os.openpty() if terminal else os.pipe()
    try:
        result = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=writing,
            text=True,
            check=True,
        )
        os.write(writing, b"end\n")
        heard = b""
        while not heard.rstrip().endswith(b"end"):  # a terminal hands on what is written piece by piece
            heard += os.read(reading, 2**16)
        said = heard.decode().splitlines()
    finally:
        os.close(reading)
        os.close(writing)
    return result.stdout.split(), said[:-1]


def test_a_change_in_another_file_is_noticed(tmp_path: Path) -> None:
    shutil.copytree(
        Path(diminuendo.__file__).parent,
        tmp_path / "diminuendo",
        ignore=shutil.ignore_patterns("*.nb?", "data"),
    )
    assert run_at_terminal(tmp_path) == (["0.5", "0"], [LINE])
    assert run_at_terminal(tmp_path) == (["0.5", "1"], [])  # reused, and so there is nothing to be said
    family = tmp_path / "diminuendo" / "objectives" / "noisy_or.py"
    family.write_text(
        family.read_text().replace("return float(1.0 - state[at])", "return float(2.0 - state[at])")
    )
    # The kernel in user.py is compiled anew. Nobody sits there, so nothing is said.
    assert run_at_terminal(tmp_path, terminal=False) == (["1.5", "0"], [])
    family.write_text(family.read_text().replace("NoisyOrTable", "OtherTable"))
    assert run(tmp_path) == ["1.5", "0"]  # although what is on disk names a type that is no more
    ledger = tmp_path / "diminuendo" / "privacy" / "ledger.py"
    ledger.write_text(ledger.read_text() + "\nSOMETHING = 1\n")
    assert run(tmp_path) == ["1.5", "1"]  # the kernel does not build on that file


def test_what_a_file_builds_on_is_what_python_says() -> None:
    """Found by looking for lines; compared with what the compiler of Python finds at the top of each file."""
    for path in ROOT.rglob("*.py"):
        nodes = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ImportFrom)]
        ours = [node for node in nodes if str(node.module).split(".")[0] == "diminuendo"]
        expected = {(str(node.module), alias.name) for node in ours for alias in node.names}
        assert set(imported_names(path.read_text())) == expected, path


def test_kernels_that_ask_a_family_build_on_all_families() -> None:
    result = {str(path.relative_to(ROOT)) for path in closure(ROOT / "objectives" / "user.py")}
    assert {f"objectives/{name}.py" for name in ("noisy_or", "coverage", "mixture", "family")} <= result
    assert "privacy/ledger.py" not in result


def test_no_folder_to_write_to_is_no_reason_to_fail() -> None:
    assert run(Path(diminuendo.__file__).parents[1], NO_FOLDER + PROGRAM) == ["0.5", "0"]


def plain_functions(module: Any) -> Iterator[FunctionType]:
    """What is written in a module and runs as Python."""
    for thing in vars(module).values():
        if getattr(thing, "__module__", None) != module.__name__:
            continue
        for member in [thing, *(vars(thing).values() if inspect.isclass(thing) else ())]:
            function = getattr(member, "__func__", getattr(member, "fget", member))
            if isinstance(function, FunctionType):
                yield function


def names_in(code: CodeType) -> set[str]:
    """The names that code reads, and the code within it: globals, and attributes, which may be called the same."""
    within = (names_in(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*within)


def reads_global(code: CodeType, name: str) -> bool:
    """Whether it is a global that is read by that name."""
    return any(
        step.opname == "LOAD_GLOBAL" and step.argval == name for step in dis.get_instructions(code)
    ) or any(reads_global(constant, name) for constant in code.co_consts if isinstance(constant, CodeType))


def test_what_is_inline_is_called_by_compiled_code_only() -> None:
    """It is not kept on disk: called from Python, it would be compiled in every process."""
    compiled_by_table_type = {function for kernels in _KERNELS.values() for function in kernels}
    result = []
    for info in pkgutil.walk_packages(diminuendo.__path__, "diminuendo."):
        if (
            "__main__" in info.name or "report" in info.name or "plot" in info.name
        ):  # matplotlib takes its time
            continue
        for function in plain_functions(importlib.import_module(info.name)):
            for name in names_in(function.__code__) if function not in compiled_by_table_type else ():
                called: Any = function.__globals__.get(name)
                inlined = isinstance(called, Dispatcher) and type(vars(called)["_cache"]) is NullCache
                if inlined and reads_global(function.__code__, name):
                    result.append(f"{function.__module__}.{function.__qualname__} calls {name}")
    assert not result, "make these kernels"
