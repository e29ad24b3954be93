"""Clients that go away in the middle of everything."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from time import sleep

import pytest

from carrel.fronts.http.handlers import server_sent_events
from carrel.values import MIB
from tests.fronts.http.front import Front, Session

LARGE = b"x" * (8 * MIB)


def eventually(holds: Callable[[], bool]) -> None:
    """Wait until something holds; the time limit of a test is the only one."""
    while not holds():
        sleep(0.001)


def is_idle(front: Front) -> bool:
    """Whether no request runs but the one that asks."""
    text = front.client.get("/metrics").text
    return "carrel_http_requests_running 1.0" in text


@pytest.mark.parametrize("length", [100, len(LARGE)])
@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_a_file_that_came_only_in_part_is_not_there(session: Session, method: str, length: int) -> None:
    head = (
        f"{method} {session.path}/files/d/f HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n\r\n"
    )
    with session.front.raw(head.encode() + b"x" * (length // 2)):
        pass
    eventually(lambda: is_idle(session.front))
    assert session.get("/files?recursive=true").json() == {"entries": []}
    assert session.get("").json()["usage"]["disk_bytes"] == 0


def test_a_chunked_body_without_its_end_is_not_stored(session: Session) -> None:
    head = f"PUT {session.path}/files/f HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    with session.front.raw(head.encode() + b"4\r\nabcd\r\n"):
        pass
    eventually(lambda: is_idle(session.front))
    assert session.get("/files").json() == {"entries": []}


def test_many_who_send_nothing_more_hold_up_nobody(session: Session) -> None:
    head = "HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    with ExitStack() as stack:
        for number in range(80):
            request = f"PUT {session.path}/files/{number} {head}4\r\nabcd\r\n"
            stack.enter_context(session.front.raw(request.encode()))
        running = "carrel_http_requests_running 81.0"
        eventually(lambda: running in session.front.client.get("/metrics").text)
        # Less than it takes until those who stall are given up.
        answer = session.get("/files?recursive=true", timeout=30)
        assert answer.json() == {"entries": []}
    eventually(lambda: is_idle(session.front))


def test_an_archive_that_came_only_in_part_makes_nothing(session: Session) -> None:
    session.put("/files/d/f", content=LARGE)
    packed = session.get("/archive?path=d").content
    head = f"POST {session.path}/archive?path=new HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    with session.front.raw(
        f"{head}Content-Length: {len(packed)}\r\n\r\n".encode() + packed[: len(packed) // 2]
    ):
        pass
    eventually(lambda: is_idle(session.front))
    assert [entry["path"] for entry in session.get("/files").json()["entries"]] == ["d"]


def test_a_tool_that_nobody_waits_for_is_stopped(session: Session) -> None:
    body = b'{"arguments": {"command": "sleep 200"}}'
    head = f"POST {session.path}/tools/bash HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    with session.front.raw(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body):
        eventually(lambda: "carrel_executions_running 1.0" in session.front.client.get("/metrics").text)
    eventually(lambda: is_idle(session.front))
    assert "carrel_executions_running 0.0" in session.front.client.get("/metrics").text


@pytest.mark.parametrize("path", ["/files/f", "/archive", "/archive?format=zip"])
def test_a_download_that_nobody_takes_ends(session: Session, path: str) -> None:
    session.put("/files/f", content=LARGE)
    with session.front.raw(
        f"GET {session.path}{path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    ) as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
    eventually(lambda: is_idle(session.front))


@pytest.mark.parametrize("path", ["/files/f", "/archive", "/changes", "/files"])
def test_only_the_head_is_sent_where_only_that_is_wanted(session: Session, path: str) -> None:
    session.put("/files/f", content=LARGE)
    for accept in ("*/*", "text/event-stream"):
        answer = session.request("HEAD", path, headers={"Accept": accept})
        assert (answer.status_code, answer.content) == (200, b"")


def test_a_stream_of_changes_that_nobody_reads_ends(session: Session) -> None:
    head = f"GET {session.path}/changes HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"
    with session.front.raw(head.encode()) as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
        assert not is_idle(session.front)
    eventually(lambda: is_idle(session.front))


def test_a_stream_ends_with_its_connection_also_if_more_was_asked_meanwhile(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_sent_events, "QUIET_SECONDS", 0.05)
    head = f"GET {session.path}/changes HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"
    with session.front.raw(head.encode()) as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
        connection.sendall(head.encode())
    eventually(lambda: is_idle(session.front))


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_a_command_that_nobody_waits_for_is_stopped(session: Session, accept: str) -> None:
    body = b'{"command": "sleep 1000"}'
    head = f"POST {session.path}/exec HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: {accept}\r\n"
    running = session.front.service.executions
    with session.front.raw(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body):
        eventually(lambda: len(running) == 1)
    eventually(lambda: len(running) == 0)
    eventually(lambda: is_idle(session.front))


def test_many_clients_that_go_away_at_once_leave_nothing_behind(session: Session) -> None:
    session.put("/files/f", content=LARGE)
    request = f"GET {session.path}/files/f HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()

    def come_and_go() -> None:
        for _ in range(5):
            with session.front.raw(request) as connection:
                connection.recv(10)

    threads = [threading.Thread(target=come_and_go) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    eventually(lambda: is_idle(session.front))
    assert session.get("/files/f", headers={"Range": "bytes=0-3"}).content == b"xxxx"
