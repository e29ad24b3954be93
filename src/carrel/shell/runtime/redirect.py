"""Redirections of a command, and the files that commands write to, through the gate and the quota."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import copy_context
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple

from carrel.errors import (
    AccessError,
    CarrelError,
    ClosedError,
    IsDirectoryError,
    MissingError,
    PathError,
    SessionMissingError,
)
from carrel.policy.rules import Access
from carrel.shell.budget import Meter
from carrel.shell.command.context import NULL, Context
from carrel.shell.command.errors import is_denied, strerror
from carrel.shell.language.ast import Redirect
from carrel.shell.language.expand import WordExpander
from carrel.shell.streams import CommandStreams, InputStream, NullSink, OutputStream, Pipe, PipeClosed
from carrel.shell.text.quoting import encode, quote_if_needed

if TYPE_CHECKING:
    from carrel.workspace.workspace import Workspace

_BUFFER_BYTES = 2**20
"""Content up to this size is written when the command ends; more is written while it runs."""
_WRITER_BYTES = 2**19
"""Memory charged for each background writer: its thread, its pipe and what waits in it."""


class Redirections:
    """The redirections of one command, opened in order."""

    def __init__(self, redirects: Sequence[Redirect], expander: WordExpander, context: Context) -> None:
        """Expand targets with *expander*, and open them as a command with *context* would."""
        self._redirects = redirects
        self._expander = expander
        self._context = context
        self._opened: list[_OpenFile] = []

    def open(self, streams: CommandStreams) -> CommandStreams | None:
        """Return *streams* as redirected; `None` if one is refused, after writing why to standard error."""
        for redirect in self._redirects:
            target = self._expander.text(redirect.target)
            try:
                self._context.meter.charge_entries(1)
                streams = self._open(redirect, target, streams)
            except (ClosedError, SessionMissingError):
                raise
            except CarrelError as error:
                write_error(streams.stderr, target, error)
                return None
        return streams

    def _open(self, redirect: Redirect, target: str, streams: CommandStreams) -> CommandStreams:
        context = self._context
        if redirect.operator == ">&":
            other = streams.stdout if target == "1" else streams.stderr
            return streams.with_output(redirect.stream, other)
        if redirect.operator == "<":
            if target == NULL:
                return streams._replace(stdin=InputStream())
            size = context.stat(target).size_bytes
            return streams._replace(stdin=InputStream(context.file_chunks(target), size_bytes=size))
        if target == NULL:
            return streams.with_output(redirect.stream, OutputStream(NullSink(), context.meter))
        file: AppendedFile | ReplacedFile
        if redirect.operator == ">>":
            file = AppendedFile(context.workspace, context.path(target))
        else:
            file = ReplacedFile(context.workspace, context.path(target), context.meter)
        output = OutputStream(file, context.meter)
        self._opened.append(_OpenFile(target, output, file))
        return streams.with_output(redirect.stream, output)

    def close(self, stderr: OutputStream) -> bool:
        """Put the written content in place, report errors to *stderr*, and return whether all was written."""
        is_written = True
        for target, output, file in reversed(self._opened):
            try:
                # After a failed append the stream raises `PipeClosed`; closing the file raises the reason.
                with suppress(PipeClosed):
                    output.flush()
                file.close()
            except (ClosedError, SessionMissingError):
                raise
            except CarrelError as error:
                write_error(stderr, target, error)
                is_written = False
        return is_written

    def abandon(self) -> None:
        """Leave replaced files as they were before the command."""
        for opened in self._opened:
            opened.file.abandon()


class _OpenFile(NamedTuple):
    """A file that a command writes to."""

    target: str
    output: OutputStream
    file: AppendedFile | ReplacedFile


def write_error(stderr: OutputStream, target: str | None, error: CarrelError) -> None:
    """Write the line that reports *error*, about *target* unless the error names its path itself."""
    line = error.message
    if target is not None and not is_denied(error):
        line = f"{quote_if_needed(target)}: {strerror(error)}"
    # With 2>&1 it may be a pipe whose reader is gone.
    with suppress(PipeClosed):
        stderr.write(encode(line) + b"\n")
        stderr.flush()


def require_writable(workspace: Workspace, path: str) -> None:
    """Create the file if it is missing, and fail early where writing would fail.

    Raises:
        CarrelError: The file cannot be written.
    """
    try:
        workspace.explain(path, Access.WRITE).require()
    except (AccessError, PathError) as error:
        workspace.gate.record_refusal("write", error)
        raise
    try:
        info = workspace.stat(path)
    except MissingError:
        workspace.write(path, b"", overwrite=False, parents=False)
        return
    if info.is_directory:
        raise IsDirectoryError(f"{path!r} is a directory", path=path)


class ReplacedFile:
    """Target of `>`: gets all of its new content at the end or, if the command is stopped, none of it."""

    def __init__(self, workspace: Workspace, path: str, meter: Meter) -> None:
        require_writable(workspace, path)
        self._workspace = workspace
        self._path = path
        self._meter = meter
        self._chunks: list[bytes] = []
        self._size = 0
        self._writer: _BackgroundWriter | None = None

    def write(self, data: bytes) -> None:
        if self._writer is not None:
            self._writer.pipe.write(data)
            return
        self._chunks.append(data)
        self._size += len(data)
        if self._size > _BUFFER_BYTES:
            self._writer = _BackgroundWriter(self._workspace, self._path, self._meter)
            for chunk in self._chunks:
                self._writer.pipe.write(chunk)
            self._chunks.clear()

    def close(self) -> None:
        """Replace the content of the file.

        Raises:
            CarrelError: It cannot be written.
        """
        self._meter.check()
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.finish()
        else:
            self._workspace.write(self._path, b"".join(self._chunks), parents=False)

    @property
    def has_failed(self) -> bool:
        """Whether the background writer failed; `close` then raises its error."""
        return self._writer is not None and self._writer.has_failed

    def abandon(self) -> None:
        """Leave the file as it was."""
        if self._writer is not None:
            self._writer.abandon()


@contextmanager
def replacing(workspace: Workspace, path: str, meter: Meter) -> Iterator[OutputStream]:
    """Replace the content of a file with what the block writes; if the block raises, keep the file as it was.

    Raises:
        CarrelError: The file cannot be written.
    """
    file = ReplacedFile(workspace, path, meter)
    output = OutputStream(file, meter)
    try:
        try:
            yield output
            output.flush()
        except PipeClosed:
            # Otherwise it was standard output that nothing reads any more.
            if not file.has_failed:
                raise
        file.close()
    except BaseException:
        file.abandon()
        raise


class _BackgroundWriter:
    """Writes a large file in its own thread, while its content is produced."""

    def __init__(self, workspace: Workspace, path: str, meter: Meter) -> None:
        meter.charge_memory(_WRITER_BYTES)
        self._meter = meter
        self.pipe = Pipe(meter)
        self._workspace = workspace
        self._path = path
        self._error: BaseException | None = None
        self._thread = Thread(
            target=copy_context().run, args=(self._run,), name="carrel-redirect", daemon=True
        )
        self._thread.start()

    def _run(self) -> None:
        try:
            self._workspace.write_chunks(self._path, self.pipe, parents=False)
        except BaseException as error:  # raised again by `finish`
            self._error = error
        finally:
            self.pipe.close_reader()

    @property
    def has_failed(self) -> bool:
        return self._error is not None

    def finish(self) -> None:
        self.pipe.close()
        self._thread.join()
        self._meter.charge_memory(-_WRITER_BYTES)
        if self._error is not None:
            raise self._error

    def abandon(self) -> None:
        self.pipe.abort()
        self._thread.join()
        self._meter.charge_memory(-_WRITER_BYTES)


class AppendedFile:
    """Target of `>>`: grows while the command writes."""

    def __init__(self, workspace: Workspace, path: str) -> None:
        require_writable(workspace, path)
        self._workspace = workspace
        self._path = path
        self._error: CarrelError | None = None

    def write(self, data: bytes) -> None:
        try:
            self._workspace.append(self._path, data)
        except CarrelError as error:
            self._error = error
            raise PipeClosed from None

    def close(self) -> None:
        """Raise the error of a failed write.

        Raises:
            CarrelError: Not everything was written.
        """
        if self._error is not None:
            raise self._error

    def abandon(self) -> None:
        """Keep what was written so far."""
