"""The `files` profile: filesystem operations for workflows, with `data` in their results."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from carrel.errors import (
    CarrelError,
    ExistsError,
    LimitError,
    LoopError,
    MissingError,
    NotDirectoryError,
)
from carrel.shell.text.attributes import OWNER, mode_letters
from carrel.tools.core.context import ToolContext
from carrel.tools.core.encoding import Encoding, decode_content, encode_content
from carrel.tools.core.pagination import Cursor, NextCursor, text_page
from carrel.tools.core.schema import Param
from carrel.tools.operations.deleting import delete_path
from carrel.tools.operations.listing import list_entries
from carrel.tools.operations.reading import (
    EMPTY_FILE,
    cut_note,
    is_small_file,
    max_readable_bytes,
    require_size,
    show_bytes,
)
from carrel.tools.operations.writing import missing_parent_error, write_content
from carrel.tools.results.file_results import timestamp
from carrel.tools.results.media import media_type
from carrel.values import FileInfo, FileKind, ToolImage, ToolResult

READ_FILE_NOTES = (
    "data is {content, encoding}. Files that are not text are returned as base64, and encoding says so; of"
    " them, only images are shown, unless encoding is base64. Of a long text, only the beginning is shown,"
    " and its last line says how to continue. metadata.version is the value for if_match."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFileArgs:
    """Arguments of `read_file`."""

    path: Annotated[str, Param("Path of the file, relative to the workspace or absolute", minimum=1)]
    encoding: Annotated[
        Encoding | None, Param("Encoding of the file; base64 returns the bytes of any file", default="utf-8")
    ] = None
    cursor: Annotated[
        str | None, Param("Cursor from the last line of a text that was cut, to continue from there")
    ] = None


def is_quick_read_file(ctx: ToolContext, args: ReadFileArgs) -> bool:
    """Whether the file is small."""
    return is_small_file(ctx, args.path)


def run_read_file(ctx: ToolContext, args: ReadFileArgs) -> ToolResult:
    """Read the file, whole or from the cursor on; a model reads as much of it as fits."""
    max_bytes = max_readable_bytes(ctx, ctx.options.max_file_size)
    info, content = ctx.workspace.read_with_info(args.path, length=max_bytes)
    require_size(info, max_bytes, args.path)
    found = decode_content(content, args.encoding, ctx.options.default_encoding, args.path)
    metadata = {
        "path": ctx.display_path(info.path),
        "size_bytes": info.size_bytes,
        "media_type": media_type(info.path, content, is_text=found.text is not None),
        "version": info.version,
    }
    text = b64encode(content).decode("ascii") if found.text is None else found.text
    images: tuple[ToolImage, ...] = ()
    if found.text is None and (args.encoding or ctx.options.default_encoding) != "base64":
        advice = "It is not text: use encoding base64 to read it anyway"
        shown, images = show_bytes(metadata, content, advice)
    elif args.cursor is not None or len(text) > ctx.options.answer_bytes // 4 or not text:
        text, shown = _from_cursor(ctx, text, Cursor.parse(args.cursor), metadata, args.path)
    else:
        shown = text
    data = {"content": text, "encoding": found.encoding}
    return ToolResult(success=True, data=data, metadata=metadata, model_text=shown, images=images)


def _from_cursor(
    ctx: ToolContext, text: str, cursor: Cursor, metadata: dict[str, Any], path: str
) -> tuple[str, str]:
    """Return *text* from *cursor* on, and what a model reads; *metadata* gets a note if that is less."""
    cursor.require(metadata["version"], path)
    data = text.encode("utf-8", "surrogatepass")
    shown, end = text_page(data, cursor.position, ctx.options.answer_bytes)
    if end < len(data):
        metadata["note"] = cut_note(len(data) - end, Cursor(end, metadata["version"]))
    elif not data:
        metadata["note"] = EMPTY_FILE
    if cursor.position:
        text = data[cursor.position :].decode("utf-8", "replace")
    return text, shown


WRITE_FILE_NOTES = (
    "data is {path, bytesWritten}. The write is atomic: the file has the whole content or is unchanged."
    " Parent directories are created as needed. With if_match, only that version of the file is replaced."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFileArgs:
    """Arguments of `write_file`."""

    path: Annotated[str, Param("Path of the file, relative to the workspace or absolute", minimum=1)]
    content: Annotated[str, Param("Content to write")]
    encoding: Annotated[
        Encoding | None,
        Param("Encoding of the file; base64 if the content is base64", default="utf-8"),
    ] = None
    force: Annotated[bool, Param("Overwrite an existing file; false refuses to")] = True
    if_match: Annotated[str | None, Param("Replace only this version, as given in a result")] = None


def run_write_file(ctx: ToolContext, args: WriteFileArgs) -> ToolResult:
    """Write the file and report what changed."""
    encoding = args.encoding or ctx.options.default_encoding
    content = encode_content(args.content, encoding, args.path)
    _require_content_size(len(content), ctx.options.max_file_size, args.path)
    stored = write_content(ctx, args.path, content, overwrite=args.force, if_match=args.if_match)
    path = ctx.display_path(stored.info.path)
    metadata: dict[str, Any] = {
        "path": path,
        "bytes_written": len(content),
        "encoding": encoding,
        "version": stored.info.version,
    }
    if stored.diff is not None:
        metadata["diff"] = stored.diff
    return ToolResult(success=True, data={"path": path, "bytesWritten": len(content)}, metadata=metadata)


def _require_content_size(size: int, max_bytes: int, path: str) -> None:
    if size > max_bytes:
        raise LimitError(
            "file_bytes",
            limit=max_bytes,
            asked=size,
            message=f"{path!r} would be too large: {size} bytes, the limit is {max_bytes}",
            path=path,
        )


LIST_DIRECTORY_NOTES = (
    "data is {path, entries}, each entry {name, type, size, path} with type file, directory, link or other."
    " Hidden entries are included, links are never followed. A long result is cut, and its last line says how"
    " to continue."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListDirectoryArgs:
    """Arguments of `list_directory`."""

    path: Annotated[str, Param("Directory to list, relative to the workspace or absolute", minimum=1)]
    recursive: Annotated[bool, Param("Include subdirectories")] = False
    cursor: NextCursor = None


def run_list_directory(ctx: ToolContext, args: ListDirectoryArgs) -> ToolResult:
    """List the directory."""
    found = list_entries(ctx, args.path, recursive=args.recursive, hidden=True)
    page = found.page(ctx, args.cursor, partial(_listing_entry, ctx))
    path = ctx.display_path(found.directory.path)
    return ToolResult(
        success=True,
        data={"path": path, "entries": page.entries},
        metadata={"path": path, "item_count": len(found.entries), **page.metadata},
        model_text=page.model_text(lambda entries: {"path": path, "entries": entries}),
    )


def _listing_entry(ctx: ToolContext, info: FileInfo) -> dict[str, Any]:
    return {
        "name": info.name,
        "type": str(info.kind),
        "size": info.size_bytes,
        "path": ctx.display_path(info.path),
    }


CREATE_DIRECTORY_NOTES = (
    "data is {path, created}. If the directory exists already, created is false; that is not an error."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDirectoryArgs:
    """Arguments of `create_directory`."""

    path: Annotated[str, Param("Path of the directory, relative to the workspace or absolute", minimum=1)]
    recursive: Annotated[bool, Param("Create parent directories if needed")] = True


def run_create_directory(ctx: ToolContext, args: CreateDirectoryArgs) -> ToolResult:
    """Create the directory, unless it exists."""
    created = True
    try:
        ctx.workspace.mkdir(args.path, parents=args.recursive)
    except MissingError:
        if args.recursive:
            raise
        raise missing_parent_error(args.path, "Set recursive to create it as well.") from None
    except ExistsError:
        if not ctx.workspace.stat(args.path).is_directory:
            raise
        created = False
    path = ctx.display_path(ctx.workspace.stat(args.path).path)
    return ToolResult(success=True, data={"path": path, "created": created}, metadata={"path": path})


DELETE_NOTES = (
    "data is {path, deleted}. A link is deleted, never its target. A directory is deleted with everything in"
    " it or not at all: if the time limit is reached first, nothing is deleted."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteArgs:
    """Arguments of `delete`."""

    path: Annotated[str, Param("Path to delete, relative to the workspace or absolute", minimum=1)]
    recursive: Annotated[bool, Param("Delete a directory and everything in it")] = False
    force: Annotated[bool, Param("Do not fail if the path does not exist")] = False
    if_match: Annotated[str | None, Param("Delete only this version, as given in a result")] = None


def run_delete(ctx: ToolContext, args: DeleteArgs) -> ToolResult:
    """Delete a file, link or directory."""
    deleted = delete_path(ctx, args.path, recursive=args.recursive, force=args.force, if_match=args.if_match)
    if deleted is None:
        return _delete_result(ctx.normalized_path(args.path), item_count=0)
    return _delete_result(ctx.display_path(deleted.info.path), item_count=deleted.item_count)


def _delete_result(path: str, *, item_count: int | None) -> ToolResult:
    metadata: dict[str, Any] = {"path": path}
    if item_count is not None:
        metadata["item_count"] = item_count
    return ToolResult(success=True, data={"path": path, "deleted": True}, metadata=metadata)


EXISTS_NOTES = (
    "data is {exists, type}; type is file, directory or other, or null if the path does not exist. Links are"
    " followed; a broken link does not exist."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistsArgs:
    """Arguments of `exists`."""

    path: Annotated[str, Param("Path to check, relative to the workspace or absolute", minimum=1)]


def run_exists(ctx: ToolContext, args: ExistsArgs) -> ToolResult:
    """Check whether the path exists."""
    try:
        info = ctx.workspace.stat(args.path)
    except (MissingError, NotDirectoryError, LoopError):
        return ToolResult(success=True, data={"exists": False, "type": None})
    return ToolResult(
        success=True,
        data={"exists": True, "type": str(info.kind)},
        metadata={"path": ctx.display_path(info.path)},
    )


FILE_INFO_NOTES = (
    "data is {type, size, permissions, owner, group, modifiedAt, accessedAt, createdAt}. Times are UTC;"
    " createdAt is null if the file system does not record it. Owner and group are always root: users of the"
    " host are not shown. Links are followed; a link that is broken or leads out of the workspace has type"
    " link."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfoArgs:
    """Arguments of `file_info`."""

    path: Annotated[str, Param("Path to describe, relative to the workspace or absolute", minimum=1)]


def run_file_info(ctx: ToolContext, args: FileInfoArgs) -> ToolResult:
    """Return the metadata of a file or directory."""
    found = ctx.workspace.stat(args.path, follow_symlinks=False)
    is_link = found.kind is FileKind.LINK
    info = _link_target(ctx, args.path, found) if is_link else found
    return ToolResult(
        success=True,
        data=_file_details(info),
        metadata={
            "path": ctx.display_path(info.path),
            "mode": f"{info.mode:03o}",
            "is_link": is_link,
            "version": info.version,
        },
    )


def _link_target(ctx: ToolContext, path: str, link: FileInfo) -> FileInfo:
    """Stat the target of a link, or return the link itself; why the target failed is not revealed."""
    try:
        return ctx.workspace.stat(path)
    except LimitError:
        raise
    except CarrelError:
        return link


def _file_details(info: FileInfo) -> dict[str, Any]:
    return {
        "type": str(info.kind),
        "size": info.size_bytes,
        "permissions": mode_letters(info)[1:],
        "owner": OWNER,
        "group": OWNER,
        "modifiedAt": timestamp(info.modified_ns),
        "accessedAt": timestamp(info.accessed_ns),
        "createdAt": timestamp(info.created_ns),
    }
