"""The sandbox provider for the OpenAI Agents SDK: its life, its commands, its files, and agents in it."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
import tarfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from agents import RunConfig, Runner
from agents.items import ToolCallOutputItem
from agents.sandbox import LocalSnapshotSpec, Manifest, SandboxAgent, SandboxPathGrant, SandboxRunConfig
from agents.sandbox.entries import Dir, File
from agents.sandbox.errors import (
    ApplyPatchDiffError,
    ApplyPatchFileNotFoundError,
    ExecNonZeroError,
    ExecTimeoutError,
    ExecTransportError,
    InvalidManifestPathError,
    SandboxError,
    WorkspaceArchiveReadError,
    WorkspaceArchiveWriteError,
    WorkspaceReadNotFoundError,
    WorkspaceStartError,
    WorkspaceWriteTypeError,
)
from agents.sandbox.files import EntryKind
from agents.sandbox.sandboxes.unix_local import UnixLocalSandboxClient
from agents.sandbox.session import BaseSandboxSession, SandboxSession
from agents.sandbox.types import User
from agents.testing import ScriptedModel, assistant_message, function_call

from carrel.adapters.openai_agents import (
    CarrelSandboxClient,
    CarrelSandboxClientOptions,
    CarrelSandboxSession,
    CarrelSandboxSessionState,
)
from carrel.policy.rules import AccessMode
from carrel.shell.budget import Budget
from carrel.workspace.sessions import WorkspaceManager
from carrel.workspace.workspace import Workspace

Test = Callable[..., Coroutine[Any, Any, None]]


def awaited(test: Test) -> Callable[..., None]:
    """Run a test that awaits."""
    import functools

    @functools.wraps(test)
    def run(*args: object, **kwargs: object) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[WorkspaceManager]:
    with WorkspaceManager(tmp_path / "sessions") as manager:
        yield manager


@pytest.fixture
def client(manager: WorkspaceManager) -> CarrelSandboxClient:
    return CarrelSandboxClient(manager)


@asynccontextmanager
async def started(client: CarrelSandboxClient, **files: bytes) -> AsyncIterator[SandboxSession]:
    async with await client.create() as sandbox:
        for name, data in files.items():
            await sandbox.write(Path(name), io.BytesIO(data))
        yield sandbox


def workspace_of(sandbox: SandboxSession) -> Workspace:
    inner = sandbox._inner
    assert isinstance(inner, CarrelSandboxSession)
    return inner.workspace


async def content(sandbox: BaseSandboxSession, path: str) -> bytes:
    with await sandbox.read(Path(path)) as stream:
        return bytes(stream.read())


def code_of(error: SandboxError) -> object:
    return error.context["code"]


# Its life


@awaited
async def test_a_session_is_made_with_its_manifest_and_deleted(
    client: CarrelSandboxClient, manager: WorkspaceManager
) -> None:
    manifest = Manifest(
        entries={"d": Dir(children={"a.txt": File(content=b"one\n")}), "b": File(content=b"")}
    )
    sandbox = await client.create(manifest=manifest)
    assert not await sandbox.running()
    async with sandbox:
        assert await sandbox.running()
        assert await content(sandbox, "d/a.txt") == b"one\n"
        assert manager.list_workspaces() == [str(sandbox.state.session_id)]
    assert not await sandbox.running()
    assert await client.delete(sandbox) is sandbox
    assert manager.list_workspaces() == []


@awaited
async def test_options_are_the_limits_of_the_session(
    client: CarrelSandboxClient, manager: WorkspaceManager
) -> None:
    options = CarrelSandboxClientOptions(ttl_seconds=60, disk_bytes=10, entries=2)
    async with await client.create(options=options) as sandbox:
        limits = workspace_of(sandbox).limits
        assert (limits.disk_bytes, limits.entries, limits.depth) == (10, 2, manager.limits.depth)
        assert manager.status(str(sandbox.state.session_id)).record.ttl_seconds == 60
        with pytest.raises(WorkspaceArchiveWriteError, match="quota") as caught:
            await sandbox.write(Path("f"), io.BytesIO(b"x" * 11))
        assert code_of(caught.value) == "quota.bytes"


@awaited
async def test_another_client_resumes_the_same_session(
    client: CarrelSandboxClient, manager: WorkspaceManager, tmp_path: Path
) -> None:
    async with started(client, f=b"kept") as sandbox:
        payload = json.loads(json.dumps(client.serialize_session_state(sandbox.state)))
    with WorkspaceManager(manager.root) as other:
        there = CarrelSandboxClient(other)
        state = there.deserialize_session_state(payload)
        assert isinstance(state, CarrelSandboxSessionState)
        async with await there.resume(state) as again:
            assert await content(again, "f") == b"kept"
            assert again.state.session_id == sandbox.state.session_id


RESUME = """
import asyncio, json, sys
from carrel import WorkspaceManager
from carrel.adapters.openai_agents import CarrelSandboxClient

