"""The table of routes: method, path, who may, what goes in and out. The OpenAPI document is made of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from diminuendo.service.api import bodies, operators
from diminuendo.service.api.keys import Role
from diminuendo.service.api.operators import Asked

READERS: tuple[Role, ...] = ("operate", "audit")
OPERATORS: tuple[Role, ...] = ("operate",)
SERVERS: tuple[Role, ...] = ("serve",)


@dataclass(frozen=True)
class Operation:
    """One thing that can be asked for."""

    method: str
    path: str
    roles: tuple[Role, ...]
    """Whose keys are good for it; none: anybody may."""
    says: str
    status: int = 200
    takes: tuple[Any, ...] = ()
    """The types that the body may have."""
    gives: tuple[Any, ...] = ()
    """The types that the reply may have; none: it is empty, or no JSON of ours."""
    work: Callable[[Asked], Awaitable[Any]] | None = None
    """What makes the reply; None: it is made elsewhere (`hot.py`, `pages.py`)."""
    cursor: bool = False
    """Whether it takes `after`."""
    retried: bool = False
    """Whether an Idempotency-Key is heeded."""


PLACEMENT = "/v1/placements/{placement}"
OPERATIONS = (
    Operation(
        "POST", f"{PLACEMENT}/decisions", SERVERS, "What to show", 201, (bodies.AskDecisions,),
        (bodies.DecisionBody, bodies.DecisionList), retried=True,
    ),
    Operation("POST", "/v1/answers", SERVERS, "What users said", 202, (bodies.Answer, list[bodies.Answer])),
    Operation(
        "POST", "/v1/erasures", SERVERS, "Somebody's answers go", 202, (bodies.Erasure,), work=operators.erasures
    ),
    Operation("GET", f"{PLACEMENT}/menu", SERVERS, "The menu in effect", 200, gives=(bodies.MenuBody,)),
    Operation(
        "GET", "/v1/placements", READERS, "All placements", gives=(bodies.PlacementList,),
        work=operators.placements,
    ),
    Operation(
        "POST", "/v1/placements", OPERATORS, "A new placement", 201, (bodies.NewPlacement,), (bodies.Made,),
        operators.new_placement, retried=True,
    ),
    Operation("GET", PLACEMENT, READERS, "One placement", gives=(bodies.PlacementBody,), work=operators.placement),
    Operation(
        "GET", f"{PLACEMENT}/guarantee", READERS, "What is promised", gives=(bodies.GuaranteeBody,),
        work=operators.guarantee,
    ),
    Operation(
        "GET", f"{PLACEMENT}/releases", READERS, "What was published", gives=(bodies.ReleaseList,),
        work=operators.releases, cursor=True,
    ),
    Operation(
        "POST", f"{PLACEMENT}/items", OPERATORS, "Items appear or retire", 202, (bodies.ItemChange,),
        work=operators.items, retried=True,
    ),
    Operation(
        "POST", "/v1/populations", OPERATORS, "A new population", 201, (bodies.NewPopulation,), (bodies.Made,),
        operators.new_population, retried=True,
    ),
    Operation(
        "GET", "/v1/populations/{population}/ledger", READERS, "Lines of its ledger", gives=(bodies.LedgerBody,),
        work=operators.ledger, cursor=True,
    ),
    Operation("GET", "/v1/openapi.json", (), "This document"),
    Operation("GET", "/diminuendo.js", (), "A client for browsers, which chooses by menus"),
    Operation("GET", "/healthz", (), "Whether the process is well", gives=(bodies.Health,)),
    Operation("GET", "/readyz", (), "Whether it can serve", gives=(bodies.Health,)),
    Operation("GET", "/metrics", READERS, "Public numbers, for Prometheus"),
)  # fmt: skip
