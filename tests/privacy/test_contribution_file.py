"""Rounds that count are on disk before their slates are shown, so that nobody counts more often than was promised."""

from __future__ import annotations

import base64
import errno
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from diminuendo import LEARNERS, Learner, Setting
from diminuendo.errors import LedgerDamaged, LedgerInUse
from diminuendo.learners import EpochGreedy
from diminuendo.learners.base.contribution_bound import hashed
from diminuendo.privacy.books import contribution_file, durable
from diminuendo.privacy.books.contribution_file import ContributionFile
from diminuendo.privacy.budget import Budget, Unit
from diminuendo.privacy.ledger import Ledger
from diminuendo.streams import taste_groups
from tests.kit.slow import mostly_slow

USERS = taste_groups(400, 8, groups=2, items_per_group=4, seed=1)
ADA, EVE = hashed("ada"), hashed("eve")


def budget(visits: int) -> Budget:
    return Budget(50.0, 0.0, Unit(visits), "pure")


def opened(path: Path, visits: int = 2) -> Ledger:
    return Ledger.open(path, budget(visits))


def made(ledger: Ledger | None, visits: int = 2, **more: Any) -> Learner:
    return EpochGreedy(
        8, 2, horizon=400, epsilon=4.0, epoch=10, max_rounds_per_user=visits, ledger=ledger, **more
    )


def counts(learner: Learner, user: Any) -> bool:
    """Show the user a slate; whether feedback in this round counts."""
    decision = learner.choose(user)
    return bool(learner._frame.decisions.waiting[decision.round % learner._frame.decisions.remembered])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people.ledger"


def file_of(path: Path, learner: str = "epoch-greedy") -> Path:
    return Path(f"{path}.visits") / learner


# After a crash.


def test_rounds_since_the_snapshot_are_not_given_back(path: Path) -> None:
    """They were: the count was that of the snapshot, and feedback since then may have been published."""
    with opened(path) as ledger:
        learner = made(ledger)
        kept = learner.snapshot()
        assert [counts(learner, "ada") for _ in range(3)] == [True, True, False]
        assert counts(learner, "eve")
    with opened(path) as ledger:
        learner = EpochGreedy.restore(kept, ledger=ledger)
        assert not counts(learner, "ada")
        assert [counts(learner, "eve") for _ in range(2)] == [True, False]
        assert [counts(learner, "bob") for _ in range(3)] == [True, True, False]
    with opened(path) as ledger:  # made anew, without any snapshot
        learner = made(ledger)
        assert not any(counts(learner, user) for user in ("ada", "eve", "bob"))


@pytest.mark.parametrize("many", ["replay", "choose_many"])
def test_many_at_once_are_one_line(path: Path, many: str) -> None:
    names = [number % 7 for number in range(50)]
    with opened(path) as ledger:
        learner = made(ledger)
        kept = learner.snapshot()
        if many == "replay":
            learner.replay(USERS[:50], user_ids=names)
        else:
            learner.choose_many(50, names)
        _, line, rest = file_of(path).read_bytes().split(b"\n")
        assert rest == b""
        assert len(base64.b64decode(line)) == contribution_file.CHECK + 7 * 2 * contribution_file.HASHED
    with opened(path) as ledger:
        learner = EpochGreedy.restore(kept, ledger=ledger)
        assert not any(counts(learner, name) for name in range(7))


def test_a_snapshot_of_before_there_was_a_file_goes_on(path: Path) -> None:
    with opened(path) as ledger:
        learner = made(ledger)
        assert counts(learner, "ada")
        kept = learner.snapshot()
    file_of(path).unlink()
    with opened(path) as ledger:
        learner = EpochGreedy.restore(kept, ledger=ledger)
        assert [counts(learner, "ada") for _ in range(2)] == [True, False]
    with opened(path) as ledger:
        assert ContributionFile(file_of(path), "epoch-greedy").rounds == {ADA: 2}
    with opened(path) as ledger:
        assert not counts(EpochGreedy.restore(kept, ledger=ledger), "ada")


# What is written, and when.


def test_without_names_or_a_file_nothing_is_written(path: Path, tmp_path: Path) -> None:
    with opened(path, 1) as ledger:
        learner = made(ledger, 1)
        learner.replay(USERS[:20])
        learner.choose()
        learner.choose_many(5)
    assert not file_of(path).parent.exists()
    before = sorted(tmp_path.iterdir())
    learner = made(Ledger(budget(2)))
    assert [counts(learner, "ada") for _ in range(3)] == [True, True, False]
    learner.replay(USERS[:20], user_ids=list(range(20)))
    assert sorted(tmp_path.iterdir()) == before


