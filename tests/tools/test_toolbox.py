"""Calls are checked in one place, by role, arguments and time; every failure is a result."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from carrel.config.table import CONFIG_VARIABLE, DEFAULT_ROLES
from carrel.policy.roles import Role
from carrel.sessions.manager import WorkspaceManager
from carrel.testing import tree
from carrel.tools.core.formats import Format
from carrel.tools.core.spec import Profile
from carrel.tools.core.table import TOOLS
from carrel.tools.toolbox import QUICK_SECONDS, SEARCHED_ENTRIES, Toolbox
from carrel.values import ToolOutput, ToolResult
from carrel.workspace.gate import SMALL_ENTRIES
from carrel.workspace.workspace import Workspace
from tests.requirements import requirement
from tests.tools.calls import UNTIL_GO
from tests.workspace.planting import snapshot

SECRET = "/srv/what-only-the-host-knows"


@pytest.fixture
def toolbox(workspace: Workspace) -> Iterator[Toolbox]:
    with Toolbox(workspace) as made:
        yield made


def failing(error: Exception) -> Callable[[], None]:
    """A check that fails at every step."""

    def check() -> None:
        raise error

    return check


class Gate:
    """A check that holds up a thread at its first step."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.may_go_on = threading.Event()
        self.threads: set[threading.Thread] = set()
        self.steps = 0

    def __call__(self) -> None:
        self.threads.add(threading.current_thread())
        self.steps += 1
        self.reached.set()
        assert self.may_go_on.wait(30)


# What there is


def test_a_role_has_its_tools_and_what_comes_along_with_them(workspace: Workspace) -> None:
    assert Toolbox(workspace, "developer").names == tuple(TOOLS[Profile.AGENT])
    assert Toolbox(workspace, "critic").names == ("file_read", "file_list", "file_search", "bash")
    assert Toolbox(workspace, Role("own", ("file_move",))).names == ("file_move",)


@pytest.mark.parametrize("profile", Profile)
def test_an_unknown_role_has_no_tools_in_any_profile(workspace: Workspace, profile: Profile) -> None:
    with Toolbox(workspace, "stranger", profile=profile) as toolbox:
        assert (toolbox.names, toolbox.tools(), toolbox.schemas()) == ((), (), [])
        for name in TOOLS[profile]:
            answer = toolbox.call(name)
            assert answer.code == "tool.unknown"
            assert answer.error == f"There is no tool '{name}'. The role 'stranger' has no tools"


def test_a_tool_that_the_role_does_not_have_answers_like_one_that_does_not_exist(
    workspace: Workspace, directory: Path
) -> None:
    with Toolbox(workspace, "critic") as toolbox:
        hidden = toolbox.call("file_write", {"path": "a", "content": "x"})
        unknown = toolbox.call("file_wrote", {"path": "a", "content": "x"})
    assert hidden.code == unknown.code == "tool.unknown"
    assert hidden.error == (
        "There is no tool 'file_write'. The tools are: file_read, file_list, file_search, bash"
    )
    assert str(hidden).replace("file_write", "file_wrote") == str(unknown)
    assert list(directory.iterdir()) == []


def test_a_tool_that_the_role_does_not_have_is_a_refusal_on_record(workspace: Workspace) -> None:
    with Toolbox(workspace, "critic") as toolbox:
        assert not toolbox.call("file_write", {"path": "a", "content": "x"}).success
        assert not toolbox.call("file_write", ["no mapping"]).success
        assert not toolbox.call("file_wrote", {"path": "a"}).success
    assert [(event.operation, event.path, event.error) for event in workspace.changes()] == [
        ("file_write", "a", "access.role"),
        ("file_write", "", "access.role"),
    ]


@pytest.mark.parametrize(
    "name", [None, 7, ["file_read"], {}, "", "file_read ", "FILE_READ", "x" * 10_000, "\ud800"]
)
def test_a_call_by_an_odd_name_has_a_result(toolbox: Toolbox, name: str) -> None:
    for answer in (toolbox.call(name), asyncio.run(toolbox.acall(name))):
        assert answer.code == "tool.unknown"
        assert len(answer.to_json()) < 500


