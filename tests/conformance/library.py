"""The library itself: what every other door has to answer as well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from carrel.errors import CarrelError
from carrel.remote.json_codec import render
from carrel.sessions.manager import WorkspaceManager
from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace
from tests.conformance.answer import REQUEST, Answer
from tests.conformance.row import Row

DEVELOPER = "developer"


class Library:
    """A local workspace and a local toolbox."""

    name = "library"

    def __init__(self, manager: WorkspaceManager) -> None:
        self._manager = manager
        self._open: dict[str, Workspace] = {}
        self._toolboxes: dict[tuple[str, str, str], Toolbox] = {}

    def operation(self, session: str, row: Row, arguments: Mapping[str, Any]) -> Answer:
        with answering(session) as answers:
            answers.append(
                Answer.of(render(getattr(self.workspace(session), row.name)(**arguments)), session)
            )
        return answers[0]

    def tool(self, session: str, row: Row, arguments: Mapping[str, Any]) -> Answer:
        key = session, row.role or DEVELOPER, row.profile
        if key not in self._toolboxes:
            self._toolboxes[key] = Toolbox(self.workspace(session), key[1], profile=row.profile)
        return Answer.of_tool(self._toolboxes[key].call(row.name, arguments), session)

    def workspace(self, session: str) -> Workspace:
        """The workspace of *session*."""
        if session not in self._open:
            self._open[session] = self._manager.open(session)
        return self._open[session]

    def close(self) -> None:
        for toolbox in self._toolboxes.values():
            toolbox.close()
        for workspace in self._open.values():
            workspace.close()


@contextmanager
def answering(session: str) -> Iterator[list[Answer]]:
    """Gives a list for the one answer; an error is put there as well."""
    answers: list[Answer] = []
    try:
        yield answers
    except CarrelError as error:
        answers.append(Answer.of_error(error, session))
    except (TypeError, ValueError):
        # The library says of such arguments what Python says; the wire has a code for it.
        answers.append(Answer(code=REQUEST))
