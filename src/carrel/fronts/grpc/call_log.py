"""`CallLog`: one call as the log shows it, in one line of JSON."""

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
    """What is known of a call by now."""

    method: str
    peer: str | None
    began: float = field(default_factory=time.perf_counter)
    caller: Principal | None = None
    ticket: AdmissionTicket | None = None
    """Where it is counted while it runs."""
    session_id: str = ""
    status: str = grpc.StatusCode.OK.name
    code: str | None = None
    """Of the error."""

    @contextmanager
    def logged(self) -> Iterator[None]:
        """Tell of it when it has ended."""
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
            # One that is longer is none, and need not be told in full.
            "session": self.session_id[:ID_CHARACTERS] or None,
            "peer": self.peer,
        }
