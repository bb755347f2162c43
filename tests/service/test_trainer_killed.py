"""A trainer that is killed wherever it may be: what is published is the same, and nothing is drawn twice."""

from __future__ import annotations

import os
import signal
import traceback
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from diminuendo.errors import StoreUnavailable
from tests.kit.slow import mostly_slow
from tests.service.world import ITEMS, KINDS, Watched, World, repeat_noise

POINTS = (
    "ID blocks stopped", "answers read", "learned", "due", "drawn", "key made", "encrypted", "published",
    "keys dropped",
    "changed", "to be drawn", "entered",
)  # fmt: skip


class KilledAt:
    """Kills its process when it comes to one of these points, and leaves a note at which."""

    def __init__(self, points: set[str], note: Path) -> None:
        self.points, self.note = points, note

    def __call__(self, point: str) -> None:
        if point in self.points:
            self.note.write_text(point)
            os.kill(os.getpid(), signal.SIGKILL)


def in_a_child(work: Any) -> int:
    """Do something in a forked process; how it ended: 0, or the signal that killed it."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(9)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the trainer failed"
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def run(folder: Path, kind: str, points: set[str], watched: Watched) -> World:
    """A run in which now and then a new trainer, a process of its own, does what is due; killed once at each point."""
    world, note = World(folder, place=KINDS[kind]), folder / "note"
    for publish_interval in range(61):
        world.play(1, lambda: None)
        if publish_interval == 40:
            body = msgspec.json.encode({"appear": [], "retire": [ITEMS[1]], "why": "test"})
            world.store.add_event(1, "items", body, "test")
        if publish_interval % 5:
            continue
        watched.reached = reached = KilledAt(points if publish_interval > 20 else set(), note)
        while in_a_child(lambda reached=reached: world.trainer(reached=reached).step()):
            points.remove(note.read_text())
    assert not points, "it never came there"
    return world


@pytest.mark.parametrize("kind", mostly_slow(["totals", "clicks by type"], ["totals"]))
def test_killed_at_any_point_it_publishes_the_same(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = repeat_noise(monkeypatch)
    whole = run(tmp_path / "whole", kind, set(), watched)
    cut = run(tmp_path / "cut", kind, set(POINTS), watched)
    assert len(whole.releases()) > 3
    assert cut.releases() == whole.releases()
    assert cut.audited().drawn == whole.audited().drawn
    names = Counter(drawn.name for drawn in cut.audited().drawn)
    assert set(names.values()) == {1}, "something was drawn twice"
    assert cut.menu().slates == whole.menu().slates
    assert ledger_rounds(cut) == ledger_rounds(whole)


@pytest.mark.slow
@pytest.mark.parametrize("points", [set(POINTS[:10]), set(POINTS)], ids=["between", "within"])
def test_killed_in_a_chain_it_draws_no_further_rows(
    points: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between releases it publishes the same; within one, what was drawn stays and nothing is drawn twice."""
    watched, within = repeat_noise(monkeypatch), len(points) > 10
    whole = run(tmp_path / "whole", "greedy", set(), watched)
    cut = run(tmp_path / "cut", "greedy", set(points), watched)
    names = [drawn.name for drawn in cut.audited().drawn]
    assert len(names) == len(set(names)) > 10
    assert within or cut.releases() == whole.releases()


def ledger_rounds(world: World) -> list[tuple[int, int]]:
    return [(id_block.first, id_block.end) for id_block in world.store.id_blocks(1, 0)]


@pytest.mark.parametrize("call", mostly_slow(["answers", "id_blocks"], ["answers"]))
def test_a_store_that_goes_away_in_the_midst_of_a_step_loses_nothing(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Away for whatever is asked next as well, such as who leads: nothing goes on from half a step."""
    repeat_noise(monkeypatch)
    whole, _ = interrupted(tmp_path / "whole", "")
    cut, times = interrupted(tmp_path / "cut", call)
    assert times > 3, "it never came there"
    assert len(whole.releases()) > 3
    assert cut.releases() == whole.releases()
    assert ledger_rounds(cut) == ledger_rounds(whole)


def interrupted(folder: Path, call: str) -> tuple[World, int]:
    """A run in which the store is often away from that call on, until the trainer has given up; how often it was."""
    world = World(folder, place=KINDS["totals"])
    store = world.opened()
    trainer, away, times = world.trainer(store), list[bool](), 0

    def guarded(name: str, method: Any) -> Any:
        def asked(*given: Any, **more: Any) -> Any:
            if away and (name == call or any(away)):
                away[:] = [True]
                raise StoreUnavailable("It is away.")
            return method(*given, **more)

        return asked

    for name in ("answers", "id_blocks", "leaders", "heartbeat", "heartbeats", "now", "changed"):
        setattr(store, name, guarded(name, getattr(store, name)))
    for publish_interval in range(120):
        world.play(1, lambda: None)
        away[:] = [False] if call and publish_interval % 7 == 0 else []
        with suppress(StoreUnavailable):
            trainer.step()
        times, away[:] = times + any(away), []
        if publish_interval % 7 == 0:
            for waits in (1.25, 0.5):  # it is tried again after a second; then a menu takes effect
                world.time += waits
                trainer.step()
    return world, times
