"""The access log: one line of JSON per request."""

from __future__ import annotations

import asyncio
import logging
import time

import msgspec

from carrel.fronts.http.request import CLIENT_CLOSED_REQUEST, Request
from carrel.fronts.request_log import LOGGER

PAUSE_SECONDS = 0.02
"""Lines within this interval are passed to the logger as one record, which costs more than a line."""


class _AccessLogRecord(msgspec.Struct, kw_only=True, tag_field="event", tag="http.request"):
    """One line of the log."""

    request_id: str
    method: str
    route: str | None
    status: int
    ms: float
    bytes: int
    caller: str | None
    tenant: str | None
    session: str | None
    peer: str | None


_encode = msgspec.json.Encoder().encode


class AccessLog:
    """Logs the caller, route and outcome of each request, but never the query string or the body."""

    def __init__(self) -> None:
        self._logger = logging.getLogger(LOGGER)
        self._lines: list[str] = []
        self._flushed = 0.0

    def write(self, request: Request, seconds: float) -> None:
        """Log a request that took *seconds*."""
        if not self._logger.isEnabledFor(logging.INFO):
            return
        self._lines.append(self._line(request, seconds))
        if time.monotonic() - self._flushed >= PAUSE_SECONDS:
            self.flush()
        elif len(self._lines) == 1:
            asyncio.get_running_loop().call_later(PAUSE_SECONDS, self.flush)

    def _line(self, request: Request, seconds: float) -> str:
        route, caller = request.route, request.caller
        session = request.path_values[0][:128] if route is not None and route.has_session else None
        line = _AccessLogRecord(
            request_id=request.request_id,
            method=request.scope["method"],
            route=None if route is None else route.path,
            status=request.status or CLIENT_CLOSED_REQUEST,
            ms=round(seconds * 1000, 3),
            bytes=request.sent_bytes,
            caller=None if caller is None else caller.name,
            tenant=None if caller is None else caller.tenant,
            # Valid ids are ASCII; other characters could control a terminal.
            session=session if session and session.isascii() else None,
            peer=request.peer,
        )
        return _encode(line).decode()

    def flush(self) -> None:
        """Pass the pending lines to the logger."""
        if not self._lines:
            return
        text = "\n".join(self._lines)
        self._lines.clear()
        self._flushed = time.monotonic()
        # What `info` does, without looking up the calling line.
        self._logger.handle(logging.LogRecord(LOGGER, logging.INFO, __file__, 0, text, None, None))
