"""`AsyncWorkspace`: the gate for asyncio; small operations run inline, the rest in a thread.

Handing a call to a worker thread costs far more than a small local operation. So operations of a few system
calls run inline unless they would block, and all others in a thread. A cancelled call is not undone: its
thread finishes.
"""

from __future__ import annotations

import asyncio
import builtins
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from functools import partial, wraps
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, Unpack

from carrel.audit.event import Event
from carrel.errors import CarrelError
from carrel.fs.api import Content, Links, Wants
from carrel.fs.nonblocking import WouldBlock, run_nonblocking
from carrel.paths.parsed_path import StrPath
from carrel.policy.rules import Access, AccessMode, SandboxPolicy
from carrel.values import FileInfo, Limits
from carrel.workspace.chunks import CHUNK_BYTES
from carrel.workspace.gate import GateOptions
from carrel.workspace.threads import call_threads
from carrel.workspace.workspace import Workspace

if TYPE_CHECKING:
    from carrel.workspace.archive.create import ArchiveFormat, LeftOut

INLINE_BYTES = 2**16
"""Maximum size of a file that is read inline, in bytes."""
BATCH = 256
"""Number of items that one call in a worker thread fetches from an iterator."""

Params = ParamSpec("Params")
Result = TypeVar("Result")
Item = TypeVar("Item")
AsyncResult = Coroutine[Any, Any, Result]  # Any: what asyncio itself sends


class Closable(Protocol):
    """What `open_in_thread` opens."""

    def close(self) -> None:
        """Release what is open."""
        ...


Opened = TypeVar("Opened", bound=Closable)


def _inline(
    method: Callable[Concatenate[Workspace, Params], Result],
) -> Callable[Concatenate[AsyncWorkspace, Params], AsyncResult[Result]]:
    """Return the operation as a coroutine function that runs inline if it would not block."""

    @wraps(method)
    async def call(self: AsyncWorkspace, /, *args: Params.args, **kwargs: Params.kwargs) -> Result:
        return await run_inline_or_in_thread(partial(method, self.workspace, *args, **kwargs))

    return call


def _in_thread(
    method: Callable[Concatenate[Workspace, Params], Result],
) -> Callable[Concatenate[AsyncWorkspace, Params], AsyncResult[Result]]:
    """Return the operation as a coroutine function that runs in a worker thread."""

    @wraps(method)
    async def call(self: AsyncWorkspace, /, *args: Params.args, **kwargs: Params.kwargs) -> Result:
        return await asyncio.to_thread(method, self.workspace, *args, **kwargs)

    return call


async def run_inline_or_in_thread(work: Callable[[], Result]) -> Result:
    """Run *work* inline, or in a worker thread if it would block."""
    with suppress(WouldBlock):
        return run_nonblocking(work)
    return await asyncio.to_thread(work)


async def open_in_thread(work: Callable[[], Opened]) -> Opened:
    """Run *work* in a thread that may wait long, and return what it opens.

    If the task is cancelled, *work* still finishes, and what it opens is closed.
    """
    opening = call_threads().submit(copy_context().run, work)
    try:
        return await asyncio.wrap_future(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_close_opened)
        raise


