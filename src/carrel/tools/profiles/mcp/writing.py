"""MCP tools that change files: `write_file`, `edit_file`, `create_directory` and `move_file`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from carrel.errors import EditError, MissingError
from carrel.tools.core.context import ToolContext
from carrel.tools.core.result import ToolResult
from carrel.tools.core.schema import Param
from carrel.tools.operations.reading import SMALL_FILE_BYTES
from carrel.tools.operations.writing import missing_parent_error, write_content
from carrel.tools.results.file_results import file_metadata, stored_result
from carrel.tools.results.text_diff import shorten_diff, text_diff
from carrel.workspace import text as texts
from carrel.workspace.edit import replace

WRITE_FILE_NOTES = "What was in the file is replaced; directories above it are made as needed."


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFileArgs:
    """Arguments of `write_file`."""

    path: Annotated[str, Param("Path of the file", least=1)]
    content: Annotated[str, Param("The whole content")]


def is_quick_write_file(ctx: ToolContext, args: WriteFileArgs) -> bool:
    """Whether the content is short."""
    return len(args.content) <= SMALL_FILE_BYTES


def run_write_file(ctx: ToolContext, args: WriteFileArgs) -> ToolResult:
    """Write the file; what was there is not compared, as whoever knows this tool does not expect that."""
    content = texts.encode(args.content, ctx.options.default_encoding, args.path)
    return stored_result(ctx, write_content(ctx, args.path, content, compare=False))


EDIT_FILE_NOTES = (
    "Each oldText must be in the file exactly once, after the edits before it. Gives the diff; with dryRun,"
    " nothing is changed."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEdit:
    """One text in place of another."""

    old_text: Annotated[str, Param("The text to replace, exactly as it stands")] = field(
        metadata={"name": "oldText"}
    )
    new_text: Annotated[str, Param("What takes its place")] = field(metadata={"name": "newText"})


@dataclass(frozen=True, slots=True, kw_only=True)
class EditFileArgs:
    """Arguments of `edit_file`."""

    path: Annotated[str, Param("Path of the file", least=1)]
    edits: Annotated[tuple[FileEdit, ...], Param("What to replace, one after another", least=1)]
    dry_run: Annotated[bool, Param("Only show what would change")] = field(
        default=False, metadata={"name": "dryRun"}
    )


def run_edit_file(ctx: ToolContext, args: EditFileArgs) -> ToolResult:
    """Make all edits at once, and give the diff."""
    info, before = ctx.workspace.read_with_info(args.path)
    content, diffs = before, []
    for number, edit in enumerate(args.edits):
        ctx.check()
        try:
            done = replace(content, edit.old_text, edit.new_text, replace_all=False, path=args.path)
        except EditError as error:
            raise _numbered_error(error, number, args) from None
        content = done.content
        diffs.append(done.diff)
    # Of a large file only what each edit did is known.
    diff = text_diff(before, content, args.path, ctx.check) or shorten_diff("".join(diffs))
    if not args.dry_run:
        info = write_content(ctx, args.path, content, create_dirs=False, if_match=info.version).info
    metadata = {**file_metadata(ctx, info), "diff": diff, "dry_run": args.dry_run}
    return ToolResult(success=True, output=f"```diff\n{diff}```", metadata=metadata)


def _numbered_error(error: EditError, number: int, args: EditFileArgs) -> EditError:
    """The same error, which says of which edit it is if there are several."""
    if len(args.edits) == 1:
        return error
    problem = error.code.removeprefix("edit.")
    return EditError(problem, f"{error.message}, by edits[{number}]", path=args.path)


CREATE_DIRECTORY_NOTES = (
    "Directories above it are made as needed; one that is there already is left as it is."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDirectoryArgs:
    """Arguments of `create_directory`."""

    path: Annotated[str, Param("Path of the directory", least=1)]


def run_create_directory(ctx: ToolContext, args: CreateDirectoryArgs) -> ToolResult:
    """Make the directory."""
    was_there = ctx.workspace.exists(args.path)
    ctx.workspace.mkdir(args.path, exist_ok=True)
    path = ctx.shown(ctx.workspace.stat(args.path).path)
    output = f"Directory was there already: {path}" if was_there else f"Created directory {path}"
    return ToolResult(success=True, output=output, metadata={"path": path})


MOVE_FILE_NOTES = "Nothing is overwritten: where the destination is there already, it fails."


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveFileArgs:
    """Arguments of `move_file`."""

    source: Annotated[str, Param("Path of what to move", least=1)]
    destination: Annotated[str, Param("Path that it gets", least=1)]


def run_move_file(ctx: ToolContext, args: MoveFileArgs) -> ToolResult:
    """Move it."""
    source = ctx.shown(ctx.workspace.stat(args.source, follow_symlinks=False).path)
    try:
        ctx.workspace.move(args.source, args.destination)
    except MissingError as error:
        if error.path != args.destination:
            raise
        raise missing_parent_error(args.destination, "Use {make} to create it.") from None
    info = ctx.workspace.stat(args.destination, follow_symlinks=False)
    output = f"Moved {source} to {ctx.shown(info.path)}"
    return ToolResult(success=True, output=output, metadata={**file_metadata(ctx, info), "from": source})
