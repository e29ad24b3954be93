"""Commands of frameworks as lines for the built-in shell: words, one line, or words that call `sh -c`.

There is no `sh` to call. What it would be given is a line for our own shell, which has no positional
parameters: `$1` in it becomes a variable, so that what was given stays one word, whatever it holds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from carrel.sandbox.shell import Shell
from carrel.shell.budget import Budget
from carrel.shell.result import ShellResult

_SHELLS = frozenset({"sh", "ash", "bash", "dash", "zsh"})
_ASKED = frozenset({"-c", "-lc", "-ic", "-lic"})
_PARAMETER = re.compile(r"\$(?:([0-9#@])|\{([0-9]+|#|@)\})")
_SKIPPED = re.compile(r"\\.|(?<![^\s;|&])#[^\n]*|\$'(?:[^'\\]|\\.)*'|'[^']*'", re.DOTALL)
_SKIPPED_IN_DOUBLE = re.compile(r"\\.", re.DOTALL)
_ALL = '"$@"'


@dataclass(frozen=True, slots=True)
class ShellScript:
    """A command line, and the line that sets its parameters before it."""

    line: str
    parameters: str = ""

    @classmethod
    def of(cls, command: str | Sequence[str], *, shell: bool) -> ShellScript:
        """Read a command: a text with *shell*, a sequence of words without.

        Raises:
            TypeError: It is not what *shell* says, or a word is no text.
            ValueError: There are no words.
        """
        if isinstance(command, str):
            if not shell:
                raise TypeError("a command that is a text needs shell=True")
            return cls(command)
        if shell:
            raise TypeError("with shell=True a command is one text, not words")
        words = list(command)
        if not words:
            raise ValueError("a command needs at least one word")
        if not all(isinstance(word, str) for word in words):
            raise TypeError("the words of a command must be texts")
        if len(words) > 2 and words[0].rpartition("/")[2] in _SHELLS and words[1] in _ASKED:
            return cls._called(words[2], words[3:] or [words[0]])
        return cls(" ".join(map(_quoted, words)))

    async def run(self, shell: Shell, budget: Budget | None = None) -> ShellResult:
        """Run it in a *shell* of its own; a task that is cancelled stops it first."""
        if self.parameters:
            result = await shell.arun(self.parameters)
            if not result.success:
                return result
        return await shell.arun(self.line, budget=budget)

    @classmethod
    def _called(cls, line: str, given: list[str]) -> ShellScript:
        """The *line* of a call of `sh -c`, and all that follows it."""
        parameters = " ".join(f"_{number}={_quoted(each)}" for number, each in enumerate(given))
        return cls("".join(_Parameters(line, len(given) - 1).replaced()), parameters)


def _quoted(word: str) -> str:
    """A word that stands for itself, also if it looks like a variable that is set, or like a keyword."""
    return "'" + word.replace("'", "'\\''") + "'"


class _Parameters:
    """Writes a line anew with its parameters as variables."""

    def __init__(self, line: str, count: int) -> None:
        self._line = line
        self._count = count

    def replaced(self) -> list[str]:
        """The pieces of the new line."""
        line, at, in_double = self._line, 0, False
        pieces: list[str] = []
        while at < len(line):
            skipped = (_SKIPPED_IN_DOUBLE if in_double else _SKIPPED).match(line, at)
            if skipped:
                piece, at = skipped[0], skipped.end()
            elif line.startswith(_ALL, at) and not in_double:
                piece, at = self._all(quoted=True), at + len(_ALL)
            elif found := _PARAMETER.match(line, at):
                piece, at = self._one(found[1] or found[2], found[0], in_double=in_double), found.end()
            else:
                piece, at = line[at], at + 1
                in_double ^= piece == '"'
            pieces.append(piece)
        return pieces

    def _one(self, name: str, text: str, *, in_double: bool) -> str:
        if name == "#":
            return str(self._count)
        if name == "@":
            # In the midst of a text it would end one word and begin another; the shell says that it cannot.
            return text if in_double else self._all(quoted=False)
        return f"${{_{name}}}"

    def _all(self, *, quoted: bool) -> str:
        each = '"${{_{}}}"' if quoted else "${{_{}}}"
        return " ".join(each.format(number) for number in range(1, self._count + 1))
