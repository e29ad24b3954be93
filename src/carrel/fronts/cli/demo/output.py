"""Prints titles, commands and answers of `carrel demo`, with colours and line wrapping on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TextIO

import click

from carrel.fronts.cli.output import terminal_columns, wants_colour

INDENT = "  "
REFUSED = "refused: "
"""In a line of the journal, of what did not happen."""


class DemoOutput:
    """Writes to a terminal, a file or a pipe; a terminal gets colours, and lines cut to its width."""

    def __init__(self, stream: TextIO, environ: Mapping[str, str]) -> None:
        self._stream = stream
        self._colour = wants_colour(stream, environ)
        self._columns = terminal_columns(stream) if stream.isatty() else None

    def say(self, text: str) -> None:
        """A line of the demo itself."""
        self._write(text, "", "")

    def title(self, text: str) -> None:
        """What the next commands show."""
        self._write(text, "", "", bold=True)

    def command(self, line: str) -> None:
        """A command as a shell would show it, over several lines if it has some."""
        for number, text in enumerate(line.splitlines()):
            self._write(text, f"{INDENT}{'>' if number else '$'} ", f"{INDENT}  ", fg="cyan")

    def answer(self, text: str, *, failed: bool) -> None:
        """What a command answered."""
        for line in text.splitlines():
            style = {"fg": "red"} if failed or REFUSED in line else {}
            self._write(line, INDENT, INDENT, **style)

    def note(self, text: str) -> None:
        """What stands where an answer would."""
        self._write(text, INDENT, INDENT, fg="yellow")

    def _write(self, text: str, first: str, later: str, **style: Any) -> None:  # Any: whatever click knows
        for number, piece in enumerate(self._cut(text, len(first))):
            styled = click.style(piece, **style) if style else piece
            click.echo((later if number else first) + styled, file=self._stream, color=self._colour)

    def _cut(self, text: str, indent: int) -> list[str]:
        """The line in pieces that fit, with nothing left out."""
        if self._columns is None or len(text) <= self._columns - indent:
            return [text]
        width = max(self._columns - indent, 1)
        return [text[start : start + width] for start in range(0, len(text), width)]
