"""Keys of the trainer: what is encrypted to them is read with them alone, and gone when they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from diminuendo.errors import InvalidInput, Superseded
from diminuendo.service.seal import Sealer
from diminuendo.service.store.sqlite import SqliteStore
from diminuendo.service.trainer.keys import FRONT, Key, Keys
from diminuendo.service.trainer.private_keys import FolderKeys, StoreKeys, make_master, read_masters
from tests.service.store_contract import begun


def sealer(key: Key) -> Sealer:
    number, public = str(key).split(":")
    return Sealer(bytes.fromhex(public), int(number))


def test_what_is_sealed_is_read_by_the_next_process_too(tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys")
    key = keys.new(7)
    front = sealer(key)
    encrypted = [front.seal(b"a"), front.seal(b"a")]
    assert encrypted[0] != encrypted[1]
    for each in (keys, Keys(tmp_path / "keys")):
        assert [each.open(7, said) for said in encrypted] == [b"a", b"a"]
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "keys").iterdir()] == [0o600]


def test_nothing_else_is_read_and_nothing_is_raised(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    key, other = keys.new(1), keys.new(2)
    encrypted = sealer(key).seal(b"what she said")
    for hostile in (
        b"", encrypted[:10], encrypted[:FRONT], encrypted[:-1], encrypted + b"x", bytes(len(encrypted)),
        sealer(other).seal(b"x"),
        encrypted[:FRONT] + bytes([encrypted[FRONT] ^ 1]) + encrypted[FRONT + 1 :],
    ):  # fmt: skip
        assert keys.open(1, hostile) is None
    assert keys.open(2, encrypted) is None
    assert keys.open(1, encrypted) == b"what she said"


def test_a_key_that_was_thrown_away_opens_nothing(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    key = keys.new(1)
    said, snapshot = sealer(key).seal(b"a"), keys.encrypt_snapshot(1, key, b"all")
    assert keys.open(1, said) == b"a"
    assert keys.open_snapshot(1, snapshot) == b"all"
    assert keys.of(1) == {key.number}
    keys.drop(1, key.number)
    keys.drop(1, key.number)
    assert keys.of(1) == set()
    assert keys.open(1, said) is None
    with pytest.raises(InvalidInput, match="Bring that folder back"):
        keys.open_snapshot(1, snapshot)


# Keys whose private keys are in the store.


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with SqliteStore(tmp_path / "store.db") as result:
        begun(result)
        yield result


def kept_in(store: SqliteStore, folder: Path) -> tuple[Keys, StoreKeys]:
    private_keys = StoreKeys(store, store.leaders()["users"].fencing_token, read_masters(folder))
    return Keys(folder, private_keys), private_keys


def test_private_keys_in_the_store_are_opened_on_any_machine_that_has_the_master_key(
    store: SqliteStore, tmp_path: Path
) -> None:
    here, there, stranger = (tmp_path / name for name in ("here", "there", "stranger"))
    make_master(here)
    make_master(stranger)
    keys, _ = kept_in(store, here)
    key = keys.new(1)
    said, snapshot = sealer(key).seal(b"a"), keys.encrypt_snapshot(1, key, b"all")
    assert [path.name for path in here.iterdir()] == ["master.key"]
    assert (here / "master.key").stat().st_mode & 0o077 == 0
    there.mkdir()
    (there / "master.key").write_bytes((here / "master.key").read_bytes())
    other, _ = kept_in(store, there)
    assert (other.open(1, said), other.open_snapshot(1, snapshot)) == (b"a", b"all")
    unknown, private_keys = kept_in(store, stranger)
    assert unknown.open(1, said) is None
    with pytest.raises(InvalidInput, match="master key that was there"):
        unknown.open_snapshot(1, snapshot)
    with pytest.raises(InvalidInput, match=r"copy master\.key from the machine of another"):
        private_keys.take_over(1, FolderKeys(stranger))
    with pytest.raises(InvalidInput, match=r"no master\.key in"):
        read_masters(tmp_path / "nowhere")
    other.drop(1, key.number)
    assert keys.of(1) == set()
    assert kept_in(store, here)[0].open(1, said) is None


def test_a_sealed_half_opens_nothing_in_another_row(store: SqliteStore, tmp_path: Path) -> None:
    make_master(tmp_path)
    keys, private_keys = kept_in(store, tmp_path)
    one, two = keys.new(1).number, keys.new(1).number
    before = private_keys.get(1, two)
    store.add_key(store.leaders()["users"].fencing_token, 1, two, store.keys_of(1)[one])
    with pytest.raises(Exception, match="ecrypt"):
        private_keys.get(1, two)
    assert private_keys.get(1, one) != before
    assert all(before not in path.read_bytes() for path in tmp_path.glob("store.db*")), (
        "nor is it there in the open"
    )


def test_who_leads_next_seals_with_the_newest_master_key_and_takes_the_folder_along(
    store: SqliteStore, tmp_path: Path
) -> None:
    folder, machine = FolderKeys(tmp_path / "keys"), tmp_path / "keys"
    make_master(machine)
    in_folder = Keys(machine).new(1)
    keys, _ = kept_in(store, machine)
    in_store = keys.new(1)
    said = [sealer(each).seal(b"%d" % each.number) for each in (in_folder, in_store)]
    (machine / "master-2.key").write_text("07" * 32 + "\n")
    keys, private_keys = kept_in(store, machine)
    private_keys.take_over(1, folder)
    (machine / "master.key").unlink()
    keys, _ = kept_in(store, machine)
    assert [keys.open(1, each) for each in said] == [b"%d" % key.number for key in (in_folder, in_store)]
    assert folder.numbers(1) == set()
    private_keys.take_over(1, folder)
    assert keys.of(1) == {in_folder.number, in_store.number}
    store.acquire_leadership("users", "another")
    with pytest.raises(Superseded):
        keys.new(1)
    with pytest.raises(Superseded):
        keys.drop(1, in_store.number)
    (machine / "master-3.key").write_text("no key")
    with pytest.raises(InvalidInput, match=r"master-3\.key is no master key"):
        read_masters(machine)
