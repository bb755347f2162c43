"""The client: groups answers, tries again what failed, pads what it sends, and says what was refused."""

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
    """Answers by a list of what to reply next; what it was sent is kept."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Replies)
        self.script: list[int] = []
        self.response_count: list[tuple[str, dict[str, str], Any, int]] = []
        self.lock = threading.Lock()
        self.refused: list[str] = []
        """Rows that a 422 is about."""
        self.together: threading.Barrier | None = None
        """Where there is one, requests are replied to together, and then connections are closed without a word."""
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
            self.server.response_count.append((self.path, dict(self.headers), json.loads(body), len(body)))
        if status == -1:  # the reply is lost on its way
            self.close_connection = True
            return
        reply: Any = {}
        if status == 0:
            status = 201 if "decisions" in self.path else 202
            one = {
                "slate": ["up", None],
                "token": "t",
                "answer_before": "1970-01-01T00:00:09Z",
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
        """Nothing is said."""


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as result:
        thread = threading.Thread(target=result.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield result
        result.shutdown()
        thread.join()


def test_a_decision_is_asked_for_with_a_key(service: Service) -> None:
    with Client(service.address, "secret") as shop:
        shown = shop.decide("home page", context={"country": "DE"}, exclude=["up"])
    assert (shown.slate, shown.token, shown.propensity, shown.answer_before) == (("up", None), "t", 0.5, 9.0)
    ((path, headers, body, size),) = service.response_count
    assert path == "/shop/v1/placements/home%20page/decisions"
    assert headers["Authorization"] == "Bearer secret"
    assert body == {"context": {"country": "DE"}, "exclude": ["up"]}
    assert size % PADDED == 0
    assert "Idempotency-Key" not in headers


def test_many_decisions_at_once(service: Service) -> None:
    with Client(service.address) as shop:
        assert len(shop.decide_many("home", 7)) == 7


def test_who_has_a_name_is_asked_for_again_under_the_same_key(service: Service) -> None:
    service.script = [503, -1]
    with Client(service.address) as shop:
        shop.decide("home", user_id="ada")
    keys = {headers["Idempotency-Key"] for _, headers, _, _ in service.response_count}
    assert len(service.response_count) == 3
    assert len(keys) == 1


def test_answers_are_sent_in_groups_and_again_until_they_are_acknowledged(service: Service) -> None:
    service.script = [503, -1]
    with Client(service.address) as shop:
        for number in range(TOGETHER + 50):
            shop.answer(f"t{number}", click=number % 3 or None)
        shop.flush()
        acknowledged = [said for _, _, group, _ in service.response_count[2:] for said in group]
        assert [said["token"] for said in acknowledged] == [f"t{number}" for number in range(TOGETHER + 50)]
    assert len(service.response_count) == 4, "two groups, of which the first was tried three times"
    assert acknowledged[0] == {"token": "t0", "click": None}
    assert acknowledged[1] == {"token": "t1", "click": 1}


def test_kinds_of_answers(service: Service) -> None:
    with Client(service.address) as shop:
        shop.answer("a", reward=0.0)
        shop.answer("b", wants=["up"])
        shop.answer("c", wants={"up": 0.5})
        shop.flush()
    said = [each for _, _, group, _ in service.response_count for each in group]
    assert [dict(each, token="") for each in said] == [
        {"token": "", "reward": 0.0}, {"token": "", "wants": ["up"]}, {"token": "", "wants": {"up": 0.5}},
    ]  # fmt: skip


def test_what_is_refused_is_not_tried_again(service: Service) -> None:
    service.script = [400]
    with Client(service.address) as shop, pytest.raises(ServiceRefused, match=r"400: This is no token\."):
        shop.erase("x")
    assert len(service.response_count) == 1


def test_answers_that_were_refused_are_said_when_waiting_for_them(service: Service) -> None:
    service.script = [400]
    shop = Client(service.address)
    shop.answer("x")
    with pytest.raises(ServiceRefused, match=r"1 answers were refused.*400: This is no token"):
        shop.flush()
    shop.close()
    with pytest.raises(InvalidInput, match="closed"):
        shop.answer("y")


def test_of_a_group_the_rows_that_were_refused_are_said_at_once_and_no_others(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    service.script, service.refused = [422], ["/1/click", "/3/token", "/3"]
    shop = Client(service.address)
    for number in range(5):
        shop.answer(f"t{number}")
    wait_for(lambda: shop.refused == 2)
    wait_for(lambda: caplog.records)
    assert [each.getMessage() for each in caplog.records if each.name == "diminuendo.client"] == [
        "2 of 5 answers were refused: The service refused with 422: Some rows were refused. (click, token)"
    ]
    assert shop.lost == 0
    with pytest.raises(ServiceRefused, match=r"^2 answers were refused"):
        shop.close()
    assert len(service.response_count) == 1, "what is stored is not sent again"


def wait_for(what: Any) -> None:
    until = time.monotonic() + 10
    while not what():
        assert time.monotonic() < until, "it never came about"
        time.sleep(0.01)


def test_connections_that_the_service_closed_meanwhile_cost_nobody_a_wait(service: Service) -> None:
    many = 12
    service.together = threading.Barrier(many)
    with Client(service.address, decision_timeout=30) as shop, ThreadPoolExecutor(many) as pool:
        list(pool.map(lambda number: shop.decide("home"), range(many)))
        for _ in range(many):
            service.ended.acquire()
        service.together, response_count, began = None, len(service.response_count), time.monotonic()
        shop.decide("home")
        assert time.monotonic() - began < 1.0, "it was tried again at once"
        assert len(service.response_count) == response_count + 1
    assert service.connections == many + 1


def test_the_connection_that_was_used_last_is_used_again_unless_that_was_long_ago(
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


def test_a_page_does_not_wait_for_a_service_that_is_away(service: Service) -> None:
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


def test_numbers_of_other_libraries_are_numbers(service: Service) -> None:
    with Client(service.address) as shop:
        shop.answer("a", click=np.int64(2))  # type: ignore[arg-type]
        shop.answer("b", reward=np.float32(0.5))  # type: ignore[arg-type]
        shop.answer("c", reward=np.True_)  # type: ignore[arg-type]
        shop.answer("d", wants={"up": np.float32(0.5)})  # type: ignore[dict-item]
        shop.answer("e", wants=np.array(["up"]))  # type: ignore[arg-type]
        shop.flush()
    said = [each for _, _, group, _ in service.response_count for each in group]
    assert said == [
        {"token": "a", "click": 2}, {"token": "b", "reward": 0.5}, {"token": "c", "reward": 1.0},
        {"token": "d", "wants": {"up": 0.5}}, {"token": "e", "wants": ["up"]},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"click": "2"}, "click"),
        ({"click": 1.5}, "click"),
        ({"click": True}, "click"),
        ({"reward": float("nan")}, "reward"),
        ({"reward": "1"}, "reward"),
        ({"reward": object()}, "reward"),
        ({"wants": "up"}, "wants"),
        ({"wants": [3]}, "wants"),
        ({"wants": {"up": object()}}, "wants"),
        ({"wants": {3: 0.5}}, "wants"),
        ({"wants": 5}, "wants"),
    ],
)
def test_what_cannot_be_sent_is_refused_at_once_and_the_rest_is_sent(
    service: Service, said: dict[str, Any], field: str
) -> None:
    with Client(service.address) as shop:
        with pytest.raises(InvalidInput, match=f"^{field}: expected .* got a value of type [a-z]+[.]$"):
            shop.answer("a", **said)
        with pytest.raises(InvalidInput, match=r"^token: expected"):
            shop.answer(7)  # type: ignore[arg-type]
        shop.answer("b", click=1)
        shop.flush(5.0)
    assert [group for _, _, group, _ in service.response_count] == [[{"token": "b", "click": 1}]]


def test_whatever_goes_wrong_the_next_answers_are_sent(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Client(service.address) as shop:
        tried = shop._tried

        def fails(*given: Any, **more: Any) -> Any:
            monkeypatch.setattr(shop, "_tried", tried)
            raise RuntimeError("said of somebody")

        monkeypatch.setattr(shop, "_tried", fails)
        shop.answer("a")
        with pytest.raises(ServiceUnreachable, match=r"1 answers could not be sent.*RuntimeError"):
            shop.flush(5.0)
        assert (shop.lost, shop.refused) == (1, 0)
        assert "said of somebody" not in caplog.text
        shop.answer("b")
        shop.flush(5.0)
    assert [group[0]["token"] for _, _, group, _ in service.response_count] == ["b"]


def test_waiting_for_a_service_that_is_away_ends_and_says_what_was_lost(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MOST_WAITING", 150)
    shop = Client("http://127.0.0.1:9", pause=0.0)
    with caplog.at_level(logging.ERROR, "diminuendo.client"):
        shop.answer("first")
        wait_for(lambda: shop._sending)
        for number in range(160):
            shop.answer(f"t{number}")
        assert shop.lost == 10
        assert "150 answers wait to be sent" in caplog.text
        began = time.monotonic()
        with pytest.raises(
            ServiceUnreachable, match=r"^151 answers still wait to be sent; 10 answers could not"
        ):
            shop.flush(0.1)
        with pytest.raises(ServiceUnreachable, match=r"^151 answers still wait to be sent\.$"):
            shop.close(0.1)
        wait_for(lambda: shop.lost == 161)
        assert time.monotonic() - began < 5, "neither waits as long as answers are tried again"
        assert "closed while 150 answers waited" in caplog.text


def test_nobody_there() -> None:
    with Client("http://127.0.0.1:9", retry_for=0.1) as shop, pytest.raises(ServiceUnreachable):
        shop.decide("home")


@pytest.mark.parametrize("address", ["127.0.0.1:80", "ftp://there", "http://"])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(InvalidInput, match="address"):
        Client(address)


def test_names_may_be_numbers(service: Service) -> None:
    with Client(service.address) as shop:
        shop.decide("home", user_id=7)
    assert service.response_count[0][2] == {"user_id": "7"}, "services take names as texts"
