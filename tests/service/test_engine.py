"""Where trainers keep people changes nothing that is published, also after a restart, and after an actor was lost."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diminuendo.errors import InvalidInput
from diminuendo.learners.base.kept import on_ray
from diminuendo.learners.base.kept.engines import Here, OnRay, engine_called, held
from diminuendo.service.records import Report
from diminuendo.service.site import CLUSTER, ENGINES, read_site
from diminuendo.service.store import Lease
from diminuendo.service.trainer.made import engine_of
from tests.kit.fake_ray import FakeRay
from tests.service.test_site import GOOD, written
from tests.service.world import KINDS, TICK, Front, World, repeat_noise

TICKS = 60


def published(
    folder: Path, engine: Any, kind: str = "greedy", restart: bool = True
) -> tuple[World, list[bytes]]:
    """The world, and all menus; half-way another trainer goes on from the store."""
    world = World(folder, place=KINDS[kind], other=KINDS["greedy"])
    for ticks in (TICKS // 2, TICKS // 2) if restart else (TICKS,):
        trainer = world.trainer(engine=engine, listens=0.0)
        world.play(ticks, trainer.step)
        assert not trainer.failures
        trainer.leave()
    return world, menus(world)


def menus(world: World) -> list[bytes]:
    """What people see; keys that answers are sealed to are drawn anew each time."""
    return [
        row.body.split(b'"seal"')[0] for number in sorted(world.front) for row in world.store.menus(number)
    ]


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    fake = FakeRay()
    monkeypatch.setattr(on_ray, "joined", lambda *_, **__: (fake, lambda: None))
    return fake


@pytest.mark.parametrize("kind", ["greedy", pytest.param("greedy by type", marks=pytest.mark.slow)])
def test_every_engine_publishes_the_same(
    kind: str, ray: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repeat_noise(monkeypatch)
    here, seen = published(tmp_path / "here", None, kind)
    assert len(here.releases()) > 5
    for number, engine in enumerate((Here(3, 3), OnRay(3, remembers=False))):
        world, found = published(tmp_path / str(number), engine, kind)
        assert world.releases() == here.releases()
        assert found == seen
    sizes = [actor.there.size() for actor in ray.actors]
    assert len(sizes) == 12, "three for each placement of each trainer"
    for three in (sizes[6:9], sizes[9:]):
        assert min(three) > 0.3 * sum(three) - 1, "people of a snapshot are spread over all"


def when_shown(monkeypatch: pytest.MonkeyPatch) -> dict[int, float]:
    """When each round was handed out."""
    show, found = Front.show, dict[int, float]()

    def noted(self: Front, lease: Lease) -> Report:
        found.update(dict.fromkeys(range(lease.first, lease.end), self.world.time))
        return show(self, lease)

    monkeypatch.setattr(Front, "show", noted)
    return found


@pytest.mark.parametrize("when", ["keep_rows", "begin", "singles", "row", "around", "written"])
def test_people_of_an_actor_that_is_lost_come_back_from_the_store(
    when: str, ray: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, world = when_shown(monkeypatch), World(tmp_path, place=KINDS["greedy"])
    trainer = world.trainer(world.store, engine=OnRay(2, remembers=False))
    world.play(2, trainer.step)
    before = world.menu()
    ray.actors[1].dies_at = when, 2
    world.play(TICKS, trainer.step)
    assert ray.actors[1].lost
    assert len(ray.actors) == 4, "its placement began again"
    assert not trainer.failures
    assert world.menu().version > before.version + 2
    assert world.audited().head == world.menu().head
    kept = np.concatenate([actor.there.written()[1]["rounds"] for actor in ray.actors[2:]]).tolist()
    assert len(set(kept)) == len(kept), "nobody is there twice"
    # An answer arrives with the first tick after it was given, and a lease lasts for two.
    left = {
        number: shown[number] + 2 * TICK + world.facts[1].deadline - at
        for number, (at, _) in world.front[1].said.items()
        if number < trainer.placements[1]._door.settled
    }
    assert {number for number in left if left[number] > TICK} <= set(kept), "nobody is lost"
    assert set(kept) <= {number for number in left if left[number] >= 0}


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs pip install 'diminuendo[ray]'")
def test_a_real_cluster_publishes_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_TMPDIR", "/tmp")
    repeat_noise(monkeypatch)
    here, seen = published(tmp_path / "here", None)
    engine = engine_of("ray")
    with held(engine):
        world, found = published(tmp_path / "there", engine)
    assert world.releases() == here.releases()
    assert found == seen


def test_a_site_says_where_people_are_kept(tmp_path: Path) -> None:
    assert read_site(written(tmp_path, GOOD)).engine == "here"
    for said in (*ENGINES, f"{CLUSTER}head:10001"):
        assert read_site(written(tmp_path, f'engine = "{said}"\n{GOOD}')).engine == said
        engine_called(said)
    assert engine_of(f"{CLUSTER}head:10001") == OnRay(None, f"{CLUSTER}head:10001", remembers=False)
    with pytest.raises(InvalidInput, match="engine: here, threads, ray, or the address"):
        read_site(written(tmp_path, f'engine = "spark"\n{GOOD}'))
