"""Files in memory: the `Files` protocol without a disk, for tests and for work that leaves nothing behind.

The answers and the errors are those of `Root`. There are no hard links, FIFOs, sockets or devices. The
permissions that count are the write bits of a file: one without any is read-only.
"""

from __future__ import annotations

import builtins
import errno
import time
from collections.abc import Iterable, Iterator
from threading import Lock
from typing import NamedTuple

from carrel.errors import (
    ChangedError,
    ClosedError,
    EscapeError,
    HostDeniedError,
    MissingError,
    PathError,
)
from carrel.fs._content import too_large
from carrel.fs._memory_reader import MemoryReader
from carrel.fs._memory_tree import FILE_MODE, Directory, File, Link, Made, MemoryTree, Node, describe, failure
from carrel.fs._memory_walk import Visit, scan
from carrel.fs._resolve import LINKS
from carrel.fs._translate import translate, translated
from carrel.fs.api import Existing, Links, Parents, Unreadable
from carrel.paths.rel import Where, leads_out, sibling
from carrel.values import Change, Clock, FileInfo, Limits


class _Target(NamedTuple):
    """Where a write goes, and what is there."""

    where: Where
    parent: Directory
    before: File | None
    made: list[Made]
    """Directories that were made on the way."""


class MemoryFiles:
    """A tree of files that exists as long as this object is open."""

    def __init__(self, *, clock: Clock = time.time_ns) -> None:
        """Begin with an empty tree; *clock* gives the times of modification."""
        self._lock = Lock()
        self._tree: MemoryTree | None = MemoryTree(clock)

    @property
    def confinement(self) -> str:
        """There is nothing outside to be reached."""
        return "memory"

    def close(self) -> None:
        """End all use; a running operation finishes first."""
        with self._lock:
            self._tree = None

    # Reading

    @translated
    def read(self, where: Where, *, limit: int | None, offset: int = 0, length: int | None = None) -> bytes:
        """Content of a regular file, whole or a window of it."""
        with self._lock:
            content = self._file(where).content
            wanted = max(0, len(content) - offset)
            if length is not None:
                wanted = min(wanted, length)
            if limit is not None and wanted > limit:
                raise too_large("read_bytes", limit, wanted, where)
            return bytes(content[offset : offset + wanted])

    @translated
    def reader(self, where: Where) -> MemoryReader:
        """Open a regular file to be read by chunks."""
        with self._lock:
            file = self._file(where)
            return MemoryReader(file, describe(where.text, file), self._lock)

    @translated
    def stat(self, where: Where, links: Links) -> FileInfo:
        """What is there; a link that is kept shows its text."""
        with self._lock:
            node = self._use(where).resolve(where.parts, links, must_dir=where.must_dir)
            return describe(where.text, node, node.target if isinstance(node, Link) else None)

    @translated
    def list(self, where: Where, *, limit: int | None) -> builtins.list[FileInfo]:
        """The entries of a directory, sorted by name."""
        with self._lock:
            return scan(self._use(where).directory(where.parts), _prefix(where), limit)

    @translated
    def walk(
        self, where: Where, limits: Limits, *, unreadable: Unreadable = Unreadable.SKIP
    ) -> Iterator[FileInfo]:
        """Everything beneath a directory, parents first, never through a link; all of it is readable."""
        with self._lock:
            top = self._use(where).directory(where.parts)
        return Visit(self._lock, limits).run(top, _prefix(where))

    # Writing

    @translated
    def write(
        self,
        where: Where,
        data: Iterable[bytes],
        *,
        existing: Existing,
        parents: Parents,
        expect: str | None = None,
        mode: int | None = None,
    ) -> Change:
        """Store *data* at once or not at all, through a link at the end if it stays inside."""
        with self._lock:
            tree = self._use(where)
            target = self._target(where, existing, parents)
        try:
            _require_version(where, target.before, expect)
            content = b"".join(data)
            with self._lock:
                _require_version(where, target.parent.entries.get(target.where.parts[-1]), expect)
                return _publish(tree, content, target, existing, mode)
        except BaseException:
            with self._lock:
                tree.unmake(target.made)
            raise

    @translated
    def append(self, where: Where, data: bytes, *, limit: int | None) -> Change:
        """Add to a regular file."""
        with self._lock:
            file = self._file(where)
            _require_write_bit(file, where)
            size = len(file.content)
            if limit is not None and size + len(data) > limit:
                raise too_large("file_bytes", limit, size + len(data), where)
            self._use(where).append(file, data)
            return Change(before_bytes=size, info=describe(where.text, file))

    @translated
    def copy(self, where: Where, target: Where, *, existing: Existing, limit: int | None) -> Change:
        """Copy one regular file."""
        with self._lock:
            source = self._file(where)
            size = len(source.content)
            if limit is not None and size > limit:
                raise too_large("file_bytes", limit, size, where)
            place = self._target(target, existing, Parents.MAKE)
            return _publish(self._use(where), bytes(source.content), place, existing, source.mode)

    @translated
    def mkdir(self, where: Where, *, parents: Parents) -> builtins.list[str]:
        """Make a directory and, if wanted, those above it."""
        with self._lock:
            tree = self._use(where)
            if where.dotted:
                tree.directory(where.parts)
                return []
            made: builtins.list[Made] = []
            parent = self._parent_for_writing(where, parents, made)
            if where.parts[-1] not in parent.entries:
                tree.put(parent, where.parts[-1], tree.new_directory())
                return [*(directory.path for directory in made), where.text]
            if not self._is_directory(where):
                raise failure(errno.EEXIST)
            return []

    def _is_directory(self, where: Where) -> bool:
        try:
            self._use(where).directory(where.parts)
        except OSError:
            return False
        return True

    @translated
    def link(self, where: Where, target: str, *, existing: Existing = Existing.REFUSE) -> None:
        """Make a link that leads neither to an absolute path nor, read as text, out of the root."""
        if leads_out(where, target):
            raise EscapeError(
                f"a link at {where.asked!r} would lead out: it escapes session workspace", path=where.asked
            )
        self._put_link(where, target, existing)

    @translated
    def plant(self, where: Where, target: str) -> None:
        """Make a link with any text, as somebody beneath the gate could."""
        self._put_link(where, target, Existing.REFUSE)

    def _put_link(self, where: Where, target: str, existing: Existing) -> None:
        with self._lock:
            tree = self._use(where)
            parent = self._parent(where)
            old = parent.entries.get(where.parts[-1])
            if problem := _link_problem(where, old, existing):
                raise failure(problem)
            tree.put(parent, where.parts[-1], tree.new_link(target))

    # Removing and moving

    @translated
    def remove(self, where: Where) -> FileInfo:
        """Remove a file, a link (never its target) or an empty directory."""
        with self._lock:
            parent = self._parent(where)
            node = _require_entry(parent, where)
            if isinstance(node, Directory) and node.entries:
                raise failure(errno.ENOTEMPTY)
            info = describe(where.text, node)
            self._use(where).remove(parent, where.parts[-1])
            return info

    @translated
    def remove_tree(self, where: Where) -> FileInfo:
        """Remove whatever is there, with everything in it."""
        with self._lock:
            parent = self._parent(where)
            info = describe(where.text, _require_entry(parent, where))
            self._use(where).remove(parent, where.parts[-1])
            return info

    @translated
    def move(self, where: Where, target: Where, *, existing: Existing) -> FileInfo:
        """Rename within this tree; a link moves as a link."""
        with self._lock:
            parent = self._parent(where)
            node = _require_entry(parent, where)
            info = describe(where.text, node)
            self._move_to(target, parent, where.parts[-1], existing)
            return info

    @translated
    def _move_to(self, target: Where, parent: Directory, name: str, existing: Existing) -> None:
        target_parent = self._parent(target)
        if target.must_dir and not isinstance(parent.entries[name], Directory):
            raise failure(errno.ENOTDIR)
        self._use(target).rename(parent, name, target_parent, target.parts[-1], existing)

    # Resolving, with the lock held

    def _use(self, where: Where) -> MemoryTree:
        tree = self._tree
        if tree is None:
            raise ClosedError(f"workspace is closed: {where.asked!r}", path=where.asked)
        return tree

    def _file(self, where: Where) -> File:
        """The regular file that *where* leads to."""
        node = self._use(where).resolve(where.parts, Links.FOLLOW, must_dir=where.must_dir)
        if not isinstance(node, File):
            raise failure(errno.EISDIR)
        return node

    @translated
    def _parent(self, where: Where) -> Directory:
        """The directory that holds the last name of *where*."""
        tree = self._use(where)
        if not where.name:
            self._require_inside(where)
            raise PathError(f"path {where.asked!r} does not end in a name", path=where.asked)
        return tree.directory(where.parts[:-1])

    def _require_inside(self, where: Where) -> None:
        """Raise for a path that leads out, whatever else is wrong with it."""
        try:
            self._use(where).directory(where.parts)
        except OSError as error:
            if error.errno == errno.EXDEV:
                raise

    @translated
    def _target(self, where: Where, existing: Existing, parents: Parents) -> _Target:
        """The place to write to: *where*, or where the links at its end lead."""
        made: builtins.list[Made] = []
        for _ in range(LINKS + 1):
            if where.must_dir and where.name:
                self._require_inside(where)
                raise failure(errno.EISDIR)
            parent = self._parent_for_writing(where, parents, made)
            before = parent.entries.get(where.parts[-1])
            if not isinstance(before, Link) or existing is Existing.REFUSE:
                return _Target(where, parent, _require_writable(before, where, existing), made)
            where = sibling(where, before.target)
            if where.absolute:
                raise failure(errno.EXDEV)
            if where.dotted:
                self._use(where).directory(where.parts)
                raise failure(errno.EISDIR)
        raise failure(errno.ELOOP)

    def _parent_for_writing(self, where: Where, parents: Parents, made: builtins.list[Made]) -> Directory:
        """The directory above *where*, made if it is missing and may be; *made* learns of that."""
        try:
            return self._parent(where)
        except MissingError:
            if parents is Parents.REQUIRE or not where.name:
                raise
        parts = where.parts[:-1]
        tree = self._use(where)
        known, here = tree.longest_prefix(parts)
        if ".." in parts[known:]:
            raise failure(errno.ENOENT)
        for count, part in enumerate(parts[known:], known + 1):
            if part in here.entries:
                raise failure(errno.ENOTDIR)
            fresh = tree.new_directory()
            tree.put(here, part, fresh)
            made.append(Made(here, part, "/".join(parts[:count])))
            here = fresh
        return here


