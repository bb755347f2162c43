"""The OpenAPI document, made of the table of routes and the types of bodies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from diminuendo import __version__
from diminuendo.service.api.problems import KINDS, ProblemBody
from diminuendo.service.api.routes import Operation

MEDIA = "application/json"


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    """OpenAPI 3.1."""
    kinds = [kind for each in operations for kind in (*each.takes, *each.gives)]
    schemas, components = msgspec.json.schema_components(
        [*kinds, ProblemBody], ref_template="#/components/schemas/{name}"
    )
    known = dict(zip(map(_key, kinds), schemas, strict=False))
    paths: dict[str, dict[str, Any]] = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, known)
    return {
        "openapi": "3.1.0",
        "info": {"title": "diminuendo", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "responses": {
                "problem": {
                    "description": "; ".join(f"{status} {kind}" for kind, (status, _) in KINDS.items()),
                    "content": {"application/problem+json": {"schema": schemas[-1]}},
                }
            },
        },
    }


def _operation(each: Operation, known: dict[str, Any]) -> dict[str, Any]:
    reply: dict[str, Any] = {"description": each.summary}
    if each.gives:
        reply["content"] = {MEDIA: {"schema": _any_of(each.gives, known)}}
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", each.path)
    ]
    if each.cursor:
        parameters.append({"name": "after", "in": "query", "schema": {"type": "integer", "minimum": 0}})
    if each.retried:
        parameters.append({"name": "Idempotency-Key", "in": "header", "schema": {"type": "string"}})
    result: dict[str, Any] = {
        "summary": each.summary,
        "operationId": f"{each.method.lower()}-{re.sub('[^a-z]+', '-', each.path).strip('-')}",
        "parameters": parameters,
        "responses": {str(each.status): reply, "default": {"$ref": "#/components/responses/problem"}},
        "security": [{"key": []}] if each.roles else [],
    }
    if each.takes:
        result["requestBody"] = {"required": True, "content": {MEDIA: {"schema": _any_of(each.takes, known)}}}
    return result


def _any_of(kinds: Sequence[Any], known: dict[str, Any]) -> Any:
    result = [known[_key(kind)] for kind in kinds]
    return result[0] if len(result) == 1 else {"anyOf": result}


def _key(kind: Any) -> str:
    return str(kind)
