"""Many requests on one connection, sent before any of them is answered."""

from __future__ import annotations

import re
import socket

import pytest

from carrel.workspace.aio import INLINE_BYTES
from tests.fronts.http.front import Front, Session

MANY = 3000


def asking(*paths: str, last: str) -> bytes:
    """The requests one after the other; after the last one the connection ends."""
    requests = [f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" for path in paths]
    return "".join(
        [*requests, f"GET {last} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"]
    ).encode()


def bodies(connection: socket.socket) -> list[bytes]:
    """The bodies of all answers, in the order in which they came."""
    with connection.makefile("rb") as stream:
        found = []
        while stream.readline().startswith(b"HTTP/1.1 "):
            length = 0
            while (line := stream.readline()) != b"\r\n":
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            found.append(stream.read(length))
        return found


def test_many_requests_at_once_are_answered_in_their_order(session: Session) -> None:
    for name in ("a", "b"):
        session.put(f"/files/{name}", content=name.encode())
    a, b, missing = (f"{session.path}/files/{name}" for name in ("a", "b", "missing"))
    with session.front.raw(asking(*[a, b] * MANY, missing, last=a)) as connection:
        answers = bodies(connection)
    assert answers[: 2 * MANY] == [b"a", b"b"] * MANY
    assert b'"path.missing"' in answers[-2]
    assert answers[-1] == b"a"


def test_quick_answers_wait_for_the_slow_one_before_them(session: Session) -> None:
    session.put("/files/a", content=b"a")
    session.put("/files/large", content=b"x" * (2 * INLINE_BYTES))
    a, large = f"{session.path}/files/a", f"{session.path}/files/large"
    with session.front.raw(asking(large, *[a] * MANY, large, last=a)) as connection:
        answers = bodies(connection)
    assert [len(each) for each in answers] == [2 * INLINE_BYTES, *[1] * MANY, 2 * INLINE_BYTES, 1]


@pytest.mark.parametrize("size", [100, 200_000])
def test_a_file_that_looks_like_an_answer_is_sent_to_the_byte(session: Session, size: int) -> None:
    content = b"HTTP/1.1 200 OK\r\n" + bytes(size)
    session.put("/files/f", content=content)
    path = f"{session.path}/files/f"
    with session.front.raw(asking(path, last=path)) as connection:
        assert bodies(connection) == [content, content]


def test_a_client_that_takes_no_answers_is_not_given_more_than_its_connection_holds(front: Front) -> None:
    session = front.session()
    session.put("/files/f", content=b"x" * INLINE_BYTES)
    path = f"{session.path}/files/f"
    before = served_reads(front)
    with front.raw(asking(*[path] * MANY, last=path)) as connection:
        # Answered on another connection, after all of the above was seen.
        session.get("/files/f")
        assert served_reads(front) - before < MANY / 4
        assert sum(map(len, bodies(connection))) == (MANY + 1) * INLINE_BYTES


def served_reads(front: Front) -> int:
    """How many files were read over HTTP so far."""
    line = re.compile(
        r'^carrel_http_request_seconds_count\{method="GET",route="[^"]*path\*?\}",status="200"\} (.*)$',
        re.MULTILINE,
    )
    found = line.search(front.client.get("/metrics").text)
    return 0 if found is None else int(float(found[1]))
