"""`CarrelSandboxSession`: the files and the shell of a session as a sandbox of the Agents SDK."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from agents.sandbox.files import EntryKind, FileEntry
from agents.sandbox.session.base_sandbox_session import BaseSandboxSession
from agents.sandbox.session.workspace_payloads import coerce_write_payload
from agents.sandbox.types import ExecResult, Permissions, User
from agents.sandbox.workspace_paths import sandbox_path_str

from carrel.adapters.openai_agents.archive import fingerprint, pack_workspace
from carrel.adapters.openai_agents.errors import (
    emulating,
    exec_result,
    reading,
    start_error,
    transport_error,
    writing,
)
from carrel.adapters.openai_agents.state import CarrelSandboxSessionState
from carrel.adapters.script import ShellScript
from carrel.errors import CarrelError, ClosedError, IsDirectoryError, NotRegularError
from carrel.policy.execution import ExecutionPolicy
from carrel.sandbox.shell import Shell
from carrel.shell.budget import Budget
from carrel.shell.runtime.shell import ShellOptions
from carrel.values import FileInfo, FileKind
from carrel.workspace.aio import AsyncWorkspace
from carrel.workspace.chunks import CHUNK_BYTES
from carrel.workspace.workspace import MOUNT, Workspace

if TYPE_CHECKING:
    Open = Callable[[CarrelSandboxSessionState], tuple[Workspace, bool]]
    """Opens or creates the workspace of a state; also returns whether it existed."""

MAX_SECONDS = 600
"""Time limit of a command without a budget."""
FINGERPRINT_VERSION = "carrel_tar_sha256_v1"
_KINDS = {
    FileKind.FILE: EntryKind.FILE,
    FileKind.DIRECTORY: EntryKind.DIRECTORY,
    FileKind.LINK: EntryKind.SYMLINK,
    FileKind.OTHER: EntryKind.OTHER,
}


class CarrelSandboxSession(BaseSandboxSession):
    """A sandbox on a carrel session; every file operation goes through its gate.

    Commands run in carrel's shell, each starting at the top of the workspace, and start no host process.
    There are no users, ports or terminals. Files have no permissions of their own, so permissions of a
    manifest are ignored: the rules of the session decide.
    """

    state: CarrelSandboxSessionState

    def __init__(
        self,
        state: CarrelSandboxSessionState,
        open_workspace: Open,
        *,
        policy: ExecutionPolicy | None = None,
        **options: Unpack[ShellOptions],
    ) -> None:
        """Create the sandbox of *state*, opened by `start`; called by `CarrelSandboxClient`."""
        self.state = state
        self._open_workspace = open_workspace
        self._budget = options.pop("budget", None) or Budget(seconds=MAX_SECONDS)
        options.setdefault("pipelines", True)
        self._options = options
        self._policy = policy
        self._opened: AsyncWorkspace | None = None

    @property
    def workspace(self) -> Workspace:
        """The open workspace.

        Raises:
            ClosedError: The sandbox was not started, or was shut down.
        """
        return self._files.workspace

    @property
    def _files(self) -> AsyncWorkspace:
        if self._opened is None:
            raise ClosedError("the sandbox is not started")
        return self._opened

    # Life cycle

    async def _ensure_backend_started(self) -> None:
        """Open the session; create it again if it is gone."""
        if self._opened is not None:
            return
        try:
            workspace, existed = await asyncio.to_thread(self._open_workspace, self.state)
        except CarrelError as error:
            raise start_error(self.state.manifest.root, error) from error
        self._opened = AsyncWorkspace(workspace)
        self._set_start_state_preserved(existed)

    async def _shutdown_backend(self) -> None:
        """Close the session; it can be resumed until it is deleted or expires."""
        if self._opened is not None:
            await self._opened.close()
            self._opened = None

    async def running(self) -> bool:
        try:
            return await self._files.exists(".")
        except CarrelError:
            return False

    async def persist_workspace(self) -> io.IOBase:
        with reading(self.state.manifest.root):
            return await asyncio.to_thread(pack_workspace, self.workspace, self._excluded_paths())

    async def hydrate_workspace(self, data: io.IOBase) -> None:
        with writing(self.state.manifest.root):
            await self._files.extract(_chunks(data), overwrite=True)

    def _excluded_paths(self) -> frozenset[str]:
        return frozenset(path.as_posix() for path in self._persist_workspace_skip_relpaths())

    async def _compute_and_cache_snapshot_fingerprint(self, *, version: str | None = None) -> dict[str, str]:
        """Compute the fingerprint; it is not cached, since carrel stores nothing among the files."""
        digest = await asyncio.to_thread(
            fingerprint, self.workspace, self._excluded_paths(), self._resume_manifest_digest()
        )
        return {"fingerprint": digest, "version": self._snapshot_fingerprint_version()}

    async def _delete_cached_snapshot_fingerprint_best_effort(self) -> None:
        """Do nothing: fingerprints are not cached."""

    def _snapshot_fingerprint_version(self) -> str:
        return FINGERPRINT_VERSION

    # Commands

    def _prepare_exec_command(
        self, *command: str | Path, shell: bool | list[str], user: str | User | None
    ) -> list[str]:
        _require_no_user(user)
        return super()._prepare_exec_command(*command, shell=shell, user=None)

    async def _exec_internal(self, *command: str | Path, timeout: float | None = None) -> ExecResult:
        words = [str(word) for word in command]
        budget = self._budget_of(timeout)
        options = self._options.copy()
        options["env"] = {**(options.get("env") or {}), **await self.state.manifest.environment.resolve()}
        try:
            shell = Shell(self.workspace, policy=self._policy, **options)
            result = await ShellScript.of(words, shell=False).run(shell, budget)
        except CarrelError as error:
            raise transport_error(words, error) from error
        return exec_result(words, result, budget.seconds)

    def _budget_of(self, timeout: float | None) -> Budget:
        longest = self._budget.seconds
        if timeout is None:
            return self._budget
        return replace(self._budget, seconds=max(0.0, timeout if longest is None else min(timeout, longest)))

    async def _exec_checked_nonzero(self, *command: str | Path) -> ExecResult:
        """Run a command that must succeed; the `chmod` of a manifest has no effect here."""
        if command[0] == "chmod" and len(command) == 3:
            path = sandbox_path_str(command[2])
            with emulating("chmod", str(command[1]), path):
                await self._files.stat(path)
            return ExecResult(stdout=b"", stderr=b"", exit_code=0)
        return await super()._exec_checked_nonzero(*command)

    # Files

    async def read(self, path: Path | str, *, user: str | User | None = None) -> io.IOBase:
        _require_no_user(user)
        sandbox_path = sandbox_path_str(path)
        with reading(sandbox_path):
            return io.BytesIO(await self._files.read(sandbox_path))

    async def _read_bounded(self, path: Path | str, *, max_bytes: int) -> bytes:
        sandbox_path = sandbox_path_str(path)
        with reading(sandbox_path):
            return await self._files.read(sandbox_path, length=max_bytes)

    async def write(self, path: Path | str, data: io.IOBase, *, user: str | User | None = None) -> None:
        _require_no_user(user)
        sandbox_path = sandbox_path_str(path)
        chunks = _chunks(coerce_write_payload(path=Path(sandbox_path), data=data).stream)
        with writing(sandbox_path):
            await self._files.write_chunks(sandbox_path, chunks)

    async def _write_new_file(
        self, path: Path | str, data: io.IOBase, *, user: str | User | None = None
    ) -> None:
        """Write a new file.

        Raises:
            FileExistsError: The path exists.
        """
        _require_no_user(user)
        sandbox_path = sandbox_path_str(path)
        chunks = _chunks(coerce_write_payload(path=Path(sandbox_path), data=data).stream)
        with writing(sandbox_path):
            await _require_created(self._files.write_chunks(sandbox_path, chunks, overwrite=False))

    async def ls(self, path: Path | str, *, user: str | User | None = None) -> list[FileEntry]:
        _require_no_user(user)
        sandbox_path = sandbox_path_str(path)
        with emulating("ls", "-la", "--", sandbox_path):
            top = await self._files.stat(sandbox_path)
            found = await self._files.list(sandbox_path) if top.is_directory else [top]
        return [_entry(info) for info in found]

    async def rm(self, path: Path | str, *, recursive: bool = False, user: str | User | None = None) -> None:
        _require_no_user(user)
        sandbox_path = sandbox_path_str(path)
        with emulating("rm", "-rf" if recursive else "-f", "--", sandbox_path):
            if not recursive and (await self._files.stat(sandbox_path, follow_symlinks=False)).is_directory:
                raise IsDirectoryError(
                    f"cannot remove {sandbox_path!r}: it is a directory", path=sandbox_path
                )
            await self._files.remove(sandbox_path, recursive=recursive, force=recursive)

    async def mkdir(self, path: Path | str, *, parents: bool = False, user: str | User | None = None) -> None:
        _require_no_user(user)
        sandbox_path = sandbox_path_str(path)
        with emulating("mkdir", sandbox_path):
            await self._files.mkdir(sandbox_path, parents=parents, exist_ok=parents)

    async def mv(
        self, source: Path | str, destination: Path | str, *, user: str | User | None = None
    ) -> None:
        _require_no_user(user)
        sandbox_path, target = sandbox_path_str(source), sandbox_path_str(destination)
        with emulating("mv", "-fT", "--", sandbox_path, target):
            kind = (await self._files.stat(sandbox_path, follow_symlinks=False)).kind
            if kind not in (FileKind.FILE, FileKind.LINK):
                raise NotRegularError(
                    f"cannot move {sandbox_path!r}: it is neither a file nor a link", path=sandbox_path
                )
            await self._files.move(sandbox_path, target, overwrite=True)

    async def same_file(
        self,
        left: Path | str,
        right: Path | str,
        *,
        follow_symlinks: bool = True,
        user: str | User | None = None,
    ) -> bool:
        _require_no_user(user)
        first, second = [
            await self._stat_or_none(sandbox_path_str(each), follow_symlinks) for each in (left, right)
        ]
        if first is None or second is None or FileKind.LINK in (first.kind, second.kind):
            return False
        return first.inode == second.inode

    async def _stat_or_none(self, path: str, follow_symlinks: bool) -> FileInfo | None:
        with emulating("test", "-e", path):
            if not await self._files.exists(path):
                return None
            return await self._files.stat(path, follow_symlinks=follow_symlinks)


async def _require_created(creation: Awaitable[object]) -> None:
    """Await a write; for an existing file the SDK expects the builtin error.

    Raises:
        FileExistsError: The path exists.
    """
    try:
        await creation
    except CarrelError as error:
        if error.code == "path.exists":
            raise FileExistsError(error.message) from None
        raise


def _require_no_user(user: object) -> None:
    if user is not None:
        raise ValueError("a carrel session has no users: omit `user` and `run_as`")


def _chunks(data: io.IOBase) -> Iterator[bytes]:
    while chunk := data.read(CHUNK_BYTES):
        yield chunk


def _entry(info: FileInfo) -> FileEntry:
    permissions = Permissions.from_mode(info.mode).model_copy(update={"directory": info.is_directory})
    return FileEntry(
        path=info.path if info.path.startswith("/") else f"{MOUNT}/{info.path}",
        permissions=permissions,
        owner="carrel",
        group="carrel",
        size=info.size_bytes,
        kind=_KINDS[info.kind],
    )
