"""The sessions of a service, used like those of a manager."""

from __future__ import annotations

from typing import Any

import pytest

from carrel import AsyncClient, Client, Limits, connect
from carrel.errors import (
    CarrelError,
    ClosedError,
    ConfigError,
    RequestError,
    SessionExistsError,
    SessionIdError,
    SessionMissingError,
    UnauthenticatedError,
)
from carrel.remote.workspace import RemoteWorkspace
from carrel.sessions.manager import new_id
from tests.remote.serving import Serving


def test_a_session_is_made_opened_and_removed(client: Any) -> None:
    name = new_id()
    made = client.create(name, ttl_seconds=50, labels={"for": "tests"}, limits=Limits(disk_bytes=1000))
    made.write("a.txt", "hello")
    assert (made.session_id, made.limits.disk_bytes) == (name, 1000)
    assert client.open(name).read_text("a.txt") == "hello"
    assert name in client.list_workspaces()
    assert client.get_workspace_size(name) == 5
    status = client.status(name)
    assert (status.record.session_id, status.record.ttl_seconds) == (name, 50)
    assert dict(status.record.labels) == {"for": "tests"}
    assert status.record.created_ns == made.created_ns
    assert client.extend(name, 100).ttl_seconds == 100
    assert client.reset_workspace(name) is True
    assert made.list() == []
    assert client.delete_workspace(name) is True
    assert client.delete_workspace(name) is False
    assert client.reset_workspace(name) is False
    with pytest.raises(SessionMissingError, match=f"no such session: '{name}'"):
        made.list()


def test_a_session_that_is_missing_is_made_by_get_workspace_alone(client: Any) -> None:
    name = new_id()
    with pytest.raises(SessionMissingError):
        client.open(name)
    client.get_workspace(name).write("a", "1")
    assert client.get_workspace(name).read("a") == b"1"


def test_what_is_wrong_with_a_session_is_told_as_the_library_does(client: Any) -> None:
    name = new_id()
    client.create(name)
    with pytest.raises(SessionExistsError, match="already exists"):
        client.create(name)
    for ask in (client.create, client.open, client.get_workspace, client.delete_workspace):
        with pytest.raises(SessionIdError):
            ask("no/id")
    with pytest.raises(SessionIdError):
        client.status("..")
    with pytest.raises(CarrelError) as caught:
        client.extend(name, -1)
    assert isinstance(caught.value, RequestError)


def test_sessions_are_listed_page_by_page(client: Any) -> None:
    names = sorted(client.create().session_id for _ in range(3))
    records = client.list_records(after=names[0][:-1], count=2)
    assert len(records) == 2
    assert records[0].session_id <= names[0]
    assert set(names) <= set(client.list_workspaces())


def test_connect_gives_a_client_of_the_protocol_that_the_address_names(service: Serving) -> None:
    for url in (service.http, service.grpc):
        with connect(url) as client, client.create() as workspace:
            assert isinstance(client, Client)
            assert isinstance(workspace, RemoteWorkspace)


@pytest.mark.parametrize(
    "url",
    ["", "localhost:80", "ftp://h", "http://", "http://u:secret@h", "http://h:x", "http://h?q", "grpc://"],
)
def test_an_address_that_is_none_is_refused_without_repeating_it(url: str) -> None:
    for kind in (Client, AsyncClient):
        with pytest.raises(ConfigError) as caught:
            kind(url)
        assert "secret" not in str(caught.value)


def test_an_option_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ConfigError, match="timeout"):
        Client("http://localhost:1", timeout=0)
    with pytest.raises(ConfigError, match="retries"):
        Client("http://localhost:1", retries=-1)
    with pytest.raises(TypeError, match="'keys'"):
        Client("http://localhost:1", keys="x")  # type: ignore[call-arg]  # that is the point


@pytest.mark.parametrize("url", ["http://localhost:1", "grpc://localhost:1"])
def test_a_key_is_told_to_nobody(url: str) -> None:
    key = "carrel_very-secret"
    with Client(url, key=key) as client:
        assert key not in repr(client)
        assert key not in repr(vars(client))
    with pytest.raises(ConfigError) as caught:
        Client(url, key=key + "\n")
    assert key not in str(caught.value)


@pytest.mark.parametrize("session_id", [None, 5, "", "\ud800", b"a", "../a"])
def test_what_cannot_be_an_id_is_refused_as_the_library_does(client: Any, session_id: Any) -> None:
    for ask in (client.open, client.get_workspace, client.status, client.reset_workspace):
        with pytest.raises(SessionIdError):
            ask(session_id)
    for change in (client.delete_workspace, lambda name: client.extend(name, 5)):
        with pytest.raises(SessionIdError):
            change(session_id)


def test_records_are_given_as_many_as_are_wanted(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = sorted(client.create().session_id for _ in range(3))
    assert {*made} <= {record.session_id for record in client.list_records(count=5000)}
    monkeypatch.setattr("carrel.remote.client.PAGE", 1)
    assert len(client.list_records(count=2)) == 2
    assert [record.session_id for record in client.list_records(made[1], 10**6)].count(made[2]) == 1
    for count in (0, -1, "1", None):
        with pytest.raises(ValueError, match="count must be"):
            client.list_records(count=count)
    with pytest.raises(SessionIdError):
        client.list_records("../a")


def test_a_client_that_was_closed_is_not_used_any_more(client: Any) -> None:
    far = client.create()
    shell, tools = far.shell(), far.toolbox()
    for _ in range(2):
        client.close()
    for step in (
        client.list_workspaces,
        lambda: far.read("a"),
        lambda: far.write_chunks("a", [b"1"]),
        lambda: list(far.walk()),
        lambda: list(far.follow()),
        lambda: shell.run("ls"),
    ):
        with pytest.raises(ClosedError, match="the client is closed"):
            step()
    assert tools.call("file_read", {"path": "a"}).code == ClosedError.code


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_key_that_is_not_known_is_told_with_the_address_and_what_to_check(
    service: Serving, protocol: str
) -> None:
    place = service.url(protocol).removeprefix("grpc://")
    with connect(service.url(protocol), key="carrel_none") as stranger:
        with pytest.raises(UnauthenticatedError, match=f"at {place} .* check that a key"):
            stranger.list_workspaces()
        with pytest.raises(ConfigError, match="the key is empty"):
            connect(service.url(protocol), key=" ")
