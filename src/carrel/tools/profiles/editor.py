"""The `editor` profile: the text editor and the shell that Claude models are trained on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from carrel.errors import AbsoluteError, EscapeError, ToolError
from carrel.tools.core.advice import AdvisedError
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
from carrel.tools.operations.reading import view_lines
from carrel.tools.operations.writing import write_content
from carrel.tools.results.file_results import (
    edited_result,
    file_metadata,
    lines_result,
    pluralize,
    stored_result,
)
from carrel.tools.results.lines import one_line
from carrel.tools.results.text_diff import surrounding_lines
from carrel.values import FileInfo, ToolResult
from carrel.workspace import text as texts
from carrel.workspace.search import below
from carrel.workspace.text import line_count, line_start


def insert_lines(content: bytes, after: int, text: bytes) -> bytes:
    """Return *content* with *text* inserted after line *after*, which must exist; 0 inserts at the start.

    The text becomes lines of its own, with the line endings of the file. After a last line without a
    newline, the text may lack one too.
    """
    if b"\r\n" in content and content.count(b"\n") == content.count(b"\r\n"):
        end, text = b"\r\n", text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    else:
        end = b"\n"
    if content and after == line_count(content) and not content.endswith(b"\n"):
        return b"".join((content, end, text))
    if not text.endswith(b"\n"):
        text += end
    at = line_start(content, after)
    return b"".join((content[:at], text, content[at:]))


STR_REPLACE_BASED_EDIT_TOOL_NOTES = (
    "view shows a file with line numbers, or the entries of a directory, two levels deep; create writes a"
    " whole file, replacing an existing one; str_replace replaces text that must occur exactly once in the"
    " file; insert inserts lines after a line. Files that are not text are viewed as base64. Paths are"
    " relative to the workspace or begin with /workspace."
)
VIEW_LEVELS = 2
"""Levels of a directory that `view` shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrReplaceBasedEditToolArgs:
    """Arguments of `str_replace_based_edit_tool`."""

    command: Annotated[Literal["view", "create", "str_replace", "insert"], Param("What to do")]
    path: Annotated[str, Param("Path of the file, or of the directory to view", minimum=1)]
    view_range: Annotated[
        tuple[int, ...] | None,
        Param("For view: first and last line, counted from 1; -1 is the last line", minimum=2, maximum=2),
    ] = None
    file_text: Annotated[str | None, Param("For create: the content of the file")] = None
    old_str: Annotated[str | None, Param("For str_replace: the text to replace, exactly as it is")] = None
    new_str: Annotated[
        str | None, Param("For str_replace: the replacement; if omitted, the text is deleted")
    ] = None
    insert_line: Annotated[
        int | None, Param("For insert: the line after which to insert; 0 is the start", minimum=0)
    ] = None
    insert_text: Annotated[str | None, Param("For insert: the lines to insert")] = None


class _Command(NamedTuple):
    run: Callable[[ToolContext, StrReplaceBasedEditToolArgs], ToolResult]
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()


def run_str_replace_based_edit_tool(ctx: ToolContext, args: StrReplaceBasedEditToolArgs) -> ToolResult:
    """Run the command, if it has all its arguments and no others."""
    command = _COMMANDS[args.command]
    allowed = command.needs + command.takes
    problems = [
        f"{name!r} belongs to {owner}, not to {args.command}"
        for name, owner in _OWNERS.items()
        if name not in allowed and getattr(args, name) is not None
    ]
    problems += [
        f"{name!r} is required for {args.command}" for name in command.needs if getattr(args, name) is None
    ]
    if problems:
        raise ToolError("arguments", f"Wrong arguments: {'; '.join(problems)}")
    return command.run(ctx, args)


def _view(ctx: ToolContext, args: StrReplaceBasedEditToolArgs) -> ToolResult:
    try:
        return _view_file_or_directory(ctx, args)
    except (AbsoluteError, EscapeError) as error:
        # The general message would say "Writing", because this tool can also write.
        code, path = error.code, error.path
    raise AdvisedError(code, f"Reading {path} is not allowed", next="Use session workspace.", path=path)


