"""`write_file`: put content into a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from carrel.tools.answer import told_stored
from carrel.tools.context import Context
from carrel.tools.kind import Param
from carrel.tools.result import ToolResult
from carrel.tools.small import FILE_BYTES
from carrel.tools.store import store
from carrel.workspace import text as texts

NOTES = "What was in the file is replaced; directories above it are made as needed."


@dataclass(frozen=True, slots=True, kw_only=True)
class Args:
    """Arguments of `write_file`."""

    path: Annotated[str, Param("Path of the file", least=1)]
    content: Annotated[str, Param("The whole content")]


def is_quick(ctx: Context, args: Args) -> bool:
    """Whether the content is short."""
    return len(args.content) <= FILE_BYTES


def run(ctx: Context, args: Args) -> ToolResult:
    """Write the file; what was there is not compared, as whoever knows this tool does not expect that."""
    content = texts.encode(args.content, ctx.options.default_encoding, args.path)
    return told_stored(ctx, store(ctx, args.path, content, compare=False))
