"""`AsyncRemoteWorkspace`: the files of a session at a service, for async code.

It has the methods of `AsyncWorkspace`, with the same results and errors, except those that concern the host
(`host_path`, `explain`), views (`narrowed`) and open files (`reader`).
"""

from __future__ import annotations

import builtins
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import wraps
from operator import index
from typing import TYPE_CHECKING, Any, BinaryIO, Concatenate, ParamSpec, TypeVar

from carrel.audit.event import Event
from carrel.errors import ClosedError, SessionMissingError, StoppingError, UnreachableError
from carrel.fs.api import Content, Wants
from carrel.paths.parsed_path import StrPath, encode, to_str
from carrel.remote.json_codec import parse
from carrel.remote.operation import RemoteOperation
from carrel.remote.run_sync import Coro
from carrel.remote.sandbox import AsyncRemoteSandbox
from carrel.remote.session import RemoteSession
from carrel.remote.shell import AsyncRemoteShell
from carrel.remote.toolbox import AsyncRemoteToolbox
from carrel.remote.transport.api import ByteSource, Transport
from carrel.remote.transport.chunks import iter_chunks, rechunk, require_bytes
from carrel.remote.walk import UnreadableContent, walk
from carrel.values import FileInfo, Limits, Named
from carrel.workspace import text as texts
from carrel.workspace.chunks import CHUNK_BYTES
from carrel.workspace.workspace import MOUNT, Workspace

if TYPE_CHECKING:
    from carrel.shell.budget import Budget
    from carrel.workspace.archive.create import ArchiveFormat, LeftOut
    from carrel.workspace.archive.extract import Extracted
    from carrel.workspace.extract_limits import ExtractLimits

_MAX_RECONNECTS = 15
"""Consecutive attempts of `follow` to reconnect; together they take about a minute."""
_FIRST_PAUSE_SECONDS = 0.2
"""Pause before the first reconnect; it doubles with each further attempt."""
_MAX_PAUSE_SECONDS = 5.0
_MAX_POSITION = 2**62
"""Beyond the end of every file, and still within a 64-bit integer."""

Params = ParamSpec("Params")
Result = TypeVar("Result")


def _remote_operation(
    method: Callable[Concatenate[Workspace, Params], Result],
) -> Callable[Concatenate[AsyncRemoteWorkspace, Params], Coro[Result]]:
    """Make an async method that runs the operation at the service."""
    operation = RemoteOperation(method)

    @wraps(method)
    async def call(self: AsyncRemoteWorkspace, /, *args: Params.args, **kwargs: Params.kwargs) -> Result:
        arguments = operation.render(*args, **kwargs)
        result: Result = operation.parse(await self._call(operation.name, arguments))
        return result

    return call


