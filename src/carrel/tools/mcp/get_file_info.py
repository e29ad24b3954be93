"""`get_file_info`: what is known about a file or directory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from carrel.tools.answer import about
from carrel.tools.context import Context
from carrel.tools.kind import Param
from carrel.tools.result import ToolResult
from carrel.tools.timestamp import timestamp

NOTES = "Gives size, times in UTC, type and permissions, one on each line."


@dataclass(frozen=True, slots=True, kw_only=True)
class Args:
    """Arguments of `get_file_info`."""

    path: Annotated[str, Param("Path of the file or directory", least=1)]


def run(ctx: Context, args: Args) -> ToolResult:
    """Tell what is there."""
    info = ctx.workspace.stat(args.path)
    rows = {
        "size": info.size_bytes,
        "created": timestamp(info.created_ns),
        "modified": timestamp(info.modified_ns),
        "accessed": timestamp(info.accessed_ns),
        "isDirectory": str(info.is_directory).lower(),
        "isFile": str(info.is_file).lower(),
        "permissions": f"{info.mode:03o}",
    }
    lines = (f"{name}: {'unknown' if value is None else value}" for name, value in rows.items())
    return ToolResult(success=True, output="\n".join(lines), metadata=about(ctx, info))
