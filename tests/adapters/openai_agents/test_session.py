"""The files of a sandbox."""

from __future__ import annotations

import base64
import io
import tarfile
from pathlib import Path

import pytest
from agents import ToolOutputImage
from agents.sandbox.capabilities.tools.view_image import ViewImageArgs, ViewImageTool
from agents.sandbox.errors import (
    ApplyPatchDiffError,
    ApplyPatchFileNotFoundError,
    ExecNonZeroError,
    InvalidManifestPathError,
    WorkspaceArchiveReadError,
    WorkspaceArchiveWriteError,
    WorkspaceReadNotFoundError,
    WorkspaceWriteTypeError,
)
from agents.sandbox.files import EntryKind

from carrel.adapters.openai_agents import CarrelSandboxClient, CarrelSandboxSession
from carrel.policy.rules import AccessMode
from tests.adapters.openai_agents.awaiting import awaited, code_of, content, started, workspace_of
from tests.tools.images import png


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


@awaited
async def test_an_image_is_an_image_of_the_framework(client: CarrelSandboxClient) -> None:
    async with started(client, **{"p.png": png()}) as sandbox:
        image = await ViewImageTool(session=sandbox).run(ViewImageArgs(path="p.png"))
        assert isinstance(image, ToolOutputImage)
        assert image.image_url == f"data:image/png;base64,{base64.b64encode(png()).decode()}"


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
