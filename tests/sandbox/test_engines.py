"""The engine of a process that ends soon."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from carrel.config.load import load
from carrel.errors import CarrelError
from carrel.sandbox.engines import one_shot_engine
from carrel.sandbox.factory import workspace_sandbox
from carrel.workspace.workspace import Workspace


def test_a_lone_engine_is_the_same_for_every_call_and_closed_in_the_end(
    guest_cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CARREL_CACHE", str(guest_cache))
    settings = load(os.environ).python
    with Workspace.open(tmp_path) as workspace:
        with one_shot_engine() as find:
            assert find(settings) is find(settings)
            sandbox = workspace_sandbox(workspace, engine=find)
            assert sandbox.execute("print(1)").stdout == "1\n"
        with pytest.raises(CarrelError):
            sandbox.execute("print(1)")
