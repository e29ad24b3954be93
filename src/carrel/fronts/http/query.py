"""Parse the query string of a URL into a struct."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar, get_origin
from urllib.parse import parse_qsl

import msgspec

from carrel.errors import RequestError

T = TypeVar("T")
_MAX_FIELDS = 256


def parse_query(text: bytes, kind: type[T]) -> T:
    """Parse a query string into a struct of the type *kind*.

    Raises:
        RequestError: A field is unknown, missing, repeated or of the wrong type.
    """
    given: dict[str, Any] = {}  # Any: a text, or a list of texts
    if text:
        lists = _list_fields(kind)  # type: ignore[arg-type]  # a class can be hashed
        for name, value in _pairs(text):
            if name in lists:
                given.setdefault(name, []).append(value)
            elif name in given:
                raise RequestError(f"the query contains {name[:80]!r} more than once")
            else:
                given[name] = value
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise RequestError(f"the query cannot be used: {error}") from None


def _pairs(text: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            text.decode("latin-1"),
            keep_blank_values=True,
            errors="surrogateescape",
            max_num_fields=_MAX_FIELDS,
        )
    except ValueError:
        raise RequestError(f"the query has more than {_MAX_FIELDS} fields") from None


@cache
def _list_fields(kind: Any) -> frozenset[str]:  # Any: a struct, which has no type of its own
    """Return the fields that may be repeated."""
    return frozenset(
        each.name
        for each in msgspec.structs.fields(kind)
        if get_origin(each.type) in (list, tuple) or each.type in (list, tuple)
    )
