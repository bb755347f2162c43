"""What any store must do. A new one subclasses `StoreContract` in a file of its own and says where its stores are."""

from __future__ import annotations

import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from diminuendo import SeededSource, SystemSource
from diminuendo.errors import (
    InvalidInput,
    LedgerDamaged,
    LedgerInUse,
    OverBudget,
    StoreUnavailable,
    Superseded,
)
from diminuendo.privacy import Budget, Ledger
from diminuendo.privacy.events import Gaussian
from diminuendo.randomness import SecretRandomness
from diminuendo.service.records import Report
from diminuendo.service.store import (
    NO_HEARTBEAT,
    STORED_WITHIN,
    AnswerRow,
    Change,
    Leader,
    Publication,
    QuotaResult,
    UserRound,
    open_store,
    sql,
)
from diminuendo.service.store.sql import Store
from diminuendo.types import Ints
from tests.kit.slow import mostly_slow

BUDGET = Budget(1.0, 1e-6)
SECRET = SecretRandomness(SystemSource())
ANNA, BERTA = b"a" * 16, b"b" * 16
OpenLedger = Callable[[Budget | None, str | None], Ledger]
Copied = Callable[[], Callable[[], None]]
FIRST_MENU = Publication(1, b"{}", 1, 0, None, 10**9, 0.0, b"encrypted", 0)

LEASING = """
import sys
from diminuendo.service.store import open_store
with open_store(sys.argv[1]) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(int(sys.argv[2])):
        block = store.reserve_ids(1, 7, 5.0, None)
        print(block.first, block.end, flush=True)
"""

PUTTING = """
import sys
from diminuendo.service.store import AnswerRow, open_store
with open_store(sys.argv[1]) as store, open(sys.argv[2], "ab", buffering=0) as log:
    while True:
        block = store.reserve_ids(1, 5, 5.0, None)
        rounds = range(block.first, block.end)
        store.put([AnswerRow(1, number, b"said %d" % number) for number in rounds])
        log.write(b"".join(b"%d\\n" % number for number in rounds))  # acknowledged
"""


def placement(store: Store, name: str = "front") -> int:
    if "users" not in store.populations():
        store.add_population("users", b"{}")
    return store.add_placement(name, "users", b"{}")


def begun(store: Store) -> int:
    """A placement that reserves rounds; the fencing token of its trainer."""
    assert placement(store) == 1
    fencing_token = store.acquire_leadership("users", "one")
    store.publish(fencing_token, FIRST_MENU)
    return fencing_token


def said(store: Store, number: int = 1) -> dict[int, bytes]:
    return {row.round: row.encrypted for row in store.answers(number, 0, 10**9)}


def erased_of(store: Store, number: int, user_id: bytes) -> list[int]:
    """Erase a user; the rounds of which that is known then."""
    store.erase_user(number, user_id)
    return [each for each, _ in store.erased(number, 0, 10**9)]


def answered(*rounds: int) -> list[AnswerRow]:
    return [AnswerRow(1, number, b"said %d" % number) for number in rounds]


