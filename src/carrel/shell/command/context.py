"""Everything that a command may reach: files, streams, state and the meter."""

from __future__ import annotations

import io
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from carrel.errors import CarrelError, ClosedError, SessionMissingError
from carrel.shell.budget import Meter
from carrel.shell.command.errors import is_denied, strerror
from carrel.shell.state import ShellState
from carrel.shell.streams import InputStream, OutputStream
from carrel.shell.text.quoting import encode, quote_if_needed
from carrel.shell.text.records import CHUNK_BYTES, LongLine, split_chunk
from carrel.values import FileInfo

if TYPE_CHECKING:
    from carrel.policy.rules import SandboxPolicy
    from carrel.shell.api import Operator, PythonRunner
    from carrel.workspace.workspace import Workspace

STDIN = "-"
"""The operand that stands for standard input."""
NULL = "/dev/null"
"""What is always empty, and takes anything; no file has that name here."""

_BATCH = 64
"""So many names are charged at once, where there are many."""

EntryFilter = Callable[[str, FileInfo], bool]
"""Says about a shown path, and what is there, whether to go on with it."""


@dataclass(slots=True)
class ShellResources:
    """What all commands of a shell share."""

    workspace: Workspace
    python: PythonRunner | None
    """Runs guest code, if there is a guest."""
    operator: Operator | None
    """Changes the rules, if the one who types may."""
    allowed: Container[str]
    """The names of the commands that may be run."""

    def change_rules(self, policy: SandboxPolicy) -> None:
        """Open the workspace again under *policy*; only where there is an operator.

        Raises:
            CarrelError: It cannot be opened; the old rules hold.
        """
        assert self.operator is not None  # noqa: S101  # whoever calls has looked
        opened = self.operator.reopen(policy)
        self.workspace.close()
        self.workspace = opened


class NestedCall(Protocol):
    """Runs another command."""

    def __call__(self, argv: list[str], state: ShellState, *, stdin: InputStream | None = None) -> int:
        """Run the command that *argv* names, with the same streams or another standard input."""
        ...


