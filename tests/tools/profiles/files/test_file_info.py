"""`file_info`: all that is known, and nothing about the host."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from carrel import Workspace
from carrel.testing.tree import tree
from carrel.tools.toolbox import Toolbox
from tests.tools.profiles.files.answers import data, done, refused

KEYS = {"type", "size", "permissions", "owner", "group", "modifiedAt", "accessedAt", "createdAt"}


def test_a_file_is_reported_with_size_permissions_and_times(files: Toolbox, directory: Path) -> None:
    tree(directory, "a/f = four")
    (directory / "a/f").chmod(0o640)
    os.utime(directory / "a/f", ns=(1_700_000_000_250_000_000, 1_600_000_000_999_999_999))
    answer = done(files, "file_info", path="a/f")
    assert set(answer.data) == KEYS
    assert (answer.data["type"], answer.data["size"]) == ("file", 4)
    assert answer.data["permissions"] == "rw-r-----"
    assert answer.data["modifiedAt"] == "2020-09-13T12:26:40.999Z"
    assert answer.data["accessedAt"] == "2023-11-14T22:13:20.250Z"
    assert answer.metadata["path"] == "/workspace/a/f"
    assert (answer.metadata["mode"], answer.metadata["is_link"]) == ("640", False)


def test_the_time_of_creation_is_reported_where_the_disk_keeps_it(
    files: Toolbox, workspace: Workspace
) -> None:
    workspace.write("f", b"")
    created = data(files, "file_info", path="f")["createdAt"]
    known = workspace.stat("f").created_ns
    assert (created is None) == (known is None)
    if known is not None:
        assert created is not None
        moment = datetime.fromisoformat(created)
        assert moment.tzinfo == UTC
        assert int(moment.timestamp()) == known // 10**9


def test_a_directory_is_reported(files: Toolbox, directory: Path) -> None:
    tree(directory, "d/f = 1234")
    (directory / "d").chmod(0o755)
    assert data(files, "file_info", path="d")["permissions"] == "rwxr-xr-x"
    for path in ("d", "d/", "."):
        found = data(files, "file_info", path=path)
        assert (found["type"], found["size"]) == ("directory", 0)


def test_users_of_the_host_are_not_revealed(files: Toolbox, directory: Path) -> None:
    tree(directory, "f")
    if os.geteuid() == 0:
        os.chown(directory / "f", 65534, 65534)
    found = data(files, "file_info", path="f")
    assert (found["owner"], found["group"]) == ("root", "root")


def test_of_a_link_the_target_is_reported_and_that_it_is_one(files: Toolbox, directory: Path) -> None:
    tree(directory, "f = four", "link => f")
    answer = done(files, "file_info", path="link")
    assert (answer.data["type"], answer.data["size"]) == ("file", 4)
    assert answer.metadata["is_link"] is True


def test_a_link_that_leads_nowhere_or_out_reports_only_itself(
    files: Toolbox, directory: Path, outside: Path
) -> None:
    secret = outside / "secret"
    tree(directory, "nowhere => missing", "loop => loop", f"out => {secret}", f"gone => {secret}x")
    for path in ("nowhere", "loop", "out", "gone"):
        answer = done(files, "file_info", path=path)
        assert answer.data["type"] == "link"
        assert str(outside) not in answer.to_json()


def test_other_kinds_are_reported_without_being_opened(files: Toolbox, directory: Path) -> None:
    os.mkfifo(directory / "pipe")
    assert data(files, "file_info", path="pipe")["type"] == "other"


def test_the_version_can_be_given_back(files: Toolbox, directory: Path) -> None:
    tree(directory, "f = one", "link => f")
    for path in ("f", "link"):
        version = done(files, "file_info", path=path).metadata["version"]
        done(files, "write_file", path=path, content=f"by {path}", if_match=version)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("missing", "path.missing"),
        ("f/x", "path.not_directory"),
        ("../ws", "path.escape"),
        ("/", "access.outside"),
    ],
)
def test_what_is_not_there_is_an_error(files: Toolbox, directory: Path, path: str, code: str) -> None:
    tree(directory, "f")
    refused(files, "file_info", code, path=path)
