"""Reading, listing, walking and measuring files in a container: the half that changes nothing."""

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
    os_error,
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
"""How often an operation begins again when somebody in the container swaps what it uses."""

_TOP = parse(".")

Params = ParamSpec("Params")
Self = TypeVar("Self")
Answer = TypeVar("Answer")


def retried(
    method: Callable[Concatenate[Self, ParsedPath, Params], Answer],
) -> Callable[Concatenate[Self, ParsedPath, Params], Answer]:
    """Begin again while others swap what is used, at most `TRIES` times."""

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
    """The same, and raise errors of ours only."""
    return translated(retried(method))


class ContainerReading:
    """Everything that can be told about files in a container."""

    def __init__(self, steps: FilePrimitives) -> None:
        self._steps: FilePrimitives | None = steps
        self._confinement = steps.confinement
        self._drafts: set[bytes] = set()
        """Those that are being written just now; nobody else is shown them."""

    @property
    def confinement(self) -> str:
        """Names are walked one by one in the container."""
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
        steps = self._use(path)
        if path.must_dir:
            raise self._no_file(path)
        first = PIECE_BYTES if length is None else min(length, PIECE_BYTES)
        first = first if limit is None else min(first, limit + 1)
        reached: ResolvedParts[FileContent | FoundEntry] = resolve_links(
            lambda parts: steps.read(parts, offset, first), encoded(path)
        )
        found, data = self._require_file(reached, path)
        wanted = max(0, found.st_size - offset)
        if length is not None:
            wanted = min(wanted, length)
        if limit is not None and wanted > limit:
            raise size_limit_error("read_bytes", limit, wanted, path)
        if len(data) < wanted:
            data = self._rest(steps, reached.parts, found, offset, data, wanted)
        return found, data[:wanted]

    def _rest(
        self,
        steps: FilePrimitives,
        parts: Parts,
        found: os.stat_result,
        offset: int,
        data: bytes,
        wanted: int,
    ) -> bytes:
        """The same content and what follows it, up to so much or to the end of the file."""
        held = steps.hold(parts)
        if isinstance(held, LinkInPath | FoundEntry):
            raise ConcurrentChangeError
        try:
            if identity(held.stat) != identity(found):
                raise ConcurrentChangeError
            pieces, size = [data], len(data)
            while size < wanted and (data := steps.read_held(held, offset + size, wanted - size)):
                pieces.append(data)
                size += len(data)
            return b"".join(pieces)
        finally:
            steps.drop(held)

    def _require_file(
        self, reached: ResolvedParts[FileContent | FoundEntry], path: ParsedPath
    ) -> tuple[os.stat_result, bytes]:
        result = reached.result
        is_file = not isinstance(result, FoundEntry)
        if reached.must_dir and (is_file or not stat.S_ISDIR(result[0].st_mode)):
            raise os_error(errno.ENOTDIR)
        if isinstance(result, FoundEntry):
            raise not_a_file_error(result.stat, path)
        return result

    def _no_file(self, path: ParsedPath) -> Exception:
        """Why something that ends in a slash or in dots is no file."""
        self._directory(path, encoded(path))
        return os_error(errno.EISDIR)

    @retried_and_translated
    def reader(self, path: ParsedPath) -> ContainerReader:
        """Open a regular file for reading in chunks."""
        steps = self._use(path)
        if path.must_dir:
            raise self._no_file(path)
        reached = self._look(path, Links.FOLLOW)
        if not stat.S_ISREG(reached.result.stat.st_mode):
            raise not_a_file_error(reached.result.stat, path)
        if reached.result.stat.st_size <= PIECE_BYTES:
            opened: FileContent | HeldFile | FoundEntry | LinkInPath = steps.read(
                reached.parts, 0, PIECE_BYTES
            )
        else:
            opened = steps.hold(reached.parts)
        if isinstance(opened, LinkInPath | FoundEntry):
            raise ConcurrentChangeError
        return ContainerReader(steps, reached.parts, opened, info_of(path.text, opened[0]), path)

    # Looking

    @retried_and_translated
    def stat(self, path: ParsedPath, links: Links) -> FileInfo:
        """Return the info of one entry; a link that is not followed has its target text."""
        found = self._look(path, links).result
        target = None if found.text is None else os.fsdecode(found.text)
        return info_of(path.text, found.stat, target)

    @retried_and_translated
    def list(self, path: ParsedPath, *, limit: int | None) -> builtins.list[FileInfo]:
        """List the entries of a directory, sorted by name."""
        prefix = entry_prefix(path)
        _, entries = self._listed(self._use(path), encoded(path), prefix, limit)
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
        steps = self._use(path)
        prefix = entry_prefix(path)
        parts, entries = self._listed(steps, encoded(path), prefix, limits.list_entries)
        visit = TreeWalk(partial(self._entered, steps), limits, unreadable, enter)
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
            Content(info.path, _Pieces(partial(self.reader, child(path, info.path[skip:])), chunk_bytes))
            for info in found
            if info.is_file and (wants is None or wants(info.name))
        )

    def measure(self, limit: int | None = None) -> Usage:
        """Count everything, each inode once."""
        return self._measure(_TOP, limit)

    @retried_and_translated
    def _measure(self, path: ParsedPath, limit: int | None) -> Usage:
        return self._counted(self._use(path), (), limit, shut=OnUnreadable.SKIP)[0]

    def _counted(
        self, steps: FilePrimitives, parts: Parts, limit: int | None, *, shut: OnUnreadable
    ) -> tuple[Usage, builtins.list[Parts]]:
        """What is beneath *parts*, and the directories there, each before those in it."""
        disk_bytes = entries = 0
        seen: set[tuple[int, int]] = set()
        directories: builtins.list[Parts] = []
        todo = [parts]
        while todo:
            checkpoint()
            here = todo.pop()
            directories.append(here)
            for name, found in self._entered_if(steps, here, shut) or ():
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

    def _entered_if(
        self, steps: FilePrimitives, parts: Parts, shut: OnUnreadable
    ) -> builtins.list[DirectoryEntry] | None:
        try:
            return self._entered(steps, parts, "", None)
        except PermissionError:
            if shut is OnUnreadable.REFUSE:
                raise
            return None

    # The way to things

    def _use(self, path: ParsedPath) -> FilePrimitives:
        steps = self._steps
        if steps is None:
            raise closed_error(path)
        return steps

    def _look(self, path: ParsedPath, links: Links) -> ResolvedParts[FoundEntry]:
        """What *path* leads to."""
        steps = self._use(path)
        if path.must_dir:
            links = Links.FOLLOW
        reached = resolve_links(lambda parts: steps.look(parts, links), encoded(path), must_dir=path.must_dir)
        if reached.result is None:
            raise os_error(errno.ENOENT)
        if reached.must_dir and not stat.S_ISDIR(reached.result.stat.st_mode):
            raise os_error(errno.ENOTDIR)
        return ResolvedParts(reached.parts, reached.must_dir, reached.result)

    def _directory(self, path: ParsedPath, parts: Parts) -> Parts:
        """The names that lead to a directory without links."""
        steps = self._use(path)
        reached = resolve_links(lambda names: steps.look(names, Links.FOLLOW), parts)
        if reached.result is None:
            raise os_error(errno.ENOENT)
        if not stat.S_ISDIR(reached.result.stat.st_mode):
            raise os_error(errno.ENOTDIR)
        return reached.parts

    def _listed(
        self, steps: FilePrimitives, parts: Parts, prefix: str, limit: int | None
    ) -> tuple[Parts, builtins.list[DirectoryEntry]]:
        """The entries of a directory by name, and the names that lead to it without links."""
        reached = resolve_links(lambda names: self._list(steps, names, prefix, limit), parts)
        return reached.parts, reached.result

    def _list(
        self, steps: FilePrimitives, parts: Parts, prefix: str, limit: int | None
    ) -> builtins.list[DirectoryEntry] | LinkInPath:
        """The entries of a directory by name, but for drafts of ours."""
        drafts = len(self._drafts)
        try:
            listed = steps.list(parts, None if limit is None else limit + drafts)
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

    def _entered(
        self, steps: FilePrimitives, parts: Parts, prefix: str, limit: int | None
    ) -> builtins.list[DirectoryEntry] | None:
        """The entries of a directory that a walk found; `None` if it is gone or something else now."""
        for _ in range(TRIES):
            try:
                found = self._list(steps, parts, prefix, limit)
            except ConcurrentChangeError:
                continue
            except (FileNotFoundError, NotADirectoryError):
                return None
            return None if isinstance(found, LinkInPath) else found
        raise os_error(errno.EAGAIN)


