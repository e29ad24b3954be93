"""Complete a partly typed command line: commands, variables and paths."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from carrel.errors import CarrelError
from carrel.shell.command.table import COMMANDS

if TYPE_CHECKING:
    from carrel.shell.runtime.shell import BareShell

DELIMITERS = " \t\n|&;<>"
"""What ends a word for the one who types."""

_SPECIAL = re.compile(r"[\s|&;()<>$`\\\"'*?\[#~!{}]")
_BEGINS_COMMAND = re.compile(r"(?:^|[|&;])\s*$")
_MOST = 1_000


def complete(shell: BareShell, before: str, word: str) -> list[str]:
    """All words that begin with *word*, which stands after *before*; a directory ends in a slash.

    A word that is certain ends in a space. Names are escaped, so that they are read as they are.
    """
    if word.startswith("$"):
        names = sorted(name for name in shell.env if name.startswith(word[1:]))
        return [f"${name}" for name in names]
    if _BEGINS_COMMAND.search(before) and "/" not in word:
        return [f"{name} " for name in COMMANDS if name.startswith(word) and shell.may_run(name)]
    return _paths(shell, word)


def _paths(shell: BareShell, word: str) -> list[str]:
    plain = re.sub(r"\\(.)", r"\1", word)
    above, slash, begin = plain.rpartition("/")
    directory = (above or slash) if slash else "."
    if directory == "~" or directory.startswith("~/"):
        directory = shell.env.get("HOME", shell.workspace.mount) + directory[1:]
    try:
        entries = shell.workspace.list(shell.path(directory))
    except CarrelError:
        return []
    prefix = word[: len(word) - len(word.rpartition("/")[2])]
    found = [entry for entry in entries if _begins(entry.name, begin)]
    return [
        prefix + _SPECIAL.sub(r"\\\g<0>", entry.name) + ("/" if entry.is_directory else " ")
        for entry in found[:_MOST]
    ]


def _begins(name: str, begin: str) -> bool:
    """Whether *name* begins so; a hidden one only if that was typed, and none that a terminal could obey."""
    return name.startswith(begin) and (begin != "" or name[0] != ".") and name.isprintable()
