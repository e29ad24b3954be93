"""Servers that stand in for a service or a proxy and misbehave."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def listening(serve: Callable[[socket.socket, int], None]) -> Iterator[str]:
    """Listen while the body runs, and call *serve* with each connection and its number in a thread.

    Yields host and port.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            for number in range(1000):
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=_served, args=(serve, connection, number), daemon=True).start()

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        host, port = listener.getsockname()
        try:
            yield f"{host}:{port}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join()


def _served(serve: Callable[[socket.socket, int], None], connection: socket.socket, number: int) -> None:
    with connection, suppress(OSError):
        serve(connection, number)


def says(*answers: bytes) -> Callable[[socket.socket, int], None]:
    """Gives the first connection the first of these HTTP answers, and so on; the last one to all others."""

    def serve(connection: socket.socket, number: int) -> None:
        connection.recv(2**16)
        connection.sendall(answers[min(number, len(answers) - 1)])

    return serve


def answer(status: str, body: bytes, *headers: str) -> bytes:
    """An HTTP answer, after which the connection ends."""
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def cuts(
    target: str, when: Callable[[bytes], bool], connections: int
) -> Callable[[socket.socket, int], None]:
    """Passes all on to *target*, but ends a connection when *when* says so about what came back by then.

    That happens to the first *connections* of which it says so.
    """
    host, _, port = target.rpartition(":")
    left = threading.Semaphore(connections)

    def serve(connection: socket.socket, number: int) -> None:
        with socket.create_connection((host, int(port))) as far:
            threading.Thread(target=_copied, args=(connection, far), daemon=True).start()
            seen = b""
            while data := far.recv(2**16):
                seen += data
                connection.sendall(data)
                if when(seen) and left.acquire(blocking=False):
                    connection.shutdown(socket.SHUT_RDWR)
                    return

    return serve


def _copied(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(2**16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
