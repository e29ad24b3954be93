"""Find files by pattern, and lines by a regular expression in linear time, within a budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from carrel.errors import CarrelError, LimitError, LoopError, MissingError, NotDirectoryError, PatternError
from carrel.fs.api import Content, Files, Links, Wants
from carrel.paths.glob import Pattern
from carrel.paths.parsed_path import ParsedPath
from carrel.values import MIB, FileInfo, FileKind, Limits, Match, Position, SearchResult
from carrel.workspace.chunks import CHUNK_BYTES
from carrel.workspace.text import line_start

if TYPE_CHECKING:
    import re2


def is_hidden(path: str) -> bool:
    """Whether any name in *path* starts with a dot."""
    return path.startswith(".") or "/." in path


def matching(files: Files, top: ParsedPath, pattern: Pattern | None, limits: Limits) -> Iterator[FileInfo]:
    """Yield everything beneath *top* that matches *pattern*, if given; nothing if *top* is missing."""
    try:
        found = files.walk(top, limits)
    except (MissingError, NotDirectoryError, LoopError):
        return
    for info in found:
        if pattern is None or pattern.matches(info.path):
            yield info


def below(top: FileInfo, info: FileInfo) -> str:
    """Return the path of *info* relative to *top*."""
    return info.path if top.path == "." else info.path[len(top.path.rstrip("/")) + 1 :]


def searchable(
    files: Files,
    path: ParsedPath,
    patterns: Sequence[Pattern],
    limits: Limits,
    *,
    hidden: bool,
    wants: Wants | None = None,
) -> Iterator[Content]:
    """Yield the regular files to search at or beneath *path*.

    They match one of *patterns* relative to *path*, if there are any, and *wants* is true for their names.
    """
    top = files.stat(path, Links.FOLLOW)
    if top.kind is not FileKind.DIRECTORY:
        yield Content(top.path, _read(files, path))
        return
    skip = 0 if top.path == "." else len(top.path.rstrip("/")) + 1
    is_by_name = all(pattern.anywhere for pattern in patterns)
    for content in files.read_tree(
        path,
        limits,
        enter=None if hidden else _is_shown,
        wants=_name_filter(patterns, wants, hidden=hidden),
        chunk_bytes=CHUNK_BYTES,
    ):
        if is_by_name or any(pattern.matches(content.path[skip:]) for pattern in patterns):
            yield content


def _read(files: Files, path: ParsedPath) -> Iterator[bytes]:
    yield from files.reader(path).chunks(CHUNK_BYTES)


def _is_shown(name: str) -> bool:
    return not name.startswith(".")


def _name_filter(patterns: Sequence[Pattern], wants: Wants | None, *, hidden: bool) -> Wants | None:
    """Return a filter that excludes files by their name alone, before they are read."""
    if hidden and wants is None and not patterns:
        return None

    def is_wanted(name: str) -> bool:
        return (
            (hidden or not name.startswith("."))
            and (wants is None or wants(name))
            and (not patterns or any(pattern.matches_name(name) for pattern in patterns))
        )

    return is_wanted


QUERY_CHARACTERS = 1000
"""Maximum length of a query in characters."""
CONTEXT_LINES = 20
"""Maximum number of context lines on each side of a match."""
BINARY_BYTES = 8192
"""A file with a NUL among this many first bytes is binary."""
SMALL_BYTES = 2**12
"""Contents up to this size, in bytes, are searched for plain text faster without RE2."""
_WALK_LIMITS = frozenset({"limit.depth", "limit.list_entries", "limit.walk_entries"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchBudget:
    """Limits at which a search ends as `truncated`."""

    matches: int = 1000
    """Maximum number of lines that are returned."""
    files: int = 10_000
    """Maximum number of files that are searched."""
    file_bytes: int = 10 * MIB
    """Larger files are skipped."""
    total_bytes: int = 512 * MIB
    """Maximum number of bytes that are searched."""
    seconds: float = 10.0
    """Maximum time, checked before each file and periodically within one."""
    line_characters: int = 1000
    """Longer lines are cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Text or regular expression to search for."""

    text: str
    regex: bool = True
    ignore_case: bool = False
    context: int = 0
    """Number of context lines before and after each match."""

    def compile(self) -> Callable[[bytes, int], Iterable[int]]:
        """Return a function that yields the offset of the first match in each line, from an offset on.

        No match spans lines, and further matches in a line cost nothing.

        Raises:
            PatternError: The query is empty, too long or not a valid RE2 expression.
        """
        import re2

        if not self.text:
            raise PatternError("the search query is empty")
        if len(self.text) > QUERY_CHARACTERS:
            raise PatternError(
                f"the search query is too long: {len(self.text)} characters, the limit is {QUERY_CHARACTERS}"
            )
        if not 0 <= self.context <= CONTEXT_LINES:
            raise ValueError(f"context must be from 0 to {CONTEXT_LINES} lines, not {self.context}")
        options = re2.Options()
        options.log_errors = False
        options.never_nl = True
        options.never_capture = True
        options.literal = not self.regex
        options.case_sensitive = not self.ignore_case
        try:
            text = self.text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            problem = "the search query contains an unpaired surrogate, which no file can hold"
            raise PatternError(problem) from None
        try:
            pattern = re2.compile(b"(?m)" + text if self.regex else text, options)
        except re2.error as error:
            problem = _reason(error)
        else:
            lacks = self._lacks(text)
            return lambda content, start: () if lacks(content) else _firsts(pattern, content, start)
        raise PatternError(f"invalid regular expression {self.text[:80]!r}: {problem}")

    def _lacks(self, text: bytes) -> Callable[[bytes], bool]:
        """Return a fast test that is true only for contents without a match."""
        if self.regex or not text.isascii():
            return lambda content: False
        if not self.ignore_case:
            return lambda content: len(content) <= SMALL_BYTES and text not in content
        lowered = text.lower()
        # Beyond ASCII, RE2 folds more cases than `lower` does.
        return lambda content: (
            len(content) <= SMALL_BYTES and content.isascii() and lowered not in content.lower()
        )


def _firsts(pattern: re2._Regexp[bytes], content: bytes, start: int) -> Iterator[int]:
    while (match := pattern.search(content, start)) is not None:
        yield match.start()
        end = content.find(b"\n", match.start())
        if end < 0:
            return
        start = end + 1


def _reason(error: Exception) -> str:
    """Return RE2's error message without its quotation of our own prefix."""
    detail = error.args[0] if error.args else b""
    text = detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
    return text.partition(":")[0] or "it does not compile"


