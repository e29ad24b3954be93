"""MCP tools that list directories, search names, and show file metadata and allowed directories."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from carrel.tools.core.context import ToolContext
from carrel.tools.core.schema import Param
from carrel.tools.operations.listing import Listing, list_entries
from carrel.tools.results.file_results import file_metadata, lines_result, timestamp
from carrel.tools.results.lines import one_line
from carrel.values import FileInfo, FileKind, Named, ToolResult

# Compared for every name; looking up an enum member each time is slow.
_DIRECTORY = FileKind.DIRECTORY
_UNITS = ("B", "KB", "MB", "GB", "TB")


def render_names(found: Iterable[Named]) -> list[str]:
    """Render one line per entry: `[DIR]` or `[FILE]`, and the name."""
    return [f"[{'DIR' if kind is _DIRECTORY else 'FILE'}] {one_line(name)}" for name, kind in found]


def render_entry_with_size(info: FileInfo) -> str:
    """Render the line of an entry with the size of a file, in columns."""
    (line,) = render_names([(info.name, info.kind)])
    return line if info.is_directory else f"{line:<37} {render_size(info.size_bytes):>10}"


def render_size(size_bytes: int) -> str:
    """Render a human-readable size, in powers of 1024."""
    number = float(size_bytes)
    for unit in _UNITS:
        if number < 1024 or unit == _UNITS[-1]:
            break
        number /= 1024
    return f"{size_bytes} {unit}" if unit == "B" else f"{number:.2f} {unit}"


LIST_DIRECTORY_NOTES = (
    "Each name is prefixed with [DIR] or [FILE]. Links are listed as files and never followed."
)
LIST_DIRECTORY_IS_STEPWISE = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ListDirectoryArgs:
    """Arguments of `list_directory`."""

    path: Annotated[str, Param("Path of the directory", minimum=1)]


def run_list_directory(ctx: ToolContext, args: ListDirectoryArgs) -> ToolResult:
    """Return the names."""
    return lines_result(
        ctx,
        render_names(ctx.workspace.list_names(args.path)),
        noun="entry",
        nouns="entries",
        advice="Search for a pattern instead",
        metadata={"path": ctx.normalized_path(args.path)},
    )


LIST_DIRECTORY_WITH_SIZES_NOTES = (
    "Each name is prefixed with [DIR] or [FILE]; totals follow at the end. Links are never followed."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListDirectoryWithSizesArgs:
    """Arguments of `list_directory_with_sizes`."""

    path: Annotated[str, Param("Path of the directory", minimum=1)]
    sort_by: Annotated[Literal["name", "size"], Param("Sort by name, or by size, largest first")] = field(
        default="name", metadata={"name": "sortBy"}
    )


def run_list_directory_with_sizes(ctx: ToolContext, args: ListDirectoryWithSizesArgs) -> ToolResult:
    """Return the names, the sizes and the totals."""
    found = list_entries(ctx, args.path, hidden=True)
    entries = found.entries
    if args.sort_by == "size":
        entries = tuple(sorted(entries, key=lambda info: -info.size_bytes))
    result = lines_result(
        ctx,
        [render_entry_with_size(info) for info in entries],
        noun="entry",
        nouns="entries",
        advice="Search for a pattern instead",
        metadata={"path": ctx.display_path(found.directory.path)},
    )
    return replace(result, output=f"{result.output}\n\n{_render_totals(found)}")


def _render_totals(found: Listing) -> str:
    directories = sum(info.is_directory for info in found.entries)
    size_bytes = sum(info.size_bytes for info in found.entries)
    files = len(found.entries) - directories
    return f"Total: {files} files, {directories} directories\nCombined size: {render_size(size_bytes)}"


SEARCH_FILES_NOTES = (
    "Returns one path per line, sorted by directory. A pattern without a slash matches names at any depth;"
    " ** matches any number of directories."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilesArgs:
    """Arguments of `search_files`."""

    path: Annotated[str, Param("Directory to search", minimum=1)]
    pattern: Annotated[str, Param("Glob pattern, such as *.txt or src/**/*.py", minimum=1)]
    exclude_patterns: Annotated[
        tuple[str, ...], Param("Glob patterns of what to leave out, such as node_modules", maximum=100)
    ] = field(default=(), metadata={"name": "excludePatterns"})


def run_search_files(ctx: ToolContext, args: SearchFilesArgs) -> ToolResult:
    """Return the matching paths."""
    found = list_entries(
        ctx, args.path, pattern=args.pattern, recursive=True, hidden=True, excluded=args.exclude_patterns
    )
    return lines_result(
        ctx,
        [one_line(ctx.display_path(info.path)) for info in found.entries],
        noun="match",
        nouns="matches",
        advice="Narrow the pattern or the path",
        metadata={"directory": ctx.display_path(found.directory.path), "pattern": args.pattern},
        incomplete=found.incomplete,
    )


GET_FILE_INFO_NOTES = "Returns size, times in UTC, type and permissions, one per line."


@dataclass(frozen=True, slots=True, kw_only=True)
class GetFileInfoArgs:
    """Arguments of `get_file_info`."""

    path: Annotated[str, Param("Path of the file or directory", minimum=1)]


def run_get_file_info(ctx: ToolContext, args: GetFileInfoArgs) -> ToolResult:
    """Return the metadata of a file or directory."""
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
    return ToolResult(success=True, output="\n".join(lines), metadata=file_metadata(ctx, info))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListAllowedDirectoriesArgs:
    """`list_allowed_directories` takes no arguments."""


def run_list_allowed_directories(ctx: ToolContext, args: ListAllowedDirectoriesArgs) -> ToolResult:
    """List the workspace, or its allowed paths, and the other paths that the rules allow."""
    workspace = ctx.workspace
    within = (".",) if workspace.within is None else workspace.within
    # The first rule is the workspace itself, whose path on the host must not be revealed.
    directories = [
        *map(ctx.display_path, within),
        *(rule.root for rule in workspace.policy.allowed_paths[1:]),
    ]
    output = "\n".join(("Allowed directories:", *directories))
    return ToolResult(success=True, output=output, metadata={"directories": directories})
