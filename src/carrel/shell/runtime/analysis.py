"""Report what a command line would read and write, and which rules decide, without running it.

Words are expanded against the files as they are now. The accesses of guest code, and those inside the
directories that a command walks, are unknown before the line runs; the gate decides about them then.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from carrel.errors import CarrelError, ClosedError, PathError, SessionMissingError
from carrel.policy.rules import Access, AccessMode, Decision
from carrel.shell.budget import Stopped
from carrel.shell.command.access import PathAccess
from carrel.shell.command.context import NULL, Context, ShellResources
from carrel.shell.command.flags import HelpRequest, UsageError
from carrel.shell.command.invocation import MAX_NESTED_COMMANDS, Invocation
from carrel.shell.command.table import COMMANDS, CommandEffect
from carrel.shell.language.ast import Pipeline, Redirect, SimpleCommand
from carrel.shell.language.expand import WordExpander, variable_lookup
from carrel.shell.language.glob import Glob
from carrel.shell.state import ShellState
from carrel.shell.text.quoting import quote_if_needed
from carrel.values import FileInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class PathUse:
    """One path that a command would read or write, and the decision of the rules."""

    command: str
    """Name of the command; empty for a redirection without a command."""
    access: Access
    path: str
    """Absolute path, as the guest sees it."""
    allowed: bool
    rule: int | None
    """Number of the rule that decides, 0 for that of the workspace; `None` if no rule covers the path."""
    mode: AccessMode | None
    """Mode of that rule."""
    reason: str | None
    """Why the access is denied; `None` if it is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """Effects of a command line, as far as they are known before it runs."""

    commands: tuple[tuple[str, ...], ...]
    """Expanded words of each command, including commands that another one runs, as `env` does."""
    uses: tuple[PathUse, ...]
    problems: tuple[str, ...]
    """Reasons why the line would fail at once: unknown commands, wrong options, a limit reached."""
    runs_code: bool
    """Whether guest code would run; it may use any path that the rules allow."""
    writes_more: bool
    """Whether a command would write to paths known only when it runs, such as those from `xargs`."""

    @property
    def allowed(self) -> bool:
        """Whether no known access would be denied, and there are no problems."""
        return not self.problems and all(use.allowed for use in self.uses)

    @property
    def changes(self) -> bool:
        """Whether anything would be written, as far as is known."""
        return self.runs_code or self.writes_more or any(use.access is Access.WRITE for use in self.uses)


