"""Execute a parsed command line in this process: expand, redirect, connect and call commands."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from carrel.errors import CarrelError, ClosedError, CommandDeniedError, SessionMissingError
from carrel.shell.budget import Meter, Stopped
from carrel.shell.command.context import NULL, Context, ShellResources
from carrel.shell.command.errors import is_denied, strerror
from carrel.shell.command.flags import HelpRequest, UsageError
from carrel.shell.command.invocation import MAX_NESTED_COMMANDS, Invocation, help_text
from carrel.shell.command.table import COMMANDS
from carrel.shell.language.expand import WordExpander, variable_lookup
from carrel.shell.language.glob import Glob
from carrel.shell.language.parser import Connector, Pipeline, Redirect, SimpleCommand
from carrel.shell.language.pattern import PatternSegment
from carrel.shell.runtime.pipeline import PipelineStage
from carrel.shell.runtime.redirect import AppendedFile, ReplacedFile
from carrel.shell.state import ShellState
from carrel.shell.streams import InputStream, OutputStream, Pipe, PipeClosed
from carrel.shell.text.quoting import encode, quote_if_needed

STATUS_NOT_FOUND = 127
"""The exit status of a command that is not there."""
STATUS_USAGE = 2
"""That of one whose arguments are wrong."""


class CommandStreams(NamedTuple):
    """What a command reads from and writes to."""

    stdin: InputStream
    stdout: OutputStream
    stderr: OutputStream

    def writing(self, stream: int, output: OutputStream) -> CommandStreams:
        """The same, with *output* as stream 1 or 2."""
        return self._replace(stdout=output) if stream == 1 else self._replace(stderr=output)


class LineExecution:
    """One run of one command line."""

    def __init__(self, resources: ShellResources, state: ShellState, meter: Meter) -> None:
        self._resources = resources
        self._state = state
        self._meter = meter

    def run(self, line: Sequence[Pipeline], streams: CommandStreams) -> int:
        """Run all that is to be run, and return the last exit status; 0 if there is only a comment."""
        state = self._state
        if not line:
            state.status = 0
        for pipeline in line:
            if pipeline.connector is Connector.AND and state.status != 0:
                continue
            if pipeline.connector is Connector.OR and state.status == 0:
                continue
            self._meter.check()
            status = self._run_pipeline(pipeline, streams)
            state.status = int(not status) if pipeline.negated else status
        return state.status

    def _run_pipeline(self, pipeline: Pipeline, streams: CommandStreams) -> int:
        if len(pipeline.commands) == 1:
            return self._run_simple(pipeline.commands[0], self._state, streams)
        stages: list[PipelineStage] = []
        stdin = streams.stdin
        upstream: Pipe | None = None
        for simple in pipeline.commands[:-1]:
            pipe = Pipe(self._meter)
            own = CommandStreams(stdin, OutputStream(pipe, self._meter), streams.stderr)
            stages.append(self._stage(simple, own, reads=upstream, writes=pipe))
            stdin, upstream = InputStream(pipe), pipe
        own = streams._replace(stdin=stdin)
        last = self._stage(pipeline.commands[-1], own, reads=upstream, writes=None)
        try:
            for stage in stages:
                stage.start()
            last.run()
            for stage in stages:
                stage.join()
        except BaseException:
            self._meter.cancel()
            for stage in stages:
                stage.join()
            raise
        return self._status([*stages, last])

    def _stage(
        self, simple: SimpleCommand, streams: CommandStreams, *, reads: Pipe | None, writes: Pipe | None
    ) -> PipelineStage:
        """One command of a pipeline, whose changes of the shell do not last."""

        def run() -> int:
            return self._run_simple(simple, self._state.copy(), streams)

        return PipelineStage(run, stop=self._meter.cancel, reads=reads, writes=writes)

    def _status(self, stages: Sequence[PipelineStage]) -> int:
        """The status of the last, or with `pipefail` of the last that failed."""
        errors = [stage.error for stage in stages if stage.error is not None]
        if errors:
            # One that was stopped may have been so because another failed.
            raise next((error for error in errors if not isinstance(error, Stopped)), errors[0])
        if self._state.pipefail:
            return next((stage.status for stage in reversed(stages) if stage.status), 0)
        return stages[-1].status

    # One command

    def _run_simple(self, simple: SimpleCommand, state: ShellState, streams: CommandStreams) -> int:
        expansion = self.expansion(state)
        try:
            argv = [field for word in simple.words for field in expansion.fields(word)]
            self._meter.charge_entries(len(argv))
            if simple.assignments:
                state = self._assigned(simple, state.copy() if argv else state, exports=bool(argv))
        except (ClosedError, SessionMissingError):
            raise
        except CarrelError as error:
            _tell(streams.stderr, None, error)
            return 1
        status = self._redirected(simple.redirects, expansion, argv, state, streams)
        self._meter.charge_memory(-expansion.held)
        return status

    def _assigned(self, simple: SimpleCommand, state: ShellState, *, exports: bool) -> ShellState:
        """The state with the variables that *simple* sets; with *exports* its command is given them."""
        expansion = self.expansion(state)
        for name, word in simple.assignments:
            state.assign({name: expansion.text(word)})
        if exports:
            state.exported.update(name for name, _ in simple.assignments)
        self._meter.charge_memory(-expansion.held)
        return state

    def expansion(self, state: ShellState) -> WordExpander:
        """Expands words as they are seen from *state*."""

        def match(segments: list[PatternSegment]) -> list[str]:
            context = self.silent_context(state)
            return Glob(context.list, context.exists, self._meter.charge_memory).expand(segments)

        return WordExpander(variable_lookup(state.variables, state.status), match, self._meter.charge_memory)

    def silent_context(self, state: ShellState) -> Context:
        """What sees the files as a command would, and prints nothing."""
        return self._context("", state, _nowhere(self._meter))

    def _context(self, name: str, state: ShellState, streams: CommandStreams, depth: int = 0) -> Context:
        def call(argv: list[str], state: ShellState, *, stdin: InputStream | None = None) -> int:
            own = streams if stdin is None else streams._replace(stdin=stdin)
            return self._call(argv, state, own, depth + 1)

        return Context(name, self._resources, state, self._meter, **streams._asdict(), call=call)

    def _redirected(
        self,
        redirects: Sequence[Redirect],
        expansion: WordExpander,
        argv: list[str],
        state: ShellState,
        streams: CommandStreams,
    ) -> int:
        """Run a command with its own streams; a redirect that is refused keeps it from running."""
        opened: list[_Opened] = []
        try:
            own = self._open_all(redirects, expansion, state, streams, opened)
            status = 1 if own is None else self._run_to_end(argv, state, own)
            is_written = _close(opened, streams.stderr)
        except BaseException:
            for each in opened:
                each.file.abandon()
            raise
        return status if is_written else 1

    def _open_all(
        self,
        redirects: Sequence[Redirect],
        expansion: WordExpander,
        state: ShellState,
        streams: CommandStreams,
        opened: list[_Opened],
    ) -> CommandStreams | None:
        """The streams as *redirects* want them; none, if one is refused, which is told."""
        for redirect in redirects:
            target = expansion.text(redirect.target)
            try:
                self._meter.charge_entries(1)
                streams = self._open(redirect, target, state, streams, opened)
            except (ClosedError, SessionMissingError):
                raise
            except CarrelError as error:
                _tell(streams.stderr, target, error)
                return None
        return streams

    def _run_to_end(self, argv: list[str], state: ShellState, streams: CommandStreams) -> int:
        """Run a command; if nobody reads what it writes, it ends as if that were all."""
        try:
            status = self._call(argv, state, streams) if argv else 0
            streams.stdout.flush()
        except PipeClosed:
            return 141
        return status

    def _open(
        self,
        redirect: Redirect,
        target: str,
        state: ShellState,
        streams: CommandStreams,
        opened: list[_Opened],
    ) -> CommandStreams:
        if redirect.sign == ">&":
            other = streams.stdout if target == "1" else streams.stderr
            return streams.writing(redirect.stream, other)
        if target == NULL:
            nothing = OutputStream(_Nothing(), self._meter)
            is_input = redirect.sign == "<"
            return (
                streams._replace(stdin=InputStream())
                if is_input
                else streams.writing(redirect.stream, nothing)
            )
        context = self._context("", state, streams)
        path = context.path(target)
        if redirect.sign == "<":
            size = context.stat(target).size_bytes
            return streams._replace(stdin=InputStream(context.chunks(target), size_bytes=size))
        file: AppendedFile | ReplacedFile
        if redirect.sign == ">>":
            file = AppendedFile(self._resources.workspace, path)
        else:
            file = ReplacedFile(self._resources.workspace, path, self._meter)
        output = OutputStream(file, self._meter)
        opened.append(_Opened(target, output, file))
        return streams.writing(redirect.stream, output)

    def _call(self, argv: list[str], state: ShellState, streams: CommandStreams, depth: int = 0) -> int:
        """Run the command that *argv* names; *depth* commands wait for it."""
        name = argv[0]
        ctx = self._context(name, state, streams, depth)
        ctx.arguments = argv[1:]
        command = COMMANDS.get(name)
        if command is None or name not in self._resources.allowed:
            return self._not_found(ctx)
        if depth > MAX_NESTED_COMMANDS:
            ctx.error(f"more than {MAX_NESTED_COMMANDS} commands run each other")
            return 1
        try:
            return Invocation.read(command, argv[1:]).run(ctx)
        except HelpRequest:
            ctx.write(encode(help_text(command, command.load())))
            return 0
        except UsageError as error:
            ctx.error(error.message)
            if error.hint:
                ctx.write_error_line(f"Try '{name} --help' for more information.")
            return error.status
        except (ClosedError, SessionMissingError):
            raise
        except CarrelError as error:
            ctx.report(error, quote_if_needed(error.path or ""))
            return max(ctx.status, 1)

    def _not_found(self, ctx: Context) -> int:
        """Tell that a command may not be run, and remember the attempt."""
        name = quote_if_needed(ctx.name)
        if ctx.name in COMMANDS:
            problem = f"{name}: command not allowed here"
        else:
            problem = f"{name}: command not found: programs of the host are not allowed; try 'help'"
        ctx.write_error_line(problem)
        self._resources.workspace.gate.refused("shell", CommandDeniedError(problem, path=ctx.name))
        return STATUS_NOT_FOUND


class _Nothing:
    """Swallows what is written."""

    def write(self, data: bytes) -> None:
        """Let *data* go."""

    def close(self) -> None:
        """Nothing is open."""


def _nowhere(meter: Meter) -> CommandStreams:
    output = OutputStream(_Nothing(), meter)
    return CommandStreams(InputStream(), output, output)


class _Opened(NamedTuple):
    """A file that a command writes to, and what it was called."""

    target: str
    output: OutputStream
    file: AppendedFile | ReplacedFile


def _close(opened: Sequence[_Opened], stderr: OutputStream) -> bool:
    """Put all that was written in place; tell what cannot be, and whether all could."""
    is_written = True
    for target, output, file in reversed(opened):
        try:
            # One that takes no more says why when it is closed.
            with suppress(PipeClosed):
                output.flush()
            file.close()
        except (ClosedError, SessionMissingError):
            raise
        except CarrelError as error:
            _tell(stderr, target, error)
            is_written = False
    return is_written


def _tell(stderr: OutputStream, target: str | None, error: CarrelError) -> None:
    """Write why something cannot be done, about *target* unless the error says enough."""
    line = error.message
    if target is not None and not is_denied(error):
        line = f"{quote_if_needed(target)}: {strerror(error)}"
    # With 2>&1 it may be a pipe that nobody reads any more.
    with suppress(PipeClosed):
        stderr.write(encode(line) + b"\n")
        stderr.flush()
