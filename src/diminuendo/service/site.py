"""A site: all that an operator says before the service starts, in one file, checked as a whole.

    store = "site.db"                  # where everything is remembered; beside this file
    keys = "keys"                      # a folder that only the service may read; made where there is none
    listen = "127.0.0.1:8080"
    front_ends = 2                     # processes of this machine that serve, and ...
    trainers = 1                       # ... that learn; several machines may share a store

    [access]                           # SHA-256 of keys; `diminuendo serve --new-key operate` makes one
    serve = ["..."]
    operate = ["..."]

    [populations.visitors]             # users who are protected together: one budget, one ledger
    epsilon = 1.0

    [placements.home]
    population = "visitors"
    items = "items.txt"                # one name a line; or a list of names
    slots = 5
    feedback = "click"
    users = 1_000_000                 # how many rounds it is made for
    deadline = "60 s"                  # how long an answer counts

Everything that is wrong with it is said at once, and nothing is started then.
"""

from __future__ import annotations

import os
import re
import socket
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from diminuendo.errors import InvalidInput
from diminuendo.service.api.keys import ROLES
from diminuendo.service.api.unfit import unfit_placement, unfit_population
from diminuendo.service.records import PlacementSpec, PopulationSpec

STORE = "DIMINUENDO_STORE"
"""In the environment: the address of a store that is used instead of the site's own."""
UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(s|min|h|d)\s*")
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
MACHINE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,59}")
ENGINES, CLUSTER = ("here", "threads", "ray"), "ray://"
"""Where users may be kept, as `engine_called` reads it; written down once more, because learners take long to load."""
DURATIONS = ("deadline", "publish_interval", "publish_delay")


class _Top(Struct, forbid_unknown_fields=True):
    """What stands outside of tables."""

    store: str = "site.db"
    front_store: str = ""
    keys: str = "keys"
    listen: str = "127.0.0.1:8080"
    front_ends: int = 1
    trainers: int = 1
    trainer_keys: Literal["folder", "store"] = "folder"
    engine: str = "here"
    machine: str = ""
    open_menus: bool = False
    access: dict[str, list[str]] = {}
    populations: dict[str, dict[str, Any]] = {}
    placements: dict[str, dict[str, Any]] = {}


@dataclass(frozen=True)
class Site:
    """A site that may be started."""

    store: str = field(repr=False)  # it may have a password in it
    """The store's address."""
    keys: Path
    """The folder of secret keys."""
    host: str = "127.0.0.1"
    port: int = 8080
    front_ends: int = 1
    """Processes of this machine that serve."""
    trainers: int = 1
    """Processes of this machine that learn."""
    trainer_keys: Literal["folder", "store"] = "folder"
    """Where secret halves of the trainer's keys lie."""
    machine: str = "here"
    """What this machine is called among those that share the store."""
    open_menus: bool = False
    """Whether menus may be read without a key, as by browsers."""
    access: dict[str, tuple[bytes, ...]] = field(default_factory=dict)
    """By role, the hashes of its keys."""
    populations: dict[str, PopulationSpec] = field(default_factory=dict)
    placements: dict[str, PlacementSpec] = field(default_factory=dict)
    front_store: str = field(default="", repr=False)
    """The same store, as front ends ask for it: with a role of their own."""
    engine: str = "here"
    """Where trainers of this machine keep the users whom learners keep."""


def read_site(path: Path) -> Site:
    """The site that a file describes; everything that is wrong with it is in one error.

    Another store than it names may be in the environment.
    """
    try:
        given = tomllib.loads(path.read_text())
        top = msgspec.convert(given, _Top)
    except OSError as error:
        raise InvalidInput(f"Cannot read {path}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} is not TOML: {error}.") from error
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{path}: {_place(error)}") from error
    wrong = list[str]()
    host, port = _listens(top.listen, wrong)
    populations = {
        name: spec
        for name, told in top.populations.items()
        if (spec := _spec(f"populations.{name}", name, told, PopulationSpec, wrong)) is not None
    }
    placements = {
        name: spec
        for name, told in top.placements.items()
        if (spec := _spec(f"placements.{name}", name, _told(told, path.parent, wrong), PlacementSpec, wrong))
        is not None
    }
    wrong += list(_unfit(top, populations, placements))
    access = {role: tuple(_hash(each, role, wrong) for each in keys) for role, keys in top.access.items()}
    if wrong:
        raise InvalidInput(f"{path} cannot be started:\n  " + "\n  ".join(wrong))
    instead = os.environ.get(STORE, "")
    store = instead or top.store
    store = store if ":" in store else str(path.parent / store)
    front_store = (not instead and top.front_store) or store
    return Site(
        store,
        path.parent / top.keys,
        host,
        port,
        top.front_ends,
        top.trainers,
        top.trainer_keys,
        top.machine or socket.gethostname(),
        top.open_menus,
        access,
        populations,
        placements,
        front_store,
        top.engine,
    )


