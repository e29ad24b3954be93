"""A client of the SDK that tests use without waiting themselves."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent

from carrel.service.service import Service

T = TypeVar("T")

LEGACY, MODERN = "legacy", "auto"
"""Both eras: the older protocol with its handshake, and whatever is newest."""


@dataclass(frozen=True, slots=True)
class Talk:
    """A connection to a server."""

    portal: BlockingPortal
    client: Client

    def run(
        self, work: Callable[..., Coroutine[Any, Any, T]], *args: Any, **named: Any
    ) -> T:  # Any: as *work*
        """What *work* gives, done where the client lives."""
        answer: T = self.portal.call(partial(work, *args, **named))
        return answer

    def call(self, tool: str, **arguments: Any) -> CallToolResult:  # Any: whatever JSON can say
        return self.run(self.client.call_tool, tool, arguments)

    def envelope(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """What the answer of a tool tells a program."""
        answer = self.call(tool, **arguments)
        envelope: dict[str, Any] = answer.structured_content
        assert answer.is_error is not envelope["success"]
        return envelope

    def output(self, tool: str, **arguments: Any) -> Any:
        """What a tool gives that succeeds."""
        envelope = self.envelope(tool, **arguments)
        assert envelope["success"], envelope
        return envelope["output"]

    def code(self, tool: str, **arguments: Any) -> str:
        """The code of the error of a tool that fails."""
        envelope = self.envelope(tool, **arguments)
        assert not envelope["success"], envelope
        return str(envelope["metadata"]["code"])

    def text(self, tool: str, **arguments: Any) -> str:
        """What a model reads."""
        (content,) = self.call(tool, **arguments).content
        assert isinstance(content, TextContent)
        return content.text

    @property
    def tools(self) -> list[str]:
        return [tool.name for tool in self.run(self.client.list_tools).tools]

    def read(self, uri: str) -> str:
        """The text of a resource, or its base64."""
        (contents,) = self.run(self.client.read_resource, uri).contents
        return contents.text if hasattr(contents, "text") else contents.blob

    def refusal(self, uri: str) -> dict[str, Any]:
        """What is said about a resource that cannot be read."""
        try:
            found = self.read(uri)
        except MCPError as error:
            data: dict[str, Any] = error.data
            return data
        raise AssertionError(f"{uri!r} was read: {found!r}")


@contextmanager
def talking(
    server: Any,  # Any: whatever the client of the SDK connects to
    mode: str = MODERN,
    *,
    service: Service | None = None,
    **options: Any,  # Any: whatever it takes
) -> Iterator[Talk]:
    """A client of *server* in a thread of its own, in which *service* lives if the server needs one."""
    with ExitStack() as ends:
        portal = ends.enter_context(start_blocking_portal())
        if service is not None:
            ends.enter_context(portal.wrap_async_context_manager(service))
        client = Client(server, mode=mode, **options)
        yield Talk(portal, ends.enter_context(portal.wrap_async_context_manager(client)))


def command(sessions: Path, *words: str, env: Mapping[str, str] | None = None) -> StdioServerParameters:
    """`carrel mcp`, as a client starts it."""
    return StdioServerParameters(
        command=sys.executable,
        args=["-W", "error", "-m", "carrel", "--sessions-dir", str(sessions), "mcp", *words],
        env={**os.environ, **(env or {})},
    )
