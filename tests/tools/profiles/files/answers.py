"""What an operation answered, read strictly."""

from __future__ import annotations

from typing import Any

from carrel.tools.toolbox import Toolbox
from carrel.values import ToolResult


def done(toolbox: Toolbox, name: str, **arguments: object) -> ToolResult:
    """The answer of a call that must succeed."""
    result = toolbox.call(name, arguments)
    assert result.success, result.error
    assert result.error is None
    assert set(result.to_dict()) - {"model_text", "images"} == {"success", "data", "metadata"}
    return result


def data(toolbox: Toolbox, name: str, **arguments: object) -> Any:  # Any: each operation has its own shape
    """The payload of a call that must succeed."""
    return done(toolbox, name, **arguments).data


def refused(toolbox: Toolbox, name: str, code: str, **arguments: object) -> ToolResult:
    """The answer of a call that must be refused for that reason."""
    result = toolbox.call(name, arguments)
    assert not result.success
    assert (result.code, result.data, result.output) == (code, None, None)
    assert set(result.to_dict()) == {"success", "error", "metadata"}
    assert result.error
    return result
