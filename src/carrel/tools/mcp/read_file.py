"""`read_file`: the older name of `read_text_file`."""

from __future__ import annotations

from carrel.tools.mcp.read_text_file import NOTES, Args, is_quick, run

__all__ = ["NOTES", "Args", "is_quick", "run"]
