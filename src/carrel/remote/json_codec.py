"""Library values and errors as JSON, and back; used by both client and service."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar

from carrel.errors import CarrelError, UnreachableError, class_of, rebuild
from carrel.runtimes.result import SandboxResult
from carrel.shell.result import ShellResult
from carrel.values import FileInfo

T = TypeVar("T")

DETAILS = ("version", "limit", "asked", "field", "position", "retry_after_seconds")
"""Attributes of some errors besides code, message and path."""
_HOST_FIELDS: dict[type, dict[str, str]] = {SandboxResult: {"workspace_path": "/workspace"}}
"""Fields that hold host paths, with the values sent instead."""


def render(value: Any) -> Any:  # Any: any value of the library, and any JSON value
    """Render a library value as JSON: dataclasses as objects, bytes as base64, without host paths."""
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
            return {"success": value.success, **_fields(value), **_streams(value)}
        case Mapping():
            return {key: render(each) for key, each in value.items()}
        case list() | tuple():
            return [render(each) for each in value]
    if is_dataclass(value) and not isinstance(value, type):
        return _fields(value) | _HOST_FIELDS.get(type(value), {})
    raise TypeError(f"no JSON form for {type(value).__name__}")


def _fields(value: Any) -> dict[str, Any]:  # Any: a dataclass, which has no type of its own
    names = _field_names(type(value))  # type: ignore[arg-type]  # a class is hashable, which mypy denies
    return {name: render(getattr(value, name)) for name in names}


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass; looking them up takes longer than rendering them."""
    return tuple(each.name for each in fields(kind))


def _streams(result: ShellResult) -> dict[str, str]:
    """The output of a command: as text if both streams are UTF-8, else as base64."""
    streams = {"stdout": result.stdout, "stderr": result.stderr}
    try:
        return {name: data.decode() for name, data in streams.items()} | {"encoding": "utf-8"}
    except UnicodeDecodeError:
        return {name: render(data) for name, data in streams.items()} | {"encoding": "base64"}


def _as_base64(document: Mapping[str, Any]) -> dict[str, Any]:
    """A result document with its output as base64, which `parse` expects for bytes."""
    if document.get("encoding") != "utf-8":
        return dict(document)
    texts = {name: document[name] for name in ("stdout", "stderr") if isinstance(document.get(name), str)}
    return {**document, **{name: render(text.encode()) for name, text in texts.items()}}


def parse(document: Any, kind: type[T]) -> T:  # Any: any JSON value
    """Parse the value of type *kind* that `render` turned into *document*.

    Raises:
        UnreachableError: The document does not fit: the server is not carrel, or of another version.
    """
    import msgspec

    if kind is ShellResult and isinstance(document, Mapping):
        document = _as_base64(document)
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise UnreachableError(f"the service sent a response that cannot be parsed: {error}") from None


def render_error(error: CarrelError, *, retry: bool) -> dict[str, Any]:
    """Render an error as JSON."""
    document = {"code": error.code, "message": error.message, "path": error.path, "retry": retry}
    details = {name: getattr(error, name, None) for name in DETAILS}
    return document | {name: value for name, value in details.items() if value is not None}


def parse_error(document: Any) -> CarrelError:  # Any: any JSON value
    """Parse an error from `render_error`: the same class, code, message and details."""
    if not isinstance(document, dict) or not isinstance(document.get("code"), str):
        return UnreachableError("the service sent an error that cannot be parsed")
    path = document.get("path")
    state = {name: document[name] for name in DETAILS if name in document}
    kind = class_of(document["code"])
    error = rebuild(
        kind, str(document.get("message")), path if isinstance(path, str) else None, {**_unset(kind), **state}
    )
    error.code = document["code"]  # type: ignore[misc]  # one class may have a code per case
    return error


def _unset(kind: type[CarrelError]) -> dict[str, None]:
    """The details that the constructor of *kind* sets, all `None`."""
    wanted = kind.__init__.__code__.co_varnames
    return {name: None for name in DETAILS if name in wanted}
