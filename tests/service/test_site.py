"""A site's file and keys; `check` and `apply`: everything that is wrong is named at once."""

from __future__ import annotations

import hashlib
import re
import shutil
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from diminuendo.errors import InvalidInput
from diminuendo.service import keys
from diminuendo.service.apply import apply_site, check_site
from diminuendo.service.records import PlacementSpec, PopulationSpec
from diminuendo.service.site import _Top, read_site, seconds
from diminuendo.service.store import open_store

GOOD = f"""
listen = "127.0.0.1:0"
front_ends = 2
[access]
client = ["{hashlib.sha256(b"a key").hexdigest()}"]
[populations.visitors]
epsilon = 1.0
[placements.home]
population = "visitors"
items = "items.txt"
slots = 2
feedback = "click"
users = 1_000
deadline = "1 min"
pinned = {{0 = "up"}}
caps = [[["up", "alien"], 1]]
"""


def written(folder: Path, text: str) -> Path:
    (folder / "items.txt").write_text("up\nalien\n\nheat\n")
    (folder / "site.toml").write_text(text)
    return folder / "site.toml"


def test_a_site_is_read(tmp_path: Path) -> None:
    site = read_site(written(tmp_path, GOOD))
    home = site.placements["home"]
    assert (site.host, site.port, site.front_ends) == ("127.0.0.1", 0, 2)
    assert site.store == str(tmp_path / "site.db")
    assert site.keys == tmp_path / "keys"
    assert site.access == {"client": (hashlib.sha256(b"a key").digest(),)}
    assert home.items == ("up", "alien", "heat")
    assert (home.deadline, home.pinned, home.caps) == (60.0, {0: "up"}, ((("up", "alien"), 1),))
    assert site.populations["visitors"].epsilon == 1.0
    unknown = read_site(written(tmp_path, GOOD.replace("users = 1_000", "")))
    assert unknown.placements["home"].users is None, "nobody knows how many come"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('listen = "127.0.0.1:0"', 'listen = "here"', "listen: expected an address and a port"),
        ("front_ends = 2", "front_ends = 0\ntrainers = 0", "front_ends, trainers: 0 or more"),
        ("front_ends = 2", "trainers = -1", "front_ends, trainers: 0 or more"),
        ("front_ends = 2", 'machine = "a b"', "machine: up to 60"),
        ("front_ends = 2", 'trainer_keys = "drawer"', "trainer_keys"),
        ("front_ends = 2", "front_end = 2", "front_end"),
        ("[access]\nclient", "[access]\nreign", "access: roles are client, admin, auditor; got 'reign'"),
        ('client = ["', 'client = ["ff', "access.client: expected the SHA-256 of a key"),
        ("epsilon = 1.0", "epsilon = 0.0", "populations.visitors: epsilon: more than 0"),
        ("epsilon = 1.0", 'epsilon = "one"', "populations.visitors: epsilon: Expected `float`, got `str`"),
        ("[placements.home]", '[placements."HO ME"]', "names are up to 40 small letters"),
        ('population = "visitors"', 'population = "all"', "there is no population 'all'; there are: visitors"),
        ('items = "items.txt"', 'items = "none.txt"', "cannot read"),
        ('items = "items.txt"', 'items = ["up", "alien", "up"]', "items: a name is there twice"),
        ("slots = 2", "slots = 4", "slots: from 1 to the number of items, 3; got 4"),
        ("users = 1_000", "users = 0", "users: at least 1"),
        ('deadline = "1 min"', 'deadline = "soon"', "deadline: Expected `float`, got `str`"),
        ('deadline = "1 min"', "deadline = 0", "deadline: more than 0"),
        ('deadline = "1 min"', "response_rate = 1.5", "response_rate: a share above 0"),
        ('{0 = "up"}', '{2 = "up"}', "pinned: slot 2 shows 'up'"),
        ('["up", "alien"], 1', '["up", "down"], 1', "caps: each is a list of items"),
        ("slots = 2", "slots = ", "is not TOML"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(tmp_path: Path, before: str, after: str, said: str) -> None:
    assert before in GOOD
    with pytest.raises(InvalidInput) as error:
        read_site(written(tmp_path, GOOD.replace(before, after)))
    assert said in str(error.value)


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    text = GOOD.replace("slots = 2", "slots = 9").replace("epsilon = 1.0", "epsilon = -1.0")
    with pytest.raises(InvalidInput) as error:
        read_site(written(tmp_path, text))
    assert all(word in str(error.value) for word in ("slots", "epsilon"))


def test_names_of_items_are_what_stands_in_the_file(tmp_path: Path) -> None:
    site = written(tmp_path, GOOD)
    (tmp_path / "items.txt").write_bytes("\ufeffup\r\nalien\r\n\t\r\nline\u2028heat".encode())
    assert read_site(site).placements["home"].items == ("up", "alien", "line\u2028heat")


def test_a_name_with_a_blank_around_it_is_refused_in_a_file_and_kept_in_a_list(tmp_path: Path) -> None:
    site = written(tmp_path, GOOD)
    (tmp_path / "items.txt").write_text("up\nalien \n\n\theat\n")
    with pytest.raises(InvalidInput, match=r"items\.txt begin or end with a blank, in line 2, 4\. Remove"):
        read_site(site)
    site = written(tmp_path, GOOD.replace('"items.txt"', '["up", "alien", "heat "]'))
    assert read_site(site).placements["home"].items == ("up", "alien", "heat ")


def test_durations() -> None:
    told = [30, 1.5, "30 s", "2min", "1.5 h", "1 d", "30", "s", None, True]
    assert [seconds(each) for each in told] == [30.0, 1.5, 30.0, 120.0, 5400.0, 86400.0, *[None] * 4]


def test_keys_are_made_once_and_for_the_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    keys.make_keys(folder)
    first = keys.read_keys(folder)
    keys.make_keys(folder)
    assert keys.read_keys(folder) == first
    assert folder.stat().st_mode & 0o077 == 0
    assert all(part.stat().st_mode & 0o077 == 0 for part in folder.iterdir())


def test_a_new_key_leaves_the_last_one_and_names_as_they_are(tmp_path: Path) -> None:
    keys.make_keys(tmp_path)
    first = keys.read_keys(tmp_path)
    assert keys.rotate(tmp_path) == 2
    second = keys.read_keys(tmp_path)
    assert second.signing == 2
    assert second.tokens[1] == first.tokens[1] != second.tokens[2]
    assert second.names == first.names
    assert keys.rotate(tmp_path) == 3
    assert set(keys.read_keys(tmp_path).tokens) == {2, 3}


@pytest.mark.parametrize("content", ["", "{}", '{"sign_with": 2, "keys": {"1": "00"}}', "[1]", '{"keys": 3}'])
def test_broken_keys_are_refused_without_being_repeated(tmp_path: Path, content: str) -> None:
    keys.make_keys(tmp_path)
    (tmp_path / keys.TOKENS).write_text(content)
    with pytest.raises(InvalidInput, match="Restore the folder"):
        keys.read_keys(tmp_path)


def test_check_writes_nothing_and_names_everything_that_is_wrong(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    new = list(check_site(read_site(path)))
    assert [line.split(":")[0] for line in new] == ["New population visitors", "New placement home"]
    assert {each.name for each in tmp_path.iterdir()} == {"items.txt", "site.toml"}
    assert list(apply_site(read_site(path))) == new
    with open_store(str(tmp_path / "site.db")) as store:
        before = store.populations(), store.placements()
    more = """[placements.large]
population = "visitors"
items = 9
slots = 2
feedback = "click"
epsilon = 2.0
"""
    path = written(tmp_path, GOOD.replace("epsilon = 1.0", "epsilon = 1.5").replace("1 min", "2 min") + more)
    with pytest.raises(InvalidInput) as error:
        list(check_site(read_site(path)))
    assert [
        word in str(error.value)
        for word in ("visitors was made", "home was made", "placements.large cannot be made")
    ] == [True] * 3
    with pytest.raises(InvalidInput, match="visitors was made with another epsilon"):
        list(apply_site(read_site(path)))
    with open_store(str(tmp_path / "site.db")) as store:
        assert before == (store.populations(), store.placements())


def test_keys_that_are_lost_are_not_made_again(tmp_path: Path) -> None:
    """With another key every user would be new, with a quota of its own."""
    site = read_site(written(tmp_path, GOOD))
    assert len(list(apply_site(site))) == 2
    assert list(apply_site(site)) == []
    shutil.rmtree(site.keys)
    with pytest.raises(InvalidInput, match="Restore the folder"):
        list(apply_site(site))
    assert not site.keys.exists()


def test_a_master_key_is_made_once_and_never_where_another_is_needed(tmp_path: Path) -> None:
    site = read_site(written(tmp_path, f'trainer_keys = "store"\n{GOOD}'))
    assert (site.trainer_keys, site.trainers, site.machine) == ("store", 1, socket.gethostname())
    master = site.keys / keys.TRAINER / "master.key"
    list(apply_site(site))
    first = master.read_bytes()
    list(apply_site(site))
    assert master.read_bytes() == first
    with open_store(site.store) as store:
        (row,) = store.placements()
        store.add_key(store.acquire_leadership(row.population, "trainer"), row.number, 1, b"encrypted")
    master.unlink()
    with pytest.raises(InvalidInput, match="copy it from the machine of another trainer"):
        list(apply_site(site))
    assert not master.exists()
    list(apply_site(replace(site, trainers=0)))  # a machine that only serves has none
    assert not master.exists()


def test_the_page_tells_every_option_and_its_default() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "serve.md").read_text()
    tables = page[page.index("## site.toml") :].split("\n\n| option")[1:4]
    for table, kind in zip(tables, (_Top, PopulationSpec, PlacementSpec), strict=True):
        told = [
            name
            for cells in re.findall(r"^\| (`.*?) \|", table, re.M)
            for name in re.findall(r"`(\w+)`", cells)
        ]
        assert told == sorted(told, key=kind.__struct_fields__.index), "in the order of the code"
        assert set(told) == set(kind.__struct_fields__)
