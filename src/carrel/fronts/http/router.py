"""`Route` describes one route, `Router` finds the route of a path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from msgspec import Struct

if TYPE_CHECKING:
    from carrel.fronts.http.request import PendingResponse, Request

Handler = Callable[["Request"], "PendingResponse"]
Schema = Mapping[str, Any]  # Any: whatever JSON Schema says


class NoQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nothing can be asked in the query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderSpec:
    """A header of a request that a route makes use of."""

    name: str
    meaning: str
    schema: Schema = field(default_factory=lambda: {"type": "string"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BodySpec:
    """A body, of a request or of an answer."""

    schema: Schema | type | None = None
    """A type stands for the JSON that says it; `None` for any bytes."""
    media_types: tuple[str, ...] = ("application/json",)
    is_required: bool = True
    """Of a request, whether it must have one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseSpec:
    """One way in which a request is answered when all went well."""

    status: int
    meaning: str
    contents: tuple[BodySpec, ...] = ()
    headers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Everything about one route: how it is found, done and described."""

    name: str
    method: str
    path: str
    """With names in braces; a last one with a star takes the rest, slashes and all."""
    summary: str
    handler: Handler
    replies: tuple[ResponseSpec, ...]
    group: str
    query: type[Struct] = NoQuery
    headers: tuple[HeaderSpec, ...] = ()
    body: BodySpec | None = None
    errors: tuple[str, ...] = ()
    """Codes, besides those that every route may answer with."""
    is_open: bool = False
    """Whether a caller need not be known."""
    is_lasting: bool = False
    """Whether it may take longer than other requests; then it looks after time itself."""

    has_session: bool = field(init=False)
    """Whether it is about one session."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "has_session", "{session_id}" in self.path)


Methods = dict[str, Route]
_REST = "*"


@dataclass(slots=True)
class _Node:
    """The routes whose paths begin alike."""

    literals: dict[bytes, _Node] = field(default_factory=dict)
    named: _Node | None = None
    methods: Methods = field(default_factory=dict)
    rest: Methods = field(default_factory=dict)
    """Routes that take all that follows."""


class Router:
    """Finds the routes of a path; each part of it is decoded once, after it was told from the others."""

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
                node.named = node.named or _Node()
                node = node.named
        node.methods[route.method] = route

    def find(self, raw_path: bytes) -> tuple[Methods, list[str]]:
        """The routes at a path by their methods, none if there is nothing, and the texts of its names."""
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
            elif node.named is not None:
                node = node.named
                values.append(decode_path_part(part))
            else:
                return {}, []
            rest = following if slash else None
        return node.methods, values


def decode_path_part(part: bytes) -> str:
    """Text from a part of a URL, decoded once; bytes that are not UTF-8 stay what they are."""
    if b"%" in part:
        part = unquote_to_bytes(part)
    return part.decode("utf-8", "surrogateescape")


def parameter_names(path: str) -> list[str]:
    """The names in the path of a route."""
    return [part[1:-1].rstrip(_REST) for part in path.split("/") if part.startswith("{")]
