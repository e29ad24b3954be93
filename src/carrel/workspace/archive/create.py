"""Stream a directory or a file of a workspace as an archive, without a temporary file.

Entries are sorted and named relative to the requested directory. The same tree gives the same bytes: owners
are 0, modes are the permission bits, times are whole seconds (even ones in UTC in a zip archive).

A link stays a link if it leads to a path inside the archive. Entries that cannot or must not be in it are
left out and reported: links that could lead out, FIFOs, sockets and devices, and names that `extract` refuses
because they are ambiguous to some readers.

Not covered: the tree may change while it is sent. A file has the size that it had when it was opened; later
growth is not in the archive, and a large file that shrinks ends a tar archive with an error. A zip archive
keeps a row for each entry in memory until its end. A link and another entry whose names differ only in case
or normal form are both in the archive, and `extract` refuses them together.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from carrel.errors import (
    EscapeError,
    IsDirectoryError,
    LoopError,
    MissingError,
    NotDirectoryError,
    NotRegularError,
    PathError,
)
from carrel.fs.api import Files, Links, OnUnreadable, Reader
from carrel.paths.parsed_path import ParsedPath, StrPath, child
from carrel.policy.rules import Access
from carrel.values import FileInfo, FileKind, Limits
from carrel.workspace.archive.members import parse_name, require_link
from carrel.workspace.archive.pack import PackEntry, Packer, TarPacker, ZipPacker
from carrel.workspace.gate import Gated
from carrel.workspace.search import below

SEND_BYTES = 2**16
"""Smaller pieces are sent together, up to this size in bytes."""
_GONE = (MissingError, NotRegularError, IsDirectoryError, NotDirectoryError, LoopError, EscapeError)
"""Errors of an entry that was removed or replaced after it was listed."""


class ArchiveFormat(StrEnum):
    """Archive formats that can be created and extracted."""

    TAR = "tar"
    TAR_GZ = "tar.gz"
    TAR_BZ2 = "tar.bz2"
    TAR_XZ = "tar.xz"
    ZIP = "zip"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """An entry that is not in the archive."""

    path: str
    """Relative to the requested directory."""
    reason: str


def archive(
    workspace: Gated,
    path: StrPath = ".",
    format: ArchiveFormat | str = ArchiveFormat.TAR,
    *,
    left_out: Callable[[LeftOut], None] | None = None,
) -> Iterator[bytes]:
    """Stream the directory or the file *path* as an archive.

    The tree is walked before this returns; its files are read while the archive is iterated.

    Args:
        workspace: The workspace to read from.
        path: A directory, or a file, which becomes the only member.
        format: The format of the archive.
        left_out: Called for each entry that is not in the archive, while it is iterated.

    Raises:
        LimitError: There are more entries or levels than the limits of a walk allow.
        PathError: A name is not UTF-8, which a zip archive cannot hold.
        NotRegularError: There is a FIFO, a socket or a device at *path*.
        HostDeniedError: A directory cannot be read; while iterating: a file.
        ChangedError: While iterating: a large file shrank, so that a tar archive cannot be finished.
    """
    kind = ArchiveFormat(format)
    files, parsed = workspace.gate.permit(Access.READ, path)
    source = _Source(files, parsed, workspace.gate.limits, kind, left_out)
    source.check()
    workspace.gate.log("archive", parsed, format=kind)
    if kind is ArchiveFormat.ZIP:
        return _batched(_packed(source, ZipPacker()))
    return _batched(_compressed(_packed(source, TarPacker()), kind))


class _Source:
    """The tree to be sent, walked twice: to check it, and to send it."""

    def __init__(
        self,
        files: Files,
        path: ParsedPath,
        limits: Limits,
        format: ArchiveFormat,
        left_out: Callable[[LeftOut], None] | None,
    ) -> None:
        self._files = files
        self._path = path
        self._limits = limits
        self._format = format
        self._left_out = left_out
        self._top = files.stat(path, Links.FOLLOW)

    def check(self) -> None:
        """Raise the errors that make the archive impossible, before any of it is sent."""
        if self._top.kind is FileKind.OTHER:
            raise NotRegularError(
                f"{self._path.requested!r} is not a regular file", path=self._path.requested
            )
        for _ in self._found():
            pass

    def entries(self) -> Iterator[PackEntry]:
        """Yield the entries of the archive, parents first."""
        for name, info in self._found():
            target = self._text(name) if info.kind is FileKind.LINK else ""
            if reason := _problem(name, info, target):
                self.leave_out(name, reason)
            else:
                yield PackEntry(name, info, target)

    def leave_out(self, name: str, reason: str) -> None:
        """Report an entry that is not in the archive."""
        if self._left_out is not None:
            self._left_out(LeftOut(path=name, reason=reason))

    def reader(self, name: str) -> Reader:
        """Open the file *name*."""
        return self._files.reader(child(self._path, name) if self._top.is_directory else self._path)

    def _found(self) -> Iterator[tuple[str, FileInfo]]:
        if not self._top.is_directory:
            yield self._path.parts[-1], self._top
            return
        for info in self._files.walk(self._path, self._limits, unreadable=OnUnreadable.REFUSE):
            name = below(self._top, info)
            if self._format is ArchiveFormat.ZIP:
                _require_utf8(name)
            yield name, info

    def _text(self, name: str) -> str:
        """Return the target of the link *name*; empty if it is gone or no longer a link."""
        try:
            return self._files.stat(child(self._path, name), Links.KEEP).target or ""
        except _GONE:
            return ""


def _problem(name: str, info: FileInfo, target: str) -> str | None:
    """Return why the entry cannot be in the archive, or `None` if it can."""
    try:
        parse_name(name)
    except PathError:
        return "its name is ambiguous"
    if info.kind is FileKind.OTHER:
        return "it is a FIFO, a socket or a device"
    if info.kind is not FileKind.LINK:
        return None
    try:
        require_link(name, target)
    except PathError:
        return "the link could lead out of the archive" if target else "it was removed in the meantime"
    return None


def _require_utf8(name: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:
        problem = f"the name {name!r} is not UTF-8, which a zip archive cannot hold; use tar"
        raise PathError(problem, path=name) from None


# Sending


def _packed(source: _Source, packer: Packer) -> Iterator[bytes]:
    for entry in source.entries():
        if entry.info.kind is not FileKind.FILE:
            yield from packer.other(entry)
            continue
        try:
            reader = source.reader(entry.name)
        except _GONE:
            source.leave_out(entry.name, "it was removed in the meantime")
            continue
        yield from packer.file(entry, reader)
    yield from packer.end()


class _Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


def _compressed(pieces: Iterator[bytes], format: ArchiveFormat) -> Iterator[bytes]:
    if format is ArchiveFormat.TAR:
        yield from pieces
        return
    compressor = _compressor(format)
    for piece in pieces:
        yield compressor.compress(piece)
    yield compressor.flush()


def _compressor(format: ArchiveFormat) -> _Compressor:
    if format is ArchiveFormat.TAR_GZ:
        return zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    if format is ArchiveFormat.TAR_BZ2:
        import bz2

        return bz2.BZ2Compressor()
    import lzma

    return lzma.LZMACompressor()


def _batched(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the same bytes in larger pieces."""
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= SEND_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    if size:
        yield b"".join(waiting)
