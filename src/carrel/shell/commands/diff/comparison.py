"""Compare two files line by line, ignoring differences as options ask."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from itertools import chain, zip_longest

from carrel.shell.command.context import Context
from carrel.shell.commands.diff.hunks import ClassifiedChange, FilePair
from carrel.shell.text.line_diff import LineChange, line_changes

_BINARY_BYTES = 2**15
"""Number of leading bytes in which a NUL makes a file binary."""
_LINE_BYTES = 80
"""Memory charged for a line besides its bytes."""


class IgnoredSpace(StrEnum):
    """Which differences in white space are ignored."""

    NONE = "none"
    ALL = "all"
    CHANGE = "change"
    """Differences in the amount of white space."""
    TRAILING = "trailing"
    """White space at the end of lines."""


class Comparison:
    """Compares files, one pair after another."""

    def __init__(
        self,
        ctx: Context,
        *,
        case: bool,
        space: IgnoredSpace,
        blank_lines: bool,
        carriage_returns: bool,
        minimal: bool,
    ) -> None:
        """Ignore *case*, *space*, changes of *blank_lines*, and *carriage_returns* before newlines.

        With *minimal*, find the fewest changes, however long that takes.
        """
        self._ctx = ctx
        self._case = case
        self._space = space
        self._blank_lines = blank_lines
        self._carriage_returns = carriage_returns
        self._minimal = minimal
        self.ignores = case or space is not IgnoredSpace.NONE or blank_lines or carriage_returns
        """Whether files with different content may count as equal."""

    def is_same(self, old: str, new: str) -> bool:
        """Whether two files have the same content; reads them without keeping them."""
        pairs = zip_longest(self._ctx.chunks(old), self._ctx.chunks(new))
        return all(one == other for one, other in pairs)

    @contextmanager
    def reading(self, old: str | None, new: str | None) -> Iterator[tuple[FilePair, bool]]:
        """Read the lines of two files, and whether one is binary; `None` is an empty file."""
        charged = [0, 0]
        binary = [False, False]

        def metered_chunks(path: str, side: int) -> Iterator[bytes]:
            left = _BINARY_BYTES
            for chunk in self._ctx.chunks(path):
                binary[side] = binary[side] or (left > 0 and b"\0" in chunk[:left])
                left -= len(chunk)
                size = len(chunk) + _LINE_BYTES * chunk.count(b"\n")
                self._ctx.meter.charge_memory(size)
                charged[side] += size
                yield chunk

        try:
            lines = [
                [] if path is None else list(self._ctx.split_lines(metered_chunks(path, side)))
                for side, path in enumerate((old, new))
            ]
            yield FilePair(*lines), any(binary)
        finally:
            self._ctx.meter.charge_memory(-sum(charged))

    def differences(self, files: FilePair) -> list[ClassifiedChange]:
        """Return the changes, and whether each is ignored."""
        keys = [list(map(self._comparison_key, lines)) if self.ignores else lines for lines in files]
        changes = line_changes(keys[0], keys[1], self._ctx.meter.check, minimal=self._minimal)
        return [
            ClassifiedChange(change, self._blank_lines and self._is_blank(files, change))
            for change in changes
        ]

    def _is_blank(self, files: FilePair, change: LineChange) -> bool:
        """Whether *change* consists of blank lines only."""
        blanks = b"\n" if self._space is IgnoredSpace.NONE else None
        lines = chain(files.old[change.old : change.old_end], files.new[change.new : change.new_end])
        return not any(line.strip(blanks) for line in lines)

    def _comparison_key(self, line: bytes) -> bytes:
        """Return the part of a line that is compared."""
        if self._carriage_returns and line.endswith(b"\r\n"):
            line = line[:-2] + b"\n"
        if self._case:
            line = line.lower()
        if self._space is IgnoredSpace.ALL:
            return b"".join(line.split())
        if self._space is not IgnoredSpace.NONE:
            line = line.rstrip()
        if self._space is IgnoredSpace.CHANGE:
            return b" " * line[:1].isspace() + b" ".join(line.split())
        return line
