"""A site: the configuration of a service in one file, checked as a whole.

    store = "site.db"                  # the store, beside this file
    keys = "keys"                      # a folder that only the service may read; created where there is none
    listen = "127.0.0.1:8080"
    front_ends = 2                     # processes of this machine that serve, and ...
    trainers = 1                       # ... that learn; several machines may share a store

    [access]                           # SHA-256 of keys; `diminuendo serve --new-key admin` makes one
    client = ["..."]
    admin = ["..."]

    [populations.visitors]             # users who share a budget and a ledger
    epsilon = 1.0

    [placements.home]
    population = "visitors"
    items = "items.txt"                # one name a line; or a list of names
    slots = 5
    feedback = "click"
    users = 1_000_000                 # how many users are expected
    deadline = "60 s"                  # how long feedback counts

One error names everything that is wrong.
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
from diminuendo.service.records import PlacementSpec, PopulationSpec
from diminuendo.service.validation import placement_errors, population_errors

STORE = "DIMINUENDO_STORE"
"""The environment variable with the address of a store that replaces the site's own."""
UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(s|min|h|d)\s*")
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
MACHINE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,59}")
ENGINES, CLUSTER = ("here", "threads", "ray"), "ray://"
"""Where users may be stored, as in `engine_called`; repeated here because learners take long to load."""
DURATIONS = ("deadline", "publish_interval", "publish_delay")


class _Top(Struct, forbid_unknown_fields=True):
    """The file, before its tables are read."""

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
    """A valid site."""

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
    """Where the trainer's private keys are."""
    machine: str = "here"
    """The name of this machine among those that share the store."""
    open_menus: bool = False
    """Whether menus can be read without a key, as browsers do."""
    access: dict[str, tuple[bytes, ...]] = field(default_factory=dict)
    """By role, the hashes of its keys."""
    populations: dict[str, PopulationSpec] = field(default_factory=dict)
    placements: dict[str, PlacementSpec] = field(default_factory=dict)
    front_store: str = field(default="", repr=False)
    """The same store, with the database role of front ends."""
    engine: str = "here"
    """Where trainers of this machine store users, for learners that do."""


def read_site(path: Path) -> Site:
    """The site of a file. One error names everything that is wrong; the environment may name another store."""
    try:
        top = msgspec.convert(tomllib.loads(path.read_text()), _Top)
    except OSError as error:
        raise InvalidInput(f"Cannot read {path}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} is not TOML: {error}.") from error
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{path}: {_place(error)}") from error
    wrong = list[str]()
    host, port = _address(top.listen, wrong)
    populations = {
        name: spec
        for name, given in top.populations.items()
        if (spec := _spec(f"populations.{name}", name, given, PopulationSpec, wrong)) is not None
    }
    placements = {
        name: spec
        for name, given in top.placements.items()
        if (
            spec := _spec(f"placements.{name}", name, _plain(given, path.parent, wrong), PlacementSpec, wrong)
        )
        is not None
    }
    wrong += list(_errors(top, populations, placements))
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


def seconds(given: Any) -> float | None:
    """A duration as a number of seconds, or as 30 s, 10 min, 2 h, 1 d; None if it is none."""
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        return float(given)
    result = DURATION.fullmatch(given) if isinstance(given, str) else None
    return float(result[1]) * UNITS[result[2]] if result else None


def _address(given: str, wrong: list[str]) -> tuple[str, int]:
    host, _, port = given.rpartition(":")
    if host and port.isdecimal() and int(port) < 65536:
        return host.strip("[]"), int(port)
    wrong.append(f"listen: expected an address and a port, as 127.0.0.1:8080; got {given!r}.")
    return "", 0


def _plain(given: dict[str, Any], folder: Path, wrong: list[str]) -> dict[str, Any]:
    """A placement with durations in seconds, and items as a list of names."""
    result = dict(given)
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


def _spec(place: str, name: str, given: dict[str, Any], kind: type[Any], wrong: list[str]) -> Any:
    if not NAME.fullmatch(name):
        wrong.append(f"{place}: names are up to 40 small letters, digits, - and _.")
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        wrong.append(f"{place}: {_place(error)}")
        return None


def _place(error: msgspec.ValidationError) -> str:
    """An error of msgspec: the field, and what is wrong."""
    what, _, at = str(error).partition(" - at `$")
    return f"{at.strip('.`')}: {what}." if at else f"{what}."


def _errors(
    top: _Top, populations: dict[str, PopulationSpec], placements: dict[str, PlacementSpec]
) -> Iterator[str]:
    """Values that are wrong, and fields that contradict each other."""
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
        yield from (f"populations.{name}: {field}: {error}" for field, error in population_errors(spec))
    for name, placed in placements.items():
        if placed.population not in top.populations:
            known = ", ".join(top.populations) or "none"
            yield f"placements.{name}: there is no population {placed.population!r}; there are: {known}."
        yield from (f"placements.{name}: {field}: {error}" for field, error in placement_errors(placed))


def _hash(given: str, role: str, wrong: list[str]) -> bytes:
    try:
        result = bytes.fromhex(given)
    except ValueError:
        result = b""
    if len(result) != 32:
        wrong.append(
            f"access.{role}: expected the SHA-256 of a key, 64 hexadecimal digits, as `diminuendo serve --new-key "
            f"{role}` prints it."
        )
    return result
