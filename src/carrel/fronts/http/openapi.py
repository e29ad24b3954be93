"""The OpenAPI 3.1 description, generated from the tables of routes and operations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

import msgspec

from carrel.fronts.http.router import BodySpec, ResponseSpec, Route, parameter_names
from carrel.service.error_status import error_status
from carrel.service.operations import OPERATIONS, schemas
from carrel.values import FileInfo

Document = dict[str, Any]  # Any: any JSON

COMMON_ERRORS = ("request.invalid", "carrel.error", "service.stopping", "limit.requests")
"""Error codes of every route."""
CALLER_ERRORS = ("access.role", "caller.unknown", "limit.body", "limit.rate", "limit.time")
"""Error codes of every route that needs authentication."""
SESSION_ERRORS = ("session.invalid_id", "session.missing", "sessions.unavailable", "workspace.closed")

_REF = "#/components/schemas/{name}"
_METHODS = ("get", "put", "post", "delete")
"""Methods that OpenAPI 3.1 can describe."""
_ERROR = {
    "type": "object",
    "description": "An error.",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "code": {"type": "string", "description": "Stable; the wording is not."},
                "message": {"type": "string"},
                "path": {"type": ["string", "null"], "description": "As requested."},
                "retry": {"type": "boolean", "description": "Whether the same call may succeed later."},
                "version": {"type": "string", "description": "The current version of the file."},
                "limit": {"type": "number"},
                "asked": {"type": "number"},
                "field": {"type": "string"},
                "position": {"type": "integer"},
                "retry_after_seconds": {"type": "number"},
            },
            "required": ["code", "message", "path", "retry"],
        }
    },
    "required": ["error"],
}
_ROLE = {
    "name": "Carrel-Role",
    "in": "header",
    "required": False,
    "description": "The role to act in, one of those that the caller may choose.",
    "schema": {"type": "string"},
}
_PARAMETERS = {
    "session_id": "The session.",
    "path": "A path in the workspace; slashes may be written as %2F.",
    "tool": "The name of a tool.",
    "execution_id": "The id returned when the execution was started.",
}


def describe(routes: Iterable[Route], version: str) -> Document:
    """Return the OpenAPI document."""
    shown = list(routes)
    writer = _Writer(shown)
    paths: dict[str, Document] = defaultdict(dict)
    for route in shown:
        if route.name == "operation":
            writer.add_operations(paths, route)
        else:
            writer.add(paths, route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "carrel",
            "version": version,
            "summary": "Sessions with confined workspaces: files, commands, code and tools.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": dict(paths),
        "components": {
            "schemas": writer.components,
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "An API key, or a token (JWT)."}
            },
        },
        # Optional, because `serve.require_key` may be off.
        "security": [{"key": []}, {}],
        "tags": [{"name": name} for name in dict.fromkeys(route.group for route in shown)],
    }


class _Writer:
    """Describes routes one by one."""

    def __init__(self, routes: list[Route]) -> None:
        kinds = list(dict.fromkeys(kind for route in routes for kind in _types(route)))
        # `schemas` adds the version to the schema of a file, so it takes precedence.
        self._operations, operation_parts = schemas(_REF)
        found, parts = msgspec.json.schema_components(kinds, ref_template=_REF)
        self._schemas = dict(zip(kinds, found, strict=True))
        self.components: Document = {**parts, **operation_parts, "Error": _ERROR}

    def add(self, paths: dict[str, Document], route: Route) -> None:
        """Describe one route."""
        item = paths[route.path.replace("*}", "}")]
        method = route.method.lower()
        if method in _METHODS:
            item[method] = self._operation(route)
        else:
            # An extension, since OpenAPI 3.1 cannot describe other methods.
            item.setdefault("x-methods", {})[route.method] = self._operation(route)

    def add_operations(self, paths: dict[str, Document], route: Route) -> None:
        """Describe the route of the operations, once for each operation."""
        for name, row in OPERATIONS.items():
            parameters, result = self._operations[name]
            document = self._operation(route)
            document["operationId"] = f"operation_{name}"
            document["summary"] = row.summary
            document["parameters"] = [each for each in document["parameters"] if each["name"] != "operation"]
            document["requestBody"] = {
                "required": bool(_required(self.components, parameters)),
                "content": {"application/json": {"schema": parameters}},
            }
            document["responses"]["200"]["content"] = {"application/json": {"schema": result}}
            paths[route.path.replace("{operation}", name)] = {"post": document}

    def _operation(self, route: Route) -> Document:
        document: Document = {
            "operationId": route.name,
            "summary": route.summary,
            "tags": [route.group],
            "parameters": [*_path_parameters(route), *self._query(route), *_headers(route)],
            "responses": self._responses(route),
        }
        if route.body is not None:
            document["requestBody"] = {
                "required": route.body.is_required,
                "content": self._contents((route.body,)),
            }
        if route.is_open:
            document["security"] = []
        return document

    def _query(self, route: Route) -> list[Document]:
        schema = _resolved(self.components, self._schemas[route.query])
        required = schema.get("required", ())
        return [
            {
                "name": name,
                "in": "query",
                "required": name in required,
                "schema": part,
                **({"style": "form", "explode": True} if part.get("type") == "array" else {}),
            }
            for name, part in schema.get("properties", {}).items()
        ]

    def _responses(self, route: Route) -> Document:
        responses = {str(reply.status): self._response(reply) for reply in route.replies}
        for status, codes in _errors(route).items():
            content = {"application/json": {"schema": {"$ref": _REF.format(name="Error")}}}
            meaning = f"{HTTPStatus(status).phrase}: " + ", ".join(f"`{code}`" for code in codes)
            if str(status) in responses:
                _merge(responses[str(status)], content, meaning)
            else:
                responses[str(status)] = {"description": meaning, "content": content}
        return dict(sorted(responses.items()))

    def _response(self, reply: ResponseSpec) -> Document:
        document: Document = {"description": reply.meaning}
        if reply.contents:
            document["content"] = self._contents(reply.contents)
        if reply.headers:
            document["headers"] = {name: {"schema": {"type": "string"}} for name in reply.headers}
        return document

    def _contents(self, contents: Iterable[BodySpec]) -> Document:
        return {kind: self._media(content) for content in contents for kind in content.media_types}

    def _media(self, content: BodySpec) -> Document:
        if content.schema is None:
            return {}
        if isinstance(content.schema, type):
            return {"schema": self._schemas[content.schema]}
        return {"schema": dict(content.schema)}


def _types(route: Route) -> Iterable[type]:
    yield FileInfo
    yield route.query
    contents = [content for reply in route.replies for content in reply.contents]
    if route.body is not None:
        contents.append(route.body)
    for content in contents:
        if isinstance(content.schema, type):
            yield content.schema


def _errors(route: Route) -> dict[int, list[str]]:
    codes = [*COMMON_ERRORS, *route.errors]
    if not route.is_open:
        codes += CALLER_ERRORS
    if route.has_session:
        codes += SESSION_ERRORS
    found: dict[int, list[str]] = defaultdict(list)
    for code in dict.fromkeys(codes):
        found[error_status(code).http_status].append(code)
    if any(header.name == "Range" for header in route.headers):
        found[416].append("request.invalid")
    return {status: sorted(found[status]) for status in sorted(found)}


def _path_parameters(route: Route) -> list[Document]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _PARAMETERS.get(name, "The name of an operation."),
            "schema": {"type": "string", "minLength": 1},
        }
        for name in parameter_names(route.path)
    ]


def _headers(route: Route) -> list[Document]:
    found: list[Document] = [
        {
            "name": header.name,
            "in": "header",
            "required": False,
            "description": header.meaning,
            "schema": dict(header.schema),
        }
        for header in route.headers
    ]
    return [*found, _ROLE] if route.has_session else found


def _merge(response: Document, content: Document, meaning: str) -> None:
    """Add an error to the description of a status that is also used for a successful response."""
    response["description"] += f" {meaning}"
    ours, theirs = response["content"]["application/json"], content["application/json"]["schema"]
    ours["schema"] = {"anyOf": [ours["schema"], theirs]}


def _resolved(components: Document, schema: Document) -> Document:
    reference = schema.get("$ref")
    return schema if reference is None else components[reference.rpartition("/")[2]]


def _required(components: Document, schema: Document) -> list[str]:
    """Return the required fields of a body."""
    return list(_resolved(components, schema).get("required", ()))