def test_roles_come_from_the_configuration_and_from_options(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[roles.reader]\ntools = ["file_read"]\n')
    monkeypatch.setenv(CONFIG_VARIABLE, str(file))
    assert Toolbox(workspace, "reader").names == ("file_read", "file_search")
    assert Toolbox(workspace, "lister", roles={"lister": ["file_list"]}).names == ("file_list",)
    assert Toolbox(workspace, "reader", roles={"lister": ["file_list"]}).names == ()


@pytest.mark.parametrize("format", Format)
def test_the_schemas_are_those_of_the_role_in_the_requested_format(
    workspace: Workspace, format: Format
) -> None:
    with Toolbox(workspace, "critic") as toolbox:
        told = toolbox.schemas(format)
        assert told == toolbox.schemas(str(format))
    names = [each.get("name") or each.get("title") or each["function"]["name"] for each in told]
    assert names == ["file_read", "file_list", "file_search", "bash"]
    json.dumps(told, allow_nan=False)


def test_an_unknown_format_or_profile_is_an_error_of_the_program(workspace: Workspace) -> None:
    with pytest.raises(ValueError, match="yaml"), Toolbox(workspace) as toolbox:
        toolbox.schemas("yaml")
    with pytest.raises(ValueError, match="none"):
        Toolbox(workspace, profile="none")


# Arguments


@pytest.mark.parametrize(
    "arguments", [7, [], "a.txt", True, {"pat": "a.txt"}, {"path": 1}, {"path": None}, None]
)
def test_wrong_arguments_are_explained_and_nothing_is_done(
    toolbox: Toolbox, directory: Path, arguments: object
) -> None:
    answer = toolbox.call("file_write", arguments)
    assert answer.code == "tool.arguments"
    assert str(answer.error).startswith("Wrong arguments: ")
    assert str(answer.error).endswith(". Correct the arguments and call it again.")
    assert list(directory.iterdir()) == []


def test_null_means_that_an_argument_is_left_out(toolbox: Toolbox, directory: Path) -> None:
    tree(directory, "a.txt")
    plain = toolbox.call("file_read", {"path": "a.txt"})
    nulls = dict.fromkeys(("encoding", "max_size_mb", "offset", "limit", "cursor"))
    assert toolbox.call("file_read", {"path": "a.txt", **nulls}) == plain


# Roles


@requirement("AP-22")
@pytest.mark.parametrize("role", sorted(set(DEFAULT_ROLES) - {"developer"}))
def test_a_role_without_writing_changes_nothing_by_any_tool(
    workspace: Workspace, directory: Path, role: str
) -> None:
    tree(directory, "a.txt = one", "d/b.txt = two")
    before = snapshot(directory)
    attempts = {
        Profile.AGENT: [("bash", {"command": "rm a.txt"}), ("bash", {"command": "touch new"})],
        Profile.EDITOR: [
            ("str_replace_based_edit_tool", {"command": "create", "path": "new", "file_text": "x"}),
            (
                "str_replace_based_edit_tool",
                {"command": "str_replace", "path": "a.txt", "old_str": "one", "new_str": "two"},
            ),
            ("bash", {"command": "mv a.txt b.txt"}),
        ],
    }
    for profile, calls in attempts.items():
        with Toolbox(workspace, role, profile=profile) as toolbox:
            for name, arguments in calls:
                answer = toolbox.call(name, arguments)
                assert not answer.success, answer
                assert "changes" not in answer.metadata
                assert answer.code in ("access.denied", "tool.status"), answer
    assert snapshot(directory) == before


@requirement("AP-22")
def test_a_role_with_just_one_tool_that_writes_writes_with_that_one(
    workspace: Workspace, directory: Path
) -> None:
    tree(directory, "a.txt")
    with Toolbox(workspace, Role("mover", ("file_move", "bash"))) as toolbox:
        assert toolbox.call("file_move", {"source": "a.txt", "destination": "b.txt"}).success
        assert not toolbox.call("bash", {"command": "mv b.txt c.txt"}).success
    assert [path.name for path in directory.iterdir()] == ["b.txt"]


# What was changed


def test_an_answer_reports_what_was_changed_even_if_the_call_failed(
    workspace: Workspace, directory: Path
) -> None:
    with Toolbox(workspace, pipelines=True) as toolbox:
        answer = toolbox.call("bash", {"command": "mkdir d && touch d/f && cat nothing"})
    assert not answer.success
    assert [(each["action"], each["path"]) for each in answer.metadata["changes"]] == [
        ("created", "/workspace/d"),
        ("created", "/workspace/d/f"),
    ]
    assert (directory / "d/f").exists()


def test_an_answer_reports_only_of_its_own_changes(workspace: Workspace, toolbox: Toolbox) -> None:
    other = threading.Thread(target=workspace.write, args=("other", b""))
    other.start()
    other.join()
    answer = toolbox.call("file_write", {"path": "own", "content": ""})
    assert [each["path"] for each in answer.metadata["changes"]] == ["/workspace/own"]
    assert "changes" not in toolbox.call("file_read", {"path": "own"}).metadata


# Failures


def test_a_mistake_of_ours_is_an_answer_that_says_nothing_and_a_log_that_says_where(
    workspace: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    broken = workspace.narrowed(check=failing(RuntimeError(f"{SECRET} is broken")))
    with Toolbox(broken) as toolbox, caplog.at_level(logging.ERROR, "carrel"):
        answers = [
            toolbox.call("file_read", {"path": "a"}),
            asyncio.run(toolbox.acall("file_read", {"path": "a"})),
        ]
    for answer in answers:
        assert answer == ToolResult(
            success=False, error="The tool file_read failed unexpectedly", metadata={"code": "tool.failed"}
        )
    assert [record.message for record in caplog.records if "tool.failed" in record.message]
    record = next(record for record in caplog.records if "tool.failed" in record.message)
    fields = vars(record)
    assert (fields["tool"], fields["error"]) == ("file_read", "RuntimeError")
    assert fields["place"].startswith(f"{__name__}:")
    assert SECRET not in caplog.text
    assert SECRET not in str(fields)


# Closing


def test_a_closed_toolbox_answers_that_it_is_closed(workspace: Workspace) -> None:
    toolbox = Toolbox(workspace)
    toolbox.close()
    toolbox.close()
    for name, arguments in (
        ("file_read", {"path": "a"}),
        ("file_write", {"path": "a", "content": ""}),
        ("bash", {"command": "ls"}),
    ):
        assert toolbox.call(name, arguments).code == "workspace.closed"
        assert asyncio.run(toolbox.acall(name, arguments)).code == "workspace.closed"
    workspace.write("a", b"still open")


def test_a_toolbox_on_a_workspace_that_was_closed_answers_the_same(directory: Path) -> None:
    workspace = Workspace.open(directory)
    toolbox = Toolbox(workspace)
    workspace.close()
    assert toolbox.call("file_list", {"path": "."}).code == "workspace.closed"
    toolbox.close()


@pytest.mark.parametrize(
    ("profile", "name"),
    [
        (Profile.AGENT, "file_read"),
        (Profile.MCP, "read_text_file"),
        (Profile.MCP, "read_file"),
        (Profile.FILES, "read_file"),
    ],
)
def test_a_file_that_is_refused_leaves_one_record(workspace: Workspace, profile: Profile, name: str) -> None:
    with Toolbox(workspace, profile=profile) as toolbox:
        assert not asyncio.run(toolbox.acall(name, {"path": "../x"})).success
    assert [(event.operation, event.repeats) for event in workspace.changes()] == [("read", 0)]


# Awaited calls
def test_what_is_quick_is_done_at_once_and_the_rest_in_a_thread(
    workspace: Workspace, directory: Path
) -> None:
    tree(directory, "small = a")
    (directory / "large").write_bytes(b"a" * 2**20)
    gate = Gate()
    gate.may_go_on.set()

    async def use() -> None:
        with Toolbox(workspace.narrowed(check=gate)) as toolbox:
            assert (await toolbox.acall("file_read", {"path": "small"})).success
            assert gate.threads == {threading.current_thread()}
            assert (await toolbox.acall("file_read", {"path": "large"})).success
            assert len(gate.threads) == 2
        gate.threads.clear()
        with Toolbox(workspace.narrowed(check=gate), profile="mcp") as toolbox:
            for name in ("read_file", "read_text_file"):
                assert (await toolbox.acall(name, {"path": "small"})).success
            assert gate.threads == {threading.current_thread()}
            assert (await toolbox.acall("read_text_file", {"path": "large"})).success
            assert len(gate.threads) == 2

    asyncio.run(use())


@pytest.mark.parametrize(
    ("name", "small", "large"),
    [
        ("read_text_file", "small", "large"),
        ("read_file", "small", "large"),
    ],
)
def test_of_the_compatible_set_what_is_quick_is_done_at_once(
    name: str, small: str, large: str, workspace: Workspace, directory: Path
) -> None:
    tree(directory, "small = a")
    (directory / "large").write_bytes(b"a" * 2**20)
    gate = Gate()
    gate.may_go_on.set()

    async def use() -> None:
        with Toolbox(workspace.narrowed(check=gate), profile="mcp") as toolbox:
            assert (await toolbox.acall(name, {"path": small})).success
            assert gate.threads == {threading.current_thread()}
            assert (await toolbox.acall(name, {"path": large})).success
            assert len(gate.threads) == 2

    asyncio.run(use())


@pytest.mark.parametrize(
    ("profile", "name", "arguments", "most"),
    [
        ("agent", "file_list", {"path": "."}, SMALL_ENTRIES),
        ("agent", "file_search", {"query": "in"}, SEARCHED_ENTRIES),
        ("coding", "glob", {"pattern": "*"}, SMALL_ENTRIES),
        ("mcp", "directory_tree", {"path": "."}, SMALL_ENTRIES),
        ("mcp", "search_files", {"path": ".", "pattern": "*"}, SEARCHED_ENTRIES),
    ],
)
def test_what_is_looked_through_quickly_is_done_at_once(
    profile: str, name: str, arguments: dict[str, str], most: int, tmp_path: Path
) -> None:
    gate = Gate()
    gate.may_go_on.set()

    async def use(toolbox: Toolbox) -> set[threading.Thread]:
        gate.threads.clear()
        assert (await toolbox.acall(name, arguments)).success
        return gate.threads - {threading.current_thread()}

    with WorkspaceManager(tmp_path / "sessions").create("one") as workspace:
        workspace.write("a", b"in")
        with Toolbox(workspace.narrowed(check=gate), profile=profile) as toolbox:
            toolbox.call(name, arguments)
            # A busy machine may take its time once, and then a thread has it.
            assert any(not asyncio.run(use(toolbox)) for _ in range(20))
            for number in range(most):
                workspace.mkdir(f"d/{number}")
            assert asyncio.run(use(toolbox))


def test_the_names_in_a_directory_are_listed_at_once_however_much_there_is_elsewhere(
    workspace: Workspace, directory: Path
) -> None:
    """A clock that goes on at every look, which is one after every 256 names, lets two of those pass."""
    for name, count in (("few", 200), ("many", 1000)):
        tree(directory, *(f"{name}/{number}" for number in range(count)))
    clock = itertools.count()

    with Toolbox(workspace, profile="mcp", clock=lambda: next(clock) * QUICK_SECONDS / 3) as toolbox:
        few = toolbox.at_once("list_directory", {"path": "few"})
        assert few is not None
        assert few.metadata["count"] == 200
        assert toolbox.at_once("list_directory", {"path": "many"}) is None
        many = asyncio.run(toolbox.acall("list_directory", {"path": "many"}))
        assert many.metadata["count"] == 1000
        assert toolbox.call("list_directory", {"path": "many"}) == many


def test_commands_and_code_are_never_done_at_once_and_what_is_wrong_always_is(workspace: Workspace) -> None:
    with Toolbox(workspace) as toolbox:
        assert toolbox.at_once("bash", {"command": "true"}) is None
        assert toolbox.at_once("python_executor", {"code": "1"}) is None
        for name, arguments, code in (
            ("bash", {"comand": "true"}, "tool.arguments"),
            ("bash", [], "tool.arguments"),
            ("nothing", {}, "tool.unknown"),
            ("file_read", {"path": "missing"}, "path.missing"),
            ("file_read", {"path": "../out"}, "path.escape"),
        ):
            found = toolbox.at_once(name, arguments)
            assert found is not None
            assert found == toolbox.call(name, arguments)
            assert found.code == code


def test_a_task_that_is_cancelled_stops_the_work_and_waits_until_it_has_ended(
    workspace: Workspace, directory: Path
) -> None:
    tree(directory, *(f"{number}" for number in range(100)))
    gate = Gate()

    async def use() -> None:
        with Toolbox(workspace.narrowed(check=gate)) as toolbox:
            task = asyncio.create_task(toolbox.acall("file_search", {"query": "in"}))
            await asyncio.to_thread(gate.reached.wait, 30)
            for _ in range(3):
                task.cancel()
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                assert not task.done(), "the work has not ended"
            gate.may_go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert gate.steps < 5, "it went on"

    asyncio.run(use())


def test_a_task_that_is_cancelled_before_a_thread_is_free_ends_at_once_and_does_nothing(
    toolbox: Toolbox, directory: Path
) -> None:
    may_go_on = threading.Event()

    async def use() -> None:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1) as threads:
            loop.set_default_executor(threads)
            busy = loop.run_in_executor(None, may_go_on.wait, 30)
            task = asyncio.create_task(toolbox.acall("file_write", {"path": "f", "content": "one"}))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task], timeout=10)
            assert task.cancelled()
            assert not busy.done()
            may_go_on.set()
            await busy

    asyncio.run(use())
    assert snapshot(directory) == {}


