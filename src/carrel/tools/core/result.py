"""`ToolResult`, re-exported from `carrel.values`."""

from __future__ import annotations

from carrel.values import ToolResult

__all__ = ["ToolResult"]
