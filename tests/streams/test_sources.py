"""The private database of a reader: what it may touch, what it leaves behind, and what its errors do not say."""

from __future__ import annotations

import codecs
import gzip
import json
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pytest

import diminuendo as dim
from diminuendo._database import private_database
from diminuendo.errors import InvalidInput
from diminuendo.streams import ReadNote

SECRET = "S3CRET"
ROWS = "user,sku\nada,tea\nbob,soap\n"


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadNote)
        yield


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def wishes(users: dim.Users) -> list[list[float]]:
    rows: list[list[float]] = users.matrices[0].toarray().tolist()
    return rows


# What the database may do.


def test_a_database_is_private(temporary: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(ROWS)
    (tmp_path / "other.csv").write_text(ROWS)
    with private_database(tmp_path / "mine.csv") as (database, file, folder):
        assert [*temporary.iterdir()] == [folder]
        assert folder.stat().st_mode & 0o777 == 0o700
        assert database.execute("SELECT count(*) FROM read_csv($1)", [file]).fetchall() == [(2,)]
        for refused in (
            f"FROM read_csv('{tmp_path}/other.csv')",
            f"COPY (SELECT 1) TO '{tmp_path}/new.csv'",
            "INSTALL httpfs",
            "LOAD httpfs",
            "SET enable_external_access = true",
            "SET autoload_known_extensions = true",
        ):
            with pytest.raises(Exception, match=r"Permission|configuration|locked|disabled"):
                database.execute(refused)
        spilled = f"{folder}/spilled"
        assert database.execute("SELECT current_setting('temp_directory')").fetchall() == [(spilled,)]
        for setting in ("autoinstall_known_extensions", "autoload_known_extensions"):
            assert database.execute(f"SELECT current_setting('{setting}')").fetchall() == [(False,)]
    assert not [*temporary.iterdir()]


def test_nothing_is_left_in_the_folder_for_temporary_files(temporary: Path, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_bytes(ROWS.replace("tea", "thé").encode("cp1252"))  # written again before it is read
    assert len(dim.read(file)) == 2
    assert not [*temporary.iterdir()]
    file.write_bytes(ROWS.encode() + b"cleo\n")
    with pytest.raises(InvalidInput, match="line 4"):
        dim.read(file)
    assert not [*temporary.iterdir()]


# What errors do not say.


def chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        yield from chain(error.__cause__)
        error = error.__context__


class Raising:
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        raise ValueError(SECRET)


class Hostile:
    def __str__(self) -> str:
        raise ValueError(SECRET)


CASES: dict[str, bytes] = {
    "number.csv": f"user,sku,value\n{SECRET},{SECRET},{SECRET}\n".encode(),
    "ragged.csv": f"user,sku,value\n{SECRET},{SECRET}\n".encode(),
    "quote.csv": f'user,sku\na,"{SECRET}\n'.encode() + b"b,y\n" * 600_000,
    "inner.csv": f'user,sku,value\na,"{SECRET}"{SECRET},1\n{SECRET},b,x\n'.encode(),
    "encoding.csv": f"user,sku,value\n{SECRET}\xe9,{SECRET},x\n".encode("latin-1"),
    "cut.csv.gz": gzip.compress(f"user,sku\n{SECRET},a\n".encode() * 20_000)[:-30],
    "bad.json": f'[{{"user": "a", "sku": {SECRET}}}]'.encode(),
    "bad.ndjson": f'{{"user": "{SECRET}", "sku": "x"}}\n{{"user": {SECRET}\n'.encode(),
    "nested.json": json.dumps([{"user": "a", "sku": [SECRET]}]).encode(),
    "bad.parquet": b"PAR1" + SECRET.encode() * 20 + b"PAR1",
    "twice.csv": f"user,sku,value\n{SECRET},{SECRET},0.5\n{SECRET},{SECRET},0.25\n".encode(),
    "time.csv": f"user,sku,at\n{SECRET},{SECRET},{SECRET}\na,b,2024-05-01\n".encode(),
}


@pytest.mark.parametrize("name", CASES)
def test_nothing_of_duckdb_and_of_cells_is_in_an_error(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(CASES[name])
    how: dict[str, Any] = {"time": "at", "round": "day"} if name == "time.csv" else {}
    with pytest.raises(InvalidInput) as refused:
        dim.read(tmp_path / name, **how)
    for error in chain(refused.value):
        assert isinstance(error, InvalidInput)
        assert SECRET not in f"{error} {error!r} {error.args}"


def test_nothing_of_a_frame_is_in_an_error() -> None:
    frames = (
        Raising(),
        pandas.DataFrame({"user": ["a"], "sku": [Hostile()]}),
        {"user": ["a"], "sku": [Hostile()]},
    )
    for frame in frames:
        with pytest.raises(InvalidInput) as refused:
            dim.from_table(frame, columns=("user", "sku"))
        for error in chain(refused.value):
            assert SECRET not in f"{error} {error!r}"
            assert isinstance(error, InvalidInput)


# What names cannot do.

NAMES = [
    "a*.csv",
    "a?.csv",
    "[ab].csv",
    "{a,b}.csv",
    "it's.csv",
    "'; DROP TABLE cells; --.csv",
    "x=1.csv",
    "-o.csv",
    "s3:bucket.csv",
    "two\nlines.csv",
    "ab*.json",
    "[ab].parquet",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_files_are_names(name: str, tmp_path: Path) -> None:
    (tmp_path / "ab.csv").write_text("user,sku\nother,file\n")
    (tmp_path / "a.csv").write_text("user,sku\nother,file\n")
    frame = pandas.DataFrame({"user": ["ada", "bob"], "sku": ["tea", "soap"]})
    if name.endswith(".parquet"):
        frame.to_parquet(tmp_path / name)
    else:
        (tmp_path / name).write_text(ROWS if name.endswith(".csv") else frame.to_json(orient="records"))
    users = dim.read(tmp_path / name)
    assert users.labels == ("soap", "tea")
    assert users.was_read is not None
    assert users.was_read.columns == {"user": "user", "item": "sku"}


HOSTILE = ['"; DROP TABLE cells; --', "'; DROP TABLE cells; --", "c0", "$1", "a]b", 'q"', "/~1.b", "select"]


@pytest.mark.parametrize("kind", ["csv", "parquet", "json", "pandas", "polars", "dictionary"])
def test_names_of_columns_and_cells_are_text(kind: str, tmp_path: Path) -> None:
    who, what, *others = HOSTILE
    columns = {who: HOSTILE, what: HOSTILE[::-1], **dict.fromkeys(others, HOSTILE)}
    frame = pandas.DataFrame(columns)
    file = tmp_path / f"rows.{kind}"
    asked: dict[str, Any] = {"columns": (who, what), "context": others[3]}
    if kind in ("csv", "parquet", "json"):
        {
            "csv": lambda: frame.to_csv(file, index=False),
            "parquet": lambda: frame.to_parquet(file),
            "json": lambda: frame.to_json(file, orient="records"),
        }[kind]()
        users = dim.read(file, **asked)
    else:
        users = dim.from_table(
            {"pandas": frame, "polars": polars.DataFrame(columns), "dictionary": columns}[kind], **asked
        )
    assert users.labels == tuple(sorted(HOSTILE))
    assert wishes(users) == np.eye(len(HOSTILE))[[users.labels.index(one) for one in HOSTILE[::-1]]].tolist()
    assert users.contexts is not None
    assert set(users.contexts.columns[0].values) == set(HOSTILE)


def test_a_mapped_file_with_a_hostile_name(tmp_path: Path) -> None:
    pandas.DataFrame({"user": ["a", "b"], "sku": ["x", "y"]}).to_parquet(tmp_path / "[it's].parquet")
    assert wishes(dim.streams.out_of_core(tmp_path / "[it's].parquet")) == [[1, 0], [0, 1]]


# What is read.


@pytest.mark.parametrize("written", ["array", "lines", "packed"])
def test_json(written: str, tmp_path: Path) -> None:
    rows = [
        {"user": "ada", "sku": "tea", "rating": 0.5, "at": "2024-05-01T10:00:00Z"},
        {"sku": "soap", "user": 7, "rating": "1"},
        {"user": "ada", "sku": None, "rating": 1},
    ]
    lines = "\n".join(json.dumps(row) for row in rows)
    file = tmp_path / {"array": "a.json", "lines": "a.ndjson", "packed": "a.jsonl.gz"}[written]
    content = json.dumps(rows, indent=1) if written == "array" else lines
    file.write_bytes(gzip.compress(content.encode()) if written == "packed" else content.encode())
    users = dim.read(file, round="user")
    assert users.labels == ("soap", "tea")
    assert wishes(users) == [[0, 0.5], [1, 0]]
    assert users.was_read is not None
    assert users.was_read.left_out == {"sku is empty": 1}


def test_rows_that_are_no_json_are_counted(tmp_path: Path) -> None:
    rows = '{"user": "a", "sku": "x"}\n{"user": "b"\n7\n{"user": "c", "sku": "x", "qty": "two"}\n'
    (tmp_path / "rows.ndjson").write_text(rows)
    with pytest.raises(InvalidInput, match=r"2 rows that cannot be used\. data rows 2, 3: not a JSON object"):
        dim.read(tmp_path / "rows.ndjson")
    users = dim.read(tmp_path / "rows.ndjson", skip_bad=True)
    assert len(users) == 2
    assert users.was_read is not None
    assert users.was_read.skipped == {"there are not a JSON object": 2}
    (tmp_path / "nested.json").write_text('[{"user": "a", "sku": ["x", "y"]}]')
    with pytest.raises(InvalidInput, match="sku must be a column of plain values"):
        dim.read(tmp_path / "nested.json")


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("3,50 €", 3.5),
        ("€ 3,50", 3.5),
        ("EUR 3,50", 3.5),
        ("3.50 CHF", 3.5),
        ("-$1.5", None),
        ("3,5 kg", None),
    ],
)
def test_numbers_with_currencies_and_decimal_commas(
    written: str, number: float | None, tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_text(f"user;sku;value\na;x;{written}\nb;x;5,0\n")
    if number is None:
        with pytest.raises(InvalidInput, match=r"line 2: value (is not a number|must be from 0 to 5)"):
            dim.read(tmp_path / "rows.csv", scale=(0, 5))
    else:
        assert wishes(dim.read(tmp_path / "rows.csv", scale=(0, 5))) == [[number / 5], [1.0]]


def test_columns_that_are_not_used_are_pointed_out(tmp_path: Path) -> None:
    more = ",".join(f"extra {number}" for number in range(12))
    (tmp_path / "rows.csv").write_text(f"user,sku,country,{more}\na,x,DE{',' * 12}\n")
    users = dim.read(tmp_path / "rows.csv", context="country")
    listed = ", ".join(f"extra {number}" for number in range(10))
    assert f"Columns that are not used: {listed} and 2 more." in str(users.was_read)


READABLE: dict[str, bytes] = {
    "line-ends": b"user,sku\r\nada,tea\nbob,soap\r\n",
    "old-mac": ROWS.replace("\n", "\r").encode(),
    "big-endian": codecs.BOM_UTF16_BE + ROWS.encode("utf-16-be"),
    "mark-and-quotes": codecs.BOM_UTF8 + ROWS.replace("user", '"user"').encode(),
    "header-of-two-lines": codecs.BOM_UTF8 + b'"us\ner","sku"\nada,tea\nbob,soap\n',
    "quoted-separator": codecs.BOM_UTF8 + b'"sep=;"\r\nuser;sku\r\nada;tea\r\nbob;soap\r\n',
    "inner-quotes": b'user,sku,name\nada,tea,"5" pipe"\nbob,soap,5"\n',
    "comma-at-the-end": b"user,sku\nada,tea,\nbob,soap,\n",
    "damaged-letters": b"user,sku,name\nada,tea,caf\xc3\nbob,soap,\n",
}


@pytest.mark.parametrize("kind", READABLE)
def test_files_as_programs_write_them(kind: str, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_bytes(READABLE[kind])
    users = dim.read(
        tmp_path / "rows.csv", columns=("us er" if kind == "header-of-two-lines" else "user", "sku")
    )
    assert users.labels == ("soap", "tea")
    assert wishes(users) == [[0, 1], [1, 0]]


def test_quotes_with_line_ends_in_a_file_of_many_blocks(tmp_path: Path) -> None:
    """DuckDB reads blocks of a file at once; where a block ends within quotes, rows stay whole."""
    note = '"' + "a line,\n" * 40 + '"'
    rows = 60_000
    (tmp_path / "rows.csv").write_text(
        "user,note,sku\n" + "".join(f"u{number},{note},s{number % 3}\n" for number in range(rows)) + "bad\n"
    )
    with pytest.raises(InvalidInput, match=f"1 row .* line {41 * rows + 2:,}: not 3 columns"):
        dim.read(tmp_path / "rows.csv", columns=("user", "sku"))
    users = dim.read(tmp_path / "rows.csv", columns=("user", "sku"), skip_bad=True)
    assert (len(users), users.labels) == (rows, ("s0", "s1", "s2"))
