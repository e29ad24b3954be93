"""`FilePrimitives`: the primitive operations on files in a container, and resolving links on the host.

A step is given the names that lead from the root to something, and follows no link. One that is in the way
is reported as `LinkInPath`, and `reach` decides where it leads: only the host does that, never the
container's kernel.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

from carrel.fs.api import Existing, Links
from carrel.fs.rules import DRAFT_PREFIX, MAX_LINKS, skip_missing

Parts = tuple[bytes, ...]
"""Names from the root on, and `..` where a caller wrote or a link says so."""
UP = b".."
_STEPS = 20_000
"""Most names that one path may become by its links."""

Result = TypeVar("Result")


class LinkInPath(NamedTuple):
    """A link was in the way."""

    at: int
    """How many names led to it, itself included."""
    text: bytes


class FoundEntry(NamedTuple):
    """What stands at a name."""

    stat: os.stat_result
    text: bytes | None = None
    """The text of a link."""
    writable: bool = False
    """Whether whoever acts for us may write it."""


class FileContent(NamedTuple):
    """A file and some of its content."""

    stat: os.stat_result
    data: bytes


class HeldFile(NamedTuple):
    """A file that something in the container keeps open for us."""

    stat: os.stat_result
    handle: bytes


class Copied(NamedTuple):
    """A file and the draft that has its content."""

    source: os.stat_result
    draft: os.stat_result


class ResolvedParts(NamedTuple, Generic[Result]):
    """What came of a step, and the names that led there without any link."""

    parts: Parts
    must_dir: bool
    """Whether a link at the end said that only a directory can be meant."""
    result: Result


class StoppedError(OSError):
    """A name on the way is missing or no directory."""

    def __init__(self, number: int, at: int) -> None:
        super().__init__(number, os.strerror(number))
        self.at = at
        """How many names led to it, itself included."""


class MissingNameError(StoppedError, FileNotFoundError):
    """There is nothing."""

    def __init__(self, at: int) -> None:
        super().__init__(errno.ENOENT, at)


class PlainNameError(StoppedError, NotADirectoryError):
    """There is something else than a directory."""

    def __init__(self, at: int) -> None:
        super().__init__(errno.ENOTDIR, at)


class ConcurrentChangeError(Exception):
    """Somebody in the container changed what was being used, so that it has to be looked at again."""


class FilePrimitives(Protocol):
    """Acts on names beneath one directory of a container; raises `OSError` with the number of the reason."""

    confinement: str

    def look(self, parts: Parts, links: Links) -> FoundEntry | LinkInPath | None:
        """What is there; `None` if only the last name is missing."""
        ...

    def read(self, parts: Parts, offset: int, count: int) -> FileContent | FoundEntry | LinkInPath:
        """A file and some of its content; what is no regular file is told as `FoundEntry`."""
        ...

    def list(self, parts: Parts, limit: int | None) -> list[tuple[bytes, os.stat_result]] | LinkInPath:
        """The entries of a directory in no order; more than *limit* need not be told all."""
        ...

    def hold(self, parts: Parts) -> HeldFile | FoundEntry | LinkInPath:
        """Keep a regular file open."""
        ...

    def read_held(self, held: HeldFile, offset: int, count: int) -> bytes:
        """Some content of a file that is kept open."""
        ...

    def drop(self, held: HeldFile) -> None:
        """Let go of a file that is kept open, soon."""
        ...

    def store(self, parts: Parts, data: bytes, mode: int | None, existing: Existing) -> os.stat_result:
        """Make a small file at once."""
        ...

    def begin(self, draft: bytes) -> os.stat_result:
        """Make an empty draft."""
        ...

    def add(self, draft: bytes, made: os.stat_result, data: bytes) -> os.stat_result:
        """Add to a draft."""
        ...

    def copy(self, parts: Parts, draft: bytes, most: int | None) -> Copied | FoundEntry | LinkInPath:
        """Make a draft with the content of a file, or at most so much of it."""
        ...

    def publish(
        self, draft: bytes, made: os.stat_result, parts: Parts, mode: int | None, existing: Existing
    ) -> os.stat_result:
        """Put a draft in its place."""
        ...

    def discard(self, draft: bytes) -> None:
        """Remove a draft, if it is there."""
        ...

    def append(self, parts: Parts, before: os.stat_result, data: bytes) -> os.stat_result:
        """Add to the file that was seen there."""
        ...

    def touch(self, parts: Parts, before: os.stat_result, modified_ns: int) -> os.stat_result:
        """Set the times of what was seen there."""
        ...

    def mkdirs(self, near: Parts, missing: Parts) -> None:
        """Make directories in the one at *near*, one in the other, or none."""
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
        """Remove a directory that holds no others, and what is in it."""
        ...

    def move(self, source: Parts, target: Parts, existing: Existing) -> None:
        """Rename; nothing is ever put inside of what is at the target."""
        ...

    def close(self) -> None:
        """Let go of what is held in the container."""
        ...


def resolve_links(
    step: Callable[[Parts], Result | LinkInPath], parts: Parts, *, must_dir: bool = False
) -> ResolvedParts[Result]:
    """Take *step* at the end of *parts*, through the links on the way as far as they stay inside.

    *step* only looks: where something is missing, it is taken again above that, to see whether the path
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
    """The same place without `..`, for names that are known to be directories and no links."""
    found: list[bytes] = []
    for name in parts:
        if name != UP:
            found.append(name)
        elif found:
            found.pop()
        else:
            raise os_error(errno.EXDEV)
    return tuple(found)


def os_error(number: int) -> OSError:
    """The error that a kernel would answer with."""
    return OSError(number, os.strerror(number))


def new_draft() -> bytes:
    """A name for a draft that nobody can guess."""
    return DRAFT_PREFIX + os.urandom(8).hex().encode()
