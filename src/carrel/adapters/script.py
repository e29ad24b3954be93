"""Translates commands of frameworks for the built-in shell: argument lists, command lines, and `sh -c` calls.

There is no `sh` to call, so the script of `sh -c` becomes a line of the built-in shell. That shell has no
positional parameters: `$1` becomes a variable, so that an argument stays one word, whatever it holds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from carrel.sandbox.shell import Shell
from carrel.shell.budget import Budget
from carrel.shell.result import ShellResult

_SHELLS = frozenset({"sh", "ash", "bash", "dash", "zsh"})
_COMMAND_FLAGS = frozenset({"-c", "-lc", "-ic", "-lic"})
_PARAMETER = re.compile(r"\$(?:([0-9#@])|\{([0-9]+|#|@)\})")
_SKIPPED = re.compile(r"\\.|(?<![^\s;|&])#[^\n]*|\$'(?:[^'\\]|\\.)*'|'[^']*'", re.DOTALL)
_SKIPPED_IN_DOUBLE = re.compile(r"\\.", re.DOTALL)
_ALL = '"$@"'


@dataclass(frozen=True, slots=True)
class ShellScript:
    """A command line, and the assignments of its positional parameters."""

    line: str
    parameters: str = ""

    @classmethod
    def of(cls, command: str | Sequence[str], *, shell: bool) -> ShellScript:
        """Translate a command: a string with *shell*, a sequence of words without.

        Raises:
            TypeError: The type does not fit *shell*, or a word is not a string.
            ValueError: There are no words.
        """
        if isinstance(command, str):
            if not shell:
                raise TypeError("a command given as a string requires shell=True")
            return cls(command)
        if shell:
            raise TypeError("with shell=True a command must be one string, not a sequence")
        words = list(command)
        if not words:
            raise ValueError("a command needs at least one word")
        if not all(isinstance(word, str) for word in words):
            raise TypeError("the words of a command must be strings")
        if len(words) > 2 and words[0].rpartition("/")[2] in _SHELLS and words[1] in _COMMAND_FLAGS:
            return cls._from_sh_call(words[2], words[3:] or [words[0]])
        return cls(" ".join(map(_quote, words)))

    async def run(self, shell: Shell, budget: Budget | None = None) -> ShellResult:
        """Run the script in a new *shell*; cancelling the task stops it first."""
        if self.parameters:
            result = await shell.arun(self.parameters)
            if not result.success:
                return result
        return await shell.arun(self.line, budget=budget)

    @classmethod
    def _from_sh_call(cls, line: str, arguments: list[str]) -> ShellScript:
        """Translate `sh -c LINE ARGUMENTS...`."""
        parameters = " ".join(f"_{number}={_quote(each)}" for number, each in enumerate(arguments))
        return cls("".join(_ParameterReplacer(line, len(arguments) - 1).replace()), parameters)


def _quote(word: str) -> str:
    """Quote a word, even one that looks like an assignment or a keyword."""
    return "'" + word.replace("'", "'\\''") + "'"


class _ParameterReplacer:
    """Replaces the positional parameters of a line by variables."""

    def __init__(self, line: str, count: int) -> None:
        self._line = line
        self._count = count

    def replace(self) -> list[str]:
        """The parts of the new line."""
        line, at, in_double = self._line, 0, False
        parts: list[str] = []
        while at < len(line):
            skipped = (_SKIPPED_IN_DOUBLE if in_double else _SKIPPED).match(line, at)
            if skipped:
                part, at = skipped[0], skipped.end()
            elif line.startswith(_ALL, at) and not in_double:
                part, at = self._all(quoted=True), at + len(_ALL)
            elif found := _PARAMETER.match(line, at):
                part, at = self._one(found[1] or found[2], found[0], in_double=in_double), found.end()
            else:
                part, at = line[at], at + 1
                in_double ^= part == '"'
            parts.append(part)
        return parts

    def _one(self, name: str, text: str, *, in_double: bool) -> str:
        if name == "#":
            return str(self._count)
        if name == "@":
            # Inside a quoted string it would split the word; the shell reports that it cannot.
            return text if in_double else self._all(quoted=False)
        return f"${{_{name}}}"

    def _all(self, *, quoted: bool) -> str:
        each = '"${{_{}}}"' if quoted else "${{_{}}}"
        return " ".join(each.format(number) for number in range(1, self._count + 1))
