"""A list of answers is cut into rows in time that grows as it does, whatever strangers put into it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from diminuendo.service.api import hot
from diminuendo.service.api.wire import MOST_BYTES
from tests.service.site import Site, block, spec

MANY = MOST_BYTES
UNENDED = {
    "a text of quotation marks": b'["' + b'\\"' * (MANY // 2),
    "texts": b'["' + b'""' * (MANY // 2),
    "a text of backslashes": b'["' + b"\\" * MANY,
    "lists": b"[" * MANY,
    "commas": b"[" + b"," * (MANY - 1),
    "rows": b"[" + b"{}," * (MANY // 3),
}


@pytest.mark.parametrize("kind", UNENDED)
def test_the_largest_list_that_does_not_end_takes_seconds_at_most(kind: str) -> None:
    began = time.process_time()
    assert hot._cut(UNENDED[kind]) == []
    assert time.process_time() - began < 10  # tenths of one; quadratic, it were hours


def one_by_one(written: bytes) -> list[bytes]:
    """The same, one byte after the other."""
    rows, depth, row, text, escaped = list[bytes](), 0, b"", False, False
    for at in range(len(written)):
        byte = written[at : at + 1]
        if text:
            text, escaped = escaped or byte != b'"', byte == b"\\" and not escaped
        elif byte == b'"':
            text, escaped = True, False
        elif byte in (b"[", b"{"):
            depth += 1
            if depth == 1:
                row = b""
                continue
        elif byte in (b"]", b"}"):
            depth -= 1
            if depth <= 0:
                return [] if depth or written[at + 1 :].strip() else [*rows, row]
        elif byte == b"," and depth <= 1:
            if depth == 0:
                return []
            rows.append(row)
            row = b""
            continue
        row += byte
    return []


@given(st.text('[]{}",\\ a', max_size=40).map(lambda text: b"[" + text.encode()))
@example(b'["\\')
@example(b'[{"a":"]\\\\"},1e999]')
def test_rows_are_cut_as_one_byte_after_the_other(written: bytes) -> None:
    assert hot._cut(written) == one_by_one(written)


def test_a_row_that_cannot_be_read_keeps_no_other_from_being_stored(tmp_path: Path) -> None:
    site = Site(tmp_path, shop=spec("click"))
    site.publish("shop", block(0, 90))

    async def work() -> None:
        token = (await site.decide("shop"))["token"]
        written = b'[{"token": "%s", "click": 0}, {"click": 1e999}, "\\ud8", [{]' % token.encode()
        assert (await site.ask("POST", "/v1/answers", written)).problem == "json"
        written = written.replace(b", [{]", b"]")
        result = await site.ask("POST", "/v1/answers", written)
        assert (result.problem, result.json["refused"]) == ("rows", ["/1/click", "/2"])
        assert len(site.kept("shop")) == 1

    site.run(work)


def test_others_are_served_while_a_large_list_is_cut(tmp_path: Path) -> None:
    site = Site(tmp_path, shop=spec("click"))
    site.publish("shop", block(0, 90))

    async def work() -> None:
        large = asyncio.create_task(site.ask("POST", "/v1/answers", UNENDED["commas"]))
        served = 0
        while not large.done():
            await site.decide("shop")
            served += 1
            await asyncio.sleep(0.01)
        assert (await large).problem == "json"
        assert served > 5

    site.run(work)
