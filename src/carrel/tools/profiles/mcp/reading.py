"""MCP tools that read: `read_text_file` (or `read_file`), `read_media_file`, `read_multiple_files`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

from carrel.errors import CarrelError
from carrel.tools.core.context import ToolContext
from carrel.tools.core.schema import Param
from carrel.tools.operations.reading import is_small_file, read_beginning, read_media, read_plain_text
from carrel.tools.results.file_results import file_metadata, pluralize
from carrel.values import ToolResult

READ_TEXT_FILE_NOTES = "A file that is too long for one result is cut, and the result says how to continue."


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTextFileArgs:
    """Arguments of `read_text_file`."""

    path: Annotated[str, Param("Path of the file", minimum=1)]
    tail: Annotated[
        int | None, Param("Return only this many lines from the end; not together with head", minimum=1)
    ] = None
    head: Annotated[
        int | None, Param("Return only this many lines from the start; not together with tail", minimum=1)
    ] = None
    offset: Annotated[
        int | None, Param("First line to return, counted from 1; not together with tail", minimum=1)
    ] = None


def is_quick_read_text_file(ctx: ToolContext, args: ReadTextFileArgs) -> bool:
    """Whether the file is small."""
    return is_small_file(ctx, args.path)


def run_read_text_file(ctx: ToolContext, args: ReadTextFileArgs) -> ToolResult:
    """Return the text."""
    return read_plain_text(ctx, args.path, head=args.head, tail=args.tail, offset=args.offset)


# `read_file` is the older name of `read_text_file`.
ReadFileArgs, READ_FILE_NOTES = ReadTextFileArgs, READ_TEXT_FILE_NOTES
run_read_file, is_quick_read_file = run_read_text_file, is_quick_read_text_file


READ_MEDIA_FILE_NOTES = "Returns an image or audio as such, and any other file with its media type."


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadMediaFileArgs:
    """Arguments of `read_media_file`."""

    path: Annotated[str, Param("Path of the file", minimum=1)]


def run_read_media_file(ctx: ToolContext, args: ReadMediaFileArgs) -> ToolResult:
    """Return the content as base64."""
    return read_media(ctx, args.path)


READ_MULTIPLE_FILES_NOTES = (
    "Each text follows its path. A file that cannot be read is reported with its error; the others are still"
    " read."
)
MAX_FILES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadMultipleFilesArgs:
    """Arguments of `read_multiple_files`."""

    paths: Annotated[tuple[str, ...], Param("Paths of the files", minimum=1, maximum=MAX_FILES)]


def run_read_multiple_files(ctx: ToolContext, args: ReadMultipleFilesArgs) -> ToolResult:
    """Return the texts one after another, as far as they fit."""
    room = ctx.options.answer_bytes
    texts: list[str] = []
    files: list[dict[str, Any]] = []
    for path in args.paths:
        if not room:
            break
        text, file = _read_one(ctx, path, room)
        # The metadata count too, because files may be many and their paths long.
        room = max(0, room - len(text.encode("utf-8", "replace")) - len(json.dumps(file)))
        texts.append(text)
        files.append(file)
    metadata: dict[str, Any] = {"files": files}
    left_out = len(args.paths) - len(files)
    if left_out:
        texts.append(
            f"[{pluralize(left_out, 'file')} left out, since the answer is long enough: read them separately]"
        )
        metadata["files_left_out"] = left_out
    if left_out or any("truncated" in file for file in files):
        metadata["truncated"] = True
    return ToolResult(success=True, output="\n---\n".join(texts), metadata=metadata)


def _read_one(ctx: ToolContext, path: str, room: int) -> tuple[str, dict[str, Any]]:
    """Return the text and the metadata of one file."""
    try:
        excerpt = read_beginning(ctx, path, room)
    except CarrelError as error:
        # If the deadline has passed, the other files cannot be read either.
        ctx.check()
        return f"{path}: Error - {error.message}", {"path": path, "code": error.code}
    text, metadata = f"{path}:\n{excerpt.text}\n", file_metadata(ctx, excerpt.info)
    if excerpt.is_cut:
        text += f"[Cut: the file has {excerpt.info.size_bytes} bytes. Read it alone]\n"
        metadata["truncated"] = True
    return text, metadata
