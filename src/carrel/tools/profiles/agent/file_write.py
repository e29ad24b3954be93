"""`file_write`: write or append to a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from carrel.tools.core.context import ToolContext
from carrel.tools.core.encoding import Encoding, encode_content
from carrel.tools.core.schema import Param
from carrel.tools.operations.writing import write_content
from carrel.values import ToolResult

FILE_WRITE_NOTES = (
    "The write is atomic: the file has the whole content or is unchanged. Its directory must exist, unless"
    " create_dirs is set. With if_match, only that version of the file is replaced."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWriteArgs:
    """Arguments of `file_write`."""

    path: Annotated[str, Param("Path where to write the file, relative to the workspace", minimum=1)]
    content: Annotated[str, Param("Content to write")]
    mode: Annotated[Literal["overwrite", "append"], Param("Replace the file, or append to it")] = "overwrite"
    encoding: Annotated[
        Encoding | None,
        Param("Encoding of the file; base64 if the content is base64", default="utf-8"),
    ] = None
    create_dirs: Annotated[bool, Param("Create parent directories if needed")] = False
    if_match: Annotated[str | None, Param("Replace only this version, as given in a result")] = None


def run_file_write(ctx: ToolContext, args: FileWriteArgs) -> ToolResult:
    """Write the file and report what changed."""
    encoding = args.encoding or ctx.options.default_encoding
    content = encode_content(args.content, encoding, args.path)
    stored = write_content(
        ctx,
        args.path,
        content,
        append=args.mode == "append",
        create_dirs=args.create_dirs,
        if_match=args.if_match,
    )
    path = ctx.display_path(stored.info.path)
    metadata: dict[str, Any] = {
        "path": path,
        "size_bytes": stored.info.size_bytes,
        "bytes_written": len(content),
        "mode": args.mode,
        "encoding": encoding,
        "created_dirs": stored.made_dirs,
        "version": stored.info.version,
    }
    if stored.diff is not None:
        metadata["diff"] = stored.diff
    return ToolResult(success=True, output=path, metadata=metadata)
