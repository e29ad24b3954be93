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
from carrel.tools.core.result import ToolResult
from carrel.tools.core.schema import Param
from carrel.tools.operations.writing import missing_parent_error, parent_path
from carrel.values import FileInfo

FILE_MOVE_NOTES = (
    "destination is the whole new path, with the new name: a directory that is there already is refused, not"
    " moved into. A file that is there is replaced only with overwrite. A link moves as a link."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMoveArgs:
    """Arguments of `file_move`."""

    source: Annotated[str, Param("Path of what to move, relative to the workspace", least=1)]
    destination: Annotated[str, Param("Path that it gets, with its new name", least=1)]
    overwrite: Annotated[bool, Param("Replace a file that is there already")] = False
    create_dirs: Annotated[bool, Param("Create parent directories of the destination if needed")] = False
    if_match: Annotated[str | None, Param("Move only this version of the source")] = None


def run_file_move(ctx: ToolContext, args: FileMoveArgs) -> ToolResult:
    """Move it and tell where it is."""
    workspace = ctx.workspace
    info = workspace.stat(args.source, follow_symlinks=False)
    if args.if_match is not None and info.version != args.if_match:
        raise ChangedError(f"{args.source!r} was changed meanwhile", path=args.source, version=info.version)
    _require_no_directory(ctx, args.destination, info.name)
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
    source, destination = ctx.shown(info.path), ctx.plain(args.destination)
    metadata: dict[str, Any] = {
        "source": source,
        "destination": destination,
        "type": str(info.kind),
        "size_bytes": info.size_bytes,
        "overwrite": args.overwrite,
        "created_dirs": bool(missing),
    }
    # It is moved; what goes wrong from here on must not look like a failure.
    with suppress(CarrelError):
        metadata["version"] = workspace.stat(args.destination, follow_symlinks=False).version
    return ToolResult(success=True, output=f"Moved {source} to {destination}", metadata=metadata)


def _require_no_directory(ctx: ToolContext, destination: str, name: str) -> None:
    try:
        info = ctx.workspace.stat(destination, follow_symlinks=False)
    except MissingError:
        return
    if info.is_directory:
        raise AdvisedError(
            "path.exists",
            f"Path already exists: {destination}, a directory",
            then=f"Give the whole new path, such as {destination.rstrip('/')}/{name}.",
            path=destination,
        )


def _missing_parents(ctx: ToolContext, args: FileMoveArgs, moved: FileInfo) -> list[str]:
    """The directories above the destination that are not there, innermost first.

    Raises:
        ToldError: There are some, and they are not to be made.
        IntoItselfError: They would have to be made in what is moved.
    """
    parents = list(_parents(args.destination))
    # What is beneath a missing one is missing too, so that a few looks find the first that is there.
    count = bisect_left(parents, True, key=ctx.workspace.exists)
    missing, there = parents[:count], parents[count:]
    if missing and not args.create_dirs:
        raise missing_parent_error(args.destination)
    if missing and moved.is_directory:
        for above in there:
            if ctx.workspace.stat(above).inode == moved.inode:
                raise IntoItselfError(f"{args.source!r} cannot be put inside itself", path=args.destination)
    return missing


def _parents(path: str) -> Iterator[str]:
    """The directories above *path*, innermost first."""
    while path := parent_path(path):
        yield path
