"""The client: groups answers, tries again what failed, pads what it sends, and says what was refused."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from diminuendo.client import PADDED, TOGETHER, Client
from diminuendo.errors import InvalidInput, ServiceRefused, ServiceUnreachable


class Service(ThreadingHTTPServer):
    """Answers by a list of what to reply next; what it was sent is kept."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Replies)
        self.script: list[int] = []
        self.heard: list[tuple[str, dict[str, str], Any, int]] = []
        self.lock = threading.Lock()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/shop"


class _Replies(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Service

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            status = self.server.script.pop(0) if self.server.script else 0
            self.server.heard.append((self.path, dict(self.headers), json.loads(body), len(body)))
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
        content = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Nothing is said."""


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as found:
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def test_a_decision_is_asked_for_with_a_key(service: Service) -> None:
    with Client(service.address, "secret") as shop:
        shown = shop.decide("home page", context={"country": "DE"}, exclude=["up"])
    assert (shown.slate, shown.token, shown.propensity, shown.answer_before) == (("up", None), "t", 0.5, 9.0)
    ((path, headers, body, size),) = service.heard
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
        shop.decide("home", person="ada")
    keys = {headers["Idempotency-Key"] for _, headers, _, _ in service.heard}
    assert len(service.heard) == 3
    assert len(keys) == 1


def test_answers_are_sent_in_groups_and_again_until_they_are_acknowledged(service: Service) -> None:
    service.script = [503, -1]
    with Client(service.address) as shop:
        for number in range(TOGETHER + 50):
            shop.answer(f"t{number}", click=number % 3 or None)
        shop.flush()
        acknowledged = [said for _, _, group, _ in service.heard[2:] for said in group]
        assert [said["token"] for said in acknowledged] == [f"t{number}" for number in range(TOGETHER + 50)]
    assert len(service.heard) == 4, "two groups, of which the first was tried three times"
    assert acknowledged[0] == {"token": "t0", "click": None}
    assert acknowledged[1] == {"token": "t1", "click": 1}


def test_kinds_of_answers(service: Service) -> None:
    with Client(service.address) as shop:
        shop.answer("a", payoff=0.0)
        shop.answer("b", wants=["up"])
        shop.answer("c", wants={"up": 0.5})
        shop.flush()
    said = [each for _, _, group, _ in service.heard for each in group]
    assert [dict(each, token="") for each in said] == [
        {"token": "", "payoff": 0.0}, {"token": "", "wants": ["up"]}, {"token": "", "wants": {"up": 0.5}},
    ]  # fmt: skip


def test_what_is_refused_is_not_tried_again(service: Service) -> None:
    service.script = [400]
    with Client(service.address) as shop, pytest.raises(ServiceRefused, match=r"400: This is no token\."):
        shop.erase("x")
    assert len(service.heard) == 1


def test_answers_that_were_refused_are_said_when_waiting_for_them(service: Service) -> None:
    service.script = [400]
    shop = Client(service.address)
    shop.answer("x")
    with pytest.raises(ServiceUnreachable, match="Of 1 answers some or all were not taken"):
        shop.flush()
    shop.close()
    with pytest.raises(InvalidInput, match="closed"):
        shop.answer("y")


def test_nobody_there() -> None:
    with Client("http://127.0.0.1:9", patience=0.1) as shop, pytest.raises(ServiceUnreachable):
        shop.decide("home")


@pytest.mark.parametrize("address", ["127.0.0.1:80", "ftp://there", "http://"])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(InvalidInput, match="address"):
        Client(address)


def test_names_may_be_numbers(service: Service) -> None:
    with Client(service.address) as shop:
        shop.decide("home", person=7)
    assert service.heard[0][2] == {"person": "7"}, "services take names as texts"
