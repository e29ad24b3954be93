"""Every operation of the adapters for agent frameworks that takes a path, for any one path."""

from __future__ import annotations

import asyncio
import concurrent.futures.thread  # noqa: F401  # imported late by asyncio, perhaps as a user who may not read it
import io
import shlex
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from agents.sandbox.errors import SandboxError
from agents.sandbox.manifest import Manifest
from agents.sandbox.snapshot import NoopSnapshot
from agents.sandbox.types import ExecResult
from agents.sandbox.workspace_paths import sandbox_path_str

import carrel.sandbox.shell  # noqa: F401  # the same
from carrel.adapters.deepagents import CarrelBackend
from carrel.adapters.deepagents.paths import AgentPaths
from carrel.adapters.openai_agents import CarrelSandboxSession, CarrelSandboxSessionState
from carrel.errors import CarrelError
from carrel.shell.budget import Budget
from carrel.workspace.workspace import Workspace
from tests.attack.operations import AWAY, MINE


class Answer(NamedTuple):
    """What an adapter answered."""

    failed: bool
    value: object
    """All that it told, as JSON could."""


Operation = Callable[[Workspace, str], Answer]

_BUDGET = Budget(seconds=0.5)
_BACKEND: Mapping[str, Callable[[CarrelBackend, str], Any]] = {
    "ls": CarrelBackend.ls,
    "read": CarrelBackend.read,
    "read some": lambda backend, path: backend.read(path, 1, 5),
    "write": lambda backend, path: backend.write(path, "new"),
    "write below": lambda backend, path: backend.write(f"{path or '.'}/new/newer", "new"),
    "edit": lambda backend, path: backend.edit(path, "i", "o", replace_all=True),
    "delete": CarrelBackend.delete,
    "upload": lambda backend, path: backend.upload_files([(path, b"new")])[0],
    "download": lambda backend, path: backend.download_files([path])[0],
    "grep in": lambda backend, path: backend.grep("a", path),
    "grep by": lambda backend, path: backend.grep("a", None, path),
    "glob in": lambda backend, path: backend.glob("**", path),
    "glob by": lambda backend, path: backend.glob(path),
    "execute": lambda backend, path: backend.execute(f"cat {shlex.quote(path)} > {AWAY}"),
}
_SESSION: Mapping[str, Callable[[CarrelSandboxSession, str], Awaitable[Any]]] = {
    "read": lambda session, path: session.read(path),
    "read_bounded": lambda session, path: session.read_bounded(Path(path), max_bytes=10),
    "write": lambda session, path: session.write(path, io.BytesIO(b"new")),
    "write new": lambda session, path: session._write_new_file(path, io.BytesIO(b"new")),
    "ls": lambda session, path: session.ls(path),
    "rm": lambda session, path: session.rm(path),
    "rm -r": lambda session, path: session.rm(path, recursive=True),
    "mkdir": lambda session, path: session.mkdir(path),
    "mkdir -p": lambda session, path: session.mkdir(f"{path}/new/newer", parents=True),
    "mv from": lambda session, path: session.mv(path, AWAY),
    "mv to": lambda session, path: session.mv(MINE, path),
    "same_file": lambda session, path: session.same_file(path, MINE),
    "apply_patch": lambda session, path: session.apply_patch({"type": "delete_file", "path": path}),
    "extract": lambda session, path: session.extract(f"{path}/in.tar", io.BytesIO(b"no archive")),
    "exec": lambda session, path: session.exec("cat", path, shell=False),
}


def _by_backend(name: str) -> Operation:
    def run(workspace: Workspace, path: str) -> Answer:
        result = _BACKEND[name](CarrelBackend(workspace, budget=_BUDGET), path)
        value = asdict(result)
        return Answer(bool(value.get("error") or value.get("exit_code")), value)

    return run


def _by_session(name: str) -> Operation:
    def run(workspace: Workspace, path: str) -> Answer:
        return asyncio.run(_called(workspace, name, path))

    return run


async def _called(workspace: Workspace, name: str, path: str) -> Answer:
    state = CarrelSandboxSessionState(manifest=Manifest(), snapshot=NoopSnapshot(id="none"))
    session = CarrelSandboxSession(state, lambda _: (workspace, True), budget=_BUDGET)
    await session._ensure_backend_started()
    try:
        value = await _SESSION[name](session, path)
    except SandboxError as error:
        # The path that was asked is told, and may be.
        told = {**error.context, "path": None, "rel": None, "command": None}
        return Answer(True, [error.message, str(error.cause), told])
    except (ValueError, FileExistsError) as error:  # which the SDK wants as they are
        return Answer(True, str(error))
    if isinstance(value, ExecResult):
        return Answer(value.exit_code != 0, [_text(value.stdout), _text(value.stderr)])
    if isinstance(value, io.IOBase):
        return Answer(False, _text(value.read()))
    return Answer(False, [asdict(entry) for entry in value] if isinstance(value, list) else value)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


OPERATIONS: Mapping[str, Operation] = {
    **{f"deepagents: {name}": _by_backend(name) for name in _BACKEND},
    **{f"openai: {name}": _by_session(name) for name in _SESSION},
}
NO_PATH = frozenset({"deepagents: grep by", "deepagents: glob by", "deepagents: execute"})
"""Those in which the path is only a part of what is given."""
REFUSALS = frozenset({"path.escape", "path.absolute", "path.invalid", "access.outside"})


def refuses(workspace: Workspace, operation: str, path: str) -> bool:
    """Whether what *path* means to the operation, be it a link or not, is not in the workspace."""
    try:
        is_backend = operation.startswith("deepagents")
        place = AgentPaths(workspace, None).parse(path) if is_backend else sandbox_path_str(path)
        workspace.stat(place, follow_symlinks=False)
    except CarrelError as error:
        return error.code in REFUSALS
    return False
