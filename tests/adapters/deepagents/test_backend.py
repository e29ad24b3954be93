"""The backend: what it offers, errors as values, listings, and commands."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from deepagents.backends.protocol import BackendProtocol, SandboxBackendProtocol

from carrel.adapters.deepagents import CarrelBackend
from carrel.policy.rules import AccessMode
from carrel.sessions.manager import WorkspaceManager
from carrel.shell.budget import Budget
from carrel.values import Limits
from carrel.workspace.workspace import Workspace
from tests.adapters.deepagents.results import content, lines, paths


def test_every_method_of_the_protocol_is_there() -> None:
    names = {
        name
        for kind in (BackendProtocol, SandboxBackendProtocol)
        for name, value in vars(kind).items()
        if not name.startswith("_") and (callable(value) or isinstance(value, property))
    }
    twins = {f"a{name}" for name in names} & names
    ours = {name for name in names if name in vars(CarrelBackend)}
    assert names - twins <= ours


def test_it_is_named_after_its_session(backend: CarrelBackend, tmp_path: Path) -> None:
    assert backend.id == "s1"
    with Workspace.open(tmp_path) as directory:
        assert CarrelBackend(directory).id != CarrelBackend(directory).id


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("/nothing", "file_not_found"),
        ("/f/below", "not_a_directory"),
        ("/loop", "file_not_found"),
        ("/d", "is_directory"),
        ("f", "invalid_path"),
        ("/../f", "invalid_path"),
        ("/workspace/../../f", "invalid_path"),
        ("/out", "invalid_path"),
        ("/a\0b", "invalid_path"),
        ("", "invalid_path"),
        ("/etc/passwd", "file_not_found"),
    ],
)
def test_errors_are_words(backend: CarrelBackend, workspace: Workspace, path: str, word: str) -> None:
    workspace.write("f", "x")
    workspace.mkdir("d")
    for name, target in (("loop", "loop"), ("out", "../..")):
        workspace.host_path(".").joinpath(name).symlink_to(target)
    assert backend.download_files([path])[0].error == word
    assert backend.read(path).error == f"File '{path}': {word}"
    assert backend.edit(path, "x", "y").error == f"File '{path}': {word}"


def test_a_view_denies_what_it_does_not_allow(workspace: Workspace) -> None:
    workspace.write("mine/f", "x")
    workspace.write("other/f", "x")
    backend = CarrelBackend(workspace.narrowed(mode=AccessMode.READ_ONLY, within=["mine"]))
    assert content(backend, "/mine/f") == "x"
    denied = "File '/mine/f': permission_denied"
    assert backend.write("/mine/f", "y").error == denied
    assert backend.edit("/mine/f", "x", "y").error == denied
    assert backend.delete("/mine/f").error == denied
    assert backend.upload_files([("/mine/f", b"y")])[0].error == "permission_denied"
    assert backend.read("/other/f").error == "File '/other/f': permission_denied"
    assert backend.download_files(["/other/f", "/mine/f"])[0].error == "permission_denied"
    assert backend.ls("/").error == "File '/': permission_denied"
    assert backend.grep("x").error == backend.glob("*").error == "File '/workspace': permission_denied"
    response = backend.execute("rm /workspace/mine/f")
    assert response.exit_code == 1
    assert "read-only workspace" in response.output
    assert workspace.read("mine/f") == b"x"


def test_a_limit_is_told_in_its_own_words(tmp_path: Path) -> None:
    with (
        WorkspaceManager(tmp_path / "sessions") as manager,
        manager.create("s1", limits=Limits(disk_bytes=10)) as workspace,
    ):
        backend = CarrelBackend(workspace)
        error = backend.write("/f", "x" * 11).error
        assert error is not None
        assert error.startswith("File '/f': Workspace quota exceeded")
        assert backend.upload_files([("/f", b"x" * 11), ("/g", b"x")])[1].error is None


def test_a_workspace_that_was_closed_is_an_answer_too(backend: CarrelBackend, workspace: Workspace) -> None:
    workspace.close()
    assert "closed" in str(backend.read("/f").error)
    response = backend.execute("ls")
    assert response.exit_code is None
    assert "closed" in response.output


def test_edits_say_what_is_wrong(backend: CarrelBackend) -> None:
    backend.write("/f", "a\nb\na\n")
    assert "multiple matches" in str(backend.edit("/f", "a", "c").error)
    assert "lines 1, 3" in str(backend.edit("/f", "a", "c").error)
    assert "was not found" in str(backend.edit("/f", "z", "c").error)
    assert "is empty" in str(backend.edit("/f", "", "c").error)
    assert backend.edit("/f", "a", "c", replace_all=True).occurrences == 2


def test_grep_says_whether_there_is_more(backend: CarrelBackend) -> None:
    backend.write("/f", "a.b\nx\na.b\na-b\n")
    assert lines(backend.grep("a.b")) == [("/workspace/f", 1, "a.b"), ("/workspace/f", 3, "a.b")]
    assert not backend.grep("a.b", max_count=2).truncated
    fewer = backend.grep("a.b", max_count=1)
    assert (len(lines(fewer)), fewer.truncated) == (1, True)


def test_glob_says_whether_there_is_more(
    backend: CarrelBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend.upload_files([(f"/f{number}", b"") for number in range(3)])
    monkeypatch.setattr("carrel.adapters.deepagents.backend.MAX_MATCHES", 2)
    result = backend.glob("f*")
    assert (len(paths(result)), result.truncated, result.truncation_reason) == (2, True, "budget")
    monkeypatch.setattr("carrel.adapters.deepagents.backend.SEARCH_SECONDS", 0.0)
    assert backend.glob("f*").truncated


def test_a_listing_tells_what_each_is(backend: CarrelBackend, workspace: Workspace) -> None:
    workspace.write("d/f", "four")
    for name, target in (("in", "d"), ("out", "../.."), ("gone", "nowhere")):
        workspace.host_path(".").joinpath(name).symlink_to(target)
    entries = backend.ls("/").entries
    assert entries is not None
    told = {entry["path"].rpartition("/")[2]: entry["is_dir"] for entry in entries}
    assert told == {"d": True, "gone": False, "in": True, "out": False}
    (file,) = backend.ls("/d").entries or []
    assert file["size"] == 4
    assert file["modified_at"].endswith("+00:00")


def test_both_streams_come_in_the_order_in_which_they_were_written(backend: CarrelBackend) -> None:
    response = backend.execute("echo one; cat nothing; echo two")
    assert response.output.splitlines()[::2] == ["one", "two"]
    assert "nothing" in response.output.splitlines()[1]
    assert response.exit_code == 0


def test_each_command_begins_at_the_top(backend: CarrelBackend) -> None:
    backend.write("/d/f", "")
    assert backend.execute("cd d && pwd").output == "/workspace/d\n"
    assert backend.execute("pwd").output == "/workspace\n"


def test_what_is_refused_or_missing_has_a_status(backend: CarrelBackend) -> None:
    assert backend.execute("nosuch").exit_code == 127
    refused = backend.execute("echo $(id)")
    assert (refused.exit_code, "metacharacter" in refused.output) == (2, True)
    assert CarrelBackend(backend._workspace, pipelines=False).execute("ls | wc").exit_code == 2


def test_time_and_output_are_limited(workspace: Workspace) -> None:
    backend = CarrelBackend(workspace, timeout_seconds=0.01, budget=Budget(seconds=0.02, output_bytes=4))
    for timeout in (None, 0, 3600):
        response = backend.execute("sleep 60", timeout=timeout)
        assert response.exit_code == 124
        assert "Comm" in response.output
    with pytest.raises(ValueError, match="at least 0"):
        backend.execute("ls", timeout=-1)
    cut = CarrelBackend(workspace, budget=Budget(output_bytes=4)).execute("echo many words")
    assert (cut.output[:4], cut.truncated) == ("many", True)


def test_a_command_ends_with_the_task_that_waits_for_it(workspace: Workspace) -> None:
    backend = CarrelBackend(workspace)

    async def cancel() -> None:
        task = asyncio.create_task(backend.aexecute("echo x > begun; sleep 3000"))
        while not workspace.exists("begun"):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert asyncio.run(backend.aexecute("echo done", timeout=5)).output == "done\n"
