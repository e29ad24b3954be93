"""A file that is no text, as base64 with its media type."""

from __future__ import annotations

import base64

from carrel.tools.answer import about
from carrel.tools.context import Context
from carrel.tools.encoding import decoded
from carrel.tools.media import image_size, media_type
from carrel.tools.read_limit import require_size
from carrel.tools.result import ToolResult


def media_file(ctx: Context, path: str) -> ToolResult:
    """The whole content, since a part of an image or a sound is of no use.

    Raises:
        LimitError: It is larger than one operation may give.
    """
    most = ctx.options.max_file_size
    info, data = ctx.workspace.read_with_info(path, length=most + 1)
    require_size(info, most, path)
    is_text = decoded(data, None, "utf-8", path).text is not None
    metadata = {
        **about(ctx, info),
        "encoding": "base64",
        "media_type": media_type(info.path, data, is_text=is_text),
    }
    if (size := image_size(data)) is not None:
        metadata |= {"width": size.width, "height": size.height}
    return ToolResult(success=True, output=base64.b64encode(data).decode("ascii"), metadata=metadata)
