"""`list_allowed_directories`: where files may be used."""

from __future__ import annotations

from dataclasses import dataclass

from carrel.tools.context import Context
from carrel.tools.result import ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Args:
    """`list_allowed_directories` takes no arguments."""


def run(ctx: Context, args: Args) -> ToolResult:
    """Name the workspace, or what may be used of it, and the other paths that the rules show."""
    workspace = ctx.workspace
    within = (".",) if workspace.within is None else workspace.within
    # The first rule is the workspace itself, whose place on the host nobody is told.
    directories = [*map(ctx.shown, within), *(rule.root for rule in workspace.policy.allowed_paths[1:])]
    output = "\n".join(("Allowed directories:", *directories))
    return ToolResult(success=True, output=output, metadata={"directories": directories})
