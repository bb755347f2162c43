"""The request path: decisions and feedback. Plain ASGI, for speed."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from diminuendo.errors import InvalidInput, InvalidToken, StoreUnavailable
from diminuendo.service.api.bodies import MOST_AT_ONCE, MOST_EXCLUDED, DecisionRequest, FeedbackBody
from diminuendo.service.api.problems import Problem
from diminuendo.service.api.wire import JSON, NOTHING, Receive, Scope, Send, body, decoded, header, reply
from diminuendo.service.front.front import Front
from diminuendo.service.front.placement import Placement
from diminuendo.service.front.serving import Decision, NotReady, Serving
from diminuendo.service.records import Said
from diminuendo.service.store import AnswerRow

DECISION = msgspec.json.Decoder(DecisionRequest)
FEEDBACK = msgspec.json.Decoder(FeedbackBody)
ROWS = msgspec.json.Decoder(list[msgspec.Raw])
ENCODE = msgspec.json.Encoder().encode
FIELD_OF = {"full": "ratings", "bandit": "reward", "click": "click"}
"""By feedback the field that holds it."""
LONGEST_KEY = 200
LARGE = 2**16
"""Bytes: a longer body is decoded in a thread."""
TOGETHER = 50
"""Decisions of one request after which other requests have a turn."""


async def decisions(front: Front, name: str, scope: Scope, receive: Receive, send: Send) -> None:
    """POST /v1/placements/{placement}/decisions: what to show."""
    content, place = await body(scope, receive), front.by_name.get(name)
    if len(content) <= LARGE:
        request = decoded(DECISION, content)
    else:
        request = await asyncio.to_thread(decoded, DECISION, content)
    if place is None:
        raise Problem("placement")
    exclude = _value(request.exclude)
    if exclude is not None and not place.spec.exclusions:
        raise Problem("field", "/exclude")
    # Refused before an impression is assigned, as learners refuse it (base/contribution_bound.py).
    if request.user_id is None and place.spec.max_rounds_per_user > 1:
        raise Problem("user_id", "/user_id")
    types = _types(place, request)
    # A list that is too long is refused after the decision was made without it. Otherwise no impression would be used,
    # other users would get other impressions, and could tell.
    too_long = isinstance(exclude, list) and len(exclude) > MOST_EXCLUDED
    excluded = await front.serving.excluded(place, None if too_long else exclude)
    result: Decision | dict[str, list[Decision]]
    try:
        if request.user_id is not None:
            if request.count is not None or request.contexts is not None:
                raise Problem("field", "/user_id")
            key = _idempotency_key(scope)
            result = await front.serving.decide_for(place, request.user_id, key, types[0], excluded)
        elif request.count is None and request.contexts is None:
            result = await front.serving.decide(place, types[0], excluded)
        else:
            rows = list[Decision]()
            for at, type_ in enumerate(types):
                if at % TOGETHER == TOGETHER - 1:
                    await asyncio.sleep(0)
                rows.append(await front.serving.decide(place, type_, excluded, len(types) - at))
            result = {"decisions": rows}
    except NotReady:
        raise Problem("unavailable") from None
    if too_long:
        raise Problem("exclusions", "/exclude")
    await reply(send, 201, JSON, ENCODE(result))


def _value(raw: msgspec.Raw) -> Any:
    """A value; if it cannot be decoded, one that is neither a context nor a list."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return object()


def _types(place: Placement, request: DecisionRequest) -> list[int]:
    """The context ID of each user of the request."""
    context, contexts = _value(request.context), request.contexts
    if not place.types:
        for given, field in ((context, "/context"), (contexts, "/contexts")):
            if given is not None:
                raise Problem("field", field)
        return [0] * (request.count or 1)
    if contexts is None:
        return [_type(place, context, "/context")] * (request.count or 1)
    if context is not None or len(contexts) != (request.count or len(contexts)):
        raise Problem("field", "/contexts")
    return [_type(place, _value(each), f"/contexts/{at}") for at, each in enumerate(contexts)]


def _type(place: Placement, context: Any, field: str) -> int:
    try:
        return place.types.of(context)
    except InvalidInput:
        raise Problem("field", field) from None


def _idempotency_key(scope: Scope) -> str:
    key = header(scope, b"idempotency-key")
    if len(key) > LONGEST_KEY:
        raise Problem("size")
    return key.decode("latin-1")


async def feedback(front: Front, scope: Scope, receive: Receive, send: Send) -> None:
    """POST /v1/feedback: one row or a list of rows. The reply is empty, and comes once all that counts is durable.

    Rows of a list stand for themselves: a refused row does not keep the others from being stored.
    """
    content = await body(scope, receive)
    arrived = front.clock()  # before any waiting
    refused, later = list[str](), False
    if content.lstrip()[:1] == b"[":
        many = decoded(ROWS, content)
        if len(many) > MOST_AT_ONCE:
            raise Problem("size")
        rows: list[AnswerRow] = []
        for at, each in enumerate(many):
            try:
                rows += _row(front.serving, each, arrived)
            except (Problem, InvalidToken) as problem:
                pointer = problem.pointer or "" if isinstance(problem, Problem) else "/token"
                refused.append(f"/{at}{pointer}")
            except StoreUnavailable:  # of one placement: rows of others are stored
                later = True
    else:
        rows = _row(front.serving, content, arrived)
    await front.writer.keep(rows)
    if later:
        raise Problem("unavailable")
    if refused:
        raise Problem("rows", refused=refused)
    await reply(send, 202, NOTHING, b"")


def _row(serving: Serving, content: bytes | msgspec.Raw, arrived: float) -> list[AnswerRow]:
    """One row, validated and encrypted."""
    given = decoded(FEEDBACK, content)
    place, shown = serving.shown(given.token)
    expected = FIELD_OF[place.spec.feedback]
    for field in FIELD_OF.values():
        if (getattr(given, field) is not msgspec.UNSET) != (field == expected):
            raise Problem("field", f"/{field}")
    said: Said
    if isinstance(given.ratings, (list, dict)):
        said = Said(shown, ratings=_ratings(place, given.ratings))
    elif isinstance(given.reward, float):
        said = Said(shown, reward=min(max(given.reward, 0.0), 1.0))
    elif isinstance(given.click, int):
        if not 0 <= given.click < len(shown.slate) or shown.slate[given.click] < 0:
            raise Problem("field", "/click")
        said = Said(shown, click=given.click)
    else:
        said = Said(shown)
    return serving.row(place, said, arrived)


def _ratings(place: Placement, given: list[str] | dict[str, float]) -> dict[int, float]:
    weights = given if isinstance(given, dict) else dict.fromkeys(given, 1.0)
    try:
        return {place.items[name]: weight for name, weight in weights.items() if weight > 0}
    except KeyError:
        raise Problem("field", "/ratings") from None
