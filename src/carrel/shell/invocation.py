"""One call of a command: its module, and its arguments as the functions of that module take them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from carrel.shell.context import Context
from carrel.shell.flags import HelpAsked, parser_of
from carrel.shell.table import Command
from carrel.shell.touch import Touch

NESTED_COMMANDS = 20
"""Most commands that run each other, as `env` and `xargs` do."""


class Invocation(NamedTuple):
    """A command that could be run, with arguments that it understands."""

    module: Any  # a module of `commands`, which fulfils no type that could be named
    arguments: tuple[Any, ...]
    """Flags and operands, or all words as they are."""

    @classmethod
    def read(cls, command: Command, argv: Sequence[str]) -> Invocation:
        """Read *argv*, the words after the name.

        Raises:
            UsageError: The command does not take them.
            HelpAsked: They ask for its help.
        """
        module = command.load()
        flags_class = getattr(module, "Flags", None)
        if flags_class is None:
            if list(argv) == ["--help"]:
                raise HelpAsked
            return cls(module, (list(argv),))
        parser = parser_of(flags_class, getattr(module, "OPTIONS_FIRST", False))
        return cls(module, parser.parse(argv))

    def run(self, ctx: Context) -> int:
        """Run it, and return its exit status."""
        return int(self.module.run(ctx, *self.arguments))

    def touches(self) -> Iterable[Touch]:
        """What it says that it would read and write."""
        told = getattr(self.module, "touches", None)
        return () if told is None else list(told(*self.arguments))

    @property
    def adds_operands(self) -> bool:
        """Whether the command that it runs gets words that are not known before, as by `xargs`."""
        return bool(getattr(self.module, "ADDS_OPERANDS", False))

    def inner(self) -> list[str]:
        """The words of the command that it would run in its turn, if it is one that does."""
        told = getattr(self.module, "inner", None)
        return [] if told is None else list(told(*self.arguments))
