"""Find lines by a regular expression in linear time, within a budget."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from carrel.errors import CarrelError, LimitError, PatternError
from carrel.paths.rel import Where
from carrel.values import MIB, FileInfo, Match, SearchResult

QUERY_CHARACTERS = 1000
CONTEXT_LINES = 20
BINARY_BYTES = 8192
"""A NUL among the first bytes makes a file binary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchBudget:
    """Where a search ends and says `truncated`."""

    matches: int = 1000
    """Most lines that are returned."""
    files: int = 10_000
    """Most files that are looked into."""
    file_bytes: int = 10 * MIB
    """Larger files are skipped."""
    total_bytes: int = 512 * MIB
    """Most bytes that are looked through."""
    seconds: float = 10.0
    """Longest time, looked at before each file and now and then within one."""
    line_characters: int = 1000
    """Longer lines are cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What to look for."""

    text: str
    regex: bool = True
    ignore_case: bool = False
    context: int = 0
    """How many lines before and after a match are given with it."""

    def compile(self) -> Callable[[bytes], Iterator[int]]:
        """A function that gives the offsets of all matches in a content, none spanning lines.

        Raises:
            PatternError: The query is empty, too long or no regular expression of RE2.
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
        text = self.text.encode("utf-8", "surrogateescape")
        try:
            pattern = re2.compile(b"(?m)" + text if self.regex else text, options)
        except re2.error as error:
            problem = _reason(error)
        else:
            return lambda content: (found.start() for found in pattern.finditer(content))
        raise PatternError(f"invalid regular expression {self.text[:80]!r}: {problem}")


def _reason(error: Exception) -> str:
    """What RE2 complained about, without its quotation of our own prefix."""
    detail = error.args[0] if error.args else b""
    text = detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
    return text.partition(":")[0] or "it does not compile"


class Search:
    """One run over files, until they or the budget end."""

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

    def run(self, files: Iterable[tuple[FileInfo, Where]], read: Callable[[Where], bytes]) -> SearchResult:
        """Search *files*, whose content *read* gives."""
        try:
            for info, where in files:
                self._reason = self._exhausted(info)
                if self._reason:
                    break
                self._search(info, where, read)
        except LimitError:
            self._reason = "entries"
        return SearchResult(
            matches=tuple(self._matches),
            truncated=self._reason is not None,
            reason=self._reason,
            files_searched=self._searched,
            files_skipped=self._skipped,
        )

    def _exhausted(self, info: FileInfo) -> str | None:
        """The budget that does not last for one more file."""
        budget = self.budget
        if self._reason:
            return self._reason
        if self._clock() > self._deadline:
            return "time"
        if self._searched >= budget.files:
            return "files"
        if self._bytes + min(info.size_bytes, budget.file_bytes) > budget.total_bytes:
            return "bytes"
        return None

    def _search(self, info: FileInfo, where: Where, read: Callable[[Where], bytes]) -> None:
        if info.size_bytes > self.budget.file_bytes:
            self._skipped += 1
            return
        try:
            content = read(where)
        except CarrelError:
            self._skipped += 1
            return
        if b"\0" in content[:BINARY_BYTES]:
            self._skipped += 1
            return
        self._searched += 1
        self._bytes += len(content)
        self._collect(info.path, content)

    def _collect(self, path: str, content: bytes) -> None:
        lines: _Lines | None = None
        last = -1
        for offset in self._find(content):
            lines = lines or _Lines(content, self.budget.line_characters)
            number = lines.number_at(offset)
            if number == last or number >= lines.count:
                continue
            if len(self._matches) >= self.budget.matches:
                self._reason = "matches"
                return
            if len(self._matches) % 256 == 255 and self._clock() > self._deadline:
                self._reason = "time"
                return
            last = number
            self._matches.append(self._match(path, lines, number, offset))

    def _match(self, path: str, lines: _Lines, number: int, offset: int) -> Match:
        context = self._context
        return Match(
            path=path,
            line=number + 1,
            column=lines.column_at(number, offset),
            text=lines.text(number),
            before=lines.texts(number - context, number),
            after=lines.texts(number + 1, number + 1 + context),
        )


class _Lines:
    """The lines of a content, found once."""

    def __init__(self, content: bytes, characters: int) -> None:
        self._content = content
        self._characters = characters
        self._starts = [0]
        at = content.find(b"\n")
        while at >= 0:
            self._starts.append(at + 1)
            at = content.find(b"\n", at + 1)
        if self._starts[-1] != len(content):
            self._starts.append(len(content))
        self.count = len(self._starts) - 1

    def number_at(self, offset: int) -> int:
        """Which line, counted from 0, holds the byte at *offset*."""
        return bisect_right(self._starts, offset) - 1

    def column_at(self, number: int, offset: int) -> int:
        """The character of its line, counted from 1, that begins at *offset*."""
        return len(self._content[self._starts[number] : offset].decode("utf-8", "replace")) + 1

    def text(self, number: int) -> str:
        line = self._content[self._starts[number] : self._starts[number + 1]]
        text = line.rstrip(b"\r\n").decode("utf-8", "replace")
        return text if len(text) <= self._characters else text[: self._characters] + "..."

    def texts(self, first: int, last: int) -> tuple[str, ...]:
        return tuple(self.text(number) for number in range(max(0, first), min(last, self.count)))
