"""`read_file`: the complete content of a file."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import Annotated

from carrel.tools.context import Context
from carrel.tools.encoding import Encoding, decoded
from carrel.tools.kind import Param
from carrel.tools.media import media_type
from carrel.tools.read_limit import readable, require_size
from carrel.tools.result import ToolResult
from carrel.tools.small import is_small_file

NOTES = (
    "data is {content, encoding}. What is not text comes as base64, and encoding says so. metadata.version"
    " is what if_match takes."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Args:
    """Arguments of `read_file`."""

    path: Annotated[str, Param("Path of the file, relative to the workspace or beneath it", least=1)]
    encoding: Annotated[
        Encoding | None, Param("Encoding of the file; base64 gives the bytes of any file", default="utf-8")
    ] = None


def is_quick(ctx: Context, args: Args) -> bool:
    """Whether the file is small."""
    return is_small_file(ctx, args.path)


def run(ctx: Context, args: Args) -> ToolResult:
    """Read the file as a whole."""
    most = readable(ctx, ctx.options.max_file_size)
    info, content = ctx.workspace.read_with_info(args.path, length=most)
    require_size(info, most, args.path)
    found = decoded(content, args.encoding, ctx.options.default_encoding, args.path)
    text = b64encode(content).decode("ascii") if found.text is None else found.text
    return ToolResult(
        success=True,
        data={"content": text, "encoding": found.encoding},
        metadata={
            "path": ctx.shown(info.path),
            "size_bytes": info.size_bytes,
            "media_type": media_type(info.path, content, is_text=found.text is not None),
            "version": info.version,
        },
    )
