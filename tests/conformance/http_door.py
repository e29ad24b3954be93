"""HTTP, by bare requests: what the client library would hide is seen here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.client import HTTPConnection
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import quote

from tests.conformance.answer import Answer
from tests.conformance.library import DEVELOPER
from tests.conformance.row import Row

API = "/api/v1"
MOST_BYTES = 2**22


class Reply(NamedTuple):
    """What came back for one request."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:  # Any: whatever JSON can say
        return json.loads(self.body)


class Http:
    """One connection to a service."""

    name = "http"

    def __init__(self, port: int, key: str | None = None) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=60)
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    def request(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send one request; *target* goes out as it is, and what comes back is read up to `MOST_BYTES`."""
        try:
            self._connection.request(method, target, body, {**self._headers, **(headers or {})})
            response = self._connection.getresponse()
            content = response.read(MOST_BYTES)
            if len(content) == MOST_BYTES:
                self._connection.close()
        except BaseException:
            self._connection.close()
            raise
        return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, content)

    def post(self, target: str, document: Any, headers: Mapping[str, str] | None = None) -> Reply:
        """Post *document* as JSON, in ASCII, so that half a surrogate comes through."""
        sent = {"Content-Type": "application/json", **(headers or {})}
        return self.request("POST", target, json.dumps(document).encode(), sent)

    def operation(self, session: str, row: Row, arguments: Mapping[str, Any]) -> Answer:
        reply = self.post(f"{API}/sessions/{quote(session)}/operations/{row.name}", dict(arguments))
        return answer(reply, session)

    def tool(self, session: str, row: Row, arguments: Mapping[str, Any]) -> Answer:
        target = f"{API}/sessions/{quote(session)}/tools/{quote(row.name)}?profile={row.profile}"
        document = {"arguments": dict(arguments), "context": {"role": row.role or DEVELOPER}}
        reply = self.post(target, document)
        # Of a tool that is not there the status says so as well.
        if "success" in reply.json:
            return Answer.of_tool(reply.json, session)
        return answer(reply, session)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def answer(reply: Reply, session: str) -> Answer:
    """What a reply with JSON says."""
    if reply.status >= 400:
        return Answer.of_error(reply.json["error"], session)
    return Answer.of(reply.json if reply.body else None, session)
