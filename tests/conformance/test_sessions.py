"""The life of a session: through the library, also awaited, and through the client over HTTP and gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from carrel import AsyncWorkspaceManager, connect
from carrel.remote.json_codec import render
from carrel.values import Limits
from tests.conformance.answer import REQUEST, Answer
from tests.conformance.http_door import API, Http
from tests.conformance.library import answering
from tests.conformance.place import Places
from tests.conformance.server import Server
from tests.remote.driving import Driven

Manager = Any  # a WorkspaceManager, awaited or not, or a Client, which share no type
_LOCAL = ("created_ns", "used_ns", "limits", "owner", "epoch")
"""What a record says besides: times, which limits are its own, and what only those who keep it need."""


def _record(record: Any) -> Any:  # Any: a dataclass, as JSON says it
    return {name: value for name, value in render(record).items() if name not in _LOCAL}


def _created(manager: Manager, name: str, **options: Any) -> Any:
    with manager.create(name, **options) as workspace:
        return workspace.session_id, _record(manager.status(name).record), render(workspace.limits)


def _filled(manager: Manager, name: str) -> str:
    """The name of a session that holds something."""
    with manager.get_workspace(name) as workspace:
        workspace.write("d/a.txt", b"words")
    return name


def _status(manager: Manager, name: str) -> Any:
    _filled(manager, name)
    status = manager.status(name)
    return _record(status.record), render(status.usage)


def _reset(manager: Manager, name: str) -> Any:
    _filled(manager, name)
    done = manager.reset_workspace(name)
    with manager.open(name) as workspace:
        return done, workspace.list_files(), manager.get_workspace_size(name)


def _deleted(manager: Manager, name: str) -> Any:
    _filled(manager, name)
    return manager.delete_workspace(name), manager.delete_workspace(name), name in manager.list_workspaces()


def _create_only(session_id: str) -> Callable[[Manager, str], object]:
    return lambda manager, name: manager.create(session_id)


CALLS: dict[str, Callable[[Manager, str], object]] = {
    "create": _created,
    "create with a life": lambda manager, name: _created(manager, name, ttl_seconds=60.5),
    "create for ever": lambda manager, name: _created(manager, name, ttl_seconds=None),
    "create with a role": lambda manager, name: _created(manager, name, role="critic"),
    "create with labels": lambda manager, name: _created(manager, name, labels={"team": "ä"}),
    "create with limits": lambda manager, name: _created(manager, name, limits=Limits(disk_bytes=5, depth=2)),
    "create with no life": lambda manager, name: _created(manager, name, ttl_seconds=-1),
    "create twice": lambda manager, name: (_created(manager, name), _created(manager, name)),
    "create without an id": lambda manager, name: len(manager.create().session_id),
    **{
        f"create {bad!r}": _create_only(bad)
        for bad in ("..", "a/b", "a b", ".carrel", "a\0", "é", "x" * 129, "", " ", "a\n", "..%2f")
    },
    "open": lambda manager, name: manager.open(name).session_id,
    "open with a bad id": lambda manager, name: manager.open("../x"),
    "get_workspace": lambda manager, name: manager.get_workspace(name).session_id,
    "get_workspace with a bad id": lambda manager, name: manager.get_workspace(".."),
    "status": _status,
    "status of nothing": lambda manager, name: manager.status(name),
    "status with a bad id": lambda manager, name: manager.status("a/b"),
    "extend": lambda manager, name: _record(manager.extend(_filled(manager, name), 99)),
    "extend for ever": lambda manager, name: _record(manager.extend(_filled(manager, name), None)),
    "extend by nothing": lambda manager, name: manager.extend(_filled(manager, name), 0),
    "extend nothing": lambda manager, name: manager.extend(name, 99),
    "reset": _reset,
    "reset nothing": lambda manager, name: manager.reset_workspace(name),
    "delete": _deleted,
    "delete with a bad id": lambda manager, name: manager.delete_workspace(".."),
    "size": lambda manager, name: manager.get_workspace_size(_filled(manager, name)),
    "size of nothing": lambda manager, name: manager.get_workspace_size(name),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_session_lives_the_same_life_everywhere(name: str, places: Places, server: Server) -> None:
    number = list(CALLS).index(name)
    expected = _made(places.manager, f"life-{number}-here", name)
    for url in (server.url, f"grpc://{server.grpc_address}"):
        with connect(url) as client:
            answer = _made(client, f"life-{number}-{url[:4]}", name)
        if expected.code == REQUEST:
            assert answer.code == REQUEST, url
        else:
            assert answer == expected, url


@pytest.mark.parametrize("name", CALLS)
def test_a_session_lives_the_same_life_when_it_is_awaited(name: str, places: Places) -> None:
    number = list(CALLS).index(name)
    expected = _made(places.manager, f"life-{number}-at-once", name)
    with asyncio.Runner() as runner:
        awaited = Driven(runner, AsyncWorkspaceManager(places.manager))
        assert _made(awaited, f"life-{number}-awaited", name) == expected


def test_an_id_that_is_empty_is_none_over_http_either(server: Server) -> None:
    with Http(server.port) as http:
        reply = http.post(f"{API}/sessions", {"session_id": ""})
    assert reply.status == 400
    assert reply.json["error"]["code"] == "session.invalid_id"


def _made(manager: Manager, session: str, name: str) -> Answer:
    with answering(session) as answers:
        value = CALLS[name](manager, session)
        answers.append(Answer.of(render(value), session))
    return answers[0]
