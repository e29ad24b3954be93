"""One call of a command: load its module, parse its arguments, run it, or print its help."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from carrel.shell.command.access import PathAccess
from carrel.shell.command.context import Context
from carrel.shell.command.flags import HelpRequest, NoFlags, parser_of
from carrel.shell.command.table import CommandSpec

MAX_NESTED_COMMANDS = 20
"""Most commands that run each other, as `env` and `xargs` do."""


class Invocation(NamedTuple):
    """A command that could be run, with arguments that it understands."""

    module: Any  # a module of `commands`, which fulfils no type that could be named
    arguments: tuple[Any, ...]
    """Flags and operands, or all words as they are."""

    @classmethod
    def read(cls, command: CommandSpec, argv: Sequence[str]) -> Invocation:
        """Read *argv*, the words after the name.

        Raises:
            UsageError: The command does not take them.
            HelpAsked: They ask for its help.
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
        """Run it, and return its exit status."""
        return int(self.module.run(ctx, *self.arguments))

    def accesses(self) -> Iterable[PathAccess]:
        """What it says that it would read and write."""
        declare = getattr(self.module, "accesses", None)
        return () if declare is None else list(declare(*self.arguments))

    @property
    def adds_operands(self) -> bool:
        """Whether the command that it runs gets words that are not known before, as by `xargs`."""
        return bool(getattr(self.module, "ADDS_OPERANDS", False))

    def nested_command(self) -> list[str]:
        """The words of the command that it would run in its turn, if it is one that does."""
        declare = getattr(self.module, "nested_command", None)
        return [] if declare is None else list(declare(*self.arguments))


_WIDTH = 26


def help_text(command: CommandSpec, module: Any) -> str:
    """What `NAME --help` prints."""
    summary = command.summary
    lines = [
        f"Usage: {command.name} {module.USAGE}".rstrip(),
        f"{summary[0].upper()}{summary[1:]}.",
        "",
    ]
    for spelling, text in parser_of(getattr(module, "Flags", NoFlags)).rows():
        if len(spelling) + 2 < _WIDTH:
            lines.append(f"  {spelling:<{_WIDTH - 2}}{text}")
        else:
            lines += [f"  {spelling}", " " * _WIDTH + text]
    if notes := getattr(module, "NOTES", ""):
        lines += ["", notes.strip("\n")]
    return "\n".join(lines) + "\n"
