"""`file_info`: what is known about a file or directory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from carrel.errors import CarrelError, LimitError
from carrel.shell.mode import OWNER, letters
from carrel.tools.context import Context
from carrel.tools.kind import Param
from carrel.tools.result import ToolResult
from carrel.tools.timestamp import timestamp
from carrel.values import FileInfo, FileKind

NOTES = (
    "data is {type, size, permissions, owner, group, modifiedAt, accessedAt, createdAt}; times are UTC,"
    " createdAt is null where the disk does not keep it, and owner and group are always root, as users of the"
    " host are not told. Of a link, what it leads to is told; one that leads nowhere, or out, has type link."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Args:
    """Arguments of `file_info`."""

    path: Annotated[str, Param("Path to look at, relative to the workspace or beneath it", least=1)]


def run(ctx: Context, args: Args) -> ToolResult:
    """Tell what is known about what is there."""
    found = ctx.workspace.stat(args.path, follow_symlinks=False)
    is_link = found.kind is FileKind.LINK
    info = _led_to(ctx, args.path, found) if is_link else found
    return ToolResult(
        success=True,
        data=_details(info),
        metadata={
            "path": ctx.shown(info.path),
            "mode": f"{info.mode:03o}",
            "is_link": is_link,
            "version": info.version,
        },
    )


def _led_to(ctx: Context, path: str, link: FileInfo) -> FileInfo:
    """What the link leads to, or the link itself: whatever is wrong there is not told."""
    try:
        return ctx.workspace.stat(path)
    except LimitError:
        raise
    except CarrelError:
        return link


def _details(info: FileInfo) -> dict[str, Any]:
    return {
        "type": str(info.kind),
        "size": info.size_bytes,
        "permissions": letters(info)[1:],
        "owner": OWNER,
        "group": OWNER,
        "modifiedAt": timestamp(info.modified_ns),
        "accessedAt": timestamp(info.accessed_ns),
        "createdAt": timestamp(info.created_ns),
    }
