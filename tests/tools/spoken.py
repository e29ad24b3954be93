"""What a tool said, read strictly."""

from __future__ import annotations

from carrel.tools.toolbox import Toolbox
from carrel.values import ToolResult


def done(toolbox: Toolbox, name: str, **arguments: object) -> ToolResult:
    """The answer of a call that must succeed."""
    result = toolbox.call(name, arguments)
    assert result.success, result.error
    assert set(result.to_dict()) == {"success", "output", "metadata"}
    return result


def said(toolbox: Toolbox, name: str, **arguments: object) -> str:
    """What a model reads of a call that must succeed."""
    return done(toolbox, name, **arguments).text()


def refused(toolbox: Toolbox, name: str, code: str, **arguments: object) -> str:
    """What a model reads of a call that must be refused for that reason."""
    result = toolbox.call(name, arguments)
    assert not result.success
    assert result.code == code, result.error
    assert set(result.to_dict()) == {"success", "error", "metadata"}
    return result.text()
