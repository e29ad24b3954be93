"""`str_replace_based_edit_tool`: view, create and edit files, as Claude models know it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from carrel.errors import AbsoluteError, EscapeError, ToolError
from carrel.tools.advice import ToldError
from carrel.tools.answer import about, counted, told_edited, told_lines, told_stored
from carrel.tools.context import Context
from carrel.tools.insertion import inserted
from carrel.tools.kind import Param
from carrel.tools.line_view import line_view
from carrel.tools.lines import one_line
from carrel.tools.result import ToolResult
from carrel.tools.snippet import surroundings
from carrel.tools.store import store
from carrel.values import FileInfo
from carrel.workspace import text as texts
from carrel.workspace.find import below

NOTES = (
    "view shows a file with line numbers, or what is in a directory, two levels deep; create writes a whole"
    " file, also over one that is there; str_replace replaces a text that must be in the file exactly once;"
    " insert puts lines behind a line. What is no text is viewed as base64. Paths are relative to the"
    " workspace or begin with /workspace."
)
LEVELS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Args:
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
    run: Callable[[Context, Args], ToolResult]
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()


def run(ctx: Context, args: Args) -> ToolResult:
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


def _view(ctx: Context, args: Args) -> ToolResult:
    try:
        return _viewed(ctx, args)
    except (AbsoluteError, EscapeError) as error:
        # A tool that writes as well would be said to have tried that.
        code, path = error.code, error.path
    raise ToldError(code, f"Reading {path} is not allowed", then="Use session workspace.", path=path)


def _viewed(ctx: Context, args: Args) -> ToolResult:
    directory = ctx.workspace.stat(args.path)
    if not directory.is_directory:
        return line_view(ctx, args.path, args.view_range)
    if args.view_range is not None:
        raise ToolError(
            "arguments", f"Wrong arguments: 'view_range' is for files, and {args.path!r} is a directory"
        )
    found = sorted(_near(ctx, args.path, directory), key=lambda info: info.path.split("/"))
    lines = [one_line(ctx.shown(directory.path))]
    lines += [one_line(ctx.shown(info.path)) + ("/" if info.is_directory else "") for info in found]
    return told_lines(
        ctx,
        lines,
        noun="path",
        advice="View a directory beneath it",
        metadata=about(ctx, directory),
    )


def _near(ctx: Context, path: str, directory: FileInfo) -> Iterator[FileInfo]:
    """What is in the directory, up to two levels deep, and not hidden."""

    def is_entered(info: FileInfo) -> bool:
        return not info.name.startswith(".") and below(directory, info).count("/") < LEVELS - 1

    walk = ctx.workspace.walk(path, enter=is_entered)
    return (info for info in walk if not info.name.startswith("."))


def _create(ctx: Context, args: Args) -> ToolResult:
    content = texts.encode(args.file_text or "", ctx.options.default_encoding, args.path)
    return told_stored(ctx, store(ctx, args.path, content))


def _str_replace(ctx: Context, args: Args) -> ToolResult:
    return told_edited(ctx, ctx.workspace.edit(args.path, args.old_str or "", args.new_str or ""))


def _insert(ctx: Context, args: Args) -> ToolResult:
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
    content = inserted(before, after, text)
    stored = store(ctx, args.path, content, create_dirs=False, if_match=info.version)
    count = texts.line_count(content) - total
    says = f"Inserted {counted(count, 'line')} in {ctx.shown(info.path)}"
    return told_stored(ctx, stored, f"{says}\n{surroundings(content, after, count)}")


_COMMANDS: Mapping[str, _Command] = {
    "view": _Command(_view, takes=("view_range",)),
    "create": _Command(_create, needs=("file_text",)),
    "str_replace": _Command(_str_replace, needs=("old_str",), takes=("new_str",)),
    "insert": _Command(_insert, needs=("insert_line", "insert_text")),
}
_OWNERS = {
    argument: name for name, command in _COMMANDS.items() for argument in command.needs + command.takes
}
