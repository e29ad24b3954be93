"""Read, list, walk and measure files in a container: the operations that change nothing."""

from __future__ import annotations

import builtins
import errno
import os
import stat
from collections.abc import Callable, Iterator
from functools import partial, wraps
from typing import Concatenate, ParamSpec, TypeVar
from weakref import finalize

from carrel.containers.fs.primitives import (
    ConcurrentChangeError,
    FileContent,
    FilePrimitives,
    FoundEntry,
    HeldFile,
    LinkInPath,
    Parts,
    ResolvedParts,
    resolve_links,
)
from carrel.containers.fs.shell_primitives import PIECE_BYTES
from carrel.containers.fs.walk import DirectoryEntry, Level, TreeWalk, by_name
from carrel.errors import CarrelError
from carrel.fs.api import Content, Enter, Links, OnUnreadable, Wants
from carrel.fs.cancellable import checkpoint
from carrel.fs.errors import (
    closed_error,
    list_limit_error,
    not_a_file_error,
    os_error,
    size_limit_error,
    translate,
    translated,
    translating,
    walk_limit_error,
)
from carrel.fs.local.walk import BATCH_ENTRIES
from carrel.fs.rules import counted_bytes, info_of
from carrel.paths.parsed_path import ParsedPath, child, entry_prefix, parse
from carrel.values import FileInfo, Limits, Named, Usage

TRIES = 64
"""Most attempts of an operation while programs in the container swap the files that it uses."""

_TOP = parse(".")

Params = ParamSpec("Params")
Self = TypeVar("Self")
Answer = TypeVar("Answer")


def retried(
    method: Callable[Concatenate[Self, ParsedPath, Params], Answer],
) -> Callable[Concatenate[Self, ParsedPath, Params], Answer]:
    """Repeat *method* after `ConcurrentChangeError`, at most `TRIES` times."""

    @wraps(method)
    def call(self: Self, path: ParsedPath, /, *args: Params.args, **kwargs: Params.kwargs) -> Answer:
        for _ in range(TRIES):
            try:
                return method(self, path, *args, **kwargs)
            except ConcurrentChangeError:
                continue
        raise os_error(errno.EAGAIN)

    return call


def retried_and_translated(
    method: Callable[Concatenate[Self, ParsedPath, Params], Answer],
) -> Callable[Concatenate[Self, ParsedPath, Params], Answer]:
    """Repeat *method* like `retried`, and raise only errors of `carrel.errors`."""
    return translated(retried(method))


