"""Frozen values shared by all layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum, StrEnum
from typing import Any, Final, NamedTuple, Protocol

MIB = 2**20


class Unset(Enum):
    """The type of `UNSET`."""

    UNSET = "unset"


UNSET: Final = Unset.UNSET
"""Default of parameters for which `None` means something: the argument was not given."""


class Clock(Protocol):
    """Where the time comes from."""

    def __call__(self) -> int:
        """Nanoseconds since the epoch."""
        ...


class FileKind(StrEnum):
    """What a name in a workspace stands for."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    OTHER = "other"
    """A FIFO, a socket or a device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    """What is known about one entry; a link speaks of itself, never of its target."""

    path: str
    """Relative to the workspace, or absolute beneath an allowed path."""
    kind: FileKind
    size_bytes: int
    """0 for a directory."""
    modified_ns: int
    """Nanoseconds since the epoch."""
    mode: int
    """Permission bits, at most 0o777."""
    links: int
    """How many names the entry has on its file system."""
    inode: int
    target: str | None = None
    """The text of a link, where it was asked for by `stat`."""
    host_bytes: int = 0
    """Its size as the host's file system tells it, also that of a directory."""
    blocks: int = 0
    """How many times 512 bytes it takes on the host's disk."""
    # Reading moves the first of these and only `stat` tells the second, so neither makes two infos differ.
    accessed_ns: int = field(default=0, compare=False)
    """When it was read last, as far as the host keeps count of that; nanoseconds since the epoch."""
    created_ns: int | None = field(default=None, compare=False)
    """When it was made, told by `stat` only and not on every host; nanoseconds since the epoch.

    Storing new content makes a file anew; only appending keeps it.
    """

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def version(self) -> str:
        """A mark that differs when the content was replaced or changed.

        That of a directory differs when a name in it was made, removed or replaced, not when something
        deeper was.
        """
        return f"{self.inode:x}-{self.size_bytes:x}-{self.modified_ns:x}"

    @property
    def is_file(self) -> bool:
        """Whether this is a regular file."""
        return self.kind is FileKind.FILE

    @property
    def is_directory(self) -> bool:
        """Whether this is a directory."""
        return self.kind is FileKind.DIRECTORY


Named = tuple[str, FileKind]
"""A name in a directory, and what it stands for: all that can be told without looking at each entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a write did to one file."""

    before_bytes: int | None
    """Size of what was there, or `None` if the file is new."""
    info: FileInfo
    """The file as it is now."""
    made: tuple[str, ...] = ()
    """Directories that were made for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Ceilings for one workspace; `None` means no ceiling."""

    disk_bytes: int | None = 100 * MIB
    """Sum of the sizes of all files, each inode once."""
    entries: int | None = 100_000
    """Files, directories, links and anything else."""
    file_bytes: int | None = 100 * MIB
    """Size of the largest file that may be written."""
    read_bytes: int | None = 100 * MIB
    """Most bytes that one read returns; larger files are read by chunks or by window."""
    scan_bytes: int | None = 1024 * MIB
    """Size of the largest file whose lines are counted, which looks at every byte."""
    list_entries: int | None = 100_000
    """Most entries of one directory in a listing."""
    walk_entries: int | None = 1_000_000
    """Most entries that one walk, glob, search or count visits."""
    depth: int | None = 64
    """Most directory levels of a path that is made, and of a walk."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None and (type(value) is not int or value < 0):
                raise ValueError(f"{each.name} must be a whole number of at least 0 or None, not {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a workspace holds."""

    disk_bytes: int
    """Sum of the sizes of all files, each inode once."""
    entries: int
    """Files, directories, links and anything else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineWindow:
    """Some lines of a text file."""

    text: str
    """The lines as they stand in the file, line ends included."""
    start: int
    """Number of the first line returned, counted from 1."""
    count: int
    """How many lines `text` holds."""
    size_bytes: int
    """How many bytes of the file they are."""
    total_lines: int
    next_start: int | None
    """Where the next window begins, or `None` at the end of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """What an edit did."""

    replacements: int
    diff: str
    """Unified diff of the change."""
    before_bytes: int
    info: FileInfo
    """The file as it is now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """One line that a search found."""

    path: str
    line: int
    """Counted from 1."""
    column: int
    """First character of the match in its line, counted from 1."""
    text: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


class Position(NamedTuple):
    """Where a search that ended goes on."""

    path: str
    line: int
    """Counted from 1; 0 for the whole file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """What a search found, and whether that is all there is."""

    matches: tuple[Match, ...]
    truncated: bool
    reason: str | None
    """Which budget ended the search: `matches`, `files`, `bytes`, `time` or `entries`."""
    files_searched: int
    files_skipped: int
    """Binary, too large or unreadable files."""
    next: Position | None = None
    """Where to go on, if it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What one call of a tool did, or why it did not.

    Everything in it can be written as JSON, and nothing in it is about the host.
    """

    success: bool
    output: Any = None
    """What the tools for agents give; whatever JSON can say."""
    data: Any = None
    """What the filesystem operations give, instead of `output`."""
    error: str | None = None
    """What is wrong, and what to do next."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What else is to be known: paths, sizes, versions, changes, the code of an error."""

    @property
    def code(self) -> str | None:
        """The stable code of the error."""
        code = self.metadata.get("code")
        return None if code is None else str(code)

    def to_dict(self) -> dict[str, Any]:
        """The envelope: `success`, `output` or `data`, `error` if it failed, `metadata`."""
        document: dict[str, Any] = {"success": self.success}
        if self.data is not None:
            document["data"] = self.data
        elif self.success or self.output is not None:
            document["output"] = self.output
        if self.error is not None:
            document["error"] = self.error
        document["metadata"] = dict(self.metadata)
        return document

    def to_json(self) -> str:
        """The envelope on one line of ASCII."""
        import json

        return json.dumps(self.to_dict(), allow_nan=False)

    def text(self) -> str:
        """What a model reads: the output as it is if it is a text, else as JSON; of a failure both."""
        payload = self.output if self.data is None else self.data
        if payload is None or isinstance(payload, str):
            said = payload or ""
        else:
            import json

            said = json.dumps(payload, ensure_ascii=False, allow_nan=False)
        text = "\n".join(part for part in (said, self.error) if part)
        # Half a surrogate, which JSON can name, cannot be written as UTF-8.
        return text.encode("utf-8", "backslashreplace").decode("utf-8")
