"""A call that has to wait until the guest is compiled says so."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

from carrel.errors import SandboxExecutionError
from carrel.runtimes.wasm.build import compiled
from carrel.runtimes.wasm.build.compiled import CompiledGuest, Progress
from carrel.runtimes.wasm.pool import Pool
from carrel.runtimes.wasm.runtime import PythonRuntime
from carrel.sandbox.sandbox import PythonSandbox
from carrel.sandbox.workspace_source import OpenWorkspaceSource
from carrel.workspace.workspace import Workspace

WRONG = "import sys; sys.exit(3)"
"""A compiler that fails."""


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PythonSandbox:
    """One whose guest is not compiled, and which looks often how far that is."""
    monkeypatch.setattr(compiled, "_POLL_SECONDS", 0.0001)
    (tmp_path / "files").mkdir()
    guest = CompiledGuest(tmp_path / "cache", command=[sys.executable, "-c", WRONG])
    engine = PythonRuntime(guest, Pool(str(guest.directory)))
    return PythonSandbox(OpenWorkspaceSource(Workspace.open(tmp_path / "files")), engine=engine)


def test_it_is_logged_once(sandbox: PythonSandbox, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(SandboxExecutionError):
        sandbox.execute("print(1)")
    told = [record for record in caplog.records if record.getMessage().startswith("runtime.compiling")]
    assert [record.levelno for record in told] == [logging.WARNING]
    assert "carrel setup" in told[0].getMessage()


def test_whoever_asks_is_told_how_far_it_is(sandbox: PythonSandbox) -> None:
    told: list[Progress] = []
    with pytest.raises(SandboxExecutionError):
        sandbox.execute("print(1)", on_progress=told.append)
    assert len(told) > 1
    assert told[0].expected_seconds > 0
