"""Look up directories and names beneath one directory.

Everything an operation of `Root` needs before it acts: the descriptor of the parent directory and one name
without a slash, or the file that a link at the end of a path leads to.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from carrel.errors import PathError
from carrel.fs.api import Confinement, Existing, Parents
from carrel.fs.errors import closed_error, not_a_file_error, translate, translated
from carrel.fs.handle import Handle
from carrel.fs.local.resolve import Resolver
from carrel.fs.rules import MAX_LINKS, info_of, require_write_bit
from carrel.paths.parsed_path import ParsedPath, link_destination, parent_paths
from carrel.values import FileInfo

PARENT = os.O_PATH | os.O_DIRECTORY
_TRIES = 100
"""Lookups of a directory that others create and remove at the same time, before `BusyError`."""


class CreatedDirectory(NamedTuple):
    """A missing directory that was created for a write."""

    parent: Handle
    name: bytes


class WriteTarget(NamedTuple):
    """Where a write goes, and what exists there."""

    path: ParsedPath
    near: Handle
    """The parent directory, or the deepest directory on the way to it that exists."""
    missing: tuple[str, ...]
    """The names of the directories between `near` and the target that do not exist."""
    before: os.stat_result | None


class Lookup:
    """One directory, and the way to everything beneath it."""

    def __init__(
        self, base: Handle | Lookup, resolver: Resolver, label: str = "", names: tuple[str, ...] = ()
    ) -> None:
        """Start at *base*, or at the directory that *names* lead to beneath it.

        Displayed paths begin with *label*.
        """
        self.resolver = resolver
        self._base: Handle | Lookup | None = base
        self._label = label
        self._names = [os.fsencode(name) for name in names]

    def subtree(self, names: tuple[str, ...]) -> Lookup:
        """Return a lookup that starts at the directory *names*, which need not exist yet.

        The names are looked up again for every operation, never through a link, and nothing stays open in
        between.
        """
        # A root that its operator left unconfined still confines its subtrees.
        is_confined = self.resolver.confinement is not Confinement.NONE
        label = self._label + "".join(f"{name}/" for name in names)
        return Lookup(self, self.resolver if is_confined else Resolver(), label, names)

    def close(self) -> None:
        """Release the directory; it closes when the last running operation is done."""
        self._base = None

    def open(self, path: ParsedPath, flags: int) -> int:
        """Return a descriptor of what *path* leads to."""
        directory = self.directory(path)  # Kept, so that its descriptor stays open.
        return self.resolver.open(directory.fd, path.encoded, flags)

    def directory(self, path: ParsedPath) -> Handle:
        """Return the directory where lookups start; keep the handle while using its descriptor.

        Raises:
            ClosedError: The lookup was closed; the error names *path*.
        """
        base = self._base
        if base is None:
            raise closed_error(path)
        here = base if isinstance(base, Handle) else base.directory(path)
        for name in self._names:
            here = Handle(self.resolver.open(here.fd, name, PARENT | os.O_NOFOLLOW))
        return here

    def top(self, path: ParsedPath) -> Handle:
        """Return the top directory of the root that this is a subtree of, or its own directory."""
        base = self._base
        if base is None:
            raise closed_error(path)
        return base if isinstance(base, Handle) else base.top(path)

    def parent(self, path: ParsedPath) -> Handle:
        """Return the directory that holds the last name of *path*."""
        directory = self.directory(path)
        if not path.name:
            self._require_inside(directory, path)
            raise PathError(f"path {path.requested!r} does not end in a name", path=path.requested)
        parent = directory
        if path.parent != b".":
            parent = Handle(self.resolver.open(directory.fd, path.parent, PARENT))
        if self.resolver.excluded is not None:
            self.resolver.excluded.require_name(parent.fd, path.name)
        return parent

    def _require_inside(self, directory: Handle, path: ParsedPath) -> None:
        """Raise EXDEV for a path that leads out, and ignore any other problem with it."""
        try:
            os.close(self.resolver.open(directory.fd, path.encoded, PARENT))
        except OSError as error:
            if error.errno == errno.EXDEV:
                raise

    @translated
    def target(self, path: ParsedPath, existing: Existing, parents: Parents) -> WriteTarget:
        """Find where a write to *path* goes, through links at its end; nothing is created."""
        for _ in range(MAX_LINKS + 1):
            if path.must_dir and path.name:
                self._require_inside(self.directory(path), path)
                raise translate(errno.EISDIR, path)
            parent, missing = self.nearest(path, parents)
            before = None if missing else entry(parent, path.name)
            if before is None or existing is Existing.REFUSE or not stat.S_ISLNK(before.st_mode):
                if before is not None:
                    _require_writable(parent, path, before, existing)
                return WriteTarget(path, parent, missing, before)
            try:
                text = os.readlink(path.name, dir_fd=parent.fd)
            except OSError:
                # It was a link a moment ago; look again.
                continue
            path = link_destination(path, os.fsdecode(text))
            if path.absolute:
                raise translate(errno.EXDEV, path)
            if path.dotted:
                os.close(self.open(path, PARENT))
                raise translate(errno.EISDIR, path)
        raise translate(errno.ELOOP, path)

    def nearest(self, path: ParsedPath, parents: Parents) -> tuple[Handle, tuple[str, ...]]:
        """Return the parent directory of *path*, or the deepest one that exists and the missing names."""
        for _ in range(_TRIES):
            try:
                return self.parent(path), ()
            except FileNotFoundError:
                if parents is Parents.REQUIRE or not path.name:
                    raise
            parts = path.parts[:-1]
            known, here = self.longest_prefix(path, parts)
            if ".." in parts[known:]:
                raise translate(errno.ENOENT, path)
            found = None if known == len(parts) else entry(here, os.fsencode(parts[known]))
            if found is None:
                return here, parts[known:]
            if not stat.S_ISDIR(found.st_mode):
                # No directory can be created where a dangling link is.
                raise translate(errno.ENOTDIR, path)
            # Created by someone else in the meantime; look again.
        raise translate(errno.EAGAIN, path)

    def mkdirs(
        self, near: Handle, missing: tuple[str, ...], mark_dirty: Callable[[], None]
    ) -> tuple[Handle, list[CreatedDirectory]]:
        """Create the nested directories *missing*; returns the last one and those that were created.

        Calls *mark_dirty* if this fails and the created directories cannot be removed again.
        """
        created: list[CreatedDirectory] = []
        here = near
        try:
            for part in missing:
                name = os.fsencode(part)
                if self.resolver.excluded is not None:
                    self.resolver.excluded.require_name(here.fd, name)
                with suppress(FileExistsError):
                    os.mkdir(name, 0o777, dir_fd=here.fd)
                    created.append(CreatedDirectory(here, name))
                here = Handle(self.resolver.open(here.fd, name, PARENT | os.O_NOFOLLOW))
        except BaseException:
            if not remove_created(created):
                mark_dirty()
            raise
        return here, created

    def longest_prefix(self, path: ParsedPath, parts: tuple[str, ...]) -> tuple[int, Handle]:
        """Return how many of *parts* lead to an existing directory, and that directory."""
        directory = self.directory(path)
        for known in range(len(parts), 0, -1):
            prefix = os.fsencode("/".join(parts[:known]))
            try:
                return known, Handle(self.resolver.open(directory.fd, prefix, PARENT))
            except FileNotFoundError:
                continue
        return 0, directory

    def require_entry(self, parent: Handle, path: ParsedPath) -> FileInfo:
        """Return what exists at the last name; a slash after anything but a directory is refused."""
        found = os.stat(path.name, dir_fd=parent.fd, follow_symlinks=False)
        if path.must_dir and not stat.S_ISDIR(found.st_mode):
            raise translate(errno.ENOTDIR, path)
        if self.resolver.excluded is not None:
            self.resolver.excluded.require_movable(found)
        return info_of(self.display(path), found)

    def display(self, path: ParsedPath) -> str:
        """Return *path* as results and records show it."""
        if path.parts:
            return self._label + "/".join(path.parts)
        return self._label.rstrip("/") or self._label or "."

    def display_parents(self, path: ParsedPath, count: int) -> list[str]:
        """Return the last *count* directories above *path* as results show them, the outermost first."""
        return [self._label + parent for parent in parent_paths(path, count)]

    def prefix(self, path: ParsedPath) -> str:
        """Return the text that the displayed paths of entries in the directory *path* begin with."""
        return self._label + "/".join(path.parts) + "/" if path.parts else self._label


def remove_created(created: list[CreatedDirectory]) -> bool:
    """Remove directories that were created for a failed change; returns whether all of them are gone."""
    for directory in reversed(created):
        try:
            os.rmdir(directory.name, dir_fd=directory.parent.fd)
        except OSError:
            return False
    return True


def entry(parent: Handle, name: bytes) -> os.stat_result | None:
    """Return what exists at *name*, if anything; a link is not followed."""
    try:
        return os.stat(name, dir_fd=parent.fd, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _require_writable(parent: Handle, path: ParsedPath, before: os.stat_result, existing: Existing) -> None:
    if existing is Existing.REFUSE:
        raise translate(errno.EEXIST, path)
    if not stat.S_ISREG(before.st_mode):
        raise not_a_file_error(before, path)
    require_write_bit(before, path)
    is_ours = before.st_uid == os.geteuid() and before.st_mode & stat.S_IWUSR
    if not is_ours and not os.access(
        path.name, os.W_OK, dir_fd=parent.fd, effective_ids=True, follow_symlinks=False
    ):
        raise translate(errno.EACCES, path)
