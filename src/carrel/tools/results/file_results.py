"""Results about files as text: metadata, timestamps, what was written or edited, and lists of lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from carrel.shell.text.timestamps import SECOND_NS, utc_datetime
from carrel.tools.core.context import ToolContext
from carrel.tools.core.result import ToolResult
from carrel.tools.operations.writing import StoredFile
from carrel.tools.results.lines import fit_lines
from carrel.tools.results.text_diff import shorten_diff, snippet
from carrel.values import Edited, FileInfo


def timestamp(when_ns: int | None) -> str | None:
    """ISO 8601 in UTC with milliseconds; nothing for what is not known, or is in no calendar."""
    if when_ns is None:
        return None
    try:
        second = utc_datetime(when_ns)
    except OverflowError:
        return None
    # Not by `strftime`, which writes early years short.
    return f"{second.isoformat()[:19]}.{when_ns % SECOND_NS // 10**6:03}Z"


def file_metadata(ctx: ToolContext, info: FileInfo) -> dict[str, Any]:
    """What the metadata of every answer about one file say."""
    return {"path": ctx.shown(info.path), "size_bytes": info.size_bytes, "version": info.version}


def stored_result(ctx: ToolContext, stored: StoredFile, says: str | None = None) -> ToolResult:
    """Say what was written, and where; or what *says* says."""
    info = stored.info
    metadata = file_metadata(ctx, info)
    if stored.diff is not None:
        metadata["diff"] = stored.diff
    wrote = f"Wrote {pluralize(info.size_bytes, 'byte')} to {ctx.shown(info.path)}"
    return ToolResult(success=True, output=says or wrote, metadata=metadata)


def edited_result(ctx: ToolContext, edited: Edited) -> ToolResult:
    """Say how often the text was replaced, and show the lines around it as they are now."""
    path = ctx.shown(edited.info.path)
    output = f"Replaced {pluralize(edited.replacements, 'occurrence')} in {path}"
    if lines := snippet(edited.diff):
        output = f"{output}\n{lines}"
    metadata = {
        **file_metadata(ctx, edited.info),
        "replacements": edited.replacements,
        "diff": shorten_diff(edited.diff),
    }
    return ToolResult(success=True, output=output, metadata=metadata)


def lines_result(
    ctx: ToolContext,
    lines: Sequence[str],
    *,
    noun: str,
    nouns: str = "",
    advice: str,
    metadata: Mapping[str, Any],
    incomplete: str | None = None,
) -> ToolResult:
    """Give the *lines*, each about one *noun*, as far as they fit; what is missing is told, with *advice*.

    They may be *incomplete* already, for a reason that is told too.
    """
    nouns = nouns or f"{noun}s"
    told: dict[str, Any] = {**metadata, "count": len(lines)}
    if not lines and incomplete is None:
        return ToolResult(success=True, output=f"No {nouns} found", metadata=told)
    fitting = fit_lines(lines, ctx.options.answer_bytes)
    left_out = len(lines) - fitting.kept
    parts = [fitting.text] if fitting.kept else []
    why = incomplete or ("one of them is too long" if fitting.is_cut else None)
    if left_out:
        why = f"{left_out} more {noun if left_out == 1 else nouns} would be too much for one answer"
    if why is not None:
        told["truncated"] = True
        parts.append(f"[Cut: {why.rstrip('.')}. {advice}]")
    return ToolResult(success=True, output="\n".join(parts), metadata=told)


def pluralize(number: int, noun: str) -> str:
    """A number of things, in words."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
