"""A store that is put back under a trainer that runs: it goes on leading there, and draws nothing any more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from diminuendo.errors import LedgerDamaged
from diminuendo.service.store.postgres import PostgresStore
from diminuendo.service.trainer.trainer import HEARTBEAT_EVERY, Trainer
from tests.kit.postgres import Server
from tests.service.test_postgres_server import fresh, wall  # noqa: F401
from tests.service.test_sqlite_store import copy_of
from tests.service.world import KINDS, TICK, World


class PostgresWorld(World):
    """The same world, with its store in a database."""

    def __init__(self, folder: Path, server: Server, database: str, **placements: Any) -> None:
        self._server, self._database, self._time = server, database, 0.0
        PostgresStore(server.address(database)).close()  # there are tables
        super().__init__(folder, **placements)

    @property
    def time(self) -> float:
        return self._time

    @time.setter
    def time(self, at: float) -> None:
        self._time = at
        wall(self._server, self._database, at)

    def opened(self) -> Any:
        return PostgresStore(self._server.address(self._database))


class Place(NamedTuple):
    """A world and how its store is copied."""

    world: World
    copied: Callable[[], Callable[[], None]]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "sqlite":
        world = World(tmp_path, place=KINDS["totals"])
        yield Place(world, partial(copy_of, tmp_path / "store.db"))
    else:
        server, database = request.getfixturevalue("postgres_server"), request.getfixturevalue("fresh")
        world = PostgresWorld(tmp_path, server, database, place=KINDS["totals"])
        yield Place(world, partial(server.copied, database))
    world.store.close()


def released(place: Place, trainer: Trainer) -> Callable[[], None]:
    """Play until something was released that is not in a copy; what puts that copy back."""
    world = place.world
    world.play(16, trainer.step)
    rolled_back, before = place.copied(), len(world.releases())
    assert before
    while len(world.releases()) == before:
        world.play(1, trainer.step)
    return rolled_back


def test_a_trainer_notices_by_its_own_beat(place: Place) -> None:
    world, trainer = place.world, place.world.trainer()
    released(place, trainer)()
    known = world.releases(), world.lines()
    with pytest.raises(LedgerDamaged, match="rolled back while it ran"):
        world.play(round(HEARTBEAT_EVERY / TICK) + 1, trainer.step)
    assert (world.releases(), world.lines()) == known


def test_a_trainer_whose_beats_say_nothing_notices_by_its_ledger(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It tries again and again, and each time it is refused, loudly."""
    world, trainer = place.world, place.world.trainer()
    rolled_back = released(place, trainer)
    population = trainer.held["users"]
    monkeypatch.setattr(trainer, "_send_heartbeat", lambda: None)
    rolled_back()
    known = world.releases(), world.lines()
    world.play(40, trainer.step)
    assert population is trainer.held["users"], "it leads all the time"
    assert (world.releases(), world.lines()) == known
    assert trainer.failures[1].startswith("LedgerDamaged"), trainer.failures
    assert world.store.heartbeats()["placement place"][1], "and everybody is told that it waits"


def test_a_note_that_was_never_finished_is_no_trainers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed while it writes down that it is well: what is left behind is no sign that the store is older."""
    world = World(tmp_path, place=KINDS["totals"])
    trainer = world.trainer(world.store)
    world.play(4, trainer.step)

    def killed(*given: Any) -> None:
        raise SystemExit("killed")

    with monkeypatch.context() as patch:
        patch.setattr("diminuendo.privacy.books.durable.os.replace", killed)
        world.time += 2 * HEARTBEAT_EVERY
        with pytest.raises(SystemExit):
            trainer.step()
    other = world.trainer()
    world.play(4, other.step)
    assert other.held
