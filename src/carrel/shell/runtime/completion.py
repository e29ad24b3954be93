"""Complete a partly typed command line: commands, variables and paths."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from carrel.errors import CarrelError
from carrel.shell.command.table import COMMANDS

if TYPE_CHECKING:
    from carrel.shell.runtime.shell import BareShell

DELIMITERS = " \t\n|&;<>"
"""Characters that end a word at the prompt."""

_SPECIAL = re.compile(r"[\s|&;()<>$`\\\"'*?\[#~!{}]")
_BEGINS_COMMAND = re.compile(r"(?:^|[|&;])\s*$")
_MAX_COMPLETIONS = 1_000


def complete(shell: BareShell, before: str, word: str) -> list[str]:
    """Return the completions of *word*, which follows *before* on the line.

    Directories end in a slash, other complete words in a space. Special characters in names are escaped.
    """
    if word.startswith("$"):
        names = sorted(name for name in shell.env if name.startswith(word[1:]))
        return [f"${name}" for name in names]
    if _BEGINS_COMMAND.search(before) and "/" not in word:
        return [f"{name} " for name in COMMANDS if name.startswith(word) and shell.may_run(name)]
    return _paths(shell, word)


def _paths(shell: BareShell, word: str) -> list[str]:
    plain = re.sub(r"\\(.)", r"\1", word)
    parent, slash, prefix = plain.rpartition("/")
    directory = (parent or slash) if slash else "."
    if directory == "~" or directory.startswith("~/"):
        directory = shell.env.get("HOME", shell.workspace.mount) + directory[1:]
    try:
        entries = shell.workspace.list(shell.path(directory))
    except CarrelError:
        return []
    typed = word[: len(word) - len(word.rpartition("/")[2])]
    found = [entry for entry in entries if _is_candidate(entry.name, prefix)]
    return [
        typed + _SPECIAL.sub(r"\\\g<0>", entry.name) + ("/" if entry.is_directory else " ")
        for entry in found[:_MAX_COMPLETIONS]
    ]


def _is_candidate(name: str, prefix: str) -> bool:
    """Whether to offer *name*: hidden ones only after a typed dot, and none with control characters."""
    return name.startswith(prefix) and (prefix != "" or name[0] != ".") and name.isprintable()
