"""Execute a parsed command line in this process: expand words, redirect, connect and run commands."""

from __future__ import annotations

from collections.abc import Sequence

from carrel.errors import CarrelError, ClosedError, CommandDeniedError, SessionMissingError
from carrel.shell.budget import Meter
from carrel.shell.command.context import Context, ShellResources
from carrel.shell.command.flags import HelpRequest, UsageError
from carrel.shell.command.invocation import MAX_NESTED_COMMANDS, Invocation, help_text
from carrel.shell.command.table import COMMANDS
from carrel.shell.language.ast import Connector, Pipeline, SimpleCommand
from carrel.shell.language.expand import WordExpander, variable_lookup
from carrel.shell.language.glob import Glob
from carrel.shell.language.pattern import PatternSegment
from carrel.shell.runtime.pipeline import PipelineStage, run_stages
from carrel.shell.runtime.redirect import Redirections, write_error
from carrel.shell.state import ShellState
from carrel.shell.streams import CommandStreams, InputStream, NullSink, OutputStream, Pipe, PipeClosed
from carrel.shell.text.quoting import encode, quote_if_needed

STATUS_USAGE = 2
"""Exit status of a line with a syntax error, and of a command with wrong arguments."""
CODE_USAGE = "shell.usage"
"""Logged for a command with wrong arguments, which is a result and not an error."""
STATUS_NOT_FOUND = 127
"""Exit status of a command that does not exist or is not allowed."""
STATUS_PIPE_CLOSED = 141
"""Exit status of a command whose output nothing reads any more, as if SIGPIPE had ended it."""


