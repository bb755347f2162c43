"""The judge of what clients were told: content with a record in order, and with none that has a fault."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from diminuendo.privacy.books import ledger_file
from diminuendo.privacy.books.releases import digest
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import Gaussian
from diminuendo.privacy.ledger import Ledger
from diminuendo.service.records import Shown
from diminuendo.service.store import open_store
from tests.kit.postgres import Server
from tests.service.database import Database, role
from tests.service.judge import POPULATION, TICKS, Menu, Record, Write, judged
from tests.service.store_contract import FIRST_MENU, SECRET

BLOCK, BLOCKS, ANSWERED = 100, 3, 80


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """Of three blocks, in each of which some answer in time, one late, and one of whom nobody knows."""
    result, path = Record(), tmp_path / "people.ledger"
    with Ledger.open(path, Budget(100.0, 1e-6)) as ledger:
        for block in range(BLOCKS):
            name, first = f"home.{block}", block * BLOCK
            result.menus.append(Menu(block + 1, first, ledger.head))
            paid = ledger.buy(Gaussian(1e-3), name, "a block")
            total = np.array([(ANSWERED + block % 2) * TICKS])
            paid.once("0", lambda total=total: total, SECRET)  # type: ignore[misc]
            result.totals[f"{name}.0"] = float(total.sum()) / TICKS
            result.bodies["release", f"{name}.0"] = {digest(total)}
            result.bodies["menu", str(block + 1)] = {f"of {block}"}
            rounds = range(first, first + BLOCK)
            result.shown += [Shown(1, number, block + 1, True, (0, 1)) for number in rounds]
            result.acknowledged += [(number, True) for number in rounds[:ANSWERED]]
            result.acknowledged += [(rounds[ANSWERED], False)]
            result.unknown.add(rounds[ANSWERED + 1])
            result.writes += [
                Write("release", f"{name}.0", "trainer_0", "trainer_0", block),
                Write("menu", str(block + 1), "trainer_0", "trainer_0", block),
            ]
        result.menus.append(Menu(BLOCKS + 1, BLOCKS * BLOCK, ledger.head))
    result.lines = path.read_bytes()
    return result


def test_a_record_in_order_has_no_fault(record: Record) -> None:
    result = judged(record)
    assert result.faults == []
    assert (result.in_time, result.delay, result.unknown) == (BLOCKS * ANSWERED, BLOCKS, BLOCKS)
    assert (result.decisions, result.fallbacks, result.releases, result.fencing_tokens) == (
        BLOCKS * BLOCK,
        0,
        BLOCKS,
        BLOCKS,
    )
    assert result.published == BLOCKS * ANSWERED + 1
    assert str(result).endswith("faults: none")


def lose(record: Record) -> None:
    """An answer that was acknowledged in time; another one, of another block, counts twice."""
    record.totals["home.0.0"] -= 1
    record.totals["home.1.0"] += 1


def count_twice(record: Record) -> None:
    record.totals["home.2.0"] += 3


def hand_out_twice(record: Record) -> None:
    record.shown.append(record.shown[7])


def draw_again(record: Record) -> None:
    """Somebody saw other noise."""
    record.bodies["release", "home.1.0"].add("another")


def keep_another(record: Record) -> None:
    record.bodies["release", "home.1.0"] = {"another"}


def release_unpaid(record: Record) -> None:
    record.bodies["release", "home.9.0"] = {"free"}


def relined(record: Record, change: Callable[[list[dict[str, object]]], list[dict[str, object]]]) -> None:
    """Another ledger, whole in itself, with the heads of its menus."""
    old = [json.loads(line) for line in record.lines.splitlines()]
    heads, lines, head = dict[object, str](), list[bytes](), ""
    for body in change(old):
        before = body.get("hash")
        bare = {key: value for key, value in body.items() if key != "hash"}
        head = ledger_file.chained(head, bare)
        heads[before] = head
        lines.append(ledger_file.line(bare, head))
    record.lines = b"".join(lines)
    record.menus = [menu._replace(head=heads.get(menu.head, head)) for menu in record.menus]


def charge_afterwards(record: Record) -> None:
    def swapped(lines: list[dict[str, object]]) -> list[dict[str, object]]:
        lines[1], lines[2] = lines[2], lines[1]
        return lines

    relined(record, swapped)


def enter_twice(record: Record) -> None:
    relined(record, lambda lines: [*lines, deepcopy(lines[-1])])


def break_the_chain(record: Record) -> None:
    lines = record.lines.splitlines(keepends=True)
    record.lines = b"".join([*lines[:3], *lines[4:]])


def break_off(record: Record) -> None:
    record.lines += b'{"rel'


def cut_back(record: Record) -> None:
    record.bodies["line", str(len(record.lines.splitlines()))] = {"gone"}


def forget_a_menu(record: Record) -> None:
    record.bodies["menu", "5"] = {"gone"}


def publish_an_old_head(record: Record) -> None:
    record.menus[3] = record.menus[3]._replace(head=record.menus[0].head)


def publish_an_old_block(record: Record) -> None:
    record.menus[3] = record.menus[3]._replace(first=0)


def publish_a_strange_head(record: Record) -> None:
    record.menus[3] = record.menus[3]._replace(head="0" * 64)


def publish_twice(record: Record) -> None:
    record.bodies["menu", "2"].add("another")


def leave_a_version_out(record: Record) -> None:
    del record.menus[1]


def show_an_old_menu(record: Record) -> None:
    record.shown.append(Shown(1, BLOCKS * BLOCK, 1, True, (0, 1)))


def write_without_leading(record: Record) -> None:
    record.writes[-1] = record.writes[-1]._replace(who="trainer_1")


def write_of_an_old_epoch(record: Record) -> None:
    record.writes[-1] = record.writes[-1]._replace(fencing_token=0)


def write_over(record: Record) -> None:
    record.writes.append(record.writes[0])


FAULTS: dict[Callable[[Record], None], str] = {
    lose: "home.0.0 is of 79 answers, and 80 were acknowledged in time",
    count_twice: "there were no more than 82",
    hand_out_twice: "1 rounds were handed out twice, the first is 7",
    draw_again: "release home.1.0 was seen with 2 different bodies",
    keep_another: "home.1.0 is not what the ledger says",
    release_unpaid: "home.9.0 was released and is not on the ledger",
    charge_afterwards: "home.0.0 was drawn and not charged for",
    enter_twice: "home.2.0 was entered twice",
    break_the_chain: "the ledger is not whole",
    break_off: "its last line breaks off",
    cut_back: "was seen, and is not there any more",
    forget_a_menu: "menu 5 was seen, and is not there any more",
    publish_an_old_head: "menu 4 follows 3, and is of an older state",
    publish_an_old_block: "menu 4 follows 3, and is of an older state",
    publish_a_strange_head: "menu 4 names a head that is not on the ledger",
    publish_twice: "menu 2 was seen with 2 different bodies",
    leave_a_version_out: "a version of a menu is missing",
    show_an_old_menu: "round 300 was shown by menu 1, after round 299 by menu 3",
    write_without_leading: "menu 3 was written by trainer_1, while trainer_0 led",
    write_of_an_old_epoch: "menu 3 is of fencing token 0, after one of fencing token 1",
    write_over: "release home.0.0 was written 2 times",
}


@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_a_record_with_a_fault_is_not_let_through(record: Record, plant: Callable[[Record], None]) -> None:
    plant(record)
    result = judged(record).faults
    assert any(FAULTS[plant] in fault for fault in result), result


def test_a_database_notes_who_publishes_and_who_leads(postgres_server: Server) -> None:
    """With the right fencing token, which the database takes it for; and as another role."""
    database = Database(postgres_server)
    with open_store(database.address()) as store:
        store.add_population(POPULATION, b"{}")
        number = store.add_placement("home", POPULATION, b"{}")
        database.watch()
        with open_store(database.address(role(0))) as leads, open_store(database.address(role(1))) as other:
            fencing_token = leads.acquire_leadership(POPULATION, "trainer-vm-0")
            leads.publish(fencing_token, replace(FIRST_MENU, placement=number))
            assert [(each.who, each.leader) for each in database.writes()] == [(role(0), role(0))]
            other.publish(fencing_token, replace(FIRST_MENU, placement=number, version=2))
    said = "menu 2 was written by trainer_1, while trainer_0 led"
    assert said in judged(Record(writes=database.writes())).faults
