"""A ledger in a file writes before it returns, survives kills, and notices every change."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diminuendo import SystemSource
from diminuendo.errors import (
    DiminuendoError,
    InvalidInput,
    LedgerDamaged,
    LedgerInUse,
    OverBudget,
)
from diminuendo.privacy import curves, ledger
from diminuendo.privacy.books import ledger_file
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import Event, Gaussian, Laplace, NormalColumns, Repeated, Selections
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness import SecretRandomness
from tests.kit.slow import mostly_slow

BUDGET = Budget(1.0, 1e-6)
RHO = curves.zcdp_rho(1.0, 1e-6)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people.ledger"


def test_a_file_is_read_back_and_goes_on(path: Path) -> None:
    with Ledger.open(path, BUDGET) as held:
        held.charge(Selections(10, 0.01), "ten draws")
        head = held.head
    with Ledger.open(path, expect=head) as again:
        assert again.head == head
        assert again.spent() == held.spent()
        assert [charge.note for charge in again.charges] == ["ten draws"]
        again.charge(Repeated(Gaussian(1e-4), 3))
    result = ledger.audit(path)
    assert result.budget == BUDGET
    assert result.head == again.head
    assert not ledger_file.load(path).torn
    with Ledger.open(path, BUDGET, expect=head) as third:
        assert len(third.charges) == 2


def test_a_budget_does_not_change(path: Path) -> None:
    Ledger.open(path, BUDGET).close()
    with pytest.raises(InvalidInput, match="Budgets do not change"):
        Ledger.open(path, Budget(2.0, 1e-6))
    Ledger.open(path).close()  # and the failed attempt left nothing locked


def test_files_of_another_kind_are_left_alone(tmp_path: Path) -> None:
    poem = tmp_path / "poem.txt"
    poem.write_text("no newline here")
    with pytest.raises(InvalidInput, match="another kind"):
        Ledger.open(poem, BUDGET)
    assert poem.read_text() == "no newline here"
    with pytest.raises(InvalidInput, match="No such file"):
        Ledger.open(tmp_path / "none.ledger")
    poem.write_text("a line\nand another\n")
    with pytest.raises(LedgerDamaged, match="not a ledger"):
        Ledger.open(poem, BUDGET)


def filled(path: Path, charges: int = 4) -> bytes:
    with Ledger.open(path, BUDGET) as held:
        for index in range(charges):
            held.charge(Gaussian(1e-3 * (index + 1)), f"release {index}")
    return path.read_bytes()


@pytest.mark.parametrize("charges", mostly_slow([0, 1, 2], [1]))
def test_every_flipped_bit_is_refused_or_changes_nothing(path: Path, charges: int) -> None:
    """Also those of the last newline: a whole line is not taken for one that a crash cut short."""
    content = filled(path, charges)
    before = ledger.audit(path)
    refused = 0
    for place in range(len(content)):
        for bit in range(8):
            changed = bytearray(content)
            changed[place] ^= 1 << bit
            path.write_bytes(changed)
            for read in (ledger.audit, lambda file: Ledger.open(file, BUDGET)):
                try:
                    result = read(path)
                except DiminuendoError:
                    refused += 1
                    assert path.read_bytes() == changed, "what is refused is left alone"
                else:
                    result.close()
                    assert (result.charges, result.head) == (before.charges, before.head)
    assert refused > 15 * len(content)


@pytest.mark.parametrize("damage", [b"\x00", b"\x00" * 300, b"\xff", b"*", b"}", b'{"charge"', b"\r\r*"])
def test_what_follows_a_whole_line_is_damage(path: Path, damage: bytes) -> None:
    content = filled(path)
    path.write_bytes(content[:-1] + damage)
    with pytest.raises(LedgerDamaged, match=r"line 5.*Restore the file from a copy"):
        Ledger.open(path)
    assert path.read_bytes() == content[:-1] + damage


def test_a_last_line_of_which_nothing_is_left_but_noughts_is_damage(path: Path) -> None:
    content = filled(path)
    path.write_bytes(content[: content[:-1].rindex(b"\n") + 1] + b"\x00" * 100)
    with pytest.raises(LedgerDamaged, match="line 5"):
        Ledger.open(path)


def test_a_line_that_lacks_its_newline_only_counts(path: Path) -> None:
    content = filled(path)
    path.write_bytes(content[:-1])
    assert len(ledger.audit(path).charges) == 4
    with Ledger.open(path) as held:
        assert len(held.charges) == 4
        assert path.read_bytes() == content
        held.charge(Gaussian(1e-4), "another")
    assert [charge.note for charge in ledger.audit(path).charges][3:] == ["release 3", "another"]


def test_lost_and_swapped_lines_are_noticed(path: Path) -> None:
    lines = filled(path).splitlines(keepends=True)
    for wrong in (
        lines[:2] + lines[3:],
        [lines[0], lines[2], lines[1], *lines[3:]],
        lines[1:],
        [*lines, lines[-1]],
        [lines[0], b"\n", *lines[1:]],
    ):
        with pytest.raises(LedgerDamaged):
            ledger_file.parse(b"".join(wrong), "file")


def test_a_file_cut_back_is_noticed_by_its_head(path: Path) -> None:
    content = filled(path)
    head = ledger.audit(path).head
    path.write_bytes(b"".join(content.splitlines(keepends=True)[:-1]))
    with pytest.raises(LedgerDamaged, match="cut back"):
        Ledger.open(path, expect=head)


def test_a_lost_file_is_not_begun_anew(path: Path) -> None:
    filled(path)
    head = ledger.audit(path).head
    path.unlink()
    with pytest.raises(LedgerDamaged, match="lost"):
        Ledger.open(path, BUDGET, expect=head)
    with pytest.raises(InvalidInput, match="No such file"):
        ledger.audit(path.parent / "none")


def released(path: Path) -> None:
    with Ledger.open(path, BUDGET) as held:
        paid = held.buy(Gaussian(1e-3), "sum", "of something")
        paid.once("000000", lambda: np.arange(3), SecretRandomness(SystemSource()))


@pytest.mark.parametrize("left", [0, 20, None], ids=["gone", "its beginning", "its first line"])
def test_a_ledger_lost_from_beside_its_releases_is_not_begun_anew(path: Path, left: int | None) -> None:
    released(path)
    content = path.read_bytes()
    path.write_bytes(content[: content.index(b"\n") + 1 if left is None else left])
    if left == 0:
        path.unlink()
    for _ in range(2):  # nor when it is asked for again
        with pytest.raises(LedgerDamaged, match=r"sum\.000000.*lost.*Restore it from a copy.*another path"):
            Ledger.open(path, BUDGET)
    path.write_bytes(content)
    released(path)


FORKED_RELEASE = """
import os, sys
from pathlib import Path
import numpy as np
from diminuendo import SystemSource
from diminuendo.errors import LedgerInUse
from diminuendo.privacy import Budget, Ledger
from diminuendo.privacy.events import Gaussian
from diminuendo.randomness import SecretRandomness
from diminuendo.sums import PrivateSum, equal
budget, secret = Budget(1.0, 1e-6), SecretRandomness(SystemSource())
held = Ledger.open(sys.argv[1], budget) if sys.argv[1] != "memory" else Ledger(budget)
total = PrivateSum(2, schedule=equal(6, 3), cost=budget.share(), ledger=held)
drawn, draw = [], lambda: drawn.append(1) or np.arange(2)
if sys.argv[2] == "same":  # as in containers, where every process is number 1
    os.getpid = lambda: 1
    held._books.lines._owner = 1
