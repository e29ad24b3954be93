"""Delete a file, a link or a directory, and report what was deleted."""

from __future__ import annotations

from typing import NamedTuple

from carrel.errors import LimitError, MissingError
from carrel.tools.core.advice import AdvisedError
from carrel.tools.core.context import ToolContext
from carrel.values import FileInfo


class DeletedEntry(NamedTuple):
    """A deleted file, link or directory."""

    info: FileInfo
    item_count: int | None
    """Number of deleted entries, including itself; `None` if there were too many to count."""


def delete_path(
    ctx: ToolContext, path: str, *, recursive: bool, force: bool, if_match: str | None = None
) -> DeletedEntry | None:
    """Delete a file, a link (never its target) or a directory; with *force*, `None` if it does not exist.

    Raises:
        MissingError: *path* does not exist, and *force* is off.
        NotEmptyError: The directory is not empty, and *recursive* is off.
        ChangedError: The version is not *if_match*.
        AdvisedError: *path* is the workspace itself.
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
            next="Delete its entries by name.",
            path=path,
        )
    count = _count_entries(ctx, path, info) if recursive else 1
    ctx.workspace.remove(path, recursive=recursive, force=force, if_version=if_match)
    return DeletedEntry(info, count)


def _count_entries(ctx: ToolContext, path: str, info: FileInfo) -> int | None:
    """Count the entries to delete, which also ends the call if the deadline is too short for them.

    A tree that is too large to count can still be deleted.
    """
    if not info.is_directory:
        return 1
    try:
        return 1 + sum(1 for _ in ctx.workspace.walk(path))
    except LimitError:
        ctx.check()
        return None
