"""All commands: what they are called, what they are for, and what they may do."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from types import ModuleType
from typing import Any


class Effect(StrEnum):
    """The most that a command does."""

    NONE = "none"
    """It touches no file."""
    READ = "read"
    """It reads files."""
    WRITE = "write"
    """It changes files."""
    SHELL = "shell"
    """It changes the shell itself: where it is, its variables."""
    RUN = "run"
    """It runs guest code."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command."""

    name: str
    summary: str
    effect: Effect
    module: str = ""
    """The file in `commands`, if it is not called like the command."""

    def load(self) -> Any:  # a module of `commands`, which fulfils no type that could be named
        """The module of the command, imported now."""
        return _module(self.module or self.name)


@cache
def _module(name: str) -> ModuleType:
    return importlib.import_module(f"carrel.shell.commands.{name}")


COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (
        Command(":", "do nothing, successfully", Effect.NONE, "true"),
        Command("[", "test a file or compare values, up to a closing ]", Effect.READ, "test"),
        Command("basename", "print the last name of a path", Effect.NONE),
        Command("cat", "print files one after another", Effect.READ),
        Command("cd", "go to another directory", Effect.SHELL),
        Command("cp", "copy files and directories", Effect.WRITE),
        Command("cut", "print parts of lines", Effect.READ),
        Command("diff", "compare files line by line", Effect.READ),
        Command("dirname", "print a path without its last name", Effect.NONE),
        Command("du", "print how much space directories take", Effect.READ),
        Command("echo", "print its arguments", Effect.NONE),
        Command("env", "print the variables, or run a command with others", Effect.SHELL),
        Command("exit", "leave the shell", Effect.SHELL),
        Command("export", "set variables for commands and guest code", Effect.SHELL),
        Command("false", "do nothing, unsuccessfully", Effect.NONE),
        Command("find", "find files by name, type, size and time", Effect.WRITE),
        Command("grep", "print lines that match a pattern", Effect.READ),
        Command("head", "print the first lines of files", Effect.READ),
        Command("help", "list the commands, or tell about one", Effect.NONE),
        Command("ls", "list directories", Effect.READ),
        Command("mkdir", "make directories", Effect.WRITE),
        Command("mv", "move and rename files and directories", Effect.WRITE),
        Command("nl", "number lines", Effect.READ),
        Command("printf", "print values in a format", Effect.NONE),
        Command("pwd", "print where the shell is", Effect.READ),
        Command("python", "run Python in the guest of the session", Effect.RUN),
        Command("python3", "run Python in the guest of the session", Effect.RUN, "python"),
        Command("realpath", "print the whole path of a file", Effect.READ),
        Command("rm", "remove files and directories", Effect.WRITE),
        Command("rmdir", "remove empty directories", Effect.WRITE),
        Command("sed", "change lines of text", Effect.WRITE),
        Command("seq", "print numbers in order", Effect.NONE),
        Command("set", "set options of the shell", Effect.SHELL),
        Command("sleep", "wait", Effect.NONE),
        Command("sort", "sort lines", Effect.WRITE),
        Command("stat", "print what is known about files", Effect.READ),
        Command("tac", "print lines in reverse order", Effect.READ),
        Command("tail", "print the last lines of files", Effect.READ),
        Command("tee", "copy standard input to files", Effect.WRITE),
        Command("test", "test a file or compare values", Effect.READ),
        Command("touch", "make files, or set when they were changed", Effect.WRITE),
        Command("tr", "replace, squeeze or delete characters", Effect.NONE),
        Command("tree", "draw directories as a tree", Effect.READ),
        Command("true", "do nothing, successfully", Effect.NONE),
        Command("uniq", "print lines without repetitions", Effect.WRITE),
        Command("unset", "forget variables", Effect.SHELL),
        Command("wc", "count lines, words and bytes", Effect.READ),
        Command("which", "tell what a command is", Effect.NONE),
        Command("workspace", "show the rules for files, or change them", Effect.SHELL),
        Command("xargs", "run a command with arguments from standard input", Effect.SHELL),
    )
}
"""In the order of their names."""
