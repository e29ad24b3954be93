"""The page about HTTP."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass

import carrel.audit.event
import carrel.runtimes.result
import carrel.service.sessions.info
import carrel.shell.result
import carrel.values
import carrel.workspace.archive.extract
from carrel.fronts.http.handlers import changes, executions, files, status
from carrel.fronts.http.openapi import CALLER_ERRORS, COMMON_ERRORS, SESSION_ERRORS, describe
from carrel.fronts.http.router import Route
from carrel.fronts.http.routes import ROUTES
from carrel.tools.core.schema import Schema
from docs.reference_pages.markdown import bullets, codes, page, paragraph, table, wrapped
from docs.reference_pages.schema import default_of, schema_type
from docs.reference_pages.source import field_words


def make() -> str:
    """The page about HTTP."""
    document = describe(ROUTES, "", with_defaults=True)
    rows = list(http_rows(document))
    parts = document["components"]["schemas"]
    return page(
        "HTTP",
        """
        The HTTP interface of `carrel serve`; see [run the service](../how-to/serve.md).
        `/openapi.json` describes it in OpenAPI 3.1. MCP is at `/mcp`, described on [its own page](mcp.md).
        """,
        bullets(
            "A caller sends its key as `Authorization: Bearer KEY`, and may choose a role of its key with"
            " the header `Carrel-Role`.",
            "A path in a URL is decoded once. Anything still encoded then is part of a name.",
            'An error is `{"error": {"code", "message", "path", "retry"}}` with the status of the'
            " [table of errors](errors.md), and with `Retry-After` if waiting may help.",
            f"Every route may answer with {codes(COMMON_ERRORS)}; one that needs a caller also with"
            f" {codes(CALLER_ERRORS)}; one about a session also with {codes(SESSION_ERRORS)}."
            " Other likely errors are listed with the route.",
            "Every answer has `X-Request-Id`: that of the request, or a generated one.",
        ),
        table(
            ("request", "does"),
            [(f"[`{row.method} {row.path}`](#{row.anchor})", row.says["summary"]) for row in rows],
        ),
        *(part for row in rows for part in http_parts(row, {route.name: route for route in ROUTES}, parts)),
        "## Values",
        "Optional fields may be missing in a request; an answer has all fields.",
        *(
            part
            for name, schema in sorted(parts.items())
            if not name.endswith(("Query", "Arguments", "Body"))
            for part in value_parts(name, schema)
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRow:
    """One route, and what the description says about it."""

    method: str
    path: str
    says: Schema

    @property
    def anchor(self) -> str:
        """What its heading is called."""
        return str(self.says["operationId"])


def http_rows(document: Schema) -> Iterator[HttpRow]:
    """The routes in the order of the description."""
    for path, item in document["paths"].items():
        found = {**item, **item.get("x-methods", {})}
        for method, says in found.items():
            if not method.startswith("x-"):
                yield HttpRow(method=method.upper(), path=path, says=says)


def http_parts(row: HttpRow, routes: dict[str, Route], parts: Schema) -> Iterator[str]:
    """One route: its parameters, body and answers."""
    yield f"## {row.anchor}"
    yield f"`{row.method} {row.path}`"
    yield f"{row.says['summary'].rstrip('.')}."
    route = routes.get(row.anchor, routes["operation"])
    words = field_words(route.query)
    fields: list[tuple[str, ...]] = [
        (
            f"`{each['name']}`",
            each["in"],
            schema_type(each["schema"]),
            "required" if each["required"] else default_of(each["schema"]),
            each.get("description", "") or words.get(each["name"], ""),
        )
        for each in row.says["parameters"]
        if each["name"] not in ("session_id", "Carrel-Role")
    ]
    body = row.says.get("requestBody")
    for kind, content in body["content"].items() if body else ():
        schema = content.get("schema", {})
        schema = parts[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        fields += list(body_rows(schema, field_words(route.body and route.body.schema))) or [
            ("", "body", f"`{kind}`", "required", "")
        ]
    if fields:
        yield table(("name", "in", "type", "default", "meaning"), fields)
    yield table(
        ("answer", "meaning", "body"),
        [
            (status, says["description"].partition(". Not ")[0], bodies_of(says))
            for status, says in row.says["responses"].items()
            if int(status) < 400
        ],
    )
    if route.errors:
        yield f"Errors: {codes(sorted(route.errors))}."


def body_rows(schema: Schema, words: dict[str, str]) -> Iterator[tuple[str, ...]]:
    """The fields of a body in JSON."""
    for name, part in schema.get("properties", {}).items():
        is_needed = name in schema.get("required", ())
        says = part.get("description", "") or words.get(name, "")
        yield f"`{name}`", "body", schema_type(part), "required" if is_needed else default_of(part), says


def value_parts(name: str, schema: Schema) -> Iterator[str]:
    """A type of requests and answers."""
    yield f"### {name}"
    if "description" in schema:
        yield wrapped(paragraph(schema["description"].partition("\n\n")[0]))
    if "enum" in schema:
        yield f"One of {schema_type(schema)}."
        return
    words = field_words(kinds_of_values().get(name.removesuffix("Input")))
    yield table(("field", "type", "meaning"), list(value_rows(schema, words)))


def value_rows(schema: Schema, words: dict[str, str], within: str = "") -> Iterator[tuple[str, ...]]:
    """A row for each field, and for those of an object that has no name of its own."""
    for name, part in schema.get("properties", {}).items():
        yield f"`{within}{name}`", schema_type(part), part.get("description", "") or words.get(name, "")
        yield from value_rows(part, {}, f"{within}{name}.")


def kinds_of_values() -> dict[str, type]:
    """The classes of what is in answers, by name."""
    modules = (
        carrel.audit.event,
        carrel.runtimes.result,
        carrel.service.sessions.info,
        carrel.shell.result,
        carrel.values,
        carrel.workspace.archive.extract,
        changes,
        executions,
        files,
        status,
    )
    return {name: kind for module in modules for name, kind in inspect.getmembers(module, inspect.isclass)}


def bodies_of(says: Schema) -> str:
    """What an answer may hold."""
    shown = []
    for kind, content in says.get("content", {}).items():
        schema = content.get("schema", {})
        is_json = kind == "application/json" and schema
        shown.append(schema_type(schema) if is_json else f"`{kind}`")
    return " or ".join(shown)
