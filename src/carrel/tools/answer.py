"""Answers in plain words, for models that read a text rather than an object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from carrel.tools.context import Context
from carrel.tools.lines import fitting_lines
from carrel.tools.result import ToolResult
from carrel.tools.snippet import snippet
from carrel.tools.store import Stored
from carrel.tools.text_diff import shortened
from carrel.values import Edited, FileInfo


def about(ctx: Context, info: FileInfo) -> dict[str, Any]:
    """What the metadata of every answer about one file say."""
    return {"path": ctx.shown(info.path), "size_bytes": info.size_bytes, "version": info.version}


def told_stored(ctx: Context, stored: Stored, says: str | None = None) -> ToolResult:
    """Say what was written, and where; or what *says* says."""
    info = stored.info
    metadata = about(ctx, info)
    if stored.diff is not None:
        metadata["diff"] = stored.diff
    wrote = f"Wrote {counted(info.size_bytes, 'byte')} to {ctx.shown(info.path)}"
    return ToolResult(success=True, output=says or wrote, metadata=metadata)


def told_edited(ctx: Context, edited: Edited) -> ToolResult:
    """Say how often the text was replaced, and show the lines around it as they are now."""
    path = ctx.shown(edited.info.path)
    output = f"Replaced {counted(edited.replacements, 'occurrence')} in {path}"
    if lines := snippet(edited.diff):
        output = f"{output}\n{lines}"
    metadata = {
        **about(ctx, edited.info),
        "replacements": edited.replacements,
        "diff": shortened(edited.diff),
    }
    return ToolResult(success=True, output=output, metadata=metadata)


def told_lines(
    ctx: Context,
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
    fitting = fitting_lines(lines, ctx.options.answer_bytes)
    left_out = len(lines) - fitting.kept
    parts = [fitting.text] if fitting.kept else []
    why = incomplete or ("one of them is too long" if fitting.is_cut else None)
    if left_out:
        why = f"{left_out} more {noun if left_out == 1 else nouns} would be too much for one answer"
    if why is not None:
        told["truncated"] = True
        parts.append(f"[Cut: {why.rstrip('.')}. {advice}]")
    return ToolResult(success=True, output="\n".join(parts), metadata=told)


def counted(number: int, noun: str) -> str:
    """A number of things, in words."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
