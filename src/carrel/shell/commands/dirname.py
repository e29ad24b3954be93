"""Print a path without its last component."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from carrel.shell.command.context import Context
from carrel.shell.command.flags import Opt, UsageError
from carrel.shell.text.quoting import encode

USAGE = "[OPTION] NAME..."


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `dirname`."""

    zero: Annotated[bool, Opt("-z", "--zero", help="end each name with NUL, not newline")] = False


def run(ctx: Context, flags: Flags, paths: Sequence[str]) -> int:
    """Print the directory of each path, or `.`."""
    if not paths:
        raise UsageError("missing operand", status=1)
    end = b"\0" if flags.zero else b"\n"
    ctx.write(b"".join(encode(_directory(path)) + end for path in paths))
    return 0


def _directory(path: str) -> str:
    parent, slash, _ = path.rstrip("/").rpartition("/")
    if slash or (path and not path.strip("/")):
        return parent.rstrip("/") or "/"
    return "."
