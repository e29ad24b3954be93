"""The `coding` profile: `read`, `write`, `edit`, `glob`, `grep`, `bash`, as coding models know them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from carrel.tools.core.context import ToolContext
from carrel.tools.core.schema import Param
from carrel.tools.operations.commands import (
    CONTAINER_NOTES,
    SHELL_NOTES,
    CommandOrNone,
    Restart,
    TextCursor,
    run_text,
)
from carrel.tools.operations.listing import list_entries
from carrel.tools.operations.reading import view_lines
from carrel.tools.operations.writing import write_content
from carrel.tools.results.file_results import edited_result, lines_result, stored_result
from carrel.tools.results.lines import one_line
from carrel.tools.results.media import has_media_name
from carrel.values import ToolResult
from carrel.workspace import text as texts
from carrel.workspace.search import SearchBudget

READ_NOTES = (
    "Lines are numbered. A long file is truncated: continue with the view_range that the result names. Files"
    " that are not text are returned as base64."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadArgs:
    """Arguments of `read`."""

    file_path: Annotated[str, Param("Path of the file", minimum=1)]
    view_range: Annotated[
        tuple[int, ...] | None,
        Param("First and last line, counted from 1; -1 is the last line", minimum=2, maximum=2),
    ] = None


def run_read(ctx: ToolContext, args: ReadArgs) -> ToolResult:
    """Return the numbered lines."""
    return view_lines(ctx, args.file_path, args.view_range)


WRITE_NOTES = "Existing content is replaced; parent directories are created as needed."


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteArgs:
    """Arguments of `write`."""

    file_path: Annotated[str, Param("Path of the file", minimum=1)]
    content: Annotated[str, Param("The whole content")]


def run_write(ctx: ToolContext, args: WriteArgs) -> ToolResult:
    """Write the file."""
    content = texts.encode(args.content, ctx.options.default_encoding, args.file_path)
    return stored_result(ctx, write_content(ctx, args.file_path, content))


EDIT_NOTES = "old_string must occur exactly once in the file, unless replace_all is set."


@dataclass(frozen=True, slots=True, kw_only=True)
class EditArgs:
    """Arguments of `edit`."""

    file_path: Annotated[str, Param("Path of the file", minimum=1)]
    old_string: Annotated[str, Param("Text to replace, exactly as it is in the file, without line numbers")]
    new_string: Annotated[str, Param("Replacement text")]
    replace_all: Annotated[bool, Param("Replace every occurrence")] = False


def run_edit(ctx: ToolContext, args: EditArgs) -> ToolResult:
    """Replace the text, and show the lines around it."""
    edited = ctx.workspace.edit(
        args.file_path, args.old_string, args.new_string, replace_all=args.replace_all
    )
    return edited_result(ctx, edited)


GLOB_NOTES = (
    "Returns one path per line, sorted by directory. A pattern without a slash matches names at any depth;"
    " ** matches any number of directories. Names that begin with a dot are left out, unless the pattern"
    " names them."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobArgs:
    """Arguments of `glob`."""

    pattern: Annotated[str, Param("Glob pattern, such as **/*.py or src/*.{ts,tsx}", minimum=1)]
    path: Annotated[str | None, Param("Directory to search", minimum=1, default=".")] = None


def run_glob(ctx: ToolContext, args: GlobArgs) -> ToolResult:
    """Return the matching paths."""
    pattern = args.pattern
    if args.path is None:
        # Models often write the absolute path.
        pattern = pattern.removeprefix(f"{ctx.workspace.mount}/")
    found = list_entries(ctx, args.path or ".", pattern=pattern, recursive=True)
    paths = [one_line(ctx.display_path(info.path)) for info in found.entries if not info.is_directory]
    return lines_result(
        ctx,
        paths,
        noun="file",
        advice="Narrow the pattern or the path",
        metadata={"directory": ctx.display_path(found.directory.path), "pattern": args.pattern},
        incomplete=found.incomplete,
    )


GREP_NOTES = (
    "Returns one match per line, as path:line:text. The pattern is an RE2 regular expression, without"
    " backreferences and look-around. Binary files and names that begin with a dot are left out."
)
MAX_GREP_FILES = 100_000
"""Most files to search."""
_GREP_LIMITS = {
    "time": "the search took too long",
    "files": "there are too many files",
    "bytes": "the files are too large",
    "entries": "there are too many files",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GrepArgs:
    """Arguments of `grep`."""

    pattern: Annotated[str, Param("Regular expression to search for", minimum=1)]
    path: Annotated[str | None, Param("File or directory to search", minimum=1, default=".")] = None


def run_grep(ctx: ToolContext, args: GrepArgs) -> ToolResult:
    """Return the matching lines."""
    found = ctx.workspace.search(
        args.pattern,
        args.path or ".",
        wants=lambda name: not has_media_name(name),
        budget=SearchBudget(files=MAX_GREP_FILES),
    )
    lines = [f"{one_line(ctx.display_path(match.path))}:{match.line}:{match.text}" for match in found.matches]
    metadata: dict[str, object] = {
        "pattern": args.pattern,
        "files_searched": found.files_searched,
        "files_skipped": found.files_skipped,
    }
    return lines_result(
        ctx,
        lines,
        noun="match",
        nouns="matches",
        advice="Narrow the pattern or the path",
        metadata=metadata,
        incomplete=_GREP_LIMITS.get(found.reason or "", "there are more matches")
        if found.truncated
        else None,
    )


BASH_NOTES = SHELL_NOTES
BASH_CONTAINER_NOTES = CONTAINER_NOTES


@dataclass(frozen=True, slots=True, kw_only=True)
class BashArgs:
    """Arguments of `bash`."""

    command: CommandOrNone = None
    restart: Restart = False
    timeout_ms: Annotated[
        int, Param("Time limit in milliseconds", minimum=1, maximum=600_000, capped_by="command_ms")
    ] = 120_000
    cursor: TextCursor = None


def run_bash(ctx: ToolContext, args: BashArgs) -> ToolResult:
    """Run the command line and return its output as one text."""
    seconds = args.timeout_ms / 1000
    return run_text(ctx, args.command, restart=args.restart, seconds=seconds, cursor=args.cursor)
