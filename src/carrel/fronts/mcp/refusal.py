"""Errors as the protocol has them."""

from __future__ import annotations

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from carrel.audit.logger import SandboxLogger
from carrel.errors import CarrelError
from carrel.remote.forms import render_error
from carrel.service.wire import ExitStatus, wire


def refusal(error: Exception, request: str, logger: SandboxLogger) -> MCPError:
    """What a client is told of *error*; a mistake of ours is logged, and the client learns nothing of it."""
    if isinstance(error, MCPError):
        return error
    if isinstance(error, CarrelError):
        row = wire(error.code)
        code = INTERNAL_ERROR if row.exit_status is ExitStatus.UNAVAILABLE else INVALID_PARAMS
        return MCPError(code, error.message, render_error(error, retry=row.retry))
    logger.log_failure("mcp.failed", error, request=request)
    return MCPError(INTERNAL_ERROR, "Internal server error")
