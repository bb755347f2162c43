"""Where trainers query users changes nothing that is published, also after a restart, and where workers are lost."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from diminuendo.errors import InvalidInput
from diminuendo.learners.base import users
from diminuendo.learners.base.engines import OnRay, Threads, engine_called
from diminuendo.service.site import CLUSTER, ENGINES, read_site
from tests.kit.fake_ray import FakeRay
from tests.learners.test_engines import on
from tests.service.test_site import GOOD, written
from tests.service.world import KINDS, World, repeat_noise

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
    """What users see; keys that answers are encrypted to are drawn anew each time."""
    return [
        row.body.split(b'"seal"')[0] for number in sorted(world.front) for row in world.store.menus(number)
    ]


@pytest.mark.parametrize("kind", ["greedy", pytest.param("greedy by type", marks=pytest.mark.slow)])
def test_every_engine_publishes_the_same(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after a restart, and where workers are lost."""
    repeat_noise(monkeypatch)
    monkeypatch.setattr(users, "BLOCK", 40)
    here, seen = published(tmp_path / "here", None, kind)
    assert len(here.releases()) > 5
    for number, engine in enumerate((Threads(3), on(FakeRay(3, lost_in=(2, 20, 31)), monkeypatch))):
        world, result = published(tmp_path / str(number), engine, kind)
        assert world.releases() == here.releases()
        assert result == seen


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs pip install 'diminuendo[ray]'")
def test_a_real_cluster_publishes_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_TMPDIR", "/tmp")
    repeat_noise(monkeypatch)
    here, seen = published(tmp_path / "here", None)
    world, result = published(tmp_path / "there", engine_called("ray"))
    assert world.releases() == here.releases()
    assert result == seen


def test_a_site_says_where_users_are_kept(tmp_path: Path) -> None:
    assert read_site(written(tmp_path, GOOD)).engine == "here"
    for said in (*ENGINES, f"{CLUSTER}head:10001"):
        assert read_site(written(tmp_path, f'engine = "{said}"\n{GOOD}')).engine == said
        engine_called(said)
    assert engine_called(f"{CLUSTER}head:10001") == OnRay(f"{CLUSTER}head:10001")
    with pytest.raises(InvalidInput, match="engine: here, threads, ray, or the address"):
        read_site(written(tmp_path, f'engine = "spark"\n{GOOD}'))
