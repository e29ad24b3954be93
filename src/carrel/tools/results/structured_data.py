"""JSON and YAML files parsed into data, within limits on size, depth and aliases."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from datetime import date
from typing import Any, Final

MAX_JSON_CHARACTERS = 2**20
"""Longer texts stay texts: as data they would take many times their size."""
MAX_YAML_CHARACTERS = 2**17
"""YAML takes a second for so many."""
MAX_NUMBER_CHARACTERS = 1000
"""Longer numbers take long to read, and JSON cannot say them."""
MAX_DEPTH = 64
"""Who reads the answer may not be able to go deeper."""

YAML_SUFFIXES = (".yaml", ".yml")

NOTHING: Final = object()
"""Says that a text is no data."""


def parse_data(text: str, suffix: str) -> Any:  # Any: whatever JSON can say
    """The data in *text*, told by the *suffix* of its file; `NOTHING` if it is none, or too much."""
    if suffix == ".json":
        return _json(text) if len(text) <= MAX_JSON_CHARACTERS else NOTHING
    if suffix in YAML_SUFFIXES:
        return _yaml(text) if len(text) <= MAX_YAML_CHARACTERS else NOTHING
    return NOTHING


def _json(text: str) -> Any:
    try:
        found = json.loads(text, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError):
        return NOTHING
    return NOTHING if _is_deep(found) else found


def _finite(text: str) -> float:
    """The number in *text*, which may be beyond all that JSON can say.

    Raises:
        ValueError: It is.
    """
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"JSON has no {text}")
    return number


def _is_deep(value: Any) -> bool:
    """Whether lists and objects stand in each other too often."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [each for one in level if isinstance(one, dict | list) for each in _items(one)]
        if not level:
            return False
    return any(isinstance(one, dict | list) for one in level)


def _items(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def _yaml(text: str) -> Any:
    """One YAML document without aliases, which can make little text very large, and without odd tags."""
    import yaml

    try:
        if not _is_plain(text):
            return NOTHING
        return _plain(yaml.load(text, Loader=yaml.CSafeLoader))  # it is a safe one
    except Exception:
        # Besides errors of its own, yaml raises whatever an odd value leads to: `!!bool x` a KeyError.
        return NOTHING


def _is_plain(text: str) -> bool:
    """Whether no alias is in it, nothing too deep, and no number that takes long to read."""
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
    """Whether it may be a number, by how it looks or by its tag, and is too long for one."""
    may_be = event.tag is not None or (event.implicit[0] and event.value[:1] in "+-.0123456789")
    return len(event.value) > MAX_NUMBER_CHARACTERS and may_be


def _plain(value: Any) -> Any:
    """The value as JSON can say it.

    Raises:
        TypeError: It cannot.
    """
    if isinstance(value, dict):
        return {_key(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        raise TypeError("JSON has no number that is not finite")
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"JSON has no {type(value).__name__}")


def _key(key: Any) -> str:
    if isinstance(key, bool) or key is None:
        return json.dumps(key)
    if isinstance(key, str | int | float):
        return str(key)
    return str(_plain(key))
