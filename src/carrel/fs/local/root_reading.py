"""The operations of `Root` that change nothing."""

from __future__ import annotations

import builtins
import os
import stat
from collections.abc import Iterator

from carrel.fs import syscalls
from carrel.fs.api import Content, Enter, Links, OnUnreadable, Wants
from carrel.fs.errors import translated, translating
from carrel.fs.handle import Handle
from carrel.fs.local import walk as walk_module
from carrel.fs.local.content import FileReader, read_on
from carrel.fs.local.external_changes import UnmediatedAccess
from carrel.fs.local.lookup import Lookup
from carrel.fs.local.tree_reader import TreeReader
from carrel.fs.rules import not_a_file, too_large
from carrel.paths.parsed_path import ParsedPath, parse
from carrel.values import FileInfo, Limits, Named, Usage

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK | os.O_NOCTTY
TOP = parse(".")


class RootReading:
    """Everything a root can tell."""

    def __init__(self, beneath: Lookup) -> None:
        self._beneath = beneath

    @property
    def confinement(self) -> str:
        """Which way of resolving is in force."""
        return self._beneath.resolver.confinement.value

    @translated
    def read(
        self, where: ParsedPath, *, limit: int | None, offset: int = 0, length: int | None = None
    ) -> bytes:
        """Content of a regular file, whole or a window of it."""
        return self._read(where, limit, offset, length)[1]

    @translated
    def read_with_info(
        self, where: ParsedPath, *, limit: int | None, offset: int = 0, length: int | None = None
    ) -> tuple[FileInfo, bytes]:
        """The same with what the file was just before."""
        found, data = self._read(where, limit, offset, length)
        return walk_module.info_of(self._beneath.shown(where), found), data

    def _read(
        self, where: ParsedPath, limit: int | None, offset: int, length: int | None
    ) -> tuple[os.stat_result, bytes]:
        flags = _READ | os.O_DIRECTORY if where.must_dir else _READ
        fd = self._beneath.open(where, flags)
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise not_a_file(found, where)
            wanted = max(0, found.st_size - offset)
            if length is not None:
                wanted = min(wanted, length)
            if limit is not None and wanted > limit:
                raise too_large("read_bytes", limit, wanted, where)
            if not wanted and offset:
                return found, b""
            if offset:
                os.lseek(fd, offset, os.SEEK_SET)
            data = os.read(fd, wanted + 1)
            if len(data) == wanted or length is not None:
                return found, data[:wanted]
            return found, read_on(fd, data, limit, where)
        finally:
            os.close(fd)

    @translated
    def reader(self, where: ParsedPath) -> FileReader:
        """Open a regular file to be read by chunks."""
        flags = _READ | os.O_DIRECTORY if where.must_dir else _READ
        handle = Handle(self._beneath.open(where, flags))
        found = os.fstat(handle.fd)
        if not stat.S_ISREG(found.st_mode):
            raise not_a_file(found, where)
        return FileReader(handle, walk_module.info_of(self._beneath.shown(where), found), where)

    @translated
    def stat(self, where: ParsedPath, links: Links) -> FileInfo:
        """What is there; a link that is kept shows its text."""
        flags = os.O_PATH
        if where.must_dir:
            flags |= os.O_DIRECTORY
        elif links is Links.KEEP:
            flags |= os.O_NOFOLLOW
        fd = self._beneath.open(where, flags)
        try:
            found = os.fstat(fd)
            target = None
            if stat.S_ISLNK(found.st_mode):
                target = os.fsdecode(os.readlink(b"", dir_fd=fd))
            created = syscalls.created_ns_unchecked(fd)
            return walk_module.info_of(self._beneath.shown(where), found, target, created)
        finally:
            os.close(fd)

    @translated
    def list(self, where: ParsedPath, *, limit: int | None) -> builtins.list[FileInfo]:
        """The entries of a directory, sorted by name."""
        fd = self._beneath.open(where, LIST)
        try:
            return walk_module.scan(fd, self._beneath.prefix(where), limit)
        finally:
            os.close(fd)

    @translated
    def names(self, where: ParsedPath, *, limit: int | None) -> Iterator[builtins.list[Named]]:
        """The names in a directory, each with its kind, in no order."""
        directory = Handle(self._beneath.open(where, LIST))
        return translating(walk_module.names(directory, self._beneath.prefix(where), limit), where)

    @translated
    def walk(
        self,
        where: ParsedPath,
        limits: Limits,
        *,
        unreadable: OnUnreadable = OnUnreadable.SKIP,
        enter: Enter | None = None,
    ) -> Iterator[FileInfo]:
        """Everything beneath a directory, parents first, never through a link."""
        top = Handle(self._beneath.open(where, LIST))
        visit = walk_module.TreeWalk(
            self._beneath.resolver.open,
            depth=limits.depth,
            entries=limits.walk_entries,
            listing=limits.list_entries,
            unreadable=unreadable,
            enter=enter,
        )
        return translating(visit.run(top, self._beneath.prefix(where)), where)

    @translated
    def read_tree(
        self,
        where: ParsedPath,
        limits: Limits,
        *,
        enter: Wants | None,
        wants: Wants | None,
        chunk_bytes: int,
    ) -> Iterator[Content]:
        """The regular files beneath a directory, names in order, never through a link."""
        top = Handle(self._beneath.open(where, LIST))
        reading = TreeReader(
            self._beneath.resolver.open,
            where,
            self._beneath.prefix(where),
            limits,
            enter=enter,
            wants=wants,
            chunk_bytes=chunk_bytes,
        )
        return translating(reading.run(top), where)

    @translated
    def host_path(self, where: ParsedPath) -> str:
        """Where *where* lies on the host now, for a caller that must have a path; it need not exist."""
        rest: tuple[str, ...] = ()
        try:
            held = Handle(self._beneath.open(where, os.O_PATH))
        except FileNotFoundError:
            known, held = self._beneath.longest_prefix(where, where.parts)
            rest = where.parts[known:]
            if ".." in rest:
                raise
        return os.path.join(os.readlink(f"/proc/self/fd/{held.fd}"), *rest)

    def measure(self, limit: int | None = None) -> Usage:
        """Count everything, each inode once, whatever the depth."""
        return self._measure(TOP, limit)

    @translated
    def _measure(self, where: ParsedPath, limit: int | None) -> Usage:
        top = Handle(self._beneath.open(where, LIST))
        return walk_module.measure(self._beneath.resolver.open, top, limit)

    def unmediated_access(self) -> UnmediatedAccess:
        """What has to be known about it when programs change it without asking."""
        return UnmediatedAccess(self._beneath)
