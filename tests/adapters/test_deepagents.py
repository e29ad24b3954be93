"""The backend for deepagents: paths, words for errors, pages, patterns, commands, and an agent on it."""

from __future__ import annotations

import asyncio
import base64
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deepagents import create_deep_agent
from deepagents.backends.protocol import (
    BackendProtocol,
    GlobResult,
    GrepResult,
    LsResult,
    SandboxBackendProtocol,
)
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage

from carrel.adapters.deepagents import CarrelBackend, page
from carrel.policy.rules import AccessMode, PathRule, SandboxPolicy
from carrel.shell.budget import Budget
from carrel.values import Limits
from carrel.workspace.sessions import WorkspaceManager
from carrel.workspace.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with WorkspaceManager(tmp_path / "sessions") as manager, manager.create("s1") as opened:
        yield opened


@pytest.fixture
def backend(workspace: Workspace) -> CarrelBackend:
    return CarrelBackend(workspace)


def paths(found: LsResult | GlobResult) -> list[str]:
    entries = found.entries if isinstance(found, LsResult) else found.matches
    assert entries is not None, found.error
    return [entry["path"] for entry in entries]


def lines(found: GrepResult) -> list[tuple[str, int, str]]:
    assert found.matches is not None, found.error
    return [(match["path"], match["line"], match["text"]) for match in found.matches]


def content(backend: CarrelBackend, path: str) -> str:
    data = backend.read(path).file_data
    assert data is not None
    return data["content"]


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


# Paths


def test_a_path_means_the_same_with_and_without_the_mount(backend: CarrelBackend) -> None:
    assert backend.write("/a/b.txt", "one").path == "/workspace/a/b.txt"
    assert content(backend, "/workspace/a/b.txt") == content(backend, "/a//b.txt") == "one"
    assert paths(backend.ls("/")) == paths(backend.ls("/workspace/")) == ["/workspace/a"]
    assert backend.execute("cat /workspace/a/b.txt").output == "one"


def test_answers_begin_at_the_root_that_was_chosen(workspace: Workspace) -> None:
    backend = CarrelBackend(workspace, root="/")
    assert backend.write("/workspace/a/b.txt", "one\n").path == "/a/b.txt"
    assert paths(backend.ls("/workspace")) == ["/a"]
    assert paths(backend.glob("*.txt")) == ["/a/b.txt"]
    assert lines(backend.grep("one", "/a")) == [("/a/b.txt", 1, "one")]
    assert backend.edit("/a/b.txt", "one", "two").path == "/a/b.txt"
    assert backend.delete("/workspace/a").path == "/a"


def test_a_path_in_an_answer_always_leads_back(workspace: Workspace) -> None:
    """Also of a directory that is called like the mount."""
    backend = CarrelBackend(workspace, root="/")
    workspace.write("workspace/a.txt", "inner")
    workspace.write("a.txt", "outer")
    found = paths(backend.glob("a.txt"))
    assert found == ["/a.txt", "/workspace/workspace/a.txt"]
    assert [content(backend, path) for path in found] == ["outer", "inner"]
    assert backend.delete("/workspace/workspace").path == "/workspace/workspace"


def test_another_root_is_refused(workspace: Workspace) -> None:
    with pytest.raises(ValueError, match="must be '/' or '/workspace'"):
        CarrelBackend(workspace, root="/elsewhere")


def test_what_another_rule_allows_keeps_its_path(tmp_path: Path) -> None:
    shared, own = tmp_path / "shared", tmp_path / "own"
    (shared / "words").mkdir(parents=True)
    (shared / "words/list.txt").write_text("apple\n")
    own.mkdir()
    policy = SandboxPolicy.for_workspace(own, allow=[PathRule(str(shared), AccessMode.READ_ONLY)])
    with Workspace.open(own, policy=policy) as workspace:
        for root in ("/", "/workspace"):
            backend = CarrelBackend(workspace, root=root)
            path = f"{shared}/words/list.txt"
            assert content(backend, path) == "apple\n"
            assert paths(backend.ls(str(shared))) == [f"{shared}/words"]
            assert lines(backend.grep("apple", str(shared))) == [(path, 1, "apple")]
            assert backend.write(path, "").error == f"File '{path}': permission_denied"
            assert backend.delete(path).error == f"File '{path}': permission_denied"


# Errors


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


# Pages


def test_pages_follow_one_another_to_the_end(backend: CarrelBackend) -> None:
    backend.write("/f", "1\n2\n3\n4\n5\n")
    parts: list[str] = []
    offset: int | None = 0
    while offset is not None:
        result = backend.read("/f", offset, 2)
        assert result.file_data is not None
        assert result.total_lines == 5
        assert result.start_line == offset + 1
        parts.append(result.file_data["content"])
        offset = result.next_offset
    assert parts == ["1\n2", "3\n4", "5\n"]


def test_windows_that_make_no_sense_are_tolerated(backend: CarrelBackend) -> None:
    backend.write("/f", "1\n2\n")
    backend.write("/empty", "")
    assert content(backend, "/empty") == ""
    assert backend.read("/f", -3, 1).start_line == 1
    assert backend.read("/f", 0, -1).no_lines_requested
    assert not backend.read("/empty", 0, 0).no_lines_requested
    assert backend.read("/f", 2).error == "Line offset 2 exceeds file length (2 lines)"