if os.fork() == 0:
    refused = 0
    for tried in (lambda: total._paid.once("000000", draw, secret), lambda: total.release(secret)):
        try:
            tried()
        except LedgerInUse:
            refused += 1
    os._exit(refused + 10 * len(drawn))
print(os.waitstatus_to_exitcode(os.wait()[1]))
print(len(list(Path(sys.argv[1] + ".releases").glob("*"))))
total.release(secret)
print(len(held.drawn))
"""


@pytest.mark.parametrize(("where", "number"), [("file", "other"), ("file", "same"), ("memory", "other")])
def test_a_forked_child_neither_draws_nor_writes(path: Path, where: str, number: str) -> None:
    given = [str(path) if where == "file" else where, number]
    ran = subprocess.run([sys.executable, "-c", FORKED_RELEASE, *given], capture_output=True, text=True)
    assert ran.stdout.split() == ["2", "0", "1"], ran.stderr


def test_a_closed_ledger_neither_draws_nor_writes(path: Path) -> None:
    held = Ledger.open(path, BUDGET)
    paid = held.buy(Gaussian(1e-3), "sum", "of something")
    held.close()
    with Ledger.open(path) as another:  # its folder now
        with pytest.raises(LedgerInUse, match="closed"):
            paid.once("000000", lambda: pytest.fail("drawn"), SecretRandomness(SystemSource()))
        assert not another._kept.names()


def test_charges_beyond_the_budget_are_not_believed(path: Path) -> None:
    content = filled(path).decode().splitlines()
    head, lines = json.loads(content[0])["hash"], [content[0]]
    for _ in range(2):  # hashes recomputed by somebody who knows how
        body = {"charge": {"kind": "gaussian", "rho": RHO}, "note": ""}
        head = ledger_file.chained(head, body)
        lines.append(ledger_file.line(body, head).decode().strip())
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(LedgerDamaged, match="exceed the budget"):
        Ledger.open(path)
    with pytest.raises(LedgerDamaged, match="exceed the budget"):
        ledger.audit(path)


def test_an_unfinished_line_is_dropped_and_said_so(path: Path) -> None:
    content = filled(path)
    for cut in (2, 5, 40):
        path.write_bytes(content[:-cut])
        with Ledger.open(path) as held:
            assert [charge.note for charge in held.charges][:3] == [f"release {index}" for index in range(3)]
            assert "unfinished" in held.charges[3].note
            assert len(held.charges) == 4
        assert not ledger_file.load(path).torn
    path.write_bytes(content[:20])  # not even the first line
    with Ledger.open(path, BUDGET) as held:
        assert held.charges == []


def test_one_holder_at_a_time(path: Path) -> None:
    held = Ledger.open(path, BUDGET)
    with pytest.raises(LedgerInUse, match="in use"):
        Ledger.open(path)
    other = f"from diminuendo.privacy.ledger import Ledger; Ledger.open({str(path)!r})"
    ran = subprocess.run([sys.executable, "-c", other], capture_output=True, text=True, check=False)
    assert "LedgerInUse" in ran.stderr
    assert len(ledger.audit(path).charges) == 0  # reading needs no hold
    held.close()
    with pytest.raises(LedgerInUse, match="closed"):
        held.charge(Gaussian(0.0))
    Ledger.open(path).close()


FORK = """
import os, sys
from diminuendo.errors import LedgerInUse
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import Gaussian
from diminuendo.privacy.ledger import Ledger
held = Ledger.open(sys.argv[1], Budget(1.0, 1e-6))
if os.fork() == 0:
    try:
        held.charge(Gaussian(1e-3))
    except LedgerInUse as refused:
        os._exit(17)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.wait()[1]))