async def main(root, payload):
    with WorkspaceManager(root) as manager:
        client = CarrelSandboxClient(manager)
        async with await client.resume(client.deserialize_session_state(json.loads(payload))) as sandbox:
            result = await sandbox.exec("cat f && echo more >> f")
            sys.stdout.buffer.write(result.stdout)

asyncio.run(main(*sys.argv[1:]))
"""


@awaited
async def test_another_process_resumes_the_same_session(
    client: CarrelSandboxClient, manager: WorkspaceManager
) -> None:
    """While it is open here, as after a crash."""
    async with started(client, f=b"kept\n") as sandbox:
        payload = json.dumps(client.serialize_session_state(sandbox.state))
        command = [sys.executable, "-W", "error", "-c", RESUME, str(manager.root), payload]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=False)
        assert (done.stdout, done.returncode) == (b"kept\n", 0), done.stderr
        assert await content(sandbox, "f") == b"kept\nmore\n"


@awaited
async def test_a_session_that_is_gone_is_made_again_from_its_snapshot(
    client: CarrelSandboxClient, manager: WorkspaceManager, tmp_path: Path
) -> None:
    manifest = Manifest(entries={"tmp": Dir(ephemeral=True, children={"t": File(content=b"t")})})
    snapshot = LocalSnapshotSpec(base_path=tmp_path / "snapshots")
    options = CarrelSandboxClientOptions(disk_bytes=1000)
    sandbox = await client.create(manifest=manifest, snapshot=snapshot, options=options)
    async with sandbox:
        await sandbox.exec("mkdir -p a/b empty && echo one > a/b/f; echo gone > tmp/mine")
    state = client.deserialize_session_state(client.serialize_session_state(sandbox.state))
    (packed,) = (tmp_path / "snapshots").iterdir()
    with tarfile.open(packed) as archive:
        assert sorted(archive.getnames()) == ["a", "a/b", "a/b/f", "empty"]
    await client.delete(sandbox)
    async with await client.resume(state) as again:
        found = await again.exec("find . -type f; find . -type d")
        assert found.stdout.split() == [*b"./a/b/f ./tmp/t . ./a ./a/b ./empty ./tmp".split()]
        assert workspace_of(again).limits.disk_bytes == 1000


@awaited
async def test_a_session_that_did_not_change_since_its_snapshot_is_left_as_it_is(
    client: CarrelSandboxClient, tmp_path: Path
) -> None:
    snapshot = LocalSnapshotSpec(base_path=tmp_path / "snapshots")
    sandbox = await client.create(snapshot=snapshot)
    async with sandbox:
        await sandbox.write(Path("f"), io.BytesIO(b"one"))
        before = workspace_of(sandbox).stat("f").version
    assert sandbox.state.snapshot_fingerprint
    async with await client.resume(sandbox.state) as same:
        assert workspace_of(same).stat("f").version == before
        await same.write(Path("f"), io.BytesIO(b"two"))
        changed = workspace_of(same)
        state = client.deserialize_session_state(client.serialize_session_state(same.state))
        changed.write("g", b"not in the snapshot")
        async with await client.resume(state) as restored:
            assert await content(restored, "f") == b"one"
            assert [entry.path for entry in await restored.ls(".")] == ["/workspace/f"]


@awaited
async def test_an_expired_session_is_in_nobodys_way(client: CarrelSandboxClient, tmp_path: Path) -> None:
    now = [time.time_ns()]
    with WorkspaceManager(tmp_path / "aging", ttl_seconds=60, clock=lambda: now[0]) as manager:
        client = CarrelSandboxClient(manager)
        async with started(client, f=b"old") as sandbox:
            pass
        now[0] += 10**12
        async with await client.resume(sandbox.state) as again:
            assert await again.ls(".") == []


@awaited
async def test_a_workspace_travels_as_a_tar_archive(client: CarrelSandboxClient) -> None:
    async with started(client, f=b"one", g=b"two") as sandbox, started(client, f=b"old") as other:
        with await sandbox.persist_workspace() as archive:
            await other.hydrate_workspace(archive)
        assert await content(other, "f") == b"one"
        with pytest.raises(WorkspaceArchiveWriteError) as caught:
            await other.hydrate_workspace(io.BytesIO(b"no archive"))
        assert code_of(caught.value) == "archive.invalid"


@awaited
async def test_archives_of_other_providers_fit(client: CarrelSandboxClient) -> None:
    theirs = UnixLocalSandboxClient()
    async with await theirs.create() as local, started(client, ours=b"2") as sandbox:
        await local.mkdir("d")
        await local.write(Path("d/f"), io.BytesIO(b"1"))
        await sandbox.hydrate_workspace(await local.persist_workspace())
        assert await content(sandbox, "d/f") == b"1"
        with await sandbox.persist_workspace() as archive:
            await local.hydrate_workspace(archive)
        assert await content(local, "ours") == b"2"
    await theirs.delete(local)


@awaited
async def test_an_archive_that_leads_out_is_refused_whole(client: CarrelSandboxClient) -> None:
    evil = io.BytesIO()
    with tarfile.open(fileobj=evil, mode="w") as archive:
        for name in ("good", "../evil"):
            member = tarfile.TarInfo(name)
            member.size = 1
            archive.addfile(member, io.BytesIO(b"x"))
    evil.seek(0)
    async with started(client) as sandbox:
        with pytest.raises(InvalidManifestPathError):
            await sandbox.hydrate_workspace(evil)
        assert await sandbox.ls(".") == []


@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        (Manifest(root="/elsewhere"), "the root"),
        (Manifest(users=[User(name="eve")]), "no users"),
        (
            Manifest(extra_path_grants=(SandboxPathGrant(path="/etc", read_only=True),)),
            "rules of the manager",
        ),
    ],
)
@awaited
async def test_a_manifest_that_cannot_be_fulfilled_is_refused(
    client: CarrelSandboxClient, manifest: Manifest, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        await client.create(manifest=manifest)
    state = CarrelSandboxSessionState(manifest=manifest, snapshot=(await client.create()).state.snapshot)
    with pytest.raises(ValueError, match=why):
        await client.resume(state)


@awaited
async def test_the_sessions_of_others_are_not_ours(client: CarrelSandboxClient) -> None:
    theirs = UnixLocalSandboxClient()
    local = await theirs.create()
    with pytest.raises(TypeError, match="not the state of a session of carrel"):
        await client.resume(local.state)
    with pytest.raises(TypeError, match="not a session of carrel"):
        await client.delete(local)
    await theirs.delete(local)


@awaited
async def test_what_is_not_started_says_so(client: CarrelSandboxClient) -> None:
    sandbox = await client.create()
    with pytest.raises(WorkspaceArchiveReadError):
        await sandbox.read(Path("f"))
    with pytest.raises(ExecTransportError, match="not started"):
        await sandbox.exec("ls")


@awaited
async def test_a_session_that_cannot_be_made_does_not_start(tmp_path: Path) -> None:
    with WorkspaceManager(tmp_path / "sessions", max_sessions=0) as manager:
        sandbox = await CarrelSandboxClient(manager).create()
        with pytest.raises(WorkspaceStartError, match="sessions"):
            await sandbox.start()


# Commands


@pytest.mark.parametrize(
    ("command", "shell", "printed"),
    [
        (("echo one | tee f && cat f",), True, b"one\none\n"),
        (("echo", "a  b", "$HOME"), True, b"a  b $HOME\n"),
        (("echo", "a; b", "$HOME", "it's", "*"), False, b"a; b $HOME it's *\n"),
        (("echo one; echo two",), ["bash", "-lc"], b"one\ntwo\n"),
        (("echo one; echo two",), ["/bin/zsh", "-c"], b"one\ntwo\n"),
        (("sh", "-c", "echo $HOME"), False, b"/workspace\n"),
        (("cd d\npwd\ncd /\npwd",), True, b"/workspace/d\n/workspace/d\n"),
    ],
)
@awaited
async def test_commands_are_lines_or_words(
    client: CarrelSandboxClient, command: tuple[str, ...], shell: bool | list[str], printed: bytes
) -> None:
    async with started(client) as sandbox:
        await sandbox.mkdir("d")
        assert (await sandbox.exec(*command, shell=shell)).stdout == printed


@awaited
async def test_each_command_begins_at_the_top_with_the_variables_of_the_manifest(
    manager: WorkspaceManager,
) -> None:
    client = CarrelSandboxClient(manager, env={"A": "ours", "B": "ours"})
    manifest = Manifest.model_validate({"environment": {"value": {"B": "its"}}})
    async with await client.create(manifest=manifest) as sandbox:
        await sandbox.exec("mkdir d && cd d && export A=other")
        assert (await sandbox.exec("pwd && echo $A $B")).stdout == b"/workspace\nours its\n"


@awaited
async def test_what_is_missing_or_refused_has_a_status(client: CarrelSandboxClient) -> None:
    async with started(client) as sandbox:
        missing = await sandbox.exec("nosuch", "--flag", shell=False)
        assert (missing.exit_code, missing.stdout) == (127, b"")
        assert b"nosuch: command not found" in missing.stderr
        assert (await sandbox.exec("echo $(id)")).exit_code == 2
        assert (await sandbox.exec("bash", "-x", "f", shell=False)).exit_code == 127


@awaited
async def test_time_is_limited_by_whoever_gives_less(manager: WorkspaceManager) -> None:
    async with started(CarrelSandboxClient(manager)) as sandbox:
        with pytest.raises(ExecTimeoutError):
            await sandbox.exec("sleep 60", timeout=0.01)
    client = CarrelSandboxClient(manager, budget=Budget(seconds=0.01))
    async with started(client) as sandbox:
        for timeout in (None, 3600):
            with pytest.raises(ExecTimeoutError):
                await sandbox.exec("sleep 60", timeout=timeout)


@awaited
async def test_there_are_no_users(client: CarrelSandboxClient) -> None:
    async with started(client, f=b"") as sandbox:
        for call in (
            sandbox.exec("ls", user="eve"),
            sandbox.read(Path("f"), user=User(name="eve")),
            sandbox.rm("f", user="eve"),
        ):
            with pytest.raises(ValueError, match="no users"):
                await call


# Files


@awaited
async def test_files_are_read_whole_or_in_part(client: CarrelSandboxClient) -> None:
    async with started(client, f=b"12345") as sandbox:
        assert await content(sandbox, "/workspace/f") == b"12345"
        assert await sandbox.read_bounded(Path("f"), max_bytes=3) == b"123"
        with pytest.raises(WorkspaceReadNotFoundError):
            await sandbox.read_bounded(Path("nothing"), max_bytes=3)
        with pytest.raises(WorkspaceReadNotFoundError):
            await sandbox.read(Path("nothing"))
        with pytest.raises(WorkspaceArchiveReadError) as caught:
            await sandbox.read(Path("."))
        assert code_of(caught.value) == "path.is_directory"


@pytest.mark.parametrize("path", ["../f", "/etc/passwd", "/workspace/../etc/passwd", "out/f"])
@awaited
async def test_nothing_leads_out(client: CarrelSandboxClient, path: str) -> None:
    async with started(client, mine=b"") as sandbox:
        workspace_of(sandbox).host_path(".").joinpath("out").symlink_to("../..")
        for call in (
            sandbox.read(Path(path)),
            sandbox.write(Path(path), io.BytesIO(b"")),
            sandbox.ls(path),
            sandbox.rm(path),
            sandbox.rm(path, recursive=True),
            sandbox.mkdir(path, parents=True),
            sandbox.mv("mine", path),
            sandbox.mv(path, "mine"),
            sandbox.same_file("mine", path),
        ):
            with pytest.raises(InvalidManifestPathError):
                await call


@awaited
async def test_text_is_no_content(client: CarrelSandboxClient) -> None:
    async with started(client) as sandbox:
        with pytest.raises(WorkspaceWriteTypeError):
            await sandbox.write(Path("f"), io.StringIO("text"))
        assert await sandbox.ls(".") == []


@awaited
async def test_rules_hold(client: CarrelSandboxClient) -> None:
    async with started(client, f=b"one") as sandbox:
        inner = sandbox._inner
        assert isinstance(inner, CarrelSandboxSession)
        assert inner._opened is not None
        inner._opened = inner._opened.narrowed(mode=AccessMode.READ_ONLY)
        assert await content(sandbox, "f") == b"one"
        with pytest.raises(WorkspaceArchiveWriteError, match="read-only workspace"):
            await sandbox.write(Path("f"), io.BytesIO(b"two"))
        with pytest.raises(ExecNonZeroError) as caught:
            await sandbox.rm("f")
        assert code_of(caught.value) == "access.denied"


@awaited
async def test_listings_tell_kinds_and_sizes(client: CarrelSandboxClient) -> None:
    async with started(client, f=b"four") as sandbox:
        await sandbox.mkdir("d")
        workspace_of(sandbox).host_path(".").joinpath("link").symlink_to("f")
        entries = await sandbox.ls("/workspace")
        assert [(entry.path, entry.kind, entry.size) for entry in entries] == [
            ("/workspace/d", EntryKind.DIRECTORY, 0),
            ("/workspace/f", EntryKind.FILE, 4),
            ("/workspace/link", EntryKind.SYMLINK, 1),
        ]
        assert str(entries[0].permissions).startswith("drwx")
        assert [entry.path for entry in await sandbox.ls("f")] == ["/workspace/f"]
        with pytest.raises(ExecNonZeroError):
            await sandbox.ls("nothing")


@awaited
async def test_removing_and_making_are_as_strict_as_the_commands(client: CarrelSandboxClient) -> None:
    async with started(client, f=b"") as sandbox:
        await sandbox.mkdir("a/b", parents=True)
        await sandbox.mkdir("a/b", parents=True)
        for call in (sandbox.mkdir("a"), sandbox.mkdir("x/y"), sandbox.rm("a/b"), sandbox.rm("nothing")):
            with pytest.raises(ExecNonZeroError):
                await call
        await sandbox.rm("a", recursive=True)
        await sandbox.rm("a", recursive=True)
        await sandbox.rm("f")
        assert await sandbox.ls(".") == []


@awaited
async def test_moves_are_of_files_and_links_alone(client: CarrelSandboxClient) -> None:
    async with started(client, f=b"f", g=b"g") as sandbox:
        await sandbox.mkdir("d")
        for source, target in (("d", "e"), ("f", "d"), ("nothing", "e")):
            with pytest.raises(ExecNonZeroError):
                await sandbox.mv(source, target)
        await sandbox.mv("f", "g")
        assert await content(sandbox, "g") == b"f"
        assert [entry.path for entry in await sandbox.ls(".")] == ["/workspace/d", "/workspace/g"]


@awaited
async def test_two_names_of_one_file_are_known(client: CarrelSandboxClient) -> None:
    async with started(client, f=b"", g=b"") as sandbox:
        workspace_of(sandbox).host_path(".").joinpath("link").symlink_to("f")
        assert await sandbox.same_file("f", "/workspace/./f")
        assert await sandbox.same_file("f", "link")
        assert not await sandbox.same_file("f", "link", follow_symlinks=False)
        assert not await sandbox.same_file("f", "g")
        assert not await sandbox.same_file("f", "nothing")


@awaited
async def test_patches_are_applied(client: CarrelSandboxClient) -> None:
    async with started(client, f=b"one\ntwo\n") as sandbox:
        create: dict[str, object] = {"type": "create_file", "path": "d/new", "diff": "+1\n+2\n"}
        change = "@@\n one\n-two\n+three\n"
        update: dict[str, object] = {"type": "update_file", "path": "f", "diff": change, "move_to": "d/f"}
        assert await sandbox.apply_patch([create, update]) == "Done!"
        assert await content(sandbox, "d/new") == b"1\n2"
        assert await content(sandbox, "d/f") == b"one\nthree\n"
        assert [entry.path for entry in await sandbox.ls(".")] == ["/workspace/d"]
        with pytest.raises(ApplyPatchDiffError, match="already exists"):
            await sandbox.apply_patch(create)
        with pytest.raises(ApplyPatchFileNotFoundError):
            await sandbox.apply_patch({"type": "delete_file", "path": "f"})
        await sandbox.apply_patch({"type": "delete_file", "path": "d/f"})


@awaited
async def test_archives_are_unpacked_beside_themselves(client: CarrelSandboxClient) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        member = tarfile.TarInfo("a/f")
        member.size = 1
        archive.addfile(member, io.BytesIO(b"x"))
    packed.seek(0)
    async with started(client) as sandbox:
        await sandbox.extract("d/in.tar", packed)
        assert await content(sandbox, "d/a/f") == b"x"


# Agents


def run_config(client: CarrelSandboxClient, **options: Any) -> RunConfig:
    return RunConfig(sandbox=SandboxRunConfig(client=client, **options), tracing_disabled=True)


def outputs(items: list[Any]) -> list[str]:
    return [str(item.output) for item in items if isinstance(item, ToolCallOutputItem)]


def told(output: str) -> tuple[str, str]:
    """The status and the output that an agent is told of a command."""
    head, _, printed = output.partition("\nOutput:\n")
    return head.splitlines()[-1].rpartition(" ")[2], printed


@awaited
async def test_an_agent_runs_commands_in_a_session_that_ends_with_the_run(
    client: CarrelSandboxClient, manager: WorkspaceManager
) -> None:
    model = ScriptedModel(
        [
            [function_call("exec_command", {"cmd": "cat in.txt | wc -l"}, call_id="1")],
            [function_call("exec_command", {"cmd": "pwd && nosuch", "workdir": "d"}, call_id="2")],
            [function_call("exec_command", {"cmd": "sleep 60", "yield_time_ms": 10}, call_id="3")],
            [assistant_message("done")],
        ]
    )
    manifest = Manifest(entries={"in.txt": File(content=b"1\n2\n"), "d": Dir()})
    agent = SandboxAgent(name="A", instructions="Work.", model=model, default_manifest=manifest)
    answer = await Runner.run(agent, "Go.", run_config=run_config(client))
    first, second, third = outputs(answer.new_items)
    assert told(first) == ("0", "2\n")
    assert told(second)[0] == "127"
    assert told(second)[1].startswith("/workspace/d\nnosuch: command not found")
    assert told(third)[1] == "Command timed out after 0.010 seconds."
    assert answer.final_output == "done"
    assert manager.list_workspaces() == []


@awaited
async def test_an_agent_works_in_a_session_that_is_handed_to_it(client: CarrelSandboxClient) -> None:
    patch = "*** Begin Patch\n*** Add File: plan.txt\n+read\n+write\n*** End Patch"
    call = {"type": "custom_tool_call", "name": "apply_patch", "input": patch, "call_id": "1", "id": "1"}
    from openai.types.responses import ResponseCustomToolCall

    model = ScriptedModel([[ResponseCustomToolCall.model_validate(call)], [assistant_message("done")]])
    agent = SandboxAgent(name="A", instructions="Work.", model=model)
    async with started(client) as sandbox:
        config = RunConfig(sandbox=SandboxRunConfig(session=sandbox), tracing_disabled=True)
        await Runner.run(agent, "Go.", run_config=config)
        assert await content(sandbox, "plan.txt") == b"read\nwrite"


def test_without_its_extra_one_error_says_how_to_install_it() -> None:
    probe = "import sys; sys.modules['agents'] = None; import carrel.adapters.openai_agents"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, check=False, text=True)
    assert done.stderr.splitlines()[-1] == (
        "ImportError: agents is not installed: pip install 'carrel[openai-agents]'"
    )
