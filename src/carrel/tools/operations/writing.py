"""Write or append content to a file, and report what that changed."""

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
    """What changed, if both contents are text and not too large."""
    made_dirs: bool
    """Whether directories were made for it."""


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
    """Write or append *content*; unless *compare* is off, tell what that changed.

    Raises:
        ToldError: Its directory is not there, and *create_dirs* is off.
        ExistsError: There is something, and *overwrite* is off.
        ChangedError: It is not the version *if_match*.
    """
    before = _text_of(ctx, path) if compare else None
    with ctx.workspace.gate.watching() as events:
        info = _put(ctx, path, content, append, overwrite, create_dirs, if_match)
    made_dirs = any(event.operation == "mkdir" for event in events)
    if before is None:
        return StoredFile(info, None, made_dirs)
    after = before + content if append else content
    try:
        diff = text_diff(before, after, path, ctx.check)
    except LimitError:
        # The file is written; that there was no time to compare must not look like a failure.
        diff = None
    return StoredFile(info, diff, made_dirs)


def _put(
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
            return _begin(ctx, path, content, if_match)
        return workspace.write(path, content, overwrite=overwrite, parents=create_dirs, if_version=if_match)
    except MissingError:
        if create_dirs:
            raise
    raise missing_parent_error(path)


def _begin(ctx: ToolContext, path: str, content: bytes, if_match: str | None) -> FileInfo:
    """Write a file that is to be appended to and is not there yet; nor its directory is made."""
    try:
        return ctx.workspace.write(path, content, overwrite=False, parents=False, if_version=if_match)
    except ExistsError:
        # Somebody else made it meanwhile.
        return ctx.workspace.append(path, content, if_version=if_match)


def _text_of(ctx: ToolContext, path: str) -> bytes | None:
    """What is there, as far as a diff needs it: nothing if it is missing, `None` if it is too much."""
    try:
        # One that may not be written is not read either, so that only the attempt to write is recorded.
        if not ctx.workspace.explain(path, Access.WRITE).allowed:
            return None
        info, data = ctx.workspace.read_with_info(path, length=MAX_DIFF_INPUT_BYTES + 1)
    except MissingError:
        return b""
    except CarrelError:
        # Whatever stands in the way is told by the write itself.
        return None
    return data if info.size_bytes <= MAX_DIFF_INPUT_BYTES else None


def parent_path(path: str) -> str:
    """The directory that holds *path*, as it is written there; nothing for the workspace itself."""
    return path.replace("\\", "/").rstrip("/").rpartition("/")[0].rstrip("/")


def missing_parent_error(path: str, then: str = "Set create_dirs to create it.") -> AdvisedError:
    """The error for a *path* whose directory is missing; *then* says how to get one."""
    return AdvisedError(
        "path.missing",
        f"Parent directory does not exist: {parent_path(path) or path}",
        then=then,
        path=path,
    )
