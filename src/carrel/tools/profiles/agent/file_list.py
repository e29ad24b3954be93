"""`file_list`: list a directory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from carrel.tools.core.context import ToolContext
from carrel.tools.core.pagination import NextCursor
from carrel.tools.core.schema import Param
from carrel.tools.operations.listing import Listing, list_entries
from carrel.values import FileInfo, ToolResult

FILE_LIST_NOTES = (
    "A pattern without a slash matches names, one with a slash matches the path relative to the directory."
    " Links are listed and never followed. A long result is cut, and its last line says how to continue."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileListArgs:
    """Arguments of `file_list`."""

    path: Annotated[str, Param("Directory to list, relative to the workspace")] = "."
    pattern: Annotated[str, Param("Glob pattern, such as *.txt or src/**/*.py", minimum=1)] = "*"
    recursive: Annotated[bool, Param("Include subdirectories")] = False
    include_hidden: Annotated[bool, Param("Include names that begin with a dot")] = False
    cursor: NextCursor = None


def run_file_list(ctx: ToolContext, args: FileListArgs) -> ToolResult:
    """List the directory."""
    found = list_entries(
        ctx, args.path, pattern=args.pattern, recursive=args.recursive, hidden=args.include_hidden
    )
    page = found.page(ctx, args.cursor, _entry)
    return ToolResult(
        success=True,
        output=page.entries,
        metadata={**_metadata(ctx, args, found), **page.metadata},
        model_text=page.model_text(list),
    )


def _entry(info: FileInfo) -> dict[str, Any]:
    return {
        "name": info.name,
        "path": info.path,
        "type": str(info.kind),
        "is_file": info.is_file,
        "size_bytes": info.size_bytes,
        "modified_time": info.modified_ns // 10**9,
    }


def _metadata(ctx: ToolContext, args: FileListArgs, found: Listing) -> dict[str, Any]:
    files = sum(info.is_file for info in found.entries)
    directories = sum(info.is_directory for info in found.entries)
    return {
        "directory": ctx.display_path(found.directory.path),
        "pattern": args.pattern,
        "recursive": args.recursive,
        "file_count": files,
        "dir_count": directories,
        "other_count": len(found.entries) - files - directories,
    }
