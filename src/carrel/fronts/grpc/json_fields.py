"""JSON in the fields of messages: parse it from requests, render it into responses."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import msgspec

from carrel.errors import RequestError
from carrel.fronts.json_document import ValueCounter, convert_document
from carrel.remote.json_codec import render

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


def render_json(value: Any) -> str:  # Any: any result of the library
    """Render *value* as JSON in ASCII, so that lone surrogates in file names can be sent too."""
    return json.dumps(render(value), allow_nan=False, separators=(",", ":"))


async def parse_json(text: str, field: str) -> Any:  # Any: any JSON
    """Parse the *text* of a *field*.

    Raises:
        RequestError: The text is not valid JSON; the message says where.
        LimitError: The document contains too many values.
    """
    try:
        return await convert_document(len(text), lambda: _loads(text))
    except json.JSONDecodeError as error:
        position = f"line {error.lineno}, column {error.colno}"
        raise RequestError(f"{field} is not valid JSON at {position}: {error.msg}") from None
    except ValueError:
        raise RequestError(
            f"{field} is not valid JSON: it contains NaN, Infinity or a number that is too long"
        ) from None
    except RecursionError:
        raise RequestError(f"{field} cannot be parsed: it is nested too deeply") from None


def _loads(text: str) -> Any:  # Any: any JSON
    ValueCounter().add(text.encode())
    return json.loads(text, parse_constant=_reject_constant)


def _reject_constant(constant: str) -> NoReturn:
    raise ValueError(constant)


async def parse_object(text: str, field: str) -> dict[str, Any] | None:  # Any: any JSON
    """Parse an object, or return `None` if *text* is empty.

    Raises:
        RequestError: The text is not valid JSON, or not an object.
        LimitError: The document contains too many values.
    """
    document = await parse_json(text, field) if text else None
    if document is None or isinstance(document, dict):
        return document
    raise RequestError(f"{field} must be an object")


async def parse_value(text: str, field: str, kind: type[T]) -> T | None:
    """Parse a value of the dataclass *kind*, or return `None` if *text* is empty.

    Raises:
        RequestError: The text is not such a value.
        LimitError: The document contains too many values.
    """
    document = await parse_object(text, field)
    if document is None:
        return None
    if unknown := document.keys() - {each.name for each in fields(kind)}:
        raise RequestError(f"{field}: unknown field {min(unknown)!r}")
    try:
        return msgspec.convert(document, kind)
    except (msgspec.ValidationError, ValueError) as error:
        raise RequestError(f"{field}: {error}") from None
