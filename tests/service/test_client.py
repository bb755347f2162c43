"""The client: groups feedback, retries, pads bodies, and reports what was refused or lost."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from diminuendo import client
from diminuendo.client import PADDED, TOGETHER, Client
from diminuendo.errors import InvalidInput, ServiceRefused, ServiceUnreachable


class Service(ThreadingHTTPServer):
    """Replies by a script of statuses (0: success, -1: the reply is lost), and records requests."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Replies)
        self.script: list[int] = []
        self.requests: list[tuple[str, dict[str, str], Any, int]] = []
        self.lock = threading.Lock()
        self.refused: list[str] = []
        """The rows of a 422."""
        self.together: threading.Barrier | None = None
        """If there is one, requests are replied to together, and then their connections are closed."""
        self.connections = 0
        self.ended = threading.Semaphore(0)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/shop"


class _Replies(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Service

    def setup(self) -> None:
        super().setup()
        with self.server.lock:
            self.server.connections += 1

    def finish(self) -> None:
        super().finish()
        self.connection.close()
        self.server.ended.release()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            status = self.server.script.pop(0) if self.server.script else 0
            self.server.requests.append((self.path, dict(self.headers), json.loads(body), len(body)))
        if status == -1:  # the reply is lost on its way
            self.close_connection = True
            return
        reply: Any = {}
        if status == 0:
            status = 201 if "decisions" in self.path else 202
            one = {
                "slate": ["up", None],
                "token": "t",
                "expires_at": "1970-01-01T00:00:09Z",
                "propensity": 0.5,
            }
            many = json.loads(body).get("count") if isinstance(json.loads(body), dict) else None
            reply = {"decisions": [one] * many} if many else one
        elif status >= 400:
            reply = {"type": "urn:diminuendo:token", "title": "This is no token.", "status": status}
            if status == 422:
                reply |= {"title": "Some rows were refused.", "refused": self.server.refused}
        content = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.server.together is not None:
            self.close_connection = True
            self.server.together.wait(10)
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Silent."""


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as result:
        thread = threading.Thread(target=result.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield result
        result.shutdown()
        thread.join()


def test_a_decision_request(service: Service) -> None:
    with Client(service.address, "secret") as shop:
        shown = shop.decide("home page", context={"country": "DE"}, exclude=["up"])
    assert (shown.slate, shown.token, shown.propensity, shown.expires_at) == (("up", None), "t", 0.5, 9.0)
    ((path, headers, body, size),) = service.requests
    assert path == "/shop/v1/placements/home%20page/decisions"
    assert headers["Authorization"] == "Bearer secret"
    assert body == {"context": {"country": "DE"}, "exclude": ["up"]}
    assert size % PADDED == 0
    assert "Idempotency-Key" not in headers


def test_retries_for_a_user_have_the_same_idempotency_key(service: Service) -> None:
    service.script = [503, -1]
    with Client(service.address) as shop:
        shop.decide("home", user_id=7)
    keys = {headers["Idempotency-Key"] for _, headers, _, _ in service.requests}
    assert len(service.requests) == 3
    assert len(keys) == 1
    assert service.requests[0][2] == {"user_id": "7"}, "as text"


def test_feedback_is_sent_in_groups_and_retried_until_acknowledged(service: Service) -> None:
    service.script = [503, -1]
    with Client(service.address) as shop:
        for number in range(TOGETHER + 50):
            shop.send_feedback(f"t{number}", click=number % 3 or None)
        shop.flush()
        acknowledged = [said for _, _, group, _ in service.requests[2:] for said in group]
        assert [said["token"] for said in acknowledged] == [f"t{number}" for number in range(TOGETHER + 50)]
    assert len(service.requests) == 4, "two groups, of which the first was tried three times"
    assert acknowledged[0] == {"token": "t0", "click": None}
    assert acknowledged[1] == {"token": "t1", "click": 1}


def test_refused_requests_are_not_retried(service: Service) -> None:
    service.script = [400]
    with Client(service.address) as shop, pytest.raises(ServiceRefused, match=r"400: This is no token\."):
        shop.erase("x")
    assert len(service.requests) == 1


def test_flush_reports_refused_feedback(service: Service) -> None:
    service.script = [400]
    shop = Client(service.address)
    shop.send_feedback("x")
    with pytest.raises(ServiceRefused, match=r"1 rows of feedback were refused.*400: This is no token"):
        shop.flush()
    shop.close()
    with pytest.raises(InvalidInput, match="closed"):
        shop.send_feedback("y")


def test_refused_rows_of_a_group_are_logged_at_once_and_no_others(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    service.script, service.refused = [422], ["/1/click", "/3/token", "/3"]
    shop = Client(service.address)
    for number in range(5):
        shop.send_feedback(f"t{number}")
    wait_for(lambda: shop.refused == 2)
    wait_for(lambda: caplog.records)
    assert [each.getMessage() for each in caplog.records if each.name == "diminuendo.client"] == [
        "2 of 5 rows of feedback were refused: The service refused with 422: Some rows were refused. (click, token)"
    ]
    assert shop.lost == 0
    with pytest.raises(ServiceRefused, match=r"^2 rows of feedback were refused"):
        shop.close()
    assert len(service.requests) == 1, "what is stored is not sent again"


def wait_for(what: Any) -> None:
    until = time.monotonic() + 10
    while not what():
        assert time.monotonic() < until, "timed out"
        time.sleep(0.01)


def test_stale_connections_cost_no_wait(service: Service) -> None:
    many = 12
    service.together = threading.Barrier(many)
    with Client(service.address, decision_timeout=30) as shop, ThreadPoolExecutor(many) as pool:
        list(pool.map(lambda number: shop.decide("home"), range(many)))
        for _ in range(many):
            service.ended.acquire()
        service.together, before, began = None, len(service.requests), time.monotonic()
        shop.decide("home")
        assert time.monotonic() - began < 1.0, "it was tried again at once"
        assert len(service.requests) == before + 1
    assert service.connections == many + 1


def test_the_last_connection_is_reused_unless_it_was_idle(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Client(service.address) as shop:
        for _ in range(5):
            shop.decide("home")
        assert service.connections == 1
        monkeypatch.setattr(client, "IDLE", 0.01)
        time.sleep(0.05)
        shop.decide("home")
        assert service.connections == 2
        assert service.ended.acquire(timeout=10), "the one that was idle is closed"


def test_decisions_fail_fast_when_the_service_is_away(service: Service) -> None:
    service.script = [503] * 1000
    with Client(service.address, decision_timeout=0.3) as shop:
        began = time.monotonic()
        with pytest.raises(ServiceUnreachable):
            shop.decide("home")
        assert time.monotonic() - began < 0.3
    assert Client("http://127.0.0.1:9")._decision_timeout <= 1.0
    with Client(service.address, decision_timeout=0.3) as shop:
        service.script = [503] * 5
        assert len(shop.decide_many("home", 3)) == 3, "nobody waits for these"


def test_kinds_of_feedback(service: Service) -> None:
    """Also with numbers of other libraries."""
    rows: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"reward": 0.0}, {"reward": 0.0}),
        ({"reward": np.float32(0.5)}, {"reward": 0.5}),
        ({"reward": np.True_}, {"reward": 1.0}),
        ({"click": np.int64(2)}, {"click": 2}),
        ({"ratings": ["up"]}, {"ratings": ["up"]}),
        ({"ratings": np.array(["up"])}, {"ratings": ["up"]}),
        ({"ratings": {"up": np.float32(0.5)}}, {"ratings": {"up": 0.5}}),
    ]
    with Client(service.address) as shop:
        for given, _ in rows:
            shop.send_feedback("t", **given)
        shop.flush()
    sent = [row for _, _, group, _ in service.requests for row in group]
    assert sent == [{"token": "t"} | row for _, row in rows]


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"click": "2"}, "click"),
        ({"click": 1.5}, "click"),
        ({"click": True}, "click"),
        ({"reward": float("nan")}, "reward"),
        ({"reward": "1"}, "reward"),
        ({"reward": object()}, "reward"),
        ({"ratings": "up"}, "ratings"),
        ({"ratings": [3]}, "ratings"),
        ({"ratings": {"up": object()}}, "ratings"),
        ({"ratings": {3: 0.5}}, "ratings"),
        ({"ratings": 5}, "ratings"),
    ],
)
def test_malformed_feedback_is_refused_at_once_and_the_rest_is_sent(
    service: Service, said: dict[str, Any], field: str
) -> None:
    with Client(service.address) as shop:
        with pytest.raises(InvalidInput, match=f"^{field}: expected .* got a value of type [a-z]+[.]$"):
            shop.send_feedback("a", **said)
        with pytest.raises(InvalidInput, match=r"^token: expected"):
            shop.send_feedback(7)  # type: ignore[arg-type]
        shop.send_feedback("b", click=1)
        shop.flush(5.0)
    assert [group for _, _, group, _ in service.requests] == [[{"token": "b", "click": 1}]]


def test_the_sender_survives_any_error(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Client(service.address) as shop:
        tried = shop._tried

        def fails(*given: Any, **more: Any) -> Any:
            monkeypatch.setattr(shop, "_tried", tried)
            raise RuntimeError("private text")

        monkeypatch.setattr(shop, "_tried", fails)
        shop.send_feedback("a")
        with pytest.raises(ServiceUnreachable, match=r"1 rows of feedback could not be sent.*RuntimeError"):
            shop.flush(5.0)
        assert (shop.lost, shop.refused) == (1, 0)
        assert "private text" not in caplog.text
        shop.send_feedback("b")
        shop.flush(5.0)
    assert [group[0]["token"] for _, _, group, _ in service.requests] == ["b"]


def test_flush_ends_when_the_service_is_away_and_reports_losses(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MOST_WAITING", 150)
    shop = Client("http://127.0.0.1:9", pause=0.0)
    with caplog.at_level(logging.ERROR, "diminuendo.client"):
        shop.send_feedback("first")
        wait_for(lambda: shop._sending)
        for number in range(160):
            shop.send_feedback(f"t{number}")
        assert shop.lost == 10
        assert "150 rows of feedback wait to be sent" in caplog.text
        began = time.monotonic()
        with pytest.raises(
            ServiceUnreachable,
            match=r"^151 rows of feedback still wait to be sent; 10 rows of feedback could not",
        ):
            shop.flush(0.1)
        with pytest.raises(ServiceUnreachable, match=r"^151 rows of feedback still wait to be sent\.$"):
            shop.close(0.1)
        wait_for(lambda: shop.lost == 161)
        assert time.monotonic() - began < 5, "neither waits as long as answers are tried again"
        assert "closed while 150 rows of feedback waited" in caplog.text


@pytest.mark.parametrize("address", ["127.0.0.1:80", "ftp://there", "http://"])
def test_malformed_addresses(address: str) -> None:
    with pytest.raises(InvalidInput, match="address"):
        Client(address)
