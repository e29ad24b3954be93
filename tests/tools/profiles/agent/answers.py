"""Call a tool and check the envelope of its result."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

from carrel.tools.toolbox import Toolbox
from carrel.values import ToolResult
from carrel.workspace.workspace import Workspace


def done(toolbox: Toolbox, name: str, **arguments: object) -> ToolResult:
    """Call a tool, which must succeed, and return the result."""
    result = toolbox.call(name, arguments)
    assert result.success, result.error
    assert set(result.to_dict()) - {"model_text", "images"} == {"success", "output", "metadata"}
    json.loads(result.to_json())
    return result


def output(toolbox: Toolbox, name: str, **arguments: object) -> Any:  # Any: each tool has its own shape
    """Call a tool, which must succeed, and return its output."""
    return done(toolbox, name, **arguments).output


def refused(toolbox: Toolbox, name: str, code: str, **arguments: object) -> ToolResult:
    """Call a tool, which must fail with *code* and change nothing, and return the result."""
    result = toolbox.call(name, arguments)
    assert not result.success
    assert result.code == code, result.error
    assert set(result.to_dict()) == {"success", "error", "metadata"}
    assert result.error
    assert "changes" not in result.metadata
    return result


def holds(result: ToolResult, promised: str) -> None:
    """Require every key of the *promised* JSON with its value; the workspace stands for its directory."""
    document = json.loads(result.to_json())
    promise = json.loads(promised.replace("/tmp/shannon-sessions/my-session", "/workspace"))
    assert _only(document, promise) == promise


def _only(value: Any, shape: Any) -> Any:
    """As much of *value* as *shape* speaks of."""
    if isinstance(shape, dict) and isinstance(value, dict):
        return {key: _only(value.get(key), each) for key, each in shape.items()}
    if isinstance(shape, list) and isinstance(value, list) and len(value) == len(shape):
        return [_only(one, each) for one, each in zip(value, shape, strict=True)]
    return value


def pages(toolbox: Toolbox, name: str, **arguments: object) -> Iterator[ToolResult]:
    """Yield all pages of a long result, each requested with the cursor of the one before."""
    cursor: str | None = None
    for _ in range(1000):
        result = done(toolbox, name, **arguments, cursor=cursor)
        yield result
        cursor = result.metadata.get("next_cursor")
        assert (cursor is None) == (not result.metadata.get("truncated"))
        if cursor is None:
            return
    raise AssertionError("the answers never end")


def hurried(workspace: Workspace, calls: int) -> Toolbox:
    """Tools whose time is over when they look at the clock for the *calls*th time after they began."""
    ticks = count()
    return Toolbox(workspace, timeout_ms=1000, clock=lambda: 2.0 if next(ticks) >= calls else 0.0)
