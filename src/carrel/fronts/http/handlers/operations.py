"""Call a workspace operation by its name, and search files."""

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


async def run(call: Request) -> None:
    """Do one operation of the table."""
    await _answer(call, call.values[1], await call.document(dict[str, Any]))


async def search(call: Request) -> None:
    """Find lines; the operation of the same name, with the arguments in the query."""
    query = call.query(SearchQuery)
    arguments = {name: getattr(query, name) for name in query.__struct_fields__}
    await _answer(call, "search", arguments)


async def _answer(call: Request, operation: str, arguments: dict[str, Any]) -> None:
    body = await call.app.service.call(
        call.who, call.session_id, operation, arguments, render=lambda result: encode(render(result))
    )
    await call.json_text(200, body)