class Search:
    """One search through files, until they or the budget are exhausted."""

    def __init__(
        self, query: Query, budget: SearchBudget, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._find = query.compile()
        self._context = query.context
        self.budget = budget
        self._clock = clock
        self._deadline = clock() + budget.seconds
        self._matches: list[Match] = []
        self._searched = 0
        self._skipped = 0
        self._bytes = 0
        self._reason: str | None = None
        self._first_line = 0
        """Line of the current file at which to start, counted from 1."""
        self._next: Position | None = None

    def run(self, files: Iterable[Content], start: Position | None = None) -> SearchResult:
        """Search *files*, which are sorted by name, from *start*.

        Raises:
            LimitError: A limit of the caller was reached.
        """
        first = None if start is None else start.path.split("/")
        try:
            for path, chunks in files:
                if first is not None:
                    parts = path.split("/")
                    if parts < first:
                        continue
                    self._first_line = start.line if start is not None and parts == first else 0
                    first = None
                self._search(path, chunks)
                if self._reason:
                    break
                self._first_line = 0
        except LimitError as error:
            if error.code not in _WALK_LIMITS:
                raise
            self._reason = "entries"
        return SearchResult(
            matches=tuple(self._matches),
            truncated=self._reason is not None,
            reason=self._reason,
            next=self._next,
            files_searched=self._searched,
            files_skipped=self._skipped,
        )

    def _search(self, path: str, chunks: Iterable[bytes]) -> None:
        if self._clock() > self._deadline:
            self._end("time", path)
        elif self._searched >= self.budget.files:
            self._end("files", path)
        elif (content := self._content(chunks)) is None:
            self._skipped += 1
        elif self._bytes + len(content) > self.budget.total_bytes:
            self._end("bytes", path)
        else:
            self._searched += 1
            self._bytes += len(content)
            self._collect(path, content)

    def _end(self, reason: str, path: str, line: int | None = None) -> None:
        """End the search before a line of *path*, by default the line at which it would have started."""
        self._reason = reason
        self._next = Position(path, self._first_line if line is None else line)

    def _content(self, chunks: Iterable[bytes]) -> bytes | None:
        """Return the whole content; `None` if it is binary, too large, or cannot be read."""
        pieces: list[bytes] = []
        size = 0
        try:
            for chunk in chunks:
                size += len(chunk)
                if size > self.budget.file_bytes or (not pieces and b"\0" in chunk[:BINARY_BYTES]):
                    return None
                pieces.append(chunk)
        except LimitError:
            raise
        except CarrelError:
            return None
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _collect(self, path: str, content: bytes) -> None:
        lines = _Lines(content, self.budget.line_characters, self._first_line)
        for offset in self._find(content, lines.start):
            lines.go_to(offset)
            if lines.start == len(content):
                return
            if len(self._matches) >= self.budget.matches:
                self._end("matches", path, lines.number)
                return
            if len(self._matches) % 256 == 255 and self._clock() > self._deadline:
                self._end("time", path, lines.number)
                return
            self._matches.append(self._match(path, lines, offset))

    def _match(self, path: str, lines: _Lines, offset: int) -> Match:
        return Match(
            path=path,
            line=lines.number,
            column=lines.column_of(offset),
            text=lines.text(),
            before=lines.before(self._context),
            after=lines.after(self._context),
        )


class _Lines:
    """A cursor over the lines of a content; the lines are not split, because there may be very many."""

    def __init__(self, content: bytes, characters: int, number: int) -> None:
        """Start at the line *number*, counted from 1, or after the last."""
        self._content = content
        self._characters = characters
        self.number = max(1, number)
        self.start = line_start(content, self.number - 1)
        """Offset of the line."""

    def go_to(self, offset: int) -> None:
        """Move forward to the line that contains the byte at *offset*."""
        self.number += self._content.count(b"\n", self.start, offset)
        self.start = max(self.start, self._content.rfind(b"\n", self.start, offset) + 1)

    def column_of(self, offset: int) -> int:
        """Return the position of *offset* in the line, in characters counted from 1."""
        return len(self._content[self.start : offset].decode("utf-8", "replace")) + 1

    def text(self) -> str:
        """Return the line without its line end."""
        return self._text(self.start)

    def before(self, count: int) -> tuple[str, ...]:
        """Return up to *count* lines before the current one."""
        found: list[str] = []
        start = self.start
        while start > 0 and len(found) < count:
            start = self._content.rfind(b"\n", 0, start - 1) + 1
            found.append(self._text(start))
        return tuple(reversed(found))

    def after(self, count: int) -> tuple[str, ...]:
        """Return up to *count* lines after the current one."""
        found: list[str] = []
        end = self._content.find(b"\n", self.start)
        while 0 <= end < len(self._content) - 1 and len(found) < count:
            found.append(self._text(end + 1))
            end = self._content.find(b"\n", end + 1)
        return tuple(found)

    def _text(self, start: int) -> str:
        end = self._content.find(b"\n", start)
        line = self._content[start : end if end >= 0 else len(self._content)].rstrip(b"\r\n")
        # No character takes more than four bytes.
        text = line[: 4 * (self._characters + 1)].decode("utf-8", "replace")
        return text if len(text) <= self._characters else text[: self._characters] + "..."
