"""`RemoteWorkspace`: the files of a session at a service, used like a `Workspace`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from functools import wraps
from itertools import chain, islice
from typing import Concatenate, ParamSpec, TypeVar

from carrel.audit.event import Event
from carrel.fs.api import Content, Wants
from carrel.paths.parsed_path import StrPath
from carrel.remote.async_workspace import AsyncRemoteWorkspace
from carrel.remote.run_sync import Coro, iterate_sync, run_sync
from carrel.remote.sandbox import RemoteSandbox
from carrel.remote.shell import RemoteShell
from carrel.remote.toolbox import RemoteToolbox
from carrel.shell.budget import Budget
from carrel.values import Limits
from carrel.workspace.chunks import CHUNK_BYTES
from carrel.workspace.workspace import MOUNT

Params = ParamSpec("Params")
Result = TypeVar("Result")


def _sync(
    method: Callable[Concatenate[AsyncRemoteWorkspace, Params], Coro[Result]],
) -> Callable[Concatenate[RemoteWorkspace, Params], Result]:
    """The blocking version of *method*."""

    @wraps(method)
    def call(self: RemoteWorkspace, /, *args: Params.args, **kwargs: Params.kwargs) -> Result:
        return run_sync(method(self._async_workspace, *args, **kwargs))

    return call


def _sync_iterator(
    method: Callable[Concatenate[AsyncRemoteWorkspace, Params], AsyncGenerator[Result]],
) -> Callable[Concatenate[RemoteWorkspace, Params], Iterator[Result]]:
    """The blocking version of a generator; like the library, it raises errors on the call itself."""

    @wraps(method)
    def call(self: RemoteWorkspace, /, *args: Params.args, **kwargs: Params.kwargs) -> Iterator[Result]:
        items = iterate_sync(method(self._async_workspace, *args, **kwargs))
        return chain(tuple(islice(items, 1)), items)

    return call


class RemoteWorkspace:
    """The files of a session at a service, with the methods of `Workspace`."""

    mount = MOUNT
    """Mount path of the workspace as the session sees it."""

    def __init__(self, async_workspace: AsyncRemoteWorkspace) -> None:
        """Wrap *async_workspace*, whose connection blocks; most callers use `Client.open`."""
        self._async_workspace = async_workspace

    @property
    def session_id(self) -> str:
        """The id of the session."""
        return self._async_workspace.session_id

    @property
    def limits(self) -> Limits:
        """The limits in effect."""
        return self._async_workspace.limits

    @property
    def created_ns(self) -> int:
        """Creation time of the session; it differs from that of an earlier session with the same id."""
        return self._async_workspace.created_ns

    def __repr__(self) -> str:
        return repr(self._async_workspace).replace("AsyncRemoteWorkspace", "RemoteWorkspace", 1)

    def __enter__(self) -> RemoteWorkspace:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def read_tree(
        self,
        path: StrPath = ".",
        *,
        enter: Wants | None = None,
        wants: Wants | None = None,
        chunk_bytes: int = CHUNK_BYTES,
    ) -> Iterator[Content]:
        """The regular files below a directory with their content, sorted by name; links are not followed.

        A file is read when its chunks are iterated.
        """
        for info in self.walk(path, enter=None if enter is None else lambda info: enter(info.name)):
            if info.is_file and (wants is None or wants(info.name)):
                yield Content(info.path, self.read_chunks(info.path, chunk_bytes=chunk_bytes))

    def follow(self, since: int = 0) -> Iterator[Event]:
        """Yield the records of `changes`, then new ones as they are written, until the session is deleted.

        Reconnects after a broken connection; no record is lost or repeated.

        Raises:
            SessionMissingError: The session was deleted before.
            RotatedError: Some of the records were rotated away.
        """
        return iterate_sync(self._async_workspace.follow(since))

    def shell(self, *, budget: Budget | None = None) -> RemoteShell:
        """A shell in the session, which keeps its working directory from line to line.

        Only the time of *budget* is sent, and limited to that of the service.
        """
        return RemoteShell(self._async_workspace.shell(budget=budget))

    def sandbox(self, *, stateful: bool = False) -> RemoteSandbox:
        """A sandbox that runs guest code on the files; with *stateful*, variables persist between calls."""
        return RemoteSandbox(self._async_workspace.sandbox(stateful=stateful))

    def toolbox(self, role: str | None = None, *, profile: str = "agent") -> RemoteToolbox:
        """The tools of *role*, which the key must allow; by default the key's own role."""
        return RemoteToolbox(self._async_workspace.toolbox(role, profile=profile))

    append = _sync(AsyncRemoteWorkspace.append)
    archive = _sync_iterator(AsyncRemoteWorkspace.archive)
    changes = _sync_iterator(AsyncRemoteWorkspace.changes)
    close = _sync(AsyncRemoteWorkspace.close)
    copy = _sync(AsyncRemoteWorkspace.copy)
    edit = _sync(AsyncRemoteWorkspace.edit)
    exists = _sync(AsyncRemoteWorkspace.exists)
    extract = _sync(AsyncRemoteWorkspace.extract)
    glob = _sync(AsyncRemoteWorkspace.glob)
    list = _sync(AsyncRemoteWorkspace.list)
    list_files = _sync(AsyncRemoteWorkspace.list_files)
    list_names = _sync(AsyncRemoteWorkspace.list_names)
    mkdir = _sync(AsyncRemoteWorkspace.mkdir)
    move = _sync(AsyncRemoteWorkspace.move)
    read = _sync(AsyncRemoteWorkspace.read)
    read_chunks = _sync_iterator(AsyncRemoteWorkspace.read_chunks)
    read_lines = _sync(AsyncRemoteWorkspace.read_lines)
    read_text = _sync(AsyncRemoteWorkspace.read_text)
    read_with_info = _sync(AsyncRemoteWorkspace.read_with_info)
    recount = _sync(AsyncRemoteWorkspace.recount)
    remove = _sync(AsyncRemoteWorkspace.remove)
    search = _sync(AsyncRemoteWorkspace.search)
    stat = _sync(AsyncRemoteWorkspace.stat)
    touch = _sync(AsyncRemoteWorkspace.touch)
    usage = _sync(AsyncRemoteWorkspace.usage)
    walk = _sync_iterator(AsyncRemoteWorkspace.walk)
    write = _sync(AsyncRemoteWorkspace.write)
    write_chunks = _sync(AsyncRemoteWorkspace.write_chunks)
