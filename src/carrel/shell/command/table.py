"""Table of all commands: name, summary, and the strongest effect of each."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from types import ModuleType
from typing import Any


class CommandEffect(StrEnum):
    """The strongest effect that a command may have."""

    NONE = "none"
    """Accesses no file."""
    READ = "read"
    """Reads files."""
    WRITE = "write"
    """Writes files."""
    SHELL = "shell"
    """Changes the shell itself: its directory or variables."""
    RUN = "run"
    """Runs guest code."""


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A row of the table of commands."""

    name: str
    summary: str
    effect: CommandEffect
    module: str = ""
    """Module or package in `commands`, unless it has the name of the command."""

    def load(self) -> Any:  # a module of `commands`; modules have no common type
        """Import the module of the command and return it."""
        return _module(self.module or self.name)


@cache
def _module(name: str) -> ModuleType:
    found = importlib.import_module(f"carrel.shell.commands.{name}")
    is_package = hasattr(found, "__path__")
    return importlib.import_module(f"{found.__name__}.command") if is_package else found


COMMANDS: dict[str, CommandSpec] = {
    command.name: command
    for command in (
        CommandSpec(":", "do nothing, and succeed", CommandEffect.NONE, "true"),
        CommandSpec("[", "evaluate a conditional expression, up to a closing ]", CommandEffect.READ, "test"),
        CommandSpec("basename", "print the last component of a path", CommandEffect.NONE),
        CommandSpec("cat", "concatenate files", CommandEffect.READ),
        CommandSpec("cd", "change the working directory", CommandEffect.SHELL),
        CommandSpec("cp", "copy files and directories", CommandEffect.WRITE),
        CommandSpec("cut", "print selected parts of lines", CommandEffect.READ),
        CommandSpec("diff", "compare files line by line", CommandEffect.READ),
        CommandSpec("dirname", "print a path without its last component", CommandEffect.NONE),
        CommandSpec("du", "print the disk usage of directories", CommandEffect.READ),
        CommandSpec("echo", "print the arguments", CommandEffect.NONE),
        CommandSpec("env", "print the environment, or run a command in a changed one", CommandEffect.SHELL),
        CommandSpec("exit", "end the command line", CommandEffect.SHELL),
        CommandSpec("export", "set variables for commands and guest code", CommandEffect.SHELL),
        CommandSpec("false", "do nothing, and fail", CommandEffect.NONE),
        CommandSpec("find", "find files by name, type, size and time", CommandEffect.WRITE),
        CommandSpec("grep", "print lines that match a pattern", CommandEffect.READ),
        CommandSpec("head", "print the first part of files", CommandEffect.READ),
        CommandSpec("help", "list the commands, or print the help of one", CommandEffect.NONE),
        CommandSpec("ls", "list directories", CommandEffect.READ),
        CommandSpec("mkdir", "create directories", CommandEffect.WRITE),
        CommandSpec("mv", "move or rename files and directories", CommandEffect.WRITE),
        CommandSpec("nl", "number lines", CommandEffect.READ),
        CommandSpec("printf", "print values in a format", CommandEffect.NONE),
        CommandSpec("pwd", "print the working directory", CommandEffect.READ),
        CommandSpec("python", "run Python in the session's guest", CommandEffect.RUN),
        CommandSpec("python3", "run Python in the session's guest", CommandEffect.RUN, "python"),
        CommandSpec("realpath", "print absolute paths with links resolved", CommandEffect.READ),
        CommandSpec("rm", "remove files and directories", CommandEffect.WRITE),
        CommandSpec("rmdir", "remove empty directories", CommandEffect.WRITE),
        CommandSpec("sed", "edit lines of text with a script", CommandEffect.WRITE),
        CommandSpec("seq", "print a sequence of numbers", CommandEffect.NONE),
        CommandSpec("set", "set options of the shell", CommandEffect.SHELL),
        CommandSpec("sleep", "wait for some time", CommandEffect.NONE),
        CommandSpec("sort", "sort lines", CommandEffect.WRITE),
        CommandSpec("stat", "print the metadata of files", CommandEffect.READ),
        CommandSpec("tac", "print lines in reverse order", CommandEffect.READ),
        CommandSpec("tail", "print the last part of files", CommandEffect.READ),
        CommandSpec("tee", "copy standard input to files and standard output", CommandEffect.WRITE),
        CommandSpec("test", "evaluate a conditional expression", CommandEffect.READ),
        CommandSpec("touch", "create files, or set their modification times", CommandEffect.WRITE),
        CommandSpec("tr", "translate, squeeze or delete characters", CommandEffect.NONE),
        CommandSpec("tree", "print directories as a tree", CommandEffect.READ),
        CommandSpec("true", "do nothing, and succeed", CommandEffect.NONE),
        CommandSpec("uniq", "filter repeated lines", CommandEffect.WRITE),
        CommandSpec("unset", "remove variables", CommandEffect.SHELL),
        CommandSpec("wc", "count lines, words and bytes", CommandEffect.READ),
        CommandSpec("which", "print whether a name is a command of the shell", CommandEffect.NONE),
        CommandSpec("workspace", "show or change the path rules", CommandEffect.SHELL),
        CommandSpec("xargs", "run a command with arguments from standard input", CommandEffect.SHELL),
    )
}
"""All commands, ordered by name."""
