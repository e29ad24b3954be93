"""Library values and errors as JSON, and back; used by both client and service."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar

from carrel.errors import CarrelError, UnreachableError, class_of, rebuild
from carrel.runtimes.result import SandboxResult
from carrel.shell.result import ShellResult
from carrel.values import FileInfo

T = TypeVar("T")

DETAILS = ("version", "limit", "asked", "field", "position", "retry_after_seconds")
"""What some errors know besides their code, message and path."""
_HOST_FIELDS: dict[type, dict[str, str]] = {SandboxResult: {"workspace_path": "/workspace"}}
"""Fields that speak of the host, and what is said instead."""
_NAMES: dict[type, tuple[str, ...]] = {}
"""The fields of each class that was met, since to look them up takes longer than all the rest."""


def render(value: Any) -> Any:  # Any: whatever the library gives, and whatever JSON can say
    """What JSON says for *value*: its fields, bytes as base64, and nothing about the host."""
    match value:
        case None | bool() | int() | float():
            return value
        case Enum():
            return value.value
        case str():
            return value
        case bytes():
            return b64encode(value).decode("ascii")
        case FileInfo():
            return _fields(value) | {"version": value.version}
        case ShellResult():
            return {"success": value.success, **_fields(value), **_printed(value)}
        case Mapping():
            return {key: render(each) for key, each in value.items()}
        case list() | tuple():
            return [render(each) for each in value]
    if is_dataclass(value) and not isinstance(value, type):
        return _fields(value) | _HOST_FIELDS.get(type(value), {})
    raise TypeError(f"no form for {type(value).__name__}")


def _fields(value: Any) -> dict[str, Any]:  # Any: a dataclass, which has no type of its own
    kind: type = type(value)
    names = _NAMES.get(kind)
    if names is None:
        names = _NAMES[kind] = tuple(each.name for each in fields(value))
    return {name: render(getattr(value, name)) for name in names}


def _printed(result: ShellResult) -> dict[str, str]:
    """What a command printed: as text if both streams are, else in base64."""
    streams = {"stdout": result.stdout, "stderr": result.stderr}
    try:
        return {name: data.decode() for name, data in streams.items()} | {"encoding": "utf-8"}
    except UnicodeDecodeError:
        return {name: render(data) for name, data in streams.items()} | {"encoding": "base64"}


def _as_base64(document: Mapping[str, Any]) -> dict[str, Any]:
    """A result with what was printed as `parse` takes bytes."""
    if document.get("encoding") != "utf-8":
        return dict(document)
    texts = {name: document[name] for name in ("stdout", "stderr") if isinstance(document.get(name), str)}
    return {**document, **{name: render(text.encode()) for name, text in texts.items()}}


def parse(document: Any, kind: type[T]) -> T:  # Any: whatever JSON says
    """The value that `render` made *document* of.

    Raises:
        UnreachableError: It is no such value, so what answers is no service of ours, or of another version.
    """
    import msgspec

    if kind is ShellResult and isinstance(document, Mapping):
        document = _as_base64(document)
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise UnreachableError(f"the service gave an answer that cannot be read: {error}") from None


def render_error(error: CarrelError, *, retry: bool) -> dict[str, Any]:
    """What JSON says for *error*."""
    document = {"code": error.code, "message": error.message, "path": error.path, "retry": retry}
    details = {name: getattr(error, name, None) for name in DETAILS}
    return document | {name: value for name, value in details.items() if value is not None}


def parse_error(document: Any) -> CarrelError:  # Any: whatever JSON says
    """The error that `render_error` made *document* of: the same class, code, words and details."""
    if not isinstance(document, dict) or not isinstance(document.get("code"), str):
        return UnreachableError("the service gave an error that cannot be read")
    path = document.get("path")
    state = {name: document[name] for name in DETAILS if name in document}
    kind = class_of(document["code"])
    error = rebuild(
        kind, str(document.get("message")), path if isinstance(path, str) else None, {**_unset(kind), **state}
    )
    error.code = document["code"]  # type: ignore[misc]  # one class may have a code per case
    return error


def _unset(kind: type[CarrelError]) -> dict[str, None]:
    """The details that the constructor of *kind* would have set."""
    wanted = kind.__init__.__code__.co_varnames
    return {name: None for name in DETAILS if name in wanted}
