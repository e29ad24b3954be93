"""Edit lines of text with a script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from carrel.errors import CarrelError, ClosedError, IsDirectoryError, SessionMissingError
from carrel.shell.command.access import PathAccess, reads, writes
from carrel.shell.command.context import STDIN, Context
from carrel.shell.command.errors import is_denied
from carrel.shell.command.flags import Opt, TextSource, from_argument, from_file
from carrel.shell.commands.sed.machine import Machine
from carrel.shell.commands.sed.parser import parse
from carrel.shell.commands.sed.scanner import ScriptFragment
from carrel.shell.commands.sed.script import ScriptError
from carrel.shell.runtime.redirect import replacing
from carrel.shell.text.quoting import decode

USAGE = "[OPTION]... {SCRIPT-IF-NO-OTHER} [FILE]..."
NOTES = """\
Without FILE, read standard input. Expressions are matched by RE2: back-references in them are refused, and
\\< and \\> are the same as \\b. The commands e, R, w and W, which run programs or write other files, are
refused."""

_SCRIPT_BYTES = 160
"""Memory charged for each character of a script file, for the commands in it."""


def _parse_length(text: str) -> int:
    return int(text[:9]) if text.isascii() and text.isdecimal() else 70


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `sed`."""

    quiet: Annotated[bool, Opt("-n", "--quiet", "--silent", help="print only what the script prints")] = False
    sources: Annotated[
        tuple[TextSource, ...],
        Opt("-e", "--expression", metavar="SCRIPT", help="run SCRIPT", parse=from_argument),
        Opt("-f", "--file", metavar="FILE", help="run the script in FILE", parse=from_file),
    ] = ()
    extended: Annotated[
        bool, Opt("-E", "-r", "--regexp-extended", help="use extended regular expressions")
    ] = False
    in_place: Annotated[
        str | None,
        Opt("-i", "--in-place", metavar="[SUFFIX]", help="edit files in place; back up with SUFFIX"),
    ] = None
    separate: Annotated[
        bool, Opt("-s", "--separate", help="treat files separately, each with its own line numbers")
    ] = False
    nul_lines: Annotated[bool, Opt("-z", "--null-data", help="lines end with a NUL byte")] = False
    length: Annotated[
        int,
        Opt("-l", "--line-length", metavar="N", help="line length of the command l", parse=_parse_length),
    ] = 70
    sandbox: Annotated[bool, Opt("--sandbox", help="also refuse the command r")] = False
    ignored: Annotated[
        bool,
        Opt("-u", "--unbuffered", help="has no effect"),
        Opt("-b", "--binary", help="has no effect"),
        Opt("--posix", help="has no effect"),
        Opt("--follow-symlinks", help="has no effect"),
    ] = False


def accesses(flags: Flags, operands: Sequence[str]) -> Iterator[PathAccess]:
    """Declare script files, input files and those of `r` as read; with `-i`, files and backups as written."""
    sources = flags.sources or tuple(map(from_argument, operands[:1]))
    files = operands if flags.sources else operands[1:]
    yield from reads(source.text for source in sources if source.is_file)
    yield from reads(
        _files_read_by_script(
            [ScriptFragment(source.text) for source in sources if not source.is_file], flags
        )
    )
    yield from reads(files)
    if flags.in_place is None:
        return
    yield from writes(files)
    if flags.in_place:
        yield from writes(_backup_path(file, flags.in_place) for file in files)