class Context:
    """What one run of one command is given."""

    def __init__(
        self,
        name: str,
        resources: ShellResources,
        state: ShellState,
        meter: Meter,
        *,
        stdin: InputStream,
        stdout: OutputStream,
        stderr: OutputStream,
        call: NestedCall,
    ) -> None:
        self.name = name
        self.arguments: Sequence[str] = ()
        """All that was given to the command, options too."""
        self.resources = resources
        self.state = state
        self.meter = meter
        self.stdin = stdin
        self.call = call
        """Runs another command, given its words."""
        self.status = 0
        """The exit status so far."""
        self._stdout = stdout
        self._stderr = stderr

    @property
    def workspace(self) -> Workspace:
        """For what changes files: `ctx.workspace.mkdir(ctx.path(operand))`."""
        return self.resources.workspace

    # Writing

    def write(self, data: bytes) -> None:
        """Write to standard output."""
        self._stdout.write(data)

    def write_each(self, pieces: Iterable[bytes]) -> None:
        """Write *pieces* to standard output, each as soon as it is made: they are never held together."""
        write = self._stdout.write
        for piece in pieces:
            write(piece)

    def write_line(self, text: str) -> None:
        """Write a line of text to standard output."""
        self._stdout.write(encode(text) + b"\n")

    def flush(self) -> None:
        """Hand on what was written to standard output so far, for those who wait for it."""
        self._stdout.flush()

    def write_error(self, data: bytes) -> None:
        """Write to standard error, after what was written to standard output so far."""
        self._stdout.flush()
        self._stderr.write(data)
        self._stderr.flush()

    def error(self, message: str, *, status: int = 1) -> None:
        """Write `NAME: message` to standard error, and remember that the command failed."""
        self.write_error_line(f"{self.name}: {message}")
        self.status = max(self.status, status)

    def write_error_line(self, line: str) -> None:
        """Write a line to standard error."""
        self.write_error(encode(line) + b"\n")

    def report(self, error: CarrelError, about: str, *, status: int = 1) -> None:
        """Tell why something about an operand cannot be done; denials have a line of their own.

        *about* comes before the reason: the shown operand, or `cannot remove 'x'`.
        """
        if is_denied(error):
            self.write_error_line(error.message)
            self.status = max(self.status, status)
        else:
            self.error(f"{about}: {strerror(error)}", status=status)

    def reporting(self, operand: str, about: str | None = None, *, status: int = 1) -> ErrorReporter:
        """Report what cannot be done about one operand, and go on with the next."""
        return ErrorReporter(self, operand, about, status)

    # Reading

    def path(self, operand: str) -> str:
        """The operand as the gate wants it, seen from where the shell is."""
        return self.state.path(operand, self.workspace.mount)

    def chunks(self, operand: str) -> Iterator[bytes]:
        """The content of a file, or standard input, piece by piece; the file is opened at once."""
        if operand == NULL:
            return iter(())
        if operand == STDIN:
            return self._metered(self.stdin)
        self.meter.charge_entries(1)
        return self._metered(self.workspace.read_chunks(self.path(operand), chunk_bytes=CHUNK_BYTES))

    def _metered(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            if not chunk:
                # Nothing is there yet, and whoever types may wait for what was written so far.
                self.flush()
                continue
            for part in split_chunk(chunk):
                self.meter.check()
                yield part

    def lines(self, operand: str) -> Iterator[bytes]:
        """The lines of a file or of standard input, each with its newline; the last one may have none."""
        return self.split_lines(self.chunks(operand))

    def split_lines(self, chunks: Iterator[bytes], end: bytes = b"\n") -> Iterator[bytes]:
        """The lines of what comes in pieces; *end*, one byte, ends a line and stays with it."""
        long = LongLine(self.meter, b"")
        try:
            for chunk in chunks:
                first = 0
                if long.size:
                    first = chunk.find(end) + 1
                    long.add(chunk[:first] if first else chunk)
                    if not first:
                        continue
                    yield long.take()
                    long.release()
                last = chunk.rfind(end) + 1
                yield from _lines_of(chunk[first:last], end)
                if last < len(chunk):
                    long.add(chunk[last:])
            if long.size:
                yield long.take()
        finally:
            # Whoever asked for lines may have had enough of them.
            long.release()

    def stat(self, operand: str, *, follow: bool = True) -> FileInfo:
        """What is at *operand*; without *follow* a link itself."""
        self.meter.charge_entries(1)
        return self.workspace.stat(self.path(operand), follow_symlinks=follow)

    def exists(self, operand: str) -> bool:
        """Whether *operand* names anything, a link that leads nowhere too."""
        try:
            self.stat(operand, follow=False)
        except (ClosedError, SessionMissingError):
            raise
        except CarrelError:
            return False
        return True

    def list(self, operand: str) -> list[FileInfo]:
        """The entries of a directory, sorted by name."""
        found = self.workspace.list(self.path(operand))
        self.meter.charge_entries(len(found) + 1)
        return found

    def walk(self, operand: str, enter: EntryFilter | None = None) -> Iterator[tuple[str, FileInfo]]:
        """Everything beneath a directory, parents first, each with its path as it is to be shown.

        A directory is gone into unless *enter* says no. Links are not followed.
        """
        top = self.stat(operand)
        skip = 0 if top.path == "." else len(top.path.rstrip("/")) + 1
        prefix = operand if operand.endswith("/") else f"{operand}/"
        go_in = None if enter is None else lambda info: enter(prefix + info.path[skip:], info)
        for info in self.workspace.walk(self.path(operand), enter=go_in):
            self.meter.charge_entries(1)
            yield prefix + info.path[skip:], info

    def _counted(self, wants: Callable[[str], bool] | None) -> Callable[[str], bool]:
        """The same as *wants*, but charged for every few names that it is asked about."""
        asked = 0

        def counted(name: str) -> bool:
            nonlocal asked
            asked += 1
            if not asked % _BATCH:
                self.meter.charge_entries(_BATCH)
            return wants is None or wants(name)

        return counted

    def read_tree(
        self,
        operand: str,
        *,
        enter: Callable[[str], bool] | None = None,
        wants: Callable[[str], bool] | None = None,
    ) -> Iterator[tuple[str, Iterable[bytes]]]:
        """The regular files beneath a directory, each with its shown path and its content in pieces.

        A directory is gone into unless *enter* says no to its name, and a file read unless *wants* does. One
        that cannot be read says so when its content is iterated.
        """
        top = self.stat(operand)
        skip = 0 if top.path == "." else len(top.path.rstrip("/")) + 1
        prefix = operand if operand.endswith("/") else f"{operand}/"
        counted = self._counted(wants)
        for path, chunks in self.workspace.read_tree(
            self.path(operand), enter=enter, wants=counted, chunk_bytes=CHUNK_BYTES
        ):
            yield prefix + path[skip:], chunks if type(chunks) is tuple else self._metered(chunks)


def _lines_of(text: bytes, end: bytes) -> Iterator[bytes]:
    """The lines of *text*, which ends with *end*, one after the other."""
    if end == b"\n":
        yield from io.BytesIO(text)
        return
    at = 0
    while at < len(text):
        begin, at = at, text.find(end, at) + 1
        yield text[begin:at]


class ErrorReporter:
    """Turns an error about one operand into a message; after it the command goes on."""

    __slots__ = ("_about", "_ctx", "_operand", "_status")

    def __init__(self, ctx: Context, operand: str, about: str | None, status: int) -> None:
        self._ctx = ctx
        self._operand = operand
        self._about = about
        self._status = status

    def __enter__(self) -> None:
        """Nothing is prepared."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Whether the error was one that is reported."""
        if not isinstance(error, CarrelError) or isinstance(error, ClosedError | SessionMissingError):
            return False
        self._ctx.report(error, self._about or quote_if_needed(self._operand), status=self._status)
        return True
