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

from carrel import connect
from carrel.config.table import CONFIG_VARIABLE
from carrel.remote import local_token
from carrel.service.authentication.key_store import KeyStore, NewKey
from tests.conftest import ENVIRON

CARREL = [sys.executable, "-m", "carrel", "--sessions-dir"]
SERVING = re.compile(r"carrel: serving (http://\S+)(?: grpc (\S+))?\n")


def environ() -> dict[str, str]:
    return ENVIRON | {
        CONFIG_VARIABLE: os.devnull,
        "CARREL_SERVE_SHUTDOWN_SECONDS": "5",
        "XDG_STATE_HOME": os.environ["XDG_STATE_HOME"],
    }


@contextmanager
def process(
    root: Path, *options: str, state: Path | None = None
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A service that was started, and its URL."""
    command = [*CARREL, str(root), "serve", "--port", "0", "--grpc-port", "0", *options]
    env = environ() if state is None else environ() | {"XDG_STATE_HOME": str(state)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env) as started:
        assert started.stderr is not None
        try:
            match = SERVING.fullmatch(started.stderr.readline())
            assert match is not None
            yield started, match[1]
        finally:
            started.kill()


def client_of(url: str) -> httpx2.Client:
    """A client with the local token."""
    at = httpx2.URL(url)
    token = local_token.find(at.host, at.port or 0, os.environ)
    return httpx2.Client(base_url=url, headers={} if token is None else {"Authorization": f"Bearer {token}"})


def test_everybody_needs_a_key_and_programs_of_the_same_user_find_one(tmp_path: Path) -> None:
    with process(tmp_path / "sessions") as (started, url):
        assert httpx2.get(f"{url}/api/v1/sessions").status_code == 401
        with connect(url) as manager:
            assert manager.list_workspaces() == []
        with client_of(url) as client:
            assert client.get("/metrics").status_code == 200
        printed = subprocess.run(
            [sys.executable, "-m", "carrel", "key", "local", url], capture_output=True, text=True, check=True
        )
        headers = {"Authorization": f"Bearer {printed.stdout.strip()}"}
        assert httpx2.get(f"{url}/api/v1/sessions", headers=headers).status_code == 200
        started.send_signal(signal.SIGTERM)
        assert started.wait(60) == 0
    at = httpx2.URL(url)
    assert local_token.find(at.host, at.port or 0, os.environ) is None


def test_a_client_goes_on_with_a_service_that_was_started_again(tmp_path: Path) -> None:
    with process(tmp_path / "sessions") as (_, url):
        client = connect(url)
        client.create("s")
    with client, process(tmp_path / "sessions", "--port", url.rpartition(":")[2]):
        assert client.list_workspaces() == ["s"]


def test_a_service_may_be_started_without_keys_on_loopback_alone(tmp_path: Path) -> None:
    with process(tmp_path / "sessions", "--no-auth") as (_, url):
        assert httpx2.get(f"{url}/api/v1/sessions").status_code == 200
    command = [*CARREL, str(tmp_path / "sessions"), "serve", "--no-auth", "--host", "0.0.0.0"]
    done = subprocess.run(command, capture_output=True, text=True, env=environ(), check=False)
    assert done.returncode == 2
    assert "--no-auth works on loopback only" in done.stderr


def test_a_service_that_cannot_store_a_token_says_so_and_serves(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with process(tmp_path / "sessions", state=tmp_path / "file") as (started, url):
        assert httpx2.get(f"{url}/healthz").status_code == 200
        started.send_signal(signal.SIGTERM)
        assert started.stderr is not None
        assert "the local token could not be stored: Not a directory" in started.stderr.read()


def test_a_service_that_is_told_to_stop_finishes_what_runs(tmp_path: Path) -> None:
    with process(tmp_path / "sessions") as (started, url), client_of(url) as client:
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


@pytest.mark.parametrize("option", ["--port", "--grpc-port"])
def test_a_port_that_is_taken_is_told_and_nothing_else(tmp_path: Path, option: str) -> None:
    other = "--grpc-port" if option == "--port" else "--port"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [*CARREL, str(tmp_path / "sessions"), "serve", option, str(port), other, "0"]
        done = subprocess.run(command, capture_output=True, text=True, env=environ(), check=False)
    assert done.returncode == 5
    assert done.stderr == f"carrel: cannot listen at 127.0.0.1 port {port}: Address already in use\n"


@pytest.mark.parametrize("has_key", [False, True])
def test_who_serves_callers_without_a_key_is_told_to_make_one(tmp_path: Path, has_key: bool) -> None:
    root = tmp_path / "sessions"
    if has_key:
        with closing(KeyStore(root)) as keys:
            keys.create(NewKey(name="ci"))
    with process(root, "--host", "0.0.0.0", "--no-grpc") as (started, _):
        started.send_signal(signal.SIGTERM)
        assert started.stderr is not None
        assert ("carrel key create NAME" in started.stderr.read()) is not has_key
