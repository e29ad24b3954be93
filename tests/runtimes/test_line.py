"""Frames come as they were sent, in whatever pieces, and nothing else is taken for one."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.runtimes.line import HEAD_BYTES, Frame, Kind, Line, LineBroken

HEADER = struct.Struct("<BII")
HEADS = st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text(max_size=5), max_size=3)
FRAMES = st.tuples(st.sampled_from(Kind), HEADS, st.binary(max_size=200))


@pytest.fixture
def pair() -> Iterator[tuple[Line, socket.socket]]:
    """A line, and the bare socket at its other end."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Line(ours, body_bytes=1_000), theirs


def packed(kind: int, head: bytes = b"", body: bytes = b"") -> bytes:
    return HEADER.pack(kind, len(head), len(body)) + head + body


@given(st.lists(FRAMES, max_size=5), st.lists(st.integers(1, 50)))
def test_frames_come_as_they_were_sent_in_any_pieces(
    frames: list[tuple[Kind, dict[str, object], bytes]], sizes: list[int]
) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        line = Line(ours)
        stream = b"".join(packed(kind, json.dumps(head).encode(), body) for kind, head, body in frames)
        found: list[Frame] = []
        while stream:
            size = sizes.pop() if sizes else len(stream)
            theirs.sendall(stream[:size])
            stream = stream[size:]
            while (frame := line.receive(time.monotonic())) is not None:
                found.append(frame)
    assert [(frame.kind, frame.head, bytes(frame.body)) for frame in found] == frames


def test_both_ends_understand_each_other() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sender, receiver = Line(ours), Line(theirs)
        large = bytes(range(256)) * 20_000
        thread = threading.Thread(target=sender.send, args=(Kind.CALL, {"path": "ü\ud800"}, large))
        thread.start()
        frame = receiver.receive()
        thread.join()
    assert frame == (Kind.CALL, {"path": "ü\ud800"}, large)


@pytest.mark.parametrize(
    "sent",
    [
        packed(Kind.CALL, b"no json"),
        packed(Kind.CALL, b"[1]"),
        packed(Kind.CALL, b'"text"'),
        packed(Kind.CALL, b"\xff\xfe"),
        packed(Kind.CALL, b"{}" + b" " * 10 + b"x"),
        packed(Kind.CALL, b'{"a": ' + b"[" * 5_000 + b"}"),
        HEADER.pack(Kind.CALL, HEAD_BYTES + 1, 0),
        HEADER.pack(Kind.CALL, 2**32 - 1, 2**32 - 1),
        HEADER.pack(Kind.CALL, 0, 1_001),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_no_frame_ends_the_line(pair: tuple[Line, socket.socket], sent: bytes) -> None:
    line, other = pair
    other.sendall(sent)
    with pytest.raises(LineBroken):
        line.receive(time.monotonic() + 10)


@pytest.mark.parametrize(
    "sent", [b"", b"\1", packed(Kind.CALL, b"{}", b"body")[:-1], packed(Kind.CALL, b"{}")[:10]]
)
def test_an_end_in_the_middle_ends_the_line(pair: tuple[Line, socket.socket], sent: bytes) -> None:
    line, other = pair
    other.sendall(sent)
    assert line.receive(time.monotonic()) is None
    other.close()
    with pytest.raises(LineBroken):
        line.receive(time.monotonic() + 10)


def test_a_frame_before_the_end_still_comes(pair: tuple[Line, socket.socket]) -> None:
    line, other = pair
    other.sendall(packed(Kind.DONE, b"{}"))
    other.close()
    assert line.receive() == (Kind.DONE, {}, b"")
    with pytest.raises(LineBroken):
        line.receive()


def test_nobody_listens(pair: tuple[Line, socket.socket]) -> None:
    line, other = pair
    other.close()
    with pytest.raises(LineBroken):
        line.send(Kind.CALL, {}, bytes(10**7))
    line.close()
    with pytest.raises(LineBroken):
        line.send(Kind.CALL)
    with pytest.raises(LineBroken):
        line.receive()
