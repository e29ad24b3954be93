"""Look up directories and names beneath one open directory.

Everything an operation of `Root` needs before it acts: the descriptor of the parent and one name without a
slash, or the place that a link at the end of a path leads to.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from carrel.errors import ClosedError, MissingError, PathError
from carrel.fs.api import Existing, Parents
from carrel.fs.errors import translate, translated
from carrel.fs.handle import Handle
from carrel.fs.local import walk
from carrel.fs.local.resolve import Resolver
from carrel.fs.rules import MAX_LINKS, not_a_file, require_write_bit
from carrel.paths.parsed_path import ParsedPath, link_destination
from carrel.values import FileInfo

PARENT = os.O_PATH | os.O_DIRECTORY
_LOOKS = 100
"""How often to look for a directory that others make and remove."""


class MadeDirectory(NamedTuple):
    """A directory that was made on the way to something else."""

    parent: Handle
    name: bytes


class WriteTarget(NamedTuple):
    """Where a write goes, and what is there."""

    where: ParsedPath
    near: Handle
    """The directory above it, or the deepest one on the way that exists."""
    missing: tuple[str, ...]
    """The names of the directories that are missing in between."""
    before: os.stat_result | None


class Lookup:
    """One open directory, and the way to everything in it."""

    def __init__(self, directory: Handle, resolver: Resolver, label: str) -> None:
        self.resolver = resolver
        self._label = label
        self._directory: Handle | None = directory

    def close(self) -> None:
        """Let go of the directory; it closes when the last running operation is done."""
        self._directory = None

    def open(self, where: ParsedPath, flags: int) -> int:
        """A descriptor of what *where* leads to."""
        directory = self.use(where)
        return self.resolver.open(directory.fd, where.encoded, flags)

    def use(self, where: ParsedPath) -> Handle:
        """The root directory; whoever holds the handle may use its descriptor."""
        directory = self._directory
        if directory is None:
            raise ClosedError(f"workspace is closed: {where.requested!r}", path=where.requested)
        return directory

    @translated
    def parent(self, where: ParsedPath) -> Handle:
        """The directory that holds the last name of *where*."""
        directory = self.use(where)
        if not where.name:
            self._require_inside(directory, where)
            raise PathError(f"path {where.requested!r} does not end in a name", path=where.requested)
        parent = directory
        if where.parent != b".":
            parent = Handle(self.resolver.open(directory.fd, where.parent, PARENT))
        if self.resolver.excluded is not None:
            self.resolver.excluded.require_name(parent.fd, where.name)
        return parent

    def _require_inside(self, directory: Handle, where: ParsedPath) -> None:
        """Raise for a path that leads out, whatever else is wrong with it."""
        try:
            os.close(self.resolver.open(directory.fd, where.encoded, PARENT))
        except OSError as error:
            if error.errno == errno.EXDEV:
                raise

    @translated
    def target(self, where: ParsedPath, existing: Existing, parents: Parents) -> WriteTarget:
        """The place to write to: *where*, or where the links at its end lead; nothing is made."""
        for _ in range(MAX_LINKS + 1):
            if where.must_dir and where.name:
                self._require_inside(self.use(where), where)
                raise translate(errno.EISDIR, where)
            parent, missing = self.nearest(where, parents)
            before = None if missing else entry(parent, where.name)
            if before is None or existing is Existing.REFUSE or not stat.S_ISLNK(before.st_mode):
                _require_writable(parent, where, before, existing)
                return WriteTarget(where, parent, missing, before)
            try:
                text = os.readlink(where.name, dir_fd=parent.fd)
            except OSError:
                # It was a link a moment ago; look again.
                continue
            where = link_destination(where, os.fsdecode(text))
            if where.absolute:
                raise translate(errno.EXDEV, where)
            if where.dotted:
                os.close(self.open(where, PARENT))
                raise translate(errno.EISDIR, where)
        raise translate(errno.ELOOP, where)

    def nearest(self, where: ParsedPath, parents: Parents) -> tuple[Handle, tuple[str, ...]]:
        """The directory above *where*, or if it may be made: the deepest one, and what is missing."""
        for _ in range(_LOOKS):
            try:
                return self.parent(where), ()
            except MissingError:
                if parents is Parents.REQUIRE or not where.name:
                    raise
            parts = where.parts[:-1]
            known, here = self.longest_prefix(where, parts)
            if ".." in parts[known:]:
                raise translate(errno.ENOENT, where)
            found = None if known == len(parts) else entry(here, os.fsencode(parts[known]))
            if found is None:
                return here, parts[known:]
            if not stat.S_ISDIR(found.st_mode):
                # A link that leads nowhere cannot be made a directory.
                raise translate(errno.ENOTDIR, where)
            # Somebody has made it meanwhile.
        raise translate(errno.EAGAIN, where)

    def make(
        self, near: Handle, missing: tuple[str, ...], mark_dirty: Callable[[], None]
    ) -> tuple[Handle, list[MadeDirectory]]:
        """Make the directories *missing*, one in the other; returns the last one and those that were made.

        If that fails and they cannot be removed again, *mark_dirty* is called.
        """
        made: list[MadeDirectory] = []
        here = near
        try:
            for part in missing:
                name = os.fsencode(part)
                if self.resolver.excluded is not None:
                    self.resolver.excluded.require_name(here.fd, name)
                with suppress(FileExistsError):
                    os.mkdir(name, 0o777, dir_fd=here.fd)
                    made.append(MadeDirectory(here, name))
                here = Handle(self.resolver.open(here.fd, name, PARENT | os.O_NOFOLLOW))
        except BaseException:
            if not unmake(made):
                mark_dirty()
            raise
        return here, made

    def longest_prefix(self, where: ParsedPath, parts: tuple[str, ...]) -> tuple[int, Handle]:
        """The deepest directory of *parts* that exists, and how many parts it has."""
        directory = self.use(where)
        for known in range(len(parts), 0, -1):
            path = os.fsencode("/".join(parts[:known]))
            try:
                return known, Handle(self.resolver.open(directory.fd, path, PARENT))
            except FileNotFoundError:
                continue
        return 0, directory

    def require_entry(self, parent: Handle, where: ParsedPath) -> FileInfo:
        """What stands at the last name; a slash after anything but a directory is refused."""
        found = os.stat(where.name, dir_fd=parent.fd, follow_symlinks=False)
        if where.must_dir and not stat.S_ISDIR(found.st_mode):
            raise translate(errno.ENOTDIR, where)
        if self.resolver.excluded is not None:
            self.resolver.excluded.require_movable(found)
        return walk.info_of(self.shown(where), found)

    def shown(self, where: ParsedPath) -> str:
        """The path of *where* as answers spell it."""
        if where.parts:
            return self._label + "/".join(where.parts)
        return self._label.rstrip("/") or self._label or "."

    def shown_above(self, where: ParsedPath, count: int) -> list[str]:
        """The paths of the last *count* directories above *where*, the outermost first."""
        above = len(where.parts) - 1
        return [self._label + "/".join(where.parts[: above - left]) for left in reversed(range(count))]

    def prefix(self, where: ParsedPath) -> str:
        return self._label + "/".join(where.parts) + "/" if where.parts else self._label


def unmake(made: list[MadeDirectory]) -> bool:
    """Take away directories that were made for nothing; whether all of them are gone."""
    for directory in reversed(made):
        try:
            os.rmdir(directory.name, dir_fd=directory.parent.fd)
        except OSError:
            return False
    return True


def entry(parent: Handle, name: bytes) -> os.stat_result | None:
    """What stands at *name*, if anything; a link speaks of itself."""
    try:
        return os.stat(name, dir_fd=parent.fd, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _require_writable(
    parent: Handle, where: ParsedPath, before: os.stat_result | None, existing: Existing
) -> None:
    if before is None:
        return
    if existing is Existing.REFUSE:
        raise translate(errno.EEXIST, where)
    if not stat.S_ISREG(before.st_mode):
        raise not_a_file(before, where)
    require_write_bit(before, where)
    is_ours = before.st_uid == os.geteuid() and before.st_mode & stat.S_IWUSR
    if not is_ours and not os.access(
        where.name, os.W_OK, dir_fd=parent.fd, effective_ids=True, follow_symlinks=False
    ):
        raise translate(errno.EACCES, where)
