"""`CallLog`: the log line of one call, as JSON."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import grpc

from carrel.fronts.request_log import LOGGER
from carrel.paths.session_id import ID_CHARACTERS
from carrel.service.admission import AdmissionTicket
from carrel.service.principal import Principal


@dataclass(slots=True, kw_only=True)
class CallLog:
    """The properties of a call for the log, filled in as they become known."""

    method: str
    peer: str | None
    began: float = field(default_factory=time.perf_counter)
    caller: Principal | None = None
    ticket: AdmissionTicket | None = None
    """The place of the call among those that run."""
    session_id: str = ""
    status: str = grpc.StatusCode.OK.name
    code: str | None = None
    """The error code."""

    @contextmanager
    def logged(self) -> Iterator[None]:
        """Log the call when the block ends."""
        try:
            yield
        finally:
            logger = logging.getLogger(LOGGER)
            if logger.isEnabledFor(logging.INFO):
                logger.info("%s", json.dumps(self._line()))

    def _line(self) -> dict[str, object]:
        return {
            "event": "grpc.call",
            "method": self.method,
            "status": self.status,
            "code": self.code,
            "ms": round((time.perf_counter() - self.began) * 1000, 3),
            "caller": None if self.caller is None else self.caller.name,
            "tenant": None if self.caller is None else self.caller.tenant,
            # A longer one is not a valid id.
            "session": self.session_id[:ID_CHARACTERS] or None,
            "peer": self.peer,
        }
