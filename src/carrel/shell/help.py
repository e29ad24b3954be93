"""The help of one command, made of its row, its usage and its options."""

from __future__ import annotations

from typing import Any

from carrel.shell.flags import NoFlags, parser_of
from carrel.shell.table import Command

_WIDTH = 26


def help_text(command: Command, module: Any) -> str:
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
