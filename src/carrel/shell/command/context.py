"""`Context`: everything that a command may reach, which is files, streams, state and the meter."""

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
"""Operand that means standard input."""
NULL = "/dev/null"
"""Path that reads as empty and discards writes; no file has that name here."""

_BATCH_NAMES = 64
"""Number of names that are charged at once during a walk."""

EntryFilter = Callable[[str, FileInfo], bool]
"""Decides from a display path and the entry there whether to descend into it."""


@dataclass(slots=True)
class ShellResources:
    """Resources shared by all commands of a shell."""

    workspace: Workspace
    python: PythonRunner | None
    """Runs guest code; `None` where there is no guest."""
    operator: Operator | None
    """Changes the rules; `None` where the user may not."""
    allowed: Container[str]
    """Names of the commands that may run."""

    def change_rules(self, policy: SandboxPolicy) -> None:
        """Reopen the workspace under *policy*; requires an operator.

        Raises:
            CarrelError: The workspace cannot be reopened; the old rules stay in force.
        """
        assert self.operator is not None  # noqa: S101  # checked by the caller
        opened = self.operator.reopen(policy)
        self.workspace.close()
        self.workspace = opened


class NestedCall(Protocol):
    """Runs a nested command."""

    def __call__(self, argv: list[str], state: ShellState, *, stdin: InputStream | None = None) -> int:
        """Run the command that *argv* names, with the same streams or another standard input."""
        ...


