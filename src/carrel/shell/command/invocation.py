"""One call of a command: load its module, parse its arguments, run it, or print its help."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from carrel.shell.command.access import PathAccess
from carrel.shell.command.context import Context
from carrel.shell.command.flags import HelpRequest, NoFlags, parser_of
from carrel.shell.command.table import CommandSpec

MAX_NESTED_COMMANDS = 20
"""Deepest nesting of commands that run another one, as `env` and `xargs` do."""


class Invocation(NamedTuple):
    """One command with its parsed arguments."""

    module: Any  # a module of `commands`; modules have no common type
    arguments: tuple[Any, ...]
    """Flags and operands; all words unparsed if the command has no `Flags`."""

    @classmethod
    def parse(cls, command: CommandSpec, argv: Sequence[str]) -> Invocation:
        """Parse *argv*, the words after the name.

        Raises:
            UsageError: The arguments are wrong.
            HelpRequest: The arguments include `--help`.
        """
        module = command.load()
        flags_class = getattr(module, "Flags", None)
        if flags_class is None:
            if list(argv) == ["--help"]:
                raise HelpRequest
            return cls(module, (list(argv),))
        parser = parser_of(flags_class, getattr(module, "OPTIONS_FIRST", False))
        return cls(module, parser.parse(argv))

    def run(self, ctx: Context) -> int:
        """Run the command and return its exit status."""
        return int(self.module.run(ctx, *self.arguments))

    def accesses(self) -> Iterable[PathAccess]:
        """Return the paths that the command declares it would read and write."""
        declare = getattr(self.module, "accesses", None)
        return () if declare is None else list(declare(*self.arguments))

    @property
    def adds_operands(self) -> bool:
        """Whether it adds operands to the command that it runs, as `xargs` does; they are unknown before."""
        return bool(getattr(self.module, "ADDS_OPERANDS", False))

    def nested_command(self) -> list[str]:
        """Return the words of the command that this one would run; empty if there is none."""
        declare = getattr(self.module, "nested_command", None)
        return [] if declare is None else list(declare(*self.arguments))


_HELP_COLUMN = 26
"""Column where the descriptions of options begin."""


def help_text(command: CommandSpec, module: Any) -> str:
    """Return the text that `NAME --help` prints."""
    summary = command.summary
    lines = [
        f"Usage: {command.name} {module.USAGE}".rstrip(),
        f"{summary[0].upper()}{summary[1:]}.",
        "",
    ]
    for spelling, text in parser_of(getattr(module, "Flags", NoFlags)).rows():
        if len(spelling) + 2 < _HELP_COLUMN:
            lines.append(f"  {spelling:<{_HELP_COLUMN - 2}}{text}")
        else:
            lines += [f"  {spelling}", " " * _HELP_COLUMN + text]
    if notes := getattr(module, "NOTES", ""):
        lines += ["", notes.strip("\n")]
    return "\n".join(lines) + "\n"