held.charge(Gaussian(1e-3))
print(len(held.charges))
"""


def test_a_forked_child_may_not_charge(path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", FORK, str(path)], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["17", "1"]


def test_a_file_that_comes_in_pieces_is_read_whole(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(path)
    whole = os.pread
    monkeypatch.setattr(os, "pread", lambda file, size, at: whole(file, min(size, 100), at))
    with Ledger.open(path) as held:
        assert len(held.charges) == 4


def test_a_replaced_file_is_noticed(path: Path) -> None:
    filled(path)
    copy = path.with_suffix(".copy")
    copy.write_bytes(path.read_bytes())
    held = Ledger.open(path)
    os.replace(copy, path)
    with pytest.raises(LedgerInUse, match="replaced"):
        held.charge(Gaussian(1e-4))
    held.close()
    gone = Ledger.open(path)
    path.unlink()
    with pytest.raises(LedgerInUse, match="replaced or removed"):
        gone.charge(Gaussian(1e-4))
    gone.close()


def test_an_interrupt_between_file_and_memory_bricks_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Ledger.open(path, BUDGET)
    with monkeypatch.context() as patch:
        patch.setattr(held, "_enter", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            held.charge(Gaussian(1e-4))
    with pytest.raises(LedgerInUse, match="interrupted"):
        held.charge(Gaussian(1e-4))
    held.close()
    with Ledger.open(path) as again:
        assert len(again.charges) == 1
        again.charge(Gaussian(1e-4))
    assert len(ledger.audit(path).charges) == 2


def test_a_failed_write_stops_the_ledger(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Ledger.open(path, BUDGET)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(OSError, match="full"):
            held.charge(Gaussian(1e-3))
    with pytest.raises(LedgerInUse, match="again"):
        held.charge(Gaussian(1e-3))
    held.close()
    with Ledger.open(path) as again:
        assert len(again.charges) == 1  # it reached the file, so it counts


CHARGER = """
import os, sys
from diminuendo.errors import OverBudget
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import Gaussian
from diminuendo.privacy.ledger import Ledger
path, drawn = sys.argv[1:]
with Ledger.open(path, Budget(1.0, 1e-6)) as held, open(drawn, "ab", buffering=0) as log:
    while True:
        held.charge(Gaussian(1e-9))
        log.write(b"x")  # what was drawn, after the charge returned
