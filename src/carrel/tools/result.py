"""What a tool answers is a value that all layers share; here is where the tools have it from."""

from __future__ import annotations

from carrel.values import ToolResult

__all__ = ["ToolResult"]