class Context:
    """Everything that one run of a command may reach."""

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
        """All arguments of the command, options included."""
        self.resources = resources
        self.state = state
        self.meter = meter
        self.stdin = stdin
        self.call = call
        """Runs a nested command, given its words."""
        self.status = 0
        """The exit status so far."""
        self._stdout = stdout
        self._stderr = stderr

    @property
    def workspace(self) -> Workspace:
        """The workspace, for operations that change files: `ctx.workspace.mkdir(ctx.path(operand))`."""
        return self.resources.workspace

    # Writing

    def write(self, data: bytes) -> None:
        """Write to standard output."""
        self._stdout.write(data)

    def write_each(self, chunks: Iterable[bytes]) -> None:
        """Write *chunks* to standard output, each as soon as it is produced."""
        write = self._stdout.write
        for chunk in chunks:
            write(chunk)

    def write_line(self, text: str) -> None:
        """Write a line of text to standard output."""
        self._stdout.write(encode(text) + b"\n")

    def flush(self) -> None:
        """Flush standard output, for a reader that waits for it."""
        self._stdout.flush()

    def write_error(self, data: bytes) -> None:
        """Write to standard error, after flushing standard output."""
        self._stdout.flush()
        self._stderr.write(data)
        self._stderr.flush()

    def error(self, message: str, *, status: int = 1) -> None:
        """Write `NAME: message` to standard error, and raise the exit status to at least *status*."""
        self.write_error_line(f"{self.name}: {message}")
        self.status = max(self.status, status)

    def write_error_line(self, line: str) -> None:
        """Write a line to standard error."""
        self.write_error(encode(line) + b"\n")

    def report(self, error: CarrelError, about: str, *, status: int = 1) -> None:
        """Report *error* on standard error; the message of a denial is the whole line.

        Otherwise *about* comes before the reason: the quoted operand, or `cannot remove 'x'`.
        """
        if is_denied(error):
            self.write_error_line(error.message)
            self.status = max(self.status, status)
        else:
            self.error(f"{about}: {strerror(error)}", status=status)

    def reporting(self, operand: str, about: str | None = None, *, status: int = 1) -> ErrorReporter:
        """Return a context manager that reports errors about one operand and lets the command continue."""
        return ErrorReporter(self, operand, about, status)

    # Reading

    def path(self, operand: str) -> str:
        """Return *operand* as a path that the workspace accepts, resolved against the working directory."""
        return self.state.path(operand, self.workspace.mount)

    def chunks(self, operand: str) -> Iterator[bytes]:
        """Yield the content of a file or of standard input in chunks; the file is opened at once."""
        return self._metered(self.stdin) if operand == STDIN else self.file_chunks(operand)

    def file_chunks(self, operand: str) -> Iterator[bytes]:
        """Yield the content of a file in chunks; `-` is a file name here. The file is opened at once."""
        if operand == NULL:
            return iter(())
        self.meter.charge_entries(1)
        return self._metered(self.workspace.read_chunks(self.path(operand), chunk_bytes=CHUNK_BYTES))

    def _metered(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            if not chunk:
                # No input yet: show what was written so far to a user who waits for it.
                self.flush()
                continue
            for part in split_chunk(chunk):
                self.meter.check()
                yield part

    def lines(self, operand: str) -> Iterator[bytes]:
        """Yield the lines of a file or of standard input with their newlines; the last one may have none."""
        return self.split_lines(self.chunks(operand))

    def split_lines(self, chunks: Iterator[bytes], end: bytes = b"\n") -> Iterator[bytes]:
        """Yield the lines of *chunks* with their terminator *end*, one byte."""
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
            # The consumer may stop before the last line.
            long.release()

    def stat(self, operand: str, *, follow: bool = True) -> FileInfo:
        """Return the entry at *operand*; without *follow*, that of a link itself."""
        self.meter.charge_entries(1)
        return self.workspace.stat(self.path(operand), follow_symlinks=follow)

    def exists(self, operand: str) -> bool:
        """Whether *operand* names an entry; a dangling link counts."""
        try:
            self.stat(operand, follow=False)
        except (ClosedError, SessionMissingError):
            raise
        except CarrelError:
            return False
        return True

    def list(self, operand: str) -> list[FileInfo]:
        """Return the entries of a directory, sorted by name."""
        found = self.workspace.list(self.path(operand))
        self.meter.charge_entries(len(found) + 1)
        return found

    def _display_prefix(self, operand: str) -> tuple[str, int]:
        """Return the start of display paths beneath *operand*, and the length of what it replaces."""
        top = self.stat(operand)
        skip = 0 if top.path == "." else len(top.path.rstrip("/")) + 1
        return operand if operand.endswith("/") else f"{operand}/", skip

    def walk(self, operand: str, enter: EntryFilter | None = None) -> Iterator[tuple[str, FileInfo]]:
        """Yield every entry beneath a directory with its display path, parents first.

        *enter* may exclude directories from the walk. Links are not followed.
        """
        prefix, skip = self._display_prefix(operand)
        enter_entry = None if enter is None else lambda info: enter(prefix + info.path[skip:], info)
        for info in self.workspace.walk(self.path(operand), enter=enter_entry):
            self.meter.charge_entries(1)
            yield prefix + info.path[skip:], info

    def _charging(self, wants: Callable[[str], bool] | None) -> Callable[[str], bool]:
        """Return *wants* with a charge for every batch of names."""
        count = 0

        def charging(name: str) -> bool:
            nonlocal count
            count += 1
            if not count % _BATCH_NAMES:
                self.meter.charge_entries(_BATCH_NAMES)
            return wants is None or wants(name)

        return charging

    def read_tree(
        self,
        operand: str,
        *,
        enter: Callable[[str], bool] | None = None,
        wants: Callable[[str], bool] | None = None,
    ) -> Iterator[tuple[str, Iterable[bytes]]]:
        """Yield the regular files beneath a directory with their display paths and their content in chunks.

        *enter* may exclude directories by name, and *wants* files. The error of a file that cannot be read is
        raised when its content is iterated.
        """
        prefix, skip = self._display_prefix(operand)
        charging = self._charging(wants)
        for path, chunks in self.workspace.read_tree(
            self.path(operand), enter=enter, wants=charging, chunk_bytes=CHUNK_BYTES
        ):
            yield prefix + path[skip:], chunks if type(chunks) is tuple else self._metered(chunks)


def _lines_of(text: bytes, end: bytes) -> Iterator[bytes]:
    """Yield the lines of *text*, which ends with *end*."""
    if end == b"\n":
        yield from io.BytesIO(text)
        return
    at = 0
    while at < len(text):
        begin, at = at, text.find(end, at) + 1
        yield text[begin:at]


class ErrorReporter:
    """Context manager that turns an error about one operand into a message."""

    __slots__ = ("_about", "_ctx", "_operand", "_status")

    def __init__(self, ctx: Context, operand: str, about: str | None, status: int) -> None:
        self._ctx = ctx
        self._operand = operand
        self._about = about
        self._status = status

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Report a `CarrelError` and suppress it, except those that end the shell."""
        if not isinstance(error, CarrelError) or isinstance(error, ClosedError | SessionMissingError):
            return False
        self._ctx.report(error, self._about or quote_if_needed(self._operand), status=self._status)
        return True