def _files_read_by_script(fragments: Sequence[ScriptFragment], flags: Flags) -> list[str]:
    """Return the files that a script reads with `r`; none if it is invalid, since then it does nothing."""
    try:
        commands = parse(fragments, extended=flags.extended, sandbox=flags.sandbox)
    except ScriptError:
        return []
    return [decode(command.text) for command in commands if command.name == "r"]


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Run a script for each line."""
    try:
        return _run(ctx, flags, operands)
    except ScriptError as error:
        ctx.write_error_line(f"sed: {error}")
        return error.status


def _run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    sources, files = flags.sources, operands
    if not sources:
        if not operands:
            ctx.write_error_line(f"Usage: sed {USAGE}")
            ctx.write_error_line("Try 'sed --help' for more information.")
            return 1
        sources, files = (TextSource(False, operands[0]),), operands[1:]
    fragments: list[ScriptFragment] = []
    for source in sources:
        with ctx.reporting(source.text, f"couldn't open file {source.text}", status=4):
            fragments.append(_read_source(ctx, source))
    return ctx.status or _Sed(ctx, flags, fragments).run(files)


def _read_source(ctx: Context, source: TextSource) -> ScriptFragment:
    if not source.is_file:
        return ScriptFragment(source.text)
    chunks: list[bytes] = []
    for chunk in ctx.chunks(source.text):
        ctx.meter.charge_memory(_SCRIPT_BYTES * len(chunk))
        chunks.append(chunk)
    return ScriptFragment(decode(b"".join(chunks)), source.text)


class _Sed:
    """One run over all files."""

    def __init__(self, ctx: Context, flags: Flags, fragments: Sequence[ScriptFragment]) -> None:
        self._ctx = ctx
        self._flags = flags
        self.end = b"\0" if flags.nul_lines else b"\n"
        self._machine = Machine(
            parse(
                fragments,
                extended=flags.extended,
                sandbox=flags.sandbox,
                charge_memory=ctx.meter.charge_memory,
            ),
            ctx.meter,
            self._read_file,
            _Input(self, []),
            quiet=flags.quiet or fragments[0].text.startswith("#n\n") or fragments[0].text == "#n",
            end=self.end,
            wrap=flags.length,
        )

    def run(self, files: Sequence[str]) -> int:
        """Run the script over *files* and return the exit status."""
        if self._flags.in_place is not None:
            self._run_in_place(files, self._flags.in_place)
        else:
            self._machine.write_to(self._ctx.write)
            names = files or [STDIN]
            for group in [[name] for name in names] if self._flags.separate else [names]:
                for _ in self._machine.cycles(_Input(self, group)):
                    pass
        return self._machine.exit_status or self._ctx.status

    def _run_in_place(self, files: Sequence[str], suffix: str) -> None:
        if not files:
            raise ScriptError("no input files", 4)
        for file in files:
            if self._machine.exit_status is not None:
                return
            try:
                self._edit_file(file, suffix)
            except (ClosedError, SessionMissingError):
                raise
            except IsDirectoryError:
                self._ctx.error(f"couldn't edit {file}: not a regular file", status=4)
            except CarrelError as error:
                self.report_unreadable(file, error)

    def _edit_file(self, file: str, suffix: str) -> None:
        ctx = self._ctx
        lines = _Input(self, [])
        lines.open(file)
        path = ctx.path(file)
        if suffix:
            ctx.workspace.write_chunks(ctx.path(_backup_path(file, suffix)), ctx.file_chunks(file))
        with replacing(ctx.workspace, path, ctx.meter) as output:
            self._machine.write_to(output.write)
            for _ in self._machine.cycles(lines):
                pass

    def _read_file(self, file: str) -> Iterator[bytes]:
        """Return the content of a file of `r`; nothing if it cannot be read."""
        try:
            return self._ctx.file_chunks(file)
        except (ClosedError, SessionMissingError):
            raise
        except CarrelError as error:
            if is_denied(error):
                self.report_unreadable(file, error)
            return iter(())

    def report_unreadable(self, file: str, error: CarrelError) -> None:
        """Report that *file* cannot be read."""
        if isinstance(error, IsDirectoryError):
            raise ScriptError(f"read error on {file}: Is a directory", 4)
        self._ctx.report(error, f"can't read {file}", status=2)

    def read_lines(self, file: str) -> Iterator[bytes]:
        """Return the lines of *file* with their terminators; with `-i`, `-` is a file name."""
        is_file = self._flags.in_place is not None
        chunks = self._ctx.file_chunks(file) if is_file else self._ctx.chunks(file)
        return self._ctx.split_lines(chunks, self.end)


class _Input:
    """Reads the lines of several files in turn."""

    def __init__(self, sed: _Sed, files: Sequence[str]) -> None:
        self.number = 0
        self.name = STDIN
        self._sed = sed
        self._files = list(reversed(files))
        self._lines: Iterator[bytes] = iter(())
        self._file = STDIN
        self._next_line: bytes | None = None

    def open(self, file: str) -> None:
        """Start reading *file*."""
        self._lines = self._sed.read_lines(file)
        self._file = file

    def next(self) -> tuple[bytes, bool] | None:
        """Return the next line without its terminator, and whether it had one; `None` at the end."""
        line = self._next_line if self._next_line is not None else self._read_line()
        self._next_line = None
        if line is None:
            return None
        self.name = self._file
        self.number += 1
        end = line[-1:]
        if end == self._sed.end:
            return line[:-1], True
        # Only the very last line may lack its terminator.
        return line, not self.is_last()

    def is_last(self) -> bool:
        """Whether there are no more lines."""
        if self._next_line is None:
            self._next_line = self._read_line()
        return self._next_line is None

    def _read_line(self) -> bytes | None:
        while True:
            try:
                line = next(self._lines, None)
            except (ClosedError, SessionMissingError):
                raise
            except CarrelError as error:
                self._sed.report_unreadable(self._file, error)
                line = None
            if line is not None:
                return line
            if not self._files:
                return None
            self._open_next(self._files.pop())

    def _open_next(self, file: str) -> None:
        try:
            self.open(file)
        except (ClosedError, SessionMissingError):
            raise
        except CarrelError as error:
            self._sed.report_unreadable(file, error)


def _backup_path(file: str, suffix: str) -> str:
    directory, slash, name = file.rpartition("/")
    new = suffix.replace("*", name) if "*" in suffix else name + suffix
    return new if "/" in new else f"{directory}{slash}{new}"
