"""The supervisor: it restarts what dies, stops all in time, and leaves no process behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from diminuendo.errors import InvalidInput
from diminuendo.service import processes
from diminuendo.service.processes import Child, Processes

SLEEPS = "import time; time.sleep(60)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Processes]:
    result = Processes(tmp_path / "site.toml", "127.0.0.1", 0, 1, lambda line: None)
    result.children = []
    yield result
    result.stop()


def started(site: Processes, program: str) -> Child:
    child = Child("one", [sys.executable, "-c", program])
    site.children.append(child)
    site.watch()
    return child


def there(child: Child) -> subprocess.Popen[bytes]:
    assert child.process is not None
    return child.process


def watched(site: Processes) -> bool:
    site.watch()
    return True


def wait_for(what: Callable[[], bool]) -> None:
    until = time.monotonic() + 10
    while not what():
        assert time.monotonic() < until, "timed out"
        time.sleep(0.01)


def test_a_machine_may_train_serve_or_both(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InvalidInput, match=r"Cannot listen on 127\.0\.0\.1"):
            Processes(tmp_path, "127.0.0.1", port, 1, lambda line: None)
        trains = Processes(tmp_path, "127.0.0.1", port, 0, lambda line: None, trainers=3)
    assert [child.name for child in trains.children] == ["trainer 0", "trainer 1", "trainer 2"]
    assert trains.port == 0
    both = Processes(tmp_path, "127.0.0.1", 0, 2, lambda line: None, trainers=1)
    assert [child.name for child in both.children] == ["trainer 0", "front end 0", "front end 1"]
    assert [child.command[3] for child in both.children] == ["trainer", "front", "front"]
    assert [child.handed == () for child in both.children] == [True, False, False]
    assert both.port > 0
    trains.stop()
    both.stop()


def test_restarts_come_later_each_time(site: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "AGAIN", 0.01)
    lines = list[str]()
    site._say = lines.append
    child = started(site, "raise SystemExit(3)")
    waits = []
    for death in (1, 2, 3):
        there(child).wait()
        site.watch()
        assert child.deaths == death
        waits.append(child.not_before - time.monotonic())
        wait_for(lambda: watched(site) and child.process is not None)
    assert waits[0] < waits[1] < waits[2]
    assert lines == ["one ended (3); restarting."] * 3, "and nothing else"


def test_endless_deaths_do_not_overflow(site: Processes) -> None:
    child = started(site, "raise SystemExit(3)")
    child.deaths = 1_000_000
    there(child).wait()
    site.watch()
    assert child.deaths == 1_000_001
    assert 59 < child.not_before - time.monotonic() <= 60


def test_a_process_that_cannot_start_does_not_stop_the_others(
    site: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = list[str]()

    def say(line: str) -> None:
        said.append(line)
        raise BrokenPipeError

    site._say = say
    monkeypatch.setattr(processes, "AGAIN", 0.01)
    site.children += [Child("one", [str(site)]), Child("two", [sys.executable, "-c", SLEEPS])]
    laps = iter(range(10))
    site.run(until=lambda: next(laps) == 5)
    one, two = site.children
    assert one.deaths > 1
    assert set(said) == {"one cannot be started (FileNotFoundError); restarting."}
    assert there(two).returncode == -signal.SIGTERM, "until the end"


def test_before_stop_is_called_while_all_run(site: Processes) -> None:
    child, ran = started(site, SLEEPS), list[bool]()

    def before_stop() -> None:
        ran.append(there(child).poll() is None)
        raise KeyError

    with pytest.raises(KeyError):
        site.run(until=lambda: True, before_stop=before_stop)
    assert ran == [True]
    assert there(child).returncode == -signal.SIGTERM


def test_processes_that_ignore_sigterm_are_killed(site: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GRACE", 0.3)
    gentle, stubborn = started(site, SLEEPS), started(site, STUBBORN)
    time.sleep(0.3)  # until it has begun to ignore what it is asked
    site.stop()
    assert there(gentle).returncode == -signal.SIGTERM
    assert there(stubborn).returncode in (-signal.SIGKILL, -signal.SIGTERM)


def test_a_signal_ends_the_run(site: Processes) -> None:
    started(site, SLEEPS)
    before = signal.getsignal(signal.SIGTERM)
    laps = iter(range(100))

    def soon() -> bool:
        if next(laps) == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return False

    site.run(until=soon)
    assert signal.getsignal(signal.SIGTERM) is before
    assert all(child.process is not None and child.process.poll() is not None for child in site.children)


def test_a_child_notices_that_its_parent_is_gone() -> None:
    program = """
import os, time
from diminuendo.service.processes import end_with_parent
reads, writes = os.pipe()
if os.fork() == 0:
    gone = end_with_parent()
    os.write(writes, b"!")
    for _ in range(1000):
        if gone():
            os.write(1, b"gone")
            os._exit(0)
        time.sleep(.01)
    os._exit(1)
os.read(reads, 1)
os.write(1, b"here ")
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=20)
    assert ran.stdout == b"here gone"
