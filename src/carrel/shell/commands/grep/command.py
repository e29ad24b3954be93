"""Print lines that match a pattern."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from carrel.errors import CarrelError, ClosedError, IsDirectoryError, SessionMissingError
from carrel.shell.command.access import PathAccess, reads
from carrel.shell.command.context import STDIN, Context
from carrel.shell.command.flags import NUMBER, Opt, TextSource, UsageError, from_argument, from_file
from carrel.shell.commands.grep.filters import (
    NameFilter,
    directory_pattern,
    excluding,
    including,
    is_included,
    suffixes,
)
from carrel.shell.commands.grep.lines import BinaryFiles, Buffer, LineSearch, MatchLimit
from carrel.shell.commands.grep.matching import Find, PatternKind, Patterns, Span
from carrel.shell.commands.grep.output import LinePrinter, OutputLayout
from carrel.shell.text.quoting import decode, encode
from carrel.shell.text.regex import RegexError

USAGE = "[OPTION]... PATTERNS [FILE]..."
NOTES = """\
Without FILE, read standard input, or with -r the working directory. Symbolic links found during recursion are
not followed, not even with -R. Patterns are matched by RE2: back-references are refused, \\< and \\> are the
same as \\b, and -P has no look-around. The exit status is 0 if a line is selected, 1 if none is, and 2 after
an error."""

_PATTERN_BYTES = 128
"""Memory charged for each character of a pattern before it is compiled."""
_WITH_MATCH, _WITHOUT_MATCH = "with", "without"


def _parse_context(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise UsageError(f"{text}: invalid context length argument", hint=False)
    return int(text[:18])


def _parse_max_count(text: str) -> int | None:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()):
        raise UsageError("invalid max count", hint=False)
    return None if text != digits else int(digits[:18])


def _parse_binary_files(text: str) -> BinaryFiles:
    try:
        return BinaryFiles(text)
    except ValueError:
        raise UsageError("unknown binary-files type", hint=False) from None


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `grep`."""

    kinds: Annotated[
        tuple[PatternKind, ...],
        Opt(
            "-G",
            "--basic-regexp",
            const=PatternKind.BASIC,
            help="patterns are basic regular expressions (the default)",
        ),
        Opt(
            "-E",
            "--extended-regexp",
            const=PatternKind.EXTENDED,
            help="patterns are extended regular expressions",
        ),
        Opt("-F", "--fixed-strings", const=PatternKind.FIXED, help="patterns are fixed strings"),
        Opt(
            "-P",
            "--perl-regexp",
            const=PatternKind.PERL,
            help="patterns are RE2 expressions, similar to Perl's",
        ),
    ] = ()
    sources: Annotated[
        tuple[TextSource, ...],
        Opt("-e", "--regexp", metavar="PATTERNS", help="match these patterns", parse=from_argument),
        Opt("-f", "--file", metavar="FILE", help="match patterns from FILE", parse=from_file),
    ] = ()
    ignore_case: Annotated[
        bool,
        Opt("-i", "-y", "--ignore-case", help="ignore case"),
        Opt("--no-ignore-case", const=False, help="do not ignore case (the default)"),
    ] = False
    words: Annotated[bool, Opt("-w", "--word-regexp", help="match only whole words")] = False
    whole_lines: Annotated[bool, Opt("-x", "--line-regexp", help="match only whole lines")] = False
    nul_lines: Annotated[bool, Opt("-z", "--null-data", help="lines end with a NUL byte")] = False
    no_messages: Annotated[
        bool, Opt("-s", "--no-messages", help="suppress errors about unreadable files")
    ] = False
    invert: Annotated[bool, Opt("-v", "--invert-match", help="select lines that do not match")] = False
    max_count: Annotated[
        int | None,
        Opt("-m", "--max-count", metavar="NUM", help="stop after NUM selected lines", parse=_parse_max_count),
    ] = None
    offsets: Annotated[bool, Opt("-b", "--byte-offset", help="print the offset of each line")] = False
    numbers: Annotated[bool, Opt("-n", "--line-number", help="print the number of each line")] = False
    names: Annotated[
        bool | None,
        Opt("-H", "--with-filename", help="print the file name with each line"),
        Opt("-h", "--no-filename", const=False, help="print no file names"),
    ] = None
    label: Annotated[str, Opt("--label", metavar="LABEL", help="name to print for standard input")] = (
        "(standard input)"
    )
    only_matching: Annotated[bool, Opt("-o", "--only-matching", help="print only the matching parts")] = False
    quiet: Annotated[bool, Opt("-q", "--quiet", "--silent", help="print nothing")] = False
    binary: Annotated[
        BinaryFiles,
        Opt(
            "--binary-files", metavar="TYPE", help="binary, text or without-match", parse=_parse_binary_files
        ),
        Opt("-a", "--text", const=BinaryFiles.TEXT, help="print binary files as if they were text"),
        Opt("-I", const=BinaryFiles.SKIP, help="skip binary files"),
    ] = BinaryFiles.REPORT
    directories: Annotated[
        str,
        Opt("-d", "--directories", metavar="ACTION", help="read, skip or recurse"),
        Opt("-r", "--recursive", const="recurse", help="search directories too"),
        Opt("-R", "--dereference-recursive", const="recurse", help="the same as -r"),
    ] = "read"
    filters: Annotated[
        tuple[NameFilter, ...],
        Opt("--include", metavar="GLOB", help="search only files whose names match GLOB", parse=including),
        Opt("--exclude", metavar="GLOB", help="skip files whose names match GLOB", parse=excluding),
    ] = ()
    exclude_dir: Annotated[
        tuple[Callable[[str], bool], ...],
        Opt(
            "--exclude-dir",
            metavar="GLOB",
            help="skip directories whose names match GLOB",
            parse=directory_pattern,
        ),
    ] = ()
    listing: Annotated[
        str,
        Opt(
            "-l",
            "--files-with-matches",
            const=_WITH_MATCH,
            help="print only names of files with selected lines",
        ),
        Opt(
            "-L",
            "--files-without-match",
            const=_WITHOUT_MATCH,
            help="print only names of files without selected lines",
        ),
    ] = ""
    count: Annotated[bool, Opt("-c", "--count", help="print only the number of selected lines")] = False
    nul_names: Annotated[bool, Opt("-Z", "--null", help="print a NUL byte after file names")] = False
    before: Annotated[
        int | None,
        Opt(
            "-B", "--before-context", metavar="NUM", help="print NUM lines before each", parse=_parse_context
        ),
    ] = None
    after: Annotated[
        int | None,
        Opt("-A", "--after-context", metavar="NUM", help="print NUM lines after each", parse=_parse_context),
    ] = None
    around: Annotated[
        int | None,
        Opt(
            "-C",
            "--context",
            NUMBER,
            metavar="NUM",
            help="print NUM lines before and after",
            parse=_parse_context,
        ),
    ] = None
    separator: Annotated[
        str | None,
        Opt("--group-separator", metavar="SEP", help="print SEP between groups of lines"),
        Opt("--no-group-separator", const=None, help="print nothing between groups of lines"),
    ] = "--"
    ignored: Annotated[
        str,
        Opt("--color", "--colour", metavar="[WHEN]", help="has no effect"),
        Opt("--line-buffered", help="has no effect"),
        Opt("-U", "--binary", help="has no effect"),
    ] = ""


