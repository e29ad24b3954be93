"""Compare files line by line."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, NamedTuple

from carrel.errors import CarrelError, ClosedError, MissingError, SessionMissingError
from carrel.shell.command.access import PathAccess, reads
from carrel.shell.command.context import NULL, STDIN, Context
from carrel.shell.command.flags import Opt, UsageError
from carrel.shell.command.paths import base_name, join
from carrel.shell.commands.diff.comparison import Comparison, IgnoredSpace
from carrel.shell.commands.diff.hunks import (
    ClassifiedChange,
    FilePair,
    HunkRenderer,
    render_context,
    render_normal,
    render_unified,
)
from carrel.shell.language.glob import name_pattern
from carrel.shell.text.quoting import encode, quote_if_needed
from carrel.values import FileInfo

USAGE = "[OPTION]... FILES"
NOTES = """\
FILES are two files, two directories, or a file and a directory with a file of the same name; - is standard
input. The exit status is 0 if they are the same, 1 if they differ, and 2 after an error."""

_NORMAL, _UNIFIED, _CONTEXT = "normal", "unified", "context"
_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\v": "\\v",
    "\f": "\\f",
    "\r": "\\r",
}


class OutputStyle(NamedTuple):
    """Output format, and the number of context lines."""

    name: str
    lines: int = 3


def _try_help(message: str) -> UsageError:
    return UsageError(f"{message}\ndiff: Try 'diff --help' for more information.", hint=False)


def _parse_style(name: str, text: str) -> OutputStyle:
    if text and not (text.isascii() and text.isdecimal()):
        raise _try_help(f"invalid context length '{text}'")
    return OutputStyle(name, int(text[:9] or 3))


def _parse_unified(text: str) -> OutputStyle:
    return _parse_style(_UNIFIED, text)


def _parse_context_style(text: str) -> OutputStyle:
    return _parse_style(_CONTEXT, text)


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `diff`."""

    styles: Annotated[
        tuple[OutputStyle, ...],
        Opt("--normal", const=OutputStyle(_NORMAL), help="print only the changes (the default)"),
        Opt("-u", const=OutputStyle(_UNIFIED), help="print 3 lines of unified context"),
        Opt("-U", metavar="NUM", help="print NUM lines of unified context", parse=_parse_unified),
        Opt("--unified", metavar="[NUM]", help="the same, 3 lines by default", parse=_parse_unified),
        Opt("-c", const=OutputStyle(_CONTEXT), help="print 3 lines of copied context"),
        Opt(
            "-C",
            metavar="NUM",
            help="print NUM lines of copied context",
            parse=_parse_context_style,
        ),
        Opt("--context", metavar="[NUM]", help="the same, 3 lines by default", parse=_parse_context_style),
    ] = ()
    brief: Annotated[bool, Opt("-q", "--brief", help="report only whether files differ")] = False
    report: Annotated[bool, Opt("-s", "--report-identical-files", help="report identical files")] = False
    recursive: Annotated[bool, Opt("-r", "--recursive", help="compare subdirectories too")] = False
    new_file: Annotated[bool, Opt("-N", "--new-file", help="treat missing files as empty")] = False
    exclude: Annotated[
        tuple[Callable[[str], bool], ...],
        Opt("-x", "--exclude", metavar="PAT", help="skip names that match PAT", parse=name_pattern),
    ] = ()
    ignore_case: Annotated[bool, Opt("-i", "--ignore-case", help="ignore case")] = False
    ignore_space: Annotated[
        IgnoredSpace,
        Opt("-w", "--ignore-all-space", const=IgnoredSpace.ALL, help="ignore all white space"),
        Opt(
            "-b",
            "--ignore-space-change",
            const=IgnoredSpace.CHANGE,
            help="ignore differences in the amount of white space",
        ),
        Opt(
            "-Z",
            "--ignore-trailing-space",
            const=IgnoredSpace.TRAILING,
            help="ignore white space at the end of lines",
        ),
    ] = IgnoredSpace.NONE
    ignore_blank: Annotated[
        bool, Opt("-B", "--ignore-blank-lines", help="ignore inserted or deleted blank lines")
    ] = False
    strip_cr: Annotated[
        bool, Opt("--strip-trailing-cr", help="ignore a carriage return at the end of lines")
    ] = False
    text: Annotated[bool, Opt("-a", "--text", help="compare binary files as if they were text")] = False
    labels: Annotated[
        tuple[str, ...], Opt("-L", "--label", metavar="LABEL", help="print LABEL instead of the file name")
    ] = ()
    minimal: Annotated[bool, Opt("-d", "--minimal", help="search longer to find fewer changes")] = False
    ignored: Annotated[
        str,
        Opt("--color", metavar="[WHEN]", help="has no effect"),
        Opt("-H", "--speed-large-files", help="has no effect"),
    ] = ""


