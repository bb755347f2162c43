"""A client of the service, of the standard library alone: asks for decisions, reports feedback in groups, retries.

    with Client("http://127.0.0.1:8080", key) as shop:
        shown = shop.decide("home")                 # a slate of your own item names, and a token
        shop.send_feedback(shown.token, click=2)    # returns at once; retried until acknowledged

Feedback that the service refused, or that could not be sent, is logged when that happens (logger `diminuendo.client`)
and counted (`refused`, `lost`); `flush` and `close` raise.
"""

from __future__ import annotations

import http.client
import json
import logging
import operator
import ssl
import threading
import time
import urllib.parse
import uuid
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from diminuendo.errors import DiminuendoError, InvalidInput, ServiceRefused, ServiceUnreachable

TOGETHER, MOST_BYTES = 100, 1 << 20
"""Rows of one request, and their bytes, at most; a single row may be longer."""
MOST_WAITING = 10_000
"""Rows in the queue, at most. Further ones are lost: they are logged and counted, and `flush` raises."""
PADDED = 256
"""Bodies are padded to a multiple of this many bytes."""
FIRST_WAIT, LONGEST_WAIT = 0.05, 5.0
"""Seconds between tries: the first pause, and the longest."""
IDLE = 4.0
"""Seconds after which an idle connection is closed: `diminuendo serve` closes it after 5."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Shown:
    """What to show a user, and how to report feedback on it.

    Attributes
    ----------
    slate : tuple of (str or None)
        Item names by slot; None for an empty slot.
    token : str
        The decision token. Whoever holds it may report feedback for this user, once: send it to them alone, in
        bodies and not in addresses.
    expires_at : float
        Deadline for feedback, in seconds since 1970.
    propensity : float, optional
        Probability with which this slate was shown, if that is public.

    """

    slate: tuple[str | None, ...]
    token: str
    expires_at: float
    propensity: float | None = None


class Client:
    """A client of one service, for any number of threads; a context manager.

    Parameters
    ----------
    address : str
        Such as http://127.0.0.1:8080.
    key : str, default ""
        API key.
    timeout : float, default 10.0
        Seconds for one try.
    retry_for : float, default 60.0
        Seconds for which requests are retried.
    pause : float, default 0.05
        Seconds for which feedback is gathered into one request.
    decision_timeout : float, default 1.0
        Seconds for which `decide` is retried, as a page waits for it.

    Attributes
    ----------
    refused : int
        Feedback that the service refused; sending it again would change nothing.
    lost : int
        Feedback that could not be sent.

    Raises
    ------
    InvalidInput
        If the address is no http or https address.

    Notes
    -----
    Feedback counts once however often it is sent, so it is retried until it is acknowledged. Decisions for a named
    user carry an idempotency key. Bodies are padded to multiples of 256 bytes, so that their length tells little.

    Examples
    --------
    >>> from diminuendo.client import Client
    >>> with Client("http://127.0.0.1:8080", key="...") as shop:
    ...     print(shop.refused, shop.lost)
    0 0

    A page decides, shows, and reports:

    >>> shown = shop.decide("home", user_id="ada")  # doctest: +SKIP
    >>> shop.send_feedback(shown.token, click=2)  # doctest: +SKIP
    """

    def __init__(
        self,
        address: str,
        key: str = "",
        *,
        timeout: float = 10.0,
        retry_for: float = 60.0,
        pause: float = 0.05,
        decision_timeout: float = 1.0,
    ) -> None:
        parts = urllib.parse.urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInput("A service has an address such as http://127.0.0.1:8080.")
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, parts.port
        self._prefix, self._key = parts.path.rstrip("/"), key
        self._timeout, self._retry_for, self._pause = timeout, retry_for, pause
        self._decision_timeout = decision_timeout
        self._idle: deque[tuple[float, http.client.HTTPConnection]] = (
            deque()
        )  # the last one used is the first reused
        self._waiting: deque[bytes] = deque()
        self._changed = threading.Condition()
        self._sending, self._closed, self._full = 0, False, False
        self._stopped = threading.Event()
        self.refused = 0
        self.lost = 0
        self._reported, self._reason = (0, 0), ""
        self._sender: threading.Thread | None = None

    def __repr__(self) -> str:
        return f"<Client of {self._host}:{self._port or ''}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self.close()
        except (ServiceRefused, ServiceUnreachable):  # it was logged; an error from before it goes on
            if error is None:
                raise

    # Decisions.

    def decide(
        self,
        placement: str,
        *,
        user_id: str | int | None = None,
        context: Mapping[str, str] | None = None,
        exclude: Iterable[str] | None = None,
    ) -> Shown:
        """Return what to show one user.

        Parameters
        ----------
        placement : str
            Name of the placement.
        user_id : str or int, optional
            A stable name of the user; required if `max_rounds_per_user` is more than 1.
        context : mapping of str to str, optional
            What is known of the user.
        exclude : iterable of str, optional
            Names of items that the user is not shown.

        Returns
        -------
        Shown

        Raises
        ------
        ServiceUnreachable
            After `decision_timeout`. Show a fallback slate of your own.
        ServiceRefused
            If the service refuses the request.
        InvalidInput
            If the request cannot be written as JSON.
        """
        name, items = None if user_id is None else str(user_id), None if exclude is None else list(exclude)
        fields = {"user_id": name, "context": context, "exclude": items}
        body = {field: value for field, value in fields.items() if value is not None}
        return self._decisions(placement, body, self._decision_timeout, named=user_id is not None)[0]

    def decide_many(self, placement: str, count: int) -> list[Shown]:
        """Return slates for the next users without IDs and contexts, such as for pages that are built in advance.

        Parameters
        ----------
        placement : str
            Name of the placement.
        count : int
            Number of users.

        Returns
        -------
        list of Shown

        Raises
        ------
        ServiceUnreachable
            After `retry_for`.
        ServiceRefused
            If the service refuses; always if `max_rounds_per_user` is more than 1, as each decision must name its user
            then.
        """
        return self._decisions(placement, {"count": count}, self._retry_for, named=False)

    def _decisions(
        self, placement: str, body: dict[str, Any], retry_for: float, *, named: bool
    ) -> list[Shown]:
        path = f"/v1/placements/{urllib.parse.quote(placement, safe='')}/decisions"
        key = str(uuid.uuid4()) if named else None
        reply = json.loads(self._request(path, _encoded(body), retry_for, key=key))
        several = reply.get("decisions", [reply])
        return [_shown(one) for one in several]

    # Feedback.

    def send_feedback(
        self,
        token: str,
        *,
        click: int | None = None,
        reward: float | None = None,
        ratings: Sequence[str] | Mapping[str, float] | None = None,
    ) -> None:
        """Report feedback. Returns at once; it is sent together with other feedback.

        Parameters
        ----------
        token : str
            As it came with the slate.
        click : int, optional
            The slot that was clicked first; None: no click.
        reward : float, optional
            The reward, from 0 to 1.
        ratings : sequence of str or mapping of str to float, optional
            Names of the wanted items, or ratings from 0 to 1 by name.

        Raises
        ------
        InvalidInput
            If the feedback is malformed, or the client was closed. The message repeats nothing of it.
        """
        if not isinstance(token, str):
            raise InvalidInput(f"token: expected the text that came with the slate; got {_kind(token)}.")
        row: dict[str, Any] = {"token": token}
        if reward is not None:
            row["reward"] = _number("reward", reward)
        elif ratings is not None:
            row["ratings"] = _ratings(ratings)
        else:
            row["click"] = None if click is None else _slot(click)
        content = _encoded(row)
        with self._changed:
            if self._closed:
                raise InvalidInput("This client was closed; make another.")
            if len(self._waiting) >= MOST_WAITING:
                if not self._full:
                    _log.error("%d rows of feedback wait to be sent; further ones are lost.", MOST_WAITING)
                self._full = True
                self._count(0, 1, f"{MOST_WAITING:,} rows waited already")
                return
            self._waiting.append(content)
            if self._sender is None:
                self._sender = threading.Thread(target=self._send, name="feedback", daemon=True)
                self._sender.start()
            self._changed.notify_all()

    def erase(self, token: str) -> None:
        """Erase the feedback that was reported with a token, and accept none with it any more.

        Parameters
        ----------
        token : str
            As it came with the slate.

        Raises
        ------
        ServiceUnreachable
            After `retry_for`.
        ServiceRefused
            If the service refuses the token.
        """
        self._request("/v1/erasures", _encoded({"token": token}), self._retry_for)

    def flush(self, timeout: float | None = None) -> None:
        """Wait until all feedback so far is acknowledged.

        Parameters
        ----------
        timeout : float, optional
            Seconds. By default `retry_for`.

        Raises
        ------
        ServiceUnreachable
            If some still waits, or was lost since the last call.
        ServiceRefused
            If some was refused.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: not self._waiting and not self._sending,
                self._retry_for if timeout is None else timeout,
            )
            waiting = len(self._waiting) + self._sending
            refused, lost = self.refused - self._reported[0], self.lost - self._reported[1]
            self._reported = self.refused, self.lost
        result = [
            f"{many:,} rows of feedback {what}"
            for many, what in (
                (waiting, "still wait to be sent"),
                (lost, "could not be sent"),
                (refused, "were refused"),
            )
            if many
        ]
        if result:
            reason = f" The last reason: {self._reason}." if refused or lost else ""
            raise (ServiceUnreachable if waiting or lost else ServiceRefused)(f"{'; '.join(result)}.{reason}")

    def close(self, timeout: float | None = None) -> None:
        """Send what is left, as `flush` does, and release the connections. What still waits then is lost.

        Parameters
        ----------
        timeout : float, optional
            Seconds. By default `retry_for`.

        Raises
        ------
        ServiceUnreachable, ServiceRefused
            As `flush`.
        """
        try:
            self.flush(timeout)
        finally:
            with self._changed:
                first, self._closed = not self._closed, True
                left = len(self._waiting)
                self._waiting.clear()
                self._changed.notify_all()
            self._stopped.set()
            if first and left:
                self._count(0, left, "the client was closed")
                _log.error("The client was closed while %d rows of feedback waited; they are lost.", left)
            while self._idle:
                self._idle.pop()[1].close()

    def _send(self) -> None:
        """Send rows in groups, until the client is closed. Nothing else ends it."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return
            self._stopped.wait(self._pause)
            with self._changed:
                group, size = list[bytes](), 0
                while self._waiting and len(group) < TOGETHER:
                    size += len(self._waiting[0])
                    if group and size > MOST_BYTES:
                        break
                    group.append(self._waiting.popleft())
                self._sending, self._full = len(group), False
            if group:
                self._send_group(group)
            with self._changed:
                self._sending = 0
                self._changed.notify_all()

    def _send_group(self, group: list[bytes]) -> None:
        many, why = 0, ""
        try:
            status, content = self._tried("/v1/feedback", b"[" + b",".join(group) + b"]", self._retry_for)
            if status >= 300:
                rows, why = _refusal(status, content)
                many = min(rows, len(group)) or len(group)
        except Exception as error:  # whatever it is, the next group is sent
            why = str(error) if isinstance(error, DiminuendoError) else type(error).__name__
            self._count(0, len(group), why)
            _log.error("%d rows of feedback could not be sent: %s", len(group), why)
        if many:
            self._count(many, 0, why)
            _log.error("%d of %d rows of feedback were refused: %s", many, len(group), why)

    def _count(self, refused: int, lost: int, reason: str) -> None:
        with self._changed:
            self.refused += refused
            self.lost += lost
            self._reason = reason.rstrip(".")

    # One request, with retries.

    def _request(self, path: str, text: bytes, retry_for: float, *, key: str | None = None) -> bytes:
        status, content = self._tried(path, text, retry_for, key=key)
        if status >= 300:
            raise ServiceRefused(_refusal(status, content)[1])
        return content

    def _tried(
        self, path: str, text: bytes, retry_for: float, *, key: str | None = None
    ) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        if key is not None:
            headers["Idempotency-Key"] = key
        padded = text + b" " * (-len(text) % PADDED)
        until, wait = time.monotonic() + retry_for, FIRST_WAIT
        while True:
            left = max(min(self._timeout, until - time.monotonic()), 1e-3)
            try:
                status, content = self._once(path, padded, headers, left)
            except (OSError, http.client.HTTPException):
                status, content = 503, b""
            if status not in (429, 502, 503, 504):
                return status, content
            if time.monotonic() + wait > until or self._stopped.wait(wait):
                raise ServiceUnreachable("The service could not be reached, or could not store anything.")
            wait = min(2 * wait, LONGEST_WAIT)

    def _once(self, path: str, body: bytes, headers: dict[str, str], timeout: float) -> tuple[int, bytes]:
        """One try. Servers close idle connections, which shows with the next request: if a reused connection ends
        before a reply begins, send the request once more, over a new one. The service may see it twice. Feedback counts
        once, a decision for a user ID has an idempotency key, and any other decision uses up an impression.
        """
        connection = self._reused()
        if connection is not None:
            try:
                return self._over(connection, path, body, headers, timeout)
            except (ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError, http.client.CannotSendRequest):
                pass
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        return self._over(kind(self._host, self._port, timeout=timeout), path, body, headers, timeout)

    def _over(
        self,
        connection: http.client.HTTPConnection,
        path: str,
        body: bytes,
        headers: dict[str, str],
        timeout: float,
    ) -> tuple[int, bytes]:
        try:
            if connection.sock is not None:
                connection.sock.settimeout(timeout)
            connection.request("POST", self._prefix + path, body, headers)
            reply = connection.getresponse()
            content = reply.read()
        except BaseException:
            connection.close()
            raise
        if connection.sock is not None and not self._closed:
            self._idle.append((time.monotonic(), connection))
        else:  # the server says that it is the last reply
            connection.close()
        return reply.status, content

    def _reused(self) -> http.client.HTTPConnection | None:
        """The connection that was used last, unless that was long ago; older ones are closed."""
        with self._changed:
            while self._idle and self._idle[0][0] < time.monotonic() - IDLE:
                self._idle.popleft()[1].close()
            return self._idle.pop()[1] if self._idle else None


def _refusal(status: int, content: bytes) -> tuple[int, str]:
    """How many rows of a list a problem document is about (0 for all of them), and a reason without private data."""
    rows, title = set[str](), "no reason was given."
    try:
        problem = json.loads(content)
        title = str(problem["title"])
        if problem.get("pointer"):
            title += f" ({problem['pointer']})"
        elif refused := [str(each).split("/") for each in problem.get("refused", ())]:  # each is /row/field
            rows = {row for _, row, *_ in refused}
            title += f" ({', '.join(sorted({field for _, _, *fields in refused for field in fields[:1]}))})"
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    return len(rows), f"The service refused with {status}: {title}"


def _encoded(body: dict[str, Any]) -> bytes:
    try:
        return json.dumps(body, separators=(",", ":"), default=str).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{', '.join(body)}: JSON cannot say this ({type(error).__name__}).") from None


def _kind(value: object) -> str:
    """The type of a value, for errors that must not repeat it."""
    return f"a value of type {type(value).__name__}"


def _slot(click: Any) -> int:
    """Whole numbers of any library (numpy, ..)."""
    try:
        if isinstance(click, bool):
            raise TypeError
        return operator.index(click)
    except TypeError:
        raise InvalidInput(f"click: expected a slot, 0, 1, .., or None; got {_kind(click)}.") from None


def _number(field: str, value: Any) -> float:
    """Numbers of any library; True is 1."""
    try:
        result = float("nan") if isinstance(value, (str, bytes, bytearray)) else float(value)
    except (TypeError, ValueError, OverflowError):
        result = float("nan")
    if not abs(result) < float("inf"):
        raise InvalidInput(f"{field}: expected a finite number from 0 to 1; got {_kind(value)}.")
    return result


def _ratings(ratings: Any) -> list[str] | dict[str, float]:
    if not isinstance(ratings, (str, bytes)) and isinstance(ratings, Iterable):
        names = list(ratings)
        if all(isinstance(name, str) for name in names):
            if isinstance(ratings, Mapping):
                return {str(name): _number("ratings", value) for name, value in ratings.items()}
            return [str(name) for name in names]
    raise InvalidInput(f"ratings: expected names of items, or ratings by name; got {_kind(ratings)}.")


def _shown(one: dict[str, Any]) -> Shown:
    deadline = datetime.fromisoformat(one["expires_at"]).timestamp()
    return Shown(tuple(one["slate"]), one["token"], deadline, one.get("propensity"))
