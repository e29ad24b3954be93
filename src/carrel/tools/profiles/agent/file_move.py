"""`file_move`: move or rename a file or directory."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

from carrel.errors import CarrelError, ChangedError, IntoItselfError, MissingError
from carrel.tools.core.advice import AdvisedError
from carrel.tools.core.context import ToolContext
from carrel.tools.core.schema import Param
from carrel.tools.operations.writing import missing_parent_error, parent_path
from carrel.values import FileInfo, ToolResult

FILE_MOVE_NOTES = (
    "destination is the full new path, including the new name: an existing directory is refused, not moved"
    " into. An existing file is replaced only with overwrite. A link is moved as a link."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMoveArgs:
    """Arguments of `file_move`."""

    source: Annotated[str, Param("Path of the file or directory, relative to the workspace", minimum=1)]
    destination: Annotated[str, Param("New path, including the new name", minimum=1)]
    overwrite: Annotated[bool, Param("Replace an existing file")] = False
    create_dirs: Annotated[bool, Param("Create parent directories of the destination if needed")] = False
    if_match: Annotated[str | None, Param("Move only this version of the source")] = None


def run_file_move(ctx: ToolContext, args: FileMoveArgs) -> ToolResult:
    """Move a file, link or directory and report its new path."""
    workspace = ctx.workspace
    info = workspace.stat(args.source, follow_symlinks=False)
    if args.if_match is not None and info.version != args.if_match:
        raise ChangedError(
            f"{args.source!r} was changed in the meantime", path=args.source, version=info.version
        )
    _require_not_directory(ctx, args.destination, info.name)
    missing = _missing_parents(ctx, args, info)
    try:
        if missing:
            workspace.mkdir(missing[0], exist_ok=True)
        workspace.move(args.source, args.destination, overwrite=args.overwrite, if_version=args.if_match)
    except CarrelError:
        for directory in missing:
            with suppress(CarrelError):
                workspace.remove(directory)
        raise
    source, destination = ctx.display_path(info.path), ctx.normalized_path(args.destination)
    metadata: dict[str, Any] = {
        "source": source,
        "destination": destination,
        "type": str(info.kind),
        "size_bytes": info.size_bytes,
        "overwrite": args.overwrite,
        "created_dirs": bool(missing),
    }
    # The move is done: a failure from here on must not look like a failed move.
    with suppress(CarrelError):
        metadata["version"] = workspace.stat(args.destination, follow_symlinks=False).version
    return ToolResult(success=True, output=f"Moved {source} to {destination}", metadata=metadata)


def _require_not_directory(ctx: ToolContext, destination: str, name: str) -> None:
    try:
        info = ctx.workspace.stat(destination, follow_symlinks=False)
    except MissingError:
        return
    if info.is_directory:
        raise AdvisedError(
            "path.exists",
            f"Path already exists: {destination}, a directory",
            next=f"Give the full new path, such as {destination.rstrip('/')}/{name}.",
            path=destination,
        )


def _missing_parents(ctx: ToolContext, args: FileMoveArgs, moved: FileInfo) -> list[str]:
    """Return the parent directories of the destination that do not exist, innermost first.

    Raises:
        AdvisedError: Some do not exist, and *create_dirs* is off.
        IntoItselfError: They would be created inside the directory to move.
    """
    parents = list(_parents(args.destination))
    # Everything below a missing directory is missing too, so a binary search finds the first that exists.
    count = bisect_left(parents, True, key=ctx.workspace.exists)
    missing, existing = parents[:count], parents[count:]
    if missing and not args.create_dirs:
        raise missing_parent_error(args.destination)
    if missing and moved.is_directory:
        for parent in existing:
            if ctx.workspace.stat(parent).inode == moved.inode:
                raise IntoItselfError(f"{args.source!r} cannot be put inside itself", path=args.destination)
    return missing


def _parents(path: str) -> Iterator[str]:
    """Yield the parent directories of *path*, innermost first."""
    while path := parent_path(path):
        yield path
