"""How long a trainer takes, within its allowance, is seen by nobody: not in ledgers, lists, menus, pages or numbers."""

from __future__ import annotations

import asyncio
import io
import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from diminuendo.service.api import create_app
from diminuendo.service.dashboard.views import Public
from diminuendo.service.front import front
from diminuendo.service.front.front import Front
from diminuendo.service.front.placement import Placement as Shown
from diminuendo.service.log import Log
from diminuendo.service.records import PlacementSpec
from diminuendo.service.store import sql
from diminuendo.service.store.sqlite import SqliteStore
from diminuendo.service.store.sqlite_file import SqliteFile
from diminuendo.service.trainer.placement import Placement
from diminuendo.service.trainer.trainer import Trainer
from tests.kit.slow import mostly_slow
from tests.service.site import CONFIG, KEYS
from tests.service.world import ITEMS, KINDS, TICK, World, repeat_noise

ALLOWANCE, TICKS, RETIRE = 8, 56, 34
"""Ticks that a trainer may take; that are played; and the one at which items retire."""
EACH = ("", "/menu", "/versions")
HEARD = msgspec.structs.replace(KINDS["totals"], epsilon=4.0, response_count=0.4)
PLACES: dict[str, dict[str, PlacementSpec]] = {
    **{kind: {"place": each} for kind, each in KINDS.items()},
    "response_count": {"place": HEARD},
    "unavailable": {"place": msgspec.structs.replace(KINDS["greedy"], per_second=6.0, epsilon=1.0)},
    "two": {
        "place": msgspec.structs.replace(KINDS["totals"], epsilon=4.0, publish_interval=2 * TICK),
        "other": msgspec.structs.replace(KINDS["greedy"], epsilon=4.0, delta=0.0, learner="epoch-greedy"),
    },
}


class Onlooker:
    """Whoever has all keys, and looks at everything."""

    def __init__(self, world: World) -> None:
        self.world, self.log = world, io.StringIO()
        self.app = create_app(world.store, CONFIG, Log(self.log))
        self.pages = ["/", "/populations", "/populations/users", "/metrics", "/healthz", "/readyz"]
        self.pages += ["/v1/populations/users/ledger", "/v1/placements"]
        names = [row.name for row in world.store.placements()]
        self.pages += [f"/v1/placements/{name}{each}" for name in names for each in EACH]
        self.pages += [f"/placements/{name}" for name in names]

    async def look(self) -> dict[str, str]:
        """Everything that can be asked for, and what the log says without its times."""
        await self.app.front.look()
        result = {page: await self.page(page) for page in self.pages}
        lines = map(json.loads, self.log.getvalue().splitlines())
        result["log"] = str([{key: said for key, said in line.items() if key != "at"} for line in lines])
        public = Public(self.world.store)  # of somebody who looks for the first time
        result["new"] = str([vars(view) for view in public.state().placements]).replace(str(ITEMS), "")
        return {page: _without_keys(said) for page, said in result.items()}

    async def page(self, path: str) -> str:
        body = list[bytes]()

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            body.append(message.get("body", b"%d" % message.get("status", 0)))

        key = KEYS["admin"].encode()
        headers = [(b"authorization", b"Bearer " + key), (b"cookie", b'diminuendo-key="' + key + b'"')]
        scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "root_path": ""}
        await self.app(scope | {"headers": headers, "scheme": "http", "server": ("here", 80)}, receive, send)
        return b"".join(body).decode()


def _without_keys(said: str) -> str:
    """Keys that answers are encrypted to, and traces, are drawn anew each time."""
    for before, after in (('"seal":"', '"'), ("seal='", "'"), ('"trace":"', '"')):
        parts = said.split(before)
        said = before.join([parts[0], *(part.partition(after)[2] for part in parts[1:])])
    return said


def seen(
    folder: Path,
    places: dict[str, PlacementSpec],
    when: list[bool],
    patch: pytest.MonkeyPatch,
    event: int = -1,
) -> list[dict[str, str]]:
    """What can be seen tick by tick, where the trainer gets to its work at some of them."""
    slow = {
        name: msgspec.structs.replace(each, publish_delay=ALLOWANCE * TICK) for name, each in places.items()
    }
    world = World(folder, **slow)
    onlooker, result = Onlooker(world), list[dict[str, str]]()
    trainer: Trainer = world.trainer(world.store)
    patch.setattr(front, "time", type("Frozen", (), {"monotonic": staticmethod(lambda: world.time)}))

    async def work() -> None:
        await onlooker.app.front.start()
        for publish_interval, works in enumerate(when):
            world.play(1, lambda works=works: trainer.step() if works else None)  # type: ignore[misc]
            if publish_interval % 8 == 0:
                await onlooker.app.front.store_probe()
            if publish_interval == RETIRE:
                world.store.add_event(1, "items", msgspec.json.encode({"retire": ITEMS[:2]}), "me")
            result.append(await onlooker.look())
        await onlooker.app.front.stop()

    async def never(self: Front, *_: Any) -> None:
        """Here somebody else says when it looks."""

    patch.setattr(Front, "_again", never)
    asyncio.run(work())
    assert not trainer.failures
    assert not any(each.missed_deadlines for each in trainer.placements.values())
    world.store.close()
    return result


