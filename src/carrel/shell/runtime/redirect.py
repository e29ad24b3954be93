"""Files that a command writes to by `>` and `>>`, through the gate and the quota."""

from __future__ import annotations

from contextvars import copy_context
from threading import Thread
from typing import TYPE_CHECKING

from carrel.errors import AccessError, CarrelError, IsDirectoryError, MissingError, PathError
from carrel.policy.rules import Access
from carrel.shell.budget import Meter
from carrel.shell.streams import Pipe, PipeClosed

if TYPE_CHECKING:
    from carrel.workspace.workspace import Workspace

_SMALL_BYTES = 2**20
"""So much is kept until the end; more is written while it comes."""


def require_writable(workspace: Workspace, path: str) -> None:
    """Make the file if it is missing, and refuse early what will be refused anyway.

    Raises:
        CarrelError: It cannot be written.
    """
    try:
        workspace.explain(path, Access.WRITE).require()
    except (AccessError, PathError) as error:
        workspace.gate.refused("write", error)
        raise
    try:
        info = workspace.stat(path)
    except MissingError:
        workspace.write(path, b"", overwrite=False, parents=False)
        return
    if info.is_directory:
        raise IsDirectoryError(f"{path!r} is a directory", path=path)


_WRITER_BYTES = 2**19
"""Charged for each large file that is being written: its thread, its pipe and what waits in it."""


class ReplacedFile:
    """A file that gets new content, all of it at the end or, if the command is stopped, none."""

    def __init__(self, workspace: Workspace, path: str, meter: Meter) -> None:
        require_writable(workspace, path)
        self._workspace = workspace
        self._path = path
        self._meter = meter
        self._pieces: list[bytes] = []
        self._size = 0
        self._writer: _Writer | None = None

    def write(self, data: bytes) -> None:
        if self._writer is not None:
            self._writer.pipe.write(data)
            return
        self._pieces.append(data)
        self._size += len(data)
        if self._size > _SMALL_BYTES:
            self._writer = _Writer(self._workspace, self._path, self._meter)
            for piece in self._pieces:
                self._writer.pipe.write(piece)
            self._pieces.clear()

    def close(self) -> None:
        """Put the content in place.

        Raises:
            CarrelError: It cannot be written.
        """
        self._meter.check()
        if self._writer is not None:
            self._writer.finish()
        else:
            self._workspace.write(self._path, b"".join(self._pieces), parents=False)

    def abandon(self) -> None:
        """Leave the file as it was."""
        if self._writer is not None:
            self._writer.abandon()


class _Writer:
    """Writes a large file in a thread of its own, while it comes."""

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
        except BaseException as error:  # raised again in the thread that waits
            self._error = error
        finally:
            self.pipe.stop_reading()

    def finish(self) -> None:
        self.pipe.close()
        self._thread.join()
        self._meter.charge_memory(-_WRITER_BYTES)
        if self._error is not None:
            raise self._error

    def abandon(self) -> None:
        self.pipe.break_off()
        self._thread.join()
        self._meter.charge_memory(-_WRITER_BYTES)


class AppendedFile:
    """A file that grows while the command writes."""

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
        """Tell what could not be written.

        Raises:
            CarrelError: It was not all written.
        """
        if self._error is not None:
            raise self._error

    def abandon(self) -> None:
        """What was written stays."""
