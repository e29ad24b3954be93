"""The generated pages, with the function that renders each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from docs.reference_pages import api, cli, commands, errors, events, grpc, http, limits, mcp, settings, tools

DOCS = Path(__file__).parent.parent

PAGES: dict[str, Callable[[], str]] = {
    f"reference/{module.__name__.rpartition('.')[2]}.md": module.make
    for module in (api, cli, commands, errors, events, grpc, http, limits, mcp, settings, tools)
}