def test_it_is_on_disk_before_the_slate_is_drawn(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(path) as ledger:
        learner = made(ledger)
        drawn, whole = list[int](), type(learner.policy).draw

        def watched(policy: Any, *args: Any) -> bool:
            lines = file_of(path).read_bytes().count(b"\n")
            done = whole(policy, *args)
            drawn.extend([lines - 1] * done)  # else it waits for random words, and is called again
            return done

        monkeypatch.setattr(type(learner.policy), "draw", watched)
        for user in ("ada", "eve", "ada", "ada", "eve"):
            learner.choose(user)
        assert drawn == [1, 2, 3, 3, 4], "who is over the limit need not be written"


def test_learners_of_one_ledger_count_apart(path: Path) -> None:
    unit = Budget(50.0, 1e-6, Unit(2), "zcdp")
    with Ledger.open(path, unit) as ledger:
        setting = Setting(8, 2, 400, "full", 1.0, 1e-6, 2)
        one, other = (
            LEARNERS["fi-dp"].for_setting(setting, ledger=each) for each in (ledger, ledger.named("other"))
        )
        assert [counts(one, "ada") for _ in range(3)] == [True, True, False]
        assert counts(other, "ada")
    assert ContributionFile(file_of(path, "fi-dp"), "fi-dp").rounds == {ADA: 2}
    assert ContributionFile(file_of(path, "fi-dp%40other"), "fi-dp@other").rounds == {ADA: 1}
    with pytest.raises(LedgerDamaged, match="not the visits of this learner"):
        ContributionFile(file_of(path, "fi-dp"), "fi-dp@other")


def test_a_full_disk_shows_nothing_and_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(path) as ledger:
        learner = made(ledger)
        assert counts(learner, "ada")
        whole, before = os.write, learner.snapshot()

        def half(file: int, content: bytes) -> int:
            if len(content) < 5:
                raise OSError(errno.ENOSPC, "No space left on device")
            return whole(file, content[: len(content) // 2])

        with monkeypatch.context() as patched:
            patched.setattr(os, "write", half)
            for shows in (
                lambda: learner.choose("ada"),
                lambda: learner.choose_many(3, ["ada", "eve", "bob"]),
                lambda: learner.replay(USERS[:3], user_ids=["ada", "eve", "bob"]),
            ):
                with pytest.raises(OSError, match="No space"):
                    shows()
                assert learner.snapshot() == before
        assert [counts(learner, "ada") for _ in range(2)] == [True, False]
        assert counts(learner, "eve")
    with opened(path):
        assert ContributionFile(file_of(path), "epoch-greedy").rounds == {ADA: 2, EVE: 1}


def test_a_closed_ledger_takes_no_more_rounds(path: Path) -> None:
    with opened(path) as ledger:
        learner = made(ledger)
    with pytest.raises(LedgerInUse, match="closed with its ledger"):
        learner.choose("ada")
    with opened(path) as ledger:
        assert counts(made(ledger), "ada")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forked children here")
def test_a_forked_child_counts_nobody(path: Path) -> None:
    with opened(path) as ledger:
        if (child := os.fork()) == 0:  # pragma: no cover
            try:
                made(ledger)
            except LedgerInUse:
                os._exit(17)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17


# The file.


def filled(path: Path) -> bytes:
    file = ContributionFile(path, "learner")
    file.reach({ADA: 1})
    file.reach({ADA: 2, EVE: 1})
    file.reach({ADA: 2, EVE: 1})
    file.reach({EVE: 3})
    file.close()
    content = path.read_bytes()
    assert content.count(b"\n") == 4
    return content


def test_a_last_line_that_was_cut_is_dropped_and_any_other_damage_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    content = filled(path)
    ends = [at for at in range(1, len(content) + 1) if content[at - 1 : at] == b"\n"]
    wanted = [{}, {ADA: 1}, {ADA: 2, EVE: 1}, {ADA: 2, EVE: 3}]
    for size in range(len(content) + 1):
        path.write_bytes(content[:size])
        file = ContributionFile(path, "learner")
        assert file.rounds == wanted[max(0, sum(end <= size for end in ends) - 1)]
        file.reach({EVE: 4})  # goes on after the last whole line
        file.close()
        assert ContributionFile(path, "learner").rounds[EVE] == 4
    for at in range(ends[-1]):
        damaged = bytearray(content)
        damaged[at] ^= 1
        path.write_bytes(bytes(damaged))
        if at == ends[-1] - 1:  # the very last byte: a line without its end
            assert ContributionFile(path, "learner").rounds == wanted[2]
            continue
        with pytest.raises(LedgerDamaged, match="Restore the file"):
            ContributionFile(path, "learner")
    lines = content.splitlines(keepends=True)
    for damage in ([0, 2, 3], [0, 2, 1, 3], [0, 1, 1, 2, 3], [1, 2, 3]):
        path.write_bytes(b"".join(lines[line] for line in damage))
        with pytest.raises(LedgerDamaged, match="Restore the file"):
            ContributionFile(path, "learner")
    path.write_bytes(content)
    assert ContributionFile(path, "learner").rounds == wanted[3]


def test_a_long_file_is_written_anew_when_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    monkeypatch.setattr(contribution_file, "MANY", 3)
    before = filled(path)
    (tmp_path / f"{durable.UNFINISHED}file").write_bytes(b"of before a crash")
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", lambda *_: os.kill(0, 99))  # dies before the last step
        with pytest.raises((OSError, ValueError)):
            ContributionFile(path, "learner")
    assert path.read_bytes() == before
    file = ContributionFile(path, "learner")
    assert path.read_bytes().count(b"\n") == 2
    assert sorted(tmp_path.iterdir()) == [path]
    file.reach({ADA: 5})
    file.close()
    assert ContributionFile(path, "learner").rounds == {ADA: 5, EVE: 3}


# Kills.

INCARNATION = """
import os, random, signal, sys
from pathlib import Path
from diminuendo.learners import EpochGreedy
from diminuendo.privacy.budget import Budget, Unit
from diminuendo.privacy.ledger import Ledger
from diminuendo.streams import taste_groups

path, log, lives, visits = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
users = taste_groups(50, 8, groups=2, items_per_group=4, seed=1)

def live(seed):
    rng, kept = random.Random(seed), path.with_suffix(".snapshot")
    ledger = Ledger.open(path, Budget(50.0, 0.0, Unit(visits), "pure"))
    if kept.exists():
        learner = EpochGreedy.restore(kept.read_bytes(), ledger=ledger)
    else:
        learner = EpochGreedy(8, 2, horizon=10**6, epsilon=4.0, epoch=10, max_rounds_per_user=visits, ledger=ledger)
        kept.write_bytes(learner.snapshot())
    counted = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    decisions, write = learner._frame.decisions, os.write

    def half(file, content):  # the machine stops while a line is written
        write(file, content[: rng.randrange(len(content))])
        os.kill(os.getpid(), signal.SIGKILL)

    for number in range(rng.randrange(1, 40)):
        several = [f"user {rng.randrange(60)}" for _ in range(rng.choice((1, 1, 3)))]
        shown = [learner.choose(several[0])] if len(several) == 1 else learner.choose_many(3, several)
        names = [
            user + "\\n" for user, decision in zip(several, shown)
            if decisions.waiting[decision.round % decisions.remembered]
        ]
        write(counted, "".join(names).encode())
        if rng.random() < 0.03:
            os.write = half if rng.random() < 0.5 else os.kill(os.getpid(), signal.SIGKILL)
        for decision in shown:
            learner.observe(decision, users[decision.round % 50])
        if rng.random() < 0.02:
            kept.with_suffix(".new").write_bytes(learner.snapshot())
            os.replace(kept.with_suffix(".new"), kept)
    os.kill(os.getpid(), signal.SIGKILL)

for seed in range(lives):  # a child each: it is killed, and what it has not written is lost
    child = os.fork()
    if child == 0:
        live(seed)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != -signal.SIGKILL:
        sys.exit("a life ended otherwise")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no children to kill here")
@pytest.mark.parametrize("visits", mostly_slow([1, 3], [3]))
@pytest.mark.parametrize("incarnations", mostly_slow([5, 200], [5]))
def test_nobody_counts_more_often_however_often_it_is_killed(
    path: Path, visits: int, incarnations: int
) -> None:
    """Sixty users come back again and again, over lives that go on from old snapshots: each counts `visits` times."""
    log = path.with_name("counted")
    subprocess.run(
        [sys.executable, "-c", INCARNATION, path, log, str(incarnations), str(visits)],
        check=True,
        timeout=600,
    )
    counted = Counter(log.read_text().split("\n")[:-1])
    assert max(counted.values()) == visits
    assert len(counted) > 20
    with opened(path, visits) as ledger:
        on_disk = ledger.contributions_of("epoch-greedy")
        assert on_disk is not None
        assert all(on_disk.rounds[hashed(user)] >= rounds for user, rounds in counted.items())
        assert max(on_disk.rounds.values()) <= visits