def at_some(ticks: int, seed: int) -> list[bool]:
    """Ticks at which a trainer gets to its work: the pauses are shorter than its allowance."""
    rng, result = random.Random(seed), [True]
    while len(result) < ticks:
        result += [False] * rng.randrange(ALLOWANCE - 1) + [True]
    return result[:ticks]


def apart(one: list[dict[str, str]], other: list[dict[str, str]]) -> str:
    """Where they differ first."""
    for publish_interval, (here, there) in enumerate(zip(one, other, strict=True)):
        for page in here:
            if here[page] != there[page]:
                pairs = zip(here[page].split(), there[page].split(), strict=False)
                return (
                    f"tick {publish_interval}, {page}: {next(pair for pair in pairs if pair[0] != pair[1])}"
                )
    return ""


@pytest.mark.parametrize("kind", mostly_slow(list(PLACES), ["response_count"]))
def test_nobody_sees_how_much_of_its_allowance_a_release_took(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two trainers, of which one gets to its work later, and not too late."""
    repeat_noise(monkeypatch)
    plans = [[True] * TICKS, at_some(TICKS, 1)]
    views = [seen(tmp_path / str(at), PLACES[kind], when, monkeypatch) for at, when in enumerate(plans)]
    assert apart(*views) == ""
    last = views[0][-1]
    assert not [page for page, text in last.items() if text.startswith("404")]
    assert json.loads(last["/v1/placements/place/versions"].removeprefix("200"))["versions"][2:]
    assert json.loads(last["/v1/populations/users/ledger"].removeprefix("200"))["lines"][3:]


# Faults that are found.


def lines_are_shown_when_they_are_written(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SqliteFile, "visible_entries", lambda self, population: 2**62)


def menus_are_shown_when_they_are_ready(patch: pytest.MonkeyPatch) -> None:
    def at_once(self: Placement, at: float) -> float:
        return math.ceil(self._store.now() / self.spec.publish_interval) * self.spec.publish_interval

    patch.setattr(Placement, "_planned", at_once)


def id_blocks_are_gone_with_what_was_published(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sql, "_IN_EFFECT", sql._IN_EFFECT.replace("<= $2", "<= $2 + 1e9"))


def front_ends_tell_of_menus_to_come(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Shown, "in_effect", lambda self: self._menus[-1] if self._menus else None)


def id_blocks_go_on_until_the_trainer_knows(patch: pytest.MonkeyPatch) -> None:
    execute = SqliteFile.execute

    def by_the_trainer(self: SqliteFile, statement: str, *values: object) -> int:
        return 0 if "SET stopped" in statement else execute(self, statement, *values)

    patch.setattr(SqliteFile, "execute", by_the_trainer)


def rounds_are_allowed_at_once(patch: pytest.MonkeyPatch) -> None:
    allow = SqliteStore.allow
    patch.setattr(
        SqliteStore,
        "allow",
        lambda self, fencing_token, number, past, _: allow(self, fencing_token, number, past, 0.0),
    )


def one_placement_after_the_other(patch: pytest.MonkeyPatch) -> None:
    follow = Placement.follow

    def all_of_it(self: Placement) -> None:
        while self.next < math.inf:
            follow(self)

    patch.setattr(Placement, "follow", all_of_it)


FAULTS: list[tuple[Callable[[pytest.MonkeyPatch], None], str]] = [
    (lines_are_shown_when_they_are_written, "totals"),
    (menus_are_shown_when_they_are_ready, "totals"),
    (id_blocks_are_gone_with_what_was_published, "totals"),
    (front_ends_tell_of_menus_to_come, "totals"),
    (id_blocks_go_on_until_the_trainer_knows, "totals"),
    (rounds_are_allowed_at_once, "unavailable"),
    (one_placement_after_the_other, "two"),
]


@pytest.mark.parametrize(
    "fault", mostly_slow(range(len(FAULTS)), []), ids=[plant.__name__ for plant, _ in FAULTS]
)
def test_planted_faults_are_found(fault: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repeat_noise(monkeypatch)
    plant, kind = FAULTS[fault]
    plant(monkeypatch)
    prompt = seen(tmp_path / "prompt", PLACES[kind], [True] * TICKS, monkeypatch)
    delay = (seen(tmp_path / str(at), PLACES[kind], at_some(TICKS, at), monkeypatch) for at in range(1, 5))
    assert any(apart(prompt, each) for each in delay)
