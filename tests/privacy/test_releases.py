"""A release is drawn once, whoever asks and however often the process dies."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from diminuendo.errors import InvalidInput, LedgerDamaged
from diminuendo.privacy.books import durable
from diminuendo.privacy.books.releases import Releases
from diminuendo.types import Ints


def counting() -> tuple[list[int], Callable[[], Ints]]:
    calls: list[int] = []

    def draw() -> Ints:
        calls.append(1)
        return np.arange(3) + 987_654_300 * len(calls)

    return calls, draw


@pytest.mark.parametrize("kept", [True, False], ids=["folder", "memory"])
def test_the_first_to_ask_draws(tmp_path: Path, kept: bool) -> None:
    calls, draw = counting()
    releases = Releases(tmp_path / "releases" if kept else None)
    first = releases.once("sum-0001", draw)
    np.testing.assert_array_equal(releases.once("sum-0001", draw), first)
    assert len(calls) == 1
    first[:] = 0  # what is handed out is a copy
    np.testing.assert_array_equal(releases.once("sum-0001", draw), [987_654_300, 987_654_301, 987_654_302])
    releases.once("sum-0002", draw)
    assert len(calls) == 2
    assert "987654" not in repr(releases)


def test_another_process_gets_the_same(tmp_path: Path) -> None:
    calls, draw = counting()
    first = Releases(tmp_path).once("a", draw)
    np.testing.assert_array_equal(Releases(tmp_path).once("a", draw), first)
    assert len(calls) == 1


def test_if_somebody_was_faster_theirs_counts(tmp_path: Path) -> None:
    slow, fast = Releases(tmp_path), Releases(tmp_path)

    def interrupted() -> Ints:
        fast.once("a", lambda: np.array([1]))
        return np.array([2])

    assert slow.once("a", interrupted).tolist() == [1]
    assert fast.once("a", lambda: np.array([3])).tolist() == [1]
    assert [result.name for result in tmp_path.iterdir()] == ["a.npy"]


def test_a_draw_that_fails_publishes_nothing(tmp_path: Path) -> None:
    releases = Releases(tmp_path)
    with pytest.raises(RuntimeError):
        releases.once("a", lambda: (_ for _ in ()).throw(RuntimeError("no entropy")))
    assert releases.once("a", lambda: np.array([5])).tolist() == [5]


WRITER = """
import os, sys
from pathlib import Path
from diminuendo.privacy.books import durable
os.link = lambda *_: os._exit(9)  # it dies before what it wrote has its name
durable.write_once(Path(sys.argv[1]) / "a.npy", b"secret")
"""


def test_what_another_process_left_unfinished_is_removed_whatever_its_number(tmp_path: Path) -> None:
    """Process numbers repeat: in containers every process may be number 1. Whoever holds the ledger owns the folder."""
    assert subprocess.run([sys.executable, "-c", WRITER, str(tmp_path)], check=False).returncode == 9
    (died,) = tmp_path.iterdir()
    assert died.read_bytes() == b"secret"
    for number in (1, os.getpid()):
        (tmp_path / f"{durable.UNFINISHED}{number}-abc").write_bytes(b"secret")
    Releases(tmp_path)
    assert not list(tmp_path.iterdir())


def test_damage_is_noticed(tmp_path: Path) -> None:
    Releases(tmp_path).once("a", lambda: np.arange(100))
    content = (tmp_path / "a.npy").read_bytes()
    for bad in (b"", content[:50], content[:-8], b"x" + content[1:]):
        (tmp_path / "a.npy").write_bytes(bad)
        with pytest.raises(LedgerDamaged):
            Releases(tmp_path).once("a", lambda: np.arange(100))


@pytest.mark.parametrize("name", ["", "../a", "a/b", ".hidden", "a b", "x" * 300])
def test_names_stay_in_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="Names are"):
        Releases(tmp_path).once(name, lambda: np.arange(3))


def test_a_ledger_in_memory_keeps_all_releases_apart() -> None:
    releases, random = Releases(), np.random.default_rng(1)
    kept = {f"{j}": random.integers(-(2**62), 2**62, size=(j, 3)) for j in range(9)}
    for count, (name, values) in enumerate(kept.items()):
        given = values.copy()
        assert not releases.has(name)
        releases.once(name, lambda given=given: given)  # type: ignore[misc]
        given[:] = 0  # what was drawn belongs to whoever drew it
        for before in list(kept)[: count + 1]:
            result = releases.once(before, lambda: np.zeros(1, dtype=np.int64))
            np.testing.assert_array_equal(result, kept[before])
            assert result.dtype == np.int64
