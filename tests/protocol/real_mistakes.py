"""Mistakes planted in the service itself, each by putting something else in the place of one function."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from diminuendo.privacy.books.releases import packed
from diminuendo.service.front.id_blocks import Taken
from diminuendo.service.front.writer import Writer
from diminuendo.service.store import AnswerRow, Publication, rolled_back
from diminuendo.service.store.books import StoreReleases
from diminuendo.service.store.sqlite import SqliteStore
from diminuendo.service.store.sqlite_file import SqliteFile
from diminuendo.service.trainer.keys import Keys
from diminuendo.service.trainer.placement import Placement
from tests.protocol.real import EVENTS, Simulation


class Mistake(NamedTuple):
    """What it is called, what it breaks, and how it is planted."""

    name: str
    breaks: str
    plant: Callable[[], AbstractContextManager[Any]]
    rolled_back: bool = False


def _instead(owner: Any, name: str, make: Callable[[Any], Any]) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: mock.patch.object(owner, name, make(getattr(owner, name)))


def _as_drawn(once: Any) -> Any:
    def drawn(self: StoreReleases, name: str, draw: Callable[[], Any]) -> Any:
        result = draw()
        once(self, name, lambda: result)
        assert packed(result)
        return result

    return drawn


def _whenever(answers: Any) -> Any:
    def read(self: SqliteStore, *given: Any) -> Iterator[AnswerRow]:
        return (replace(row, at=0.0) for row in answers(self, *given))

    return read


def _said_at_once(id_blocks: Any) -> Any:
    def read(self: SqliteStore, *given: Any) -> Any:
        return [replace(row, reported_at=0.0) for row in id_blocks(self, *given)]

    return read


def _last_answer(execute: Any) -> Any:
    def replaced(self: SqliteFile, statement: str, *values: Any) -> int:
        told: int = execute(
            self,
            statement.replace("INSERT OR IGNORE INTO answers", "INSERT OR REPLACE INTO answers"),
            *values,
        )
        return told

    return replaced


def _acknowledged(kept: Any) -> Any:
    def said(self: Writer, group: Any) -> Any:
        return [[] if isinstance(result, str) else result for result in kept(self, group)]

    return said


def _no_tick(publish: Any) -> Any:
    def at_once(self: SqliteStore, fencing_token: int, publication: Publication) -> float:
        result: float = publish(self, fencing_token, replace(publication, publish_interval=0.0))
        return result

    return at_once


def _deleted_first(publish: Any) -> Any:
    def later(self: SqliteStore, fencing_token: int, publication: Publication) -> float:
        which = "DELETE FROM answers WHERE placement = ? AND round < ? AND encrypted IS NOT NULL"
        with self._file.writing():
            self._file.execute(which, publication.placement, publication.gc_low_water_mark)
        result: float = publish(self, fencing_token, publication)
        return result

    return later


@contextmanager
def _believes_any_store() -> Iterator[None]:
    with mock.patch.object(Keys, "noted", return_value=None), mock.patch.object(rolled_back, "refuse_older"):
        yield


NOT_COUNTED, TOO_MANY = "an answer that was in time is not counted", "more is counted than was said in time"
MISTAKES = [
    Mistake(
        "fencing tokens are not checked", "somebody published who does not lead any more",
        _instead(SqliteFile, "check_fence", lambda checked: lambda self, *given: None),
    ),
    Mistake(
        "releases are used as they are drawn", "a release is not what was entered",
        _instead(StoreReleases, "once", _as_drawn),
    ),
    Mistake("deadlines are ignored", TOO_MANY, _instead(SqliteStore, "answers", _whenever)),
    Mistake(
        "late reports are heard", "who came does not follow from what was said in time",
        _instead(SqliteStore, "id_blocks", _said_at_once),
    ),
    Mistake("the last answer is kept", NOT_COUNTED, _instead(SqliteFile, "execute", _last_answer)),
    Mistake(
        "answers are acknowledged before they are kept", "an answer that was acknowledged in time is lost",
        _instead(Writer, "_kept", _acknowledged),
    ),
    Mistake(
        "old keys are thrown away", NOT_COUNTED,
        _instead(Placement, "_oldest", lambda oldest: lambda self, at: math.inf),
    ),
    Mistake("answers are deleted first", NOT_COUNTED, _instead(SqliteStore, "publish", _deleted_first)),
    Mistake(
        "rounds are taken twice", "a round was shown twice",
        _instead(Taken, "take", lambda take: lambda self, type_: take(self, type_) // 2 * 2),
    ),
    Mistake(
        "menus take effect when they are ready", "a menu takes effect when it is ready",
        _instead(SqliteStore, "publish", _no_tick),
    ),
    Mistake("a store that was rolled back is believed", "what was seen is drawn again", _believes_any_store, True),
]  # fmt: skip


def found(mistake: Mistake, folder: Path, seeds: int = 30) -> int | None:
    """The first run that finds it."""
    for seed in range(seeds):
        with mistake.plant():
            if (
                Simulation(folder / str(seed), seed).play(EVENTS, rolled_back=mistake.rolled_back).broken
                == mistake.breaks
            ):
                return seed
    return None
