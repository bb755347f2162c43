"""The ledger refuses before it writes, writes before it returns, survives kills, and notices every change."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diminuendo.errors import (
    DiminuendoError,
    InvalidInput,
    LedgerDamaged,
    LedgerInUse,
    OverBudget,
    UnknownEvent,
)
from diminuendo.privacy import calibrate, curves, ledger, record
from diminuendo.privacy.budget import Budget, Unit
from diminuendo.privacy.events import Columns, Event, Gaussian, Laplace, Repeated, Selections
from diminuendo.privacy.ledger import Ledger

BUDGET = Budget(1.0, 1e-6)
RHO = curves.zcdp_rho(1.0, 1e-6)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people.ledger"


def test_charges_add_up_and_the_last_tick_is_refused() -> None:
    held = Ledger(BUDGET)
    for _ in range(3):
        held.charge(Gaussian(RHO / 4), "a quarter")
    assert held.spent() == pytest.approx(curves.zcdp_epsilon(0.75 * RHO, 1e-6), rel=1e-9)
    assert not held.affords(Gaussian(RHO / 4 * (1 + 1e-9)))
    before = held.spent(), held.head, len(held.charges)
    with pytest.raises(OverBudget, match=r"0\.8.* is\s+spent"):
        held.charge(Gaussian(RHO / 2))
    assert (held.spent(), held.head, len(held.charges)) == before
    held.charge(Gaussian(RHO / 4))
    assert held.spent() <= 1.0
    with pytest.raises(OverBudget):
        held.charge(Gaussian(5e-324))
    held.charge(Gaussian(0.0))


def test_nothing_drifts_over_many_charges() -> None:
    held = Ledger(Budget(1.0, 0.0, accountant="pure"))
    step = 2.0**-12
    for _ in range(1 << 12):
        held.charge(Laplace(step))
    assert held.spent() == 1.0
    with pytest.raises(OverBudget):
        held.charge(Laplace(5e-324))


def test_a_charge_takes_no_longer_as_the_ledger_grows() -> None:
    def seconds(held: Ledger) -> float:
        begun = time.perf_counter()
        for index in range(300):
            held.charge(Columns(index % 40, (1e-12, 3e-13, 1e-13)))
        return time.perf_counter() - begun

    held = Ledger(BUDGET)
    early = min(seconds(held) for _ in range(5))
    for _ in range(30):
        seconds(held)
    late = min(seconds(held) for _ in range(5))
    assert late < 4 * early  # a quadratic ledger would be 8 times slower by now, and slower yet


def test_columns_pay_for_themselves_only() -> None:
    held = Ledger(BUDGET)
    for column in range(50):  # each batch of people pays its own way
        held.charge(Columns(column, (RHO / 2, RHO / 2)))
    assert held.spent() == pytest.approx(1.0, rel=1e-9)
    with pytest.raises(OverBudget):
        held.charge(Columns(3, (1e-6,)))
    held.charge(Columns(50, (RHO / 4,)))
    with pytest.raises(OverBudget):  # what everybody pays falls on the worst batch
        held.charge(Gaussian(1e-6))


def test_batches_of_two_partitions_have_nothing_to_do_with_each_other() -> None:
    """A round may be in batch 0 of one and in batch 1 of the other, and then pays twice."""
    held = Ledger(BUDGET)
    held.charge(Columns(0, (RHO / 2, 0.0), partition="clicks"))
    held.charge(Columns(0, (0.0, RHO / 2), partition="clicks"))
    held.charge(Columns(0, (0.0, RHO / 2), partition="wishes"))
    assert held.spent() == pytest.approx(1.0, rel=1e-9)
    with pytest.raises(OverBudget):
        held.charge(Columns(0, (0.0, 1e-6), partition="clicks"))
    held.charge(Columns(7, (RHO / 2,), partition="clicks"))
    with pytest.raises(OverBudget):
        held.charge(Columns(0, (1e-6,), partition="third"))


def test_a_cost_beyond_all_bounds_is_refused_like_any_other() -> None:
    with pytest.raises(OverBudget):
        Ledger(BUDGET).charge(Repeated(Gaussian(1e308), 10))


@pytest.mark.parametrize(("rounds", "factor"), [(1, 1), (2, 4), (5, 25)])
def test_people_with_several_rounds_cost_the_square(rounds: int, factor: int) -> None:
    held = Ledger(Budget(1.0, 1e-6, Unit(rounds)))
    assert held.budget.limit * factor == Fraction(RHO)
    held.charge(Gaussian(0.999 * RHO / factor))
    assert 0.99 < held.spent() <= 1.0
    pure = Ledger(Budget(1.0, 0.0, Unit(rounds), "pure"))
    pure.charge(Selections(2, 0.499 / rounds))
    assert pure.spent() == pytest.approx(0.998)
    assert str(rounds) in pure.guarantee().neighbours or rounds == 1


@pytest.mark.parametrize("budget", [BUDGET, Budget(0.3, 1e-9, Unit(3)), Budget(0.7, 0.0, Unit(7), "pure")])
def test_shares_of_a_budget_fit_into_it(budget: Budget) -> None:
    held = Ledger(budget)
    for part in (0.25, 0.5, 0.25):
        held.charge(budget.share(part))
    assert budget.epsilon * (1 - 1e-9) < held.spent() <= budget.epsilon
    assert not held.affords(budget.share(1e-6))
    tenths = Ledger(budget)
    for _ in range(10):
        tenths.charge(budget.share(0.1))
    for wrong in (0.0, 1.1, -1.0):
        with pytest.raises(InvalidInput, match="part"):
            budget.share(wrong)


def test_ten_tenths_in_floats_are_too_much_and_it_is_said_why() -> None:
    held = Ledger(Budget(1.0, 0.0, accountant="pure"))
    for _ in range(9):
        held.charge(Laplace(0.1))
    with pytest.raises(OverBudget, match="rounding error only"):
        held.charge(Laplace(0.1))
    with pytest.raises(OverBudget, match="Ask for less"):
        held.charge(Laplace(0.2))


@pytest.mark.parametrize("budget", [BUDGET, Budget(0.3, 1e-9, Unit(3)), Budget(0.7, 0.0, Unit(7), "pure")])
@pytest.mark.parametrize("count", [1, 7, 499_995])
@pytest.mark.parametrize("span", [1.0, 2.0, 0.3, 2 << 20])
def test_calibrated_draws_fit_and_no_more_would(budget: Budget, count: int, span: float) -> None:
    rate, event = calibrate.selections(budget, count, span)
    assert Fraction(event.span) >= Fraction(rate) * Fraction(span)
    held = Ledger(budget)
    held.charge(event)
    assert not held.affords(Selections(1 + count // 10**6, rate * span * 1e-3))
    assert budget.epsilon * (1 - 1e-6) < held.spent()


def test_events_without_a_price_are_refused_by_name() -> None:
    held = Ledger(Budget(1.0, 0.0, accountant="pure"))
    with pytest.raises(UnknownEvent, match=r"'pure'.*Gaussian"):
        held.charge(Gaussian(0.1))
    assert held.charges == []


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Budget(0.0, 1e-6),
        lambda: Budget(1.0, 0.0),
        lambda: Budget(1.0, 1.0),
        lambda: Budget(1.0, 1e-6, accountant="pure"),
        lambda: Budget(1.0, 1e-6, accountant="advanced"),  # type: ignore[arg-type]
        lambda: Budget(1.0, 1e-6, Unit(0)),
        lambda: Unit(1, "add/remove"),  # type: ignore[arg-type]
        lambda: Ledger(BUDGET).charge(Gaussian(0.0), "two\nlines"),
    ],
)
def test_bad_budgets_are_refused(wrong: object) -> None:
    with pytest.raises(InvalidInput):
        wrong()  # type: ignore[operator]


def test_a_file_is_read_back_and_goes_on(path: Path) -> None:
    with Ledger.open(path, BUDGET) as held:
        held.charge(Selections(10, 0.01), "ten draws")
        head = held.head
    with Ledger.open(path, expect=head) as again:
        assert again.head == head
        assert again.spent() == held.spent()
        assert [charge.note for charge in again.charges] == ["ten draws"]
        again.charge(Repeated(Gaussian(1e-4), 3))
    found = ledger.audit(path)
    assert found.budget == BUDGET
    assert found.head == again.head
    assert not record.load(path).torn
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


def test_every_flipped_byte_is_noticed(path: Path) -> None:
    content = filled(path)
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1
        try:
            found = record.parse(bytes(changed), "file")
        except LedgerDamaged:
            continue
        # The only change that passes is that of the last newline: the last line then counts as unfinished.
        assert place == len(content) - 1
        assert found.torn


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
            record.parse(b"".join(wrong), "file")


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


def test_charges_beyond_the_budget_are_not_believed(path: Path) -> None:
    content = filled(path).decode().splitlines()
    head, lines = json.loads(content[0])["hash"], [content[0]]
    for _ in range(2):  # hashes recomputed by somebody who knows how
        body = {"charge": {"kind": "gaussian", "rho": RHO}, "note": ""}
        head = record.chained(head, body)
        lines.append(record.line(body, head).decode().strip())
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(LedgerDamaged, match="exceed the budget"):
        Ledger.open(path)
    with pytest.raises(LedgerDamaged, match="exceed the budget"):
        ledger.audit(path)


def test_an_unfinished_line_is_dropped_and_said_so(path: Path) -> None:
    content = filled(path)
    for cut in (1, 5, 40):
        path.write_bytes(content[:-cut])
        with Ledger.open(path) as held:
            assert [charge.note for charge in held.charges][:3] == [f"release {index}" for index in range(3)]
            assert "unfinished" in held.charges[3].note
            assert len(held.charges) == 4
        assert not record.load(path).torn
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
    print("ready", flush=True)
    while True:
        held.charge(Gaussian(1e-9))
        log.write(b"x")  # what was drawn, after the charge returned
"""


def test_kills_never_unspend(path: Path, tmp_path: Path) -> None:
    drawn, dice = tmp_path / "drawn", random.Random(0)
    lengths = []
    for _ in range(8):
        process = subprocess.Popen([sys.executable, "-c", CHARGER, path, drawn], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(dice.uniform(0.005, 0.1))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        found = ledger.audit(path)
        charges = [charge for charge in found.charges if "unfinished" not in charge.note]
        assert len(drawn.read_bytes()) <= len(charges) <= len(drawn.read_bytes()) + 8
        lengths.append(len(charges))
    assert lengths == sorted(lengths)
    assert lengths[-1] > 12
    with Ledger.open(path) as held:
        assert held.spent() >= curves.zcdp_epsilon(len(drawn.read_bytes()) * 1e-9, 1e-6)


events = st.recursive(
    st.builds(Gaussian, st.floats(0, 1e-3))
    | st.builds(Laplace, st.floats(0, 1e-2))
    | st.builds(Selections, st.integers(0, 9), st.floats(0, 1e-2))
    | st.builds(Columns, st.integers(0, 5), st.lists(st.floats(0, 1e-3), max_size=4).map(tuple)),
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
