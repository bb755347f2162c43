"""Processes of a site: whoever dies is started again, all are stopped in time, and nobody is left behind."""

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
from diminuendo.service.processes import Child, Processes, listening

SLEEPS = "import time; time.sleep(60)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Processes]:
    made = Processes(tmp_path / "site.toml", "127.0.0.1", 0, 1, lambda line: None)
    made.children = []
    yield made
    made.stop()


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
        assert time.monotonic() < until, "it never came about"
        time.sleep(0.01)


def test_commands_are_of_a_trainer_and_of_front_ends(tmp_path: Path) -> None:
    made = Processes(tmp_path / "site.toml", "127.0.0.1", 0, 2, lambda line: None, trainers=2)
    names = [child.name for child in made.children]
    assert names == ["trainer 0", "trainer 1", "front end 0", "front end 1"]
    assert all(child.command[3] in ("trainer", "front") for child in made.children)
    assert [child.handed == () for child in made.children] == [True, True, False, False]
    assert made.port > 0
    made.stop()


def test_a_machine_may_only_train_or_only_serve(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        trains = Processes(tmp_path, "127.0.0.1", taken.getsockname()[1], 0, lambda line: None, trainers=3)
    assert [child.name for child in trains.children] == ["trainer 0", "trainer 1", "trainer 2"]
    assert trains.port == 0
    serves = Processes(tmp_path, "127.0.0.1", 0, 1, lambda line: None, trainers=0)
    assert [child.name for child in serves.children] == ["front end 0"]
    trains.stop()
    serves.stop()


def test_who_dies_is_started_again_a_little_later_each_time(
    site: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "AGAIN", 0.01)
    child = started(site, "raise SystemExit(3)")
    waits = []
    for death in (1, 2, 3):
        there(child).wait()
        site.watch()
        assert child.deaths == death
        waits.append(child.not_before - time.monotonic())
        wait_for(lambda: watched(site) and child.process is not None)
    assert waits[0] < waits[1] < waits[2]


def test_one_that_dies_for_ever_stops_nobody(site: Processes) -> None:
    child = started(site, "raise SystemExit(3)")
    child.deaths = 1_000_000
    there(child).wait()
    site.watch()
    assert child.deaths == 1_000_001
    assert 59 < child.not_before - time.monotonic() <= 60


def test_one_that_cannot_be_started_takes_no_other_along(
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


def test_what_is_to_be_done_before_the_end_is_done_while_all_run(site: Processes) -> None:
    child, ran = started(site, SLEEPS), list[bool]()

    def before_stop() -> None:
        ran.append(there(child).poll() is None)
        raise KeyError

    with pytest.raises(KeyError):
        site.run(until=lambda: True, before_stop=before_stop)
    assert ran == [True]
    assert there(child).returncode == -signal.SIGTERM


def test_who_dies_is_named_and_nothing_else_is_said(site: Processes) -> None:
    said = list[str]()
    site._say = said.append
    there(started(site, "raise SystemExit(3)")).wait()
    site.watch()
    assert said == ["one ended (3); restarting."]


def test_all_are_asked_to_stop_and_who_does_not_is_ended(
    site: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_whoever_started_it_is_gone() -> None:
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


def test_a_port_that_is_taken_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InvalidInput, match=r"Cannot listen on 127\.0\.0\.1"):
            listening("127.0.0.1", taken.getsockname()[1])