class _Pieces:
    """The content of a file that is opened when somebody reads it."""

    def __init__(self, opener: Callable[[], ContainerReader], chunk_bytes: int) -> None:
        self._opener = opener
        self._chunk_bytes = chunk_bytes

    def __iter__(self) -> Iterator[bytes]:
        return self._opener().chunks(self._chunk_bytes)


def encoded(path: ParsedPath) -> Parts:
    """The parts of a path as the container has them."""
    return tuple(map(os.fsencode, path.parts))


def identity(found: os.stat_result) -> tuple[int, int]:
    """What tells a file from every other."""
    return found.st_dev, found.st_ino


class ContainerReader:
    """An open file, read by chunks; it outlives the name, and the end of its `ContainerFiles`.

    A small file was read as a whole when it was opened, and only what is appended later is looked for at
    its name. A large one is kept open in the container.
    """

    def __init__(
        self,
        steps: FilePrimitives,
        parts: Parts,
        opened: HeldFile | FileContent,
        info: FileInfo,
        path: ParsedPath,
    ) -> None:
        """Read on from *opened*, which is the file at *parts*."""
        self._steps = steps
        self._parts = parts
        self._where = path
        self._at = 0
        self.info = info
        self._held = opened if isinstance(opened, HeldFile) else None
        self._stat = opened[0]
        self._content = b"" if isinstance(opened, HeldFile) else opened[1]
        if self._held is not None:
            finalize(self, steps.drop, self._held)

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
                return self._steps.read_held(self._held, offset, count)
            return self._appended(count, offset)
        except CarrelError:
            raise
        except ConcurrentChangeError:
            number: int | None = errno.EAGAIN
        except OSError as error:
            number = error.errno
        raise translate(number, self._where)

    def _appended(self, count: int, offset: int) -> bytes:
        """What was added since it was opened, if its name still stands for it."""
        try:
            found = self._steps.read(self._parts, offset, count)
        except (ConcurrentChangeError, FileNotFoundError, NotADirectoryError):
            return b""
        if isinstance(found, LinkInPath | FoundEntry):
            return b""
        now, data = found
        return data if (now.st_dev, now.st_ino) == (self._stat.st_dev, self._stat.st_ino) else b""
