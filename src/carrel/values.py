"""Frozen values shared by all layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    """A source of the current time."""

    def __call__(self) -> int:
        """Return nanoseconds since the epoch."""
        ...


class FileKind(StrEnum):
    """The kind of an entry in a workspace."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    OTHER = "other"
    """A FIFO, a socket or a device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    """Metadata of one entry; for a link, of the link itself and never of its target."""

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
    """Number of hard links."""
    inode: int
    target: str | None = None
    """The target text of a link; set by `stat` only."""
    host_bytes: int = 0
    """Size as reported by the host's file system, also for a directory."""
    blocks: int = 0
    """Blocks of 512 bytes allocated on the host's disk."""
    # Reading changes the first and only `stat` sets the second, so neither is compared.
    accessed_ns: int = field(default=0, compare=False)
    """Last access in nanoseconds since the epoch, as far as the host records it."""
    created_ns: int | None = field(default=None, compare=False)
    """Creation time in nanoseconds since the epoch; set by `stat` only, and not on every host.

    Writing new content creates a new file; only appending keeps it.
    """

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def version(self) -> str:
        """A token that changes when the content is replaced or modified.

        The version of a directory changes when an entry directly in it is created, removed or replaced.
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
"""A name in a directory and its kind: all that is known without a `stat` of each entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The effect of a write on one file."""

    before_bytes: int | None
    """Previous size, or `None` if the file is new."""
    info: FileInfo
    """The file after the change."""
    made: tuple[str, ...] = ()
    """Directories that were created for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one workspace; `None` means no limit."""

    disk_bytes: int | None = 100 * MIB
    """Sum of the sizes of all files, each inode once."""
    entries: int | None = 100_000
    """Files, directories, links and anything else."""
    file_bytes: int | None = 100 * MIB
    """Size of the largest file that may be written."""
    read_bytes: int | None = 100 * MIB
    """Most bytes that one read returns; larger files are read in chunks or windows."""
    scan_bytes: int | None = 1024 * MIB
    """Size of the largest file whose lines are counted, which reads every byte."""
    list_entries: int | None = 100_000
    """Most entries of one directory in a listing."""
    walk_entries: int | None = 1_000_000
    """Most entries that one walk, glob, search or count visits."""
    depth: int | None = 64
    """Most directory levels of a path that is created, and of a walk."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None and (type(value) is not int or value < 0):
                raise ValueError(f"{each.name} must be a whole number of at least 0 or None, not {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Disk usage of a workspace."""

    disk_bytes: int
    """Sum of the sizes of all files, each inode once."""
    entries: int
    """Files, directories, links and anything else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineWindow:
    """A range of lines of a text file."""

    text: str
    """The lines exactly as in the file, line ends included."""
    start: int
    """Number of the first line returned, counted from 1."""
    count: int
    """Number of lines in `text`."""
    size_bytes: int
    """Size of these lines in the file, in bytes."""
    total_lines: int
    next_start: int | None
    """First line of the next window, or `None` at the end of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """The effect of an edit."""

    replacements: int
    diff: str
    """Unified diff of the change."""
    before_bytes: int
    info: FileInfo
    """The file after the change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """One line that matched a search."""

    path: str
    line: int
    """Counted from 1."""
    column: int
    """First character of the match in its line, counted from 1."""
    text: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


class Position(NamedTuple):
    """Where to resume a search that stopped early."""

    path: str
    line: int
    """Counted from 1; 0 for the whole file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The matches of a search, and whether it was complete."""

    matches: tuple[Match, ...]
    truncated: bool
    reason: str | None
    """The budget that stopped the search: `matches`, `files`, `bytes`, `time` or `entries`."""
    files_searched: int
    files_skipped: int
    """Binary, too large or unreadable files."""
    next: Position | None = None
    """Where to resume, if the search stopped early."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """Output of a command or of code that a tool runs, as it arrives."""

    stream: str
    """`stdout` or `stderr`."""
    data: bytes
    """A piece, which may end within a line or a character."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolImage:
    """An image that belongs to a result: one that was read, or a plot that a run created."""

    path: str
    media_type: str
    """`image/png`, `image/jpeg`, `image/gif` or `image/webp`."""
    size_bytes: int
    width: int
    """In pixels."""
    height: int
    """In pixels."""
    data: str
    """The file as base64."""

    @property
    def data_url(self) -> str:
        """The image as a URL."""
        return f"data:{self.media_type};base64,{self.data}"


class _Blocks(NamedTuple):
    """How one provider names blocks of content."""

    text: str
    """Type of a block of text."""
    image: Callable[[ToolImage], dict[str, Any]]
    """Renders an image."""


_BLOCKS = {
    "json": _Blocks(
        "text", lambda image: {"type": "image", "media_type": image.media_type, "data": image.data}
    ),
    "openai": _Blocks("text", lambda image: {"type": "image_url", "image_url": {"url": image.data_url}}),
    "openai-responses": _Blocks(
        "input_text",
        lambda image: {"type": "input_image", "detail": "auto", "image_url": image.data_url},
    ),
    "anthropic": _Blocks(
        "text",
        lambda image: {
            "type": "image",
            "source": {"type": "base64", "media_type": image.media_type, "data": image.data},
        },
    ),
    "mcp": _Blocks("text", lambda image: {"type": "image", "data": image.data, "mimeType": image.media_type}),
}
"""By format; the names are those of the formats of tool definitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The result of one tool call, or why it failed.

    Everything in it can be encoded as JSON, and nothing in it reveals anything about the host.
    """

    success: bool
    output: Any = None
    """The result of a tool for agents; any JSON value."""
    data: Any = None
    """The result of a file operation, instead of `output`."""
    error: str | None = None
    """What went wrong, and what to do next."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Further facts: paths, sizes, versions, changes, the code of an error."""
    model_text: str | None = None
    """What a model reads instead of `output` or `data`, if that is data for programs."""
    images: tuple[ToolImage, ...] = ()
    """Images that a model sees after the text, if the client can show them."""

    @property
    def code(self) -> str | None:
        """The stable error code, or `None` if the call succeeded."""
        code = self.metadata.get("code")
        return None if code is None else str(code)

    def to_dict(self) -> dict[str, Any]:
        """Return the envelope: `success`, `output` or `data`, `model_text`, `images`, `error`, `metadata`.

        `model_text`, `images` and `error` are left out if there are none.
        """
        document: dict[str, Any] = {"success": self.success}
        if self.data is not None:
            document["data"] = self.data
        elif self.success or self.output is not None:
            document["output"] = self.output
        if self.model_text is not None:
            document["model_text"] = self.model_text
        if self.images:
            document["images"] = [_image_document(image) for image in self.images]
        if self.error is not None:
            document["error"] = self.error
        document["metadata"] = dict(self.metadata)
        return document

    def to_json(self) -> str:
        """Return the envelope as one line of ASCII JSON."""
        import json

        return json.dumps(self.to_dict(), allow_nan=False)

    def text(self) -> str:
        """Return what a model reads.

        That is the `model_text`, else the output as text or JSON; then the line `note` of the metadata, which
        says what is missing and how to get it, and the error if the call failed.
        """
        text = self._payload_text() if self.model_text is None else self.model_text
        for line in (self.metadata.get("note"), self.error):
            if line:
                separator = "\n" if text and not text.endswith("\n") else ""
                text = f"{text}{separator}{line}"
        # JSON can hold lone surrogates, which UTF-8 cannot.
        return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")

    def content(self, format: str = "json") -> list[dict[str, Any]]:
        """Return what a model sees as content blocks: the text, then the images.

        Providers reject empty texts, so a result without any says that.

        Args:
            format: `openai` (Chat Completions), `openai-responses`, `anthropic`, `mcp`, or `json` for blocks
                of no provider.

        Raises:
            ValueError: There is no such format.
        """
        blocks = _BLOCKS.get(str(format))
        if blocks is None:
            raise ValueError(f"format must be one of {', '.join(_BLOCKS)}, not {format!r}")
        text = {"type": blocks.text, "text": self.text() or "[Empty]"}
        return [text, *map(blocks.image, self.images)]

    def _payload_text(self) -> str:
        payload = self.output if self.data is None else self.data
        if payload is None or isinstance(payload, str):
            return payload or ""
        import json

        return json.dumps(payload, ensure_ascii=False, allow_nan=False)


def _image_document(image: ToolImage) -> dict[str, Any]:
    return {each.name: getattr(image, each.name) for each in fields(image)}
