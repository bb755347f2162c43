"""Headers that do not end are not kept; bodies and many requests on one connection are read as before."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from diminuendo.service.api.bounded import MOST_HEAD
from diminuendo.service.api.wire import MOST_BYTES
from tests.service.site import KEYS, Site, block, served, spec

BEGINS = b"POST /v1/answers HTTP/1.1\r\nHost: here\r\n"
UNENDED = {
    "a header": BEGINS + b"X-A: ",
    "a name": BEGINS + b"X-",
    "a path": b"POST /",
    "what follows a body": BEGINS + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX-A: ",
    "the size of a part": BEGINS + b"Transfer-Encoding: chunked\r\n\r\n1;a=",
}


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    site = Site(tmp_path, shop=spec("click"))
    site.publish("shop", block(0, 9000))
    with served(site.app) as port:
        yield port
    site.store.close()


@pytest.mark.parametrize("kind", UNENDED)
def test_what_does_not_end_is_refused(kind: str, port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        sent = 0
        try:
            connection.sendall(UNENDED[kind])
            while sent < 100 * MOST_HEAD:
                connection.sendall(b"a" * 4096)
                sent += 4096
        except OSError:
            pass
        assert sent < 100 * MOST_HEAD, "it was closed"


def test_a_connection_is_read_on(port: int) -> None:
    """Many requests, large bodies and many headers, of which each comes in several packets."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    head = {"Authorization": f"Bearer {KEYS['serve']}", "Content-Type": "application/json"}
    head |= {f"X-{number}": "a" * 4000 for number in range(10)}
    for size in (2, MOST_BYTES, 2, MOST_BYTES + 1, 2):
        body = b"[" + b" " * (size - 2) + b"]"
        connection.request("POST", "/v1/answers", body, head)
        result = connection.getresponse()
        said = result.read()
        assert result.status == (202 if size <= MOST_BYTES else 413), said
        if result.status == 413:
            assert json.loads(said)["type"] == "urn:diminuendo:size"
            connection.close()
    connection.request(
        "POST", "/v1/answers", iter([b"[", b" " * MOST_HEAD * 2, b"]"]), head, encode_chunked=True
    )
    assert connection.getresponse().status == 202
    connection.close()