def test_a_page_ends_between_lines_or_makes_progress(
    backend: CarrelBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "TEXT_BYTES", 10)
    backend.write("/f", "four\nfour\nfour\nmore than ten\nend")
    first = backend.read("/f")
    assert first.file_data is not None
    assert (first.file_data["content"], first.next_offset) == ("four\nfour", 2)
    long = backend.read("/f", 3)
    assert long.file_data is not None
    assert long.file_data["content"].startswith("more than \n[This line is cut")
    assert long.next_offset == 4
    assert content(backend, "/f").endswith("four")
    assert backend.read("/f", 4).next_offset is None


def test_lines_end_in_a_newline_alone(backend: CarrelBackend) -> None:
    backend.upload_files([("/f", b"1\r\n2\r\n")])
    assert content(backend, "/f") == "1\n2\n"
    assert backend.edit("/f", "1\n2", "3").occurrences == 1
    assert backend.download_files(["/f"])[0].content == b"3\r\n"


@pytest.mark.parametrize("name", ["/f.bin", "/f.png", "/f.pdf"])
def test_what_is_no_text_comes_as_base64(backend: CarrelBackend, name: str) -> None:
    data = b"\xff\xfe" if name == "/f.bin" else b"text, but not by its name"
    backend.upload_files([(name, data)])
    result = backend.read(name)
    assert result.file_data is not None
    assert result.file_data["encoding"] == "base64"
    assert base64.b64decode(result.file_data["content"]) == data
    assert result.start_line is None


# Finding


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["a.py", "d/.h/c.py", "d/b.py"]),
        ("/*.py", ["a.py"]),
        ("d/*.py", ["d/b.py"]),
        ("**/*.py", ["a.py", "d/b.py"]),
        ("d/.h/*.py", ["d/.h/c.py"]),
        ("**/.*/*.py", ["d/.h/c.py"]),
        ("*.{py,md}", ["a.py", "d/.h/c.py", "d/b.py", "d/r.md"]),
        (".*", [".env"]),
        ("*", ["a.py", "d/.h/c.py", "d/b.py", "d/r.md"]),
        ("[ab].py", ["a.py", "d/b.py"]),
        ("[!a].py", ["d/.h/c.py", "d/b.py"]),
        ("?.md", ["d/r.md"]),
        ("d", []),
    ],
)
def test_patterns_mean_what_deepagents_says(
    backend: CarrelBackend, workspace: Workspace, pattern: str, found: list[str]
) -> None:
    for name in ("a.py", ".env", "d/b.py", "d/r.md", "d/.h/c.py"):
        workspace.write(name, "needle\n")
    whole = [f"/workspace/{name}" for name in found]
    assert sorted(paths(backend.glob(pattern))) == whole
    assert sorted(path for path, _, _ in lines(backend.grep("needle", glob=pattern))) == whole


def test_patterns_begin_at_the_place_that_is_searched(backend: CarrelBackend) -> None:
    backend.write("/d/e/f.py", "x")
    assert paths(backend.glob("/e/*.py", "/d")) == ["/workspace/d/e/f.py"]
    assert paths(backend.glob("d/**", "/d")) == []
    assert lines(backend.grep("x", "/d", "e/*.py")) == [("/workspace/d/e/f.py", 1, "x")]
    assert lines(backend.grep("x", "/d/e/f.py", "*.md")) == [("/workspace/d/e/f.py", 1, "x")]


def test_bad_patterns_are_errors_not_raised(backend: CarrelBackend) -> None:
    for pattern in ("../*.py", "", "{1..1000000}"):
        assert "pattern" in str(backend.glob(pattern).error)
        assert "pattern" in str(backend.grep("x", glob=pattern).error)
    assert "empty" in str(backend.grep("").error)


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
    monkeypatch.setattr("carrel.adapters.deepagents.backend.MOST_MATCHES", 2)
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


# Commands


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


# An agent


class Scripted(GenericFakeChatModel):
    """A model that says what it was told to say, whatever tools there are."""

    def bind_tools(self, tools: object, **options: object) -> Scripted:
        return self


def call(name: str, **arguments: object) -> AIMessage:
    return AIMessage(content="", tool_calls=[{"name": name, "args": arguments, "id": f"call-{name}"}])


def test_an_agent_writes_finds_and_runs(backend: CarrelBackend, workspace: Workspace) -> None:
    model = Scripted(
        messages=iter(
            [
                call("write_file", file_path="/notes/plan.txt", content="read\nwrite\n"),
                call("grep", pattern="write", output_mode="content"),
                call("execute", command="sort -r notes/plan.txt | head -n 1"),
                call("read_file", file_path="/workspace/notes/nothing.txt"),
                AIMessage(content="done"),
            ]
        )
    )
    agent = create_deep_agent(model=model, backend=backend)
    answer: dict[str, Any] = agent.invoke({"messages": [{"role": "user", "content": "Plan."}]})
    told = [str(message.content) for message in answer["messages"] if isinstance(message, ToolMessage)]
    assert "/workspace/notes/plan.txt" in told[0]
    assert "/workspace/notes/plan.txt:\n  2: write" in told[1]
    assert told[2].startswith("write\n")
    assert told[3] == "Error: File '/workspace/notes/nothing.txt': file_not_found"
    assert answer["messages"][-1].content == "done"
    assert workspace.read("notes/plan.txt") == b"read\nwrite\n"


def test_without_its_extra_one_error_says_how_to_install_it() -> None:
    probe = "import sys; sys.modules['deepagents'] = None; import carrel.adapters.deepagents"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, check=False, text=True)
    assert done.stderr.splitlines()[-1] == (
        "ImportError: deepagents is not installed: pip install 'carrel[deepagents]'"
    )