def accesses(flags: Flags, operands: Sequence[str]) -> Iterable[PathAccess]:
    """Declare both operands as read."""
    return reads(operands)


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Compare two files or directories."""
    if len(operands) < 2:
        raise _try_help(f"missing operand after '{operands[0] if operands else 'diff'}'")
    if len(operands) > 2:
        raise _try_help(f"extra operand '{operands[2]}'")
    if len({style.name for style in flags.styles}) > 1:
        raise _try_help("conflicting output style options")
    if len(flags.labels) > 2:
        raise UsageError("too many file label options", hint=False)
    return _Diff(ctx, flags, operands).run(*operands)


class Side(NamedTuple):
    """One of two operands or entries to compare; *info* is `None` for `-`, `/dev/null` and a missing file."""

    path: str
    info: FileInfo | None

    @property
    def is_directory(self) -> bool:
        """Whether this is a directory."""
        return self.info is not None and self.info.is_directory

    @property
    def readable_path(self) -> str | None:
        """The path to read; `None` if the file is missing, which counts as empty."""
        return self.path if self.exists else None

    @property
    def exists(self) -> bool:
        """Whether there is such a file."""
        return self.info is not None or self.path in (STDIN, NULL)

    def kind(self) -> str:
        """Return the file type in words."""
        if self.info is None or self.info.is_file:
            return "regular file" if self.info and self.info.size_bytes else "regular empty file"
        return "directory" if self.is_directory else "special file"


class _Diff:
    """One comparison of two files, or of all files in two directories."""

    def __init__(self, ctx: Context, flags: Flags, operands: Sequence[str]) -> None:
        self._ctx = ctx
        self._flags = flags
        self._style = flags.styles[-1] if flags.styles else OutputStyle(_NORMAL)
        self._comparison = Comparison(
            ctx,
            case=flags.ignore_case,
            space=flags.ignore_space,
            blank_lines=flags.ignore_blank,
            carriage_returns=flags.strip_cr,
            minimal=flags.minimal,
        )
        options = list(ctx.arguments)
        for operand in reversed(operands):
            del options[len(options) - 1 - options[::-1].index(operand)]
        self._command = " ".join(["diff", *map(quote_if_needed, options)])

    def run(self, old: str, new: str) -> int:
        """Compare the operands and return the exit status."""
        sides = [self._examine(path) for path in (old, new)]
        first, second = sides
        if first is None or second is None:
            return 2
        if old == new and old in (STDIN, NULL):
            return 0
        if first.is_directory != second.is_directory and STDIN in (old, new):
            self._ctx.error("cannot compare '-' to a directory", status=2)
            return 2
        if not (first.exists or second.exists):
            for path in (old, new):
                self._ctx.error(f"{path}: No such file or directory", status=2)
            return 2
        if first.is_directory and second.is_directory:
            return max(self._compare_directories(first, second), self._ctx.status)
        if (first.is_directory and second.exists) or (second.is_directory and first.exists):
            first, second = self._file_in(first, second), self._file_in(second, first)
        if first is None or second is None:
            return 2
        return max(self._compare_files(first, second, header=False), self._ctx.status)

    def _file_in(self, side: Side | None, other: Side | None) -> Side | None:
        """If *side* is a directory, return the file in it that is named as *other*."""
        if side is None or other is None or not side.is_directory:
            return side
        return self._examine(join(side.path, base_name(other.path)))

    def _examine(self, path: str) -> Side | None:
        """Examine *path*; `None` after an error, which is reported."""
        if path in (STDIN, NULL):
            return Side(path, None)
        try:
            return Side(path, self._ctx.stat(path))
        except (ClosedError, SessionMissingError):
            raise
        except CarrelError as error:
            if isinstance(error, MissingError) and self._flags.new_file:
                return Side(path, None)
            self._ctx.report(error, path, status=2)
        return None

    # Directories

    def _compare_directories(self, old: Side, new: Side) -> int:
        names = [self._list_names(side) for side in (old, new)]
        status = 0
        for name in sorted({*names[0], *names[1]}, key=encode):
            status = max(status, self._compare_entry(old, new, name, name in names[0], name in names[1]))
        return status

    def _list_names(self, side: Side) -> set[str]:
        if side.info is None:
            return set()
        names: set[str] = set()
        with self._ctx.reporting(side.path, side.path, status=2):
            names.update(info.name for info in self._ctx.list(side.path))
        return {name for name in names if not any(matches(name) for matches in self._flags.exclude)}

    def _compare_entry(self, old: Side, new: Side, name: str, in_old: bool, in_new: bool) -> int:
        if not (in_old and in_new) and not self._flags.new_file:
            self._ctx.write_line(f"Only in {old.path if in_old else new.path}: {name}")
            return 1
        first = self._examine(join(old.path, name)) if in_old else Side(join(old.path, name), None)
        second = self._examine(join(new.path, name)) if in_new else Side(join(new.path, name), None)
        if first is None or second is None:
            return 2
        directories = first.is_directory, second.is_directory
        if directories == (False, False):
            return self._compare_files(first, second, header=True)
        if not self._flags.recursive and all(directories):
            self._ctx.write_line(f"Common subdirectories: {first.path} and {second.path}")
            return 0
        if all(directories) or first.info is None or second.info is None:
            return self._compare_directory_entry(first, second, name)
        self._ctx.write_line(
            f"File {first.path} is a {first.kind()} while file {second.path} is a {second.kind()}"
        )
        return 1

    def _compare_directory_entry(self, first: Side, second: Side, name: str) -> int:
        if self._flags.recursive:
            return self._compare_directories(first, second)
        present = first if first.info is not None else second
        self._ctx.write_line(f"Only in {present.path[: -len(name) - 1]}: {name}")
        return 1

    # Files

    def _compare_files(self, old: Side, new: Side, *, header: bool) -> int:
        try:
            status = self._compare(old, new, header=header)
        except (ClosedError, SessionMissingError):
            raise
        except CarrelError as error:
            self._ctx.report(error, error.path or old.path, status=2)
            return 2
        if status == 0 and self._flags.report:
            self._ctx.write_line(f"Files {old.path} and {new.path} are identical")
        return status

    def _compare(self, old: Side, new: Side, *, header: bool) -> int:
        if old.path == new.path or self._is_same(old, new):
            return 0
        if self._flags.brief and not self._comparison.ignores and not {STDIN, NULL} & {old.path, new.path}:
            return self._report_difference("Files", old, new)
        with self._comparison.reading(old.readable_path, new.readable_path) as (files, is_binary):
            if is_binary and not self._flags.text:
                if files.old == files.new:
                    return 0
                return self._report_difference("Files" if self._flags.brief else "Binary files", old, new)
            return self._compare_lines(files, old, new, header=header)

    def _compare_lines(self, files: FilePair, old: Side, new: Side, *, header: bool) -> int:
        changes = self._comparison.differences(files)
        if all(difference.ignored for difference in changes):
            return 0
        if self._flags.brief:
            return self._report_difference("Files", old, new)
        if header:
            self._ctx.write_line(f"{self._command} {quote_if_needed(old.path)} {quote_if_needed(new.path)}")
        self._print(files, changes, old, new)
        return 1

    def _is_same(self, old: Side, new: Side) -> bool:
        """Whether two files have the same content."""
        if not (old.info and new.info) or old.info.size_bytes != new.info.size_bytes:
            return False
        return self._comparison.is_same(old.path, new.path)

    def _report_difference(self, label: str, old: Side, new: Side) -> int:
        self._ctx.write_line(f"{label} {old.path} and {new.path} differ")
        return 1

    # Output

    def _print(self, files: FilePair, changes: Sequence[ClassifiedChange], old: Side, new: Side) -> None:
        render: HunkRenderer = render_normal
        if self._style.name != _NORMAL:
            marks = (b"--- ", b"+++ ") if self._style.name == _UNIFIED else (b"*** ", b"--- ")
            for index, side in enumerate((old, new)):
                self._ctx.write(marks[index] + encode(self._title(side, index)) + b"\n")
            render = partial(
                render_unified if self._style.name == _UNIFIED else render_context, context=self._style.lines
            )
        for chunk in render(files, changes):
            self._ctx.write(chunk)

    def _title(self, side: Side, index: int) -> str:
        """Return the name and modification time of a file, or its label."""
        if index < len(self._flags.labels):
            return self._flags.labels[index]
        name = _quote_header(side.path)
        modified_ns = side.info.modified_ns if side.info else 0
        if side.path == STDIN:
            modified_ns = self._ctx.workspace.gate.now()
        seconds, fraction = divmod(modified_ns, 10**9)
        modified = time.gmtime(seconds)
        if self._style.name == _CONTEXT:
            return f"{name}\t{time.asctime(modified)}"
        return f"{name}\t{time.strftime('%Y-%m-%d %H:%M:%S', modified)}.{fraction:09} +0000"


def _quote_header(name: str) -> str:
    """Quote a name in a header if it contains special characters."""
    if not re.search(r'[\x00-\x20\x7f"\\]', name):
        return name
    return (
        '"'
        + re.sub(
            r'[\x00-\x1f\x7f"\\]', lambda match: _ESCAPES.get(match[0]) or f"\\{ord(match[0]):03o}", name
        )
        + '"'
    )
