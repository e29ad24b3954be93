"""`FileAgent`: a shell script that stays in a container and answers one request after the other.

It is one `exec` for as long as it is used, so that a request costs a message and a few processes instead of
a start of everything. It is started again when it has ended; one that does not answer in time is ended.
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

from carrel.containers.fs.primitives import UP, Parts, os_error
from carrel.errors import CarrelError, ContainerError, EngineError

if TYPE_CHECKING:
    from carrel.containers.container import Container
    from carrel.containers.stream import ExecStream

ANSWER_SECONDS = 30.0
_TAIL_BYTES = 96
_TIDY_BYTES = 2**20
_SAFE = re.compile(rb"[A-Za-z0-9._+,@:-]+")
_NO_SHELL = (126, 127)
_LOST = "lost"
"""The answer of a script that failed and ended, because content was left that it could not take."""
_ENDED = ("container.ended", "engine.failed")
"""How it shows that the script is no longer there."""


class AgentReply(NamedTuple):
    """What the attendant said."""

    code: str
    at: int
    """How many names it went through."""
    payload: bytes


class FileAgent:
    """One running script; used by any number of threads, one at a time."""

    def __init__(
        self, container: Container, root: str, *, user: str | None, timeout_seconds: float = ANSWER_SECONDS
    ) -> None:
        """Begin nothing yet; the first request starts the script."""
        self._container = container
        self._root = root
        self._user = user
        self._timeout_seconds = timeout_seconds
        self._lock = Lock()
        self._stream: ExecStream | None = None
        self._pid = b""
        self._name = f"carrel-{os.urandom(8).hex()}"
        self._lost: list[bytes] = []
        """Processes of those that did not answer."""

    def start(self) -> None:
        """Start it, if it does not run.

        Raises:
            ContainerError: The image has no shell, or not the tools that the script needs, or not the root.
        """
        with self._lock:
            self._ready()

    def ask(
        self, *fields: bytes, content: bytes = b"", most: int | None = None, repeat: bool = False
    ) -> AgentReply:
        """Send a request and wait for the answer, of at most so many bytes.

        If the script ends meanwhile, a request that changes nothing can be asked to *repeat* itself.

        Raises:
            OSError: EAGAIN if it does not answer in time; EFBIG if the answer is too long.
            ContainerError: It ended while it worked, or it cannot be started.
            EngineError: The engine does not answer.
        """
        with self._lock:
            if repeat:
                try:
                    return self._ask(fields, content, most)
                except (ContainerError, EngineError) as error:
                    if error.code not in _ENDED:
                        raise
            return self._ask(fields, content, most)

    def _ask(self, fields: tuple[bytes, ...], content: bytes, most: int | None) -> AgentReply:
        stream = self._ready()
        done = False
        try:
            answer = self._exchange(stream, fields, content, most)
            done = True
        finally:
            if not done:
                self._abandon()
        if answer.code == _LOST:
            self._close_stream()
            return answer._replace(code="fail")
        return answer

    def close(self) -> None:
        """Let it end; a request starts it again."""
        with self._lock:
            self._close_stream()

    def __del__(self) -> None:
        stream = self.__dict__.get("_stream")
        if stream is not None:
            with suppress(Exception):
                stream.close()

    def _exchange(
        self, stream: ExecStream, fields: tuple[bytes, ...], content: bytes, most: int | None
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
        return _receive(stream, mark, deadline, most)

    def _ready(self) -> ExecStream:
        if self._stream is not None and _has_ended(self._stream):
            self._close_stream()
        if self._stream is None:
            self._stream = self._tidied(self._started())
        return self._stream

    def _tidied(self, stream: ExecStream) -> ExecStream:
        """End those that did not answer, and remove what was left by those that died."""
        try:
            for pid in self._lost:
                self._exchange(stream, (b"end", pid, self._name.encode()), b"", _TIDY_BYTES)
            self._lost.clear()
            self._exchange(stream, (b"sweep",), b"", _TIDY_BYTES)
        except BaseException:
            stream.close()
            raise
        return stream

    def _started(self) -> ExecStream:
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
        raise _no_shell() if problem.problem == "program" else problem

    def _abandon(self) -> None:
        """Never use this one again: what it sends may belong to another request."""
        if self._stream is not None:
            self._lost.append(self._pid)
            self._close_stream()

    def _close_stream(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def field(name: bytes) -> bytes:
    """A name as the script wants it."""
    if name == UP:
        return name
    if _SAFE.fullmatch(name):
        return b"=" + name
    return b"%" + b"".join(b"\\0%03o" % byte for byte in name)


def fields(parts: Parts) -> list[bytes]:
    """Names as the script wants them."""
    return [field(name) for name in parts]


def number(value: int) -> bytes:
    """A number as the script wants it."""
    return b"%d" % value


def _receive(stream: ExecStream, mark: bytes, deadline: float, most: int | None) -> AgentReply:
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
        if most is not None and len(received) > most:
            raise os_error(errno.EFBIG)
        end = _end(received, mark)
    if ended or end is None:
        raise _gone(stream, mark, bytes(received))
    at, code, count = end
    return AgentReply(code, count, bytes(received[:at]))


def _end(received: bytearray, mark: bytes) -> tuple[int, str, int] | None:
    """Where the answer ends that *received* may be, with the code and the count of its last line."""
    if not received.endswith(b"\n"):
        return None
    at = received.rfind(mark + b":", max(0, len(received) - _TAIL_BYTES))
    if at < 0:
        return None
    told = received[at:].split(b":")
    if len(told) != 3 or not told[2].strip().isdigit():
        return None
    return at, told[1].decode("ascii", "replace"), int(told[2])


def _gone(stream: ExecStream, mark: bytes, received: bytes) -> CarrelError:
    if mark != b"start":
        return ContainerError("ended", "what works on the files in the container has ended")
    code = stream.wait(time.monotonic() + 1)
    detail = received.decode("utf-8", "replace")[:1000]
    if code in _NO_SHELL:
        return _no_shell(detail)
    return ContainerError("failed", "what works on the files in the container cannot start", detail=detail)


def _no_shell(detail: str = "") -> ContainerError:
    return ContainerError("shell", "the image has no shell to work on its files with", detail=detail)


def _require_ready(hello: AgentReply) -> None:
    if hello.code == "tools":
        names = ", ".join(hello.payload.decode("ascii", "replace").split())
        raise ContainerError("tools", f"the image lacks programs to work on its files with: {names}")
    if hello.code == "features":
        raise ContainerError("tools", "the programs of the image cannot do what work on its files needs")
    if hello.code != "ok":
        raise ContainerError("root", "the directory for files is not in the container, or shut")


def _has_ended(stream: ExecStream) -> bool:
    """Whether the script ended since it last answered; what it said meanwhile is to no request of ours."""
    try:
        return stream.receive(0.0) is not None
    except (EOFError, EngineError):
        return True
