"""Run a workspace operation by name, and search files."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from carrel.fronts.http.request import Request, encode
from carrel.remote.json_codec import render


class SearchQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to search for."""

    query: str
    path: str = "."
    regex: bool = True
    ignore_case: bool = False
    include: list[str] = []
    hidden: bool = False
    context: int = 0


async def run(request: Request) -> None:
    """Run one operation of the table."""
    await _run(request, request.path_values[1], await request.document(dict[str, Any]))


async def search(request: Request) -> None:
    """Search files: the operation `search`, with the arguments in the query."""
    query = request.query(SearchQuery)
    arguments = {name: getattr(query, name) for name in query.__struct_fields__}
    await _run(request, "search", arguments)


async def _run(request: Request, operation: str, arguments: dict[str, Any]) -> None:
    body = await request.app.service.call(
        request.acting, request.session_id, operation, arguments, render=lambda result: encode(render(result))
    )
    await request.send_encoded_json(200, body)