class ContainerReading:
    """The read operations on files in a container."""

    def __init__(self, primitives: FilePrimitives) -> None:
        self._primitives: FilePrimitives | None = primitives
        self._confinement = primitives.confinement
        self._drafts: set[bytes] = set()
        """Names of drafts being written, which listings omit."""

    @property
    def confinement(self) -> str:
        """How the primitives keep paths inside."""
        return self._confinement

    # Reading

    def read(
        self, path: ParsedPath, *, limit: int | None, offset: int = 0, length: int | None = None
    ) -> bytes:
        """Read a regular file, whole or a window of it."""
        return self._read(path, limit, offset, length)[1]

    def read_with_info(
        self, path: ParsedPath, *, limit: int | None, offset: int = 0, length: int | None = None
    ) -> tuple[FileInfo, bytes]:
        """Read a file like `read`, and return its info from just before."""
        found, data = self._read(path, limit, offset, length)
        return info_of(path.text, found), data

    @retried_and_translated
    def _read(
        self, path: ParsedPath, limit: int | None, offset: int, length: int | None
    ) -> tuple[os.stat_result, bytes]:
        primitives = self._require_open(path)
        if path.must_dir:
            raise self._not_a_file(path)
        first = PIECE_BYTES if length is None else min(length, PIECE_BYTES)
        first = first if limit is None else min(first, limit + 1)
        resolved: ResolvedParts[FileContent | FoundEntry] = resolve_links(
            lambda parts: primitives.read(parts, offset, first), encoded(path)
        )
        found, data = self._require_file(resolved, path)
        wanted = max(0, found.st_size - offset)
        if length is not None:
            wanted = min(wanted, length)
        if limit is not None and wanted > limit:
            raise size_limit_error("read_bytes", limit, wanted, path)
        if len(data) < wanted:
            data = self._read_rest(primitives, resolved.parts, found, offset, data, wanted)
        return found, data[:wanted]

    def _read_rest(
        self,
        primitives: FilePrimitives,
        parts: Parts,
        found: os.stat_result,
        offset: int,
        data: bytes,
        wanted: int,
    ) -> bytes:
        """Return *data* and the content after it, up to *wanted* bytes or the end of the file."""
        held = primitives.hold(parts)
        if isinstance(held, LinkInPath | FoundEntry):
            raise ConcurrentChangeError
        try:
            if identity(held.stat) != identity(found):
                raise ConcurrentChangeError
            pieces, size = [data], len(data)
            while size < wanted and (data := primitives.read_held(held, offset + size, wanted - size)):
                pieces.append(data)
                size += len(data)
            return b"".join(pieces)
        finally:
            primitives.drop(held)

    def _require_file(
        self, resolved: ResolvedParts[FileContent | FoundEntry], path: ParsedPath
    ) -> tuple[os.stat_result, bytes]:
        result = resolved.result
        is_file = not isinstance(result, FoundEntry)
        if resolved.must_dir and (is_file or not stat.S_ISDIR(result[0].st_mode)):
            raise os_error(errno.ENOTDIR)
        if isinstance(result, FoundEntry):
            raise not_a_file_error(result.stat, path)
        return result

    def _not_a_file(self, path: ParsedPath) -> Exception:
        """Return why a path that ends in a slash or in dots is not a file."""
        self._directory(path, encoded(path))
        return os_error(errno.EISDIR)

    @retried_and_translated
    def reader(self, path: ParsedPath) -> ContainerReader:
        """Open a regular file for reading in chunks."""
        primitives = self._require_open(path)
        if path.must_dir:
            raise self._not_a_file(path)
        resolved = self._find(path, Links.FOLLOW)
        if not stat.S_ISREG(resolved.result.stat.st_mode):
            raise not_a_file_error(resolved.result.stat, path)
        if resolved.result.stat.st_size <= PIECE_BYTES:
            opened: FileContent | HeldFile | FoundEntry | LinkInPath = primitives.read(
                resolved.parts, 0, PIECE_BYTES
            )
        else:
            opened = primitives.hold(resolved.parts)
        if isinstance(opened, LinkInPath | FoundEntry):
            raise ConcurrentChangeError
        return ContainerReader(primitives, resolved.parts, opened, info_of(path.text, opened[0]), path)

    # Looking up

    @retried_and_translated
    def stat(self, path: ParsedPath, links: Links) -> FileInfo:
        """Return the info of one entry; a link that is not followed has its target text."""
        found = self._find(path, links).result
        target = None if found.text is None else os.fsdecode(found.text)
        return info_of(path.text, found.stat, target)

    @retried_and_translated
    def list(self, path: ParsedPath, *, limit: int | None) -> builtins.list[FileInfo]:
        """List the entries of a directory, sorted by name."""
        prefix = entry_prefix(path)
        _, entries = self._resolve_and_list(self._require_open(path), encoded(path), prefix, limit)
        return [info_of(prefix + os.fsdecode(entry.name), entry.stat) for entry in entries]

    def names(self, path: ParsedPath, *, limit: int | None) -> Iterator[builtins.list[Named]]:
        """List the names in a directory with their kinds."""
        infos = self.list(path, limit=limit)
        named = [(info.name, info.kind) for info in infos]
        return iter([named[at : at + BATCH_ENTRIES] for at in range(0, len(named), BATCH_ENTRIES)])

    @retried_and_translated
    def walk(
        self,
        path: ParsedPath,
        limits: Limits,
        *,
        unreadable: OnUnreadable = OnUnreadable.SKIP,
        enter: Enter | None = None,
    ) -> Iterator[FileInfo]:
        """Walk everything beneath a directory, parents first, never through a link."""
        primitives = self._require_open(path)
        prefix = entry_prefix(path)
        parts, entries = self._resolve_and_list(primitives, encoded(path), prefix, limits.list_entries)
        visit = TreeWalk(partial(self._list_found, primitives), limits, unreadable, enter)
        return translating(visit.run(Level(parts, prefix, iter(entries))), path)

    def read_tree(
        self,
        path: ParsedPath,
        limits: Limits,
        *,
        enter: Wants | None,
        wants: Wants | None,
        chunk_bytes: int,
    ) -> Iterator[Content]:
        """Read the regular files beneath a directory, in order of their names, never through a link."""
        go_in = None if enter is None else lambda info: enter(info.name)
        found = self.walk(path, limits, enter=go_in)
        skip = len(entry_prefix(path))
        return (
            Content(info.path, _LazyContent(partial(self.reader, child(path, info.path[skip:])), chunk_bytes))
            for info in found
            if info.is_file and (wants is None or wants(info.name))
        )

    def measure(self, limit: int | None = None) -> Usage:
        """Count everything, each inode once."""
        return self._measure(_TOP, limit)

    @retried_and_translated
    def _measure(self, path: ParsedPath, limit: int | None) -> Usage:
        return self._count(self._require_open(path), (), limit, unreadable=OnUnreadable.SKIP)[0]

    def _count(
        self, primitives: FilePrimitives, parts: Parts, limit: int | None, *, unreadable: OnUnreadable
    ) -> tuple[Usage, builtins.list[Parts]]:
        """Count everything beneath *parts*; returns the usage and the directories, parents first."""
        disk_bytes = entries = 0
        seen: set[tuple[int, int]] = set()
        directories: builtins.list[Parts] = []
        todo = [parts]
        while todo:
            checkpoint()
            here = todo.pop()
            directories.append(here)
            for name, found in self._list_readable(primitives, here, unreadable) or ():
                if entries == limit:
                    raise walk_limit_error(limit, "")
                entries += 1
                if stat.S_ISDIR(found.st_mode):
                    todo.append((*here, name))
                elif stat.S_ISREG(found.st_mode) and identity(found) not in seen:
                    disk_bytes += counted_bytes(found.st_size, found.st_blocks)
                    if found.st_nlink > 1:
                        seen.add(identity(found))
        return Usage(disk_bytes=disk_bytes, entries=entries), directories

    def _list_readable(
        self, primitives: FilePrimitives, parts: Parts, unreadable: OnUnreadable
    ) -> builtins.list[DirectoryEntry] | None:
        try:
            return self._list_found(primitives, parts, "", None)
        except PermissionError:
            if unreadable is OnUnreadable.REFUSE:
                raise
            return None

    # Resolving

    def _require_open(self, path: ParsedPath) -> FilePrimitives:
        primitives = self._primitives
        if primitives is None:
            raise closed_error(path)
        return primitives

    def _find(self, path: ParsedPath, links: Links) -> ResolvedParts[FoundEntry]:
        """Return the entry that *path* leads to."""
        primitives = self._require_open(path)
        if path.must_dir:
            links = Links.FOLLOW
        resolved = resolve_links(
            lambda parts: primitives.stat(parts, links), encoded(path), must_dir=path.must_dir
        )
        if resolved.result is None:
            raise os_error(errno.ENOENT)
        if resolved.must_dir and not stat.S_ISDIR(resolved.result.stat.st_mode):
            raise os_error(errno.ENOTDIR)
        return ResolvedParts(resolved.parts, resolved.must_dir, resolved.result)

    def _directory(self, path: ParsedPath, parts: Parts) -> Parts:
        """Return the names without links that lead to a directory."""
        primitives = self._require_open(path)
        resolved = resolve_links(lambda names: primitives.stat(names, Links.FOLLOW), parts)
        if resolved.result is None:
            raise os_error(errno.ENOENT)
        if not stat.S_ISDIR(resolved.result.stat.st_mode):
            raise os_error(errno.ENOTDIR)
        return resolved.parts

    def _resolve_and_list(
        self, primitives: FilePrimitives, parts: Parts, prefix: str, limit: int | None
    ) -> tuple[Parts, builtins.list[DirectoryEntry]]:
        """List a directory, sorted by name; returns the names without links that lead to it, too."""
        resolved = resolve_links(lambda names: self._list(primitives, names, prefix, limit), parts)
        return resolved.parts, resolved.result

    def _list(
        self, primitives: FilePrimitives, parts: Parts, prefix: str, limit: int | None
    ) -> builtins.list[DirectoryEntry] | LinkInPath:
        """List a directory, sorted by name, without our drafts."""
        drafts = len(self._drafts)
        try:
            listed = primitives.list(parts, None if limit is None else limit + drafts)
        except OSError as error:
            if error.errno != errno.EFBIG:
                raise
            listed = None
        if isinstance(listed, LinkInPath):
            return listed
        found = [DirectoryEntry(*each) for each in listed or () if parts or each[0] not in self._drafts]
        if listed is None or (limit is not None and len(found) > limit):
            raise list_limit_error(limit or 0, prefix)
        return sorted(found, key=by_name)

    def _list_found(
        self, primitives: FilePrimitives, parts: Parts, prefix: str, limit: int | None
    ) -> builtins.list[DirectoryEntry] | None:
        """List a directory that a walk found; `None` if it was removed or replaced."""
        for _ in range(TRIES):
            try:
                found = self._list(primitives, parts, prefix, limit)
            except ConcurrentChangeError:
                continue
            except (FileNotFoundError, NotADirectoryError):
                return None
            return None if isinstance(found, LinkInPath) else found
        raise os_error(errno.EAGAIN)


