"""The functions for a session's files use their manager again, and notice when it is another."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import threading
from pathlib import Path

import pytest

from carrel import delete_session_workspace, read_session_file, write_session_file
from carrel.audit.logger import SandboxLogger
from carrel.errors import QuotaError
from carrel.sessions.manager_cache import MAX_MANAGERS, ManagerCache


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


def test_a_manager_is_used_again(root: Path) -> None:
    managers = ManagerCache()
    first = managers.get(root, None)
    assert managers.get(root, None) is first


def test_a_signal_handler_may_look_for_a_manager_while_its_thread_does(root: Path) -> None:
    managers = ManagerCache()
    found = []

    class Interrupting(SandboxLogger):
        """Lets a signal come while it is looked up."""

        def __hash__(self) -> int:
            signal.raise_signal(signal.SIGUSR1)
            return id(self)

    old = signal.signal(signal.SIGUSR1, lambda *_: found.append(managers.get(root, None)))
    try:
        managers.get(root, Interrupting())
    finally:
        signal.signal(signal.SIGUSR1, old)
    assert found
    assert found[0] is managers.get(root, None)


@pytest.mark.parametrize("name", ["CARREL_MAX_WORKSPACE_MB", "SHANNON_MAX_WORKSPACE_SIZE_MB"])
def test_a_variable_that_is_set_meanwhile_counts(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    write_session_file("s", "f", b"in", root)
    monkeypatch.setenv(name, "0")
    with pytest.raises(QuotaError):
        write_session_file("s", "f", b"more", root)
    monkeypatch.delenv(name)
    write_session_file("s", "f", b"more", root)


def test_a_file_that_is_written_meanwhile_counts(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.toml"
    config.write_text("[session]\nmax_workspace_mb = 1\n")
    monkeypatch.setenv("CARREL_CONFIG", str(config))
    write_session_file("s", "f", b"in", root)
    config.write_text("[session]\nmax_workspace_mb = 0\n")
    with pytest.raises(QuotaError):
        write_session_file("s", "f", b"more", root)


def test_a_directory_that_was_replaced_is_another(root: Path) -> None:
    for content in (b"one", b"two"):
        write_session_file("s", "f", content, root)
        assert read_session_file("s", "f", root) == content
        shutil.rmtree(root)
    with pytest.raises(FileNotFoundError):
        read_session_file("s", "f", root)


def test_the_current_directory_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        write_session_file("s", "f", name.encode())
        write_session_file("s", "f", name.encode(), "relative")
    assert (tmp_path / "a/workspace/s/f").read_bytes() == b"a"
    assert (tmp_path / "b/workspace/s/f").read_bytes() == b"b"
    assert (tmp_path / "a/relative/s/f").read_bytes() == b"a"


def test_each_logger_hears_its_own_events(root: Path) -> None:
    heard: dict[str, list[str]] = {"one": [], "two": []}

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard[record.name].append(record.getMessage())

    for name in heard:
        logger = logging.Logger(name, logging.INFO)
        logger.addHandler(Handler())
        write_session_file("s", name, b"in", root, logger=SandboxLogger(logger))
    assert all(f"path={name}" in " ".join(lines) for name, lines in heard.items())


def test_only_some_are_kept(tmp_path: Path) -> None:
    managers = ManagerCache()
    first = managers.get(tmp_path / "0", None)
    for number in range(1, MAX_MANAGERS + 1):
        managers.get(tmp_path / str(number), None)
    assert managers.get(tmp_path / "0", None) is not first
    last = managers.get(tmp_path / str(MAX_MANAGERS), None)
    assert managers.get(tmp_path / str(MAX_MANAGERS), None) is last


def test_many_threads_and_children_share_them(root: Path) -> None:
    def work(number: int) -> None:
        for count in range(10):
            write_session_file(f"s{number % 3}", f"{number}-{count}", b"in", root)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    child = os.fork()
    if not child:
        try:
            work(6)
        finally:
            os._exit(0)
    for thread in threads:
        thread.join()
    assert os.waitpid(child, 0)[1] == 0
    assert sum(len(os.listdir(root / f"s{number}")) for number in range(3)) == 70
    delete_session_workspace("s0", root)
    assert not (root / "s0").exists()
