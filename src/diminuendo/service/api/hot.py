"""What users wait for: decisions and answers. Plain ASGI, so that little is done beside them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from diminuendo.errors import InvalidInput, InvalidToken, StoreUnavailable
from diminuendo.service.api.bodies import MOST_AT_ONCE, MOST_EXCLUDED, Answer, AskDecisions
from diminuendo.service.api.problems import Problem
from diminuendo.service.api.wire import JSON, NOTHING, Receive, Scope, Send, body, decoded, header, reply
from diminuendo.service.front.front import Front
from diminuendo.service.front.placement import Placement
from diminuendo.service.front.serving import Decision, NotReady, Serving
from diminuendo.service.records import Said
from diminuendo.service.store import AnswerRow

ASKED = msgspec.json.Decoder(AskDecisions)
ANSWER = msgspec.json.Decoder(Answer)
ROWS = msgspec.json.Decoder(list[msgspec.Raw])
ENCODE = msgspec.json.Encoder().encode
FIELD_OF = {"full": "wants", "bandit": "reward", "click": "click"}
"""By feedback the field of an answer that holds it."""
LONGEST_KEY = 200
LARGE = 2**16
"""Bytes: a longer body is read beside the loop."""
TOGETHER = 50
"""Decisions of one request between which nobody else has a turn."""
MARKS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{},]', re.DOTALL)
"""In JSON: texts, and what is between values. A text that does not end goes on to the end of all: were it no match,
every quotation mark in it would be tried as the beginning of one."""
OPENS, CLOSES = (b"[", b"{"), (b"]", b"}")


async def decisions(front: Front, name: str, scope: Scope, receive: Receive, send: Send) -> None:
    """POST /v1/placements/{placement}/decisions: what to show."""
    written, place = await body(scope, receive), front.by_name.get(name)
    if len(written) <= LARGE:
        asked = _asked(written, place)
    else:
        asked = await asyncio.to_thread(_asked, written, place)
    if place is None:
        raise Problem("placement")
    if asked.exclude is not None and not place.spec.exclusions:
        raise Problem("field", "/exclude")
    if asked.user_id is None and place.spec.max_rounds_per_user > 1:
        raise Problem(
            "user_id", "/user_id"
        )  # before anything is handed out, as learners refuse it (base/contribution_bound.py)
    types = _types(place, asked)
    # A list that is too long is refused after the decision was made without it: else no round would be used, others
    # would have other rounds, and could tell.
    long = isinstance(asked.exclude, list) and len(asked.exclude) > MOST_EXCLUDED
    excluded = await front.serving.excluded(place, None if long else asked.exclude)
    result: Decision | dict[str, list[Decision]]
    try:
        if asked.user_id is not None:
            if asked.count is not None or asked.contexts is not None:
                raise Problem("field", "/user_id")  # one visit is one decision
            key = _idempotency_key(scope)
            result = await front.serving.decide_for(place, asked.user_id, key, types[0], excluded)
        elif asked.count is None and asked.contexts is None:
            result = await front.serving.decide(place, types[0], excluded)
        else:
            rows = list[Decision]()
            for at, type_ in enumerate(types):
                if at % TOGETHER == TOGETHER - 1:
                    await asyncio.sleep(0)  # others have waited
                rows.append(await front.serving.decide(place, type_, excluded, len(types) - at))
            result = {"decisions": rows}
    except NotReady:
        raise Problem("busy") from None
    if long:
        raise Problem("exclusions", "/exclude")
    await reply(send, 201, JSON, ENCODE(result))


def _asked(written: bytes, place: Placement | None) -> AskDecisions:
    """The request. What is private in it is never why it is refused: it would use no round, which others could see."""
    try:
        return decoded(ASKED, written)
    except Problem:
        if place is None or not place.spec.hidden:
            raise
        try:  # numbers too large, half a letter: in contexts and exclusions anything may be
            text = written.decode(errors="surrogateescape")
            result = msgspec.convert(json.loads(text, parse_int=_number), AskDecisions)
            (result.user_id or "").encode()
        except (ValueError, RecursionError):
            result = None
        if result is None:
            raise
        return result


def _number(digits: str) -> int | str:
    return int(digits) if len(digits) < 20 else digits


def _types(place: Placement, asked: AskDecisions) -> list[int]:
    """The type of each user that is asked for."""
    if not place.types:
        for given, field in ((asked.context, "/context"), (asked.contexts, "/contexts")):
            if given is not None:
                raise Problem("field", field)
        return [0] * (asked.count or 1)
    if asked.contexts is None:
        return [_type(place, asked.context, "/context")] * (asked.count or 1)
    if asked.context is not None or len(asked.contexts) != (asked.count or len(asked.contexts)):
        raise Problem("field", "/contexts")
    return [_type(place, context, f"/contexts/{at}") for at, context in enumerate(asked.contexts)]


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


async def answers(front: Front, scope: Scope, receive: Receive, send: Send) -> None:
    """POST /v1/answers: what users said; the reply is the same for all, once what counts is durable.

    In a list each row stands for itself: one that is refused keeps no other from being stored.
    """
    written = await body(scope, receive)
    arrived = front.clock()  # before anybody waits for anybody
    refused, later = list[str](), False
    if written.lstrip()[:1] == b"[":
        many = await _rows(written)
        if len(many) > MOST_AT_ONCE:
            raise Problem("size")
        rows: list[AnswerRow] = []
        for at, each in enumerate(many):
            try:
                rows += _row(front.serving, each, arrived)
            except (Problem, InvalidToken) as problem:
                pointer = problem.pointer or "" if isinstance(problem, Problem) else "/token"
                refused.append(f"/{at}{pointer}")
            except StoreUnavailable:  # of one placement: the rows of others are stored
                later = True
    else:
        rows = _row(front.serving, written, arrived)
    await front.writer.keep(rows)
    if later:
        raise Problem("busy")
    if refused:
        raise Problem("rows", refused=refused)
    await reply(send, 202, NOTHING, b"")


async def _rows(written: bytes) -> Sequence[bytes | msgspec.Raw]:
    """The rows of a list. Where it cannot be read as a whole, for what is inside one of them, it is cut at commas.

    To cut what is large takes a while: in a thread, so that nobody else waits for it.
    """
    try:
        return decoded(ROWS, written)
    except Problem:
        if not (rows := await asyncio.to_thread(_cut, written)):
            raise
        return rows


def _cut(written: bytes) -> list[bytes]:
    """What is between the commas of a list, whatever it is; nothing where it is no list."""
    rows, depth, first = list[bytes](), 0, 0
    for mark in MARKS.finditer(written):
        kind = mark[0]
        if kind in OPENS:
            depth += 1
            if depth > 1:
                continue
        elif kind in CLOSES:
            depth -= 1
            if depth > 0:
                continue
        elif kind != b"," or depth > 1:
            continue
        rows.append(written[first : mark.start()])
        first = mark.end()
        if depth <= 0:
            break
    return [] if depth or written[first:].strip() else rows[1:]


def _row(serving: Serving, written: bytes | msgspec.Raw, arrived: float) -> list[AnswerRow]:
    """One answer, checked and sealed."""
    answer = decoded(ANSWER, written)
    place, shown = serving.shown(answer.token)
    asked = FIELD_OF[place.spec.feedback]
    for field in FIELD_OF.values():
        if (getattr(answer, field) is not msgspec.UNSET) != (field == asked):
            raise Problem("field", f"/{field}")
    said: Said
    if isinstance(answer.wants, (list, dict)):
        said = Said(shown, wants=_wants(place, answer.wants))
    elif isinstance(answer.reward, float):
        said = Said(shown, reward=min(max(answer.reward, 0.0), 1.0))
    elif isinstance(answer.click, int):
        if not 0 <= answer.click < len(shown.slate) or shown.slate[answer.click] < 0:
            raise Problem("field", "/click")
        said = Said(shown, click=answer.click)
    else:
        said = Said(shown)
    return serving.row(place, said, arrived)


def _wants(place: Placement, wants: list[str] | dict[str, float]) -> dict[int, float]:
    weights = wants if isinstance(wants, dict) else dict.fromkeys(wants, 1.0)
    try:
        return {place.items[name]: weight for name, weight in weights.items() if weight > 0}
    except KeyError:
        raise Problem("field", "/wants") from None
