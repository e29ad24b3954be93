"""The life of a sandbox: made, resumed by others, made again from its snapshot, deleted."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from agents.sandbox import LocalSnapshotSpec, Manifest, SandboxPathGrant
from agents.sandbox.entries import Dir, File
from agents.sandbox.errors import (
    ExecTransportError,
    InvalidManifestPathError,
    WorkspaceArchiveReadError,
    WorkspaceArchiveWriteError,
    WorkspaceStartError,
)
from agents.sandbox.sandboxes.unix_local import UnixLocalSandboxClient
from agents.sandbox.types import User

from carrel.adapters.openai_agents import (
    CarrelSandboxClient,
    CarrelSandboxClientOptions,
    CarrelSandboxSessionState,
)
from carrel.sessions.manager import WorkspaceManager
from tests.adapters.openai_agents.awaiting import awaited, code_of, content, started, workspace_of


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
    with pytest.raises(TypeError, match="not the state of a carrel session"):
        await client.resume(local.state)
    with pytest.raises(TypeError, match="not a carrel session"):
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
