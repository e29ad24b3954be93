"""JSON and YAML files parsed into data, within limits on size, depth and aliases."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from datetime import date
from typing import Any, Final

MAX_JSON_CHARACTERS = 2**20
"""Longer JSON is returned as text: parsed, it would take many times its size."""
MAX_YAML_CHARACTERS = 2**17
"""Longer YAML is returned as text: parsing this much takes a second."""
MAX_NUMBER_CHARACTERS = 1000
"""Longer numbers are slow to parse, and JSON cannot represent them."""
MAX_DEPTH = 64
"""Deepest nesting of parsed data; clients may not be able to parse more."""

YAML_SUFFIXES = (".yaml", ".yml")

NOTHING: Final = object()
"""Returned for a text that is not parsed; `None` is valid data."""


def parse_data(text: str, suffix: str) -> Any:  # Any: any JSON value
    """Parse a file with this *suffix*; `NOTHING` if its *text* is not valid data or exceeds a limit."""
    if suffix == ".json":
        return _parse_json(text) if len(text) <= MAX_JSON_CHARACTERS else NOTHING
    if suffix in YAML_SUFFIXES:
        return _parse_yaml(text) if len(text) <= MAX_YAML_CHARACTERS else NOTHING
    return NOTHING


def _parse_json(text: str) -> Any:
    try:
        found = json.loads(text, parse_constant=_parse_finite, parse_float=_parse_finite)
    except (ValueError, RecursionError):
        return NOTHING
    return NOTHING if _is_deep(found) else found


def _parse_finite(text: str) -> float:
    """Parse a number.

    Raises:
        ValueError: It is infinite or not a number, which JSON cannot represent.
    """
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"JSON has no {text}")
    return number


def _is_deep(value: Any) -> bool:
    """Whether lists and objects are nested more than `MAX_DEPTH` deep."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [each for one in level if isinstance(one, dict | list) for each in _items(one)]
        if not level:
            return False
    return any(isinstance(one, dict | list) for one in level)


def _items(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def _parse_yaml(text: str) -> Any:
    """Parse one YAML document without unusual tags, and without aliases, which can expand enormously."""
    import yaml

    try:
        if not _is_plain(text):
            return NOTHING
        return _to_json(yaml.load(text, Loader=yaml.CSafeLoader))  # it is a safe one
    except Exception:
        # Besides its own errors, yaml raises others for malformed values: `!!bool x` is a KeyError.
        return NOTHING


def _is_plain(text: str) -> bool:
    """Whether the document has no alias, no deep nesting and no number that is slow to parse."""
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent) or (isinstance(event, yaml.ScalarEvent) and _is_long(event)):
            return False
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            return False
    return True


def _is_long(event: Any) -> bool:  # Any: yaml has no types
    """Whether a scalar may be a number, by its tag or first character, and is too long for one."""
    may_be = event.tag is not None or (event.implicit[0] and event.value[:1] in "+-.0123456789")
    return len(event.value) > MAX_NUMBER_CHARACTERS and may_be


def _to_json(value: Any) -> Any:
    """Return *value* with JSON types only.

    Raises:
        TypeError: JSON cannot represent it.
    """
    if isinstance(value, dict):
        return {_json_key(key): _to_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(each) for each in value]
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        raise TypeError("JSON has no number that is not finite")
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"JSON has no {type(value).__name__}")


def _json_key(key: Any) -> str:
    if isinstance(key, bool) or key is None:
        return json.dumps(key)
    if isinstance(key, str | int | float):
        return str(key)
    return str(_to_json(key))