class Analyzer:
    """Analyzes one command line."""

    def __init__(self, resources: ShellResources, context_for: Callable[[ShellState], Context]) -> None:
        """Examine files through the contexts that *context_for* returns, as a command would."""
        self._resources = resources
        self._context_for = context_for
        self._commands: list[tuple[str, ...]] = []
        self._uses: list[PathUse] = []
        self._problems: list[str] = []
        self._runs_code = False
        self._adds_operands = False
        self._writes_more = False

    def analyze(self, line: Sequence[Pipeline], state: ShellState) -> Analysis:
        """Analyze *line* as if all of its commands ran, starting from *state*, which is updated."""
        try:
            for pipeline in line:
                is_single = len(pipeline.commands) == 1
                for command in pipeline.commands:
                    self._analyze_command(command, state if is_single else state.copy())
        except Stopped as stopped:
            self._problems.append(stopped.message)
        return Analysis(
            commands=tuple(self._commands),
            uses=tuple(self._uses),
            problems=tuple(self._problems),
            runs_code=self._runs_code,
            writes_more=self._writes_more,
        )

    def _analyze_command(self, command: SimpleCommand, state: ShellState) -> None:
        context = self._context_for(state)
        expander = _expander(context)
        try:
            argv = [field for word in command.words for field in expander.fields(word)]
            name = argv[0] if argv else ""
            for redirect in command.redirects:
                self._add_uses(name, _redirect_accesses(redirect, expander), context)
            if not argv:
                for variable, word in command.assignments:
                    state.assign({variable: expander.text(word)})
        except (ClosedError, SessionMissingError):
            raise
        except CarrelError as error:
            self._problems.append(error.message)
            return
        self._analyze_argv(argv, context)

    def _analyze_argv(self, argv: list[str], context: Context) -> None:
        """Analyze a command, the command that it runs, and so on."""
        self._adds_operands = False
        if argv[:1] == ["cd"]:
            self._analyze_invocation(argv, context)
            _change_directory(argv[1:], context.state)
            return
        for _ in range(MAX_NESTED_COMMANDS + 1):
            if not argv:
                return
            argv = self._analyze_invocation(argv, context)
        if argv:
            self._problems.append(f"commands are nested more than {MAX_NESTED_COMMANDS} deep")

    def _analyze_invocation(self, argv: list[str], context: Context) -> list[str]:
        """Analyze one command, and return the words of the command that it runs; empty if there is none."""
        name = argv[0]
        self._commands.append(tuple(argv))
        command = COMMANDS.get(name)
        if command is None or name not in self._resources.allowed:
            self._problems.append(f"{quote_if_needed(name)}: command not found or not allowed")
            return []
        try:
            invocation = Invocation.parse(command, argv[1:])
            self._add_uses(name, invocation.accesses(), context)
        except HelpRequest:
            return []
        except UsageError as error:
            self._problems.append(f"{name}: {error.message}")
            return []
        self._runs_code |= command.effect is CommandEffect.RUN
        self._writes_more |= self._adds_operands and command.effect is CommandEffect.WRITE
        self._adds_operands |= invocation.adds_operands
        return invocation.nested_command()

    def _add_uses(self, name: str, accesses: Iterable[PathAccess], context: Context) -> None:
        for access, operand in accesses:
            if not operand:
                # The command itself reports an empty operand.
                continue
            decision = _decide(context, operand, access)
            self._uses.append(
                PathUse(
                    command=name,
                    access=access,
                    path=posixpath.join(context.state.cwd, operand),
                    allowed=decision.allowed,
                    rule=decision.index,
                    mode=None if decision.rule is None else decision.rule.mode,
                    reason=decision.reason,
                )
            )


def _decide(context: Context, operand: str, access: Access) -> Decision:
    try:
        return context.workspace.explain(context.path(operand), access)
    except PathError as error:
        return Decision(path=operand, access=access, index=None, rule=None, reason=error.message)


def _redirect_accesses(redirect: Redirect, expander: WordExpander) -> Iterator[PathAccess]:
    target = expander.text(redirect.target)
    if redirect.operator != ">&" and target != NULL:
        yield PathAccess(Access.READ if redirect.operator == "<" else Access.WRITE, target)


def _expander(context: Context) -> WordExpander:
    """Return an expander that skips unreadable directories, since trying them would be recorded."""
    state, charge_memory = context.state, context.meter.charge_memory
    glob = Glob(partial(_list, context), partial(_exists, context), charge_memory)
    return WordExpander(variable_lookup(state.variables, state.status), glob.expand, charge_memory)


def _list(context: Context, operand: str) -> list[FileInfo]:
    return context.list(operand) if _decide(context, operand, Access.READ).allowed else []


def _exists(context: Context, operand: str) -> bool:
    return _decide(context, operand, Access.READ).allowed and context.exists(operand)


def _change_directory(argv: Sequence[str], state: ShellState) -> None:
    """Change the directory of *state* as `cd` would."""
    operands = [word for word in argv if word not in ("-L", "--")]
    target = operands[0] if operands else state.variables.get("HOME", state.cwd)
    if target == "-":
        target = state.variables.get("OLDPWD", state.cwd)
    state.variables["OLDPWD"] = state.cwd
    state.cwd = posixpath.normpath(posixpath.join(state.cwd, target))
    state.variables["PWD"] = state.cwd
