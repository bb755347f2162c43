"""Looks of a front end: one question for all placements, and no menu is missed."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from diminuendo.errors import StoreUnavailable
from diminuendo.service.store.sqlite import SqliteStore
from tests.service.site import Site, block, spec

AT_REST = Counter({"now": 1, "published": 1, "placements": 1})


class Counting:
    """A store that counts what it is asked."""

    def __init__(self, store: Any) -> None:
        self.store, self.asked, self.away = store, Counter[str](), ""

    def __getattr__(self, name: str) -> Any:
        result = getattr(self.store, name)

        def call(*given: Any) -> Any:
            self.asked[name] += 1
            if name == self.away:
                raise StoreUnavailable("away")
            return result(*given)

        return call

    def told(self) -> Counter[str]:
        """What it was asked since the last time."""
        result, self.asked = self.asked, Counter()
        return result


def versions(site: Site) -> dict[str, int]:
    """The menus that the front end knows."""
    return {name: place.version for name, place in site.app.front.by_name.items() if place.version}


@pytest.mark.parametrize("many", [1, 40])
def test_what_a_front_end_asks_at_rest_does_not_grow_with_placements(many: int, tmp_path: Path) -> None:
    store: Any = Counting(SqliteStore(tmp_path / "site.db"))
    site = Site(tmp_path, store, **{f"place{number}": spec("click") for number in range(many)})
    for name in site.numbers:
        site.publish(name, block(0, 90))

    async def work() -> None:
        front = site.app.front
        assert versions(site) == dict.fromkeys(site.numbers, 1)
        for task in front._tasks:  # it looks when it is told to
            task.cancel()
        await front.look()
        store.told()
        await front.look()
        assert store.told() == AT_REST
        assert all(place.fresh for place in front.by_name.values())
        site.publish("place0", block(90, 180, version=2))
        store.told()
        await front.look()
        assert store.told() == AT_REST + Counter({"menus": 1})
        assert versions(site)["place0"] == 2

    site.run(work)


def test_a_menu_that_could_not_be_read_is_read_the_next_time(tmp_path: Path) -> None:
    store: Any = Counting(SqliteStore(tmp_path / "site.db"))
    site = Site(tmp_path, store, one=spec("click"), two=spec("click"))

    async def work() -> None:
        front = site.app.front
        for task in front._tasks:
            task.cancel()
        for away in ("menus", "placements", "published", "now"):
            version = site.app.front.by_name["one"].version + 1
            for name in site.numbers:
                site.publish(name, block(90 * version, 90 * version + 90, version=version))
            store.away = away
            await front.look()
            result = [bool(front.watch.why)]
            assert set(versions(site).values()) <= {version - 1}
            store.away = ""
            await front.look()
            assert [*result, bool(front.watch.why)] == [True, False]
            assert versions(site) == {"one": version, "two": version}

    site.run(work)


def test_a_placement_that_is_made_in_the_midst_of_a_look_is_found_with_its_menu(tmp_path: Path) -> None:
    """Whatever is told of between two questions is not lost."""
    store: Any = Counting(SqliteStore(tmp_path / "site.db"))
    site = Site(tmp_path, store, one=spec("click"))
    site.publish("one", block(0, 90))
    asked, made = store.store.published, threading.Event()

    def delay(*given: Any) -> Any:
        if not made.is_set() and given[0]:
            made.set()
            site.numbers["two"] = store.add_placement("two", "users", msgspec.json.encode(spec("click")))
            site.publish("two", block(0, 90))
            site.publish("one", block(90, 180, version=2))
        return asked(*given)

    async def work() -> None:
        for task in site.app.front._tasks:
            task.cancel()
        store.store.published = delay
        await site.app.front.look()
        assert made.is_set()
        await site.app.front.look()
        assert versions(site) == {"one": 2, "two": 1}

    site.run(work)
