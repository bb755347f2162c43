"""Users who come to a site, are shown something, and most of whom answer: what they were told is written down.

They know the API alone. An answer that was not acknowledged is sent again, as a shop would, for as long as they have
patience; whether one counts of which nobody ever heard, nobody knows. One of each group is sent twice.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

GROUP = 8
"""How many somebody asks for at once."""
ANSWER = 0.9
"""How many of those answer."""


def thread(work: Callable[[], None]) -> threading.Thread:
    """A thread of this machine."""
    return threading.Thread(target=work, daemon=True)


class Door(NamedTuple):
    """Where users come to a site."""

    host: str
    port: int
    name: str = "site"
    thread: Callable[[Callable[[], None]], threading.Thread] = thread
    """They come from where its threads are."""


class Asked(NamedTuple):
    """One request, and what came of it."""

    door: str
    what: str
    began: float
    ended: float
    status: int
    """0: nothing came."""


@dataclass
class Told:
    """What users were told."""

    decisions: list[str] = field(default_factory=list)
    """Tokens."""
    acknowledged: list[tuple[str, bool]] = field(default_factory=list)
    """Tokens of answers that were acknowledged, and whether surely in time."""
    unknown: list[str] = field(default_factory=list)
    """Tokens of answers that were sent and never acknowledged."""
    asked: list[Asked] = field(default_factory=list)


class Users:
    """They come to all doors until they are stopped, everybody with a reward of 1."""

    def __init__(
        self,
        doors: Sequence[Door],
        key: str,
        *,
        many: int = 6,
        pace: float = 0.0,
        timeout: float = 2.0,
        retry_for: float = 60.0,
    ) -> None:
        """`many`: at each door at once. `pace`: seconds between two requests. `retry_for`: seconds for
        which an answer is sent again."""
        self._key, self._pace, self._timeout, self._retry_for = key, pace, timeout, retry_for
        self.told, self.stopped, self._lock = Told(), threading.Event(), threading.Lock()
        self._threads = [
            door.thread(lambda door=door, nth=nth: self._come(door, random.Random(nth)))  # type: ignore[misc]
            for door in doors
            for nth in range(many)
        ]

    def start(self) -> None:
        """Let them come."""
        for each in self._threads:
            each.start()

    def stop(self, *, at_once: bool = False) -> None:
        """Nobody comes any more; whoever is there ends, or loses patience at once."""
        self.stopped.set()
        self._retry_for = 0.0 if at_once else self._retry_for
        for each in self._threads:
            if each.ident is not None:
                each.join()

    def during(self, door: str, began: float, until: float, what: str) -> list[Asked]:
        """What was asked at a door, and ended in that time."""
        asked = list(self.told.asked)
        return [
            each
            for each in asked
            if (each.door, each.what) == (door, what) and each.began > began and each.ended < until
        ]

    def _come(self, door: Door, rng: random.Random) -> None:
        while not self.stopped.wait(self._pace):
            reply = self._ask(door, "placements/home/decisions", {"count": GROUP})
            if reply is None:
                self.stopped.wait(0.05)
                continue
            shown = reply["decisions"]
            with self._lock:
                self.told.decisions += [each["token"] for each in shown]
            response_rate = [each for each in shown if rng.random() < ANSWER]
            if rng.random() < 0.2:
                time.sleep(rng.random())
            if response_rate:
                self._answer(door, response_rate)

    def _answer(self, door: Door, response_rate: list[dict[str, Any]]) -> None:
        sent = [{"token": each["token"], "reward": 1.0} for each in [*response_rate, response_rate[0]]]
        began, kept = time.monotonic(), False
        while not kept:
            kept, now = self._ask(door, "feedback", sent) is not None, time.time()
            if kept or time.monotonic() >= began + self._retry_for:
                break
            time.sleep(0.05)
        with self._lock:
            for each in response_rate:
                if kept:
                    sure = now <= datetime.fromisoformat(each["expires_at"]).timestamp()
                    self.told.acknowledged.append((each["token"], sure))
                else:
                    self.told.unknown.append(each["token"])

    def _ask(self, door: Door, what: str, body: Any) -> Any:
        """What is said; None where it was refused, or nothing came."""
        began, (status, content) = time.monotonic(), asked(door, self._key, what, body, self._timeout)
        with self._lock:
            last = what.rpartition("/")[2]
            self.told.asked.append(Asked(door.name, last, began, time.monotonic(), status))
        return json.loads(content or b"{}") if 0 < status < 300 else None


def asked(door: Door, key: str, what: str, body: Any = None, timeout: float = 10.0) -> tuple[int, bytes]:
    """One request, on a connection of its own: the status and what was said; 0 where nothing came."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    with closing(http.client.HTTPConnection(door.host, door.port, timeout=timeout)) as connection:
        try:
            if body is None:
                connection.request("GET", f"/{what}", headers=headers)
            else:
                connection.request("POST", f"/v1/{what}", json.dumps(body), headers)
            reply = connection.getresponse()
            return reply.status, reply.read()
        except (OSError, http.client.HTTPException):
            return 0, b""