def _close_opened(opening: Future[Opened]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


class AsyncWorkspace:
    """A `Workspace` whose operations are awaited; walks and chunks are asynchronous iterators."""

    def __init__(self, workspace: Workspace) -> None:
        """Wrap *workspace*; `close` closes it."""
        self.workspace = workspace

    @classmethod
    async def open(
        cls,
        directory: str | os.PathLike[str],
        *,
        policy: SandboxPolicy | None = None,
        **options: Unpack[GateOptions],
    ) -> AsyncWorkspace:
        """Open an existing directory of the host; the options are those of `Workspace.open`."""
        return cls(await open_in_thread(partial(Workspace.open, directory, policy=policy, **options)))

    @property
    def session_id(self) -> str | None:
        """Id of the session that the files belong to."""
        return self.workspace.session_id

    @property
    def limits(self) -> Limits:
        """The limits in force."""
        return self.workspace.limits

    @property
    def policy(self) -> SandboxPolicy:
        """The rules in force."""
        return self.workspace.policy

    @property
    def within(self) -> tuple[str, ...] | None:
        """The directories that a view of the workspace is restricted to; `None` for all of it."""
        return self.workspace.within

    @property
    def confinement(self) -> str:
        """How paths are confined."""
        return self.workspace.confinement

    def narrowed(
        self,
        *,
        mode: AccessMode = AccessMode.READ_WRITE,
        within: Iterable[str] = (),
        check: Callable[[], None] | None = None,
    ) -> AsyncWorkspace:
        """Return a view under narrower rules; see `Workspace.narrowed`. Not a coroutine."""
        return AsyncWorkspace(self.workspace.narrowed(mode=mode, within=within, check=check))

    async def close(self) -> None:
        """Close the workspace. Running reads continue; a change that is not made yet raises `ClosedError`."""
        # In a thread, because it waits for a change that is being made.
        await asyncio.to_thread(self.workspace.close)

    async def __aenter__(self) -> AsyncWorkspace:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def read(self, path: StrPath, *, offset: int = 0, length: int | None = None) -> bytes:
        """Return the content of a file, or *length* bytes from *offset*."""
        path = os.fspath(path)
        return await self._read_by_size(path, lambda: self.workspace.read(path, offset=offset, length=length))

    async def read_with_info(
        self, path: StrPath, *, offset: int = 0, length: int | None = None
    ) -> tuple[FileInfo, bytes]:
        """Return the metadata of a file when it was opened, and its content as `read` does."""
        path = os.fspath(path)
        read = self.workspace.read_with_info
        return await self._read_by_size(path, lambda: read(path, offset=offset, length=length))

    async def read_text(self, path: StrPath, *, encoding: str = "utf-8") -> str:
        """Return the content of a file as text."""
        path = os.fspath(path)
        return await self._read_by_size(path, lambda: self.workspace.read_text(path, encoding=encoding))

    async def _read_by_size(self, path: str, read: Callable[[], Result]) -> Result:
        """Read a small file inline, a large one in a thread."""
        if self._size(path) <= INLINE_BYTES:
            return await run_inline_or_in_thread(read)
        return await asyncio.to_thread(read)

    def _size(self, path: str) -> int:
        """Return the size of the file, or 0 if reading it will raise."""
        try:
            _, files, parsed = self.workspace.gate.explain(Access.READ, path)
            return 0 if files is None else files.stat(parsed, Links.FOLLOW).size_bytes
        except CarrelError:
            return 0

    async def read_chunks(self, path: StrPath, *, chunk_bytes: int = CHUNK_BYTES) -> AsyncIterator[bytes]:
        """Iterate over the content in chunks, for files larger than memory."""
        chunks = await run_inline_or_in_thread(
            lambda: self.workspace.read_chunks(path, chunk_bytes=chunk_bytes)
        )
        while chunk := await asyncio.to_thread(next, chunks, b""):
            yield chunk

    def read_tree(
        self,
        path: StrPath = ".",
        *,
        enter: Wants | None = None,
        wants: Wants | None = None,
        chunk_bytes: int = CHUNK_BYTES,
    ) -> AsyncIterator[Content]:
        """Iterate over the regular files beneath a directory; large ones are read chunk by chunk."""
        read = self.workspace.read_tree
        return _iterated(lambda: read(path, enter=enter, wants=wants, chunk_bytes=chunk_bytes))

    async def archive(
        self,
        path: StrPath = ".",
        *,
        format: ArchiveFormat | str = "tar",
        left_out: Callable[[LeftOut], None] | None = None,
    ) -> AsyncIterator[bytes]:
        """Stream a directory or a file as an archive; *left_out* is called in a worker thread."""
        pieces = await asyncio.to_thread(self.workspace.archive, path, format=format, left_out=left_out)
        while piece := await asyncio.to_thread(next, pieces, b""):
            yield piece

    def walk(
        self, path: StrPath = ".", *, enter: Callable[[FileInfo], bool] | None = None
    ) -> AsyncIterator[FileInfo]:
        """Iterate over everything beneath a directory, parents first, following no links."""
        return _iterated(lambda: self.workspace.walk(path, enter=enter))

    def changes(self, since: int = 0) -> AsyncIterator[Event]:
        """Iterate over the changes and refusals after the record with the sequence number *since*."""
        return _iterated(lambda: self.workspace.changes(since))

    stat = _inline(Workspace.stat)
    reader = _inline(Workspace.reader)
    exists = _inline(Workspace.exists)
    explain = _inline(Workspace.explain)
    host_path = _inline(Workspace.host_path)
    mkdir = _inline(Workspace.mkdir)
    extract = _in_thread(Workspace.extract)
    read_lines = _in_thread(Workspace.read_lines)
    write = _in_thread(Workspace.write)
    write_chunks = _in_thread(Workspace.write_chunks)
    append = _in_thread(Workspace.append)
    touch = _in_thread(Workspace.touch)
    edit = _in_thread(Workspace.edit)
    list = _in_thread(Workspace.list)
    list_names = _in_thread(Workspace.list_names)
    list_files = _in_thread(Workspace.list_files)
    glob = _in_thread(Workspace.glob)
    search = _in_thread(Workspace.search)
    usage = _in_thread(Workspace.usage)
    recount = _in_thread(Workspace.recount)
    remove = _in_thread(Workspace.remove)
    move = _in_thread(Workspace.move)
    copy = _in_thread(Workspace.copy)


async def _iterated(start: Callable[[], Iterator[Item]]) -> AsyncIterator[Item]:
    """Iterate over an iterator that is created and advanced in worker threads."""
    items = await asyncio.to_thread(start)
    while batch := await asyncio.to_thread(_take, items):
        for item in batch.items:
            yield item
        if batch.error is not None:
            raise batch.error


class _Batch(Generic[Item]):
    """Items, and the error that ended the iteration after them."""

    def __init__(self) -> None:
        self.items: builtins.list[Item] = []
        self.error: Exception | None = None

    def __bool__(self) -> bool:
        return bool(self.items) or self.error is not None


def _take(items: Iterator[Item]) -> _Batch[Item]:
    batch: _Batch[Item] = _Batch()
    try:
        batch.items.extend(islice(items, BATCH))
    except Exception as error:
        batch.error = error
    return batch