def test_who_awaits_a_call_can_watch_what_it_changes(workspace: Workspace, toolbox: Toolbox) -> None:
    async def use() -> list[str]:
        with workspace.gate.watching() as events:
            answer = await toolbox.acall("bash", {"command": "touch a"})
            assert answer.success
        return [event.path for event in events]

    assert asyncio.run(use()) == ["a"]


def test_an_awaited_call_answers_the_same_as_a_plain_one(toolbox: Toolbox, directory: Path) -> None:
    tree(directory, "a.txt", "d/b.txt = two")
    for name, arguments in (
        ("file_read", {"path": "a.txt"}),
        ("file_read", {"path": "none"}),
        ("file_read", {"pat": "none"}),
        ("file_list", {"path": ".", "recursive": True}),
        ("file_search", {"query": "two"}),
        ("none", {}),
    ):
        plain = toolbox.call(name, arguments)
        assert asyncio.run(toolbox.acall(name, arguments)).to_dict() == plain.to_dict()


# Output as it arrives


def joined(output: list[ToolOutput], stream: str) -> str:
    return b"".join(each.data for each in output if each.stream == stream).decode()


@pytest.mark.parametrize(
    ("tool", "arguments"), [("python_executor", {"code": UNTIL_GO}), ("bash", {"command": "python wait.py"})]
)
def test_output_of_commands_and_code_comes_while_they_run(
    workspace: Workspace, toolbox: Toolbox, guest_cache: Path, tool: str, arguments: dict[str, object]
) -> None:
    workspace.write("wait.py", UNTIL_GO)

    async def use() -> tuple[list[ToolOutput], ToolResult]:
        output: list[ToolOutput] = []
        async with aclosing(toolbox.astream(tool, arguments)) as items:
            async for item in items:
                if isinstance(item, ToolResult):
                    return output, item
                output.append(item)
                workspace.write("go", "")
        raise AssertionError

    output, result = asyncio.run(use())
    assert joined(output, "stdout") == "begun\nend\n"
    assert result.success
    assert result.output["stdout"] == "begun\nend\n", "the result holds it as well"


