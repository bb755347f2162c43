"""A trainer that is held up in the midst of a publication: what it decided before must still hold when it goes on."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from diminuendo.errors import LedgerDamaged, StoreUnavailable, Superseded
from diminuendo.privacy.ledger import Ledger
from diminuendo.service.front import placement as front_placement
from diminuendo.service.front.names import Names
from diminuendo.service.front.serving import Serving
from diminuendo.service.front.tokens import Tokens
from diminuendo.service.front.writer import Writer
from diminuendo.service.records import Said, Shown
from diminuendo.service.store import AnswerRow
from diminuendo.service.trainer.keys import Keys
from diminuendo.service.trainer.placement import STALE, Placement
from tests.service.test_trainer import learned
from tests.service.world import ITEMS, KINDS, TICK, World, spec


class HeldUp:
    """Does something once when a point is reached, if it is asked to."""

    def __init__(self, point: str) -> None:
        self.point = point
        self.meanwhile: Callable[[], Any] | None = None

    @property
    def waits(self) -> bool:
        """Whether it is still to happen."""
        return self.meanwhile is not None

    def __call__(self, point: str) -> None:
        if point == self.point and (meanwhile := self.meanwhile) is not None:
            self.meanwhile = None
            meanwhile()


def test_a_menu_does_not_take_effect_when_it_is_ready(tmp_path: Path) -> None:
    """Held up longer than its allowance, once its time was decided, it takes effect at the next tick; counted."""
    world, marks = World(tmp_path, place=KINDS["totals"]), HeldUp("encrypted")
    trainer = world.trainer(world.store, marks)
    world.play(8, trainer.step)
    before = world.menu().version

    def later() -> None:
        world.time += 10.1 * TICK

    marks.meanwhile = later
    while marks.waits:
        world.play(1, trainer.step)
    row = world.store.menus(1, before)[0]
    assert row.effective_at >= world.time
    assert row.effective_at % TICK == 0
    assert trainer.placements[1].missed_deadlines >= 1


def test_a_key_is_kept_as_long_as_front_ends_may_have_used_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Held up before it publishes: until then users answer to the key of before, to rounds that are reserved then."""
    result = learned(monkeypatch)
    world = World(tmp_path, place=spec("slate-totals", "bandit", deadline=50.0))
    marks, front = HeldUp("encrypted"), world.front[1]
    trainer = world.trainer(world.store, marks)
    trainer.step()
    world.front.clear()
    front.look()
    world.time += 4_000.0
    first = world.store.reserve_ids(1, 4, TICK, None)  # and so it is time for another snapshot

    def meanwhile() -> None:
        world.time += 100.0
        id_block = world.store.reserve_ids(1, 4, TICK, None)
        assert first is not None
        assert id_block is not None
        assert id_block.first == first.end
        front.show(id_block)
        rows = [AnswerRow(1, number, front.encrypted(said)) for _, number, said in front.delay]
        assert rows
        world.store.put(rows)

    world.time += TICK
    marks.meanwhile = meanwhile
    trainer.step()
    assert not marks.waits
    world.time += 20.0
    body = msgspec.json.encode({"appear": [], "retire": [ITEMS[1]], "why": "test"})
    world.store.add_event(1, "items", body, "test")
    world.time += TICK
    trainer.step()
    assert world.menu().version == 3
    world.time += 100.0
    trainer.step()
    assert sorted(result) == sorted(front.said)
    assert result


def test_whoever_is_superseded_takes_no_note_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Held up before it notes the ledger's head; another leads, publishes, and its head is the one that is noted."""
    world, held, heads = World(tmp_path, place=KINDS["totals"]), HeldUp("to be noted"), list[str | None]()
    one, planned = world.trainer(), Placement._planned

    def asked(self: Placement, *given: Any) -> float:
        if self is one.placements.get(1):
            held("to be noted")
        return planned(self, *given)

    monkeypatch.setattr(Placement, "_planned", asked)
    world.play(8, one.step)

    def meanwhile() -> None:
        other = world.trainer()
        world.play(60, other.step)
        heads.append(Keys(tmp_path / "keys").noted("users"))

    held.meanwhile = meanwhile
    for _ in range(60):
        if held.meanwhile is not None:
            world.play(1, one.step)
    assert not one.held, "whoever was superseded lets go"
    assert Keys(tmp_path / "keys").noted("users") == heads[0]
    assert heads[0] == world.menu().head


def test_notes_of_before_there_were_epochs_are_heeded(tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys")
    (tmp_path / "keys" / "all%20of%20them.head").write_text("ab")
    assert keys.noted("all of them") == "ab"
    keys.note("all of them", "cd", 2)
    keys.note("all of them", "ef", 10)
    with pytest.raises(Superseded):
        keys.note("all of them", "gh", 3)
    assert keys.noted("all of them") == "ef"
    assert keys.noted("all") is None


def test_a_ledger_that_lacks_what_a_later_epoch_noted_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path, place=KINDS["totals"])
    world.play(8, world.trainer().step)
    Keys(tmp_path / "keys").note("users", "00" * 32, 2**60)
    with pytest.raises(LedgerDamaged):
        Ledger.on(world.store.books("users", None), expect=Keys(tmp_path / "keys").noted("users"))


def test_a_front_end_that_was_held_up_looks_again_before_it_seals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key that it knows may be gone: what is encrypted to it would be acknowledged, and never be read."""
    assert front_placement.FRESH <= STALE / 2
    world, now = World(tmp_path, place=KINDS["totals"]), [0.0]
    world.play(8, world.trainer(world.store).step)
    monkeypatch.setattr(front_placement, "time", SimpleNamespace(monotonic=lambda: now[0]))
    (row,) = world.store.placements()
    place = front_placement.Placement(world.store, row, cast(Executor, None), lambda: world.time)
    serving = Serving(cast(Tokens, None), cast(Names, None), cast(Writer, None))
    place.refresh()
    said = Said(Shown(1, 0, 1, True, (0, 1, 2)), reward=1.0)
    now[0] += front_placement.FRESH - 1
    assert len(serving.row(place, said, world.time)) == 1
    now[0] += 2
    with pytest.raises(StoreUnavailable):
        serving.row(place, said, world.time)
    place.refresh()
    assert len(serving.row(place, said, world.time)) == 1
