"""As many requests as a server answers: the same one over several connections, read without looking at it."""

from __future__ import annotations

import selectors
import socket
from time import perf_counter
from types import TracebackType
from typing import Self

from bench._errors import UnmeasuredError

ANSWER_SECONDS = 10


class Load:
    """Connections over which one request is sent again and again, each when its last answer is complete."""

    def __init__(self, port: int, request: bytes, *, connections: int = 8) -> None:
        """Connect, and find out how long the body of an answer is; that of every answer must be as long."""
        self._request = request
        self._sockets = [
            socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS) for _ in range(connections)
        ]
        for each in self._sockets:
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.status, self._body_bytes = self._first()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in self._sockets:
            each.close()

    def _first(self) -> tuple[int, int]:
        first = self._sockets[0]
        first.sendall(self._request)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += first.recv(2**16)
        head, _, body = answer.partition(b"\r\n\r\n")
        length = next(
            int(line.partition(b":")[2])
            for line in head.lower().splitlines()
            if line.startswith(b"content-length")
        )
        rest = length - len(body)
        while rest > 0:
            rest -= len(first.recv(rest))
        return int(head.split()[1]), length

    def seconds(self, requests: int) -> float:
        """How long so many requests take.

        Raises:
            UnmeasuredError: The server went away, or answers otherwise than before.
        """
        got = {each.fileno(): b"" for each in self._sockets}
        sent, done = len(self._sockets), 0
        with selectors.DefaultSelector() as selector:
            for each in self._sockets:
                selector.register(each, selectors.EVENT_READ)
            started = perf_counter()
            for each in self._sockets:
                each.sendall(self._request)
            while done < sent:
                for key, _ in selector.select(ANSWER_SECONDS):
                    connection = self._connection(key.fileobj)
                    piece = connection.recv(2**16)
                    answer = got[key.fd] + piece
                    if not piece:
                        raise UnmeasuredError("the server went away")
                    if not self._is_whole(answer):
                        got[key.fd] = answer
                        continue
                    done += 1
                    got[key.fd] = b""
                    if sent < requests:
                        connection.sendall(self._request)
                        sent += 1
            return (perf_counter() - started) * requests / done

    def _is_whole(self, answer: bytes) -> bool:
        end = answer.find(b"\r\n\r\n")
        rest = len(answer) - end - 4 - self._body_bytes
        if end >= 0 and rest > 0:
            raise UnmeasuredError("the server does not answer as it did before")
        return end >= 0 and rest == 0

    def _connection(self, found: object) -> socket.socket:
        assert isinstance(found, socket.socket)
        return found
