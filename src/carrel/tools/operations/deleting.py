"""Delete a file, a link or a directory, and report what it was."""

from __future__ import annotations

from typing import NamedTuple

from carrel.errors import LimitError, MissingError
from carrel.tools.core.advice import AdvisedError
from carrel.tools.core.context import ToolContext
from carrel.values import FileInfo


class DeletedEntry(NamedTuple):
    """What is no longer there."""

    info: FileInfo
    item_count: int | None
    """How many entries went with it, itself included; `None` if they are too many to be counted."""


def delete_path(
    ctx: ToolContext, path: str, *, recursive: bool, force: bool, if_match: str | None = None
) -> DeletedEntry | None:
    """Delete a file, a link (never its target) or a directory; `None` if *force* and nothing was there.

    Raises:
        MissingError: There is nothing, and *force* is off.
        NotEmptyError: The directory is not empty, and *recursive* is off.
        ChangedError: It is not the version *if_match*.
        ToldError: It is the workspace itself.
    """
    try:
        info = ctx.workspace.stat(path, follow_symlinks=False)
    except MissingError:
        if not force:
            raise
        return None
    if info.path == ".":
        raise AdvisedError(
            "path.invalid",
            "The workspace itself cannot be deleted",
            then="Delete what is in it by its names.",
            path=path,
        )
    count = _count(ctx, path, info) if recursive else 1
    ctx.workspace.remove(path, recursive=recursive, force=force, if_version=if_match)
    return DeletedEntry(info, count)


def _count(ctx: ToolContext, path: str, info: FileInfo) -> int | None:
    """How many entries there are; counting them also finds out whether there is time for so many.

    A tree that is too large to be counted can be deleted nevertheless.
    """
    if not info.is_directory:
        return 1
    try:
        return 1 + sum(1 for _ in ctx.workspace.walk(path))
    except LimitError:
        ctx.check()
        return None
