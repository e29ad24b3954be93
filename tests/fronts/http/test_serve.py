"""`carrel serve` as a process of its own."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx2
import pytest

from carrel.config.table import CONFIG_VARIABLE
from carrel.service.keys import Keys, NewKey
from tests.conftest import ENVIRON

CARREL = [sys.executable, "-m", "carrel", "--sessions-dir"]
SERVING = re.compile(r"carrel: serving (http://\S+)(?: grpc (\S+))?\n")


def environ() -> dict[str, str]:
    return ENVIRON | {CONFIG_VARIABLE: os.devnull, "CARREL_SERVE_SHUTDOWN_SECONDS": "5"}


@contextmanager
def process(root: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A service that was started, and its URL."""
    command = [*CARREL, str(root), "serve", "--port", "0", "--grpc-port", "0", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environ()) as started:
        assert started.stderr is not None
        try:
            match = SERVING.fullmatch(started.stderr.readline())
            assert match is not None
            yield started, match[1]
        finally:
            started.kill()


def test_a_service_that_is_told_to_stop_finishes_what_runs(tmp_path: Path) -> None:
    with process(tmp_path / "sessions") as (started, url), httpx2.Client(base_url=url) as client:
        client.put("/api/v1/sessions/s")
        assert client.get("/api/v1/sessions/s/files/%2e%2e/x").status_code == 400
        headers = {"Accept": "text/event-stream"}
        with client.stream("GET", "/api/v1/sessions/s/changes", headers=headers) as changes:
            assert changes.status_code == 200
            body = {"command": "sleep 0.3"}
            with client.stream("POST", "/api/v1/sessions/s/exec", json=body, headers=headers) as running:
                lines = running.iter_lines()
                next(lines)
                started.send_signal(signal.SIGTERM)
                assert b"path.escape" in changes.read()
                assert "event: exit" in list(lines)
        assert started.wait(60) == 0
        assert started.stderr is not None
        log = started.stderr.read()
    assert "security.path_escape session_id=s operation=read path=../x" in log
    assert '"status":400' in log
    assert "Traceback" not in log


def test_a_port_that_is_taken_is_told_and_nothing_else(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [*CARREL, str(tmp_path / "sessions"), "serve", "--port", str(port)]
        done = subprocess.run(command, capture_output=True, text=True, env=environ(), check=False)
    assert done.returncode == 5
    assert done.stderr == f"carrel: cannot listen at 127.0.0.1 port {port}: Address already in use\n"


def test_a_port_of_grpc_that_is_taken_is_told_and_nothing_else(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        command = [*CARREL, str(tmp_path / "sessions"), "serve", "--port", "0", "--grpc-port", address[10:]]
        done = subprocess.run(command, capture_output=True, text=True, env=environ(), check=False)
    assert done.returncode == 5
    assert done.stderr == f"carrel: gRPC cannot listen at '{address}': is it taken, or not of this machine?\n"


@pytest.mark.parametrize("has_key", [False, True])
def test_who_serves_callers_without_a_key_is_told_to_make_one(tmp_path: Path, has_key: bool) -> None:
    root = tmp_path / "sessions"
    if has_key:
        with closing(Keys(root)) as keys:
            keys.create(NewKey(name="ci"))
    with process(root, "--host", "0.0.0.0", "--no-grpc") as (started, _):
        started.send_signal(signal.SIGTERM)
        assert started.stderr is not None
        assert ("carrel key create NAME" in started.stderr.read()) is not has_key
