"""`WriteTarget`: where a write in a container goes, resolved before anything is created."""

from __future__ import annotations

import errno
import os
import stat
from typing import NamedTuple

from carrel.containers.fs.primitives import (
    ConcurrentChangeError,
    FoundEntry,
    LinkInPath,
    Parts,
    ResolvedParts,
    resolve_links,
)
from carrel.containers.fs.reading import ContainerReading, encoded
from carrel.errors import CarrelError, PathError
from carrel.fs import rules
from carrel.fs.api import Existing, Links, Parents
from carrel.fs.errors import changed_error, not_a_file_error, os_error, translate, translated
from carrel.fs.rules import MAX_LINKS, require_write_bit, version_of
from carrel.paths.parsed_path import ParsedPath, link_destination


class WriteTarget(NamedTuple):
    """Where a write goes, and what exists there."""

    path: ParsedPath
    near: Parts
    """The names of the parent directory, or of the deepest directory on the way to it that exists."""
    missing: tuple[str, ...]
    """The names of the directories between `near` and the target that do not exist."""
    before: FoundEntry | None

    @property
    def parts(self) -> Parts:
        """The names that lead to it, once all directories exist."""
        return (*self.near, *map(os.fsencode, self.missing), self.path.name)


class ContainerLookup(ContainerReading):
    """Lookup of names that need not exist."""

    @translated
    def _entry(self, path: ParsedPath) -> ResolvedParts[FoundEntry | None]:
        """Look up the last name of *path*, whose directory must exist."""
        primitives = self._require_open(path)
        if not path.name:
            self._require_inside(path)
            raise PathError(f"path {path.requested!r} does not end in a name", path=path.requested)
        return resolve_links(lambda parts: primitives.stat(parts, Links.KEEP), encoded(path))

    def _require_inside(self, path: ParsedPath) -> None:
        """Raise EXDEV for a path that leads out, and ignore any other problem with it."""
        try:
            self._directory(path, encoded(path))
        except OSError as error:
            if error.errno == errno.EXDEV or isinstance(error, CarrelError):
                raise

    def _require_entry(self, path: ParsedPath, expect: str | None) -> tuple[Parts, FoundEntry]:
        """Return what exists at the last name; a slash after anything but a directory is refused."""
        resolved = self._entry(path)
        found = resolved.result
        if found is None:
            raise os_error(errno.ENOENT)
        if path.must_dir and not stat.S_ISDIR(found.stat.st_mode):
            raise os_error(errno.ENOTDIR)
        require_version(path, found, expect)
        return resolved.parts, found

    @translated
    def _target(self, path: ParsedPath, existing: Existing, parents: Parents) -> WriteTarget:
        """Find where a write to *path* goes, through links at its end; nothing is created."""
        for _ in range(MAX_LINKS + 1):
            if path.must_dir and path.name:
                self._require_inside(path)
                raise os_error(errno.EISDIR)
            near, missing, before = self._nearest(path, parents)
            if before is None or existing is Existing.REFUSE or before.text is None:
                _require_writable(before, path, existing)
                return WriteTarget(path, near, missing, before)
            path = link_destination(path, os.fsdecode(before.text))
            if path.absolute:
                raise os_error(errno.EXDEV)
            if path.dotted:
                self._directory(path, encoded(path))
                raise os_error(errno.EISDIR)
        raise os_error(errno.ELOOP)

    def _nearest(
        self, path: ParsedPath, parents: Parents
    ) -> tuple[Parts, tuple[str, ...], FoundEntry | None]:
        """Return the parent directory of *path*, or the deepest one that exists and the missing names.

        The third value is the entry at the last name, if its directory exists.
        """
        try:
            resolved = self._entry(path)
        except FileNotFoundError:
            if parents is Parents.REQUIRE or not path.name:
                raise
        else:
            return resolved.parts[:-1], (), resolved.result
        parts = path.parts[:-1]
        known, here = self._longest_prefix(path, parts)
        if ".." in parts[known:]:
            raise os_error(errno.ENOENT)
        if known == len(parts):
            raise ConcurrentChangeError
        found = self._require_open(path).stat((*here, os.fsencode(parts[known])), Links.KEEP)
        if found is None:
            return here, parts[known:], None
        if isinstance(found, LinkInPath) or stat.S_ISDIR(found.stat.st_mode):
            raise ConcurrentChangeError
        # No directory can be created where a dangling link is.
        raise os_error(errno.ENOTDIR)

    def _longest_prefix(self, path: ParsedPath, parts: tuple[str, ...]) -> tuple[int, Parts]:
        """Return how many of *parts* lead to an existing directory, and its names; one part is missing."""
        low, high = 0, len(parts)
        here: Parts = ()
        while low < high:
            middle = (low + high + 1) // 2
            try:
                here = self._directory(path, tuple(map(os.fsencode, parts[:middle])))
                low = middle
            except FileNotFoundError:
                high = middle - 1
        return low, here


def require_version(path: ParsedPath, found: FoundEntry | None, expect: str | None) -> None:
    """Refuse another version than the expected one."""
    version = version_of(found.stat if found else None)
    if expect is not None and version != expect:
        raise changed_error(path, version)


def _require_writable(before: FoundEntry | None, path: ParsedPath, existing: Existing) -> None:
    if before is None:
        return
    if existing is Existing.REFUSE:
        raise os_error(errno.EEXIST)
    if not stat.S_ISREG(before.stat.st_mode):
        raise not_a_file_error(before.stat, path)
    require_write_bit(before.stat, path)
    if not before.writable:
        raise translate(errno.EACCES, path)


def freed_bytes(found: FoundEntry | None) -> int:
    """Return the bytes to credit when the name of *found* is removed."""
    return rules.freed_bytes(found.stat if found else None)
