"""`read_media_file`: an image or a sound, as base64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from carrel.tools.context import Context
from carrel.tools.kind import Param
from carrel.tools.media_file import media_file
from carrel.tools.result import ToolResult

NOTES = "Gives the whole file as base64, with its media type."


@dataclass(frozen=True, slots=True, kw_only=True)
class Args:
    """Arguments of `read_media_file`."""

    path: Annotated[str, Param("Path of the file", least=1)]


def run(ctx: Context, args: Args) -> ToolResult:
    """Give the content."""
    return media_file(ctx, args.path)
