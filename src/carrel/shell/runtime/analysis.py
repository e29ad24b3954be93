"""Report what a command line would read and write, and by which rule, without running it.

Names are expanded as they would be now. What guest code would do, and what a command would find inside the
directories that it is given, is not known before it runs; the gate decides about that then.
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
from carrel.shell.language.expand import WordExpander, variable_lookup
from carrel.shell.language.glob import Glob
from carrel.shell.language.parser import Pipeline, Redirect, SimpleCommand
from carrel.shell.state import ShellState
from carrel.shell.text.quoting import quote_if_needed
from carrel.values import FileInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class PathUse:
    """One path that a command would read or write, and what the rules say to that."""

    command: str
    """The name of the command; empty for a redirect without one."""
    access: Access
    path: str
    """Absolute, as those inside call it."""
    allowed: bool
    rule: int | None
    """The number of the rule that decides, 0 for that of the workspace; `None` if no rule has the path."""
    mode: AccessMode | None
    """What that rule allows."""
    reason: str | None
    """Why not, if it is not allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What a command line would do."""

    commands: tuple[tuple[str, ...], ...]
    """The words of each command, expanded; also of one that another runs, as `env` does."""
    uses: tuple[PathUse, ...]
    problems: tuple[str, ...]
    """What would be refused at once: commands that are not there, wrong options, too much to look at."""
    runs_code: bool
    """Whether guest code would run, which may use any path that the rules allow."""
    writes_more: bool
    """Whether a command would write to paths that are known only when it runs, as those from `xargs`."""

    @property
    def allowed(self) -> bool:
        """Whether nothing that is known would be refused."""
        return not self.problems and all(use.allowed for use in self.uses)

    @property
    def changes(self) -> bool:
        """Whether anything would be written, as far as is known."""
        return self.runs_code or self.writes_more or any(use.access is Access.WRITE for use in self.uses)


class Analyzer:
    """Looks at one command line."""

    def __init__(self, resources: ShellResources, look_from: Callable[[ShellState], Context]) -> None:
        """Look at the files by what *look_from* gives, as a command would."""
        self._resources = resources
        self._look_from = look_from
        self._commands: list[tuple[str, ...]] = []
        self._uses: list[PathUse] = []
        self._problems: list[str] = []
        self._runs_code = False
        self._adds_operands = False
        self._writes_more = False

    def look(self, line: Sequence[Pipeline], state: ShellState) -> Analysis:
        """What *line* would do from *state* on, if each of its commands were run; *state* goes along."""
        try:
            for pipeline in line:
                is_single = len(pipeline.commands) == 1
                for simple in pipeline.commands:
                    self._add(simple, state if is_single else state.copy())
        except Stopped as stopped:
            self._problems.append(stopped.message)
        return Analysis(
            commands=tuple(self._commands),
            uses=tuple(self._uses),
            problems=tuple(self._problems),
            runs_code=self._runs_code,
            writes_more=self._writes_more,
        )

    def _add(self, simple: SimpleCommand, state: ShellState) -> None:
        context = self._look_from(state)
        expansion = _expansion(context)
        try:
            argv = [field for word in simple.words for field in expansion.fields(word)]
            name = argv[0] if argv else ""
            for redirect in simple.redirects:
                self._add_uses(name, _redirected(redirect, expansion), context)
            if not argv:
                for variable, word in simple.assignments:
                    state.assign({variable: expansion.text(word)})
        except (ClosedError, SessionMissingError):
            raise
        except CarrelError as error:
            self._problems.append(error.message)
            return
        self._add_commands(argv, context)

    def _add_commands(self, argv: list[str], context: Context) -> None:
        """Look at a command, at the one that it runs, and so on."""
        self._adds_operands = False
        if argv[:1] == ["cd"]:
            self._add_command(argv, context)
            _follow(argv[1:], context.state)
            return
        for _ in range(MAX_NESTED_COMMANDS + 1):
            if not argv:
                return
            argv = self._add_command(argv, context)
        if argv:
            self._problems.append(f"more than {MAX_NESTED_COMMANDS} commands run each other")

    def _add_command(self, argv: list[str], context: Context) -> list[str]:
        """Look at one command; the words of the one that it runs, if it does."""
        name = argv[0]
        self._commands.append(tuple(argv))
        command = COMMANDS.get(name)
        if command is None or name not in self._resources.allowed:
            self._problems.append(f"{quote_if_needed(name)}: command not found or not allowed")
            return []
        try:
            invocation = Invocation.read(command, argv[1:])
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
                # Nothing is called so, and the command will say it.
                continue
            decision = _decision(context, operand, access)
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


def _decision(context: Context, operand: str, access: Access) -> Decision:
    try:
        return context.workspace.explain(context.path(operand), access)
    except PathError as error:
        return Decision(path=operand, access=access, index=None, rule=None, reason=error.message)


def _redirected(redirect: Redirect, expansion: WordExpander) -> Iterator[PathAccess]:
    target = expansion.text(redirect.target)
    if redirect.sign != ">&" and target != NULL:
        yield PathAccess(Access.READ if redirect.sign == "<" else Access.WRITE, target)


def _expansion(context: Context) -> WordExpander:
    """Expands words; directories that may not be read are not tried, since that would be recorded."""
    glob = Glob(partial(_list, context), partial(_is_there, context))
    state = context.state
    return WordExpander(
        variable_lookup(state.variables, state.status), glob.expand, context.meter.charge_memory
    )


def _list(context: Context, operand: str) -> list[FileInfo]:
    return context.list(operand) if _decision(context, operand, Access.READ).allowed else []


def _is_there(context: Context, operand: str) -> bool:
    return _decision(context, operand, Access.READ).allowed and context.exists(operand)


def _follow(argv: Sequence[str], state: ShellState) -> None:
    """Go where `cd` would go."""
    operands = [word for word in argv if word not in ("-L", "--")]
    target = operands[0] if operands else state.variables.get("HOME", state.cwd)
    if target == "-":
        target = state.variables.get("OLDPWD", state.cwd)
    state.variables["OLDPWD"] = state.cwd
    state.cwd = posixpath.normpath(posixpath.join(state.cwd, target))
    state.variables["PWD"] = state.cwd
