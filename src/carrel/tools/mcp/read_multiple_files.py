"""`read_multiple_files`: the text of several files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

from carrel.errors import CarrelError
from carrel.tools.answer import about, counted
from carrel.tools.context import Context
from carrel.tools.kind import Param
from carrel.tools.plain_text import beginning
from carrel.tools.result import ToolResult

NOTES = (
    "Each text follows its path; a file that cannot be read says why, and the others are read all the same."
)
MOST_FILES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Args:
    """Arguments of `read_multiple_files`."""

    paths: Annotated[tuple[str, ...], Param("Paths of the files", least=1, most=MOST_FILES)]


def run(ctx: Context, args: Args) -> ToolResult:
    """Give the texts one after another, as far as they fit."""
    room = ctx.options.answer_bytes
    texts: list[str] = []
    files: list[dict[str, Any]] = []
    for path in args.paths:
        if not room:
            break
        text, told = _read(ctx, path, room)
        # What is said about the files counts too, as they may be many and their paths long.
        room = max(0, room - len(text.encode("utf-8", "replace")) - len(json.dumps(told)))
        texts.append(text)
        files.append(told)
    metadata: dict[str, Any] = {"files": files}
    left_out = len(args.paths) - len(files)
    if left_out:
        texts.append(
            f"[{counted(left_out, 'file')} left out, since the answer is long enough: read them apart]"
        )
        metadata["files_left_out"] = left_out
    if left_out or any("truncated" in told for told in files):
        metadata["truncated"] = True
    return ToolResult(success=True, output="\n---\n".join(texts), metadata=metadata)


def _read(ctx: Context, path: str, room: int) -> tuple[str, dict[str, Any]]:
    """What is said about one file, to a reader and to a program."""
    try:
        part = beginning(ctx, path, room)
    except CarrelError as error:
        # Whoever has no time left has none for the other files either.
        ctx.check()
        return f"{path}: Error - {error.message}", {"path": path, "code": error.code}
    if part.is_cut:
        told: dict[str, Any] = {**about(ctx, part.info), "truncated": True}
        return (
            f"{path}:\n{part.text}\n[Cut: the file has {part.info.size_bytes} bytes. Read it alone]\n",
            told,
        )
    return f"{path}:\n{part.text}\n", about(ctx, part.info)
