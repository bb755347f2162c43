"""Keys of the trainer: what is sealed to them is read with them alone, and gone when they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from diminuendo.errors import InvalidInput
from diminuendo.service.seal import Sealer
from diminuendo.service.trainer.keys import FRONT, Key, Keys


def sealer(key: Key) -> Sealer:
    number, public = str(key).split(":")
    return Sealer(bytes.fromhex(public), int(number))


def test_what_is_sealed_is_read_by_the_next_process_too(tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys")
    key = keys.new(7)
    front = sealer(key)
    sealed = [front.seal(b"a"), front.seal(b"a")]
    assert sealed[0] != sealed[1]
    for each in (keys, Keys(tmp_path / "keys")):
        assert [each.open(7, said) for said in sealed] == [b"a", b"a"]
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "keys").iterdir()] == [0o600]


def test_nothing_else_is_read_and_nothing_is_raised(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    key, other = keys.new(1), keys.new(2)
    sealed = sealer(key).seal(b"what she said")
    for hostile in (
        b"", sealed[:10], sealed[:FRONT], sealed[:-1], sealed + b"x", bytes(len(sealed)), sealer(other).seal(b"x"),
        sealed[:FRONT] + bytes([sealed[FRONT] ^ 1]) + sealed[FRONT + 1 :],
    ):  # fmt: skip
        assert keys.open(1, hostile) is None
    assert keys.open(2, sealed) is None
    assert keys.open(1, sealed) == b"what she said"


def test_a_key_that_was_thrown_away_opens_nothing(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    key = keys.new(1)
    said, snapshot = sealer(key).seal(b"a"), keys.seal_snapshot(1, key, b"all")
    assert keys.open(1, said) == b"a"
    assert keys.open_snapshot(1, snapshot) == b"all"
    assert keys.of(1) == {key.number}
    keys.drop(1, key.number)
    keys.drop(1, key.number)
    assert keys.of(1) == set()
    assert keys.open(1, said) is None
    with pytest.raises(InvalidInput, match="Bring that folder back"):
        keys.open_snapshot(1, snapshot)
