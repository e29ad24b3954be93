"""`read_text_file`: the text of a file, whole or its first or last lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from carrel.tools.context import Context
from carrel.tools.kind import Param
from carrel.tools.plain_text import plain_text
from carrel.tools.result import ToolResult
from carrel.tools.small import is_small_file

NOTES = "A file that is too long for one answer is cut, which the answer says."


@dataclass(frozen=True, slots=True, kw_only=True)
class Args:
    """Arguments of `read_text_file`."""

    path: Annotated[str, Param("Path of the file", least=1)]
    tail: Annotated[
        int | None, Param("Give only the last lines, so many; not together with head", least=1)
    ] = None
    head: Annotated[
        int | None, Param("Give only the first lines, so many; not together with tail", least=1)
    ] = None


def is_quick(ctx: Context, args: Args) -> bool:
    """Whether the file is small."""
    return is_small_file(ctx, args.path)


def run(ctx: Context, args: Args) -> ToolResult:
    """Give the text."""
    return plain_text(ctx, args.path, head=args.head, tail=args.tail)
