"""A call that has to wait until the guest is compiled says so."""

from __future__ import annotations

import logging
import os
import sys
from itertools import count
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

WRONG = """
import json, sys
from pathlib import Path
Path(json.loads(sys.argv[2])["directory"], "lock").write_text("compiling")
open(sys.argv[1], "rb").read()
sys.exit(3)
"""
"""A compiler that marks the lock, and fails when somebody has opened a pipe."""


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PythonSandbox:
    """One whose guest is not compiled, and which reports three times how far that is before it fails."""
    monkeypatch.setattr(compiled, "_POLL_SECONDS", 0.0001)
    (tmp_path / "files").mkdir()
    os.mkfifo(tmp_path / "go")
    reports = count(1)
    original = compiled._progress

    def progress(*given: float, **also: bool) -> Progress:
        if next(reports) == 3:
            open(tmp_path / "go", "wb").close()
        return original(*given, **also)

    monkeypatch.setattr(compiled, "_progress", progress)
    guest = CompiledGuest(tmp_path / "cache", command=[sys.executable, "-c", WRONG, str(tmp_path / "go")])
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
