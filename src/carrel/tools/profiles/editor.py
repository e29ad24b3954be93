"""The `editor` profile: the text editor and the shell that Claude models are trained on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from carrel.errors import AbsoluteError, EscapeError, ToolError
from carrel.tools.core.advice import AdvisedError
from carrel.tools.core.context import ToolContext
from carrel.tools.core.result import ToolResult
from carrel.tools.core.schema import Param
from carrel.tools.operations.commands import run_text
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
from carrel.values import FileInfo
from carrel.workspace import text as texts
from carrel.workspace.search import below
from carrel.workspace.text import line_count, line_start


def insert_lines(content: bytes, after: int, text: bytes) -> bytes:
    """The *content* with *text* behind its line *after*, which it must have; 0 is before the first.

    The text becomes lines of its own, whose ends are those of the file. Only behind a last line that is not
    ended, the text needs no end either.
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
    "view shows a file with line numbers, or what is in a directory, two levels deep; create writes a whole"
    " file, also over one that is there; str_replace replaces a text that must be in the file exactly once;"
    " insert puts lines behind a line. What is no text is viewed as base64. Paths are relative to the"
    " workspace or begin with /workspace."
)
VIEW_LEVELS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class StrReplaceBasedEditToolArgs:
    """Arguments of `str_replace_based_edit_tool`."""

    command: Annotated[Literal["view", "create", "str_replace", "insert"], Param("What to do")]
    path: Annotated[str, Param("Path of the file, or of the directory to view", least=1)]
    view_range: Annotated[
        tuple[int, ...] | None,
        Param("For view: first and last line, counted from 1; -1 is the last of the file", least=2, most=2),
    ] = None
    file_text: Annotated[str | None, Param("For create: the content of the file")] = None
    old_str: Annotated[str | None, Param("For str_replace: the text to replace, exactly as it stands")] = None
    new_str: Annotated[
        str | None, Param("For str_replace: what takes its place; nothing, if it is left out")
    ] = None
    insert_line: Annotated[
        int | None, Param("For insert: the line behind which to insert; 0 is before the first", least=0)
    ] = None
    insert_text: Annotated[str | None, Param("For insert: the lines to insert")] = None


class _Command(NamedTuple):
    run: Callable[[ToolContext, StrReplaceBasedEditToolArgs], ToolResult]
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()


def run_str_replace_based_edit_tool(ctx: ToolContext, args: StrReplaceBasedEditToolArgs) -> ToolResult:
    """Do what the command says, if it has its arguments and no others."""
    command = _COMMANDS[args.command]
    own = command.needs + command.takes
    problems = [
        f"{name!r} belongs to {owner}, not to {args.command}"
        for name, owner in _OWNERS.items()
        if name not in own and getattr(args, name) is not None
    ]
    problems += [
        f"{name!r} is missing, which {args.command} needs"
        for name in command.needs
        if getattr(args, name) is None
    ]
    if problems:
        raise ToolError("arguments", f"Wrong arguments: {'; '.join(problems)}")
    return command.run(ctx, args)


def _view(ctx: ToolContext, args: StrReplaceBasedEditToolArgs) -> ToolResult:
    try:
        return _viewed(ctx, args)
    except (AbsoluteError, EscapeError) as error:
        # A tool that writes as well would be said to have tried that.
        code, path = error.code, error.path
    raise AdvisedError(code, f"Reading {path} is not allowed", then="Use session workspace.", path=path)


def _viewed(ctx: ToolContext, args: StrReplaceBasedEditToolArgs) -> ToolResult:
    directory = ctx.workspace.stat(args.path)
    if not directory.is_directory:
        return view_lines(ctx, args.path, args.view_range)
    if args.view_range is not None:
        raise ToolError(
            "arguments", f"Wrong arguments: 'view_range' is for files, and {args.path!r} is a directory"
        )
    found = sorted(_near(ctx, args.path, directory), key=lambda info: info.path.split("/"))
    lines = [one_line(ctx.shown(directory.path))]
    lines += [one_line(ctx.shown(info.path)) + ("/" if info.is_directory else "") for info in found]
    return lines_result(
        ctx,
        lines,
        noun="path",
        advice="View a directory beneath it",
        metadata=file_metadata(ctx, directory),
    )


def _near(ctx: ToolContext, path: str, directory: FileInfo) -> Iterator[FileInfo]:
    """What is in the directory, up to two levels deep, and not hidden."""

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
    says = f"Inserted {pluralize(count, 'line')} in {ctx.shown(info.path)}"
    return stored_result(ctx, stored, f"{says}\n{surrounding_lines(content, after, count)}")


_COMMANDS: Mapping[str, _Command] = {
    "view": _Command(_view, takes=("view_range",)),
    "create": _Command(_create, needs=("file_text",)),
    "str_replace": _Command(_str_replace, needs=("old_str",), takes=("new_str",)),
    "insert": _Command(_insert, needs=("insert_line", "insert_text")),
}
_OWNERS = {
    argument: name for name, command in _COMMANDS.items() for argument in command.needs + command.takes
}


BASH_NOTES = (
    "The usual commands on files are there, such as ls, cat, grep and find; `help` lists them. Programs of"
    " the host and the network are not. The working directory and variables last from call to call."
)
BASH_CONTAINER_NOTES = (
    "It runs in a Linux container of this session, {network}, in the workspace; the programs are those of its"
    " image. Nothing lasts from call to call but files, in the workspace and for a while in /tmp; what a"
    " command leaves running is ended."
)
BASH_SECONDS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class BashArgs:
    """Arguments of `bash`."""

    command: Annotated[str | None, Param("The command line to run; needed unless the shell is restarted")] = (
        None
    )
    restart: Annotated[bool, Param("Begin anew, in the workspace and without variables that were set")] = (
        False
    )
    cursor: Annotated[str | None, Param("The cursor of an answer that was cut, to go on from there")] = None


def run_bash(ctx: ToolContext, args: BashArgs) -> ToolResult:
    """Run the command line and tell what it printed, as one text."""
    return run_text(ctx, args.command, restart=args.restart, seconds=BASH_SECONDS, cursor=args.cursor)
