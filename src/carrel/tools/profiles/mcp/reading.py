"""MCP tools that read: `read_text_file` (or `read_file`), `read_media_file`, `read_multiple_files`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

from carrel.errors import CarrelError
from carrel.tools.core.context import ToolContext
from carrel.tools.core.result import ToolResult
from carrel.tools.core.schema import Param
from carrel.tools.operations.reading import is_small_file, read_beginning, read_media, read_plain_text
from carrel.tools.results.file_results import file_metadata, pluralize

READ_TEXT_FILE_NOTES = "A file that is too long for one answer is cut, which the answer says."


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTextFileArgs:
    """Arguments of `read_text_file`."""

    path: Annotated[str, Param("Path of the file", least=1)]
    tail: Annotated[
        int | None, Param("Give only the last lines, so many; not together with head", least=1)
    ] = None
    head: Annotated[
        int | None, Param("Give only the first lines, so many; not together with tail", least=1)
    ] = None


def is_quick_read_text_file(ctx: ToolContext, args: ReadTextFileArgs) -> bool:
    """Whether the file is small."""
    return is_small_file(ctx, args.path)


def run_read_text_file(ctx: ToolContext, args: ReadTextFileArgs) -> ToolResult:
    """Give the text."""
    return read_plain_text(ctx, args.path, head=args.head, tail=args.tail)


# `read_file` is the older name of `read_text_file`.
ReadFileArgs, READ_FILE_NOTES = ReadTextFileArgs, READ_TEXT_FILE_NOTES
run_read_file, is_quick_read_file = run_read_text_file, is_quick_read_text_file


READ_MEDIA_FILE_NOTES = "Gives the whole file as base64, with its media type."


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadMediaFileArgs:
    """Arguments of `read_media_file`."""

    path: Annotated[str, Param("Path of the file", least=1)]


def run_read_media_file(ctx: ToolContext, args: ReadMediaFileArgs) -> ToolResult:
    """Give the content."""
    return read_media(ctx, args.path)


READ_MULTIPLE_FILES_NOTES = (
    "Each text follows its path; a file that cannot be read says why, and the others are read all the same."
)
MAX_FILES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadMultipleFilesArgs:
    """Arguments of `read_multiple_files`."""

    paths: Annotated[tuple[str, ...], Param("Paths of the files", least=1, most=MAX_FILES)]


def run_read_multiple_files(ctx: ToolContext, args: ReadMultipleFilesArgs) -> ToolResult:
    """Give the texts one after another, as far as they fit."""
    room = ctx.options.answer_bytes
    texts: list[str] = []
    files: list[dict[str, Any]] = []
    for path in args.paths:
        if not room:
            break
        text, told = _read_one(ctx, path, room)
        # What is said about the files counts too, as they may be many and their paths long.
        room = max(0, room - len(text.encode("utf-8", "replace")) - len(json.dumps(told)))
        texts.append(text)
        files.append(told)
    metadata: dict[str, Any] = {"files": files}
    left_out = len(args.paths) - len(files)
    if left_out:
        texts.append(
            f"[{pluralize(left_out, 'file')} left out, since the answer is long enough: read them apart]"
        )
        metadata["files_left_out"] = left_out
    if left_out or any("truncated" in told for told in files):
        metadata["truncated"] = True
    return ToolResult(success=True, output="\n---\n".join(texts), metadata=metadata)


def _read_one(ctx: ToolContext, path: str, room: int) -> tuple[str, dict[str, Any]]:
    """What is said about one file, to a reader and to a program."""
    try:
        part = read_beginning(ctx, path, room)
    except CarrelError as error:
        # Whoever has no time left has none for the other files either.
        ctx.check()
        return f"{path}: Error - {error.message}", {"path": path, "code": error.code}
    if part.is_cut:
        told: dict[str, Any] = {**file_metadata(ctx, part.info), "truncated": True}
        return (
            f"{path}:\n{part.text}\n[Cut: the file has {part.info.size_bytes} bytes. Read it alone]\n",
            told,
        )
    return f"{path}:\n{part.text}\n", file_metadata(ctx, part.info)
