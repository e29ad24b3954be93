"""Compare two files line by line, with what is to be ignored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from itertools import chain, zip_longest

from carrel.shell.command.context import Context
from carrel.shell.commands.diff.hunks import ClassifiedChange, FilePair
from carrel.shell.text.line_diff import LineChange, line_changes

_BINARY_BYTES = 2**15
"""A NUL among so many first bytes makes a file binary."""
_LINE_BYTES = 80
"""What a line takes in memory besides its own bytes."""


class IgnoredSpace(StrEnum):
    """The white space that is ignored."""

    NONE = "none"
    ALL = "all"
    CHANGE = "change"
    """How much of it there is."""
    TRAILING = "trailing"
    """That at the end of lines."""


class Comparison:
    """Compares files, one pair after the other."""

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

        With *minimal*, changes are as few as can be, however long that takes.
        """
        self._ctx = ctx
        self._case = case
        self._space = space
        self._blank_lines = blank_lines
        self._carriage_returns = carriage_returns
        self._minimal = minimal
        self.ignores = case or space is not IgnoredSpace.NONE or blank_lines or carriage_returns
        """Whether files may count as the same that have not the same bytes."""

    def is_same(self, old: str, new: str) -> bool:
        """Whether two files have the same bytes, looked at without keeping them."""
        pairs = zip_longest(self._ctx.chunks(old), self._ctx.chunks(new))
        return all(one == other for one, other in pairs)

    @contextmanager
    def reading(self, old: str | None, new: str | None) -> Iterator[tuple[FilePair, bool]]:
        """The lines of two files, and whether one of them is binary; `None` is an empty file."""
        held = [0, 0]
        binary = [False, False]

        def counted(path: str, side: int) -> Iterator[bytes]:
            left = _BINARY_BYTES
            for chunk in self._ctx.chunks(path):
                binary[side] = binary[side] or (left > 0 and b"\0" in chunk[:left])
                left -= len(chunk)
                size = len(chunk) + _LINE_BYTES * chunk.count(b"\n")
                self._ctx.meter.charge_memory(size)
                held[side] += size
                yield chunk

        try:
            lines = [
                [] if path is None else list(self._ctx.split_lines(counted(path, side)))
                for side, path in enumerate((old, new))
            ]
            yield FilePair(*lines), any(binary)
        finally:
            self._ctx.meter.charge_memory(-sum(held))

    def differences(self, files: FilePair) -> list[ClassifiedChange]:
        """The changes, and whether each of them matters."""
        keys = [list(map(self._key, lines)) if self.ignores else lines for lines in files]
        found = line_changes(keys[0], keys[1], self._ctx.meter.check, minimal=self._minimal)
        return [
            ClassifiedChange(change, self._blank_lines and self._is_blank(files, change)) for change in found
        ]

    def _is_blank(self, files: FilePair, change: LineChange) -> bool:
        """Whether only blank lines came and went."""
        blanks = b"\n" if self._space is IgnoredSpace.NONE else None
        lines = chain(files.old[change.old : change.old_end], files.new[change.new : change.new_end])
        return not any(line.strip(blanks) for line in lines)

    def _key(self, line: bytes) -> bytes:
        """What is compared of a line."""
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
