"""`read_file`: the older name of `read_text_file`."""

from __future__ import annotations

from carrel.tools.mcp.read_text_file import NOTES, Args, run

__all__ = ["NOTES", "Args", "run"]
