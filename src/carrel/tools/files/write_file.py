"""`write_file`: put content into a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from carrel.errors import LimitError
from carrel.tools.context import Context
from carrel.tools.encoding import Encoding, encoded
from carrel.tools.kind import Param
from carrel.tools.result import ToolResult
from carrel.tools.store import store

NOTES = (
    "data is {path, bytesWritten}. The whole content is stored or nothing; directories above are made as"
    " needed. With if_match, only that version of the file is replaced."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Args:
    """Arguments of `write_file`."""

    path: Annotated[str, Param("Path of the file, relative to the workspace or beneath it", least=1)]
    content: Annotated[str, Param("Content to write")]
    encoding: Annotated[
        Encoding | None,
        Param("Encoding of the file; base64 if the content stands for bytes", default="utf-8"),
    ] = None
    force: Annotated[bool, Param("Overwrite a file that is there; false refuses to")] = True
    if_match: Annotated[str | None, Param("Write only over this version, as an answer told it")] = None


def run(ctx: Context, args: Args) -> ToolResult:
    """Write the file and tell what changed."""
    encoding = args.encoding or ctx.options.default_encoding
    content = encoded(args.content, encoding, args.path)
    _require_size(len(content), ctx.options.max_file_size, args.path)
    stored = store(ctx, args.path, content, overwrite=args.force, if_match=args.if_match)
    path = ctx.shown(stored.info.path)
    metadata: dict[str, Any] = {
        "path": path,
        "bytes_written": len(content),
        "encoding": encoding,
        "version": stored.info.version,
    }
    if stored.diff is not None:
        metadata["diff"] = stored.diff
    return ToolResult(success=True, data={"path": path, "bytesWritten": len(content)}, metadata=metadata)


def _require_size(size: int, most: int, path: str) -> None:
    if size > most:
        raise LimitError(
            "file_bytes",
            limit=most,
            asked=size,
            message=f"{path!r} would be too large: {size} bytes, the limit is {most}",
            path=path,
        )
