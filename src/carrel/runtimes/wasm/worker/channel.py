"""`Channel`: sends the output and requests of an interpreter to the host, in the guest's order."""

from __future__ import annotations

import time
from contextlib import suppress
from threading import Event, Lock, Thread

from carrel.runtimes.frames import Frame, FrameKind, FrameSocket, FrameSocketBroken

_DELAY_SECONDS = 0.02
"""Time that output is buffered for more output."""
_MAX_BUFFERED_BYTES = 2**16
"""Size of buffered output above which it is sent at once."""
STDOUT, STDERR = 1, 2


class Channel:
    """The worker's end of the socket: the standard streams of the guest, and its requests.

    Output is buffered briefly, so that a thousand short lines become a few frames.
    """

    def __init__(self, frames: FrameSocket, flusher: Flusher) -> None:
        self._frames = frames
        self._flusher = flusher
        self._lock = Lock()
        self._buffered: list[tuple[int, bytes]] = []
        self._buffered_bytes = 0
        self._sent_at = 0.0
        self._input: memoryview | None = memoryview(b"")
        self._stop = Event()
        self._room = {STDOUT: 0, STDERR: 0}
        self.truncated = {STDOUT: False, STDERR: False}

    def begin(self, *, stdout_bytes: int, stderr_bytes: int, given: memoryview | None, stop: Event) -> None:
        """Prepare for the next script, which *stop* ends; input is requested from the host if not *given*."""
        self._stop = stop
        self._room = {STDOUT: stdout_bytes, STDERR: stderr_bytes}
        self.truncated = {STDOUT: False, STDERR: False}
        self._input = given

    def write(self, fd: int, data: bytes) -> None:
        """Add output of the guest, up to the limit of its stream."""
        room = self._room[fd]
        if len(data) > room:
            self.truncated[fd] = True
            data = data[:room]
        if not data:
            return
        self._room[fd] = room - len(data)
        with self._lock:
            self._buffered.append((fd, data))
            self._buffered_bytes += len(data)
            is_due = self._buffered_bytes >= _MAX_BUFFERED_BYTES or self._is_due()
            if is_due:
                self._flush()
        if not is_due:
            self._flusher.add(self)

    def read(self, count: int) -> bytes | None:
        """Return up to *count* bytes of input, empty at the end; `None` if the guest is being stopped."""
        if self._input is not None:
            data, self._input = bytes(self._input[:count]), self._input[count:]
            return data
        try:
            answer = self.request(FrameKind.INPUT, {"count": count})
            if not answer.head.get("stop"):
                return bytes(answer.body)
        except FrameSocketBroken:
            pass
        self._stop.set()
        return None

    def call_tool(self, request: bytes) -> bytes:
        """Return the host's answer to a call of one of its functions; empty if the guest is being stopped."""
        with suppress(FrameSocketBroken):
            answer = self.request(FrameKind.TOOL, {}, request)
            if not answer.head.get("stop"):
                return bytes(answer.body)
        self._stop.set()
        return b""

    def request(self, kind: FrameKind, head: dict[str, object], body: bytes = b"") -> Frame:
        """Send a request and return the answer of the host.

        Raises:
            FrameSocketBroken: The host is gone.
        """
        self.send(kind, head, body)
        answer = self._frames.receive()
        if answer is None or answer.kind != FrameKind.ANSWER:
            raise FrameSocketBroken("the host did not answer")
        return answer

    def send(self, kind: FrameKind, head: dict[str, object], body: bytes = b"") -> None:
        """Send a frame after all output written before.

        Raises:
            FrameSocketBroken: The host is gone.
        """
        with self._lock:
            self._flush()
            self._frames.send(kind, head, body)

    def flush(self) -> None:
        """Send the buffered output."""
        with self._lock:
            self._flush()

    def can_send(self) -> bool:
        """Return whether the send buffer has room."""
        return self._frames.can_send()

    def _is_due(self) -> bool:
        return time.monotonic() - self._sent_at >= _DELAY_SECONDS

    def _flush(self) -> None:
        buffered, self._buffered, self._buffered_bytes = self._buffered, [], 0
        if not buffered:
            return
        self._sent_at = time.monotonic()
        for fd, data in _merge(buffered):
            self._frames.send(FrameKind.STDOUT if fd == STDOUT else FrameKind.STDERR, None, data)


def _merge(chunks: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Merge adjacent chunks of the same stream."""
    found: list[tuple[int, list[bytes]]] = []
    for fd, data in chunks:
        if found and found[-1][0] == fd:
            found[-1][1].append(data)
        else:
            found.append((fd, [data]))
    return [(fd, b"".join(parts)) for fd, parts in found]


class Flusher:
    """Sends the buffered output of all channels of the process soon after it was written."""

    def __init__(self) -> None:
        self._pending: set[Channel] = set()
        self._has_pending = Event()
        self._lock = Lock()
        Thread(target=self._run, name="carrel-flusher", daemon=True).start()

    def add(self, channel: Channel) -> None:
        """Send the output of *channel* after a short delay."""
        with self._lock:
            self._pending.add(channel)
        self._has_pending.set()

    def _run(self) -> None:
        while True:
            self._has_pending.wait()
            time.sleep(_DELAY_SECONDS)
            with self._lock:
                pending, self._pending = self._pending, set()
                self._has_pending.clear()
            for channel in pending:
                if not channel.can_send():
                    # A host that does not read must not block the other channels.
                    self.add(channel)
                    continue
                with suppress(FrameSocketBroken):
                    channel.flush()
