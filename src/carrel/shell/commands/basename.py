"""Print the last component of a path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from carrel.shell.command.context import Context
from carrel.shell.command.flags import Opt, UsageError
from carrel.shell.text.quoting import encode, quote_argument

USAGE = "NAME [SUFFIX]\n       basename OPTION... NAME..."
OPTIONS_FIRST = True


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `basename`."""

    multiple: Annotated[bool, Opt("-a", "--multiple", help="treat every argument as a NAME")] = False
    suffix: Annotated[
        str | None, Opt("-s", "--suffix", metavar="SUFFIX", help="remove a trailing SUFFIX; implies -a")
    ] = None
    zero: Annotated[bool, Opt("-z", "--zero", help="end each name with NUL, not newline")] = False


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Print the last component of each path."""
    suffix = flags.suffix or ""
    names = operands
    if not operands:
        raise UsageError("missing operand", status=1)
    if not flags.multiple and flags.suffix is None:
        if len(operands) > 2:
            raise UsageError(f"extra operand {quote_argument(operands[2])}", status=1)
        names, suffix = operands[:1], operands[1] if len(operands) == 2 else ""
    end = b"\0" if flags.zero else b"\n"
    ctx.write(b"".join(encode(_last_name(name, suffix)) + end for name in names))
    return 0


def _last_name(path: str, suffix: str) -> str:
    bare = path.rstrip("/")
    name = bare.rpartition("/")[2] if bare else path[:1]
    return name.removesuffix(suffix) if name != suffix else name
