"""One call of the suite: what is called, with what, and where it is made."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from carrel.values import Limits
from carrel.workspace.workspace import Workspace

VERSION = "version of "
"""Prefix of an argument that stands for the version of a file, which differs between sessions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One call, as written in Python."""

    text: str
    name: str
    """Of the operation or the tool."""
    arguments: Mapping[str, Any]  # Any: whatever JSON can say
    is_changing: bool = False
    """Whether it may change the workspace, so that each door needs one of its own."""
    profile: str = "agent"
    role: str | None = None
    limits: Limits | None = None

    def __str__(self) -> str:
        shown = self.text if len(self.text) < 70 else f"{self.text[:60]}..."
        about = [part for part in (self.profile, self.role) if part not in ("agent", None)]
        return " ".join([*about, shown, "within limits"] if self.limits else [*about, shown])


def operations(texts: Iterable[str], *, is_changing: bool, limits: Limits | None = None) -> tuple[Row, ...]:
    """Rows for calls of a workspace's methods."""
    return tuple(_operation(text, is_changing, limits) for text in texts)


def tools(
    texts: Iterable[str],
    *,
    profile: str = "agent",
    is_changing: bool = False,
    role: str | None = None,
    limits: Limits | None = None,
) -> tuple[Row, ...]:
    """Rows for calls of tools, which name all of their arguments."""
    return tuple(
        Row(
            text=text,
            name=name,
            arguments=options,
            is_changing=is_changing,
            profile=profile,
            role=role,
            limits=limits,
        )
        for text in texts
        for name, _, options in [_parsed(text)]
    )


def _operation(text: str, is_changing: bool, limits: Limits | None) -> Row:
    name, positional, options = _parsed(text)
    if positional:
        names = list(inspect.signature(getattr(Workspace, name)).parameters)[1:]
        options = {**dict(zip(names, positional, strict=False)), **options}
    return Row(text=text, name=name, arguments=options, is_changing=is_changing, limits=limits)


def _parsed(text: str) -> tuple[str, list[Any], dict[str, Any]]:
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Name)
    positional = [ast.literal_eval(argument) for argument in call.args]
    return call.func.id, positional, {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
