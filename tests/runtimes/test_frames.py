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

from carrel.runtimes.frames import HEAD_BYTES, Frame, FrameKind, FrameSocket, FrameSocketBroken

HEADER = struct.Struct("<BII")
HEADS = st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text(max_size=5), max_size=3)
FRAMES = st.tuples(st.sampled_from(FrameKind), HEADS, st.binary(max_size=200))


@pytest.fixture
def pair() -> Iterator[tuple[FrameSocket, socket.socket]]:
    """A line, and the bare socket at its other end."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield FrameSocket(ours, body_bytes=1_000), theirs


def packed(kind: int, head: bytes = b"", body: bytes = b"") -> bytes:
    return HEADER.pack(kind, len(head), len(body)) + head + body


@given(st.lists(FRAMES, max_size=5), st.lists(st.integers(1, 50)))
def test_frames_come_as_they_were_sent_in_any_pieces(
    frames: list[tuple[FrameKind, dict[str, object], bytes]], sizes: list[int]
) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        line = FrameSocket(ours)
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
        sender, receiver = FrameSocket(ours), FrameSocket(theirs)
        large = bytes(range(256)) * 20_000
        thread = threading.Thread(target=sender.send, args=(FrameKind.CALL, {"path": "ü\ud800"}, large))
        thread.start()
        frame = receiver.receive()
        thread.join()
    assert frame == (FrameKind.CALL, {"path": "ü\ud800"}, large)


@pytest.mark.parametrize(
    "sent",
    [
        packed(FrameKind.CALL, b"no json"),
        packed(FrameKind.CALL, b"[1]"),
        packed(FrameKind.CALL, b'"text"'),
        packed(FrameKind.CALL, b"\xff\xfe"),
        packed(FrameKind.CALL, b"{}" + b" " * 10 + b"x"),
        packed(FrameKind.CALL, b'{"a": ' + b"[" * 5_000 + b"}"),
        HEADER.pack(FrameKind.CALL, HEAD_BYTES + 1, 0),
        HEADER.pack(FrameKind.CALL, 2**32 - 1, 2**32 - 1),
        HEADER.pack(FrameKind.CALL, 0, 1_001),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_no_frame_ends_the_line(pair: tuple[FrameSocket, socket.socket], sent: bytes) -> None:
    line, other = pair
    other.sendall(sent)
    with pytest.raises(FrameSocketBroken):
        line.receive(time.monotonic() + 10)


@pytest.mark.parametrize(
    "sent", [b"", b"\1", packed(FrameKind.CALL, b"{}", b"body")[:-1], packed(FrameKind.CALL, b"{}")[:10]]
)
def test_an_end_in_the_middle_ends_the_line(pair: tuple[FrameSocket, socket.socket], sent: bytes) -> None:
    line, other = pair
    other.sendall(sent)
    assert line.receive(time.monotonic()) is None
    other.close()
    with pytest.raises(FrameSocketBroken):
        line.receive(time.monotonic() + 10)


def test_a_frame_before_the_end_still_comes(pair: tuple[FrameSocket, socket.socket]) -> None:
    line, other = pair
    other.sendall(packed(FrameKind.DONE, b"{}"))
    other.close()
    assert line.receive() == (FrameKind.DONE, {}, b"")
    with pytest.raises(FrameSocketBroken):
        line.receive()


def test_nobody_listens(pair: tuple[FrameSocket, socket.socket]) -> None:
    line, other = pair
    other.close()
    with pytest.raises(FrameSocketBroken):
        line.send(FrameKind.CALL, {}, bytes(10**7))
    line.close()
    with pytest.raises(FrameSocketBroken):
        line.send(FrameKind.CALL)
    with pytest.raises(FrameSocketBroken):
        line.receive()
