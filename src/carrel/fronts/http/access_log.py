"""The access log: one line of JSON per request."""

from __future__ import annotations

import asyncio
import logging
import time

import msgspec

from carrel.fronts.http.request import CLIENT_CLOSED_REQUEST, Request
from carrel.fronts.request_log import LOGGER

PAUSE_SECONDS = 0.02
"""Lines that come sooner one after another go to the logger as one record, which takes longer than a line."""


class _AccessLogRecord(msgspec.Struct, kw_only=True, tag_field="event", tag="http.request"):
    """What is written down of one request."""

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
    """Writes down who asked what and how it ended; never what a query or a body holds."""

    def __init__(self) -> None:
        self._logger = logging.getLogger(LOGGER)
        self._lines: list[str] = []
        self._told = 0.0

    def write(self, call: Request, seconds: float) -> None:
        """Write down one request."""
        if not self._logger.isEnabledFor(logging.INFO):
            return
        self._lines.append(self._line(call, seconds))
        if time.monotonic() - self._told >= PAUSE_SECONDS:
            self.flush()
        elif len(self._lines) == 1:
            asyncio.get_running_loop().call_later(PAUSE_SECONDS, self.flush)

    def _line(self, call: Request, seconds: float) -> str:
        route, caller = call.route, call.caller
        session = call.values[0][:128] if route is not None and route.has_session else None
        line = _AccessLogRecord(
            request_id=call.request_id,
            method=call.scope["method"],
            route=None if route is None else route.path,
            status=call.status or CLIENT_CLOSED_REQUEST,
            ms=round(seconds * 1000, 3),
            bytes=call.sent_bytes,
            caller=None if caller is None else caller.name,
            tenant=None if caller is None else caller.tenant,
            # No id is anything but ASCII, and a terminal may do what other characters say.
            session=session if session and session.isascii() else None,
            peer=call.peer,
        )
        return _encode(line).decode()

    def flush(self) -> None:
        """Tell the logger what it was not told yet."""
        if not self._lines:
            return
        text = "\n".join(self._lines)
        self._lines.clear()
        self._told = time.monotonic()
        # As `info` does, without looking for the line of code that calls: it is always this one.
        self._logger.handle(logging.LogRecord(LOGGER, logging.INFO, __file__, 0, text, None, None))
