"""An engine that is there, and every way in which there is none."""

from __future__ import annotations

import json
import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from carrel.containers.engine import Engine
from carrel.errors import ContainerError, EngineError
from tests.engines import BUSYBOX


@contextmanager
def answering(directory: Path, answer: bytes | None) -> Iterator[str]:
    """The address of something that answers like this, and then breaks off; `None`: never answers."""
    path = directory / "socket"
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(os.fspath(path))
    server.listen()
    held: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            held.append(connection)
            if answer is not None:
                # One comes only to see whether somebody is there.
                if connection.recv(65536):
                    connection.sendall(answer)
                connection.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"unix://{path}"
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()
        for each in held:
            each.close()


def http(status: str, document: object) -> bytes:
    body = json.dumps(document).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def problem_of(address: str, timeout_seconds: float = 5) -> EngineError:
    with pytest.raises(EngineError) as caught:
        Engine.connect(address, timeout_seconds=timeout_seconds)
    return caught.value


def test_an_engine_tells_about_itself(engine: Engine) -> None:
    facts = engine.facts()
    assert facts["version"]
    assert facts["memory_limit"] is True
    assert any("seccomp" in each for each in facts["security"])


def test_the_address_comes_from_the_environment(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", engine.address)
    with Engine.connect() as found:
        assert found.address.removeprefix("http+") == engine.address.removeprefix("http+")


def test_no_engine_is_one_clear_error(tmp_path: Path) -> None:
    error = problem_of(f"unix://{tmp_path}/nothing")
    assert error.code == "engine.missing"
    assert str(tmp_path) not in error.message


def test_nobody_at_a_port_is_the_same_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    assert problem_of(f"tcp://127.0.0.1:{port}").code == "engine.missing"


def test_an_engine_that_says_no_is_one_clear_error(tmp_path: Path) -> None:
    with answering(tmp_path, http("403 Forbidden", {"message": "not you"})) as address:
        error = problem_of(address)
    assert error.code == "engine.refused"
    assert error.detail == "not you"


@pytest.mark.root
def test_a_socket_that_this_user_may_not_use_is_the_same_error() -> None:
    if os.getuid() != 0:
        pytest.skip("only root can become somebody else")
    with tempfile.TemporaryDirectory() as name, answering(Path(name), None) as address:
        os.chmod(name, 0o755)
        os.chmod(address.removeprefix("unix://"), 0o600)
        assert _as_nobody(address) == "engine.refused"


def _as_nobody(address: str) -> str:
    """The code of the error that a user without rights gets."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            # What is needed later is loaded while that is still allowed.
            problem_of("unix:///nothing-is-here")
            os.setgroups([])
            os.setgid(65532)
            os.setuid(65532)
            try:
                Engine.connect(address, timeout_seconds=5)
            except EngineError as error:
                os.write(writing, error.code.encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        code = told.read().decode()
    os.waitpid(child, 0)
    return code


def test_an_engine_that_does_not_answer_is_one_clear_error(tmp_path: Path) -> None:
    with answering(tmp_path, None) as address:
        assert problem_of(address, timeout_seconds=0.2).code == "engine.slow"


def test_an_engine_of_another_age_is_one_clear_error(tmp_path: Path) -> None:
    with answering(tmp_path, http("200 OK", {"ApiVersion": "1.30"})) as address:
        error = problem_of(address)
    assert error.code == "engine.version"
    assert "1.30" in error.message
    assert "1.41" in error.message


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\n\r\nhello", b"SSH-2.0-OpenSSH\r\n"])
def test_what_is_no_engine_is_one_clear_error(tmp_path: Path, answer: bytes) -> None:
    with answering(tmp_path, answer) as address:
        assert problem_of(address).code == "engine.failed"


def test_an_address_of_another_kind_is_refused_by_its_name() -> None:
    error = problem_of("ssh://somewhere")
    assert error.code == "engine.address"
    assert "ssh://somewhere" in error.message


def test_an_image_is_there_or_not(engine: Engine) -> None:
    assert engine.has_image(BUSYBOX)
    assert not engine.has_image("carrel-test-nothing")


def test_an_image_that_cannot_be_pulled_is_one_clear_error(engine: Engine) -> None:
    with pytest.raises((ContainerError, EngineError)) as caught:
        engine.pull("localhost:1/carrel/nothing")
    assert "localhost:1/carrel/nothing" in caught.value.message
