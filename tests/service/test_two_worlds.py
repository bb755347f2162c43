"""Nothing gives one user away before her release, and that by no more than is charged; planted faults are found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diminuendo.learners.remote_rounds import RemoteRounds
from diminuendo.service.store import AnswerRow, IdBlockRow, fencing
from diminuendo.service.store.books import StoreReleases
from diminuendo.service.store.sqlite import SqliteStore
from diminuendo.service.store.sqlite_file import SqliteFile
from diminuendo.service.trainer.answers import AnswerReader
from diminuendo.service.trainer.placement import Placement
from diminuendo.sums.private_counts import Counts
from tests.kit.slow import mostly_slow
from tests.service.two_worlds import KINDS, Found, Hers, pair
from tests.service.world import repeat_noise

NOTHING, LITTLE, MUCH = Hers(), Hers((("little", 0.1),)), Hers((("much", 0.1),))


@pytest.fixture(autouse=True)
def _same_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    repeat_noise(monkeypatch)
    monkeypatch.setattr(fencing, "STEP", 1)  # how often somebody led is compared, without chance


@pytest.mark.parametrize("setbacks", [False, True])
def test_one_user_id_is_seen_in_her_release_alone(setbacks: bool, tmp_path: Path) -> None:
    result = [pair(tmp_path, "totals", seed, (NOTHING, MUCH), setbacks=setbacks) for seed in (1, 4)]
    assert [each.leak for each in result] == ["", ""]
    assert max(each.used for each in result) == 1.0, "so much is charged for"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_she_does_nobody_sees_more_than_is_charged(kind: str, tmp_path: Path) -> None:
    result = [pair(tmp_path, kind, seed, setbacks=seed % 4 == 0) for seed in range(150)]
    assert [(seed, each.leak) for seed, each in enumerate(result) if each.leak] == []
    assert sum(each.released for each in result) > 20


# Planted faults.


def many(store: Any) -> int:
    """How many have answered."""
    return int(store._file.rows("SELECT count(*) FROM answers WHERE encrypted IS NOT NULL")[0][0])


def in_flight_by_answers(patch: pytest.MonkeyPatch) -> None:
    limit = Placement._limit
    patch.setattr(Placement, "_limit", lambda self: limit(self) + many(self._store))


def a_bad_row_takes_its_group_along(patch: pytest.MonkeyPatch) -> None:
    put = SqliteStore.put

    def all_or_none(self: SqliteStore, answers: Sequence[AnswerRow], user_rounds: Any = ()) -> Any:
        return put(
            self, answers if all(isinstance(row.encrypted, bytes) for row in answers) else [], user_rounds
        )

    patch.setattr(SqliteStore, "put", all_or_none)


def drawn_again_after_a_crash(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StoreReleases, "once", lambda self, name, draw: draw())


def ticks_by_answers(patch: pytest.MonkeyPatch) -> None:
    effective = Placement._effective
    patch.setattr(Placement, "_effective", lambda self, at: effective(self, at) + many(self._store) % 2)


def beats_say_how_many(patch: pytest.MonkeyPatch) -> None:
    heartbeat = SqliteStore.heartbeat
    patch.setattr(
        SqliteStore, "heartbeat", lambda self, name, note="": heartbeat(self, name, f"{note}{many(self)}")
    )


def erasure_gives_a_round_back(patch: pytest.MonkeyPatch) -> None:
    erase = SqliteStore.erase

    def refunded(self: SqliteStore, placement: int, rounds: Any) -> None:
        erase(self, placement, rounds)
        with self._file.writing():
            self._file.execute("UPDATE menus SET past = past + 1")

    patch.setattr(SqliteStore, "erase", refunded)


def answers_are_added_twice(patch: pytest.MonkeyPatch) -> None:
    answered = RemoteRounds.answered

    def twice(self: RemoteRounds, rounds: Any, *rest: Any) -> None:
        answered(self, rounds, *rest)
        decisions = self._frame.decisions
        decisions.waiting[np.asarray(rounds, dtype=np.int64) % decisions.remembered] = True
        answered(self, rounds, *rest)

    patch.setattr(RemoteRounds, "answered", twice)


def nothing_is_clipped(patch: pytest.MonkeyPatch) -> None:
    def add_one(self: Counts, cell: int, ticks: int, lot: int = -1) -> None:
        self._lots[lot][cell] += ticks + ticks // 8

    patch.setattr(Counts, "add_one", add_one)


def what_cannot_be_read_is_an_error(patch: pytest.MonkeyPatch) -> None:
    opened = AnswerReader._opened

    def strict(self: AnswerReader, row: AnswerRow) -> Any:
        if (result := opened(self, row)) is None:
            raise ValueError("no answer")
        return result

    patch.setattr(AnswerReader, "_opened", strict)


def divisors_by_answers(patch: pytest.MonkeyPatch) -> None:
    take_in = Placement._take_in

    def silenced(self: Placement, id_block: IdBlockRow) -> None:
        there = {row.round for row in self._store.answers(self.number, id_block.first, id_block.end)}
        self._door.record_arrivals(
            id_block.first, [number in there for number in range(id_block.first, id_block.end)]
        )
        take_in(self, id_block)

    patch.setattr(Placement, "_take_in", silenced)


def answers_move_the_clock(patch: pytest.MonkeyPatch) -> None:
    writing = SqliteFile.writing
    patch.setattr(
        SqliteFile, "writing", lambda self, fencing_token=None, public=True: writing(self, fencing_token)
    )


Plant = Callable[[pytest.MonkeyPatch], None]
FAULTS: tuple[tuple[Plant, tuple[Hers, Hers] | None, bool], ...] = (
    (in_flight_by_answers, (NOTHING, LITTLE), False),
    (a_bad_row_takes_its_group_along, (NOTHING, Hers(kind="object")), False),
    (drawn_again_after_a_crash, (NOTHING, MUCH), False),
    (ticks_by_answers, (NOTHING, LITTLE), False),
    (beats_say_how_many, (NOTHING, LITTLE), False),
    (erasure_gives_a_round_back, (LITTLE, Hers((("little", 0.1),), (0.3,))), False),
    (answers_are_added_twice, (NOTHING, MUCH), False),
    (nothing_is_clipped, (NOTHING, MUCH), False),
    (what_cannot_be_read_is_an_error, (NOTHING, Hers((("cut", 0.1),))), False),
    (divisors_by_answers, (NOTHING, LITTLE), False),
    (answers_move_the_clock, (NOTHING, LITTLE), True),
)


@pytest.mark.parametrize(
    "fault", mostly_slow(range(len(FAULTS)), [3]), ids=[plant.__name__ for plant, *_ in FAULTS]
)
def test_planted_faults_are_found(fault: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, worlds, setbacks = FAULTS[fault]
    plant(monkeypatch)
    result: Found | None = None
    for seed in range(30):
        result = pair(tmp_path, "totals", seed, worlds, setbacks=setbacks)
        if result.leak:
            return
    pytest.fail(f"nothing was seen of it: {result}")