def without_time(result: ToolResult) -> ToolResult:
    return replace(result, metadata={**result.metadata, "duration_ms": 0})


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("bash", {"command": "echo one; ls none; echo two"}),
        ("bash", {"command": "seq 100000"}),
        ("bash", {"command": "seq 10 | nonsense"}),
        ("bash", {"command": "sort ("}),
        ("bash", {"comand": "ls"}),
        ("file_read", {"path": "none"}),
        ("none", {}),
    ],
)
def test_a_call_with_output_on_its_way_has_the_result_of_a_plain_one(
    workspace: Workspace, name: str, arguments: dict[str, object]
) -> None:
    output: list[ToolOutput] = []
    with Toolbox(workspace, pipelines=True, answer_bytes=10_000) as toolbox:
        result = asyncio.run(
            toolbox.acall(
                name,
                arguments,
                on_output=lambda stream, data: output.append(ToolOutput(stream=stream, data=data)),
            )
        )
        wanted = toolbox.call(name, arguments)
    if "next_cursor" in wanted.metadata:
        result, wanted = (
            replace(each, metadata={**each.metadata, "next_cursor": ""}) for each in (result, wanted)
        )
    assert without_time(result) == without_time(wanted)
    for stream in ("stdout", "stderr"):
        assert len(joined(output, stream)) == wanted.metadata.get(f"{stream}_bytes", 0)


