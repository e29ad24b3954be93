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
        CommandSpec(":", "do nothing, successfully", CommandEffect.NONE, "true"),
        CommandSpec("[", "test a file or compare values, up to a closing ]", CommandEffect.READ, "test"),
        CommandSpec("basename", "print the last name of a path", CommandEffect.NONE),
        CommandSpec("cat", "print files one after another", CommandEffect.READ),
        CommandSpec("cd", "go to another directory", CommandEffect.SHELL),
        CommandSpec("cp", "copy files and directories", CommandEffect.WRITE),
        CommandSpec("cut", "print parts of lines", CommandEffect.READ),
        CommandSpec("diff", "compare files line by line", CommandEffect.READ),
        CommandSpec("dirname", "print a path without its last name", CommandEffect.NONE),
        CommandSpec("du", "print how much space directories take", CommandEffect.READ),
        CommandSpec("echo", "print its arguments", CommandEffect.NONE),
        CommandSpec("env", "print the variables, or run a command with others", CommandEffect.SHELL),
        CommandSpec("exit", "leave the shell", CommandEffect.SHELL),
        CommandSpec("export", "set variables for commands and guest code", CommandEffect.SHELL),
        CommandSpec("false", "do nothing, unsuccessfully", CommandEffect.NONE),
        CommandSpec("find", "find files by name, type, size and time", CommandEffect.WRITE),
        CommandSpec("grep", "print lines that match a pattern", CommandEffect.READ),
        CommandSpec("head", "print the first lines of files", CommandEffect.READ),
        CommandSpec("help", "list the commands, or tell about one", CommandEffect.NONE),
        CommandSpec("ls", "list directories", CommandEffect.READ),
        CommandSpec("mkdir", "make directories", CommandEffect.WRITE),
        CommandSpec("mv", "move and rename files and directories", CommandEffect.WRITE),
        CommandSpec("nl", "number lines", CommandEffect.READ),
        CommandSpec("printf", "print values in a format", CommandEffect.NONE),
        CommandSpec("pwd", "print where the shell is", CommandEffect.READ),
        CommandSpec("python", "run Python in the guest of the session", CommandEffect.RUN),
        CommandSpec("python3", "run Python in the guest of the session", CommandEffect.RUN, "python"),
        CommandSpec("realpath", "print the whole path of a file", CommandEffect.READ),
        CommandSpec("rm", "remove files and directories", CommandEffect.WRITE),
        CommandSpec("rmdir", "remove empty directories", CommandEffect.WRITE),
        CommandSpec("sed", "change lines of text", CommandEffect.WRITE),
        CommandSpec("seq", "print numbers in order", CommandEffect.NONE),
        CommandSpec("set", "set options of the shell", CommandEffect.SHELL),
        CommandSpec("sleep", "wait", CommandEffect.NONE),
        CommandSpec("sort", "sort lines", CommandEffect.WRITE),
        CommandSpec("stat", "print what is known about files", CommandEffect.READ),
        CommandSpec("tac", "print lines in reverse order", CommandEffect.READ),
        CommandSpec("tail", "print the last lines of files", CommandEffect.READ),
        CommandSpec("tee", "copy standard input to files", CommandEffect.WRITE),
        CommandSpec("test", "test a file or compare values", CommandEffect.READ),
        CommandSpec("touch", "make files, or set when they were changed", CommandEffect.WRITE),
        CommandSpec("tr", "replace, squeeze or delete characters", CommandEffect.NONE),
        CommandSpec("tree", "draw directories as a tree", CommandEffect.READ),
        CommandSpec("true", "do nothing, successfully", CommandEffect.NONE),
        CommandSpec("uniq", "print lines without repetitions", CommandEffect.WRITE),
        CommandSpec("unset", "forget variables", CommandEffect.SHELL),
        CommandSpec("wc", "count lines, words and bytes", CommandEffect.READ),
        CommandSpec("which", "tell what a command is", CommandEffect.NONE),
        CommandSpec("workspace", "show the rules for files, or change them", CommandEffect.SHELL),
        CommandSpec("xargs", "run a command with arguments from standard input", CommandEffect.SHELL),
    )
}
"""All commands, ordered by name."""
