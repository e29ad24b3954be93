"""Call a tool and check the envelope of its result."""

from __future__ import annotations

from carrel.tools.toolbox import Toolbox
from carrel.values import ToolResult

UNTIL_GO = """import os, time
print('begun', flush=True)
while not os.path.exists('go'): time.sleep(0.01)
print('end')
"""
"""Code that ends when someone who saw its first output creates a file."""


def done(toolbox: Toolbox, name: str, **arguments: object) -> ToolResult:
    """Call a tool, which must succeed, and return the result."""
    result = toolbox.call(name, arguments)
    assert result.success, result.error
    assert set(result.to_dict()) - {"model_text", "images"} == {"success", "output", "metadata"}
    return result


def said(toolbox: Toolbox, name: str, **arguments: object) -> str:
    """Call a tool, which must succeed, and return the text that a model reads."""
    return done(toolbox, name, **arguments).text()


def refused(toolbox: Toolbox, name: str, code: str, **arguments: object) -> str:
    """Call a tool, which must fail with *code*, and return the text that a model reads."""
    result = toolbox.call(name, arguments)
    assert not result.success
    assert result.code == code, result.error
    assert set(result.to_dict()) == {"success", "error", "metadata"}
    return result.text()