def _view_file_or_directory(ctx: ToolContext, args: StrReplaceBasedEditToolArgs) -> ToolResult:
    directory = ctx.workspace.stat(args.path)
    if not directory.is_directory:
        return view_lines(ctx, args.path, args.view_range)
    if args.view_range is not None:
        raise ToolError(
            "arguments", f"Wrong arguments: 'view_range' is for files, and {args.path!r} is a directory"
        )
    found = sorted(_walk_levels(ctx, args.path, directory), key=lambda info: info.path.split("/"))
    lines = [one_line(ctx.display_path(directory.path))]
    lines += [one_line(ctx.display_path(info.path)) + ("/" if info.is_directory else "") for info in found]
    return lines_result(
        ctx,
        lines,
        noun="path",
        advice="View a subdirectory",
        metadata=file_metadata(ctx, directory),
    )


def _walk_levels(ctx: ToolContext, path: str, directory: FileInfo) -> Iterator[FileInfo]:
    """Yield the entries of a directory, `VIEW_LEVELS` deep, except hidden ones."""

    def is_entered(info: FileInfo) -> bool:
        return not info.name.startswith(".") and below(directory, info).count("/") < VIEW_LEVELS - 1

    walk = ctx.workspace.walk(path, enter=is_entered)
    return (info for info in walk if not info.name.startswith("."))


def _create(ctx: ToolContext, args: StrReplaceBasedEditToolArgs) -> ToolResult:
    content = texts.encode(args.file_text or "", ctx.options.default_encoding, args.path)
    return stored_result(ctx, write_content(ctx, args.path, content))


def _str_replace(ctx: ToolContext, args: StrReplaceBasedEditToolArgs) -> ToolResult:
    return edited_result(ctx, ctx.workspace.edit(args.path, args.old_str or "", args.new_str or ""))


def _insert(ctx: ToolContext, args: StrReplaceBasedEditToolArgs) -> ToolResult:
    after = args.insert_line or 0
    info, before = ctx.workspace.read_with_info(args.path)
    total = texts.line_count(before)
    if after > total:
        raise ToolError(
            "arguments",
            f"Wrong arguments: 'insert_line' must be from 0 to {total}, the lines of {args.path!r},"
            f" not {after}",
        )
    text = texts.encode(args.insert_text or "", ctx.options.default_encoding, args.path)
    content = insert_lines(before, after, text)
    stored = write_content(ctx, args.path, content, create_dirs=False, if_match=info.version)
    count = texts.line_count(content) - total
    message = f"Inserted {pluralize(count, 'line')} in {ctx.display_path(info.path)}"
    return stored_result(ctx, stored, f"{message}\n{surrounding_lines(content, after, count)}")


_COMMANDS: Mapping[str, _Command] = {
    "view": _Command(_view, takes=("view_range",)),
    "create": _Command(_create, needs=("file_text",)),
    "str_replace": _Command(_str_replace, needs=("old_str",), takes=("new_str",)),
    "insert": _Command(_insert, needs=("insert_line", "insert_text")),
}
_OWNERS = {
    argument: name for name, command in _COMMANDS.items() for argument in command.needs + command.takes
}


BASH_NOTES = SHELL_NOTES
BASH_CONTAINER_NOTES = CONTAINER_NOTES
BASH_SECONDS = 120
"""Time limit of a command line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BashArgs:
    """Arguments of `bash`."""

    command: CommandOrNone = None
    restart: Restart = False
    cursor: TextCursor = None


def run_bash(ctx: ToolContext, args: BashArgs) -> ToolResult:
    """Run the command line and return its output as one text."""
    return run_text(ctx, args.command, restart=args.restart, seconds=BASH_SECONDS, cursor=args.cursor)
