"""The table of routes: method, path, roles, bodies. The OpenAPI document is made of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from diminuendo.service.api import admin, bodies
from diminuendo.service.api.admin import Request
from diminuendo.service.api.keys import Role

READERS: tuple[Role, ...] = ("admin", "auditor")
ADMINS: tuple[Role, ...] = ("admin",)
CLIENTS: tuple[Role, ...] = ("client",)


@dataclass(frozen=True)
class Operation:
    """One operation of the API."""

    method: str
    path: str
    roles: tuple[Role, ...]
    """Roles whose keys are accepted; none: no key is needed."""
    summary: str
    status: int = 200
    takes: tuple[Any, ...] = ()
    """Types of the request body."""
    gives: tuple[Any, ...] = ()
    """Types of the reply; none: it is empty, or not JSON of ours."""
    work: Callable[[Request], Awaitable[Any]] | None = None
    """What makes the reply; None: `app.py` or `decisions.py` does."""
    cursor: bool = False
    """Whether it takes `after`."""
    retried: bool = False
    """Whether an Idempotency-Key is heeded."""


PLACEMENT = "/v1/placements/{placement}"
OPERATIONS = (
    Operation(
        "POST", f"{PLACEMENT}/decisions", CLIENTS, "Decide what to show", 201, (bodies.DecisionRequest,),
        (bodies.DecisionBody, bodies.DecisionList), retried=True,
    ),
    Operation(
        "POST", "/v1/feedback", CLIENTS, "Report feedback", 202, (bodies.FeedbackBody, list[bodies.FeedbackBody])
    ),
    Operation("POST", "/v1/erasures", CLIENTS, "Erase feedback", 202, (bodies.Erasure,), work=admin.erasures),
    Operation("GET", f"{PLACEMENT}/menu", CLIENTS, "The menu in effect", gives=(bodies.MenuBody,)),
    Operation(
        "GET", "/v1/placements", READERS, "All placements", gives=(bodies.PlacementList,), work=admin.placements
    ),
    Operation("GET", PLACEMENT, READERS, "One placement", gives=(bodies.PlacementBody,), work=admin.placement),
    Operation(
        "GET", f"{PLACEMENT}/guarantee", READERS, "Its guarantee", gives=(bodies.GuaranteeBody,), work=admin.guarantee
    ),
    Operation(
        "GET", f"{PLACEMENT}/versions", READERS, "Menus that were published", gives=(bodies.VersionList,),
        work=admin.versions, cursor=True,
    ),
    Operation(
        "POST", f"{PLACEMENT}/items", ADMINS, "Items appear or retire", 202, (bodies.ItemChange,), work=admin.items
    ),
    Operation(
        "GET", "/v1/populations/{population}/ledger", READERS, "Lines of its ledger", gives=(bodies.LedgerBody,),
        work=admin.ledger, cursor=True,
    ),
    Operation("GET", "/v1/openapi.json", (), "This document"),
    Operation("GET", "/diminuendo.js", (), "The client for browsers, which chooses by menus"),
    Operation("GET", "/healthz", (), "Whether the process is healthy", gives=(bodies.Health,)),
    Operation("GET", "/readyz", (), "Whether it can serve", gives=(bodies.Health,)),
    Operation("GET", "/metrics", READERS, "Public numbers, for Prometheus"),
)  # fmt: skip