def _require_entry(parent: Directory, where: Where) -> Node:
    """What stands at the last name; a slash after anything but a directory is refused."""
    node = parent.entries.get(where.parts[-1])
    if node is None:
        raise failure(errno.ENOENT)
    if where.must_dir and not isinstance(node, Directory):
        raise failure(errno.ENOTDIR)
    return node


def _link_problem(where: Where, old: Node | None, existing: Existing) -> int:
    """Why no link can be put there, as an errno, or 0."""
    if existing is Existing.REPLACE:
        if where.must_dir:
            return errno.ENOTDIR
        return errno.EISDIR if isinstance(old, Directory) else 0
    if old is not None:
        return errno.EEXIST
    return errno.ENOENT if where.must_dir else 0


def _require_writable(before: Node | None, where: Where, existing: Existing) -> File | None:
    """What may be replaced, if anything is there."""
    if before is None:
        return None
    if existing is Existing.REFUSE:
        raise failure(errno.EEXIST)
    if not isinstance(before, File):
        raise failure(errno.EISDIR)
    _require_write_bit(before, where)
    return before


def _require_write_bit(file: File, where: Where) -> None:
    if not file.mode & 0o222:
        raise HostDeniedError(f"permission denied: {where.asked!r} is read-only", path=where.asked)


def _require_version(where: Where, found: Node | None, expect: str | None) -> None:
    if expect is not None and (found is None or describe("", found).version != expect):
        raise ChangedError(f"{where.asked!r} was changed meanwhile", path=where.asked)


def _publish(
    tree: MemoryTree, content: bytes, target: _Target, existing: Existing, mode: int | None
) -> Change:
    """Put the whole content in its place and say what changed."""
    where, parent, before, made = target
    now = parent.entries.get(where.parts[-1])
    if now is not None and existing is Existing.REFUSE:
        raise translate(errno.EEXIST, where)
    if isinstance(now, Directory):
        raise translate(errno.EISDIR, where)
    keep = mode if before is None else before.mode
    fresh = tree.new_file(content, FILE_MODE if keep is None else keep & 0o777)
    tree.put(parent, where.parts[-1], fresh)
    return Change(
        before_bytes=None if before is None else len(before.content),
        info=describe(where.text, fresh),
        made=tuple(directory.path for directory in made),
    )


def _prefix(where: Where) -> str:
    return where.text + "/" if where.parts else ""
