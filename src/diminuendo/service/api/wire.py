"""Requests and replies in plain ASGI: headers, cursors, bodies with a size limit."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from urllib.parse import parse_qs

import msgspec

from diminuendo.errors import InvalidToken, StoreUnavailable
from diminuendo.service.api import problems
from diminuendo.service.api.bodies import FIELDS
from diminuendo.service.api.problems import Problem
from diminuendo.service.log import Log

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
T = TypeVar("T")

MOST_BYTES = 4 << 20
"""Of a body."""
JSON = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
NOTHING = [(b"cache-control", b"no-store")]


def header(scope: Scope, name: bytes) -> bytes:
    """A header of the request, or nothing."""
    for key, value in scope["headers"]:
        if key == name:
            result: bytes = value
            return result
    return b""


def after(scope: Scope) -> int:
    """The cursor of a list: the reply holds what follows this number."""
    try:
        given = parse_qs(scope["query_string"].decode("ascii"), max_num_fields=20).get("after", ["0"])[-1]
    except ValueError:
        raise Problem("field", "/after") from None
    if not (given.isascii() and given.isdecimal() and len(given) < 16):
        raise Problem("field", "/after")
    return int(given)


async def body(scope: Scope, receive: Receive) -> bytes:
    """The body of a request; refused if it is too large or has another media type than JSON."""
    media = header(scope, b"content-type")
    if media != b"application/json" and media.partition(b";")[0].strip().lower() != b"application/json":
        raise Problem("media")
    message = await receive()
    result: bytes = message.get("body", b"")
    if message.get("more_body"):
        parts, size = [result], len(result)
        while message.get("more_body"):
            message = await receive()
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > MOST_BYTES:
                raise Problem("size")
        result = b"".join(parts)
    if len(result) > MOST_BYTES:
        raise Problem("size")
    return result


def decoded(decoder: msgspec.json.Decoder[T], content: bytes | msgspec.Raw) -> T:
    """The decoded body, or a problem that names the field."""
    try:
        return decoder.decode(content)
    except msgspec.ValidationError as error:
        raise Problem("field", problems.pointer(error, FIELDS)) from None
    except (msgspec.DecodeError, RecursionError, ValueError):
        raise Problem("json") from None


async def reply(send: Send, status: int, headers: list[tuple[bytes, bytes]], content: bytes) -> None:
    """A whole reply."""
    sized = [*headers, (b"content-length", b"%d" % len(content))]
    await send({"type": "http.response.start", "status": status, "headers": sized})
    await send({"type": "http.response.body", "body": content})


async def guarded(work: Awaitable[None], send: Send, log: Log) -> None:
    """Turn every error into a problem of the closed list. Replies are sent whole, so none has begun by then."""
    trace = None
    try:
        await work
        return
    except Problem as problem:
        result = problem
    except InvalidToken:
        result = Problem("token")
    except StoreUnavailable:
        result = Problem("unavailable")
    except Exception as error:
        trace = secrets.token_hex(8)
        log.fault(error, trace)
        result = Problem("fault")
    await reply(send, *problems.document(result, trace))
