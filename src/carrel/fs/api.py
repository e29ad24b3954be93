"""The protocols `Files`, `Reader` and `Account`, and the options of file operations."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from carrel.fs.handle import Handle
from carrel.paths.parsed_path import ParsedPath
from carrel.values import Change, FileInfo, Limits, Named, Usage

if TYPE_CHECKING:
    from carrel.fs.local.external_changes import UnmediatedAccess


class Confinement(StrEnum):
    """Which way of resolving is in force."""

    KERNEL = "kernel"
    WALK = "walk"
    NONE = "none"
    """Not confined at all: for a policy that its operator switched off."""


class Links(Enum):
    """What a link at the end of a path stands for."""

    FOLLOW = "follow"
    KEEP = "keep"


class Existing(Enum):
    """What to do when the name is taken."""

    REFUSE = "refuse"
    REPLACE = "replace"


class OnUnreadable(Enum):
    """What a walk does with a directory that it may not enter."""

    SKIP = "skip"
    REFUSE = "refuse"


class Parents(Enum):
    """What to do when the directory above is missing."""

    REQUIRE = "require"
    MAKE = "make"


class Cause(NamedTuple):
    """What a write is recorded as."""

    operation: str = "write"
    source: str | None = None
    """The path of the file that is copied."""


WRITE = Cause()


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

    def record(
        self,
        operation: str,
        path: str,
        *,
        other: str | None = None,
        before_bytes: int | None = None,
        after_bytes: int | None = None,
    ) -> None:
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
    """One file of a tree that is read."""

    path: str
    chunks: Iterable[bytes]
    """Its content; raises when it is iterated, if it cannot be read."""


Wants = Callable[[str], bool]
"""Says about a name whether to go on with it."""
Enter = Callable[[FileInfo], bool]
"""Says about a directory whether a walk goes into it."""


class Reader(Protocol):
    """An open file; iterating gives its content by chunks."""

    info: FileInfo

    def chunks(self, chunk_bytes: int, offset: int = 0) -> Iterator[bytes]:
        """The content from *offset* on, at most *chunk_bytes* at a time; can be asked for once."""
        ...

    def read(self, length: int, offset: int = 0) -> bytes:
        """So much of the content from *offset* on, or what there is of it."""
        ...


class Files(Protocol):
    """Operations beneath one root that no path can leave.

    Every one raises errors of `carrel.errors` only: `EscapeError` for what leads out, `ClosedError` after
    `close`, and those that name what is in the way.
    """

    account: Account
    """Answers for every change."""

    @property
    def confinement(self) -> str:
        """How paths are kept inside: `kernel`, `walk` or `memory`."""
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
        """Content of a regular file, whole or a window of it; `LimitError` if it is more than *limit*."""
        ...

    def read_with_info(
        self, path: ParsedPath, /, *, limit: int | None, offset: int, length: int | None
    ) -> tuple[FileInfo, bytes]:
        """The same with what the file was just before: its version is never newer than the content."""
        ...

    def reader(self, path: ParsedPath, /) -> Reader:
        """Open a regular file to be read by chunks."""
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
        """Store *data* at once or not at all; with *expect*, only over that version."""
        ...

    def append(
        self, path: ParsedPath, /, data: bytes, *, limit: int | None, expect: str | None = None
    ) -> Change:
        """Add to a regular file that has no other name; *limit* is the size it may reach.

        With *expect*, only to that version, as everywhere: `ChangedError` if it is another one.
        """
        ...

    def touch(self, path: ParsedPath, /, modified_ns: int) -> FileInfo:
        """Set when a directory, or a file that has no other name, was changed last."""
        ...

    def stat(self, path: ParsedPath, /, links: Links) -> FileInfo:
        """What is there."""
        ...

    def list(self, path: ParsedPath, /, *, limit: int | None) -> builtins.list[FileInfo]:
        """The entries of a directory, sorted by name."""
        ...

    def names(self, path: ParsedPath, /, *, limit: int | None) -> Iterator[builtins.list[Named]]:
        """The names in a directory, each with its kind: by some hundreds at a time, in no order."""
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
        """Everything beneath a directory, parents first, never through a link.

        What is in a directory is left out if *enter* says no to it.
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
        """The regular files beneath a directory, names in order, never through a link.

        What is in a directory is left out if *enter* says no to its name, a file if *wants* does.
        """
        ...

    def mkdir(self, path: ParsedPath, /, *, parents: Parents) -> builtins.list[str]:
        """Make a directory; returns the paths of all that were made, none if it was there."""
        ...

    def link(self, path: ParsedPath, /, target: str, *, existing: Existing = Existing.REFUSE) -> None:
        """Make a link with the text *target*, which must not lead out."""
        ...

    def remove(self, path: ParsedPath, /, *, expect: str | None = None) -> FileInfo:
        """Remove a file, a link (never its target) or an empty directory; returns what it was."""
        ...

    def remove_tree(self, path: ParsedPath, /, *, expect: str | None = None) -> FileInfo:
        """Remove whatever is there, with everything in it; returns what it was."""
        ...

    def move(
        self, source: ParsedPath, /, target: ParsedPath, *, existing: Existing, expect: str | None = None
    ) -> FileInfo:
        """Rename within this root; returns what was moved, as it was."""
        ...

    def copy(
        self, source: ParsedPath, /, target: ParsedPath, *, existing: Existing, limit: int | None
    ) -> Change:
        """Copy one regular file of at most *limit* bytes within this root, making parents as needed."""
        ...

    def measure(self, limit: int | None = None) -> Usage:
        """Count everything, each inode once, whatever the depth; `LimitError` beyond *limit* entries."""
        ...

    def close(self) -> None:
        """End all use; reads go on, a change that is not being put in place yet raises `ClosedError`."""
        ...