def accesses(flags: Flags, operands: Sequence[str]) -> Iterator[PathAccess]:
    """Declare pattern files and searched files as read."""
    yield from reads(source.text for source in flags.sources if source.is_file)
    files = operands if flags.sources else operands[1:]
    yield from reads(files or (["."] if flags.directories == "recurse" else []))


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Print the lines that match."""
    sources, files = flags.sources, operands
    if not sources:
        if not operands:
            ctx.write_error_line(f"Usage: grep {USAGE}")
            ctx.write_error_line("Try 'grep --help' for more information.")
            return 2
        sources, files = (TextSource(False, operands[0]),), operands[1:]
    # A dictionary drops repeated patterns and keeps their order.
    texts: dict[str, None] = {}
    for source in sources:
        with ctx.reporting(source.text, source.text, status=2):
            for text in _read_patterns(ctx, source):
                if text not in texts:
                    ctx.meter.charge_memory(_PATTERN_BYTES * (len(text) + 1))
                    texts[text] = None
    if ctx.status:
        return ctx.status
    try:
        find = _combine_patterns(flags, texts).compile(
            lambda warning: ctx.write_error_line(f"grep: warning: {warning}"), ctx.meter.check
        )
    except RegexError as error:
        raise UsageError(str(error), hint=False) from None
    return Grep(ctx, flags, find).run(files)


def _read_patterns(ctx: Context, source: TextSource) -> Iterator[str]:
    if not source.is_file:
        return iter(source.text.split("\n"))
    return (decode(line.removesuffix(b"\n")) for line in ctx.lines(source.text))


def _combine_patterns(flags: Flags, texts: Collection[str]) -> Patterns:
    if len(set(flags.kinds)) > 1:
        raise UsageError("conflicting matchers specified", hint=False)
    kind = flags.kinds[0] if flags.kinds else PatternKind.BASIC
    if kind is PatternKind.PERL and len(texts) > 1:
        raise UsageError("the -P option only supports a single pattern", hint=False)
    return Patterns(
        texts=list(texts),
        kind=kind,
        ignore_case=flags.ignore_case,
        whole_words=flags.words,
        whole_lines=flags.whole_lines,
    )


class Grep:
    """One run over all files."""

    def __init__(self, ctx: Context, flags: Flags, find: Find) -> None:
        self._ctx = ctx
        self._flags = flags
        self._find = find
        self._has_match = False
        self._has_printed = False
        self._names = bool(flags.names)
        self._needs_only_first = flags.quiet or bool(flags.listing)
        self._layout = _layout(flags, find)
        self._lines = LineSearch(
            find, ctx.meter, invert=flags.invert, binary=flags.binary, nul_lines=flags.nul_lines
        )

    def run(self, files: Sequence[str]) -> int:
        """Search *files* and return the exit status."""
        flags = self._flags
        recursive = flags.directories == "recurse"
        if flags.max_count == 0 and flags.listing != _WITHOUT_MATCH:
            return 1
        if flags.names is None:
            self._names = len(files) > 1
        if not files and recursive:
            self._search_tree(".", skip=2)
        for file in files or ([] if recursive else [STDIN]):
            self._search_operand(file)
            if self._has_match and flags.quiet:
                return 0
        return self._ctx.status or int(not self._has_match)

    def _search_operand(self, file: str) -> None:
        if file == STDIN:
            self._search(encode(self._flags.label), self._ctx.chunks(STDIN))
            return
        try:
            chunks = self._ctx.chunks(file)
        except (ClosedError, SessionMissingError):
            raise
        except IsDirectoryError as error:
            self._search_directory(file, error)
        except CarrelError as error:
            self._report(file, error)
        else:
            if is_included(self._flags.filters, suffixes(file)):
                self._search(encode(file), chunks)

    def _report(self, file: str, error: CarrelError) -> None:
        if self._flags.no_messages:
            self._ctx.status = 2
        else:
            self._ctx.report(error, file, status=2)

    def _search_directory(self, file: str, error: CarrelError) -> None:
        paths = suffixes(file.rstrip("/") or file)
        if any(matches(path) for matches in self._flags.exclude_dir for path in paths):
            return
        if self._flags.directories == "recurse":
            self._search_tree(file)
        elif self._flags.directories != "skip":
            self._report(file, error)

    def _search_tree(self, top: str, skip: int = 0) -> None:
        """Search all files beneath *top*, dropping the first *skip* characters of their display paths."""
        if self._flags.names is None:
            self._names = True
        enter = self._may_enter if self._flags.exclude_dir else None
        filters = self._flags.filters
        is_wanted = (lambda name: is_included(filters, (name,))) if filters else None
        needs_every_file = self._flags.count or self._flags.listing == _WITHOUT_MATCH
        can_skip = (lambda chunks: False) if needs_every_file else self._lines.is_without_match
        for path, chunks in self._ctx.read_tree(top, enter=enter, wants=is_wanted):
            if can_skip(chunks):
                continue
            self._search(encode(path[skip:]), chunks)
            if self._has_match and self._flags.quiet:
                return

    def _may_enter(self, name: str) -> bool:
        return not any(matches(name) for matches in self._flags.exclude_dir)

    # One file

    def _search(self, name: bytes, chunks: Iterable[bytes]) -> None:
        try:
            self._search_file(name, iter(chunks))
        except (ClosedError, SessionMissingError):
            raise
        except CarrelError as error:
            self._report(decode(name), error)

    def _search_file(self, name: bytes, chunks: Iterator[bytes]) -> None:
        flags = self._flags
        buffers = self._lines.buffers(chunks)
        if self._needs_only_first:
            has_match = flags.max_count != 0 and any(True for buffer in buffers for _ in buffer.runs)
            self._print_name(name, has_match)
        elif flags.count:
            has_match = self._count(name, buffers)
        else:
            has_match = self._print(name, buffers)
        self._has_match = self._has_match or has_match

    def _print_name(self, name: bytes, has_match: bool) -> None:
        if not self._flags.quiet and has_match == (self._flags.listing == _WITH_MATCH):
            self._ctx.write(name + (b"\0" if self._flags.nul_names else b"\n"))

    def _count(self, name: bytes, buffers: Iterable[Buffer]) -> bool:
        limit = self._flags.max_count
        count = 0
        for buffer in buffers:
            count += self._lines.count(buffer)
            if limit is not None and count >= limit:
                count = limit
                break
        prefix = name + (b"\0" if self._flags.nul_names else b":") if self._names else b""
        self._ctx.write(b"%s%d\n" % (prefix, count))
        return count > 0

    def _print(self, name: bytes, buffers: Iterable[Buffer]) -> bool:
        printer: LinePrinter | None = None
        match_limit = MatchLimit(self._flags.max_count)
        is_binary = False
        for buffer, begin, end, runs, is_hidden in buffers:
            if is_hidden:
                is_binary = next(runs, None) is not None
                if is_binary:
                    break
                continue
            if printer is None:
                printer = self._line_printer(name)
            printer.print(buffer, (begin, end), match_limit.limit(buffer, runs))
            if match_limit.is_reached and not printer.needs_more:
                break
        if printer is not None:
            printer.close()
            self._has_printed = printer.has_printed
        is_hidden = is_binary or (printer is not None and printer.has_bad_lines)
        if is_hidden and self._flags.binary is not BinaryFiles.SKIP:
            self._has_printed = True
            self._ctx.write_error_line(f"grep: {decode(name)}: binary file matches")
        return is_binary or match_limit.count > 0

    def _line_printer(self, name: bytes) -> LinePrinter:
        display_name = name if self._names else None
        return LinePrinter(
            self._layout, display_name, self._ctx.write, self._ctx.meter, has_printed=self._has_printed
        )


def _layout(flags: Flags, find: Find) -> OutputLayout:
    around = flags.around or 0
    before = around if flags.before is None else flags.before
    after = around if flags.after is None else flags.after
    grouped = flags.before is not None or flags.after is not None or flags.around is not None
    separator = None if flags.separator is None or not grouped else encode(flags.separator) + b"\n"
    return OutputLayout(
        numbers=flags.numbers,
        offsets=flags.offsets,
        find_match=_find_no_match
        if flags.only_matching and flags.invert
        else find
        if flags.only_matching
        else None,
        nul_after_name=flags.nul_names,
        nul_ends_lines=flags.nul_lines,
        any_bytes=flags.binary is BinaryFiles.TEXT,
        before=before,
        after=after,
        separator=separator,
    )


def _find_no_match(buffer: bytes, at: int, end: int) -> Span | None:
    return None
