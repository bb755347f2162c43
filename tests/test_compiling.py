"""Who waits for kernels to be compiled is told so, once and on stderr; what is said never gets in the way."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from diminuendo import _compile_progress as progress
from diminuendo._compile_progress import LINE, Once, reported_by
from diminuendo.cli import app, main, screen


def compile_two_kernels() -> None:
    """What the cache says when two kernels are compiled, the first with a function in it."""
    progress.begin("first")
    progress.begin("a function in it")
    progress.end()
    progress.end()
    progress.begin("second")
    progress.end()


def wait_until(it_is_so: Callable[[], bool]) -> None:
    """Wait for another thread, but not for ever."""
    deadline = time.monotonic() + 20
    while not it_is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_functions_within_a_kernel_are_part_of_it() -> None:
    heard: list[str | None] = []
    with reported_by(heard.append):
        compile_two_kernels()
    assert heard == ["first", None, "second", None]


def test_one_line_however_many_kernels() -> None:
    said: list[str] = []
    with reported_by(Once(said.append)):
        compile_two_kernels()
    assert said == [LINE]
    compile_two_kernels()
    assert said == [LINE], "the reporter before is back"


def test_a_screen_that_is_gone_is_no_reason_to_fail() -> None:
    closed = io.StringIO()
    closed.close()
    tried: list[str] = []

    def tell(line: str) -> None:
        tried.append(line)
        print(line, file=closed)

    with reported_by(Once(tell)):
        compile_two_kernels()
    assert tried == [LINE]


def test_commands_say_a_line_on_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    written = Console(file=io.StringIO(), width=200)
    monkeypatch.setattr(screen, "errors", written)
    monkeypatch.setattr(app, "app", compile_two_kernels)
    main()
    assert written.file.getvalue() == f"{LINE}\n"  # type: ignore[attr-defined]


@pytest.mark.parametrize("terminal", [True, False])
def test_bars_show_it_where_there_is_a_terminal(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    monkeypatch.setattr(screen, "errors", Console(file=file, width=120, force_terminal=terminal))
    before: list[str | None] = []
    with reported_by(before.append), screen.progress_bars() as bars:
        bars("users", 10)(10)
        compile_two_kernels()
    assert ("compiling for this machine, kept for next time: kernel 2" in file.getvalue()) == terminal
    assert before == ([] if terminal else ["first", None, "second", None])


def test_workers_report_through_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.01)
    heard: list[str | None] = []
    with reported_by(heard.append), progress.reported_by_workers() as file:
        one, other = (partial(progress._write, file) for _ in range(2))
        one("first")
        other("second")
        one(None)
        wait_until(lambda: heard == ["first", "second"])  # the other is still at it
        other(None)
        wait_until(lambda: heard == ["first", "second", None])
        one("third")
        wait_until(lambda: heard[-1] == "third")
    assert heard[-1] is None, "who is killed on the way is not waited for"
    assert not file.exists()


def test_a_worker_writes_and_says_nothing(tmp_path: Path) -> None:
    before = progress.set_reporter(lambda kernel: None)
    try:
        progress.report_to(tmp_path / "said")
        compile_two_kernels()
    finally:
        progress.set_reporter(before)
    assert (tmp_path / "said").read_text() == "first\n\nsecond\n\n"