class AsyncRemoteWorkspace:
    """The files of a session at a service; operations are awaited."""

    mount = MOUNT
    """Mount path of the workspace as the session sees it."""

    def __init__(self, transport: Transport, session: RemoteSession) -> None:
        """Use the files of *session*; most callers want `AsyncClient.open`."""
        self._transport = transport
        self._session = session
        self._is_closed = False

    @property
    def session_id(self) -> str:
        """The id of the session."""
        return self._session.session_id

    @property
    def limits(self) -> Limits:
        """The limits in effect."""
        return self._session.limits

    @property
    def created_ns(self) -> int:
        """Creation time of the session; it differs from that of an earlier session with the same id."""
        return self._session.created_ns

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.session_id!r} at {self._transport.address!r})"

    async def close(self) -> None:
        """Close the workspace; the session and the client are not affected."""
        self._is_closed = True

    async def __aenter__(self) -> AsyncRemoteWorkspace:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    def _open_transport(self, path: str | None = None) -> Transport:
        """The transport, for an operation on *path*.

        Raises:
            ClosedError: The workspace was closed.
        """
        if self._is_closed:
            message = "workspace is closed" if path is None else f"workspace is closed: {path!r}"
            raise ClosedError(message, path=path)
        return self._transport

    async def _call(self, operation: str, arguments: dict[str, Any]) -> Any:  # Any: a JSON value
        """Call one operation of the service's table."""
        path = arguments.get("path")
        return await self._open_transport(path).call(self.session_id, operation, arguments)

    # Reading

    async def read(self, path: StrPath, *, offset: int = 0, length: int | None = None) -> bytes:
        """The content of a file, or *length* bytes of it from *offset* on."""
        return (await self.read_with_info(path, offset=offset, length=length))[1]

    async def read_with_info(
        self, path: StrPath, *, offset: int = 0, length: int | None = None
    ) -> tuple[FileInfo, bytes]:
        """The content as `read` returns it, and the file's info from when it was opened."""
        path = _sendable_path(path)
        offset, length = _clamped_position(offset), None if length is None else _clamped_position(length)
        if offset < 0 or (length is not None and length < 0):
            raise ValueError(f"offset and length cannot be negative: {offset}, {length}")
        return await self._open_transport(path).read(
            self.session_id, path, offset=offset, length=length, limit=self.limits.read_bytes
        )

    async def read_text(self, path: StrPath, *, encoding: str = "utf-8") -> str:
        """The content of a file as text: utf-8, ascii, latin-1, or any bytes as base64."""
        path = _sendable_path(path)
        return texts.decode(await self.read(path), encoding, path)

    async def read_chunks(self, path: StrPath, *, chunk_bytes: int = CHUNK_BYTES) -> AsyncGenerator[bytes]:
        """The content in chunks, for files larger than memory."""
        path = _sendable_path(path)
        if chunk_bytes < 1:
            raise ValueError(f"chunk_bytes must be at least 1, not {chunk_bytes}")
        received = self._open_transport(path).read_chunks(self.session_id, path)
        async with aclosing(received), aclosing(rechunk(received, chunk_bytes)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def read_tree(
        self,
        path: StrPath = ".",
        *,
        enter: Wants | None = None,
        wants: Wants | None = None,
        chunk_bytes: int = CHUNK_BYTES,
    ) -> AsyncGenerator[Content]:
        """The regular files below a directory with their content, sorted by name; links are not followed.

        Each file is read before it is yielded; a read error is raised when its chunks are iterated.
        """
        async for info in self._files_beneath(path, enter, wants):
            yield Content(info.path, await self._content(info.path, chunk_bytes))

    async def _content(self, path: str, chunk_bytes: int) -> builtins.list[bytes] | UnreadableContent:
        try:
            return [chunk async for chunk in self.read_chunks(path, chunk_bytes=chunk_bytes)]
        except OSError as error:
            return UnreadableContent(error)

    async def _files_beneath(
        self, path: StrPath, enter: Wants | None, wants: Wants | None
    ) -> AsyncGenerator[FileInfo]:
        async for info in self.walk(path, enter=None if enter is None else lambda info: enter(info.name)):
            if info.is_file and (wants is None or wants(info.name)):
                yield info

    async def walk(
        self, path: StrPath = ".", *, enter: Callable[[FileInfo], bool] | None = None
    ) -> AsyncGenerator[FileInfo]:
        """Everything below a directory, parents first; links are not followed.

        Each directory is listed when the walk reaches it, and skipped if *enter* returns false.

        Raises:
            LimitError: There are more entries or levels than the limits allow.
        """
        async for info in walk(self.list, _sendable_path(path), self.limits, enter):
            yield info

    async def list_names(self, path: StrPath = ".") -> builtins.list[Named]:
        """The names in one directory, sorted, each with its kind; costs the service as much as `list`."""
        return [(info.name, info.kind) for info in await self.list(path)]

    async def archive(
        self,
        path: StrPath = ".",
        *,
        format: ArchiveFormat | str = "tar",
        left_out: Callable[[LeftOut], None] | None = None,
    ) -> AsyncGenerator[bytes]:
        """A directory or file as an archive in chunks: `tar`, `tar.gz`, `tar.bz2`, `tar.xz` or `zip`.

        Raises:
            RequestError: *left_out* is given, and the transport cannot report entries left out.
        """
        path = _sendable_path(path)
        archive = self._open_transport(path).archive(self.session_id, path, str(format), left_out)
        async with aclosing(archive) as chunks:
            async for chunk in chunks:
                yield chunk

    async def changes(self, since: int = 0) -> AsyncGenerator[Event]:
        """The journal records of changes and refusals after the sequence number *since*.

        Raises:
            RotatedError: Some of the records were rotated away.
        """
        async with aclosing(self._open_transport().changes(self.session_id, since, follow=False)) as events:
            async for event in events:
                yield event

    async def follow(self, since: int = 0) -> AsyncGenerator[Event]:
        """Yield the records of `changes`, then new ones as they are written, until the session is deleted.

        Reconnects after a broken connection; no record is lost or repeated.

        Raises:
            SessionMissingError: The session was deleted before.
            RotatedError: Some of the records were rotated away.
        """
        transport, reconnects, has_begun = self._open_transport(), 0, False
        while True:
            try:
                if reconnects and not await self._exists():
                    return
                async with aclosing(transport.changes(self.session_id, since, follow=True)) as events:
                    async for event in events:
                        since, reconnects, has_begun = event.sequence, 0, True
                        yield event
                # The stream ends when the session is deleted or the service stops.
                has_begun = True
            except SessionMissingError:
                if has_begun:
                    return
                raise
            except (UnreachableError, StoppingError):
                if reconnects == _MAX_RECONNECTS:
                    raise
            await transport.pause(min(_FIRST_PAUSE_SECONDS * 2**reconnects, _MAX_PAUSE_SECONDS))
            reconnects += 1

    async def _exists(self) -> bool:
        """Whether the session is still the one that was opened.

        Raises:
            SessionMissingError: There is no session with this id.
        """
        session = parse(await self._open_transport().session(self.session_id), RemoteSession)
        return session.created_ns == self.created_ns

    exists = _remote_operation(Workspace.exists)
    glob = _remote_operation(Workspace.glob)
    list = _remote_operation(Workspace.list)
    list_files = _remote_operation(Workspace.list_files)
    read_lines = _remote_operation(Workspace.read_lines)
    recount = _remote_operation(Workspace.recount)
    search = _remote_operation(Workspace.search)
    stat = _remote_operation(Workspace.stat)
    usage = _remote_operation(Workspace.usage)

    # Changing

    async def write(
        self,
        path: StrPath,
        data: bytes | str,
        *,
        overwrite: bool = True,
        parents: bool = True,
        encoding: str = "utf-8",
        if_version: str | None = None,
    ) -> FileInfo:
        """Write a file atomically, creating parent directories as needed.

        Raises:
            ExistsError: The path exists and *overwrite* is false.
            ChangedError: The version of the file is not *if_version*.
            LimitError: The data is larger than a file may be, or the path is too deep.
        """
        path = _sendable_path(path)
        content = _content(data, encoding, path)
        return await self._write(path, content, overwrite=overwrite, parents=parents, if_version=if_version)

    async def write_chunks(
        self,
        path: StrPath,
        chunks: ByteSource,
        *,
        overwrite: bool = True,
        parents: bool = True,
        if_version: str | None = None,
    ) -> FileInfo:
        """Write the content of *chunks* atomically, for files larger than memory.

        An async client reads each chunk in a worker thread.
        """
        return await self._write(
            _sendable_path(path),
            require_bytes(chunks),
            overwrite=overwrite,
            parents=parents,
            if_version=if_version,
        )

    async def _write(
        self,
        path: str,
        content: ByteSource | bytes,
        *,
        overwrite: bool,
        parents: bool,
        if_version: str | None,
    ) -> FileInfo:
        return await self._open_transport(path).write(
            self.session_id, path, content, overwrite=overwrite, parents=parents, if_version=if_version
        )

    async def extract(
        self,
        source: BinaryIO | ByteSource | bytes,
        path: StrPath = ".",
        *,
        format: ArchiveFormat | str | None = None,
        overwrite: bool = False,
        limits: ExtractLimits | None = None,
    ) -> Extracted:
        """Extract all members of an archive into the directory *path*, or none.

        Raises:
            ArchiveError: The format is not supported, or the archive is broken, incomplete or inconsistent.
            PathError: A member or link leads out of the archive, or has an invalid name.
            LimitError: A limit of *limits* or of the workspace would be exceeded.
            ExistsError: A member conflicts with an existing entry.
        """
        from carrel.workspace.archive.extract import Extracted

        path = _sendable_path(path)
        answer = await self._open_transport(path).extract(
            self.session_id,
            path,
            iter_chunks(source),
            format=None if format is None else str(format),
            overwrite=overwrite,
            limits=limits,
        )
        return parse(answer, Extracted)

    append = _remote_operation(Workspace.append)
    copy = _remote_operation(Workspace.copy)
    edit = _remote_operation(Workspace.edit)
    mkdir = _remote_operation(Workspace.mkdir)
    move = _remote_operation(Workspace.move)
    remove = _remote_operation(Workspace.remove)
    touch = _remote_operation(Workspace.touch)

    # Running

    def shell(self, *, budget: Budget | None = None) -> AsyncRemoteShell:
        """A shell in the session, which keeps its working directory from line to line.

        Only the time of *budget* is sent, and limited to that of the service.
        """
        return AsyncRemoteShell(self._open_transport(), self.session_id, budget=budget)

    def sandbox(self, *, stateful: bool = False) -> AsyncRemoteSandbox:
        """A sandbox that runs guest code on the files; with *stateful*, variables persist between calls."""
        return AsyncRemoteSandbox(self._open_transport(), self.session_id, stateful=stateful)

    def toolbox(self, role: str | None = None, *, profile: str = "agent") -> AsyncRemoteToolbox:
        """The tools of *role*, which the key must allow; by default the key's own role."""
        return AsyncRemoteToolbox(self._open_transport(), self.session_id, role, profile=profile)


def _sendable_path(path: StrPath) -> str:
    """The path as text that a request can carry.

    Raises:
        TypeError: It is neither `str` nor a path object that returns one.
        PathError: It holds a lone surrogate that stands for no byte.
    """
    text = to_str(path)
    encode(text, text)
    return text


def _clamped_position(number: int) -> int:
    """An offset or length, reduced to the largest that a request can carry."""
    return min(int(index(number)), _MAX_POSITION)


def _content(data: bytes | str, encoding: str, path: str) -> bytes:
    if isinstance(data, str):
        return texts.encode(data, encoding, path)
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    raise TypeError(f"data must be bytes or str, not {type(data).__name__}")
