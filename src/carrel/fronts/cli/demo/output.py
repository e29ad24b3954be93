"""Prints titles, commands and their output for `carrel demo`, coloured and wrapped on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TextIO

import click

from carrel.fronts.cli.output import terminal_columns, wants_colour

INDENT = "  "
REFUSED = "refused: "
"""Marks a refused operation in a line of the journal."""


class DemoOutput:
    """Writes to a terminal, a file or a pipe; on a terminal with colours, and lines wrapped to its width."""

    def __init__(self, stream: TextIO, environ: Mapping[str, str]) -> None:
        self._stream = stream
        self._colour = wants_colour(stream, environ)
        self._columns = terminal_columns(stream) if stream.isatty() else None

    def text(self, text: str) -> None:
        """Print a line of the demo itself."""
        self._write(text, "", "")

    def title(self, text: str) -> None:
        """Print the title of a section."""
        self._write(text, "", "", bold=True)

    def command(self, line: str) -> None:
        """Print a command as a shell would show it, on several lines if it has them."""
        for number, text in enumerate(line.splitlines()):
            self._write(text, f"{INDENT}{'>' if number else '$'} ", f"{INDENT}  ", fg="cyan")

    def result(self, text: str, *, failed: bool) -> None:
        """Print the output of a command."""
        for line in text.splitlines():
            style = {"fg": "red"} if failed or REFUSED in line else {}
            self._write(line, INDENT, INDENT, **style)

    def note(self, text: str) -> None:
        """Print a note in place of steps."""
        self._write(text, INDENT, INDENT, fg="yellow")

    def _write(self, text: str, first: str, later: str, **style: Any) -> None:  # Any: styles of click
        for number, part in enumerate(self._wrap(text, len(first))):
            styled = click.style(part, **style) if style else part
            click.echo((later if number else first) + styled, file=self._stream, color=self._colour)

    def _wrap(self, text: str, indent: int) -> list[str]:
        """Split a line into parts that fit the terminal."""
        if self._columns is None or len(text) <= self._columns - indent:
            return [text]
        width = max(self._columns - indent, 1)
        return [text[start : start + width] for start in range(0, len(text), width)]
