"""Values and errors are the same on both sides of a wire."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from carrel.errors import CarrelError, UnreachableError, class_of
from carrel.remote.json_codec import parse, parse_error, render, render_error
from carrel.runtimes.result import SandboxResult
from carrel.shell.result import ShellResult
from carrel.testing import tree
from carrel.values import Edited, FileInfo, LineWindow, SearchResult, Usage
from carrel.workspace.workspace import Workspace
from tests.test_errors import classes, make


def there_and_back(value: Any) -> Any:  # Any: whatever the library gives
    return parse(json.loads(json.dumps(render(value))), type(value))


def test_what_a_workspace_tells_is_the_same_on_the_other_side(workspace: Workspace, directory: Path) -> None:
    tree(directory, "d/", "a.txt = one", "l => a.txt", "b = \\x00\\xff")
    answers = [
        workspace.stat("a.txt"),
        workspace.stat("l", follow_symlinks=False),
        workspace.stat("d"),
        workspace.edit("a.txt", "one", "two"),
        workspace.read_lines("a.txt"),
        workspace.search("t"),
        workspace.usage(),
    ]
    assert [type(each) for each in answers] == [FileInfo] * 3 + [Edited, LineWindow, SearchResult, Usage]
    for each in answers:
        assert there_and_back(each) == each


def test_a_file_is_told_with_its_version(workspace: Workspace) -> None:
    info = workspace.write("a", b"x")
    assert render(info)["version"] == info.version == there_and_back(info).version


@pytest.mark.parametrize(("printed", "encoding"), [(b"\xff\x00", "base64"), ("ä\n".encode(), "utf-8")])
def test_what_a_command_printed_is_a_text_or_in_base64(printed: bytes, encoding: str) -> None:
    result = ShellResult(stdout=printed, stderr=b"x", exit_code=1, message="no")
    document = render(result)
    assert (document["encoding"], document["success"]) == (encoding, False)
    assert (document["stdout"] == "ä\n") == (encoding == "utf-8")
    assert there_and_back(result) == result


def test_where_a_workspace_lies_on_the_host_is_told_to_nobody() -> None:
    result = SandboxResult(
        success=True,
        stdout="",
        stderr="",
        exit_code=0,
        fuel_consumed=None,
        memory_used_bytes=None,
        duration_ms=1.0,
        files_created=["a"],
        files_modified=[],
        files_deleted=[],
        workspace_path="/srv/carrel/secret",
        metadata={"trap_reason": None},
    )
    assert "/srv" not in json.dumps(render(result))
    assert there_and_back(result).workspace_path == "/workspace"


@pytest.mark.parametrize("kind", classes(), ids=lambda kind: kind.__name__)
def test_an_error_is_the_same_on_the_other_side(kind: type[CarrelError]) -> None:
    error = make(kind)
    back = parse_error(json.loads(json.dumps(render_error(error, retry=False))))
    assert type(back) is kind
    assert (back.code, back.message, back.path, str(back)) == (
        error.code,
        error.message,
        error.path,
        str(error),
    )
    assert vars(back) | {"code": error.code} == vars(error) | {"code": error.code}


def test_an_error_of_a_later_version_is_an_error_all_the_same() -> None:
    back = parse_error({"code": "comet.impact", "message": "a comet", "path": None})
    assert (type(back), back.code, str(back)) == (CarrelError, "comet.impact", "a comet")


@pytest.mark.parametrize("document", [None, [], "no", {}, {"code": 1}, {"message": "x"}])
def test_what_is_no_error_of_ours_is_told_as_that(document: object) -> None:
    assert isinstance(parse_error(document), UnreachableError)


@pytest.mark.parametrize("document", [None, 1, {}, {"path": 1}, [1]])
def test_an_answer_that_cannot_be_read_is_told_as_that(document: object) -> None:
    with pytest.raises(UnreachableError, match="cannot be parsed"):
        parse(document, FileInfo)


def test_a_value_without_a_form_is_a_mistake_of_ours() -> None:
    with pytest.raises(TypeError, match="no JSON form for object"):
        render(object())


def test_every_code_finds_its_class() -> None:
    assert all(class_of(make(kind).code) is kind for kind in classes())
