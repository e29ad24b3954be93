"""`Channel`: output and requests of an interpreter to the host, in the order the guest made them."""

from __future__ import annotations

import time
from contextlib import suppress
from threading import Event, Lock, Thread

from carrel.runtimes.frames import Frame, FrameKind, FrameSocket, FrameSocketBroken

_DELAY_SECONDS = 0.02
"""How long output may wait for more of it."""
_MOST_WAITING_BYTES = 2**16
STDOUT, STDERR = 1, 2


class Channel:
    """The worker's end of a line: the standard streams of the guest, and its calls.

    Output is sent a little later than it is written, so that a thousand short lines are a few frames.
    """

    def __init__(self, line: FrameSocket, flusher: Flusher) -> None:
        self._line = line
        self._flusher = flusher
        self._lock = Lock()
        self._waiting: list[tuple[int, bytes]] = []
        self._waiting_bytes = 0
        self._sent_at = 0.0
        self._input: memoryview | None = memoryview(b"")
        self._stop = Event()
        self._room = {STDOUT: 0, STDERR: 0}
        self.truncated = {STDOUT: False, STDERR: False}

    def begin(self, *, stdout_bytes: int, stderr_bytes: int, given: memoryview | None, stop: Event) -> None:
        """Prepare for the next script, which *stop* ends; with no input *given*, the host is asked for it."""
        self._stop = stop
        self._room = {STDOUT: stdout_bytes, STDERR: stderr_bytes}
        self.truncated = {STDOUT: False, STDERR: False}
        self._input = given

    def write(self, fd: int, data: bytes) -> None:
        """Take what the guest wrote, up to what its stream may hold."""
        room = self._room[fd]
        if len(data) > room:
            self.truncated[fd] = True
            data = data[:room]
        if not data:
            return
        self._room[fd] = room - len(data)
        with self._lock:
            self._waiting.append((fd, data))
            self._waiting_bytes += len(data)
            is_due = self._waiting_bytes >= _MOST_WAITING_BYTES or self._is_late()
            if is_due:
                self._flush()
        if not is_due:
            self._flusher.add(self)

    def read(self, count: int) -> bytes | None:
        """Up to *count* bytes of input, empty at its end; `None` if the guest is being stopped."""
        if self._input is not None:
            data, self._input = bytes(self._input[:count]), self._input[count:]
            return data
        try:
            answer = self.ask(FrameKind.INPUT, {"count": count})
            if not answer.head.get("stop"):
                return bytes(answer.body)
        except FrameSocketBroken:
            pass
        self._stop.set()
        return None

    def ask(self, kind: FrameKind, head: dict[str, object], body: bytes = b"") -> Frame:
        """The host's answer.

        Raises:
            LineBroken: The host is gone.
        """
        self.send(kind, head, body)
        answer = self._line.receive()
        if answer is None or answer.kind != FrameKind.ANSWER:
            raise FrameSocketBroken("the host did not answer")
        return answer

    def send(self, kind: FrameKind, head: dict[str, object], body: bytes = b"") -> None:
        """Send a frame after all output that was written before.

        Raises:
            LineBroken: The host is gone.
        """
        with self._lock:
            self._flush()
            self._line.send(kind, head, body)

    def flush(self) -> None:
        """Send the output that waits."""
        with self._lock:
            self._flush()

    def can_send(self) -> bool:
        """Whether the host has taken what it was sent, more or less."""
        return self._line.can_send()

    def _is_late(self) -> bool:
        return time.monotonic() - self._sent_at >= _DELAY_SECONDS

    def _flush(self) -> None:
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if not waiting:
            return
        self._sent_at = time.monotonic()
        for fd, data in _joined(waiting):
            self._line.send(FrameKind.STDOUT if fd == STDOUT else FrameKind.STDERR, None, data)


def _joined(pieces: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """The same with neighbours on one stream made one."""
    found: list[tuple[int, list[bytes]]] = []
    for fd, data in pieces:
        if found and found[-1][0] == fd:
            found[-1][1].append(data)
        else:
            found.append((fd, [data]))
    return [(fd, b"".join(parts)) for fd, parts in found]


class Flusher:
    """Sends what waits in any channel of the process soon after it was written."""

    def __init__(self) -> None:
        self._late: set[Channel] = set()
        self._some = Event()
        self._lock = Lock()
        Thread(target=self._run, name="carrel-flusher", daemon=True).start()

    def add(self, channel: Channel) -> None:
        """Send the output of *channel* in a moment."""
        with self._lock:
            self._late.add(channel)
        self._some.set()

    def _run(self) -> None:
        while True:
            self._some.wait()
            time.sleep(_DELAY_SECONDS)
            with self._lock:
                late, self._late = self._late, set()
                self._some.clear()
            for channel in late:
                if not channel.can_send():
                    # Its host does not listen just now, which must not hold up the others.
                    self.add(channel)
                    continue
                with suppress(FrameSocketBroken):
                    channel.flush()
