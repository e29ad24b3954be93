"""Settings from the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.config.load import sessions_dir


def test_the_sessions_directory_is_workspace_in_the_current_one_by_default() -> None:
    assert sessions_dir({}) == Path("workspace")


def test_a_variable_names_the_sessions_directory() -> None:
    assert sessions_dir({"CARREL_SESSIONS_DIR": "/srv/sessions"}) == Path("/srv/sessions")


def test_the_alias_is_read_too_but_our_own_name_comes_first() -> None:
    alias = {"SHANNON_SESSION_WORKSPACES_DIR": "/alias"}
    assert sessions_dir(alias) == Path("/alias")
    assert sessions_dir({**alias, "CARREL_SESSIONS_DIR": "/own"}) == Path("/own")


def test_an_empty_variable_is_no_setting() -> None:
    assert sessions_dir({"CARREL_SESSIONS_DIR": ""}) == Path("workspace")


def test_a_tilde_stands_for_the_home_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert sessions_dir({"CARREL_SESSIONS_DIR": "~/sessions"}) == tmp_path / "sessions"
