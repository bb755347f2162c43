"""A client of the service, of the standard library alone: asks for decisions, sends answers in groups, tries again.

    with Client("http://127.0.0.1:8080", key) as shop:
        shown = shop.decide("home")                 # a slate of your own item names, and a token
        shop.answer(shown.token, click=2)           # returns at once; sent with others, until it is acknowledged

An answer may be sent any number of times and counts once, so whatever fails on the way is tried again. A decision for
somebody who has a name uses up one of her visits: it is asked for under a name of its own, and again under the same
one. What is sent is padded, so that its length does not tell how much she said.
"""

from __future__ import annotations

import http.client
import json
import queue
import threading
import time
import urllib.parse
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from diminuendo.errors import InvalidInput, ServiceRefused, ServiceUnreachable

TOGETHER = 100
"""Answers that are sent in one request, at most."""
PADDED = 256
"""Bodies are a multiple of this many bytes long."""
FIRST_WAIT, LONGEST_WAIT = 0.05, 5.0
"""Seconds between tries: the first time, and at most."""


@dataclass(frozen=True)
class Shown:
    """What to show somebody, and what to answer with."""

    slate: tuple[str | None, ...]
    """Item names, slot by slot; None for a slot that is empty."""
    token: str
    """Whoever has it may answer for her, once: send it to her alone, in bodies, not in addresses."""
    answer_before: float
    """When an answer comes too late, in seconds since 1970."""
    propensity: float | None = None
    """With what probability this slate was shown, where that is public."""


class Client:
    """One service; for any number of threads."""

    def __init__(
        self,
        address: str,
        key: str = "",
        *,
        timeout: float = 10.0,
        patience: float = 60.0,
        pause: float = 0.05,
    ) -> None:
        """`patience`: seconds for which a request is tried again; `pause`: seconds for which answers are gathered."""
        parts = urllib.parse.urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInput("A service has an address such as http://127.0.0.1:8080.")
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, parts.port
        self._prefix, self._key = parts.path.rstrip("/"), key
        self._timeout, self._patience, self._pause = timeout, patience, pause
        self._connections: queue.SimpleQueue[http.client.HTTPConnection] = queue.SimpleQueue()
        self._waiting: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        self._sending, self._closed, self._failed = 0, False, ""
        self._sender: threading.Thread | None = None

    def __repr__(self) -> str:
        return f"<Client of {self._host}:{self._port or ''}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    # Decisions.

    def decide(
        self,
        placement: str,
        *,
        person: str | int | None = None,
        context: Mapping[str, str] | None = None,
        exclude: Iterable[str] | None = None,
    ) -> Shown:
        """What to show one person. `person`: who she is, where she may come several times."""
        name, without = None if person is None else str(person), None if exclude is None else list(exclude)
        told = {"person": name, "context": context, "exclude": without}
        body = {name: value for name, value in told.items() if value is not None}
        found = self._decisions(placement, body, named=person is not None)
        return found[0]

    def decide_many(self, placement: str, count: int) -> list[Shown]:
        """What to show the next `count` people of whom nothing is known, such as for pages that are made beforehand."""
        return self._decisions(placement, {"count": count}, named=False)

    def _decisions(self, placement: str, body: dict[str, Any], *, named: bool) -> list[Shown]:
        path = f"/v1/placements/{urllib.parse.quote(placement, safe='')}/decisions"
        reply = json.loads(self._request("POST", path, body, key=str(uuid.uuid4()) if named else None))
        several = reply.get("decisions", [reply])
        return [_shown(one) for one in several]

    # Answers.

    def answer(
        self,
        token: str,
        *,
        click: int | None = None,
        payoff: float | None = None,
        wants: Sequence[str] | Mapping[str, float] | None = None,
    ) -> None:
        """What she said: the slot that she clicked first, if any; or a payoff; or what she wants. Returns at once."""
        said: dict[str, Any] = {"token": token}
        if payoff is not None:
            said["payoff"] = payoff
        elif wants is not None:
            said["wants"] = dict(wants) if isinstance(wants, Mapping) else list(wants)
        else:
            said["click"] = click
        with self._changed:
            if self._closed:
                raise InvalidInput("This client was closed; make another.")
            self._waiting.append(said)
            if self._sender is None:
                self._sender = threading.Thread(target=self._send, name="answers", daemon=True)
                self._sender.start()
            self._changed.notify_all()

    def erase(self, token: str) -> None:
        """Forget what was answered with that token, and take no answer with it any more."""
        self._request("POST", "/v1/erasures", {"token": token})

    def flush(self) -> None:
        """Wait until all answers so far are acknowledged; raises if some were refused, or could not be sent."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting and not self._sending)
            failed, self._failed = self._failed, ""
        if failed:
            raise ServiceUnreachable(failed)

    def close(self) -> None:
        """Send what is left, and let go of the service."""
        try:
            self.flush()
        finally:
            with self._changed:
                self._closed = True
                self._changed.notify_all()
            while not self._connections.empty():
                self._connections.get().close()

    def _send(self) -> None:
        """Answers as they come, in groups, until the client is closed."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return
            time.sleep(self._pause)
            with self._changed:
                group, self._waiting = self._waiting[:TOGETHER], self._waiting[TOGETHER:]
                self._sending = len(group)
            try:
                self._request("POST", "/v1/answers", group)
            except (ServiceRefused, ServiceUnreachable) as error:
                self._failed = f"Of {len(group)} answers some or all were not taken: {error}"
            with self._changed:
                self._sending = 0
                self._changed.notify_all()

    # One request, tried again as long as patience lasts.

    def _request(self, method: str, path: str, body: Any, *, key: str | None = None) -> bytes:
        text = json.dumps(body, separators=(",", ":")).encode()
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        if key is not None:
            headers["Idempotency-Key"] = key
        padded = text + b" " * (-len(text) % PADDED)
        until, wait = time.monotonic() + self._patience, FIRST_WAIT
        while True:
            try:
                status, content = self._once(method, path, padded, headers)
            except (OSError, http.client.HTTPException):
                status, content = 503, b""
            if status < 300:
                return content
            if status not in (429, 502, 503, 504):
                raise ServiceRefused(f"The service refused with {status}: {_title(content)}")
            if time.monotonic() + wait > until:
                raise ServiceUnreachable("The service could not be reached, or could not store anything.")
            time.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT)

    def _once(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection: http.client.HTTPConnection
        try:
            connection = self._connections.get_nowait()
        except queue.Empty:
            connection = kind(self._host, self._port, timeout=self._timeout)
        try:
            connection.request(method, self._prefix + path, body, headers)
            reply = connection.getresponse()
            content = reply.read()
        except BaseException:
            connection.close()
            raise
        self._connections.put(connection)
        return reply.status, content


def _shown(one: dict[str, Any]) -> Shown:
    before = datetime.fromisoformat(one["answer_before"]).timestamp()
    return Shown(tuple(one["slate"]), one["token"], before, one.get("propensity"))


def _title(content: bytes) -> str:
    """What a problem document says in general; nothing of what was sent is in it."""
    try:
        said = json.loads(content)
        return f"{said['title']} ({said['pointer']})" if said.get("pointer") else str(said["title"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return "no reason was given."
