"""Results about files: metadata, timestamps, writes, edits, and lists of lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from carrel.shell.text.timestamps import SECOND_NS, utc_datetime
from carrel.tools.core.context import ToolContext
from carrel.tools.operations.writing import StoredFile
from carrel.tools.results.lines import fit_lines
from carrel.tools.results.text_diff import shorten_diff, snippet
from carrel.values import Edited, FileInfo, ToolResult


def timestamp(when_ns: int | None) -> str | None:
    """Render a time as ISO 8601 in UTC with milliseconds; `None` if it is unknown or out of range."""
    if when_ns is None:
        return None
    try:
        second = utc_datetime(when_ns)
    except OverflowError:
        return None
    # Not with `strftime`, which does not pad years before 1000.
    return f"{second.isoformat()[:19]}.{when_ns % SECOND_NS // 10**6:03}Z"


def file_metadata(ctx: ToolContext, info: FileInfo) -> dict[str, Any]:
    """Return the metadata that every result about one file has."""
    return {"path": ctx.display_path(info.path), "size_bytes": info.size_bytes, "version": info.version}


def stored_result(ctx: ToolContext, stored: StoredFile, message: str | None = None) -> ToolResult:
    """Report a write: *message*, or by default the size and the path."""
    info = stored.info
    metadata = file_metadata(ctx, info)
    if stored.diff is not None:
        metadata["diff"] = stored.diff
    if message is None:
        message = f"Wrote {pluralize(info.size_bytes, 'byte')} to {ctx.display_path(info.path)}"
    return ToolResult(success=True, output=message, metadata=metadata)


def edited_result(ctx: ToolContext, edited: Edited) -> ToolResult:
    """Report an edit: the number of replacements, and the changed lines with their surroundings."""
    path = ctx.display_path(edited.info.path)
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
    """Return as many of *lines* as fit; if some are missing, say so and add *advice*.

    *noun* says what one line stands for. *incomplete* says why lines are missing already, if they are.
    """
    nouns = nouns or f"{noun}s"
    result_metadata: dict[str, Any] = {**metadata, "count": len(lines)}
    if not lines and incomplete is None:
        return ToolResult(success=True, output=f"No {nouns} found", metadata=result_metadata)
    fitting = fit_lines(lines, ctx.options.answer_bytes)
    left_out = len(lines) - fitting.kept
    parts = [fitting.text] if fitting.kept else []
    reason = incomplete or ("one of them is too long" if fitting.is_cut else None)
    if left_out:
        reason = f"{left_out} more {noun if left_out == 1 else nouns} would be too much for one answer"
    if reason is not None:
        result_metadata["truncated"] = True
        parts.append(f"[Cut: {reason.rstrip('.')}. {advice}]")
    return ToolResult(success=True, output="\n".join(parts), metadata=result_metadata)


def pluralize(number: int, noun: str) -> str:
    """Render a number with its noun, such as `1 line` or `2 lines`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
