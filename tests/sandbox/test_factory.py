"""Sandboxes are made on sessions, directories and open workspaces, and their runs are logged."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from carrel.audit.logger import SandboxLogger
from carrel.errors import RuntimeDisabledError, RuntimeMissingError, SessionExistsError, SessionMissingError
from carrel.policy.execution import ExecutionPolicy
from carrel.runtimes.api import RuntimeType
from carrel.sandbox.factory import create_sandbox, create_session_sandbox, get_session_sandbox
from carrel.sessions.functions import delete_session_workspace
from tests.requirements import requirement
from tests.sandbox.house import House, said


@pytest.mark.parametrize("runtime", [RuntimeType.PYTHON, "python"])
def test_a_runtime_is_named_or_given(house: House, runtime: RuntimeType | str) -> None:
    session_id, sandbox = create_session_sandbox(runtime, workspace_root=house.root)
    assert sandbox.runtime is RuntimeType.PYTHON
    assert sandbox.session_id == session_id


@requirement("E-39")
def test_a_runtime_that_there_is_not_is_refused_and_nothing_is_made(house: House) -> None:
    with pytest.raises(ValueError, match="Invalid runtime type"):
        create_session_sandbox("invalid", workspace_root=house.root)
    with pytest.raises(ValueError, match="Invalid runtime type"):
        get_session_sandbox("one", "invalid", workspace_root=house.root)
    with pytest.raises(ValueError, match="Invalid runtime type"):
        create_sandbox("invalid")
    with pytest.raises(RuntimeMissingError, match="no image"):
        create_session_sandbox("container", workspace_root=house.root)
    assert not house.root.exists()


def test_guest_code_can_be_switched_off(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARREL_SANDBOX", "0")
    with pytest.raises(RuntimeDisabledError):
        create_session_sandbox(workspace_root=house.root)
    with pytest.raises(RuntimeDisabledError):
        get_session_sandbox("one", workspace_root=house.root)
    assert not house.root.exists()


@requirement("ID-03")
def test_an_unknown_id_gets_a_workspace(house: House) -> None:
    sandbox = get_session_sandbox("0b9d7e2a-5f0e-4a6e-9a53-2d8f3d1c6b7e", workspace_root=house.root)
    assert said(sandbox.execute("print('ok')")) == "ok\n"
    assert house.files(sandbox).is_dir()


@requirement("ID-10")
def test_without_a_workspace_it_is_the_default_session(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARREL_SESSIONS_DIR", str(house.root))
    sandbox = create_sandbox()
    assert sandbox.session_id == "default"
    assert sandbox.execute("open('a', 'w')").files_created == ["a"]
    assert os.listdir(house.root / "default") == ["a"]


def test_a_session_can_be_given_in_place_of_a_workspace(house: House) -> None:
    first = create_sandbox(session_id="one", workspace_root=house.root)
    assert first.execute("open('a', 'w')").files_created == ["a"]
    again = create_sandbox(session_id="one", workspace_root=str(house.root), stateful=True)
    assert again.session_id == "one"
    assert said(again.execute("import os; print(os.listdir())")) == "['a']\n"
    assert create_sandbox(workspace_root=house.root).session_id == "default"
    assert sorted(os.listdir(house.root)) == [".carrel", "default", "one"]


def test_a_session_and_a_workspace_are_not_given_together(house: House, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be combined"):
        create_sandbox(workspace=tmp_path, session_id="one", workspace_root=house.root)
    with pytest.raises(ValueError, match="cannot be combined"):
        create_sandbox(workspace=tmp_path, workspace_root=house.root)
    assert not house.root.exists()


@requirement("ID-04", "ID-05", "ID-06", "ID-07")
@pytest.mark.parametrize("session_id", ["../etc", "a/b", "a\\b", "", ".hidden", "a b", "x" * 129])
def test_a_bad_id_is_refused(house: House, session_id: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        get_session_sandbox(session_id, workspace_root=house.root)
    with pytest.raises(ValueError, match=r"."):
        create_session_sandbox(workspace_root=house.root, session_id=session_id)
    with pytest.raises(ValueError, match=r"."):
        create_sandbox(workspace_root=house.root, session_id=session_id)


def test_a_session_is_made_once(house: House) -> None:
    house.new("one")
    with pytest.raises(SessionExistsError):
        house.new("one")


def test_a_session_that_is_deleted_is_missing(house: House) -> None:
    sandbox = house.new("one")
    delete_session_workspace("one", workspace_root=house.root)
    with pytest.raises(SessionMissingError):
        sandbox.execute("pass")


@requirement("E-40")
def test_a_policy_is_not_changed(house: House, tmp_path: Path) -> None:
    policy = ExecutionPolicy(env={"A": "1"}, mount_data_dir=tmp_path)
    before = replace(policy)
    _, sandbox = create_session_sandbox(policy=policy, workspace_root=house.root)
    sandbox.execute("pass", env={"B": "2"}, argv=["x"], timeout_seconds=5)
    assert policy == before == sandbox.policy


# What is kept and logged


@requirement("E-28")
def test_output_is_kept_in_files_when_asked(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(logs))
    assert "logs_dir" not in house.new().execute("print('x')").metadata
    assert os.listdir(logs) == []
    result = house.new(preserve_logs=True).execute("import sys; print('out'); print('err', file=sys.stderr)")
    kept = Path(str(result.metadata["logs_dir"]))
    assert (kept / "stdout.log").read_text() == "out\n"
    assert (kept / "stderr.log").read_text() == "err\n"
    assert kept.stat().st_mode & 0o777 == 0o700


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """What the logger `tests.guest` is told."""
    with caplog.at_level(logging.INFO, "tests.guest"):
        yield caplog


@requirement("LOG-1", "LOG-8", "LOG-9")
def test_sessions_and_runs_are_logged(house: House, log: pytest.LogCaptureFixture) -> None:
    logger = SandboxLogger(logging.getLogger("tests.guest"))
    sandbox = house.new("one", logger=logger)
    sandbox.execute("open('a', 'w')\nraise SystemExit(3)")
    house.get("one", logger=logger)
    lines = [record.getMessage() for record in log.records if record.name == "tests.guest"]
    events = [line.split()[0] for line in lines]
    assert events[0] == "session.created"
    assert events[-1] == "session.retrieved"
    assert "execution.start" in events
    complete = lines[events.index("execution.complete")]
    assert events.index("execution.start") < events.index("execution.complete")
    for part in ("session_id=one", "exit_code=3", "success=False", "files_created_count=1"):
        assert part in complete
