"""What an operation gave or raised, in a form that is the same wherever it was done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from carrel.audit.event import Event
from carrel.errors import CarrelError
from carrel.fs.api import Content
from carrel.values import FileInfo

DETAILS = ("limit", "asked", "position", "field", "errno", "filename")


def outcome(work: Callable[[Any], Any], workspace: Any) -> Any:  # Any: operations of all kinds
    """The result of *work*, or the error that it raised."""
    try:
        return plain(work(workspace))
    except CarrelError as error:
        details = tuple(getattr(error, name, None) for name in DETAILS)
        return type(error), error.code, str(error), error.path, details, hasattr(error, "version")


def plain(value: Any) -> Any:  # Any: results of all kinds
    """*value* without what differs from one file system or moment to the next."""
    if isinstance(value, FileInfo):
        return replace(value, inode=0, modified_ns=0, accessed_ns=0, created_ns=None, host_bytes=0, blocks=0)
    if isinstance(value, Event):
        return replace(value, time_ns=0, sequence=0, session_id=None, actor="")
    if isinstance(value, Content):
        return value.path, outcome(lambda content: b"".join(content.chunks), value)
    if is_dataclass(value) and not isinstance(value, type):
        return type(value), {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Iterator | list | tuple):
        return [plain(each) for each in value]
    return value
