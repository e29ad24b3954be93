"""Write or append content to a file, and report what changed."""

from __future__ import annotations

from typing import NamedTuple

from carrel.errors import CarrelError, ExistsError, LimitError, MissingError
from carrel.policy.rules import Access
from carrel.tools.core.advice import AdvisedError
from carrel.tools.core.context import ToolContext
from carrel.tools.results.text_diff import MAX_DIFF_INPUT_BYTES, text_diff
from carrel.values import FileInfo


class StoredFile(NamedTuple):
    """A file that was written."""

    info: FileInfo
    diff: str | None
    """Diff to the previous content, if both are text and not too large."""
    made_dirs: bool
    """Whether parent directories were created."""


def write_content(
    ctx: ToolContext,
    path: str,
    content: bytes,
    *,
    append: bool = False,
    overwrite: bool = True,
    create_dirs: bool = True,
    if_match: str | None = None,
    compare: bool = True,
) -> StoredFile:
    """Write or append *content*; with *compare*, the result has a diff.

    Raises:
        AdvisedError: The parent directory does not exist, and *create_dirs* is off.
        ExistsError: *path* exists, and *overwrite* is off.
        ChangedError: The version is not *if_match*.
    """
    before = _read_for_diff(ctx, path) if compare else None
    with ctx.workspace.gate.watching() as events:
        info = _write_or_append(ctx, path, content, append, overwrite, create_dirs, if_match)
    made_dirs = any(event.operation == "mkdir" for event in events)
    if before is None:
        return StoredFile(info, None, made_dirs)
    after = before + content if append else content
    try:
        diff = text_diff(before, after, path, ctx.check)
    except LimitError:
        # The file is written: a deadline that passes during the comparison must not look like a failure.
        diff = None
    return StoredFile(info, diff, made_dirs)


def _write_or_append(
    ctx: ToolContext,
    path: str,
    content: bytes,
    append: bool,
    overwrite: bool,
    create_dirs: bool,
    if_match: str | None,
) -> FileInfo:
    workspace = ctx.workspace
    try:
        if append and (create_dirs or workspace.exists(path)):
            return workspace.append(path, content, if_version=if_match)
        if append:
            return _create_or_append(ctx, path, content, if_match)
        return workspace.write(path, content, overwrite=overwrite, parents=create_dirs, if_version=if_match)
    except MissingError:
        if create_dirs:
            raise
    raise missing_parent_error(path)


def _create_or_append(ctx: ToolContext, path: str, content: bytes, if_match: str | None) -> FileInfo:
    """Create the file, without its parent directories; append if it was created in the meantime."""
    try:
        return ctx.workspace.write(path, content, overwrite=False, parents=False, if_version=if_match)
    except ExistsError:
        return ctx.workspace.append(path, content, if_version=if_match)


def _read_for_diff(ctx: ToolContext, path: str) -> bytes | None:
    """Read the current content; empty if the file does not exist, `None` if it cannot be compared."""
    try:
        # A file that may not be written is not read either, so that only the attempt to write is recorded.
        if not ctx.workspace.explain(path, Access.WRITE).allowed:
            return None
        info, data = ctx.workspace.read_with_info(path, length=MAX_DIFF_INPUT_BYTES + 1)
    except MissingError:
        return b""
    except CarrelError:
        # The write itself reports what is wrong.
        return None
    return data if info.size_bytes <= MAX_DIFF_INPUT_BYTES else None


def parent_path(path: str) -> str:
    """Return the parent directory of *path* as the caller wrote it; empty for the workspace itself."""
    return path.replace("\\", "/").rstrip("/").rpartition("/")[0].rstrip("/")


def missing_parent_error(path: str, next: str = "Set create_dirs to create it.") -> AdvisedError:
    """Return the error for a *path* whose parent directory is missing; *next* says how to create it."""
    return AdvisedError(
        "path.missing",
        f"Parent directory does not exist: {parent_path(path) or path}",
        next=next,
        path=path,
    )
