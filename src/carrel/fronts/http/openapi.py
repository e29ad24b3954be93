"""The OpenAPI 3.1 description, generated from the tables of routes and operations.

Programs generate typed clients from it: an answer has all its fields, a field of a request may be omitted
unless it is required, and an object without listed fields may have any.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Any

import msgspec

from carrel.fronts.http.router import BodySpec, ResponseSpec, Route, parameter_names
from carrel.runtimes.result import SandboxResult
from carrel.service.error_status import error_status
from carrel.service.operations import OPERATIONS
from carrel.shell.result import ShellResult
from carrel.values import FileInfo

Document = dict[str, Any]  # Any: any JSON
Schemas = dict[Any, Document]  # Any: types, which have no type of their own

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
_GROUPS = {
    "sessions": "Create, inspect, extend and delete sessions.",
    "files": "Read and change the files of a session.",
    "operations": "Run one operation of a workspace, with its arguments as JSON.",
    "archives": "Download and upload directories.",
    "tools": "Tools for agents, as a role and a profile offer them.",
    "execution": "Run command lines and code.",
    "changes": "Read the journal.",
    "service": "The state of the service.",
}
_ADDED: dict[str, Document] = {
    "FileInfo": {
        "version": {"type": "string", "description": "Changes whenever the content is replaced or changed."}
    },
    "SandboxResult": {"workspace_path": {"type": "string", "description": "Always `/workspace`."}},
    "ShellResult": {
        "success": {"type": "boolean", "description": "Whether the exit status is 0."},
        "stdout": {"type": "string"},
        "stderr": {"type": "string"},
        "encoding": {
            "type": "string",
            "enum": ["utf-8", "base64"],
            "description": "Encoding of `stdout` and `stderr`: `utf-8`, or `base64` if one is not text.",
        },
    },
}
"""Fields that values have in JSON besides their own, or that have another type there."""
_PARAMETERS = {
    "session_id": "The session.",
    "path": "A path in the workspace; slashes may be written as %2F.",
    "tool": "The name of a tool.",
    "execution_id": "The id returned when the execution was started.",
}


def describe(routes: Iterable[Route], version: str, *, with_defaults: bool = False) -> Document:
    """Return the OpenAPI document.

    Defaults of fields in the bodies of requests are in their descriptions, since generators of clients take a
    field with a `default` for one that is always there; *with_defaults* keeps them.
    """
    shown = list(routes)
    writer = _Writer(shown)
    paths: dict[str, Document] = defaultdict(dict)
    for route in shown:
        if route.name == "operation":
            writer.add_operations(paths, route)
        else:
            writer.add(paths, route)
    components = writer.used_components(paths)
    if not with_defaults:
        _hide_defaults(components)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "carrel",
            "version": version,
            "summary": "Sessions with confined workspaces: files, commands, code and tools.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        # Relative to the address of this document.
        "servers": [{"url": "/", "description": "The service that sent this description."}],
        "paths": dict(paths),
        "components": {
            "schemas": components,
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "An API key, or a token (JWT)."}
            },
        },
        # Optional, because `serve.require_key` may be off.
        "security": [{"key": []}, {}],
        "tags": [{"name": name, "description": meaning} for name, meaning in _GROUPS.items()],
    }


class _Writer:
    """Describes routes one by one."""

    def __init__(self, routes: list[Route]) -> None:
        requests, self._requests = _schemas(
            [*_request_types(routes), *(row.parameters for row in OPERATIONS.values())]
        )
        answers, self._answers = _schemas(
            [*_answer_types(routes), *(row.result for row in OPERATIONS.values())]
        )
        for name, schema in answers.items():
            _complete(schema, _ADDED.get(name, {}))
        for name in [name for name, schema in requests.items() if answers.get(name, schema) != schema]:
            # A request may omit what the answer always has.
            requests[f"{name}Input"] = {**requests.pop(name), "title": f"{name}Input"}
            _rename((requests, self._requests), name)
        self.components: Document = {**requests, **answers, "Error": _ERROR}
        for part in (self.components, self._requests, self._answers):
            _open_objects(part)

    def used_components(self, paths: Document) -> Document:
        """Return the schemas that *paths* refer to, directly or not."""
        used: set[str] = set()
        found = [paths]
        while found:
            names = {name for part in found for name in _references(part)} - used
            used |= names
            found = [self.components[name] for name in names]
        return {name: schema for name, schema in self.components.items() if name in used}

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
            parameters, result = self._requests[row.parameters], self._answers[row.result]
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
                "content": self._contents((route.body,), self._requests),
            }
        if route.is_open:
            document["security"] = []
        return document

    def _query(self, route: Route) -> list[Document]:
        schema = _resolved(self.components, self._requests[route.query])
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
            document["content"] = self._contents(reply.contents, self._answers)
        if reply.headers:
            document["headers"] = {name: {"schema": {"type": "string"}} for name in reply.headers}
        return document

    def _contents(self, contents: Iterable[BodySpec], schemas: Schemas) -> Document:
        return {kind: self._media(content, schemas) for content in contents for kind in content.media_types}

    def _media(self, content: BodySpec, schemas: Schemas) -> Document:
        if content.schema is None:
            return {}
        if isinstance(content.schema, type):
            return {"schema": schemas[content.schema]}
        schema = dict(content.schema)
        name = schema.get("title")
        if name is None:
            return {"schema": schema}
        self.components[name] = schema
        return {"schema": {"$ref": _REF.format(name=name)}}


def _request_types(routes: list[Route]) -> Iterator[type]:
    for route in routes:
        yield route.query
        if route.body is not None and isinstance(route.body.schema, type):
            yield route.body.schema


def _answer_types(routes: list[Route]) -> Iterator[type]:
    yield from (FileInfo, SandboxResult, ShellResult)
    contents = (content for route in routes for reply in route.replies for content in reply.contents)
    yield from (content.schema for content in contents if isinstance(content.schema, type))


def _schemas(kinds: Iterable[Any]) -> tuple[Document, Schemas]:  # Any: types, which have no type of their own
    """Return the shared schemas by name, and the schema of each type."""
    wanted = list(dict.fromkeys(kinds))
    found, components = msgspec.json.schema_components(wanted, schema_hook=_object_schema, ref_template=_REF)
    for schema in components.values():
        if "description" in schema:
            schema["description"] = schema["description"].partition("\n\n")[0]
    return components, dict(zip(wanted, found, strict=True))


def _object_schema(kind: type) -> Document:
    """Return the schema of `object`, which stands for any JSON value."""
    if kind is object:
        return {"description": "Any JSON value."}
    raise NotImplementedError


def _complete(schema: Document, added: Document) -> None:
    """Require all fields of an answer, except those that `UNSET` omits."""
    fields = schema.get("properties")
    if fields is None:
        return
    required = [name for name in fields if name in schema["required"] or "default" in fields[name]]
    for field in fields.values():
        field.pop("default", None)
    fields |= added
    schema["required"] = list(dict.fromkeys([*required, *added]))


def _hide_defaults(components: Document) -> None:
    """Move the defaults of fields into their descriptions."""
    for schema in components.values():
        for field in schema.get("properties", {}).values():
            if "default" in field:
                default = f"Default: `{json.dumps(field.pop('default'))}`."
                field["description"] = f"{field.get('description', '')} {default}".lstrip()


def _rename(parts: Any, name: str) -> None:  # Any: any JSON, and a tuple of it
    """Refer to the schema of requests instead of the schema *name*."""
    for each in _objects(parts):
        if each.get("$ref") == _REF.format(name=name):
            each["$ref"] = _REF.format(name=f"{name}Input")


def _open_objects(parts: Any) -> None:  # Any: any JSON
    """Say of every object without listed fields that it may have any, and of every enum of texts its type."""
    for each in _objects(parts):
        if each.get("type") == "object" and not each.keys() & {"properties", "additionalProperties"}:
            each["additionalProperties"] = True
        if "type" not in each and all(isinstance(value, str) for value in each.get("enum", [None])):
            each["type"] = "string"


def _references(part: Any) -> Iterator[str]:  # Any: any JSON
    """Yield the names of the schemas that *part* refers to."""
    for each in _objects(part):
        if isinstance(each.get("$ref"), str):
            yield each["$ref"].rpartition("/")[2]


def _objects(part: Any) -> Iterator[Document]:  # Any: any JSON, and a tuple of it
    """Yield all objects in *part*, and itself if it is one."""
    if isinstance(part, dict):
        yield part
    if isinstance(part, dict | list | tuple):
        for each in list(part.values() if isinstance(part, dict) else part):
            yield from _objects(each)


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
