"""Problems: all that can go wrong with a request, as RFC 9457 says it. A closed list, without values of the input."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from typing import Literal

import msgspec

Kind = Literal[
    "token",
    "json",
    "field",
    "user_id",
    "exclusions",
    "rows",
    "key",
    "role",
    "path",
    "placement",
    "population",
    "method",
    "taken",
    "size",
    "media",
    "reused",
    "begun",
    "plan",
    "fault",
    "busy",
]

KINDS: dict[Kind, tuple[int, str]] = {
    "token": (400, "None of the keys that are here sealed this token."),
    "json": (400, "The body is not JSON."),
    "field": (422, "A field is missing, unknown, or not what it should be."),
    "user_id": (
        422,
        "This placement counts several rounds of one user: say who it is, in `user_id`, one decision a request. For "
        "users without names make a placement with max_rounds_per_user = 1.",
    ),
    "exclusions": (
        422,
        "The list of excluded items is too long; name at most 10,000, those that matter most.",
    ),
    "rows": (422, "Some rows were refused; all others are stored."),
    "key": (401, "A key is needed: Authorization: Bearer KEY."),
    "role": (403, "This key is for something else."),
    "path": (404, "There is nothing here."),
    "placement": (404, "There is no placement of that name."),
    "population": (404, "There is no population of that name."),
    "method": (405, "This is not done here with that method."),
    "taken": (409, "There is one of that name, made of other facts."),
    "size": (413, "The body is too large."),
    "media": (415, "The body must be application/json."),
    "reused": (422, "This Idempotency-Key came with another request."),
    "begun": (409, "A request with this Idempotency-Key is under way; try again."),
    "plan": (422, "No learner can be made for these facts, or their population cannot pay for it."),
    "fault": (500, "Something went wrong here."),
    "busy": (503, "Not now; try again."),
}
"""By kind the status and the title."""

RETRY_AFTER = "1"
"""Seconds."""


class Problem(Exception):
    """A request that is refused."""

    def __init__(
        self,
        kind: Kind,
        pointer: str | None = None,
        refused: Sequence[str] = (),
        allow: str = "",
        why: str = "",
    ) -> None:
        super().__init__(kind)
        self.kind, self.pointer, self.refused, self.allow, self.why = kind, pointer, refused, allow, why


class ProblemBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is said of a problem."""

    type: str
    title: str
    status: int
    trace: str
    """Random; the log has the same where the fault is ours."""
    pointer: str | None = None
    """Which field, as a JSON pointer."""
    refused: Sequence[str] = ()
    """Which rows of a list, and which of their fields, as JSON pointers."""
    why: str = ""
    """Where the service is not ready: the reason, from a closed list."""


def written(problem: Problem, trace: str | None = None) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Status, headers and body."""
    status, title = KINDS[problem.kind]
    body = msgspec.json.encode(
        ProblemBody(
            f"urn:diminuendo:{problem.kind}",
            title,
            status,
            trace or secrets.token_hex(8),
            problem.pointer,
            problem.refused,
            problem.why,
        )
    )
    headers = [(b"content-type", b"application/problem+json"), (b"cache-control", b"no-store")]
    if status == 503 or problem.kind == "begun":
        headers.append((b"retry-after", RETRY_AFTER.encode()))
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if problem.allow:
        headers.append((b"allow", problem.allow.encode()))
    return status, headers, body


_PATH = re.compile(r"at `(?:key in )?\$([^`]*)`$")
_STEP = re.compile(r"\.([a-z_]+)|\[(\d+)\]|\[\.\.\.\]")


def pointer(error: msgspec.ValidationError, known: frozenset[str]) -> str:
    """Which field an error of msgspec is about, by the names of our own fields alone; keys of mappings are not told."""
    result = _PATH.search(str(error))
    steps = []
    for name, number in _STEP.findall(result[1] if result else ""):
        if name and name not in known:
            break
        if name or number:
            steps.append(f"/{name or number}")
    return "".join(steps)
