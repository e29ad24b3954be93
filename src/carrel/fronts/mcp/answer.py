"""The answer of a tool as the protocol has it."""

from __future__ import annotations

from typing import Any

from carrel.errors import CarrelError
from carrel.fronts.mcp.address import render
from carrel.tools.advice import Adviser
from carrel.tools.result import ToolResult
from carrel.tools.spec import Profile

MEDIA_TOOL = "read_media_file"
_PLAIN = Adviser({})

Document = dict[str, Any]  # Any: whatever JSON can say


def failed(error: CarrelError) -> ToolResult:
    """The answer that tells of an error outside of any tool."""
    return _PLAIN.failure(error)


def answer(result: ToolResult, profile: str, name: str) -> Document:
    """What a client gets: a text to read, and the envelope for programs.

    The tools of the reference server give their programs `content` instead of `output`, as it does. What
    `writable` is for may be in it.
    """
    envelope = result.to_dict()
    text = result.text()
    content: list[Document] = [{"type": "text", "text": text}]
    if profile == Profile.MCP and result.success:
        del envelope["output"]
        if name == MEDIA_TOOL:
            content = [_media(result)]
        envelope = {"content": content if name == MEDIA_TOOL else text, **envelope}
    return {"content": content, "structuredContent": envelope, "isError": not result.success}


def _media(result: ToolResult) -> Document:
    """An image or a sound as such, anything else as a file."""
    data, kind = str(result.output), str(result.metadata["media_type"])
    family = kind.partition("/")[0]
    if family in ("image", "audio"):
        return {"type": family, "data": data, "mimeType": kind}
    path = str(result.metadata["path"]).removeprefix("/workspace/")
    return {"type": "resource", "resource": {"uri": render(None, path), "mimeType": kind, "blob": data}}


def writable(value: Any) -> Any:  # Any: whatever JSON can say
    """The same without half surrogates, which a name may hold and UTF-8 cannot."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {writable(key): writable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [writable(each) for each in value]
    return value
