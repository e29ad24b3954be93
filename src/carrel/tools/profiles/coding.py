"""The `coding` profile: `read`, `write`, `edit`, `glob`, `grep`, `bash`, as coding models know them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from carrel.tools.core.context import ToolContext
from carrel.tools.core.result import ToolResult
from carrel.tools.core.schema import Param
from carrel.tools.operations.commands import run_text
from carrel.tools.operations.listing import list_entries
from carrel.tools.operations.reading import view_lines
from carrel.tools.operations.writing import write_content
from carrel.tools.results.file_results import edited_result, lines_result, stored_result
from carrel.tools.results.lines import one_line
from carrel.tools.results.media import has_media_name
from carrel.workspace import text as texts
from carrel.workspace.search import SearchBudget

READ_NOTES = (
    "Lines come numbered. A long file is cut: go on with the view_range that the answer names. What is no"
    " text comes as base64."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadArgs:
    """Arguments of `read`."""

    file_path: Annotated[str, Param("Path of the file", least=1)]
    view_range: Annotated[
        tuple[int, ...] | None,
        Param("First and last line, counted from 1; -1 is the last of the file", least=2, most=2),
    ] = None


def run_read(ctx: ToolContext, args: ReadArgs) -> ToolResult:
    """Give the lines."""
    return view_lines(ctx, args.file_path, args.view_range)


WRITE_NOTES = "What was in the file is replaced; directories above it are made as needed."


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteArgs:
    """Arguments of `write`."""

    file_path: Annotated[str, Param("Path of the file", least=1)]
    content: Annotated[str, Param("The whole content")]


def run_write(ctx: ToolContext, args: WriteArgs) -> ToolResult:
    """Write the file."""
    content = texts.encode(args.content, ctx.options.default_encoding, args.file_path)
    return stored_result(ctx, write_content(ctx, args.file_path, content))


EDIT_NOTES = "old_string must be in the file exactly once, unless replace_all is set."


@dataclass(frozen=True, slots=True, kw_only=True)
class EditArgs:
    """Arguments of `edit`."""

    file_path: Annotated[str, Param("Path of the file", least=1)]
    old_string: Annotated[str, Param("The text to replace, exactly as it stands, without line numbers")]
    new_string: Annotated[str, Param("What takes its place")]
    replace_all: Annotated[bool, Param("Replace every occurrence")] = False


def run_edit(ctx: ToolContext, args: EditArgs) -> ToolResult:
    """Replace the text, and show the lines around it."""
    edited = ctx.workspace.edit(
        args.file_path, args.old_string, args.new_string, replace_all=args.replace_all
    )
    return edited_result(ctx, edited)


GLOB_NOTES = (
    "Gives one path on each line, sorted directory by directory. A pattern without a slash matches names at"
    " any depth; ** stands for any number of directories. What begins with a dot is left out, unless the"
    " pattern names it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobArgs:
    """Arguments of `glob`."""

    pattern: Annotated[str, Param("Glob pattern, such as **/*.py or src/*.{ts,tsx}", least=1)]
    path: Annotated[str | None, Param("Directory to look in", least=1, default=".")] = None


def run_glob(ctx: ToolContext, args: GlobArgs) -> ToolResult:
    """Give the paths."""
    pattern = args.pattern
    if args.path is None:
        # Models like to write the whole path.
        pattern = pattern.removeprefix(f"{ctx.workspace.mount}/")
    found = list_entries(ctx, args.path or ".", pattern=pattern, recursive=True)
    paths = [one_line(ctx.shown(info.path)) for info in found.entries if not info.is_directory]
    return lines_result(
        ctx,
        paths,
        noun="file",
        advice="Narrow the pattern or the path",
        metadata={"directory": ctx.shown(found.directory.path), "pattern": args.pattern},
        incomplete=found.incomplete,
    )


GREP_NOTES = (
    "Gives path:line:text on each line. The pattern is a regular expression of RE2, which knows no"
    " backreferences and no look-around. Binary files, and what begins with a dot, are left out."
)
MAX_GREP_FILES = 100_000
"""So many are looked into."""
_GREP_LIMITS = {
    "time": "the search took too long",
    "files": "there are too many files",
    "bytes": "the files are too large",
    "entries": "there are too many files",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GrepArgs:
    """Arguments of `grep`."""

    pattern: Annotated[str, Param("Regular expression to look for", least=1)]
    path: Annotated[str | None, Param("File or directory to look in", least=1, default=".")] = None


def run_grep(ctx: ToolContext, args: GrepArgs) -> ToolResult:
    """Give the lines."""
    found = ctx.workspace.search(
        args.pattern,
        args.path or ".",
        wants=lambda name: not has_media_name(name),
        budget=SearchBudget(files=MAX_GREP_FILES),
    )
    lines = [f"{one_line(ctx.shown(match.path))}:{match.line}:{match.text}" for match in found.matches]
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


BASH_NOTES = (
    "The usual commands on files are there, such as ls, cat, grep and find; `help` lists them. Programs of"
    " the host and the network are not. The working directory and variables last from call to call."
)
BASH_CONTAINER_NOTES = (
    "It runs in a Linux container of this session, {network}, in the workspace; the programs are those of its"
    " image. Nothing lasts from call to call but files, in the workspace and for a while in /tmp; what a"
    " command leaves running is ended."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BashArgs:
    """Arguments of `bash`."""

    command: Annotated[str | None, Param("The command line to run; needed unless the shell is restarted")] = (
        None
    )
    restart: Annotated[bool, Param("Begin anew, in the workspace and without variables that were set")] = (
        False
    )
    timeout_ms: Annotated[
        int, Param("Longest time it may take, in milliseconds; there is a ceiling", least=1, most=600_000)
    ] = 120_000
    cursor: Annotated[str | None, Param("The cursor of an answer that was cut, to go on from there")] = None


def run_bash(ctx: ToolContext, args: BashArgs) -> ToolResult:
    """Run the command line and tell what it printed, as one text."""
    seconds = args.timeout_ms / 1000
    return run_text(ctx, args.command, restart=args.restart, seconds=seconds, cursor=args.cursor)
