"""Tool results and errors as MCP messages."""

from __future__ import annotations

from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from carrel.audit.logger import SandboxLogger
from carrel.errors import CarrelError
from carrel.fronts.mcp.resource_uri import render_uri
from carrel.remote.json_codec import render_error
from carrel.service.error_status import ExitStatus, error_status
from carrel.tools.core.advice import Adviser
from carrel.tools.core.spec import Profile
from carrel.values import ToolResult

MEDIA_TOOL = "read_media_file"
_ADVISER = Adviser({})

Document = dict[str, Any]  # Any: any JSON


def failure_result(error: CarrelError) -> ToolResult:
    """Return a failed result for an error outside of any tool."""
    return _ADVISER.failure(error)


def render_result(result: ToolResult, profile: str, name: str) -> Document:
    """Render a result as text for a model, and as an envelope for programs.

    In the profile of the reference server the envelope has `content` instead of `output`, as there. The
    document may contain lone surrogates; see `replace_surrogates`.
    """
    envelope = result.to_dict()
    # They are in the content.
    envelope.pop("model_text", None)
    envelope.pop("images", None)
    content: list[Document] = result.content("mcp")
    if profile == Profile.MCP and result.success:
        output = envelope.pop("output")
        if name == MEDIA_TOOL:
            content = [_media(result)]
        envelope = {"content": content if name == MEDIA_TOOL else output, **envelope}
    return {"content": content, "structuredContent": envelope, "isError": not result.success}


def _media(result: ToolResult) -> Document:
    """Render an image or audio as such, and anything else as an embedded resource."""
    data, kind = str(result.output), str(result.metadata["media_type"])
    family = kind.partition("/")[0]
    if family in ("image", "audio"):
        return {"type": family, "data": data, "mimeType": kind}
    path = str(result.metadata["path"]).removeprefix("/workspace/")
    return {"type": "resource", "resource": {"uri": render_uri(None, path), "mimeType": kind, "blob": data}}


def replace_surrogates(value: Any) -> Any:  # Any: any JSON
    """Escape lone surrogates, which a file name may contain and UTF-8 cannot encode."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {replace_surrogates(key): replace_surrogates(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [replace_surrogates(each) for each in value]
    return value


def mcp_error(error: Exception, request: str, logger: SandboxLogger) -> MCPError:
    """Return the error for a client; an unexpected one is logged, and its details stay in the log."""
    if isinstance(error, MCPError):
        return error
    if isinstance(error, CarrelError):
        row = error_status(error.code)
        code = INTERNAL_ERROR if row.exit_status is ExitStatus.UNAVAILABLE else INVALID_PARAMS
        return MCPError(code, error.message, render_error(error, retry=row.retry))
    logger.log_failure("mcp.failed", error, request=request)
    return MCPError(INTERNAL_ERROR, "Internal server error")
