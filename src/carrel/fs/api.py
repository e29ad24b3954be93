"""The protocols `Files`, `Reader` and `Account`, and the options of file operations."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypedDict, Unpack

from carrel.fs.handle import Handle
from carrel.paths.parsed_path import ParsedPath
from carrel.values import Change, FileInfo, Limits, Named, Usage

if TYPE_CHECKING:
    from carrel.fs.local.external_changes import UnmediatedAccess


class Confinement(StrEnum):
    """How paths are kept inside a root."""

    KERNEL = "kernel"
    WALK = "walk"
    NONE = "none"
    """Not confined at all: for a policy that the operator disabled."""


class Links(Enum):
    """Whether to follow a link at the end of a path."""

    FOLLOW = "follow"
    KEEP = "keep"


class Existing(Enum):
    """What to do if the target exists."""

    REFUSE = "refuse"
    REPLACE = "replace"


class OnUnreadable(Enum):
    """What a walk does with a directory that it cannot read."""

    SKIP = "skip"
    REFUSE = "refuse"


class Parents(Enum):
    """What to do if the parent directory is missing."""

    REQUIRE = "require"
    MAKE = "make"


class Cause(NamedTuple):
    """How a write is recorded in the journal."""

    operation: str = "write"
    source: str | None = None
    """The path of the source, for a copy."""


WRITE = Cause()


class ChangeDetails(TypedDict, total=False):
    """What the record of a change holds besides its operation and path."""

    other: str | None
    """Target of a move or a copy, or the text of a link."""
    before_bytes: int | None
    """Size of the file before the change, if there was one."""
    after_bytes: int | None
    """Size of the file after the change, if there is one."""


class Account(Protocol):
    """Charges quota for, and records, every change of one tree.

    A tree changes only inside `with account:`, which one caller holds at a time. Inside, a change is charged,
    recorded, prepared and then carried out, in that order. If any step before the last raises, nothing has
    changed.
    """

    def __enter__(self) -> Account: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None: ...

    def charge(self, more_bytes: int, more_entries: int, *, inode: int = 0) -> None:
        """Charge bytes and entries, or credit them if negative; *inode* will be at the recorded path.

        Raises:
            QuotaError: The quota would be exceeded.
            DiskLowError: The host's disk has too little free space.
        """
        ...

    def record(self, operation: str, path: str, **details: Unpack[ChangeDetails]) -> None:
        """Add one record about the change to the journal."""
        ...

    def prepare(self) -> None:
        """Write the pending records; the change itself comes next.

        Raises:
            DiskError: The records cannot be written.
        """
        ...

    def flush_on_exit(self, *handles: Handle) -> None:
        """Flush the changed directories and files on exit, if the durability level requires it."""
        ...

    def flush(self, fd: int) -> None:
        """Flush the content of an open file, if the durability level requires it."""
        ...

    def mark_dirty(self) -> None:
        """Mark the usage as unknown, so that the tree is counted again."""
        ...

    def defer_release(self) -> int:
        """Announce a removal whose usage is released later; returns the mark to pass to `release`."""
        ...

    def release(self, mark: int, freed: Usage) -> None:
        """Credit what a removal freed; must not be called inside `with account:`."""
        ...

    def require_room(self, more_bytes: int, more_entries: int = 0, *, drafted_bytes: int = 0) -> None:
        """Check the quota without charging anything; may be called inside or outside `with account:`.

        Unfinished writes of others count too; *drafted_bytes* is the caller's own part of them.

        Raises:
            QuotaError: The quota would be exceeded.
            DiskLowError: The host's disk has too little free space.
        """
        ...


class Content(NamedTuple):
    """One file of a tree, with its content."""

    path: str
    chunks: Iterable[bytes]
    """The content; iterating raises an error if the file cannot be read."""


Wants = Callable[[str], bool]
"""Returns for a name whether to include it."""
Enter = Callable[[FileInfo], bool]
"""Returns for a directory whether a walk enters it."""


class Reader(Protocol):
    """An open file."""

    info: FileInfo

    def chunks(self, chunk_bytes: int, offset: int = 0) -> Iterator[bytes]:
        """Yield the content from *offset* on, at most *chunk_bytes* at a time; can be called once."""
        ...

    def read(self, length: int, offset: int = 0) -> bytes:
        """Read at most *length* bytes at *offset*."""
        ...


class Files(Protocol):
    """File operations beneath one root that no path can leave.

    Every operation raises only errors of `carrel.errors`: `EscapeError` for a path that leads out,
    `ClosedError` after `close`, and errors that name the problem.
    """

    account: Account
    """Charges and records every change."""

    @property
    def confinement(self) -> str:
        """How paths are kept inside: `kernel`, `walk`, `memory` or another name of the implementation."""
        ...

    def subtree(self, names: tuple[str, ...]) -> Files:
        """Return the files beneath the directory *names*, which need not exist yet.

        Raises:
            UnavailableError: The files are not on the host's disk.
        """
        ...

    def host_path(self, path: ParsedPath, /) -> str:
        """Return the current path on the host; the entry need not exist.

        Raises:
            UnavailableError: The files are not on the host's disk.
        """
        ...

    def unmediated_access(self) -> UnmediatedAccess | None:
        """Return the operations for programs that bypass `Files`; `None` if it is not a host directory."""
        ...

    def read(self, path: ParsedPath, /, *, limit: int | None, offset: int, length: int | None) -> bytes:
        """Read a regular file, whole or a window of it; `LimitError` if that is more than *limit* bytes."""
        ...

    def read_with_info(
        self, path: ParsedPath, /, *, limit: int | None, offset: int, length: int | None
    ) -> tuple[FileInfo, bytes]:
        """Read a file like `read`, and return its info from just before, never newer than the content."""
        ...

    def reader(self, path: ParsedPath, /) -> Reader:
        """Open a regular file for reading in chunks."""
        ...

    def write(
        self,
        path: ParsedPath,
        /,
        data: bytes | Iterable[bytes],
        *,
        existing: Existing,
        parents: Parents,
        expect: str | None = None,
        mode: int | None = None,
        cause: Cause = WRITE,
    ) -> Change:
        """Store *data* completely or not at all; with *expect*, only over that version."""
        ...

    def append(
        self, path: ParsedPath, /, data: bytes, *, limit: int | None, expect: str | None = None
    ) -> Change:
        """Append to a regular file that has no other name; *limit* is the size that it may reach.

        With *expect*, here and below, the file must have that version; otherwise `ChangedError` is raised.
        """
        ...

    def touch(self, path: ParsedPath, /, modified_ns: int) -> FileInfo:
        """Set the modification time of a directory, or of a file that has no other name."""
        ...

    def stat(self, path: ParsedPath, /, links: Links) -> FileInfo:
        """Return the info of one entry."""
        ...

    def list(self, path: ParsedPath, /, *, limit: int | None) -> builtins.list[FileInfo]:
        """List the entries of a directory, sorted by name."""
        ...

    def names(self, path: ParsedPath, /, *, limit: int | None) -> Iterator[builtins.list[Named]]:
        """List the names in a directory with their kinds, in batches of some hundreds, in no order."""
        ...

    def walk(
        self,
        path: ParsedPath,
        /,
        limits: Limits,
        *,
        unreadable: OnUnreadable = OnUnreadable.SKIP,
        enter: Enter | None = None,
    ) -> Iterator[FileInfo]:
        """Walk everything beneath a directory, parents first, never through a link.

        The content of a directory is skipped if *enter* returns false for it.
        """
        ...

    def read_tree(
        self,
        path: ParsedPath,
        /,
        limits: Limits,
        *,
        enter: Wants | None,
        wants: Wants | None,
        chunk_bytes: int,
    ) -> Iterator[Content]:
        """Read the regular files beneath a directory, in order of their names, never through a link.

        A directory is skipped if *enter* returns false for its name, a file if *wants* does.
        """
        ...

    def mkdir(self, path: ParsedPath, /, *, parents: Parents) -> builtins.list[str]:
        """Create a directory; returns the paths of all that were created, none if it existed."""
        ...

    def link(self, path: ParsedPath, /, target: str, *, existing: Existing = Existing.REFUSE) -> None:
        """Create a link with the text *target*, which must not lead out."""
        ...

    def remove(self, path: ParsedPath, /, *, expect: str | None = None) -> FileInfo:
        """Remove a file, a link (never its target) or an empty directory; returns its last info."""
        ...

    def remove_tree(self, path: ParsedPath, /, *, expect: str | None = None) -> FileInfo:
        """Remove an entry and everything in it; returns its last info."""
        ...

    def move(
        self, source: ParsedPath, /, target: ParsedPath, *, existing: Existing, expect: str | None = None
    ) -> FileInfo:
        """Rename within this root; returns the info from before the move."""
        ...

    def copy(
        self, source: ParsedPath, /, target: ParsedPath, *, existing: Existing, limit: int | None
    ) -> Change:
        """Copy one regular file of at most *limit* bytes within this root, creating parents as needed."""
        ...

    def measure(self, limit: int | None = None) -> Usage:
        """Count everything, each inode once, at any depth; `LimitError` beyond *limit* entries."""
        ...

    def close(self) -> None:
        """End all use; running reads finish, and a change not yet being published raises `ClosedError`."""
        ...
