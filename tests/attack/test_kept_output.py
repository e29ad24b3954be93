"""Output that nobody reads does not pile up in a service."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.service.executions import KEPT_BYTES_OF_CALLER
from carrel.values import MIB
from tests.attack.strangers import Target
from tests.conformance.server import Server

pytestmark = [pytest.mark.attack, pytest.mark.thorough]

RUNS = 40
"""Ten times as many as are kept."""
PRINTED_BYTES = 16 * MIB
"""What each run prints: the most that a command line may."""
RUNNING_BYTES = 4 * PRINTED_BYTES
"""What one that runs takes besides: its output as it comes, and as it is kept."""
SESSION = "/api/v1/sessions/s"
NAME = "large"


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Target]:
    with Server(tmp_path, {"CARREL_SERVE_RESUME_SECONDS": "3600"}, "--no-access-log") as server:
        yield Target(server.process.pid, ("127.0.0.1", server.port), ("127.0.0.1", server.grpc_port))


def hang_up_after_the_first_piece(target: Target) -> None:
    """Start a command, read that it prints, and go away; it goes on without a reader."""
    connection = http.client.HTTPConnection(*target.http)
    body = json.dumps({"command": f"cat {NAME}"})
    headers = {"Accept": "text/event-stream", "Content-Type": "application/json"}
    connection.request("POST", f"{SESSION}/exec", body, headers)
    answer = connection.getresponse()
    while not answer.readline().startswith(b"event: stdout"):
        pass
    answer.close()
    connection.close()
    target.settle()


def test_readers_that_hang_up_leave_little_behind(target: Target) -> None:
    connection = http.client.HTTPConnection(*target.http)
    for path, content in ((SESSION, b""), (f"{SESSION}/files/{NAME}", b"x" * PRINTED_BYTES)):
        connection.request("PUT", path, content)
        answer = connection.getresponse()
        assert answer.status < 300
        answer.read()
    connection.close()
    target.settle()
    target.forget_peak()
    before = target.resident_bytes()
    for _ in range(RUNS):
        hang_up_after_the_first_piece(target)
    assert target.peak_bytes() - before < KEPT_BYTES_OF_CALLER + RUNNING_BYTES
