"""Values as JSON and back, between guest and host; this source also runs in the guest.

Only values are made, never objects of a class that the other side names.
"""

from __future__ import annotations

import base64
import datetime
import decimal
from typing import Any  # whatever JSON can say, and what it stands for

TAG = "$"
"""The key that tells a value which JSON does not have."""
NUMBERS = frozenset({
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
})  # fmt: skip
"""What the elements of an array may be."""


def encode(value: Any) -> Any:
    """What stands for *value* in JSON.

    Raises:
        TypeError: It is nothing that can be handed over.
    """
    if value is None or isinstance(value, bool):
        return value
    for plain in (str, int, float):
        if isinstance(value, plain):
            return plain(value)
    if isinstance(value, list):
        return [encode(each) for each in value]
    if isinstance(value, dict):
        return _dictionary(value)
    for kind in (tuple, set, frozenset):
        if isinstance(value, kind):
            return {TAG: kind.__name__, "of": [encode(each) for each in value]}
    return _tagged(value)


def _dictionary(value: dict[Any, Any]) -> Any:
    if TAG not in value and all(type(key) is str for key in value):
        return {key: encode(each) for key, each in value.items()}
    return {TAG: "dict", "of": [[encode(key), encode(each)] for key, each in value.items()]}


def _tagged(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return {TAG: "bytes", "of": base64.b64encode(value).decode()}
    if isinstance(value, complex):
        return {TAG: "complex", "of": [value.real, value.imag]}
    if isinstance(value, datetime.timedelta):
        return {TAG: "timedelta", "of": [value.days, value.seconds, value.microseconds]}
    if isinstance(value, decimal.Decimal):
        return {TAG: "Decimal", "of": str(value)}
    # The first is one of the second too.
    for kind in (datetime.datetime, datetime.date, datetime.time):
        if isinstance(value, kind):
            return {TAG: kind.__name__, "of": value.isoformat()}
    if type(value).__module__ == "numpy" and value.dtype.name in NUMBERS:
        if value.ndim == 0:
            return encode(value.item())
        return {TAG: "array", "of": encode(value.tolist()), "dtype": value.dtype.name}
    raise TypeError(f"a value of the type {type(value).__name__} cannot be handed over")


def decode(value: Any) -> Any:
    """What *value*, read from JSON, stands for.

    Raises:
        ValueError: It stands for nothing.
        TypeError: The same.
    """
    if isinstance(value, list):
        return [decode(each) for each in value]
    if not isinstance(value, dict):
        return value
    if TAG not in value:
        return {key: decode(each) for key, each in value.items()}
    made = _DECODERS.get(value[TAG])
    if made is None:
        raise ValueError("a value of an unknown kind")
    return made(value)


def _array(value: Any) -> Any:
    elements, dtype = decode(value["of"]), value["dtype"]
    if dtype not in NUMBERS:
        raise ValueError("an array of no numbers")
    try:
        import numpy
    except ImportError:
        return elements
    return numpy.array(elements, dtype=dtype)


def _timedelta(value: Any) -> datetime.timedelta:
    days, seconds, microseconds = value["of"]
    return datetime.timedelta(days, seconds, microseconds)


_DECODERS = {
    "tuple": lambda value: tuple(decode(value["of"])),
    "set": lambda value: set(decode(value["of"])),
    "frozenset": lambda value: frozenset(decode(value["of"])),
    "dict": lambda value: {decode(key): decode(each) for key, each in value["of"]},
    "bytes": lambda value: base64.b64decode(value["of"], validate=True),
    "complex": lambda value: complex(*value["of"]),
    "timedelta": _timedelta,
    "Decimal": lambda value: decimal.Decimal(value["of"]),
    "datetime": lambda value: datetime.datetime.fromisoformat(value["of"]),
    "date": lambda value: datetime.date.fromisoformat(value["of"]),
    "time": lambda value: datetime.time.fromisoformat(value["of"]),
    "array": _array,
}
