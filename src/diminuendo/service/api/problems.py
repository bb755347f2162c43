"""Problem documents (RFC 9457): a closed list of kinds, without values of the input."""

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
    "size",
    "media",
    "fault",
    "unavailable",
]

KINDS: dict[Kind, tuple[int, str]] = {
    "token": (400, "This token was not made with any of the keys of this site."),
    "json": (400, "The body is not JSON."),
    "field": (422, "A field is missing, unknown, or not what it should be."),
    "user_id": (
        422,
        "This placement counts several impressions of one user: name the user in `user_id`, one decision a request. "
        "For users without IDs create a placement with max_rounds_per_user = 1.",
    ),
    "exclusions": (
        422,
        "The list of excluded items is too long: name at most 10,000.",
    ),
    "rows": (422, "Some rows were refused; all others are stored."),
    "key": (401, "A key is needed: Authorization: Bearer KEY."),
    "role": (403, "This key has another role."),
    "path": (404, "No such path."),
    "placement": (404, "No placement has this name."),
    "population": (404, "No population has this name."),
    "method": (405, "This path does not take that method."),
    "size": (413, "The body is too large."),
    "media": (415, "The body must be application/json."),
    "fault": (500, "Internal error."),
    "unavailable": (503, "Temporarily unavailable; try again."),
}
"""By kind the status and the title."""

RETRY_AFTER = "1"
"""Seconds."""


class Problem(Exception):
    """A refused request."""

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
    """The body of a problem document."""

    type: str
    title: str
    status: int
    trace: str
    """Random; the log has the same for internal errors."""
    pointer: str | None = None
    """Which field, as a JSON pointer."""
    refused: Sequence[str] = ()
    """Which rows of a list, and which of their fields, as JSON pointers."""
    why: str = ""
    """If the service is not ready: the reason, from a closed list."""


def document(problem: Problem, trace: str | None = None) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
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
    if status == 503:
        headers.append((b"retry-after", RETRY_AFTER.encode()))
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if problem.allow:
        headers.append((b"allow", problem.allow.encode()))
    return status, headers, body


_PATH = re.compile(r"at `(?:key in )?\$([^`]*)`$")
_STEP = re.compile(r"\.([a-z_]+)|\[(\d+)\]|\[\.\.\.\]")


def pointer(error: msgspec.ValidationError, known: frozenset[str]) -> str:
    """The field that an error of msgspec is about. Keys of mappings are private and are left out."""
    result = _PATH.search(str(error))
    steps = []
    for name, number in _STEP.findall(result[1] if result else ""):
        if name and name not in known:
            break
        if name or number:
            steps.append(f"/{name or number}")
    return "".join(steps)
