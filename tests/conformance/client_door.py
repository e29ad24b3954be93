"""The client, over HTTP or gRPC: what a program has that moved from the library to a service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from carrel import connect
from carrel.remote.json_codec import render
from carrel.remote.toolbox import RemoteToolbox
from carrel.remote.workspace import RemoteWorkspace
from tests.conformance.answer import Answer
from tests.conformance.library import DEVELOPER, answering
from tests.conformance.row import Row


class ByClient:
    """A client and the workspaces that it opened."""

    def __init__(self, url: str) -> None:
        self.name = f"client-{url.partition(':')[0]}"
        self._client = connect(url)
        self._open: dict[str, RemoteWorkspace] = {}
        self._toolboxes: dict[tuple[str, str, str], RemoteToolbox] = {}

    def operation(self, session: str, row: Row, arguments: Mapping[str, Any]) -> Answer:
        with answering(session) as answers:
            value = getattr(self.workspace(session), row.name)(**arguments)
            answers.append(Answer.of(render(value), session))
        return answers[0]

    def tool(self, session: str, row: Row, arguments: Mapping[str, Any]) -> Answer:
        key = session, row.role or DEVELOPER, row.profile
        if key not in self._toolboxes:
            self._toolboxes[key] = self.workspace(session).toolbox(key[1], profile=row.profile)
        return Answer.of_tool(self._toolboxes[key].call(row.name, arguments), session)

    def workspace(self, session: str) -> RemoteWorkspace:
        """The workspace of *session*, from afar."""
        if session not in self._open:
            self._open[session] = self._client.open(session)
        return self._open[session]

    def close(self) -> None:
        self._client.close()