def seconds(told: Any) -> float | None:
    """A duration as a number of seconds, or as 30 s, 10 min, 2 h, 1 d; None if it is none."""
    if isinstance(told, (int, float)) and not isinstance(told, bool):
        return float(told)
    result = DURATION.fullmatch(told) if isinstance(told, str) else None
    return float(result[1]) * UNITS[result[2]] if result else None


def _listens(told: str, wrong: list[str]) -> tuple[str, int]:
    host, _, port = told.rpartition(":")
    if host and port.isdecimal() and int(port) < 65536:
        return host.strip("[]"), int(port)
    wrong.append(f"listen: expected an address and a port, as 127.0.0.1:8080; got {told!r}.")
    return "", 0


def _told(told: dict[str, Any], folder: Path, wrong: list[str]) -> dict[str, Any]:
    """A placement as told, with durations as seconds, and items as a list of names."""
    result = dict(told)
    for name in DURATIONS:
        if name in result and (number := seconds(result[name])) is not None:
            result[name] = number
    if isinstance(items := result.get("items"), str):
        try:
            # "\n" alone: splitlines() would also cut at characters that a name may contain
            lines = (folder / items).read_text("utf-8-sig").split("\n")
            result["items"] = [line for line in lines if line.strip()]
            if blank := [at for at, line in enumerate(lines, 1) if line.strip() not in ("", line)]:
                which = ", ".join(map(str, blank[:5])) + (", .." if len(blank) > 5 else "")
                wrong.append(
                    f"items: names in {folder / items} begin or end with a blank, in line {which}. Remove the blanks, "
                    "there and where feedback is sent; or give the names as a list in the site's file."
                )
        except (OSError, UnicodeDecodeError) as error:
            wrong.append(f"items: cannot read {folder / items}: {error}.")
            result["items"] = []
    if isinstance(items, int) and not isinstance(items, bool):
        result["items"] = [str(number) for number in range(items)]
    if isinstance(pinned := result.get("pinned"), dict):
        result["pinned"] = {int(slot) if slot.isdecimal() else slot: item for slot, item in pinned.items()}
    return result


def _spec(place: str, name: str, told: dict[str, Any], kind: type[Any], wrong: list[str]) -> Any:
    if not NAME.fullmatch(name):
        wrong.append(f"{place}: names are up to 40 small letters, digits, - and _.")
    try:
        return msgspec.convert(told, kind)
    except msgspec.ValidationError as error:
        wrong.append(f"{place}: {_place(error)}")
        return None


def _place(error: msgspec.ValidationError) -> str:
    """What is wrong where, as msgspec says it, in our words."""
    said, _, at = str(error).partition(" - at `$")
    return f"{at.strip('.`')}: {said}." if at else f"{said}."


def _unfit(
    top: _Top, populations: dict[str, PopulationSpec], placements: dict[str, PlacementSpec]
) -> Iterator[str]:
    """What does not fit together."""
    if top.front_store and not top.front_store.startswith("postgresql:"):
        yield "front_store: the address of a PostgreSQL store, with the role of front ends; files have no roles."
    if min(top.front_ends, top.trainers) < 0 or not top.front_ends + top.trainers:
        yield f"front_ends, trainers: 0 or more, and not both 0; got {top.front_ends} and {top.trainers}."
    if top.machine and not MACHINE.fullmatch(top.machine):
        yield f"machine: up to 60 letters, digits, dots and dashes; got {top.machine!r}."
    if top.engine not in ENGINES and not top.engine.startswith(CLUSTER):
        yield f"engine: {', '.join(ENGINES)}, or the address of a cluster, as {CLUSTER}head:10001; got {top.engine!r}."
    for role in top.access:
        if role not in ROLES:
            yield f"access: roles are {', '.join(ROLES)}; got {role!r}."
    for name, spec in populations.items():
        yield from (f"populations.{name}: {what}: {said}" for what, said in unfit_population(spec))
    for name, placed in placements.items():
        if placed.population not in top.populations:
            there = ", ".join(top.populations) or "none"
            yield f"placements.{name}: there is no population {placed.population!r}; there are: {there}."
        yield from (f"placements.{name}: {what}: {said}" for what, said in unfit_placement(placed))


def _hash(told: str, role: str, wrong: list[str]) -> bytes:
    try:
        result = bytes.fromhex(told)
    except ValueError:
        result = b""
    if len(result) != 32:
        wrong.append(
            f"access.{role}: expected the SHA-256 of a key, 64 hexadecimal digits, as `diminuendo serve --new-key "
            f"{role}` prints it."
        )
    return result