class _LazyContent:
    """Content of a file that is opened when it is iterated."""

    def __init__(self, opener: Callable[[], ContainerReader], chunk_bytes: int) -> None:
        self._opener = opener
        self._chunk_bytes = chunk_bytes

    def __iter__(self) -> Iterator[bytes]:
        return self._opener().chunks(self._chunk_bytes)


def encoded(path: ParsedPath) -> Parts:
    """Return the parts of a path as bytes."""
    return tuple(map(os.fsencode, path.parts))


def identity(found: os.stat_result) -> tuple[int, int]:
    """Return the device and inode, which identify an entry."""
    return found.st_dev, found.st_ino


class ContainerReader:
    """An open file, read in chunks; it outlives the name and its `ContainerFiles`.

    A small file is read completely when it is opened, and only content appended later is read by its name. A
    large one is kept open in the container.
    """

    def __init__(
        self,
        primitives: FilePrimitives,
        parts: Parts,
        opened: HeldFile | FileContent,
        info: FileInfo,
        path: ParsedPath,
    ) -> None:
        """Continue reading *opened*, the file at *parts*."""
        self._primitives = primitives
        self._parts = parts
        self._path = path
        self._at = 0
        self.info = info
        self._held = opened if isinstance(opened, HeldFile) else None
        self._stat = opened[0]
        self._content = b"" if isinstance(opened, HeldFile) else opened[1]
        if self._held is not None:
            finalize(self, primitives.drop, self._held)

    def chunks(self, chunk_bytes: int, offset: int = 0) -> Iterator[bytes]:
        """Yield the content from *offset* on, at most *chunk_bytes* at a time."""
        self._at += offset
        ahead = b""
        while True:
            if not ahead:
                ahead = self._read(max(chunk_bytes, PIECE_BYTES), self._at)
                if not ahead:
                    return
            piece, ahead = ahead[:chunk_bytes], ahead[chunk_bytes:]
            self._at += len(piece)
            yield piece

    def read(self, length: int, offset: int = 0) -> bytes:
        """Read at most *length* bytes at *offset*."""
        found: list[bytes] = []
        while length > 0 and (piece := self._read(length, offset)):
            found.append(piece[:length])
            offset += len(found[-1])
            length -= len(found[-1])
        return b"".join(found)

    def _read(self, count: int, offset: int) -> bytes:
        if offset < len(self._content):
            return self._content[offset : offset + count]
        try:
            if self._held is not None:
                return self._primitives.read_held(self._held, offset, count)
            return self._appended(count, offset)
        except CarrelError:
            raise
        except ConcurrentChangeError:
            number: int | None = errno.EAGAIN
        except OSError as error:
            number = error.errno
        raise translate(number, self._path)

    def _appended(self, count: int, offset: int) -> bytes:
        """Read what was appended since the file was opened, if its name still refers to it."""
        try:
            found = self._primitives.read(self._parts, offset, count)
        except (ConcurrentChangeError, FileNotFoundError, NotADirectoryError):
            return b""
        if isinstance(found, LinkInPath | FoundEntry):
            return b""
        now, data = found
        return data if (now.st_dev, now.st_ino) == (self._stat.st_dev, self._stat.st_ino) else b""