class StoreContract:
    @pytest.fixture
    def address(self, tmp_path: Path) -> str:
        """Where there is no store yet."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, address: str) -> Iterator[Store]:
        with open_store(address) as store:
            yield store

    def check_whole(self, address: str) -> None:
        """Fail where the store is damaged."""
        raise NotImplementedError

    @pytest.fixture
    def copied(self, address: str) -> Copied:
        """Copy the store as it is; then, whenever that is called, put the copy back under those who have it open."""
        raise NotImplementedError

    # Public facts.

    def test_populations_and_placements_have_names_of_their_own(self, store: Store, address: str) -> None:
        store.add_population("b", b"1")
        store.add_population("a", b"2")
        assert [store.add_placement(name, "a", name.encode()) for name in ("x", "y")] == [1, 2]
        for refused in (
            lambda: store.add_population("a", b"3"),
            lambda: store.add_placement("x", "b", b""),
            lambda: store.add_placement("z", "nobody", b""),
            lambda: store.add_event(9, "retire", b"", "me"),
            lambda: store.reserve_ids(9, 1, 1.0, None),
            lambda: store.books("nobody", None),
        ):
            with pytest.raises(InvalidInput):
                refused()
        with open_store(address) as another:
            assert list(another.populations().items()) == [("b", b"1"), ("a", b"2")]
            result = another.placements()
            assert [another.placements(after) for after in (0, 1, 2)] == [result, result[1:], []]
        assert [(row.number, row.name, row.population, row.spec) for row in result] == [
            (1, "x", "a", b"x"),
            (2, "y", "a", b"y"),
        ]
        assert 0 < result[0].made_at <= result[1].made_at <= store.now()

    def test_events_are_read_in_order(self, store: Store) -> None:
        number, other = placement(store), placement(store, "other")
        seen = [store.add_event(number, "appear", b"%d" % j, "me") for j in range(3)]
        store.add_event(other, "retire", b"", "you")
        assert seen == sorted(set(seen))
        assert min(seen) > 0
        assert [row.body for row in store.events(number)] == [b"0", b"1", b"2"]
        (last,) = store.events(number, after=seen[1])
        assert (last.seq, last.placement, last.kind, last.by) == (seen[2], number, "appear", "me")

    def test_who_is_well(self, store: Store) -> None:
        first = store.heartbeat("trainer", "well")
        second = store.heartbeat("trainer", "better")
        assert first <= second == store.heartbeats()["trainer"][0] <= store.now()
        assert store.heartbeats()["trainer"][1] == "better"
        store.heartbeat("front-0")
        store.drop_heartbeats(["trainer", "trainer#gone"])
        assert set(store.heartbeats()) == {"front-0"}

    def test_a_beat_on_top_of_another_is_written_where_that_is_the_last(self, store: Store) -> None:
        assert store.heartbeat_after("trainer", "well", (1.0, "")) is None
        assert store.heartbeats() == {}
        first = store.heartbeat_after("trainer", "well", NO_HEARTBEAT)
        assert first is not None
        assert store.heartbeats() == {"trainer": (first, "well")}
        for other in (NO_HEARTBEAT, (first, "another's"), (first - 1, "well"), (first + 1, "well")):
            assert store.heartbeat_after("trainer", "better", other) is None
        assert store.heartbeats() == {"trainer": (first, "well")}
        second = store.heartbeat_after("trainer", "better", (first, "well"))
        assert second is not None
        assert first <= second
        assert store.heartbeats() == {"trainer": (second, "better")}
        assert store.heartbeat_after("trainer", "worse", (first, "well")) is None

    def test_of_many_beats_on_top_of_one_a_single_one_is_written(self, store: Store) -> None:
        last = store.heartbeat("trainer", "well"), "well"
        with ThreadPoolExecutor(8) as pool:
            result = list(pool.map(lambda at: store.heartbeat_after("trainer", f"well {at}", last), range(8)))
        assert sum(at is not None for at in result) == 1

    # ID blocks.

    def test_each_round_is_handed_out_once_and_within_limits(self, store: Store) -> None:
        placement(store)
        assert store.reserve_ids(1, 5, 1.0, None) is None
        fencing_token = store.acquire_leadership("users", "one")
        store.publish(fencing_token, replace(FIRST_MENU, end=8))
        first, second = store.reserve_ids(1, 5, 2.0, None), store.reserve_ids(1, 5, 2.0, None)
        assert first is not None
        assert second is not None
        assert (first.first, first.end, first.version) == (0, 5, 1)
        assert (second.first, second.end) == (5, 8)
        assert first.expires_at == first.at + 2.0
        assert store.reserve_ids(1, 5, 2.0, None) is None
        store.publish(fencing_token, replace(FIRST_MENU, version=2, first=11, end=100, most=13))
        third = store.reserve_ids(1, 5, 2.0, None)  # rounds from 8 to 10 have no menu
        assert third is not None
        assert (third.first, third.end, third.version) == (11, 13, 2)
        assert store.reserve_ids(1, 5, 2.0, None) is None
        assert [(row.first, row.end) for row in store.id_blocks(1, 5)] == [(5, 8), (11, 13)]
        for count, seconds in ((-1, 1.0), (1, 0.0), (1, float("nan"))):
            with pytest.raises(InvalidInput):
                store.reserve_ids(1, count, seconds, None)

    def test_a_menu_that_takes_effect_later_is_used_then(self, store: Store) -> None:
        fencing_token = begun(store)
        later = store.now() + 0.05
        store.publish(fencing_token, replace(FIRST_MENU, version=2, effective_at=later))
        store.publish(fencing_token, replace(FIRST_MENU, version=3, effective_at=later + 3600))
        assert [menu.version for menu in store.menus(1)] == [1, 2, 3]
        second, _ = store.menus(1, after=1)
        assert (second.version, second.body, second.effective_at) == (2, b"{}", later)
        while (id_block := store.reserve_ids(1, 1, 1.0, None)) is not None:
            assert id_block.version == (2 if id_block.at >= later else 1)
            if id_block.version == 2:
                break

    def test_id_blocks_that_were_stopped_begin_again_with_a_later_menu(self, store: Store) -> None:
        fencing_token = begun(store)
        store.reserve_ids(1, 5, 1.0, None)
        assert store.stop_id_blocks(fencing_token, 1) == 5
        assert store.reserve_ids(1, 5, 1.0, None) is None
        store.publish(fencing_token, replace(FIRST_MENU, version=2, effective_at=store.now() + 3600))
        assert store.reserve_ids(1, 5, 1.0, None) is None
        store.publish(fencing_token, replace(FIRST_MENU, version=3))
        id_block = store.reserve_ids(1, 5, 1.0, None)
        assert id_block is not None
        assert (id_block.first, id_block.version) == (5, 3)

    def test_what_an_operator_does_stops_id_blocks(self, store: Store) -> None:
        """At once: when a trainer gets to it depends on how long it takes for others."""
        fencing_token, other = begun(store), placement(store, "other")
        store.publish(fencing_token, replace(FIRST_MENU, placement=other))
        store.add_event(1, "items", b"{}", "me")
        assert store.reserve_ids(1, 5, 1.0, None) is None
        assert store.reserve_ids(other, 5, 1.0, None) is not None
        store.publish(fencing_token, replace(FIRST_MENU, version=2))
        assert store.reserve_ids(1, 5, 1.0, None) is not None

    def test_what_became_of_an_id_block_is_kept_as_it_was_said_first(self, store: Store) -> None:
        begun(store)
        report = Report(0, 3, silent=(1,), types=(0, 2, 1))
        store.reserve_ids(1, 5, 1.0, None)
        store.reserve_ids(1, 5, 1.0, report)
        store.stop_id_blocks(store.acquire_leadership("users", "two"), 1)
        assert store.reserve_ids(1, 5, 1.0, Report(5, 4)) is None  # and what was said is kept all the same
        store.reserve_ids(1, 5, 1.0, Report(0, 5))
        store.reserve_ids(1, 5, 1.0, Report(77, 5))
        first, second = store.id_blocks(1, 0)
        assert first.report == report
        assert first.reported_at == second.at
        assert second.report == Report(5, 4)

    def test_a_report_may_come_alone(self, store: Store) -> None:
        begun(store)
        store.reserve_ids(1, 5, 1.0, None)
        assert store.reserve_ids(1, 0, 1.0, Report(0, 3)) is None
        assert store.reserve_ids(1, 0, 1.0, None) is None
        (result,) = store.id_blocks(1, 0)
        assert result.report == Report(0, 3)
        assert result.reported_at is not None
        assert result.at <= result.reported_at <= store.now()

    def test_more_rounds_of_the_last_menu_are_allowed(self, store: Store) -> None:
        fencing_token = begun(store)
        store.publish(fencing_token, replace(FIRST_MENU, version=2, end=5))
        assert store.reserve_ids(1, 9, 1.0, None) is not None
        assert store.reserve_ids(1, 9, 1.0, None) is None
        store.allow(fencing_token, 1, 30, store.now() + 3600)  # which is not yet so
        assert store.reserve_ids(1, 9, 1.0, None) is None
        store.allow(fencing_token, 1, 8, store.now())
        store.allow(fencing_token, 1, 7, store.now())  # nothing is taken back
        more = store.reserve_ids(1, 9, 1.0, None)
        assert more is not None
        assert (more.first, more.end, more.version) == (5, 8, 2)
        store.publish(fencing_token, replace(FIRST_MENU, version=3, end=8, effective_at=store.now() + 3600))
        store.allow(fencing_token, 1, 20, store.now())  # of the third, which is not in effect
        assert store.reserve_ids(1, 9, 1.0, None) is None
        assert store.stop_id_blocks(fencing_token, 1) == 8

    def test_two_processes_never_get_the_same_round(self, store: Store, address: str) -> None:
        begun(store)
        many = 40
        asking = [
            subprocess.Popen(
                [sys.executable, "-c", LEASING, address, str(many)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(2)
        ]
        for process in asking:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in asking:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        result = [process.communicate(timeout=60)[0].splitlines() for process in asking]
        got = [tuple(map(int, line.split())) for lines in result for line in lines]
        assert sorted(got) == [(7 * j, 7 * j + 7) for j in range(2 * many)]

    # Answers and visits.

    def test_of_each_round_the_first_answer_is_kept(self, store: Store, address: str) -> None:
        begun(store)
        before = store.now()
        assert (
            store.put([AnswerRow(1, 3, b"three"), AnswerRow(1, 1, b"one"), AnswerRow(1, 3, b"again")]) == []
        )
        store.put([AnswerRow(1, 1, b"later"), AnswerRow(1, 2, b"two")])
        with open_store(address) as another:
            rows = list(another.answers(1, 1, 3))
            assert said(another) == {1: b"one", 2: b"two", 3: b"three"}
        assert [(row.round, row.encrypted) for row in rows] == [(1, b"one"), (2, b"two")]
        assert before <= rows[0].at <= rows[1].at <= store.now()

    def test_an_answer_has_the_time_of_its_arrival(self, store: Store) -> None:
        """Unless that is to come, unknown, or longer ago than answers may wait to be stored: then when it is stored."""
        begun(store)
        before = store.now()
        arrived = {1: before - STORED_WITHIN / 2, 2: before - 2 * STORED_WITHIN, 3: before + 60.0, 4: -1.0}
        arrived |= {5: math.nan, 6: math.inf, 7: -math.inf, 8: before}
        store.put([AnswerRow(1, number, b"said", at) for number, at in arrived.items()])
        after, result = store.now(), {row.round: row.at for row in store.answers(1, 0, 100)}
        assert (result.pop(1), result.pop(8)) == (arrived[1], before)
        assert sorted(result) == [2, 3, 4, 5, 6, 7]
        assert all(before <= at <= after for at in result.values())

    def test_what_is_stored_after_a_time_was_written_down_is_hardly_earlier(self, store: Store) -> None:
        """Whoever settles rounds waits for so long, and reads the same as who does it again."""
        begun(store)
        at = store.heartbeat("settled")
        store.put([AnswerRow(1, j, b"said", at - j * STORED_WITHIN / 10) for j in range(20)])
        assert min(row.at for row in store.answers(1, 0, 100)) > at - STORED_WITHIN

    def test_rows_of_no_placement_are_left_out_and_take_no_other_along(self, store: Store) -> None:
        begun(store)
        user_rounds = [UserRound(1, ANNA, 1, 0), UserRound(9, ANNA, 1, 0), UserRound(1, BERTA, 1, 1)]
        counted = store.put([*answered(0), AnswerRow(9, 8, b""), *answered(4)], user_rounds)
        assert said(store) == {0: b"said 0", 4: b"said 4"}
        assert [result.counts for result in counted] == [True, False, True]

    def test_of_each_user_id_so_many_rounds_count(self, store: Store) -> None:
        begun(store)
        other = placement(store, "other")
        user_rounds = [UserRound(1, ANNA, 2, j) for j in (5, 3)] + [
            UserRound(1, BERTA, 1, 4),
            UserRound(other, ANNA, 1, 5),
        ]
        assert [result.counts for result in store.put([], user_rounds)] == [True] * 4
        assert store.put([], [UserRound(1, ANNA, 2, 9)]) == [QuotaResult(False, 9)]
        assert store.put([], [UserRound(1, ANNA, 2, 9)]) == [QuotaResult(False, 9)]
        assert erased_of(store, 1, b"n" * 16) == []
        assert erased_of(store, 1, ANNA) == [3, 5, 9]
        assert erased_of(store, other, ANNA) == [5]

    def test_a_visit_that_is_sent_again_is_counted_once(self, store: Store) -> None:
        begun(store)
        first = UserRound(1, ANNA, 2, 5, b"key")
        assert store.put([], [first]) == [QuotaResult(True, 5)]
        assert store.put([], [replace(first, round=6)]) == [QuotaResult(True, 5)]
        assert store.put([], [replace(first, key=b"")]) == [QuotaResult(True, 5)]
        assert store.put([], [replace(first, round=7, key=b"other")]) == [QuotaResult(True, 7)]
        assert store.put([], [replace(first, round=8, key=b"third")]) == [QuotaResult(False, 8)]
        assert store.put([], [replace(first, round=9, key=b"third")]) == [QuotaResult(False, 8)]
        assert store.put([], [replace(first, key=b"")]) == [
            QuotaResult(True, 5)
        ]  # a group that is sent again
        assert erased_of(store, 1, ANNA) == [5, 7, 8]

    def test_what_is_erased_stays_erased(self, store: Store, address: str) -> None:
        fencing_token = begun(store)
        store.put(answered(1, 2, 3))
        store.erase(1, [2, 4])  # 4 has not been answered yet
        with open_store(address) as another:
            another.put(answered(2, 4))
        assert said(store) == {1: b"said 1", 3: b"said 3"}
        erased = store.erased(1, 0, 100)
        assert [number for number, _ in erased] == [2, 4]
        store.erase(1, [2])
        assert store.erased(1, 0, 100) == erased  # since it was asked for first
        store.publish(fencing_token, replace(FIRST_MENU, version=2, gc_low_water_mark=3))
        store.put(answered(0, 1, 2, 4))
        assert said(store) == {3: b"said 3"}
        assert store.erased(1, 0, 100) == erased
        assert store.erased(1, 3, 4) == []

    def test_who_is_erased_by_her_name_stays_counted(self, store: Store) -> None:
        begun(store)
        store.put(answered(1, 2, 3, 4), [UserRound(1, ANNA, 2, number) for number in (1, 2, 3)])
        store.put([], [UserRound(1, BERTA, 2, 4)])
        assert erased_of(store, 1, ANNA) == [1, 2, 3]
        assert said(store) == {4: b"said 4"}
        erased = store.erased(1, 0, 100)
        store.put(answered(1, 2, 3))
        assert said(store) == {4: b"said 4"}
        store.erase_user(1, ANNA)
        assert store.erased(1, 0, 100) == erased  # since it was asked for first
        assert store.put([], [UserRound(1, ANNA, 2, 9)]) == [QuotaResult(False, 9)], "nothing is given back"
        with pytest.raises(InvalidInput, match="no placement"):
            store.erase_user(9, ANNA)

    def test_threads_share_a_store(self, store: Store) -> None:
        begun(store)
        rounds = [range(100 * j, 100 * j + 8) for j in range(4)]
        threads = [
            threading.Thread(target=lambda mine=mine: [store.put(answered(j)) for j in mine])
            for mine in rounds
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(said(store)) == [number for mine in rounds for number in mine]

    @pytest.mark.parametrize("kills", mostly_slow([8, 100], [8]))
    def test_kills_lose_no_answer_and_repeat_no_round(
        self, kills: int, store: Store, address: str, tmp_path: Path
    ) -> None:
        begun(store)
        log, dice = tmp_path / "acknowledged", random.Random(0)
        for _ in range(kills):
            before = log.stat().st_size if log.exists() else 0
            process = subprocess.Popen([sys.executable, "-c", PUTTING, address, log])
            while not log.exists() or log.stat().st_size == before:
                assert process.poll() is None, "it ended by itself"
                time.sleep(0.001)
            time.sleep(dice.uniform(0, 0.03))
            process.send_signal(signal.SIGKILL)
            process.wait()
        acknowledged = [int(line) for line in log.read_text().split("\n")[:-1]]
        assert len(set(acknowledged)) == len(acknowledged) >= 5 * kills
        result = said(store)
        assert all(result[number] == b"said %d" % number for number in acknowledged)
        assert all(encrypted == b"said %d" % number for number, encrypted in result.items())
        taken = [
            number for id_block in store.id_blocks(1, 0) for number in range(id_block.first, id_block.end)
        ]
        assert len(taken) == len(set(taken))
        self.check_whole(address)

    # The trainer.

    def test_a_menu_that_is_there_too_late_takes_effect_at_the_next_tick(self, store: Store) -> None:
        """Not when it is ready: that would tell how long it took."""
        fencing_token, publish_interval = begun(store), 1000.0
        past, later = (
            store.now() - 1.0,
            math.ceil(store.now() / publish_interval + 5) * publish_interval + 1.0,
        )
        delay = store.publish(
            fencing_token,
            replace(FIRST_MENU, version=2, effective_at=past, publish_interval=publish_interval),
        )
        assert delay % publish_interval == 0
        assert past < store.now() <= delay <= store.now() + publish_interval
        in_time = replace(FIRST_MENU, version=3, effective_at=later, publish_interval=publish_interval)
        assert store.publish(fencing_token, in_time) == later
        assert store.publish(fencing_token, replace(FIRST_MENU, version=4, effective_at=past)) == past
        assert [row.effective_at for row in store.menus(1)[1:]] == [delay, later, past]

    def test_what_is_published_is_there_at_once_and_what_is_in_it_is_gone(self, store: Store) -> None:
        fencing_token = begun(store)
        other = placement(store, "other")
        for _ in range(3):
            store.reserve_ids(1, 5, 1.0, None)
        store.put([*answered(*range(15)), AnswerRow(other, 0, b"of others")])
        for version, before, kept in ((2, 7, 5), (3, 10, 10)):
            snapshot = b"%d and more" % version * (150_000 if version == 2 else 1)
            store.publish(
                fencing_token,
                replace(FIRST_MENU, version=version, snapshot=snapshot, gc_low_water_mark=before),
            )
            assert sorted(said(store)) == list(range(before, 15))
            assert [row.first for row in store.id_blocks(1, 0)] == list(range(kept, 15, 5))
            assert store.snapshot(1) == snapshot
        assert said(store, other) == {0: b"of others"}
        assert store.snapshot(other) is None

    def test_a_publication_that_was_cut_off_leaves_nothing_behind(
        self, store: Store, address: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A snapshot is written part by part: killed in the midst of it, a trainer has published nothing."""
        fencing_token, large = begun(store), bytes(2**20 + 1)
        with monkeypatch.context() as patch:
            patch.setattr(sql, "_publication", lambda *given: pytest.fail("killed"))
            with pytest.raises(pytest.fail.Exception):
                store.publish(fencing_token, replace(FIRST_MENU, version=2, snapshot=large))
        parts = "SELECT version, part FROM diminuendo.snapshot_parts ORDER BY 1, 2"
        assert store.rows(parts) == [(1, 0), (2, 0), (2, 1)]
        assert (store.snapshot(1), [menu.version for menu in store.menus(1)]) == (b"encrypted", [1])
        with open_store(address) as another:
            later = another.acquire_leadership("users", "two")
            with pytest.raises(Superseded):
                store.publish(fencing_token, replace(FIRST_MENU, version=2, snapshot=large))
            another.publish(later, replace(FIRST_MENU, version=2, snapshot=b"new"))
            assert (another.snapshot(1), another.rows(parts)) == (b"new", [(2, 0)])

    def test_id_blocks_are_gone_once_the_menu_that_forgets_them_is_in_effect(self, store: Store) -> None:
        fencing_token = begun(store)
        for _ in range(3):
            store.reserve_ids(1, 5, 1.0, None)
        later = store.now() + 0.1
        store.publish(fencing_token, replace(FIRST_MENU, version=2, gc_low_water_mark=10, effective_at=later))
        while [row.first for row in store.id_blocks(1, 0)] == [0, 5, 10]:
            assert store.now() < later + 10
        assert store.now() >= later
        assert [row.first for row in store.id_blocks(1, 0)] == [10]

    @pytest.mark.parametrize("version", [0, 1, 3])
    def test_a_menu_that_does_not_follow_the_last_changes_nothing(self, store: Store, version: int) -> None:
        fencing_token = begun(store)
        store.put(answered(1, 2, 3))
        with pytest.raises(InvalidInput, match="publish 2"):
            store.publish(
                fencing_token, replace(FIRST_MENU, version=version, snapshot=b"new", gc_low_water_mark=3)
            )
        assert sorted(said(store)) == [1, 2, 3]
        assert store.snapshot(1) == b"encrypted"
        assert [menu.version for menu in store.menus(1)] == [1]

    def test_who_led_before_writes_nothing_any_more(self, store: Store, address: str) -> None:
        old = begun(store)
        store.put(answered(1, 2, 3))
        ledger = Ledger.on(store.books("users", old), BUDGET)
        paid = ledger.buy(Gaussian(1e-3), "sum", "of something")
        with open_store(address) as another:
            new = another.acquire_leadership("users", "two")
            assert new > old

            def delay() -> Ints:
                pytest.fail("drawn")

            for refused in (
                lambda: store.publish(
                    old, replace(FIRST_MENU, version=2, snapshot=b"old", gc_low_water_mark=3)
                ),
                lambda: store.stop_id_blocks(old, 1),
                lambda: store.allow(old, 1, 10**6, 0.0),
                lambda: store.add_key(old, 1, 5, b"old"),
                lambda: store.drop_keys(old, 1, [5]),
                lambda: ledger.charge(Gaussian(1e-3)),
                lambda: paid.once("000000", delay, SECRET),
                lambda: store.books("users", old).releases.once("sum.000000", lambda: np.arange(3)),
                lambda: store.books("users", old).lines.append(b"{}\n"),
            ):
                with pytest.raises(Superseded):
                    refused()
            assert sorted(said(another)) == [1, 2, 3]
            assert store.snapshot(1) == b"encrypted"
            assert store.reserve_ids(1, 1, 1.0, None) is not None
            with Ledger.on(another.books("users", new)) as next_one:
                assert len(next_one.charges) == 1
                assert not next_one.drawn
            assert not another.books("users", new).releases.names()

    def test_each_population_has_a_leader_of_its_own_and_epochs_go_on(
        self, store: Store, address: str
    ) -> None:
        store.add_population("others", b"{}")
        mine = begun(store)
        assert store.leaders() == {"users": Leader(mine, "one")}
        assert store.add_placement("aside", "others", b"{}") == 2
        with open_store(address) as another:
            fencing_tokens = [another.acquire_leadership("others", "two") for _ in range(3)]
            assert 0 < fencing_tokens[0] < fencing_tokens[1] < fencing_tokens[2]
            assert store.leaders() == {
                "users": Leader(mine, "one"),
                "others": Leader(fencing_tokens[2], "two"),
            }
            store.publish(mine, replace(FIRST_MENU, version=2))  # it leads its own as before
            with pytest.raises(Superseded):
                store.publish(
                    mine, replace(FIRST_MENU, placement=2)
                )  # a fencing token is one of a population
            another.publish(fencing_tokens[2], replace(FIRST_MENU, placement=2))
            with pytest.raises(Superseded):
                another.books("users", fencing_tokens[2]).lines.append(b"{}\n")
            with pytest.raises(Superseded):
                Ledger.on(another.books("users", fencing_tokens[2]), BUDGET)
        with pytest.raises(InvalidInput, match="There is no population"):
            store.acquire_leadership("nobody", "one")
        assert set(store.leaders()) == {"users", "others"}

    def test_who_wants_to_lead_after_an_epoch_does_so_once(self, store: Store, address: str) -> None:
        store.add_population("users", b"{}")
        with open_store(address) as another:
            first = store.acquire_leadership("users", "one", after=0)
            for delay in (0, first - 1, first + 1):
                with pytest.raises(Superseded):
                    another.acquire_leadership("users", "two", after=delay)
            assert store.leaders() == {"users": Leader(first, "one")}
            second = store.acquire_leadership("users", "", after=first)  # handed over
            assert another.leaders() == {"users": Leader(second, "")}
            with pytest.raises(Superseded):
                store.books("users", first).lines.append(b"{}\n")
            assert another.acquire_leadership("users", "two", after=second) > second > first

    def test_a_term_that_a_store_which_was_put_back_has_forgotten_writes_nothing(
        self, store: Store, address: str, copied: Copied
    ) -> None:
        """As many have led in it since, and whoever slept is none of them."""
        begun(store)
        rolled_back = copied()
        slept = store.acquire_leadership("users", "one")
        rolled_back()
        with open_store(address) as another:
            leads = another.acquire_leadership("users", "two")
            assert leads != slept
            for refused in (
                lambda: store.publish(slept, replace(FIRST_MENU, version=2)),
                lambda: store.stop_id_blocks(slept, 1),
                lambda: store.allow(slept, 1, 10**6, 0.0),
                lambda: store.add_key(slept, 1, 5, b"old"),
                lambda: store.drop_keys(slept, 1, [5]),
                lambda: store.books("users", slept).releases.once("sum.0", lambda: np.arange(3)),
                lambda: Ledger.on(store.books("users", slept), BUDGET),
                lambda: store.acquire_leadership("users", "", after=slept),
            ):
                with pytest.raises(Superseded):
                    refused()
            another.publish(leads, replace(FIRST_MENU, version=2))

    def test_who_knows_lines_that_a_store_which_was_put_back_lacks_writes_no_more(
        self, store: Store, copied: Copied
    ) -> None:
        """It leads all the time, in the copy as well."""
        fencing_token = begun(store)
        ledger = Ledger.on(store.books("users", fencing_token), BUDGET)
        paid = ledger.buy(Gaussian(1e-3), "sum", "of something")
        reads = store.books("users", fencing_token)
        rolled_back = copied()
        paid.once("0", lambda: np.arange(3), SECRET)
        reads.lines.read()
        rolled_back()
        before = store.books("users", fencing_token).lines.read()
        for refused in (
            lambda: paid.once("1", lambda: pytest.fail("drawn"), SECRET),
            lambda: paid.once("0", lambda: pytest.fail("drawn again"), SECRET),
            lambda: ledger.charge(Gaussian(1e-3)),
            lambda: reads.lines.append(b"{}\n"),
            lambda: reads.releases.once("sum.1", lambda: np.arange(3)),
            reads.lines.check,
        ):
            with pytest.raises(LedgerDamaged, match=r"rolled back|lost"):
                refused()
        again = store.books("users", fencing_token)
        assert (again.lines.read(), again.releases.names()) == (before, [])
        again.lines.append(b"another line in its place\n")
        for refused in (lambda: ledger.charge(Gaussian(1e-3)), lambda: reads.lines.append(b"{}\n")):
            with pytest.raises(LedgerDamaged, match="rolled back"):
                refused()

    def test_what_changed_since_some_time_is_told_by_placement(self, store: Store, address: str) -> None:
        assert store.changed(0.0)[1] == {}
        fencing_token = begun(store)
        other, third = placement(store, "other"), placement(store, "third")
        since, result = store.changed(0.0)
        assert result == {1: Change(), other: Change(), third: Change()}
        assert since <= store.now()
        store.publish(fencing_token, replace(FIRST_MENU, placement=third))
        assert [store.reserve_ids(number, 5, 1.0, None) is not None for number in (1, 1, third)] == [True] * 3
        with open_store(address) as another:
            first, second = (another.add_event(other, "items", b"{}", "me") for _ in range(2))
        assert second > first
        then, result = store.changed(since)
        assert result == {1: Change(10), third: Change(5), other: Change(0, second)}
        assert since <= then <= store.now()
        assert store.changed(then)[1].items() <= result.items()  # the last of it again, perhaps
        store.reserve_ids(1, 5, 1.0, None)
        assert store.changed(then)[1][1] == Change(15), "whatever is new is told"
        store.publish(fencing_token, replace(FIRST_MENU, version=2, gc_low_water_mark=15))
        assert 1 not in store.changed(then)[1]  # its ID blocks are in the snapshot
        later = store.now() + 3600
        assert store.changed(later)[1] == {}

    def test_what_was_published_since_some_time_is_told_by_placement(
        self, store: Store, address: str
    ) -> None:
        assert store.published(0.0) == (0.0, {})
        fencing_token = begun(store)
        other, third = placement(store, "other"), placement(store, "third")
        since, result = store.published(0.0)
        assert result == {1: 1}
        assert 0 < since <= store.now()
        assert store.published(since) == (since, {1: 1}), "the last of it again"
        with open_store(address) as another:
            another.publish(
                fencing_token, replace(FIRST_MENU, placement=third, effective_at=store.now() + 3600)
            )
            for version in (2, 3):
                another.publish(fencing_token, replace(FIRST_MENU, version=version))
        then, result = store.published(since)
        assert result == {1: 3, third: 1}
        assert since <= then <= store.now()
        store.publish(fencing_token, replace(FIRST_MENU, placement=other))
        last, result = store.published(then)
        assert result[other] == 1
        assert result.keys() <= {1, other}
        assert store.published(last)[1].keys() == {other}
        assert store.published(0.0) == (last, {1: 3, other: 1, third: 1})
        assert store.published(store.now() + 3600)[1] == {}

    def test_of_menus_that_are_published_at_once_none_is_missed(self, store: Store, address: str) -> None:
        """Whoever asks knows all that is told, and asks since when it was told to."""
        numbers = [placement(store, f"place {number}") for number in range(4)]
        fencing_token, many, over = store.acquire_leadership("users", "one"), 25, threading.Event()

        def publish(number: int) -> None:
            with open_store(address) as mine:
                for version in range(1, many + 1):
                    mine.publish(fencing_token, replace(FIRST_MENU, placement=number, version=version))

        def ask() -> None:
            since = 0.0
            while True:
                last = over.is_set()
                since, result = store.published(since)
                for number, version in result.items():
                    known[number] = max(known.get(number, 0), version)
                if last:
                    return

        known = dict[int, int]()
        asking = threading.Thread(target=ask)
        asking.start()
        publishing = [threading.Thread(target=publish, args=[number]) for number in numbers]
        for each in publishing:
            each.start()
        for each in publishing:
            each.join()
        over.set()
        asking.join()
        assert known == dict.fromkeys(numbers, many)

    def test_keys_of_the_trainer_are_kept_as_they_were_sealed_until_they_are_dropped(
        self, store: Store, address: str
    ) -> None:
        fencing_token, other = begun(store), 2
        assert placement(store, "other") == other
        assert store.keys_of(1) == {}
        for number in (0, 7, 2**32 - 1):
            store.add_key(fencing_token, 1, number, b"encrypted %d" % number)
        store.add_key(fencing_token, other, 7, b"of the other")
        store.add_key(fencing_token, 1, 7, b"encrypted anew")
        with open_store(address) as another:
            assert another.keys_of(1) == {
                0: b"encrypted 0",
                7: b"encrypted anew",
                2**32 - 1: b"encrypted 4294967295",
            }
            another.drop_keys(fencing_token, 1, [7, 0, 5])
        assert store.keys_of(1) == {2**32 - 1: b"encrypted 4294967295"}
        assert store.keys_of(other) == {7: b"of the other"}
        with pytest.raises(InvalidInput, match="no placement"):
            store.add_key(fencing_token, 9, 1, b"")

    # Books.

    def test_a_ledger_incarnations_as_it_does_in_a_file(self, store: Store, tmp_path: Path) -> None:
        begun(store)

        def incarnation(open_ledger: OpenLedger) -> list[object]:
            seen: list[object] = []
            with open_ledger(BUDGET, None) as ledger:
                ledger.buy(Gaussian(1e-3), "sum", "of something")  # dies before it has drawn
            with open_ledger(None, ledger.head) as ledger:
                paid = ledger.buy(Gaussian(1e-3), "sum", "of something")
                seen += [
                    len(ledger.charges),
                    paid.has("0"),
                    paid.once("0", lambda: np.arange(3), SECRET).tolist(),
                ]
                with pytest.raises(OverBudget):
                    ledger.charge(Gaussian(10.0))
                with pytest.raises(InvalidInput, match="for users"):
                    ledger.charge(Gaussian(1e-9), secure=False)
                with pytest.raises(InvalidInput, match="for users"):
                    paid.once("1", lambda: np.arange(3), SecretRandomness(SeededSource(1)))
                with (
                    pytest.MonkeyPatch.context() as patch
                ):  # dies when it has drawn and kept, before it is entered
                    patch.setattr(ledger, "_write", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
                    with pytest.raises(KeyboardInterrupt):
                        paid.once("1", lambda: np.array([[1, -(2**62)]]), SECRET)
            with open_ledger(BUDGET, ledger.head) as ledger:
                paid = ledger.buy(Gaussian(1e-3), "sum", "of something")
                drawn = [paid.once(part, lambda: pytest.fail("drawn again"), SECRET) for part in "01"]
                seen += [paid.has("1"), [(result.tolist(), str(result.dtype)) for result in drawn]]
                seen += [
                    ledger.spent(),
                    ledger.head,
                    [entry.name for entry in ledger.drawn],
                    len(ledger.charges),
                ]
            with pytest.raises(LedgerInUse, match="closed"):
                ledger.charge(Gaussian(1e-9))
            with pytest.raises(LedgerDamaged, match="cut back"):
                open_ledger(None, "0" * 64)
            with pytest.raises(InvalidInput, match="Budgets do not change"):
                open_ledger(Budget(2.0, 1e-6), None)
            return seen

        fencing_token = store.acquire_leadership("users", "two")
        path = tmp_path / "people.ledger"
        in_file = incarnation(lambda budget, expect: Ledger.open(path, budget, expect=expect))
        in_store = incarnation(
            lambda budget, expect: Ledger.on(store.books("users", fencing_token), budget, expect=expect)
        )
        assert in_store == in_file
        assert store.books("users", fencing_token).lines.read() == path.read_bytes()
        store.publish(fencing_token, replace(FIRST_MENU, version=2))
        assert store.books("users", None).lines.read() == path.read_bytes()
        lines = path.read_bytes().splitlines(keepends=True)
        assert [store.ledger("users", after) for after in (0, 2, 99)] == [lines, lines[2:], []]

    def test_a_ledger_that_was_lost_is_not_begun_anew(self, store: Store) -> None:
        fencing_token = begun(store)
        with pytest.raises(InvalidInput, match="holds no ledger"):
            Ledger.on(store.books("users", fencing_token))
        with pytest.raises(LedgerDamaged, match="lost"):
            Ledger.on(store.books("users", fencing_token), BUDGET, expect="0" * 64)
        store.books("users", fencing_token).releases.once(
            "sum.0", lambda: np.arange(3)
        )  # nobody has paid for it
        with pytest.raises(LedgerDamaged, match=r"sum\.0"):
            Ledger.on(store.books("users", fencing_token), BUDGET)

    def test_what_was_written_is_shown_with_a_menu_that_was_published_later(self, store: Store) -> None:
        fencing_token, other = begun(store), placement(store, "other")
        store.add_population("strangers", b"{}")
        stranger = store.add_placement("stranger", "strangers", b"{}")
        books, ledger = store.books("users", None), Ledger.on(store.books("users", fencing_token), BUDGET)

        def shown() -> tuple[int, list[str], bool]:
            lines = store.ledger("users")
            assert b"".join(lines) == books.lines.read()
            return len(lines), books.releases.names(), books.releases.has("sum.1")

        paid = ledger.buy(Gaussian(1e-3), "sum", "of something")
        paid.once("0", lambda: np.arange(3), SECRET)
        assert shown() == (0, [], False)
        store.publish(store.acquire_leadership("strangers", "one"), replace(FIRST_MENU, placement=stranger))
        assert shown() == (0, [], False), "menus of others show nothing of it"
        store.publish(fencing_token, replace(FIRST_MENU, version=2, effective_at=store.now() + 3600))
        assert shown() == (0, [], False)
        later = store.now() + 0.1
        store.publish(fencing_token, replace(FIRST_MENU, placement=other, effective_at=later))
        paid.once("1", lambda: np.arange(4), SECRET)
        while not store.ledger("users"):
            assert store.now() < later + 10
        assert store.now() >= later
        assert shown() == (3, ["sum.0"], False)
        assert books.releases.once("sum.0", lambda: pytest.fail("drawn")).tolist() == [0, 1, 2]
        with pytest.raises(LedgerInUse, match="read only"):
            books.releases.once("sum.1", lambda: np.arange(3))
        store.publish(fencing_token, replace(FIRST_MENU, version=3))
        assert shown() == (4, ["sum.0", "sum.1"], True)

    def test_books_without_an_epoch_are_read_only(self, store: Store) -> None:
        fencing_token = begun(store)
        Ledger.on(store.books("users", fencing_token), BUDGET).charge(Gaussian(1e-3), "something")
        store.publish(fencing_token, replace(FIRST_MENU, version=2))
        result = Ledger.on(store.books("users", None))
        assert [charge.note for charge in result.charges] == ["something"]
        with pytest.raises(LedgerInUse, match="read only"):
            result.charge(Gaussian(1e-3))
        with pytest.raises(LedgerInUse, match="read only"):
            store.books("users", None).releases.once("sum.0", lambda: np.arange(3))

    def test_lines_are_unique_by_their_number_and_releases_by_their_name(self, store: Store) -> None:
        fencing_token = begun(store)
        Ledger.on(store.books("users", fencing_token), BUDGET).close()
        first, second = (Ledger.on(store.books("users", fencing_token)) for _ in range(2))
        first.charge(Gaussian(1e-3), "first")
        for _ in range(2):  # nor when it tries again
            with pytest.raises(LedgerInUse, match="again"):
                second.charge(Gaussian(1e-3), "second")
        assert len(Ledger.on(store.books("users", fencing_token)).charges) == 1
        slow, fast = (
            store.books("users", fencing_token).releases,
            store.books("users", fencing_token).releases,
        )

        def overtaken() -> Ints:
            fast.once("sum.0", lambda: np.array([1]))
            return np.array([2])

        assert slow.once("sum.0", overtaken).tolist() == [1]
        assert slow.names() == ["sum.0"]
        with pytest.raises(InvalidInput, match="Names are"):
            slow.once("../sum", lambda: np.array([1]))

    def test_populations_have_books_of_their_own(self, store: Store) -> None:
        begun(store)
        store.add_population("others", b"{}")
        for name, epsilon in (("users", 1.0), ("others", 2.0)):
            ledger = Ledger.on(
                store.books(name, store.acquire_leadership(name, "one")), Budget(epsilon, 1e-6)
            )
            paid = ledger.buy(Gaussian(1e-3), "sum", name)
            paid.once("0", partial(np.full, 3, epsilon, np.int64), SECRET)
            assert ledger.contributions_of("front") is None
        store.publish(store.leaders()["users"].fencing_token, replace(FIRST_MENU, version=2))
        far = store.add_placement("far", "others", b"{}")
        store.publish(store.leaders()["others"].fencing_token, replace(FIRST_MENU, placement=far))
        for name, epsilon in (("users", 1.0), ("others", 2.0)):
            books = store.books(name, None)
            ledger = Ledger.on(books)
            assert (ledger.budget.epsilon, ledger.about("sum")) == (epsilon, name)
            assert books.releases.once("sum.0", lambda: pytest.fail("drawn")).tolist() == [epsilon] * 3

    def test_a_forked_child_does_not_use_the_connection(self, store: Store) -> None:
        begun(store)
        if (child := os.fork()) == 0:
            try:
                store.put(answered(1))
            except StoreUnavailable:
                os._exit(17)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17
        assert said(store) == {}

    def test_a_closed_store_says_so(self, address: str) -> None:
        with open_store(address) as store:
            begun(store)
        for refused in (store.now, lambda: store.put(answered(1)), lambda: store.menus(1)):
            with pytest.raises(StoreUnavailable, match="closed"):
                refused()
