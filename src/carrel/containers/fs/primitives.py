"""`FilePrimitives`: the primitive operations on files in a container, and resolving links on the host.

A primitive takes the names that lead from the root to an entry, and follows no links. A link on the way is
returned as `LinkInPath`, and `resolve_links` decides where it leads: only the host resolves links, never the
container's kernel.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

from carrel.fs.api import Existing, Links
from carrel.fs.errors import os_error
from carrel.fs.rules import DRAFT_PREFIX, MAX_LINKS, skip_missing

Parts = tuple[bytes, ...]
"""Names beneath the root, and `..` from the caller or from a link."""
UP = b".."
_STEPS = 20_000
"""Maximum number of names that one path may expand to through its links."""

Result = TypeVar("Result")


class LinkInPath(NamedTuple):
    """A link on the way to the entry."""

    at: int
    """Number of names up to and including it."""
    text: bytes


class FoundEntry(NamedTuple):
    """An existing entry."""

    stat: os.stat_result
    text: bytes | None = None
    """The target text of a link."""
    writable: bool = False
    """Whether the user that acts in the container may write it."""


class FileContent(NamedTuple):
    """A file and some of its content."""

    stat: os.stat_result
    data: bytes


class HeldFile(NamedTuple):
    """A file kept open in the container."""

    stat: os.stat_result
    handle: bytes


class Copied(NamedTuple):
    """A file and a draft with its content."""

    source: os.stat_result
    draft: os.stat_result


class ResolvedParts(NamedTuple, Generic[Result]):
    """The result of a primitive, and the names without links that led there."""

    parts: Parts
    must_dir: bool
    """Whether a link at the end requires a directory."""
    result: Result


class StoppedError(OSError):
    """A name on the way is missing or not a directory."""

    def __init__(self, number: int, at: int) -> None:
        super().__init__(number, os.strerror(number))
        self.at = at
        """Number of names up to and including it."""


class MissingNameError(StoppedError, FileNotFoundError):
    """A name on the way is missing."""

    def __init__(self, at: int) -> None:
        super().__init__(errno.ENOENT, at)


class PlainNameError(StoppedError, NotADirectoryError):
    """A name on the way is not a directory."""

    def __init__(self, at: int) -> None:
        super().__init__(errno.ENOTDIR, at)


class ConcurrentChangeError(Exception):
    """A program in the container changed the entry during the operation, which must be repeated."""


class FilePrimitives(Protocol):
    """Operations on names beneath one directory of a container; they raise `OSError` with an errno."""

    confinement: str

    def stat(self, parts: Parts, links: Links) -> FoundEntry | LinkInPath | None:
        """Return the entry; `None` if only the last name is missing."""
        ...

    def read(self, parts: Parts, offset: int, count: int) -> FileContent | FoundEntry | LinkInPath:
        """Read part of a file; anything but a regular file is returned as `FoundEntry`."""
        ...

    def list(self, parts: Parts, limit: int | None) -> list[tuple[bytes, os.stat_result]] | LinkInPath:
        """List the entries of a directory in no order; may stop after more than *limit*."""
        ...

    def hold(self, parts: Parts) -> HeldFile | FoundEntry | LinkInPath:
        """Open a regular file and keep it open."""
        ...

    def read_held(self, held: HeldFile, offset: int, count: int) -> bytes:
        """Read part of a file that is kept open."""
        ...

    def drop(self, held: HeldFile) -> None:
        """Close a file that is kept open, soon."""
        ...

    def store(self, parts: Parts, data: bytes, mode: int | None, existing: Existing) -> os.stat_result:
        """Create or replace a small file in one step."""
        ...

    def begin(self, draft: bytes) -> os.stat_result:
        """Create an empty draft."""
        ...

    def add(self, draft: bytes, created: os.stat_result, data: bytes) -> os.stat_result:
        """Append to a draft."""
        ...

    def copy(self, parts: Parts, draft: bytes, max_bytes: int | None) -> Copied | FoundEntry | LinkInPath:
        """Create a draft with the content of a file, or with its first *max_bytes* bytes."""
        ...

    def publish(
        self, draft: bytes, created: os.stat_result, parts: Parts, mode: int | None, existing: Existing
    ) -> os.stat_result:
        """Move a draft to its target."""
        ...

    def discard(self, draft: bytes) -> None:
        """Remove a draft, if it exists."""
        ...

    def append(self, parts: Parts, before: os.stat_result, data: bytes) -> os.stat_result:
        """Append to the file, which must still be the one in *before*."""
        ...

    def touch(self, parts: Parts, before: os.stat_result, modified_ns: int) -> os.stat_result:
        """Set the times of the entry, which must still be the one in *before*."""
        ...

    def mkdirs(self, near: Parts, missing: Parts) -> None:
        """Create nested directories in *near*, all or none."""
        ...

    def link(self, parts: Parts, text: bytes, existing: Existing) -> None:
        """Create a link."""
        ...

    def unlink(self, parts: Parts) -> None:
        """Remove anything but a directory."""
        ...

    def rmdir(self, parts: Parts) -> None:
        """Remove an empty directory."""
        ...

    def purge(self, parts: Parts) -> None:
        """Remove a directory without subdirectories, and everything in it."""
        ...

    def move(self, source: Parts, target: Parts, existing: Existing) -> None:
        """Rename; never moves the source into a directory at the target."""
        ...

    def close(self) -> None:
        """Release everything that is held in the container."""
        ...


def resolve_links(
    step: Callable[[Parts], Result | LinkInPath], parts: Parts, *, must_dir: bool = False
) -> ResolvedParts[Result]:
    """Run *step* at the end of *parts*, through the links on the way as long as they stay inside.

    *step* must not change anything: if a name is missing, it is run again above that, to see whether the path
    leads out from there.
    """
    missing: OSError | None = None
    for _ in range(MAX_LINKS + 1):
        try:
            result = step(parts)
        except StoppedError as error:
            missing = missing or os_error(error.errno or errno.ENOENT)
            todo = list(reversed(parts[error.at :]))
            if not skip_missing(todo, UP):
                raise missing from None
            parts = (*collapse_parents(parts[: max(0, error.at - 1)]), *reversed(todo))
            continue
        if not isinstance(result, LinkInPath):
            if missing:
                raise missing
            return ResolvedParts(collapse_parents(parts), must_dir, result)
        if result.text.startswith(b"/"):
            raise os_error(errno.EXDEV)
        rest = parts[result.at :]
        if not rest and result.text.endswith((b"/", b"/.")):
            must_dir = True
        names = tuple(name for name in result.text.split(b"/") if name not in (b"", b"."))
        parts = (*collapse_parents(parts[: result.at - 1]), *names, *rest)
        if len(parts) > _STEPS:
            break
    raise missing or os_error(errno.ELOOP)


def collapse_parents(parts: Parts) -> Parts:
    """Return *parts* without `..`; the names must be known to be directories, not links."""
    found: list[bytes] = []
    for name in parts:
        if name != UP:
            found.append(name)
        elif found:
            found.pop()
        else:
            raise os_error(errno.EXDEV)
    return tuple(found)


def new_draft() -> bytes:
    """Return an unguessable name for a draft."""
    return DRAFT_PREFIX + os.urandom(8).hex().encode()
