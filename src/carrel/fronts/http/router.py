"""`Route` describes a route, and `Router` finds the routes of a path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from msgspec import Struct

if TYPE_CHECKING:
    from carrel.fronts.http.request import PendingResponse, Request

Handler = Callable[["Request"], "PendingResponse"]
Schema = Mapping[str, Any]  # Any: any JSON Schema


class NoQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """No query parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderSpec:
    """A request header that a route uses."""

    name: str
    meaning: str
    schema: Schema = field(default_factory=lambda: {"type": "string"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BodySpec:
    """The body of a request or a response."""

    schema: Schema | type | None = None
    """A JSON Schema, or a type for its schema; `None` for any bytes."""
    media_types: tuple[str, ...] = ("application/json",)
    is_required: bool = True
    """Whether a request must have the body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseSpec:
    """One of the responses to a successful request."""

    status: int
    meaning: str
    contents: tuple[BodySpec, ...] = ()
    headers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A method and path, its handler, and its description for OpenAPI."""

    name: str
    method: str
    path: str
    """Parameters are in braces; a last one with a star matches the rest, including slashes."""
    summary: str
    handler: Handler
    replies: tuple[ResponseSpec, ...]
    group: str
    query: type[Struct] = NoQuery
    headers: tuple[HeaderSpec, ...] = ()
    body: BodySpec | None = None
    errors: tuple[str, ...] = ()
    """Error codes, besides those of every route."""
    is_open: bool = False
    """Whether the route needs no authentication."""
    is_lasting: bool = False
    """Whether the request timeout does not apply; the handler then limits its time itself."""

    has_session: bool = field(init=False)
    """Whether the path contains a session."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "has_session", "{session_id}" in self.path)


Methods = dict[str, Route]
_REST = "*"


@dataclass(slots=True)
class _Node:
    """The routes with a common prefix of their paths."""

    literals: dict[bytes, _Node] = field(default_factory=dict)
    parameter: _Node | None = None
    methods: Methods = field(default_factory=dict)
    rest: Methods = field(default_factory=dict)
    """Routes whose last parameter matches the rest of the path."""


class Router:
    """Finds the routes of a raw path, which is split at slashes first and then decoded once."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._top = _Node()
        for route in routes:
            self._add(route)

    def _add(self, route: Route) -> None:
        node = self._top
        for part in route.path.split("/")[1:]:
            if not part.startswith("{"):
                node = node.literals.setdefault(part.encode("ascii"), _Node())
            elif part.endswith("*}"):
                node.rest[route.method] = route
                return
            else:
                node.parameter = node.parameter or _Node()
                node = node.parameter
        node.methods[route.method] = route

    def find(self, raw_path: bytes) -> tuple[Methods, list[str]]:
        """Return the routes at a path by method, which may be none, and the values of its parameters."""
        node = self._top
        values: list[str] = []
        rest: bytes | None = raw_path[1:]
        while rest is not None:
            part, slash, following = rest.partition(b"/")
            literal = node.literals.get(unquote_to_bytes(part) if b"%" in part else part)
            if literal is not None:
                node = literal
            elif node.rest:
                values.append(decode_path_part(rest))
                return node.rest, values
            elif node.parameter is not None:
                node = node.parameter
                values.append(decode_path_part(part))
            else:
                return {}, []
            rest = following if slash else None
        return node.methods, values


def decode_path_part(part: bytes) -> str:
    """Decode a part of a URL once; bytes that are not UTF-8 become surrogates, as in file names."""
    if b"%" in part:
        part = unquote_to_bytes(part)
    return part.decode("utf-8", "surrogateescape")


def parameter_names(path: str) -> list[str]:
    """Return the names of the parameters in the path of a route."""
    return [part[1:-1].rstrip(_REST) for part in path.split("/") if part.startswith("{")]
