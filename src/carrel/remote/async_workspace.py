"""`AsyncRemoteWorkspace`: the files of a session of a service, for async code.

It has the methods of `AsyncWorkspace`, with the same results and the same errors; only what speaks of the
host (`host_path`, `explain`), views (`narrowed`) and open files (`reader`) are not there.
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
    from carrel.workspace.archive.create import ArchiveFormat, LeftOut
    from carrel.workspace.archive.extract import Extracted
    from carrel.workspace.extract_limits import ExtractLimits

_TRIES = 15
"""So often in a row whoever follows a session tries to reach the service again; it takes about a minute."""
_PAUSE_SECONDS = 0.2
"""Before the first time, and twice as long before each other."""
_LONGEST_PAUSE_SECONDS = 5.0
_FARTHEST = 2**62
"""Beyond the end of every file, and nothing that a service could not count."""

Params = ParamSpec("Params")
Result = TypeVar("Result")


def _remote_operation(
    method: Callable[Concatenate[Workspace, Params], Result],
) -> Callable[Concatenate[AsyncRemoteWorkspace, Params], Coro[Result]]:
    """The same operation, done by the service."""
    operation = RemoteOperation(method)

    @wraps(method)
    async def call(self: AsyncRemoteWorkspace, /, *args: Params.args, **kwargs: Params.kwargs) -> Result:
        arguments = operation.render(*args, **kwargs)
        result: Result = operation.parse(await self._call(operation.name, arguments))
        return result

    return call


class AsyncRemoteWorkspace:
    """The files of a session that a service keeps; operations are awaited."""

    mount = MOUNT
    """What those inside call the workspace."""

    def __init__(self, transport: Transport, session: RemoteSession) -> None:
        """Use the files of *session*; most callers want `AsyncClient.open`."""
        self._transport = transport
        self._session = session
        self._is_closed = False

    @property
    def session_id(self) -> str:
        """The session whose files these are."""
        return self._session.session_id

    @property
    def limits(self) -> Limits:
        """The ceilings in force."""
        return self._session.limits

    @property
    def created_ns(self) -> int:
        """When its session was made, which tells it from an earlier one with the same id."""
        return self._session.created_ns

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.session_id!r} at {self._transport.address!r})"

    async def close(self) -> None:
        """End all use; the session stays, and so does the client."""
        self._is_closed = True

    async def __aenter__(self) -> AsyncRemoteWorkspace:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    def _to(self, path: str | None = None) -> Transport:
        """The way to the service.

        Raises:
            ClosedError: The workspace was closed.
        """
        if self._is_closed:
            said = "workspace is closed" if path is None else f"workspace is closed: {path!r}"
            raise ClosedError(said, path=path)
        return self._transport

    async def _call(self, operation: str, arguments: dict[str, Any]) -> Any:  # Any: as JSON says it
        """Do one operation of the service's table."""
        path = arguments.get("path")
        return await self._to(path).call(self.session_id, operation, arguments)

    # Reading

    async def read(self, path: StrPath, *, offset: int = 0, length: int | None = None) -> bytes:
        """The content of a file, or *length* bytes of it from *offset* on."""
        return (await self.read_with_info(path, offset=offset, length=length))[1]

    async def read_with_info(
        self, path: StrPath, *, offset: int = 0, length: int | None = None
    ) -> tuple[FileInfo, bytes]:
        """What `read` gives, and what the file was when it was opened."""
        path = _sendable_path(path)
        offset, length = _clamped_position(offset), None if length is None else _clamped_position(length)
        if offset < 0 or (length is not None and length < 0):
            raise ValueError(f"offset and length cannot be negative: {offset}, {length}")
        return await self._to(path).read(
            self.session_id, path, offset=offset, length=length, limit=self.limits.read_bytes
        )

    async def read_text(self, path: StrPath, *, encoding: str = "utf-8") -> str:
        """The content of a file as text: utf-8, ascii, latin-1, or any bytes as base64."""
        path = _sendable_path(path)
        return texts.decode(await self.read(path), encoding, path)

    async def read_chunks(self, path: StrPath, *, chunk_bytes: int = CHUNK_BYTES) -> AsyncGenerator[bytes]:
        """The content piece by piece, for files larger than memory."""
        path = _sendable_path(path)
        if chunk_bytes < 1:
            raise ValueError(f"chunk_bytes must be at least 1, not {chunk_bytes}")
        pieces = self._to(path).read_chunks(self.session_id, path)
        async with aclosing(pieces), aclosing(rechunk(pieces, chunk_bytes)) as chunks:
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
        """The regular files beneath a directory with their content, names in order, never through a link.

        Each file is read before it is given; one that cannot be read says so when its chunks are iterated.
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
        """Everything beneath a directory, parents first, never through a link.

        Each directory is asked for when the walk gets there. What is in one is left out if *enter* says no.

        Raises:
            LimitError: There are more entries or levels than the limits allow.
        """
        async for info in walk(self.list, _sendable_path(path), self.limits, enter):
            yield info

    async def list_names(self, path: StrPath = ".") -> builtins.list[Named]:
        """The names in one directory, sorted, each with its kind; as much work for the service as `list`."""
        return [(info.name, info.kind) for info in await self.list(path)]

    async def archive(
        self,
        path: StrPath = ".",
        *,
        format: ArchiveFormat | str = "tar",
        left_out: Callable[[LeftOut], None] | None = None,
    ) -> AsyncGenerator[bytes]:
        """A directory or a file as the pieces of an archive: `tar`, `tar.gz`, `tar.bz2`, `tar.xz` or `zip`.

        Raises:
            RequestError: There is *left_out*, and the way to the service cannot tell of that.
        """
        path = _sendable_path(path)
        archive = self._to(path).archive(self.session_id, path, str(format), left_out)
        async with aclosing(archive) as pieces:
            async for piece in pieces:
                yield piece

    async def changes(self, since: int = 0) -> AsyncGenerator[Event]:
        """What was changed or refused after the record with the sequence number *since*.

        Raises:
            RotatedError: Some of that is no longer kept.
        """
        async with aclosing(self._to().changes(self.session_id, since, follow=False)) as events:
            async for event in events:
                yield event

    async def follow(self, since: int = 0) -> AsyncGenerator[Event]:
        """The same as `changes`, and then what happens, until the session is deleted.

        A connection that breaks is made anew, and nothing is missed or told twice.

        Raises:
            SessionMissingError: It was deleted before.
            RotatedError: Some of that is no longer kept.
        """
        transport, tries, is_begun = self._to(), 0, False
        while True:
            try:
                if tries and not await self._is_there():
                    return
                async with aclosing(transport.changes(self.session_id, since, follow=True)) as events:
                    async for event in events:
                        since, tries, is_begun = event.sequence, 0, True
                        yield event
                # It ends with the session, or with the service.
                is_begun = True
            except SessionMissingError:
                if is_begun:
                    return
                raise
            except (UnreachableError, StoppingError):
                if tries == _TRIES:
                    raise
            await transport.pause(min(_PAUSE_SECONDS * 2**tries, _LONGEST_PAUSE_SECONDS))
            tries += 1

    async def _is_there(self) -> bool:
        """Whether the session is still the one that was opened.

        Raises:
            SessionMissingError: There is none of that name.
        """
        found = parse(await self._to().session(self.session_id), RemoteSession)
        return found.created_ns == self.created_ns

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
        """Store *data* at once or not at all, making parent directories as needed.

        Raises:
            ExistsError: There is something and *overwrite* is off.
            ChangedError: The file is no longer *if_version*.
            LimitError: The data is more than a file may hold, or the path too deep.
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
        """Store what *chunks* gives, for files larger than memory; at once or not at all, as `write`.

        A client that awaits asks for each chunk in a worker thread.
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
        return await self._to(path).write(
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
        """Make the members of an archive beneath the directory *path*, all of them or none.

        Raises:
            ArchiveError: It is no archive that is read here, is broken or incomplete, or contradicts itself.
            PathError: A member or a link leads out of the archive, or has a name that we do not accept.
            LimitError: A ceiling would be passed, of *limits* or of the workspace.
            ExistsError: Something stands in the way.
        """
        from carrel.workspace.archive.extract import Extracted

        path = _sendable_path(path)
        answer = await self._to(path).extract(
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

    def shell(self) -> AsyncRemoteShell:
        """A shell in the session, which remembers where it is from line to line."""
        return AsyncRemoteShell(self._to(), self.session_id)

    def sandbox(self, *, stateful: bool = False) -> AsyncRemoteSandbox:
        """What runs guest code on the files; with *stateful*, variables last from call to call."""
        return AsyncRemoteSandbox(self._to(), self.session_id, stateful=stateful)

    def toolbox(self, role: str | None = None, *, profile: str = "agent") -> AsyncRemoteToolbox:
        """The tools of *role*, one that the key allows; by default of the key's own."""
        return AsyncRemoteToolbox(self._to(), self.session_id, role, profile=profile)


def _sendable_path(path: StrPath) -> str:
    """A path as it is asked for, if there is a way to say it.

    Raises:
        TypeError: It is neither `str` nor a path object that gives one.
        PathError: It holds a lone surrogate that stands for no byte.
    """
    text = to_str(path)
    encode(text, text)
    return text


def _clamped_position(number: int) -> int:
    """A place in a file, or a number of bytes; where no file can be, one place is as good as another."""
    return min(int(index(number)), _FARTHEST)


def _content(data: bytes | str, encoding: str, path: str) -> bytes:
    if isinstance(data, str):
        return texts.encode(data, encoding, path)
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    raise TypeError(f"data must be bytes or str, not {type(data).__name__}")
