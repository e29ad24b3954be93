"""MCP tools that change files: `write_file`, `edit_file`, `create_directory` and `move_file`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from carrel.errors import EditError, MissingError
from carrel.tools.core.context import ToolContext
from carrel.tools.core.schema import Param
from carrel.tools.operations.reading import SMALL_FILE_BYTES
from carrel.tools.operations.writing import missing_parent_error, write_content
from carrel.tools.results.file_results import file_metadata, stored_result
from carrel.tools.results.text_diff import shorten_diff, text_diff
from carrel.values import ToolResult
from carrel.workspace import text as texts
from carrel.workspace.edit import replace

WRITE_FILE_NOTES = "Existing content is replaced; parent directories are created as needed."


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFileArgs:
    """Arguments of `write_file`."""

    path: Annotated[str, Param("Path of the file", minimum=1)]
    content: Annotated[str, Param("The whole content")]


def is_quick_write_file(ctx: ToolContext, args: WriteFileArgs) -> bool:
    """Whether the content is short."""
    return len(args.content) <= SMALL_FILE_BYTES


def run_write_file(ctx: ToolContext, args: WriteFileArgs) -> ToolResult:
    """Write the file, without a diff: clients of this tool do not expect one."""
    content = texts.encode(args.content, ctx.options.default_encoding, args.path)
    return stored_result(ctx, write_content(ctx, args.path, content, compare=False))


EDIT_FILE_NOTES = (
    "Each oldText must occur exactly once in the file, after the preceding edits. Returns the diff; with"
    " dryRun, nothing is changed."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEdit:
    """One replacement."""

    old_text: Annotated[str, Param("Text to replace, exactly as it is")] = field(metadata={"name": "oldText"})
    new_text: Annotated[str, Param("Replacement text")] = field(metadata={"name": "newText"})


@dataclass(frozen=True, slots=True, kw_only=True)
class EditFileArgs:
    """Arguments of `edit_file`."""

    path: Annotated[str, Param("Path of the file", minimum=1)]
    edits: Annotated[tuple[FileEdit, ...], Param("Replacements, applied in order", minimum=1)]
    dry_run: Annotated[bool, Param("Only return the diff, without changing the file")] = field(
        default=False, metadata={"name": "dryRun"}
    )


def run_edit_file(ctx: ToolContext, args: EditFileArgs) -> ToolResult:
    """Apply all edits in one write, and return the diff."""
    info, before = ctx.workspace.read_with_info(args.path)
    content, diffs = before, []
    for number, edit in enumerate(args.edits):
        ctx.check()
        try:
            replaced = replace(content, edit.old_text, edit.new_text, replace_all=False, path=args.path)
        except EditError as error:
            raise _numbered_error(error, number, args) from None
        content = replaced.content
        diffs.append(replaced.diff)
    # A large file is not compared as a whole; then the diffs of the edits are joined.
    diff = text_diff(before, content, args.path, ctx.check) or shorten_diff("".join(diffs))
    if not args.dry_run:
        info = write_content(ctx, args.path, content, create_dirs=False, if_match=info.version).info
    metadata = {**file_metadata(ctx, info), "diff": diff, "dry_run": args.dry_run}
    return ToolResult(success=True, output=f"```diff\n{diff}```", metadata=metadata)


def _numbered_error(error: EditError, number: int, args: EditFileArgs) -> EditError:
    """Add the number of the edit to *error* if there are several."""
    if len(args.edits) == 1:
        return error
    problem = error.code.removeprefix("edit.")
    return EditError(problem, f"{error.message}, in edits[{number}]", path=args.path)


CREATE_DIRECTORY_NOTES = "Parent directories are created as needed; an existing directory is left unchanged."


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDirectoryArgs:
    """Arguments of `create_directory`."""

    path: Annotated[str, Param("Path of the directory", minimum=1)]


def run_create_directory(ctx: ToolContext, args: CreateDirectoryArgs) -> ToolResult:
    """Create the directory, unless it exists."""
    existed = ctx.workspace.exists(args.path)
    ctx.workspace.mkdir(args.path, exist_ok=True)
    path = ctx.display_path(ctx.workspace.stat(args.path).path)
    output = f"Directory exists already: {path}" if existed else f"Created directory {path}"
    return ToolResult(success=True, output=output, metadata={"path": path})


MOVE_FILE_NOTES = "Nothing is overwritten: if the destination exists, the call fails."


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveFileArgs:
    """Arguments of `move_file`."""

    source: Annotated[str, Param("Path of the file or directory", minimum=1)]
    destination: Annotated[str, Param("New path", minimum=1)]


def run_move_file(ctx: ToolContext, args: MoveFileArgs) -> ToolResult:
    """Move or rename a file or directory."""
    source = ctx.display_path(ctx.workspace.stat(args.source, follow_symlinks=False).path)
    try:
        ctx.workspace.move(args.source, args.destination)
    except MissingError as error:
        if error.path != args.destination:
            raise
        raise missing_parent_error(args.destination, "Use {make} to create it.") from None
    info = ctx.workspace.stat(args.destination, follow_symlinks=False)
    output = f"Moved {source} to {ctx.display_path(info.path)}"
    return ToolResult(success=True, output=output, metadata={**file_metadata(ctx, info), "from": source})
