"""Print the arguments."""

from __future__ import annotations

from collections.abc import Sequence

from carrel.shell.command.context import Context
from carrel.shell.text.escapes import unescape_echo
from carrel.shell.text.quoting import encode

USAGE = "[-neE] [ARGUMENT]..."
NOTES = """\
  -n    do not print a newline at the end
  -e    interpret escapes: \\a \\b \\c \\e \\f \\n \\r \\t \\v \\\\ \\0NNN \\xHH \\uHHHH \\UHHHHHHHH
  -E    do not interpret escapes; this is the default"""


def run(ctx: Context, argv: Sequence[str]) -> int:
    """Print the arguments, separated by spaces."""
    newline, escapes, first = _options(argv)
    blank = b""
    for argument in argv[first:]:
        ctx.write(blank)
        text, ended = unescape_echo(encode(argument)) if escapes else (encode(argument), False)
        ctx.write(text)
        if ended:
            return 0
        blank = b" "
    if newline:
        ctx.write(b"\n")
    return 0


def _options(argv: Sequence[str]) -> tuple[bool, bool, int]:
    """Return whether to print a newline and to interpret escapes, and the index of the first argument."""
    newline, escapes = True, False
    for at, argument in enumerate(argv):
        if len(argument) < 2 or argument[0] != "-" or argument[1:].strip("neE"):
            return newline, escapes, at
        for letter in argument[1:]:
            if letter == "n":
                newline = False
            else:
                escapes = letter == "e"
    return newline, escapes, len(argv)