class LineExecution:
    """One execution of one command line."""

    def __init__(self, resources: ShellResources, state: ShellState, meter: Meter) -> None:
        self._resources = resources
        self._state = state
        self._meter = meter

    def run(self, line: Sequence[Pipeline], streams: CommandStreams) -> int:
        """Run the pipelines as `&&` and `||` select, and return the last exit status; 0 without any."""
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
        """Return the exit status of the last command, or with `pipefail` of the last one that failed."""
        if len(pipeline.commands) == 1:
            return self._run_command(pipeline.commands[0], self._state, streams)
        *piped, last = pipeline.commands
        stages: list[PipelineStage] = []
        stdin = streams.stdin
        upstream: Pipe | None = None
        for command in piped:
            pipe = Pipe(self._meter)
            own = CommandStreams(stdin, OutputStream(pipe, self._meter), streams.stderr)
            stages.append(self._stage(command, own, stdin=upstream, stdout=pipe))
            stdin, upstream = InputStream(pipe), pipe
        stages.append(self._stage(last, streams._replace(stdin=stdin), stdin=upstream, stdout=None))
        statuses = run_stages(stages, self._meter.cancel)
        if self._state.pipefail:
            return next((status for status in reversed(statuses) if status), 0)
        return statuses[-1]

    def _stage(
        self, command: SimpleCommand, streams: CommandStreams, *, stdin: Pipe | None, stdout: Pipe | None
    ) -> PipelineStage:
        """Return a stage that runs *command* on a copy of the state, as in a subshell."""

        def run() -> int:
            return self._run_command(command, self._state.copy(), streams)

        return PipelineStage(run, stop=self._meter.cancel, stdin=stdin, stdout=stdout)

    # One command

    def _run_command(self, command: SimpleCommand, state: ShellState, streams: CommandStreams) -> int:
        """Expand a command and run it with its assignments and redirections."""
        expander = self._expander(state)
        try:
            argv = [field for word in command.words for field in expander.fields(word)]
            self._meter.charge_entries(len(argv))
            if command.assignments:
                state = self._assign(command, state.copy() if argv else state, exports=bool(argv))
        except (ClosedError, SessionMissingError):
            raise
        except CarrelError as error:
            write_error(streams.stderr, None, error)
            return 1
        if command.redirects:
            redirections = Redirections(command.redirects, expander, self._context("", state, streams))
            status = self._run_redirected(redirections, argv, state, streams)
        else:
            status = self._run_argv(argv, state, streams)
        self._meter.charge_memory(-expander.charged_bytes)
        return status

    def _assign(self, command: SimpleCommand, state: ShellState, *, exports: bool) -> ShellState:
        """Set the variables of *command* in *state*, exported with *exports*, and return *state*."""
        expander = self._expander(state)
        for name, word in command.assignments:
            state.assign({name: expander.text(word)})
        if exports:
            state.exported.update(name for name, _ in command.assignments)
        self._meter.charge_memory(-expander.charged_bytes)
        return state

    def _run_redirected(
        self, redirections: Redirections, argv: list[str], state: ShellState, streams: CommandStreams
    ) -> int:
        """Run a command with redirected streams; a redirection that is refused keeps it from running."""
        try:
            redirected = redirections.open(streams)
            status = 1 if redirected is None else self._run_argv(argv, state, redirected)
            is_written = redirections.close(streams.stderr)
        except BaseException:
            redirections.abandon()
            raise
        return status if is_written else 1

    def _run_argv(self, argv: list[str], state: ShellState, streams: CommandStreams) -> int:
        """Run the command that *argv* names, if any, and flush its output."""
        try:
            status = self._invoke(argv, state, streams) if argv else 0
            streams.stdout.flush()
        except PipeClosed:
            return STATUS_PIPE_CLOSED
        return status

    def _invoke(self, argv: list[str], state: ShellState, streams: CommandStreams, depth: int = 0) -> int:
        """Run the command that *argv* names, nested in *depth* others, and report its errors."""
        name = argv[0]
        context = self._context(name, state, streams, depth)
        context.arguments = argv[1:]
        command = COMMANDS.get(name)
        if command is None or name not in self._resources.allowed:
            return self._refuse(context)
        if depth > MAX_NESTED_COMMANDS:
            context.error(f"commands are nested more than {MAX_NESTED_COMMANDS} deep")
            return 1
        try:
            return Invocation.parse(command, argv[1:]).run(context)
        except HelpRequest:
            context.write(encode(help_text(command, command.load())))
            return 0
        except UsageError as error:
            self._resources.workspace.gate.log_mistake(name, CODE_USAGE)
            context.error(error.message)
            if error.hint:
                context.write_error_line(f"Try '{name} --help' for more information.")
            return error.status
        except (ClosedError, SessionMissingError):
            raise
        except CarrelError as error:
            context.report(error, quote_if_needed(error.path or ""))
            return max(context.status, 1)

    def _refuse(self, context: Context) -> int:
        """Report a command that does not exist or is not allowed, and record the attempt in the journal."""
        name, gate = quote_if_needed(context.name), self._resources.workspace.gate
        if context.name in COMMANDS:
            record, problem = gate.record_refusal, f"{name}: command not allowed here"
        else:
            record = gate.record_mistake
            problem = f"{name}: command not found: programs of the host are not allowed; try 'help'"
        context.write_error_line(problem)
        record("shell", CommandDeniedError(problem, path=context.name))
        return STATUS_NOT_FOUND

    # What commands and expansions work with

    def _context(self, name: str, state: ShellState, streams: CommandStreams, depth: int = 0) -> Context:
        def call(argv: list[str], state: ShellState, *, stdin: InputStream | None = None) -> int:
            own = streams if stdin is None else streams._replace(stdin=stdin)
            return self._invoke(argv, state, own, depth + 1)

        return Context(name, self._resources, state, self._meter, **streams._asdict(), call=call)

    def silent_context(self, state: ShellState) -> Context:
        """Return a context that sees the files as a command in *state* would, and discards output."""
        output = OutputStream(NullSink(), self._meter)
        return self._context("", state, CommandStreams(InputStream(), output, output))

    def _expander(self, state: ShellState) -> WordExpander:
        """Return an expander for the variables and the working directory of *state*."""

        def match(segments: list[PatternSegment]) -> list[str]:
            context = self.silent_context(state)
            return Glob(context.list, context.exists, self._meter.charge_memory).expand(segments)

        return WordExpander(variable_lookup(state.variables, state.status), match, self._meter.charge_memory)