def test_output_ends_the_work_when_who_takes_it_fails_or_goes_away(workspace: Workspace) -> None:
    command = "echo begun; sleep 5; touch late"

    def refuse(stream: str, data: bytes) -> None:
        raise LookupError(stream)

    async def use() -> None:
        with Toolbox(workspace, pipelines=True) as toolbox:
            items = toolbox.astream("bash", {"command": command})
            assert await anext(items) == ToolOutput(stream="stdout", data=b"begun\n")
            await items.aclose()
            with pytest.raises(LookupError):
                await toolbox.acall("bash", {"command": command}, on_output=refuse)

    asyncio.run(use())
    assert not workspace.exists("late")


def test_one_call_does_not_get_the_output_of_another(workspace: Workspace) -> None:
    async def use(toolbox: Toolbox, word: str) -> str:
        output: list[bytes] = []
        await toolbox.acall(
            "bash", {"command": f"echo {word}"}, on_output=lambda _, data: output.append(data)
        )
        assert (await toolbox.acall("bash", {"command": "echo unseen"})).success
        return b"".join(output).decode()

    async def use_all() -> list[str]:
        with Toolbox(workspace) as toolbox:
            return await asyncio.gather(*(use(toolbox, f"word-{number}") for number in range(10)))

    assert asyncio.run(use_all()) == [f"word-{number}\n" for number in range(10)]
