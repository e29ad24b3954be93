"""A service that is killed in the middle of everything has kept what it acknowledged."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from queue import Queue

from carrel.sessions.manager import WorkspaceManager
from tests.conformance.http_door import API, Http
from tests.conformance.server import Server

WRITERS = 4
ENOUGH = 100
"""Writes that are acknowledged before it is killed, while others are on their way."""


def test_a_kill_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    acknowledged: Queue[str] = Queue()
    with Server(tmp_path, None, "--no-grpc") as server, ThreadPoolExecutor(WRITERS) as pool:
        with Http(server.port) as http:
            http.request("PUT", f"{API}/sessions/s")
        writers = [pool.submit(_write, server.port, number, acknowledged) for number in range(WRITERS)]
        kept = [acknowledged.get(timeout=60) for _ in range(ENOUGH)]
        assert server.stop(signal.SIGKILL) == -signal.SIGKILL
        for writer in writers:
            writer.result()
    while not acknowledged.empty():
        kept.append(acknowledged.get())
    with WorkspaceManager(tmp_path) as manager, manager.open("s") as workspace:
        for path in kept:
            assert workspace.read(path) == path.encode() * 1000
        assert {info.path for info in workspace.walk() if info.is_file} >= set(kept)
        assert workspace.usage() == workspace.recount()


def _write(port: int, writer: int, acknowledged: Queue[str]) -> None:
    with Http(port) as http:
        for number in range(10**6):
            path = f"w{writer}/{number}"
            try:
                reply = http.request("PUT", f"{API}/sessions/s/files/{path}", path.encode() * 1000)
            except (OSError, HTTPException):
                return
            assert reply.status in (200, 201, 204), reply.body
            acknowledged.put(path)