"""


@pytest.mark.parametrize("kills", mostly_slow([4, 20], [4]))
def test_kills_never_unspend(kills: int, path: Path, tmp_path: Path) -> None:
    drawn, dice = tmp_path / "drawn", random.Random(0)
    lengths = []
    for _ in range(kills):
        kill_after(CHARGER, path, drawn, growth=3, seconds=dice.uniform(0, 0.05))
        result = ledger.audit(path)
        charges = [charge for charge in result.charges if "unfinished" not in charge.note]
        assert len(drawn.read_bytes()) <= len(charges) <= len(drawn.read_bytes()) + kills
        lengths.append(len(charges))
    assert lengths == sorted(lengths)
    assert lengths[-1] >= kills * 3
    with Ledger.open(path) as held:
        assert held.spent() >= curves.zcdp_epsilon(len(drawn.read_bytes()) * 1e-9, 1e-6)


RELEASER = """
import sys
from diminuendo import SystemSource
from diminuendo.privacy import Budget, Ledger
from diminuendo.randomness import SecretRandomness
from diminuendo.sums import PrivateSum, equal
path, published = sys.argv[1:]
budget, secret = Budget(1.0, 1e-6), SecretRandomness(SystemSource())
with Ledger.open(path, budget) as held, open(published, "ab", buffering=0) as log:
    plan = equal(5000, 5000)
    total = PrivateSum(2, schedule=plan, cost=budget.share(), ledger=held, strategy="independent")
    while total.left:
        number = total.batch
        log.write(f"{number} {total.release(secret).tolist()}\\n".encode())
"""


def test_kills_never_draw_again(path: Path, tmp_path: Path) -> None:
    """Whatever was published under a number is published again word for word, however often the process dies."""
    published = tmp_path / "published"
    for _ in range(5):
        kill_after(RELEASER, path, published, growth=2000, seconds=0.02)
    *lines, _ = published.read_text().split("\n")
    seen: dict[str, set[str]] = {}
    for text in lines:
        number, _, value = text.partition(" ")
        seen.setdefault(number, set()).add(value)
    assert all(len(values) == 1 for values in seen.values())
    assert len(lines) > len(seen)  # some were published more than once
    result = ledger.audit(path)
    assert len(result.charges) == 1 + sum("unfinished" in charge.note for charge in result.charges)
    assert len(result.drawn) >= len(seen)


def kill_after(program: str, path: Path, log: Path, growth: int, seconds: float) -> None:
    """Run it until its log has grown by so many bytes, however slow the disk, and a little longer; then kill it."""
    begun = log.stat().st_size if log.exists() else 0
    process = subprocess.Popen([sys.executable, "-c", program, path, log])
    while not log.exists() or log.stat().st_size < begun + growth:
        assert process.poll() is None, "it ended by itself"
        time.sleep(0.002)
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.wait()


events = st.recursive(
    st.builds(Gaussian, st.floats(0, 1e-3))
    | st.builds(Laplace, st.floats(0, 1e-2))
    | st.builds(Selections, st.integers(0, 9), st.floats(0, 1e-2))
    | st.builds(NormalColumns, st.integers(0, 5), st.lists(st.floats(0, 1e-3), max_size=4).map(tuple)),
    lambda inner: st.builds(Repeated, inner, st.integers(0, 3)),
)


@settings(deadline=None, max_examples=60)
@given(charges=st.lists(events, max_size=12), cut=st.integers(0, 400))
def test_what_a_file_says_is_what_was_charged(
    charges: list[Event], cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("ledger") / "file"
    accepted = []
    with Ledger.open(path, BUDGET) as held:
        for event in charges:
            try:
                held.charge(event)
                accepted.append(event)
            except OverBudget:
                assert not held.affords(event)
    assert [charge.event for charge in ledger.audit(path).charges] == accepted
    assert held.spent() <= 1.0
    content = path.read_bytes()
    path.write_bytes(content[: max(0, len(content) - cut)])
    try:
        with Ledger.open(path, BUDGET) as again:
            kept = [charge.event for charge in again.charges if not charge.note]
    except DiminuendoError as error:
        raise AssertionError(f"a file that was merely cut short was refused: {error}") from error
    assert kept == accepted[: len(kept)]
