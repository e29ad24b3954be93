"""The files for containers: what they promise is in them, and what they name is there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from fnmatch import fnmatch
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from carrel.config.load import load
from carrel.config.serve_keys import GRPC_PORT, PORT
from carrel.config.table import KEYS

ROOT = Path(__file__).parent.parent
VARIABLES = {key.variable for key in KEYS}


def instructions() -> Iterator[tuple[str, str]]:
    """Each instruction of the Dockerfile with its words, on one line."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        if line.strip():
            name, _, words = line.partition(" ")
            yield name, words.strip()


def stages() -> list[list[tuple[str, str]]]:
    """The instructions of each stage, the one that begins it first."""
    found: list[list[tuple[str, str]]] = []
    for name, words in instructions():
        if name == "FROM":
            found.append([])
        if found:
            found[-1].append((name, words))
    return found


def last(name: str) -> str:
    """The words of the only instruction *name* in the stage that runs."""
    (words,) = [words for each, words in stages()[-1] if each == name]
    return words


def compose() -> dict[str, Any]:  # Any: whatever YAML can say
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
    return loaded


def service(name: str) -> dict[str, Any]:  # Any: whatever YAML can say
    found: dict[str, Any] = compose()["services"][name]
    return found


def test_every_stage_is_made_from_the_image_that_was_asked_for() -> None:
    assert [name for name, _ in instructions()].index("ARG") == 0
    default = next(words for name, words in instructions() if name == "ARG")
    assert default == "PYTHON_IMAGE=python:3.11-slim"
    assert [stage[0][1].split()[0] for stage in stages()] == ["${PYTHON_IMAGE}"] * 2


def test_what_is_copied_is_there_and_not_ignored() -> None:
    shown = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    copied = [
        name
        for each, words in instructions()
        if each == "COPY" and "--from" not in words
        for name in words.split()[:-1]
    ]
    assert copied
    for name in copied:
        assert (ROOT / name).exists(), name
        assert any(fnmatch(name, pattern) for pattern in shown), name


def test_nothing_is_sent_to_the_engine_but_what_the_image_is_made_of() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert next(line for line in lines if not line.startswith("#")) == "*"


def test_the_service_is_not_root_and_is_so_by_its_number() -> None:
    (default,) = [words for name, words in stages()[-1] if name == "ARG"]
    name, _, number = default.partition("=")
    assert last("USER") == f"${{{name}}}:${{{name}}}"
    assert int(number) > 0


def test_the_guest_is_compiled_by_the_user_who_will_run_it() -> None:
    stage = stages()[-1]
    names = [name for name, _ in stage]
    assert stage.index(("RUN", "carrel setup")) > names.index("USER")


def test_no_secret_for_the_index_stays_in_the_image() -> None:
    assert not [words for name, words in instructions() if name in ("ARG", "ENV") and "INDEX" in words]
    assert any("--mount=type=secret,id=pip" in words for name, words in instructions() if name == "RUN")


def test_the_image_serves_at_the_ports_that_are_configured() -> None:
    assert last("EXPOSE").split() == [str(PORT.default), str(GRPC_PORT.default)]
    assert json.loads(last("ENTRYPOINT")) == ["carrel"]
    assert json.loads(last("CMD"))[0] == "serve"
    assert last("STOPSIGNAL") == "SIGTERM"


class Service(BaseHTTPRequestHandler):
    """One that is well at these two paths, and not ready at any other."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path in ("/healthz", "/readyz") else 503)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    with HTTPServer(("127.0.0.1", 0), Service) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_the_health_is_asked_of_the_service_itself_at_its_port(path: str, port: int) -> None:
    test = ["CMD", *json.loads(last("HEALTHCHECK").partition("CMD ")[2])]
    if path == "/readyz":
        test = service("carrel")["healthcheck"]["test"]
    assert test[:3] == ["CMD", "python", "-c"]
    assert f"'{PORT.default}'" in test[3]
    # Some engines tell every container of a proxy.
    environ = os.environ | {str(PORT.variable): str(port), "http_proxy": "http://127.0.0.1:1"}
    for program, status in ((test[3], 0), (test[3].replace(path, "/elsewhere"), 1)):
        asked = subprocess.run([sys.executable, "-c", program], env=environ, check=False, capture_output=True)
        assert asked.returncode == status


def test_the_sessions_are_on_a_volume() -> None:
    assert f"CARREL_SESSIONS_DIR={last('VOLUME')}" in last("ENV")


@pytest.mark.parametrize("name", ["carrel", "worker"])
def test_a_container_can_do_no_more_than_it_has_to(name: str) -> None:
    found = service(name)
    assert found["read_only"] is True
    assert found["cap_drop"] == ["ALL"]
    assert found["security_opt"] == ["no-new-privileges:true"]
    assert found["mem_limit"]
    assert found["pids_limit"]
    assert "privileged" not in found
    assert "user" not in found


def test_both_have_the_sessions_where_the_image_has_them() -> None:
    mounts = [service(name)["volumes"] for name in ("carrel", "worker")]
    assert mounts == [[f"sessions:{last('VOLUME')}"]] * 2
    assert "sessions" in compose()["volumes"]


def test_the_service_is_published_to_this_machine_alone() -> None:
    assert service("carrel")["ports"] == [
        f"127.0.0.1:{port}:{port}" for port in (PORT.default, GRPC_PORT.default)
    ]


def test_a_container_is_given_more_time_to_stop_than_the_service_takes() -> None:
    assert int(service("carrel")["stop_grace_period"].removesuffix("s")) > load({}).serve.shutdown_seconds


def test_the_worker_calls_the_service_once_it_is_ready() -> None:
    worker = service("worker")
    assert worker["depends_on"]["carrel"]["condition"] == "service_healthy"
    assert f"carrel:{GRPC_PORT.default}" in worker["environment"]["CARREL_SANDBOX_ADDR"]
    assert "/readyz" in service("carrel")["healthcheck"]["test"][-1]


def test_every_variable_is_one_that_is_read() -> None:
    named = set(re.findall(r"\bCARREL_\w+", (ROOT / "Dockerfile").read_text()))
    named |= {name for each in compose()["services"].values() for name in each.get("environment", {})}
    assert named
    assert named <= VARIABLES
