"""`FileAgent`: a shell script that keeps running in a container and handles one request after the other.

One `exec` serves many requests, so that a request costs one message and a few processes instead of a new
`exec`. The script is restarted if it has ended; one that does not reply in time is killed.
"""

from __future__ import annotations

import errno
import os
import re
import time
from contextlib import suppress
from importlib.resources import files as resources
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from carrel.containers.fs.primitives import UP, Parts
from carrel.errors import CarrelError, ContainerError, EngineError
from carrel.fs.errors import os_error

if TYPE_CHECKING:
    from carrel.containers.container import Container
    from carrel.containers.stream import ExecStream

ANSWER_SECONDS = 30.0
_TAIL_BYTES = 96
_TIDY_BYTES = 2**20
_SAFE = re.compile(rb"[A-Za-z0-9._+,@:-]+")
_NO_SHELL = (126, 127)
_LOST = "lost"
"""Reply of a script that failed and ended, because it could not read the rest of the content."""
_ENDED = ("container.ended", "engine.failed")
"""Error codes that mean that the script has ended."""


class AgentReply(NamedTuple):
    """Reply to one request."""

    code: str
    at: int
    """Number of names that were resolved."""
    payload: bytes


class FileAgent:
    """One running script; threads take turns."""

    def __init__(
        self, container: Container, root: str, *, user: str | None, timeout_seconds: float = ANSWER_SECONDS
    ) -> None:
        """Create an agent; the first request starts the script."""
        self._container = container
        self._root = root
        self._user = user
        self._timeout_seconds = timeout_seconds
        self._lock = Lock()
        self._stream: ExecStream | None = None
        self._pid = b""
        self._name = f"carrel-{os.urandom(8).hex()}"
        self._unresponsive: list[bytes] = []
        """PIDs of scripts that did not reply in time."""

    def start(self) -> None:
        """Start the script, unless it is running.

        Raises:
            ContainerError: The image lacks a shell, a tool that the script needs, or the root directory.
        """
        with self._lock:
            self._ready()

    def request(
        self, *fields: bytes, content: bytes = b"", max_bytes: int | None = None, repeat: bool = False
    ) -> AgentReply:
        """Send a request and wait for the reply, of at most *max_bytes*.

        If the script has ended, the request is sent again if *repeat* says that this is safe.

        Raises:
            OSError: EAGAIN if there is no reply in time; EFBIG if the reply is too long.
            ContainerError: The script ended during the request, or cannot be started.
            EngineError: The engine does not respond.
        """
        with self._lock:
            if repeat:
                try:
                    return self._send(fields, content, max_bytes)
                except (ContainerError, EngineError) as error:
                    if error.code not in _ENDED:
                        raise
            return self._send(fields, content, max_bytes)

    def _send(self, fields: tuple[bytes, ...], content: bytes, max_bytes: int | None) -> AgentReply:
        stream = self._ready()
        done = False
        try:
            reply = self._exchange(stream, fields, content, max_bytes)
            done = True
        finally:
            if not done:
                self._abandon()
        if reply.code == _LOST:
            self._close_stream()
            return reply._replace(code="fail")
        return reply

    def close(self) -> None:
        """Stop the script; the next request starts it again."""
        with self._lock:
            self._close_stream()

    def __del__(self) -> None:
        stream = self.__dict__.get("_stream")
        if stream is not None:
            with suppress(Exception):
                stream.close()

    def _exchange(
        self, stream: ExecStream, fields: tuple[bytes, ...], content: bytes, max_bytes: int | None
    ) -> AgentReply:
        mark = os.urandom(12).hex().encode()
        deadline = time.monotonic() + self._timeout_seconds
        request = b" ".join((mark, *fields)) + b"\n" + content
        try:
            stream.send(request, deadline=deadline)
        except EngineError as error:
            if error.problem != "slow":
                raise
            request = b""
        if not request:
            raise os_error(errno.EAGAIN)
        return _receive(stream, mark, deadline, max_bytes)

    def _ready(self) -> ExecStream:
        if self._stream is not None and _has_ended(self._stream):
            self._close_stream()
        if self._stream is None:
            self._stream = self._clean_up(self._launch())
        return self._stream

    def _clean_up(self, stream: ExecStream) -> ExecStream:
        """Kill scripts that did not reply, and remove what dead scripts left."""
        try:
            for pid in self._unresponsive:
                self._exchange(stream, (b"end", pid, self._name.encode()), b"", _TIDY_BYTES)
            self._unresponsive.clear()
            self._exchange(stream, (b"sweep",), b"", _TIDY_BYTES)
        except BaseException:
            stream.close()
            raise
        return stream

    def _launch(self) -> ExecStream:
        script = resources("carrel.containers.fs").joinpath("file_agent.sh").read_text()
        try:
            stream = self._container.exec(["sh", "-c", script, self._name, self._root], user=self._user)
        except ContainerError as error:
            problem = error
        else:
            try:
                hello = _receive(stream, b"start", time.monotonic() + self._timeout_seconds, 2**16)
                _require_ready(hello)
            except BaseException:
                stream.close()
                raise
            self._pid = hello.payload
            return stream
        raise _no_shell_error() if problem.problem == "program" else problem

    def _abandon(self) -> None:
        """Stop using this script: what it still sends may belong to an earlier request."""
        if self._stream is not None:
            self._unresponsive.append(self._pid)
            self._close_stream()

    def _close_stream(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def field(name: bytes) -> bytes:
    """Encode a name for the script."""
    if name == UP:
        return name
    if _SAFE.fullmatch(name):
        return b"=" + name
    return b"%" + b"".join(b"\\0%03o" % byte for byte in name)


def fields(parts: Parts) -> list[bytes]:
    """Encode names for the script."""
    return [field(name) for name in parts]


def number(value: int) -> bytes:
    """Encode a number for the script."""
    return b"%d" % value


def _receive(stream: ExecStream, mark: bytes, deadline: float, max_bytes: int | None) -> AgentReply:
    received = bytearray()
    end = None
    ended = False
    while end is None:
        try:
            piece = stream.receive(deadline)
        except EOFError:
            ended = True
            break
        if piece is None:
            raise os_error(errno.EAGAIN)
        received += piece[1]
        if max_bytes is not None and len(received) > max_bytes:
            raise os_error(errno.EFBIG)
        end = _end(received, mark)
    if ended or end is None:
        raise _ended_error(stream, mark, bytes(received))
    at, code, count = end
    return AgentReply(code, count, bytes(received[:at]))


def _end(received: bytearray, mark: bytes) -> tuple[int, str, int] | None:
    """Find the last line of a complete reply; returns its position, code and count."""
    if not received.endswith(b"\n"):
        return None
    at = received.rfind(mark + b":", max(0, len(received) - _TAIL_BYTES))
    if at < 0:
        return None
    parts = received[at:].split(b":")
    if len(parts) != 3 or not parts[2].strip().isdigit():
        return None
    return at, parts[1].decode("ascii", "replace"), int(parts[2])


def _ended_error(stream: ExecStream, mark: bytes, received: bytes) -> CarrelError:
    if mark != b"start":
        return ContainerError("ended", "the file agent in the container has ended")
    code = stream.wait(time.monotonic() + 1)
    detail = received.decode("utf-8", "replace")[:1000]
    if code in _NO_SHELL:
        return _no_shell_error(detail)
    return ContainerError("failed", "the file agent cannot start in the container", detail=detail)


def _no_shell_error(detail: str = "") -> ContainerError:
    return ContainerError("shell", "the image has no shell for file operations", detail=detail)


def _require_ready(hello: AgentReply) -> None:
    if hello.code == "tools":
        names = ", ".join(hello.payload.decode("ascii", "replace").split())
        raise ContainerError("tools", f"the image lacks tools for file operations: {names}")
    if hello.code == "features":
        raise ContainerError("tools", "the tools in the image lack options that file operations need")
    if hello.code != "ok":
        raise ContainerError(
            "root", "the directory for files does not exist in the container or is not accessible"
        )


def _has_ended(stream: ExecStream) -> bool:
    """Whether the script has ended, or sent output that belongs to no request."""
    try:
        return stream.receive(0.0) is not None
    except (EOFError, EngineError):
        return True
